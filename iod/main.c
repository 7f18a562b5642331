// SPDX-License-Identifier: GPL-2.0
/*
 * main.c - pvfs-iod(8): the command line, the process, and the order in which things start and
 * stop.
 *
 * The daemon stays in the foreground; systemd or `pvfs start` put it behind. It is ready when it
 * listens, and says so to --ready-fd and to systemd.
 */
#include "iod.h"
#include "../common/log.h"
#include "../common/storeid.h"
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define GRACE_MS 30000
#define CONF_DIR "/etc/pvfs"

struct options {
	const char *conf, *log, *store;
	long index;
	long ready_fd;
	bool mkfs, debug;
	char conf_path[512];	/* of an instance */
};

static void usage(FILE *f)
{
	fputs("Usage: pvfs-iod -c FILE -n INDEX [OPTION]...\n"
	      "       pvfs-iod --instance NAME-INDEX [OPTION]...\n"
	      "Serve one store of a PVFS volume.\n\n"
	      "  -c, --config FILE    the volume's configuration, see pvfs.conf(5)\n"
	      "  -n, --index INDEX    which of the 'iods' in it this is, counted from 0\n"
	      "      --instance NAME-INDEX  the same: -c " CONF_DIR "/NAME.conf -n INDEX\n"
	      "  -f, --foreground     stay in the foreground (always so)\n"
	      "      --mkfs           make and mark the store's directory, then exit\n"
	      "      --ready-fd N     write \"ready\\n\" to descriptor N when serving\n"
	      "      --store KIND     posix (the default), or null: discard all data (benchmarks only)\n"
	      "  -l, --log FILE       append messages to FILE instead of standard error; SIGHUP opens it anew\n"
	      "  -v, --verbose        more messages\n"
	      "      --tune NAME=SIZE sendfile_min or read_ahead (benchmarks only)\n"
	      "  -h, --help           this text\n"
	      "  -V, --version        print the version\n",
	      f);
}

static bool parse_number(const char *text, long max, long *ret)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || end == text || *end || v < 0 || v > max)
		return false;
	*ret = v;
	return true;
}

/* Return: 0; -EINVAL: the value can't be; -ENOENT: there is no such name. */
static int tune(const char *text)
{
	static const struct { const char *name; u32 *to; } knobs[] = {
		{ "sendfile_min=", &iod_tuning.sendfile_min },
		{ "read_ahead=", &iod_tuning.read_ahead },
	};
	size_t i;
	u64 v;

	for (i = 0; i < ARRAY_SIZE(knobs); i++) {
		size_t n = strlen(knobs[i].name);

		if (strncmp(text, knobs[i].name, n))
			continue;
		if (pvfs_parse_size(text + n, &v) || v > UINT32_MAX)
			return -EINVAL;
		*knobs[i].to = v;
		return 0;
	}
	return -ENOENT;
}

/* "NAME-INDEX", where NAME may have hyphens, too: what a systemd instance is called. */
static bool instance(struct options *o, const char *text)
{
	const char *dash = strrchr(text, '-');

	if (!dash || dash == text || strchr(text, '/') ||
	    !parse_number(dash + 1, PVFS_IOD_MAX - 1, &o->index) ||
	    snprintf(o->conf_path, sizeof(o->conf_path), CONF_DIR "/%.*s.conf", (int)(dash - text),
		     text) >= (int)sizeof(o->conf_path))
		return false;
	o->conf = o->conf_path;
	return true;
}

