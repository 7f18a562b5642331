// SPDX-License-Identifier: GPL-2.0
/*
 * main.c - pvfs-mgr(8): options, start in order, wait for a signal, stop in the opposite order.
 */
#include "mgr.h"
#include "../common/storeid.h"
#include <fcntl.h>
#include <getopt.h>
#include <linux/capability.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* FILES_WRITE's is the largest payload that a manager is sent. */
#define PAYLOAD_MAX PVFS_FILES_BYTES
#define CREDITS 256u
#define UNREAD_MAX (256ull << 20)	/* bytes of replies that clients have not taken yet */
#define STOP_MS 5000u

struct options {
	const char *conf, *log, *salvage;
	bool check, mkfs, verbose;
	long ready_fd;
};

static void usage(FILE *f)
{
	fprintf(f, "Usage: pvfs-mgr -c FILE [OPTION]...\n"
		"Serves the names and attributes of a PVFS volume.\n\n"
		"  -c, --config FILE   pvfs.conf(5) of the volume\n"
		"  -f, --foreground    stay in the foreground (always so)\n"
		"  -l, --log FILE      append messages to FILE instead of standard error; SIGHUP opens it anew\n"
		"  -v, --verbose       more messages\n"
		"      --check         check configuration, store and database, and exit\n"
		"      --mkfs          make the store of a new volume, and exit\n"
		"      --salvage DIR   make a new store in DIR of what is readable in a damaged one, and exit\n"
		"      --ready-fd N    write \"ready\" to descriptor N when requests are served\n"
		"  -h, --help          this text\n"
		"  -V, --version       print the version\n");
}

static bool fd_writable(long fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "config", required_argument, NULL, 'c' }, 
		{ "foreground", no_argument, NULL, 'f' },
		{ "log", required_argument, NULL, 'l' }, { "verbose", no_argument, NULL, 'v' },
		{ "check", no_argument, NULL, 'C' }, { "mkfs", no_argument, NULL, 'M' },
		{ "salvage", required_argument, NULL, 'S' },
		{ "ready-fd", required_argument, NULL, 'R' }, { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' }, { NULL, 0, NULL, 0 },
	};
	char *end;
	int c;

	*o = (struct options){ .ready_fd = -1 };
	while ((c = getopt_long(argc, argv, "c:fl:vhV", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->conf = optarg;
			break;
		case 'f':
			break;
		case 'l':
			o->log = optarg;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'C':
			o->check = true;
			break;
		case 'M':
			o->mkfs = true;
			break;
		case 'S':
			o->salvage = optarg;
			break;
		case 'R':
			errno = 0;
			o->ready_fd = strtol(optarg, &end, 10);
			if (errno || *end || end == optarg || o->ready_fd < 0 || o->ready_fd > INT_MAX) {
				fprintf(stderr, "pvfs-mgr: --ready-fd takes a descriptor, not '%s'\n",
					optarg);
				return -EINVAL;
			}
			if (!fd_writable(o->ready_fd)) {
				fprintf(stderr, "pvfs-mgr: --ready-fd %s: is not open for writing\n",
					optarg);
				return -EINVAL;
			}
			break;
		case 'h':
			usage(stdout);
			exit(0);
		case 'V':
			printf("pvfs-mgr %s (protocol %u)\n", PVFS_VERSION, PVFS_PROTO_VERSION);
			exit(0);
		default:
			fprintf(stderr, "Try 'pvfs-mgr --help'.\n");
			return -EINVAL;
		}
	}
	if (optind < argc || !o->conf) {
		fprintf(stderr, "pvfs-mgr: %s%s\nTry 'pvfs-mgr --help'.\n",
			optind < argc ? "unexpected argument " : "-c FILE is needed",
			optind < argc ? argv[optind] : "");
		return -EINVAL;
	}
	if (o->check + o->mkfs + !!o->salvage > 1) {
		fprintf(stderr, "pvfs-mgr: of --check, --mkfs and --salvage only one can be asked for\n"
			"Try 'pvfs-mgr --help'.\n");
		return -EINVAL;
	}
	return 0;
}

/* sd_notify(3) by hand: one datagram to the socket that systemd named. */
static void notify_systemd(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t n = path ? strlen(path) : 0;
	int fd;

	if (!n || n >= sizeof(sun.sun_path))
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	memcpy(sun.sun_path, path, n);
	if (sun.sun_path[0] == '@')
		sun.sun_path[0] = 0;
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&sun,
		   offsetof(struct sockaddr_un, sun_path) + n) < 0)
		pvfs_warn("NOTIFY_SOCKET %s: %s", path, strerror(errno));
	close(fd);
}

static void tell_ready(long fd)
{
	notify_systemd("READY=1\n");
	if (fd < 0)
		return;
	if (write(fd, "ready\n", 6) != 6)
		pvfs_warn("--ready-fd %ld: %s", fd, strerror(errno));
	close(fd);
}

