// SPDX-License-Identifier: GPL-2.0
/*
 * main.c - pvfsd, a volume mounted from user space, by libfuse3 and libpvfs: for hosts that cannot
 * load the module. See pvfsd(8).
 */
#include "pvfsd.h"
#include "../../common/log.h"
#include "../../common/proto.h"
#include <ctype.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#define THREADS_MAX 1000
#define END_SECONDS 2	/* from a signal to the end, whatever the servers do */

struct pvfs_fs *fs;
struct pvfs_fh root;

/* As the user wrote them; NULL: not given. */
struct options {
	char *key, *timeo, *nconnect, *mount_timeout;
	int soft;
};

/* The same, checked; 0: libpvfs' own. */
struct numbers {
	unsigned long timeo, nconnect, mount_timeout;
};

static const struct fuse_opt option_list[] = {
	{ "key=%s", offsetof(struct options, key), 0 },
	{ "timeo=%s", offsetof(struct options, timeo), 0 },
	{ "nconnect=%s", offsetof(struct options, nconnect), 0 },
	{ "mount_timeout=%s", offsetof(struct options, mount_timeout), 0 },
	{ "soft", offsetof(struct options, soft), 1 },
	{ "hard", offsetof(struct options, soft), 0 },
	FUSE_OPT_END
};

/* Options of mounts by the module: what they are about is not here. */
static const char *const module_options[] = {
	"rsize", "wsize", "actimeo", "locks", "lease", "cache", "flush", "readdir",
};

/* What is in no list: libfuse's, or nobody's. */
static int other_option(void *data, const char *arg, int key, struct fuse_args *args)
{
	size_t n = strcspn(arg, "="), i;

	for (i = 0; i < sizeof(module_options) / sizeof(*module_options); i++) {
		if (strlen(module_options[i]) != n || strncmp(module_options[i], arg, n))
			continue;
		fprintf(stderr, "pvfsd: option '%s' is the kernel module's: leave it out, or mount by the module, see pvfs(5)\n",
			module_options[i]);
		return -1;
	}
	return 1;
}

static void usage(FILE *f)
{
	fprintf(f, "Usage: pvfsd [OPTION]... HOST[:PORT]:/VOLUME DIRECTORY\n"
		   "Mounts a PVFS volume from user space, without the kernel module.\n\n"
		   "  -f, --foreground  stay in the foreground\n"
		   "  -l, --log FILE    append messages to FILE instead of syslog, or with -f standard error;\n"
		   "                    SIGHUP opens it anew\n"
		   "  -v, --verbose     more messages\n"
		   "  -h, --help        this text\n"
		   "  -V, --version     print the version\n"
		   "  -o key=FILE    the cluster key (default /etc/pvfs/cluster.key)\n"
		   "  -o soft,timeo=DS  give up after so many tenths of a second, 1 .. 36000 (600)\n"
		   "  -o nconnect=N  connections to each server, 1 .. %u (1)\n"
		   "  -o mount_timeout=S  how many seconds the manager has to answer, 1 .. 3600 (10)\n"
		   "  -o allow_other, ro, and what else mount.fuse3(8) has\n",
		PVFS_CHANNELS_MAX);
}

/* ---- signals ---- */

static struct fuse_session *session;
static char mount_point[PATH_MAX];

/* Some call still waits for a server. What is open is told of by the end of this process. */
static void on_alarm(int sig)
{
	/* Who is not root has mounted by fusermount3, and needs it for the end, too. */
	if (umount2(mount_point, MNT_DETACH) && !_Fork()) {
		execlp("fusermount3", "fusermount3", "-uqz", "--", mount_point, NULL);
		_exit(127);
	}
	_exit(EXIT_FAILURE);
}

static void on_end(int sig)
{
	fuse_session_exit(session);
	alarm(END_SECONDS);
}

static void on_hup(int sig)
{
	pvfs_log_reopen();	/* when it fails, the old file is written on */
}

/* Without SA_RESTART: the loop looks whether it is to end when a signal has come. */
static int take_signals(struct fuse_session *se, const char *dir)
{
	struct sigaction sa = { .sa_handler = on_end };

	session = se;
	if (!realpath(dir, mount_point))
		return -errno;
	if (sigaction(SIGTERM, &sa, NULL) || sigaction(SIGINT, &sa, NULL))
		return -errno;
	sa.sa_handler = on_alarm;
	if (sigaction(SIGALRM, &sa, NULL))
		return -errno;
	sa.sa_handler = on_hup;
	sa.sa_flags = SA_RESTART;
	if (sigaction(SIGHUP, &sa, NULL))
		return -errno;
	return signal(SIGPIPE, SIG_IGN) == SIG_ERR ? -errno : 0;
}

