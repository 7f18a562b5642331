// SPDX-License-Identifier: GPL-2.0
/*
 * main.c - pvfsd, a volume mounted from user space, by libfuse3 and libpvfs: for hosts that cannot
 * load the module. See pvfsd(8).
 */
#include "pvfsd.h"
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MAX 1000

struct pvfs_fs *fs;
struct pvfs_fh root;

struct options {
	char *key;
	unsigned int timeo, nconnect, mount_timeout;
	int soft;
};

static const struct fuse_opt option_list[] = {
	{ "key=%s", offsetof(struct options, key), 0 },
	{ "timeo=%u", offsetof(struct options, timeo), 0 },
	{ "nconnect=%u", offsetof(struct options, nconnect), 0 },
	{ "mount_timeout=%u", offsetof(struct options, mount_timeout), 0 },
	{ "soft", offsetof(struct options, soft), 1 },
	{ "hard", offsetof(struct options, soft), 0 },
	FUSE_OPT_END
};

static void usage(FILE *f)
{
	fprintf(f, "usage: pvfsd [-f] [-o options] host[:port]:/volume directory\n"
		   "  -f             stay in the foreground\n"
		   "  -o key=FILE    the cluster key (default /etc/pvfs/cluster.key)\n"
		   "  -o soft,timeo=DS  give up after so many tenths of a second\n"
		   "  -o nconnect=N  connections to each server\n"
		   "  -o mount_timeout=S  how many seconds the manager has to answer (10)\n"
		   "  -o allow_other, ro, and what else mount.fuse3(8) has\n");
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

static int mount_volume(const struct options *o, char *mgr, char *volume)
{
	struct pvfs_mount_opts opts = PVFS_MOUNT_OPTS_INIT;
	struct pvfs_volinfo vol;
	char why[512] = "";
	int err;

	opts.mgr = mgr;
	opts.volume = volume;
	opts.key_file = o->key;
	opts.nconnect = o->nconnect;
	opts.soft = o->soft;
	opts.timeo_ms = o->timeo * 100;
	opts.mount_timeout_ms = o->mount_timeout * 1000;
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
 * parent ends when the volume is mounted, or with what is said by then.
 *
 * Return: where to tell the parent, or -1.
 */
static int background(void)
{
	char status = EXIT_FAILURE;
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid < 0)
		return -1;
	if (!pid) {
		close(p[0]);
		setsid();
		return p[1];
	}
	close(p[1]);
	if (read(p[0], &status, 1) != 1)
		status = EXIT_FAILURE;
	_exit(status);
}

static void tell_parent(int fd)
{
	char status = 0;
	int null;

	if (fd < 0)
		return;
	null = open("/dev/null", O_RDWR);
	if (chdir("/") || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		status = EXIT_FAILURE;
	if (null > 2)
		close(null);
	if (write(fd, &status, 1) != 1)
		perror("pvfsd");
	close(fd);
}

int main(int argc, char **argv)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_loop_config *config = NULL;
	struct fuse_session *se = NULL;
	struct options o = { 0 };
	char *mgr, *volume, *source = NULL, named[600];
	int c, foreground = 0, parent = -1, rc = EXIT_FAILURE;

	fuse_opt_add_arg(&args, "pvfsd");
	while ((c = getopt(argc, argv, "fo:h")) != -1) {
		switch (c) {
		case 'f':
			foreground = 1;
			break;
		case 'o':
			fuse_opt_add_arg(&args, "-o");
			fuse_opt_add_arg(&args, optarg);
			break;
		case 'h':
			usage(stdout);
			rc = 0;
			goto out_args;
		default:
			usage(stderr);
			rc = 2;
			goto out_args;
		}
	}
	rc = 2;
	if (argc - optind != 2) {
		usage(stderr);
		goto out_args;
	}
	source = strdup(argv[optind]);
	if (!source || parse_source(source, &mgr, &volume)) {
		fprintf(stderr, "pvfsd: '%s' is no host[:port]:/volume\n", argv[optind]);
		goto out_args;
	}
	snprintf(named, sizeof(named), "-ofsname=%s,subtype=pvfs,default_permissions", argv[optind]);
	fuse_opt_add_arg(&args, named);
	if (fuse_opt_parse(&args, &o, option_list, NULL))
		goto out_args;
	rc = EXIT_FAILURE;
	if (!foreground) {
		parent = background();
		if (parent < 0) {
			perror("pvfsd");
			goto out_args;
		}
	}
	se = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	if (!se)
		goto out_args;
	if (mount_volume(&o, mgr, volume) || fuse_set_signal_handlers(se))
		goto out;
	if (fuse_session_mount(se, argv[optind + 1]))
		goto out_volume;
	tell_parent(parent);
	config = fuse_loop_cfg_create();
	if (config)
		/* A daemon that is away holds up those who need it, and not all others. */
		fuse_loop_cfg_set_max_threads(config, THREADS_MAX);
	if (config)
		rc = fuse_session_loop_mt(se, config) ? EXIT_FAILURE : 0;
	fuse_session_unmount(se);
out_volume:
	fuse_remove_signal_handlers(se);
	/* What is still open (umount -f, a signal) may be waited for by threads of ours. */
	if (pvfs_umount(fs) == -EBUSY)
		_exit(rc);
out:
	if (config)
		fuse_loop_cfg_destroy(config);
	fuse_session_destroy(se);
out_args:
	fuse_opt_free_args(&args);
	free(o.key);
	free(source);
	return rc;
}