static int load_key(const char *what, const char *path, struct pvfs_key *ret)
{
	const char *why = "";
	int err = pvfs_key_load(path, ret, &why);

	if (err)
		pvfs_error("%s %s: %s", what, path, why);
	return err;
}

/*
 * Root's run must not leave files in the store that the manager's user can't open: what is made from
 * here on belongs to the store's owner. That is the kernel's fsuid, of this thread and those it makes.
 * With it go the rights over files, which are taken back: a log or a key may be root's.
 */
static void make_files_of(const char *store)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];
	struct stat st;

	if (geteuid() || stat(store, &st) || !st.st_uid)
		return;
	if (syscall(SYS_capget, &h, caps))
		goto fail;
	setfsgid(st.st_gid);
	setfsuid(st.st_uid);
	/* They return what was before, and no error. */
	if ((uid_t)setfsuid(-1) != st.st_uid || (gid_t)setfsgid(-1) != st.st_gid) {
		errno = EPERM;
		goto fail;
	}
	if (syscall(SYS_capset, &h, caps))
		goto fail;
	prctl(PR_SET_DUMPABLE, 1);	/* a core is wanted still */
	return;
fail:
	pvfs_warn("%s: belongs to user %u, and what is made there now does not: %s; chown -R it afterwards", store,
		  st.st_uid, strerror(errno));
}

/* Is the store ours, and ours alone? Return: the lock's descriptor or -errno. */
static int take_store(const struct pvfs_conf *conf)
{
	struct pvfs_storeid id = { .format = PVFS_STORE_FORMAT, .role = PVFS_ROLE_MGR };
	char err[512] = "";
	int fd;

	memcpy(id.uuid, conf->uuid, sizeof(id.uuid));
	memcpy(id.name, conf->name, sizeof(id.name));
	fd = pvfs_storeid_check(conf->mgr_store, &id, err, sizeof(err));
	if (!fd) {
		make_files_of(conf->mgr_store);
		fd = pvfs_store_lock(conf->mgr_store, err, sizeof(err));
	}
	if (fd < 0)
		pvfs_error("%s", err[0] ? err : strerror(-fd));
	return fd;
}

static int do_check(struct mgr *m)
{
	struct mgr_check_result r;
	int err = mgr_check(m, stdout, &r);

	if (err) {
		pvfs_error("the database cannot be read: %s", strerror(-err));
		return err;
	}
	/* They were put aside when the database was opened, as at any start. */
	if (m->sessions_lost) {
		printf("%s/db: the clients' sessions were damaged or missing: they are put aside, and all clients that were there are evicted\n",
		       m->conf->mgr_store);
		r.problems++;
	}
	printf("%llu inodes, %llu directories, %llu entries, %llu orphans, %llu to be reaped: "
	       "%llu problems\n",
	       (unsigned long long)r.inodes, (unsigned long long)r.dirs,
	       (unsigned long long)r.entries,
	       (unsigned long long)r.orphans, (unsigned long long)r.reap,
	       (unsigned long long)r.problems);
	return r.problems ? -EUCLEAN : 0;
}

/* SIGHUP: the log was moved away, write to a new one. */
static void reopen_log(const struct options *o)
{
	int err = pvfs_log_reopen();

	if (err)
		pvfs_error("%s: %s", o->log, strerror(-err));
}

/* From here on requests come in. */
static int listen_and_serve(struct mgr *m, struct pvfs_engine *e, const struct pvfs_key *cluster,
			    const struct options *o, const sigset_t *sigs)
{
	const struct pvfs_conf *conf = m->conf;
	const char *text = conf->mgr_listen[0] ? conf->mgr_listen : conf->mgr_address, *why = "";
	struct pvfs_server_params p = {
		.ops = &mgr_server_ops, .arg = m, .role = PVFS_ROLE_MGR, .cluster_key = *cluster,
		.server_key = m->server_key, .epoch = m->epoch, .payload_max = PAYLOAD_MAX,
		.credits = CREDITS,
		.max_conns = conf->mgr_max_conns, .unread_max = UNREAD_MAX,
	};
	struct pvfs_server *server;
	struct pvfs_addr addr;
	int err, sig;

	memcpy(p.volume, conf->name, sizeof(p.volume));
	memcpy(p.uuid, m->uuid, sizeof(p.uuid));
	err = pvfs_addr_resolve(text, PVFS_PORT_MGR, &addr, &why);
	if (err) {
		pvfs_error("cannot listen on %s: %s", text, why && *why ? why : strerror(-err));
		return err;
	}
	err = pvfs_server_start(e, &addr, 1, &p, &server, &why);
	if (err) {
		/* It names the address. */
		pvfs_error("%s", why && *why ? why : strerror(-err));
		return err;
	}
	m->server = server;
	err = mgr_core_start(m);
	err = err ?: mgr_locks_start(&m->locks, server);
	err = err ?: mgr_recalls_start(m);
	err = err ?: mgr_grace_start(m);
	if (!err) {
		pvfs_info("volume %s: serving on %s", conf->name, text);
		tell_ready(o->ready_fd);
		while (sigwait(sigs, &sig) || sig == SIGHUP)
			reopen_log(o);
		pvfs_info("%s: stopping", strsignal(sig));
		notify_systemd("STOPPING=1\n");
	} else {
		pvfs_error("cannot start threads: %s", strerror(-err));
	}
	mgr_locks_stop(&m->locks);	/* both use the server */
	mgr_recalls_stop(m);
	mgr_grace_stop(m);
	pvfs_server_stop(server, STOP_MS);
	mgr_core_stop(m);
	mgr_workers_stop(m);
	m->server = NULL;
	return err;
}