/* "host:port:/volume" into manager and volume. */
static int parse_source(char *source, char **mgr, char **volume)
{
	char *at = strstr(source, ":/");

	if (!at || at == source || !at[2] || strchr(at + 2, '/'))
		return -EINVAL;
	*at = '\0';
	*mgr = source;
	*volume = at + 2;
	return 0;
}

/* @text: NULL leaves what there is. Bounds and words are those of mount.pvfs. */
static bool option_number(const char *name, const char *text, unsigned long max, unsigned long *ret)
{
	char *end;

	if (!text)
		return true;
	errno = 0;
	*ret = strtoul(text, &end, 10);
	if (isdigit((unsigned char)*text) && !*end && !errno && *ret && *ret <= max)
		return true;
	fprintf(stderr, "pvfsd: option '%s' takes a number of 1 .. %lu, not '%s'\n", name, max, text);
	return false;
}

static bool options_right(const struct options *o, struct numbers *n)
{
	if (!option_number("timeo", o->timeo, 36000, &n->timeo) ||
	    !option_number("nconnect", o->nconnect, PVFS_CHANNELS_MAX, &n->nconnect) ||
	    !option_number("mount_timeout", o->mount_timeout, 3600, &n->mount_timeout))
		return false;
	if (o->timeo && !o->soft)
		fprintf(stderr, "pvfsd: option 'timeo' goes with 'soft': a hard mount waits as long as a server is away\n");
	else if (o->key && !*o->key)
		fprintf(stderr, "pvfsd: option 'key' takes the name of a file\n");
	else
		return true;
	return false;
}

static int mount_volume(const struct options *o, const struct numbers *n, char *mgr, char *volume)
{
	struct pvfs_mount_opts opts = PVFS_MOUNT_OPTS_INIT;
	struct pvfs_volinfo vol;
	char why[512] = "";
	int err;

	opts.mgr = mgr;
	opts.volume = volume;
	opts.key_file = o->key;
	opts.nconnect = n->nconnect;
	opts.soft = o->soft;
	opts.timeo_ms = n->timeo * 100;
	opts.mount_timeout_ms = n->mount_timeout * 1000;
	err = pvfs_mount(&opts, &fs, why, sizeof(why));
	if (err) {
		fprintf(stderr, "pvfsd: volume %s of %s: %s\n", volume, mgr, *why ? why : strerror(-err));
		return err;
	}
	err = pvfs_volinfo(fs, &vol);
	root = vol.root;
	return err;
}

/*
 * Into the background, where all the rest is done: a child may not use what its parent has opened. The
 * parent ends when the volume is mounted, or with what is said by then. Who ends it before does not
 * want the mount any more: the child ends with it.
 *
 * Return: where to tell the parent, or -1.
 */