static bool fd_writable(long fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

/* Return: -1 to go on, else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
	enum { MKFS = 256, READY_FD, STORE, TUNE, INSTANCE };
	static const struct option longs[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "index", required_argument, NULL, 'n' },
		{ "mkfs", no_argument, NULL, MKFS },
		{ "ready-fd", required_argument, NULL, READY_FD },
		{ "store", required_argument, NULL, STORE },
		{ "log", required_argument, NULL, 'l' },
		{ "tune", required_argument, NULL, TUNE },
		{ "instance", required_argument, NULL, INSTANCE },
		{ "foreground", no_argument, NULL, 'f' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "debug", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c, rc;

	*o = (struct options){ .index = -1, .ready_fd = -1, .store = "posix" };
	while ((c = getopt_long(argc, argv, "c:n:fl:vhV", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->conf = optarg;
			break;
		case 'n':
			if (!parse_number(optarg, PVFS_IOD_MAX - 1, &o->index)) {
				fprintf(stderr, "pvfs-iod: -n takes a number, 0 .. %u, not '%s'\n",
					PVFS_IOD_MAX - 1, optarg);
				return 2;
			}
			break;
		case MKFS:
			o->mkfs = true;
			break;
		case READY_FD:
			if (!parse_number(optarg, 1 << 20, &o->ready_fd)) {
				fprintf(stderr,
					"pvfs-iod: --ready-fd takes a descriptor, not '%s'\n",
					optarg);
				return 2;
			}
			if (!fd_writable(o->ready_fd)) {
				fprintf(stderr, "pvfs-iod: --ready-fd %s: is not open for writing\n",
					optarg);
				return 2;
			}
			break;
		case STORE:
			o->store = optarg;
			break;
		case 'f':
			break;
		case INSTANCE:
			if (!instance(o, optarg)) {
				fprintf(stderr, "pvfs-iod: --instance takes NAME-INDEX, not '%s'\n",
					optarg);
				return 2;
			}
			break;
		case 'l':
			o->log = optarg;
			break;
		case TUNE:
			rc = tune(optarg);
			if (!rc)
				break;
			fprintf(stderr, rc == -EINVAL ? "pvfs-iod: --tune %s: the value is no size, as 64k\n" :
							"pvfs-iod: --tune does not know '%s'\n", optarg);
			return 2;
		case 'v':
			o->debug = true;
			break;
		case 'h':
			usage(stdout);
			return 0;
		case 'V':
			printf("pvfs-iod %s (protocol %u)\n", PVFS_VERSION, PVFS_PROTO_VERSION);
			return 0;
		default:
			fputs("Try 'pvfs-iod --help'.\n", stderr);
			return 2;
		}
	}
	if (optind < argc || !o->conf || o->index < 0) {
		if (optind < argc)
			fprintf(stderr, "pvfs-iod: what is '%s'?\n", argv[optind]);
		else
			fputs("pvfs-iod: -c FILE and -n INDEX are needed\n", stderr);
		fputs("Try 'pvfs-iod --help'.\n", stderr);
		return 2;
	}
	if (strcmp(o->store, "posix") && strcmp(o->store, "null")) {
		fprintf(stderr, "pvfs-iod: --store is posix or null, not '%s'\n", o->store);
		return 2;
	}
	return -1;
}

/* To systemd, when it started us and asked for it: sd_notify(3) without its library. */
static void notify(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	size_t n;
	int fd;

	if (!path || (path[0] != '/' && path[0] != '@'))
		return;
	n = strlen(path);
	if (n >= sizeof(sa.sun_path))
		return;
	memcpy(sa.sun_path, path, n);
	if (path[0] == '@')
		sa.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&sa,
		   offsetof(struct sockaddr_un, sun_path) + n) < 0)
		pvfs_warn("can't tell systemd %s: %s", text, strerror(errno));
	close(fd);
}

static void say_ready(const struct options *o)
{
	if (o->ready_fd >= 0) {
		if (write(o->ready_fd, "ready\n", 6) != 6)
			pvfs_warn("can't write to descriptor %ld: %s", o->ready_fd,
				  strerror(errno));
		close(o->ready_fd);
	}
	notify("READY=1");
}

/*
 * Descriptors for all connections and datafiles (twice the cache: see iod_fds_new()); fewer datafiles
 * are kept open when that is not allowed.
 */
static void raise_limits(struct pvfs_conf *conf)
{
	u64 want = (u64)conf->iod_max_conns + PVFS_UNPROVED_DEFAULT +
		   2ull * conf->fd_cache + conf->iod_threads * 2 + 64;
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl))
		return;
	if (rl.rlim_max < want) {
		struct rlimit more = { .rlim_cur = want, .rlim_max = want };

		if (!setrlimit(RLIMIT_NOFILE, &more))	/* root may */
			return;
	}
	if (rl.rlim_cur < want && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = min((rlim_t)want, rl.rlim_max);
		setrlimit(RLIMIT_NOFILE, &rl);
		getrlimit(RLIMIT_NOFILE, &rl);
	}
	if (rl.rlim_cur < want) {
		conf->fd_cache = min((rlim_t)conf->fd_cache, rl.rlim_cur / 4);
		conf->fd_cache = max(conf->fd_cache, 16u);
		pvfs_warn("%llu descriptors are allowed, %llu wanted: keeping %u datafiles open (raise LimitNOFILE)",
			  (unsigned long long)rl.rlim_cur, (unsigned long long)want,
			  conf->fd_cache);
	}
}

