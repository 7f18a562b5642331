// SPDX-License-Identifier: GPL-2.0-only
/*
 * xattr.c - extended attributes: names, sizes, flags, name spaces, on every type of file, by path,
 * link and descriptor.
 */
#include "conform.h"
#include <linux/limits.h>
#include <sys/xattr.h>

static const struct {
	const char *name;
	ssize_t (*get)(const char *path, const char *name, void *value, size_t size);
	int (*set)(const char *path, const char *name, const void *value, size_t size, int flags);
	int (*remove)(const char *path, const char *name);
	ssize_t (*list)(const char *path, char *list, size_t size);
} *way;

static ssize_t f_get(const char *path, const char *name, void *value, size_t size)
{
	int h = fs->open(path, O_RDONLY, 0), r;

	if (h < 0)
		return h;
	r = fs->fgetxattr(h, name, value, size);
	fs->close(h);
	return r;
}

static int f_set(const char *path, const char *name, const void *value, size_t size, int flags)
{
	int h = fs->open(path, O_RDONLY, 0), r;

	if (h < 0)
		return h;
	r = fs->fsetxattr(h, name, value, size, flags);
	fs->close(h);
	return r;
}

static int f_remove(const char *path, const char *name)
{
	int h = fs->open(path, O_RDONLY, 0), r;

	if (h < 0)
		return h;
	r = fs->fremovexattr(h, name);
	fs->close(h);
	return r;
}

static ssize_t f_list(const char *path, char *list, size_t size)
{
	int h = fs->open(path, O_RDONLY, 0), r;

	if (h < 0)
		return h;
	r = fs->flistxattr(h, list, size);
	fs->close(h);
	return r;
}

/* Is @name in the list of @path? */
static bool listed(const char *path, const char *name)
{
	char list[65536];
	ssize_t n = way->list(path, list, sizeof(list)), at;

	OK(n);
	for (at = 0; at < n; at += strlen(list + at) + 1)
		if (!strcmp(list + at, name))
			return true;
	return false;
}

static void values(void)
{
	static const size_t sizes[] = { 0, 1, 2, 7, 64, 255, 256, 1000, 2000, 3000 };
	char in[4096], out[4096];
	size_t i, k;

	for (i = 0; i < sizeof(in); i++)
		in[i] = i * 31 + 1;
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t n = sizes[i];

		if (row("xattr/%s: a value of %zu bytes comes back", way->name, n)) {
			OK(way->set("f", "user.v", in, n, 0));
			EQ(way->get("f", "user.v", out, sizeof(out)), n);
			WANT(!memcmp(in, out, n));
			EQ(way->get("f", "user.v", out, n), n);
			EQ(way->get("f", "user.v", NULL, 0), n);
			WANT(listed("f", "user.v"));
		}
		if (n > 1 && row("xattr/%s: a buffer too small for %zu bytes: ERANGE", way->name, n)) {
			memset(out, '!', sizeof(out));
			GIVES(way->get("f", "user.v", out, n - 1), ERANGE);
			GIVES(way->get("f", "user.v", out, 1), ERANGE);
		}
		for (k = 0; k < 2; k++) {
			size_t other = sizes[(i + 3 + 2 * k) % ARRAY_SIZE(sizes)];

			if (!row("xattr/%s: %zu bytes replaced by %zu", way->name, n, other))
				continue;
			OK(way->set("f", "user.v", in, n, 0));
			OK(way->set("f", "user.v", in + 5, other, 0));
			EQ(way->get("f", "user.v", out, sizeof(out)), other);
			WANT(!memcmp(in + 5, out, other));
		}
		if (row("xattr/%s: removed, %zu bytes", way->name, n)) {
			OK(way->set("f", "user.v", in, n, 0));
			OK(way->remove("f", "user.v"));
			GIVES(way->get("f", "user.v", out, 10), ENODATA);
			GIVES(way->remove("f", "user.v"), ENODATA);
			WANT(!listed("f", "user.v"));
		}
	}
}

