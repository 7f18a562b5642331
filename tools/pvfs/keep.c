// SPDX-License-Identifier: GPL-2.0
/*
 * keep.c - what `pvfs cp -p` keeps of a file besides its bytes: owner, extended attributes, ACLs,
 * mode and times.
 *
 * What only root may set (owners, trusted.* and security.*) is root's to keep: others' copies are
 * theirs, without set-id bits that were meant for somebody else. All else that can't be kept is a
 * failure, one line for each.
 */
#include "cp.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ACL_ACCESS "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"

/* A file, followed unless it is a symbolic link itself. */
struct thing {
	struct end e;
	const char *path;
	bool link;
};

struct names {
	ssize_t n;			/* bytes of list */
	char list[PVFS_XATTR_LIST_MAX];	/* a NUL behind each */
	char value[PVFS_XATTR_VALUE_MAX];	/* room for one's value */
};

static ssize_t neg(ssize_t r)
{
	return r < 0 ? -errno : r;
}

static int list_names(const struct thing *t, struct names *ret)
{
	if (t->e.fs)
		ret->n = (t->link ? pvfs_llistxattr : pvfs_listxattr)(t->e.fs, t->path, ret->list,
								      sizeof(ret->list));
	else
		ret->n = neg((t->link ? llistxattr : listxattr)(t->path, ret->list,
								sizeof(ret->list)));
	/* Not to have any is not a failure. */
	if (ret->n == -EOPNOTSUPP)
		ret->n = 0;
	return ret->n < 0 ? ret->n : 0;
}

static ssize_t get(const struct thing *t, const char *name, void *value, size_t size)
{
	if (t->e.fs)
		return (t->link ? pvfs_lgetxattr : pvfs_getxattr)(t->e.fs, t->path, name, value,
								  size);
	return neg((t->link ? lgetxattr : getxattr)(t->path, name, value, size));
}

static int set(const struct thing *t, const char *name, const void *value, size_t size)
{
	if (t->e.fs)
		return (t->link ? pvfs_lsetxattr : pvfs_setxattr)(t->e.fs, t->path, name, value,
								  size, 0);
	return neg((t->link ? lsetxattr : setxattr)(t->path, name, value, size, 0));
}

static int drop(const struct thing *t, const char *name)
{
	if (t->e.fs)
		return (t->link ? pvfs_lremovexattr : pvfs_removexattr)(t->e.fs, t->path, name);
	return neg((t->link ? lremovexattr : removexattr)(t->path, name));
}

static bool has(const struct names *names, const char *name)
{
	const char *p;

	for (p = names->list; p < names->list + names->n; p += strlen(p) + 1)
		if (!strcmp(p, name))
			return true;
	return false;
}

static bool is_acl(const char *name)
{
	return !strcmp(name, ACL_ACCESS) || !strcmp(name, ACL_DEFAULT);
}

static bool not_kept(const struct thing *to, const char *name, int err)
{
	if (is_acl(name))
		name = strcmp(name, ACL_ACCESS) ? "default ACL" : "ACL";
	fail("%s: %s%s not kept: %s", to->path, strchr(name, '.') ? "attribute " : "", name,
	     strerror(-err));
	return false;
}

/* The ACLs, or the others. Return: were all kept? */
static bool keep_names(const struct thing *from, struct names *names, const struct thing *to,
		       bool acls)
{
	const char *p;
	bool all = true;
	ssize_t n;

	for (p = names->list; p < names->list + names->n; p += strlen(p) + 1) {
		if (is_acl(p) != acls)
			continue;
		if (geteuid() && (!strncmp(p, "trusted.", 8) || !strncmp(p, "security.", 9)))
			continue;
		n = get(from, p, names->value, sizeof(names->value));
		if (n == -ENODATA)
			continue;	/* gone meanwhile */
		if (n >= 0)
			n = set(to, p, names->value, n);
		if (n < 0)
			all = not_kept(to, p, n);
	}
	return all;
}

/* ACLs are permissions: what the copy has inherited from its directory goes. */
static bool drop_acls(const struct names *names, const struct thing *to)
{
	static const char *const acls[] = { ACL_ACCESS, ACL_DEFAULT };
	struct names *is = malloc(sizeof(*is));
	int err = is ? list_names(to, is) : -ENOMEM;
	size_t i;

	for (i = 0; !err && i < ARRAY_SIZE(acls); i++)
		if (has(is, acls[i]) && !has(names, acls[i]))
			err = drop(to, acls[i]);
	free(is);
	return !err || not_kept(to, ACL_ACCESS, err);
}

static bool keep_attributes(const struct thing *from, const struct thing *to)
{
	struct names *names = malloc(sizeof(*names));
	int err = names ? list_names(from, names) : -ENOMEM;
	bool all;

	if (err) {
		free(names);
		return not_kept(to, "attributes", err);
	}
	all = keep_names(from, names, to, false);
	all &= drop_acls(names, to);
	/* They change the mode, which comes after them. */
	all &= keep_names(from, names, to, true);
	free(names);
	return all;
}

static int set_owner(const struct thing *t, const struct stat *st)
{
	if (t->e.fs)
		return (t->link ? pvfs_lchown : pvfs_chown)(t->e.fs, t->path, st->st_uid,
							    st->st_gid);
	return neg((t->link ? lchown : chown)(t->path, st->st_uid, st->st_gid));
}

static int set_times(const struct thing *t, const struct timespec ts[2])
{
	if (t->e.fs)
		return (t->link ? pvfs_lutimens : pvfs_utimens)(t->e.fs, t->path, ts);
	return neg(utimensat(AT_FDCWD, t->path, ts, t->link ? AT_SYMLINK_NOFOLLOW : 0));
}

/**
 * keep_all - give a copy what its original has
 * @from: the original in @s, @st says what it is
 * @to: the copy in @d, complete and closed
 *
 * Return: was all kept? What was not has been said.
 */
bool keep_all(struct end s, const char *from, const struct stat *st, struct end d, const char *to)
{
	struct thing a = { s, from, S_ISLNK(st->st_mode) }, b = { d, to, S_ISLNK(st->st_mode) };
	const struct timespec ts[2] = { st->st_atim, st->st_mtim };
	bool mine = st->st_uid == geteuid() && st->st_gid == getegid(), all = true;
	int err;

	if (!geteuid()) {
		err = set_owner(&b, st);
		mine = !err;
		all = mine || not_kept(&b, "owner", err);
	}
	all &= keep_attributes(&a, &b);
	if (!b.link) {
		err = end_chmod(d, to, st->st_mode & (mine ? 07777 : 01777));
		all &= !err || not_kept(&b, "mode", err);
	}
	err = set_times(&b, ts);
	return (!err || not_kept(&b, "times", err)) && all;
}
