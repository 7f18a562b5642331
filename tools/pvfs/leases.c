// SPDX-License-Identifier: GPL-2.0
/*
 * leases.c - `pvfs leases`: who has a lease on a file or directory, or has it open, as the manager
 * sees it. Of paths on a mount too: their volume is asked what it is by its own name for them.
 */
#include "tool.h"
#include <libmount/libmount.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIMIT_DEFAULT 1000u

/* ---------------------------------------------------------------- paths on mounts */

/* A path that is looked at up to its last component only: that would have its client ask for it. */
static char *real_path(const char *path)
{
	char *copy = strdup(path), *slash, *dir, *name, *ret = NULL;
	size_t n = strlen(path);

	if (!copy)
		return NULL;
	while (n > 1 && copy[n - 1] == '/')
		copy[--n] = '\0';
	slash = strrchr(copy, '/');
	name = slash ? slash + 1 : copy;
	if (!*name || !strcmp(name, ".") || !strcmp(name, "..")) {
		ret = realpath(copy, NULL);
		free(copy);
		return ret;
	}
	if (slash)
		*slash = '\0';
	dir = realpath(slash == copy ? "/" : slash ? copy : ".", NULL);
	if (dir && asprintf(&ret, "%s/%s", dir[1] ? dir : "", name) < 0)
		ret = NULL;
	free(dir);
	free(copy);
	return ret;
}

/* What of @path is below the directory @dir, which it is in. */
static const char *below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return path + (dir[n - 1] == '/' ? n - 1 : n);
}

/**
 * mount_of - what a path on a mounted volume is there
 * @arg: from the command line
 * @ret_source: what is mounted there, "host[:port]:/volume"
 * @ret_path: the path in that volume; both owned by the caller
 *
 * Return: whether it is one: by the module, or by pvfsd.
 */
static bool mount_of(const char *arg, char **ret_source, char **ret_path)
{
	char *path = real_path(arg), *source = NULL, *inside = NULL;
	struct libmnt_table *t = path ? mnt_new_table_from_file("/proc/self/mountinfo") : NULL;
	/* Of those that are mounted on one another the last is what there is to be seen. */
	struct libmnt_fs *m = t ? mnt_table_find_mountpoint(t, path, MNT_ITER_BACKWARD) : NULL;
	const char *type = m ? mnt_fs_get_fstype(m) : NULL, *rest, *root;

	if (type && (!strcmp(type, "pvfs") || !strcmp(type, "fuse.pvfs"))) {
		rest = below(path, mnt_fs_get_target(m));
		root = mnt_fs_get_root(m);
		source = strdup(mnt_fs_get_source(m) ?: "");
		if (asprintf(&inside, "%s%s", root[1] ? root : "", *rest ? rest : "/") < 0)
			inside = NULL;
	}
	mnt_unref_table(t);
	free(path);
	if (!source || !inside) {
		free(source);
		free(inside);
		return false;
	}
	*ret_source = source;
	*ret_path = inside;
	return true;
}

/* ---------------------------------------------------------------- the volume */

/* The volume that is asked: the one of the options, or a mount's. */
struct asked {
	struct pvfs_fs *fs;
	char *source;		/* of the mount; NULL: of the options */
	bool chosen;		/* the options say which one */
};

static void asked_end(struct asked *a)
{
	if (a->fs)
		tool_disconnect(a->fs);
	a->fs = NULL;
	free(a->source);
	a->source = NULL;
}

/* Is the mount of the volume that the options mean? */
static int same_volume(const char *arg, const char *source)
{
	struct target t, mounted = { 0 };
	int rc = target_find(&t) ?: parse_mgr(source, &mounted);

	if (!rc && strcmp(t.volume, mounted.volume)) {
		fail("%s: is on a mount of volume '%s', and the options mean '%s'", arg, mounted.volume, t.volume);
		rc = -EXDEV;
	}
	target_free(&t);
	return rc;
}

/*
 * Connects to the volume of @source, or, where it is NULL, of the options. Return: 0, or -errno and
 * the user was told.
 */
static int asked_begin(struct asked *a, const char *arg, const char *source)
{
	const char *mgr = tool.mgr;
	int rc;

	if (source && a->chosen) {
		rc = same_volume(arg, source);
		if (rc)
			return rc;
		source = NULL;
	}
	if (a->fs && (source ? a->source && !strcmp(source, a->source) : !a->source))
		return 0;
	asked_end(a);
	if (source) {
		a->source = strdup(source);
		if (!a->source)
			return -ENOMEM;
		tool.mgr = a->source;
	}
	rc = tool_connect(&a->fs);
	tool.mgr = mgr;
	return rc;
}