static void flags(void)
{
	struct snap snap;
	char c[8];

	if (row("xattr/%s: XATTR_CREATE makes it", way->name)) {
		OK(way->set("f", "user.c", "one", 3, XATTR_CREATE));
		EQ(way->get("f", "user.c", c, 8), 3);
	}
	if (row("xattr/%s: XATTR_CREATE of one that is there: EEXIST", way->name)) {
		snap_take(&snap, "f", NULL);
		GIVES(way->set("f", "user.c", "no", 2, XATTR_CREATE), EEXIST);
		SAME(&snap);
		EQ(way->get("f", "user.c", c, 8), 3);
	}
	if (row("xattr/%s: XATTR_REPLACE replaces it", way->name)) {
		OK(way->set("f", "user.c", "three", 5, XATTR_REPLACE));
		EQ(way->get("f", "user.c", c, 8), 5);
		WANT(!memcmp(c, "three", 5));
	}
	if (row("xattr/%s: XATTR_REPLACE of one that is not there: ENODATA", way->name)) {
		snap_take(&snap, "f", NULL);
		GIVES(way->set("f", "user.none", "x", 1, XATTR_REPLACE), ENODATA);
		SAME(&snap);
		GIVES(way->get("f", "user.none", c, 8), ENODATA);
	}
	if (row("xattr/%s: unknown flags: EINVAL", way->name)) {
		snap_take(&snap, "f", NULL);
		GIVES(way->set("f", "user.c", "x", 1, 4), EINVAL);
		GIVES(way->set("f", "user.none", "x", 1, 0x100), EINVAL);
		SAME(&snap);
	}
	if (row("xattr/%s: both flags fail, whichever", way->name)) {
		GIVES(way->set("f", "user.none", "x", 1, XATTR_CREATE | XATTR_REPLACE), ENODATA);
		GIVES(way->set("f", "user.c", "x", 1, XATTR_CREATE | XATTR_REPLACE), EEXIST);
	}
	if (row("xattr/%s: and it is removed", way->name))
		OK(way->remove("f", "user.c"));
}