static int make_store(const struct pvfs_conf *conf, const struct pvfs_storeid *id)
{
	char err[5000];
	int rc;

	rc = pvfs_storeid_create(conf->iods[id->index].store, id, err, sizeof(err));
	if (rc) {
		pvfs_error("%s", err);
		return 1;
	}
	pvfs_info("%s: made the store of iod %u of volume '%s'", conf->iods[id->index].store,
		  id->index, conf->name);
	return 0;
}

/* Checked, locked, opened. The lock lives as long as the process. */
static int open_store(const struct pvfs_conf *conf, const struct pvfs_storeid *id,
		      const struct options *o, struct iod_store **ret)
{
	const char *dir = conf->iods[id->index].store;
	char err[5000];
	int rc;

	if (!strcmp(o->store, "null")) {
		pvfs_warn("--store null: data is discarded");
		return iod_store_null_open(conf->io_max, ret);
	}
	rc = pvfs_storeid_check(dir, id, err, sizeof(err));
	if (!rc) {
		rc = pvfs_store_lock(dir, err, sizeof(err));
		rc = min(rc, 0);
	}
	if (rc) {
		pvfs_error("%s", err);
		return rc;
	}
	rc = iod_store_posix_open(dir, conf->iod_reserve, ret);
	if (rc)
		pvfs_error("%s: can't be opened: %s", dir, strerror(-rc));
	return rc;
}

/* Serves until it is told to stop. */
static void wait_for_end(const struct options *o, const sigset_t *set)
{
	int sig, err;

	for (;;) {
		if (sigwait(set, &sig))
			continue;
		if (sig != SIGHUP)
			break;
		err = pvfs_log_reopen();
		if (err)
			pvfs_warn("%s: can't be opened anew: %s", o->log, strerror(-err));
	}
	pvfs_info("signal %d: finishing what was accepted", sig);
}

int main(int argc, char **argv)
{
	struct pvfs_storeid id = { .format = PVFS_STORE_FORMAT, .role = PVFS_ROLE_IOD };
	const struct pvfs_conf_iod *me;
	struct pvfs_conf *conf = NULL;
	struct iod_store *store;
	struct options o;
	struct iod *iod;
	char err[6000];
	sigset_t set;
	int rc;

	rc = parse(argc, argv, &o);
	if (rc >= 0)
		return rc;
	umask(0077);
	/* A thread must not keep memory for itself: what the daemon uses is configured. */
	mallopt(M_ARENA_MAX, 2);
	rc = pvfs_log_init("pvfs-iod", o.debug ? PVFS_LOG_DEBUG : PVFS_LOG_INFO, o.log);
	if (rc) {
		fprintf(stderr, "pvfs-iod: %s: %s\n", o.log, strerror(-rc));
		return 1;
	}
	rc = pvfs_conf_load(o.conf, &conf, err, sizeof(err));
	if (rc) {
		pvfs_error("%s", err);
		return 1;
	}
	if (o.index >= conf->niods) {
		pvfs_error("%s: there is no iod %ld: it has iods 0 .. %u", o.conf, o.index,
			   conf->niods - 1);
		pvfs_conf_free(conf);
		return 1;
	}
	id.index = o.index;
	memcpy(id.uuid, conf->uuid, sizeof(id.uuid));
	memcpy(id.name, conf->name, sizeof(id.name));
	if (o.mkfs) {
		rc = make_store(conf, &id);
		pvfs_conf_free(conf);
		return rc;
	}

	/* Before the first thread, so that all of them have it blocked. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	raise_limits(conf);
	me = &conf->iods[id.index];
	rc = open_store(conf, &id, &o, &store);
	if (rc)
		goto out;
	rc = iod_start(conf, id.index, store, &iod, err, sizeof(err));
	if (rc) {
		pvfs_error("%s", err);
		goto out;
	}
	pvfs_info("iod %u of volume '%s' serves %s on %s", id.index, conf->name,
		  me->store, *me->listen ? me->listen : me->address);
	say_ready(&o);
	wait_for_end(&o, &set);
	notify("STOPPING=1");
	iod_stop(iod, GRACE_MS);
	pvfs_info("stopped");
out:
	pvfs_conf_free(conf);
	return rc ? 1 : 0;
}