/* ---------------------------------------------------------------- the table */

static const struct out_col cols[] = {
	{ "name", "NAME", OUT_TEXT },
	{ "session", "SESSION", OUT_NUMBER },
	{ "lease", "LEASE", OUT_TEXT },
	{ "lease_ms", "SECONDS", OUT_NUMBER },
	{ "readers", "READING", OUT_NUMBER },
	{ "writers", "WRITING", OUT_NUMBER },
	{ "turn", "TURN", OUT_TEXT },
	{ "recall", "RECALL", OUT_TEXT },
	{ "host", "HOST", OUT_TEXT },
};

static void add_row(struct out *o, const char *name, const struct pvfs_who *w)
{
	const char *lease = w->flags & PVFS_WHO_WRITE ? "WRITE" :
			    w->flags & PVFS_WHO_DRAFT ? "DRAFT" :
			    w->flags & PVFS_WHO_LEASE ? "READ" : "-";
	const char *turn = w->flags & PVFS_WHO_OUT ? "out" : w->readers || w->writers ? "in" : "-";
	char seconds[32] = "-";

	/* Others last: a file is mapped, or written. */
	if ((w->flags & PVFS_WHO_LEASE) && w->lease_ms)
		snprintf(seconds, sizeof(seconds), "%.1f", w->lease_ms / 1e3);
	out_row(o);
	out_name(o, 0, name);
	out_number(o, 1, w->session, NULL);
	out_text(o, 2, "%s", lease);
	out_number(o, 3, w->lease_ms, seconds);
	out_number(o, 4, w->readers, NULL);
	out_number(o, 5, w->writers, NULL);
	out_text(o, 6, "%s", turn);
	out_text(o, 7, "%s", w->flags & PVFS_WHO_RECALL ? "under way" : "-");
	out_name(o, 8, tool.json || *w->host ? w->host : "-");
}

static void say_why(const char *arg, int rc)
{
	if (rc == -EOPNOTSUPP)
		fail("%s: the manager is older than this command: it can't tell who holds what", arg);
	else
		fail_path(arg, rc);
}

/* Return: 0, or -errno and the user was told. */
static int leases_of(struct asked *a, struct out *o, const char *arg, unsigned long limit)
{
	char *source = NULL, *inside = NULL;
	struct pvfs_who_list l;
	size_t i;
	int rc;

	if (!remote_path(arg))
		mount_of(arg, &source, &inside);
	rc = asked_begin(a, arg, source);
	if (rc)
		goto out;
	rc = pvfs_who_holds(a->fs, inside ?: path_of(arg), limit, &l);
	if (rc) {
		say_why(arg, rc);
		goto out;
	}
	for (i = 0; i < l.n; i++)
		add_row(o, arg, &l.who[i]);
	if (!l.n)
		note("%s: nobody has a lease on it, and nobody has it open", arg);
	if (l.left)
		note("%s: and %llu more; -n 0 lists all", arg, (unsigned long long)l.left);
	if (l.flags & PVFS_WHO_GRACE)
		note("%s: the manager was restarted: there may be others that it has not heard of yet", arg);
	pvfs_who_free(&l);
out:
	free(source);
	free(inside);
	return rc;
}

int cmd_leases(int argc, char **argv)
{
	static const struct option longopts[] = { { "limit", required_argument, NULL, 'n' }, TOOL_LONG };
	unsigned long limit = LIMIT_DEFAULT;
	struct asked a = { 0 };
	int c, i, rc, failed = 0;
	struct out *o;

	while ((c = getopt_long(argc, argv, TOOL_SHORT "n:", longopts, NULL)) != -1) {
		if (c == 'n') {
			if (parse_number(optarg, 0, 1000000, &limit))
				return EXIT_USAGE;
			continue;
		}
		rc = tool_option(c);
		if (rc)
			return rc < 0 ? EXIT_USAGE : 0;
	}
	if (optind >= argc)
		return tool_usage("of what?");
	a.chosen = tool.mgr || tool.conf || getenv("PVFS_CONF");
	o = out_new("holders", cols, ARRAY_SIZE(cols));
	for (i = optind; i < argc; i++)
		failed |= !!leases_of(&a, o, argv[i], limit);
	out_print(o);
	asked_end(&a);
	return failed ? EXIT_FAILURE : 0;
}