static void names_of(void)
{
	static char big[XATTR_SIZE_MAX + 1];
	static const struct { const char *name, *attr; int err; } t[] = {
		{ "no name", "", ERANGE }, { "no name space", "colour", EOPNOTSUPP },
		{ "an unknown name space", "nosuch.colour", EOPNOTSUPP }, { "only a dot", ".", EOPNOTSUPP },
		{ "user without a name", "user.", EINVAL }, { "trusted without a name", "trusted.", EINVAL },
		{ "user without a dot", "user", EOPNOTSUPP }, { "a name space in capitals", "USER.x", EOPNOTSUPP },
		{ "an unknown one of system", "system.nosuch", EOPNOTSUPP },
	};
	char name[300], c[16];
	struct snap snap;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		if (row("xattr/%s: set, %s: %s", way->name, t[i].name, err_name(t[i].err))) {
			snap_take(&snap, "f", NULL);
			GIVES(way->set("f", t[i].attr, "x", 1, 0), t[i].err);
			SAME(&snap);
		}
		if (row("xattr/%s: get, %s: %s", way->name, t[i].name, err_name(t[i].err)))
			GIVES(way->get("f", t[i].attr, c, 16), t[i].err);
		if (row("xattr/%s: remove, %s: %s", way->name, t[i].name, err_name(t[i].err))) {
			snap_take(&snap, "f", NULL);
			GIVES(way->remove("f", t[i].attr), t[i].err);
			SAME(&snap);
		}
	}
	memset(name, 'n', sizeof(name));
	memcpy(name, "user.", 5);
	for (i = 250; i <= 257; i++) {
		name[i] = 0;
		if (row("xattr/%s: a name of %zu bytes: %s", way->name, i, i > 255 ? "ERANGE" : "0")) {
			GIVES(way->set("f", name, "x", 1, 0), i > 255 ? ERANGE : 0);
			GIVES(way->get("f", name, c, 16), i > 255 ? ERANGE : 0);
			if (i <= 255)
				WANT(listed("f", name));
			GIVES(way->remove("f", name), i > 255 ? ERANGE : 0);
		}
		name[i] = 'n';
	}
	if (row("xattr/%s: a value of 64 KiB and one: E2BIG", way->name)) {
		snap_take(&snap, "f", NULL);
		GIVES(way->set("f", "user.big", big, XATTR_SIZE_MAX + 1, 0), E2BIG);
		SAME(&snap);
	}
	if (row("xattr/%s: a value of 64 KiB is kept, or there is no room: ENOSPC", way->name)) {
		ssize_t r = way->set("f", "user.big", big, XATTR_SIZE_MAX, 0);

		if (r != -ENOSPC) {
			OK(r);
			EQ(way->get("f", "user.big", NULL, 0), XATTR_SIZE_MAX);
			OK(way->remove("f", "user.big"));
		}
	}
	if (row("xattr/%s: odd bytes in names", way->name)) {
		OK(way->set("f", "user.a b\n\377.x=y", "x", 1, 0));
		EQ(way->get("f", "user.a b\n\377.x=y", c, 16), 1);
		WANT(listed("f", "user.a b\n\377.x=y"));
		OK(way->remove("f", "user.a b\n\377.x=y"));
	}
	if (row("xattr/%s: 40 attributes and their list", way->name)) {
		char list[4096];
		ssize_t n, total = way->list("f", NULL, 0);

		OK(total);
		for (i = 0; i < 40; i++) {
			snprintf(name, sizeof(name), "user.number%02zu", i);
			OK(way->set("f", name, name, 10, 0));
		}
		n = way->list("f", NULL, 0);
		EQ(n, total + 40 * 14);
		EQ(way->list("f", list, n), n);
		GIVES(way->list("f", list, n - 1), ERANGE);
		GIVES(way->list("f", list, 1), ERANGE);
		WANT(listed("f", "user.number39"));
		for (i = 0; i < 40; i++) {
			snprintf(name, sizeof(name), "user.number%02zu", i);
			OK(way->remove("f", name));
		}
		EQ(way->list("f", NULL, 0), total);
	}
	if (row("xattr/%s: of nothing: ENOENT", way->name)) {
		GIVES(way->get("nothing", "user.a", c, 8), ENOENT);
		GIVES(way->set("nothing", "user.a", c, 8, 0), ENOENT);
		GIVES(way->remove("nothing", "user.a"), ENOENT);
		GIVES(way->list("nothing", c, 8), ENOENT);
	}
}

/*
 * user.* is of files and directories, by their permissions; trusted.* is root's, who has it on all.
 */