static int background(void)
{
	char status = EXIT_FAILURE;
	int p[2];
	pid_t pid, parent = getpid();

	if (pipe2(p, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid < 0)
		return -1;
	if (!pid) {
		close(p[0]);
		setsid();
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
			_exit(EXIT_FAILURE);
		return p[1];
	}
	close(p[1]);
	if (read(p[0], &status, 1) != 1)
		status = EXIT_FAILURE;
	_exit(status);
}

/*
 * Ends the parent with @status; with 0 this process goes on, in the background.
 *
 * Return: false when there is no parent any more, who wanted to know.
 */
static bool tell_parent(int fd, char status)
{
	bool told;
	int null;

	if (fd < 0)
		return true;
	if (!status) {
		null = open("/dev/null", O_RDWR);
		if (chdir("/") || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
			status = EXIT_FAILURE;
		if (null > 2)
			close(null);
	}
	told = write(fd, &status, 1) == 1;
	close(fd);
	return told;
}

/* Messages go to a file, to standard error, or, when there is none any more, to syslog. */
static int open_log(const char *file, int verbose, int foreground)
{
	enum pvfs_log_level level = verbose ? PVFS_LOG_DEBUG : PVFS_LOG_INFO;
	int err = 0;

	if (file || foreground)
		err = pvfs_log_init("pvfsd", level, file);
	else
		pvfs_log_to_syslog("pvfsd", level);
	if (err)
		fprintf(stderr, "pvfsd: %s: %s\n", file, strerror(-err));
	return err;
}

struct command_line {
	struct fuse_args args;		/* for libfuse */
	const char *log;
	int foreground, verbose;
};

/* Return: -1 to go on, else the exit status. */
static int parse(int argc, char **argv, struct command_line *l)
{
	static const struct option longs[] = {
		{ "foreground", no_argument, NULL, 'f' }, { "log", required_argument, NULL, 'l' },
		{ "verbose", no_argument, NULL, 'v' }, { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' }, { NULL, 0, NULL, 0 },
	};
	int c;

	fuse_opt_add_arg(&l->args, "pvfsd");
	while ((c = getopt_long(argc, argv, "fo:l:vhV", longs, NULL)) != -1) {
		switch (c) {
		case 'f':
			l->foreground = 1;
			break;
		case 'o':
			fuse_opt_add_arg(&l->args, "-o");
			fuse_opt_add_arg(&l->args, optarg);
			break;
		case 'l':
			l->log = optarg;
			break;
		case 'v':
			l->verbose = 1;
			break;
		case 'h':
			usage(stdout);
			return 0;
		case 'V':
			printf("pvfsd %s (protocol %u)\n", PVFS_VERSION, PVFS_PROTO_VERSION);
			return 0;
		default:
			fputs("Try 'pvfsd --help'.\n", stderr);
			return 2;
		}
	}
	if (argc - optind != 2) {
		fprintf(stderr, "pvfsd: HOST[:PORT]:/VOLUME and DIRECTORY are needed\n"
			"Try 'pvfsd --help'.\n");
		return 2;
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct command_line l = { .args = FUSE_ARGS_INIT(0, NULL) };
	struct fuse_loop_config *config = NULL;
	struct fuse_session *se = NULL;
	struct options o = { 0 };
	struct numbers n = { 0 };
	char *mgr, *volume, *source = NULL, named[600];
	struct stat st;
	int parent = -1, rc = parse(argc, argv, &l);

	if (rc >= 0)
		goto out_args;
	rc = 2;
	source = strdup(argv[optind]);
	if (!source || parse_source(source, &mgr, &volume)) {
		fprintf(stderr, "pvfsd: '%s' is no host[:port]:/volume\n", argv[optind]);
		goto out_args;
	}
	snprintf(named, sizeof(named), "-ofsname=%s,subtype=pvfs,default_permissions", argv[optind]);
	fuse_opt_add_arg(&l.args, named);
	if (fuse_opt_parse(&l.args, &o, option_list, other_option) || !options_right(&o, &n))
		goto out_args;
	rc = EXIT_FAILURE;
	/* The kernel would mount on a file, too, and hide it. */
	if (!stat(argv[optind + 1], &st) && !S_ISDIR(st.st_mode)) {
		fprintf(stderr, "pvfsd: %s: %s\n", argv[optind + 1], strerror(ENOTDIR));
		goto out_args;
	}
	if (!l.foreground) {
		parent = background();
		if (parent < 0) {
			perror("pvfsd");
			goto out_args;
		}
	}
	if (open_log(l.log, l.verbose, l.foreground))
		goto out_args;
	se = fuse_session_new(&l.args, &ops, sizeof(ops), NULL);
	if (!se) {
		/* An option that nobody knows: libfuse has said so. */
		rc = 2;
		tell_parent(parent, rc);
		goto out_args;
	}
	if (mount_volume(&o, &n, mgr, volume))
		goto out;
	if (take_signals(se, argv[optind + 1]) || ask_start()) {
		fprintf(stderr, "pvfsd: %s: %s\n", argv[optind + 1], strerror(errno));
		goto out_volume;
	}
	/* From here on there is something to undo: whether the parent lives is seen when it is told. */
	prctl(PR_SET_PDEATHSIG, 0);
	/* Not as it was given: it is unmounted by that name, from another directory. */
	if (fuse_session_mount(se, mount_point))
		goto out_volume;
	if (!tell_parent(parent, 0)) {
		fuse_session_unmount(se);
		goto out_volume;
	}
	pvfs_info("%s: mounted on %s", argv[optind], mount_point);
	config = fuse_loop_cfg_create();
	if (config)
		/* A daemon that is away holds up those who need it, and not all others. */
		fuse_loop_cfg_set_max_threads(config, THREADS_MAX);
	if (config)
		rc = fuse_session_loop_mt(se, config) ? EXIT_FAILURE : 0;
	pvfs_info("%s: no longer mounted on %s", argv[optind], mount_point);
	fuse_session_unmount(se);
out_volume:
	/* What is still open (umount -f, a signal) may be waited for by threads of ours. */
	if (pvfs_umount(fs) == -EBUSY)
		_exit(rc);
out:
	if (config)
		fuse_loop_cfg_destroy(config);
	fuse_session_destroy(se);
out_args:
	fuse_opt_free_args(&l.args);
	free(o.key);
	free(o.timeo);
	free(o.nconnect);
	free(o.mount_timeout);
	free(source);
	return rc;
}
