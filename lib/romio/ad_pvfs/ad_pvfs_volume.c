// SPDX-License-Identifier: LGPL-2.1
/*
 * ad_pvfs_volume.c - which volume a file name is of, and the volumes that this process has mounted.
 *
 * A process mounts a volume once, and lets it go in MPI_Finalize(): an attribute of MPI_COMM_SELF is
 * deleted there before anything else ends.
 */
#include "ad_pvfs.h"
#include <limits.h>
#include <mntent.h>
#include <pthread.h>

struct volume {
	struct volume *next;
	struct pvfs_fs *fs;
	char *mgr, *name;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct volume *volumes;		/* protected by it */
static int keyval = MPI_KEYVAL_INVALID;

static int finalize(MPI_Comm comm, int key, void *value, void *extra)
{
	struct volume *v;

	pthread_mutex_lock(&lock);
	while ((v = volumes) != NULL) {
		volumes = v->next;
		pvfs_umount(v->fs);	/* what is still open ends with the process */
		free(v->mgr);
		free(v->name);
		free(v);
	}
	pthread_mutex_unlock(&lock);
	MPI_Comm_free_keyval(&keyval);
	return MPI_SUCCESS;
}

/* PVFS_TIMEO, in milliseconds; 0: it is not set. Return: 0 or -EINVAL, with a line on stderr. */
static int timeo(unsigned int *ret)
{
	const char *s = getenv("PVFS_TIMEO");
	unsigned long v;
	char *end;

	*ret = 0;
	if (!s)
		return 0;
	errno = 0;
	v = strtoul(s, &end, 10);
	if (*s < '0' || *s > '9' || *end || errno || v < 1 || v > 36000) {
		fprintf(stderr, "pvfs: PVFS_TIMEO=%s: tenths of a second, 1 to 36000\n", s);
		return -EINVAL;
	}
	*ret = v * 100;
	return 0;
}

static int mount_volume(const char *mgr, const char *name, struct pvfs_fs **ret)
{
	struct pvfs_mount_opts opts = PVFS_MOUNT_OPTS_INIT;
	struct volume *v;
	char why[512] = "";
	int err = 0;

	pthread_mutex_lock(&lock);
	for (v = volumes; v; v = v->next)
		if (!strcmp(v->mgr, mgr) && !strcmp(v->name, name))
			goto found;
	opts.mgr = mgr;
	opts.volume = name;
	opts.key_file = getenv("PVFS_KEY");
	/* A daemon that is away for so long is an error, on all processes: they wait for each other. */
	opts.soft = 1;
	err = timeo(&opts.timeo_ms);
	if (err)
		goto out;
	v = calloc(1, sizeof(*v));
	err = v && (v->mgr = strdup(mgr)) && (v->name = strdup(name)) ?
	      pvfs_mount(&opts, &v->fs, why, sizeof(why)) : -ENOMEM;
	if (err) {
		fprintf(stderr, "pvfs: volume %s of %s: %s\n", name, mgr, *why ? why : strerror(-err));
		if (v) {
			free(v->mgr);
			free(v->name);
		}
		free(v);
		goto out;
	}
	v->next = volumes;
	volumes = v;
	if (keyval == MPI_KEYVAL_INVALID &&
	    !MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalize, &keyval, NULL))
		MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
found:
	*ret = v->fs;
out:
	pthread_mutex_unlock(&lock);
	return err;
}

/*
 * "host:port:/volume/path", taken apart: the manager and the volume into @mgr and @name of PATH_MAX
 * bytes. Return: the rest, which may be empty; NULL: it is nothing of the kind.
 */
static const char *split(const char *s, char *mgr, char *name)
{
	const char *colon = strstr(s, ":/"), *end;

	if (!colon || colon == s || memchr(s, '/', colon - s))
		return NULL;
	end = colon + 2 + strcspn(colon + 2, "/");
	if (end == colon + 2 || end - s >= PATH_MAX)
		return NULL;
	snprintf(mgr, PATH_MAX, "%.*s", (int)(colon - s), s);
	snprintf(name, PATH_MAX, "%.*s", (int)(end - colon - 2), colon + 2);
	return end;
}

/* The absolute path of @name without symbolic links in its directory; of malloc(), or NULL. */
static char *absolute(const char *name)
{
	const char *base = strrchr(name, '/');
	char *dir = base ? strndup(name, base == name ? 1 : base - name) : strdup("."), *real, *ret = NULL;

	real = dir ? realpath(dir, NULL) : NULL;
	base = base ? base + 1 : name;
	if (real && asprintf(&ret, "%s/%s", strcmp(real, "/") ? real : "", base) < 0)
		ret = NULL;
	free(dir);
	free(real);
	return ret;
}

/* The mount that @abs is below: its source into @source, and what is behind the mount point. */
static const char *find_mount(const char *abs, char *source, size_t room)
{
	const char *rest = NULL;
	struct mntent *m;
	size_t n, best = 0;
	FILE *f = setmntent("/proc/self/mounts", "r");

	while (f && (m = getmntent(f))) {
		n = strlen(m->mnt_dir);
		if (strncmp(abs, m->mnt_dir, n) || (abs[n] != '/' && abs[n] && n > 1) || n < best)
			continue;
		/* The last one that fits hides the others. */
		best = n;
		rest = NULL;
		if (strcmp(m->mnt_type, "pvfs") && strcmp(m->mnt_type, "fuse.pvfs"))
			continue;
		snprintf(source, room, "%s", m->mnt_fsname);
		rest = abs + (n > 1 ? n : 0);
	}
	if (f)
		endmntent(f);
	return rest;
}

int ADIOI_PVFS_Volume(const char *name, struct pvfs_fs **fs, char **path)
{
	char mgr[PATH_MAX], volume[PATH_MAX], source[PATH_MAX];
	const char *rest = split(name, mgr, volume), *below = "", *m = mgr, *v = volume;
	char *abs = NULL;
	int err;

	if (!rest && getenv("PVFS_MGR") && getenv("PVFS_VOLUME")) {
		m = getenv("PVFS_MGR");
		v = getenv("PVFS_VOLUME");
		rest = name;
	}
	if (!rest) {
		abs = absolute(name);
		below = abs ? find_mount(abs, source, sizeof(source)) : NULL;
		rest = below ? split(source, mgr, volume) : NULL;
		if (!rest) {
			fprintf(stderr, "pvfs: %s: not on a PVFS mount. Name the volume, host:/volume/path, or set "
				"PVFS_MGR and PVFS_VOLUME\n", name);
			free(abs);
			return -EINVAL;
		}
	}
	err = mount_volume(m, v, fs);
	if (!err && asprintf(path, "/%s%s", rest, below) < 0)
		err = -ENOMEM;
	free(abs);
	return err;
}