static void spaces(void)
{
	static const enum type types[] = { T_FILE, T_DIR, T_SYMFILE, T_DANGLING, T_FIFO, T_SOCK, T_CHR, T_BLK };
	static const struct { const char *name; bool user; } space[] = {
		{ "user.x", true }, { "trusted.x", false }, { "security.x", false },
	};
	size_t t, s;
	char c[8];

	if (live())
		make_targets(".");
	for (t = 0; t < ARRAY_SIZE(types); t++) {
		bool plain = types[t] == T_FILE || types[t] == T_DIR;

		if (live())
			make("x", types[t]);
		for (s = 0; s < ARRAY_SIZE(space); s++) {
			int err = space[s].user && !plain ? EPERM : 0;

			if (row("xattr-types/%s of a %s: %s", space[s].name, type_name[types[t]], err_name(err))) {
				struct snap snap;

				snap_take(&snap, "x", NULL);
				GIVES(fs->lsetxattr("x", space[s].name, "v", 1, 0), err);
				if (err)
					SAME(&snap);
			}
			if (row("xattr-types/%s of a %s read: %s", space[s].name, type_name[types[t]],
				err ? "ENODATA" : "0"))
				GIVES(fs->lgetxattr("x", space[s].name, c, 8), err ? ENODATA : 0);
			if (row("xattr-types/%s of a %s removed: %s", space[s].name, type_name[types[t]],
				err_name(err)))
				GIVES(fs->lremovexattr("x", space[s].name), err);
		}
		if (row("xattr-types/list of a %s", type_name[types[t]]))
			OK(fs->llistxattr("x", c, sizeof(c)) == -ERANGE ? 0 : fs->llistxattr("x", NULL, 0));
		if (live())
			wipe("x");
	}
	if (row("xattr-types/trusted is not listed to others")) {
		char list[4096] = "";
		ssize_t n, at;

		make("x", T_FILE);
		OK(fs->setxattr("x", "trusted.secret", "v", 1, 0));
		OK(fs->setxattr("x", "user.open", "v", 1, 0));
		be(&OTHER);
		n = fs->listxattr("x", list, sizeof(list));
		be(&ROOT);
		OK(n);
		for (at = 0; at < n; at += strlen(list + at) + 1)
			WANT(strcmp(list + at, "trusted.secret"));
		be(&OTHER);
		GIVES(fs->getxattr("x", "trusted.secret", c, 8), ENODATA);
		GIVES(fs->setxattr("x", "trusted.secret", c, 8, 0), EPERM);
		GIVES(fs->removexattr("x", "trusted.secret"), EPERM);
		be(&ROOT);
		EQ(fs->getxattr("x", "trusted.secret", c, 8), 1);
		wipe("x");
	}
	if (row("xattr-types/user of another's sticky directory: EPERM")) {
		OK(fs->mkdir("sticky", 01777));
		OK(fs->chown("sticky", OWNER.uid, OWNER.gid));
		be(&OTHER);
		GIVES(fs->setxattr("sticky", "user.a", "b", 1, 0), EPERM);
		be(&OWNER);
		OK(fs->setxattr("sticky", "user.a", "b", 1, 0));
		be(&ROOT);
	}
	if (row("xattr-types/by a link is the file's, of a link its own")) {
		make("x", T_FILE);
		OK(fs->symlink("x", "l"));
		OK(fs->setxattr("l", "trusted.t", "file", 4, 0));
		GIVES(fs->lgetxattr("l", "trusted.t", c, 8), ENODATA);
		OK(fs->lsetxattr("l", "trusted.t", "li", 2, 0));
		EQ(fs->getxattr("x", "trusted.t", c, 8), 4);
		EQ(fs->lgetxattr("l", "trusted.t", c, 8), 2);
	}
	if (row("xattr-types/they stay through rename and link, and go with the file")) {
		OK(fs->setxattr("x", "user.stay", "s", 1, 0));
		OK(fs->rename("x", "y", 0));
		EQ(fs->getxattr("y", "user.stay", c, 8), 1);
		OK(fs->link("y", "z"));
		EQ(fs->getxattr("z", "user.stay", c, 8), 1);
		wipe("y");
		EQ(fs->getxattr("z", "user.stay", c, 8), 1);
		wipe("z");
		make("z", T_FILE);
		GIVES(fs->getxattr("z", "user.stay", c, 8), ENODATA);
	}
}

static void all_ways(void)
{
	__typeof__(*way) ways[] = {
		{ "path", fs->getxattr, fs->setxattr, fs->removexattr, fs->listxattr },
		{ "nofollow", fs->lgetxattr, fs->lsetxattr, fs->lremovexattr, fs->llistxattr },
		{ "descriptor", f_get, f_set, f_remove, f_list },
	};
	size_t i;

	if (live())
		make_file("f", 5, 0644);
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		way = &ways[i];
		values();
		flags();
		names_of();
	}
}

const struct table tables_xattr[] = {
	{ "xattr", all_ways },
	{ "xattr-types", spaces },
	{ NULL },
};