static int serve(struct pvfs_conf *conf, const struct options *o, const sigset_t *sigs)
{
	struct pvfs_key cluster, server_key;
	struct mgr_iodtab *iods = NULL;
	struct pvfs_engine *e = NULL;
	struct mgr *m = NULL;
	char text[512] = "";
	int lock, err;

	err = load_key("cluster key", conf->cluster_key, &cluster);
	err = err ?: load_key("server key", conf->server_key, &server_key);
	if (!err && pvfs_key_same(&cluster, &server_key)) {
		pvfs_error("server key %s: is the cluster key %s, with which every client were a server: make another one",
			   conf->server_key, conf->cluster_key);
		err = -EINVAL;
	}
	if (err)
		return err;
	lock = take_store(conf);
	if (lock < 0)
		return lock;
	if (!o->check) {
		err = mgr_iodtab_open(conf, &server_key, &iods);
		if (err)
			goto unlock;
	}
	err = mgr_core_open(conf, &server_key, &mgr_iodtab_ops, iods, &m, text, sizeof(text));
	if (err) {
		pvfs_error("%s", text);
		goto close_iods;
	}
	if (o->check) {
		err = do_check(m);
		goto close_core;
	}
	err = mgr_workers_start(m, max(conf->mgr_threads / 2, 2u));
	if (err)
		goto close_core;
	err = pvfs_engine_new("mgr", conf->mgr_threads, &e);
	if (err) {
		pvfs_error("cannot start threads: %s", strerror(-err));
		mgr_workers_stop(m);
		goto close_core;
	}
	err = listen_and_serve(m, e, &cluster, o, sigs);
	mgr_workers_stop(m);
	pvfs_engine_free(e);
close_core:
	mgr_core_close(m);
close_iods:
	mgr_iodtab_close(iods);
unlock:
	close(lock);
	return err;
}

/* The old store is locked, so that no manager changes it meanwhile. */
static int salvage(const struct pvfs_conf *conf, const struct options *o)
{
	char text[512] = "";
	int lock = take_store(conf), err;

	if (lock < 0)
		return lock;
	err = mgr_salvage(conf, o->salvage, stdout, text, sizeof(text));
	if (err)
		pvfs_error("%s", text[0] ? text : strerror(-err));
	close(lock);
	return err;
}

static int run(const struct options *o, const sigset_t *sigs)
{
	struct pvfs_conf *conf;
	char text[512] = "";
	int err;

	err = pvfs_conf_load(o->conf, &conf, text, sizeof(text));
	if (err) {
		pvfs_error("%s", text[0] ? text : strerror(-err));
		return err;
	}
	if (o->mkfs) {
		make_files_of(conf->mgr_store);
		err = mgr_mkfs(conf, text, sizeof(text));
		if (err)
			pvfs_error("%s", text[0] ? text : strerror(-err));
	} else if (o->salvage) {
		err = salvage(conf, o);
	} else {
		err = serve(conf, o, sigs);
	}
	pvfs_conf_free(conf);
	return err;
}

int main(int argc, char **argv)
{
	struct rlimit rl;
	struct options o;
	sigset_t sigs;
	int err;

	if (parse(argc, argv, &o))
		return 2;
	err = pvfs_log_init("pvfs-mgr", o.verbose ? PVFS_LOG_DEBUG : PVFS_LOG_INFO, o.log);
	if (err) {
		fprintf(stderr, "pvfs-mgr: %s: %s\n", o.log, strerror(-err));
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	/* Blocked before any thread is made, so that all inherit it and only main() takes them. */
	sigemptyset(&sigs);
	sigaddset(&sigs, SIGTERM);
	sigaddset(&sigs, SIGINT);
	sigaddset(&sigs, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &sigs, NULL);
	/* One descriptor a connection. */
	if (!getrlimit(RLIMIT_NOFILE, &rl)) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	/* Replies of READDIR come and go: not worth a mapping each. */
	mallopt(M_MMAP_THRESHOLD, 4 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	return run(&o, &sigs) ? 1 : 0;
}
