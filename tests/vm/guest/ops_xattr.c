// SPDX-License-Identifier: GPL-2.0-only
/*
 * ops_xattr.c - checks of extended attributes and POSIX ACLs: values and their limits, whose names
 * are whose, ACLs and modes that follow each other, default ACLs, who may do what by them, and all
 * of it through a second mount.
 */
#include "ops.h"
#include <dirent.h>
#include <grp.h>
#include <sys/xattr.h>

#define ACCESS	"system.posix_acl_access"
#define DEFAULT	"system.posix_acl_default"
#define CAPS	"security.capability"
#define MAX	65536

/* "u:7 u5:6 g:5 g6:1 m:7 o:0" as the bytes of an ACL. Returns how many. */
static size_t acl(unsigned char *buf, const char *text)
{
	size_t n = 4;

	memcpy(buf, "\2\0\0", 4);
	for (; *text; n += 8) {
		static const char tags[] = "u\001g\004m\020o\040";
		bool named = text[1] != ':';
		uint32_t id = named ? strtoul(text + 1, NULL, 10) : 0xffffffff;

		buf[n] = strchr(tags, *text)[1] << named;
		text = strchr(text, ':') + 1;
		buf[n + 1] = buf[n + 3] = 0;
		buf[n + 2] = *text++ - '0';
		memcpy(buf + n + 4, &id, 4);
		text += *text == ' ';
	}
	return n;
}

static int set_acl(const char *path, const char *name, const char *text)
{
	unsigned char buf[1024];

	return setxattr(path, name, buf, acl(buf, text), 0);
}

static void want_acl(const char *path, const char *name, const char *text)
{
	unsigned char want[1024], got[1024];
	size_t n = acl(want, text);

	EQ(getxattr(path, name, got, sizeof(got)), n);
	if (memcmp(want, got, n))
		FAIL("%s of %s is not %s", name, path, text);
}

static int mode_of(const char *path)
{
	struct stat st;

	OK(lstat(path, &st));
	return st.st_mode & 07777;
}

/* ---------------------------------------------------------------- attributes */

static void values(void)
{
	static char big[MAX + 1], got[MAX + 1];
	char name[300];
	int fd, i;

	for (i = 0; i <= MAX; i++)
		big[i] = i * 5 + (i >> 9);
	ops_touch("f", 0644);
	fd = ops_open("f", O_RDWR, 0);
	ERR(getxattr("f", "user.a", got, 10), ENODATA);
	EQ(listxattr("f", NULL, 0) - listxattr("f", got, sizeof(got)), 0);
	ERR(removexattr("f", "user.a"), ENODATA);
	ERR(setxattr("f", "user.a", "v", 1, XATTR_REPLACE), ENODATA);
	OK(setxattr("f", "user.a", "value", 5, XATTR_CREATE));
	ERR(setxattr("f", "user.a", "v", 1, XATTR_CREATE), EEXIST);
	EQ(getxattr("f", "user.a", NULL, 0), 5);
	ERR(getxattr("f", "user.a", got, 4), ERANGE);
	EQ(getxattr("f", "user.a", got, 5), 5);
	WANT(!memcmp(got, "value", 5));
	EQ(fgetxattr(fd, "user.a", got, sizeof(got)), 5);
	OK(fsetxattr(fd, "user.a", "other value", 11, XATTR_REPLACE));
	EQ(getxattr("f", "user.a", got, sizeof(got)), 11);
	OK(setxattr("f", "user.empty", "", 0, 0));
	EQ(getxattr("f", "user.empty", got, 10), 0);
	/* The longest there are. */
	ERR(setxattr("f", "user.big", big, MAX + 1, 0), E2BIG);
	OK(setxattr("f", "user.big", big, MAX, 0));
	EQ(getxattr("f", "user.big", got, MAX), MAX);
	WANT(!memcmp(big, got, MAX));
	EQ(fgetxattr(fd, "user.big", NULL, 0), MAX);
	ERR(getxattr("f", "user.big", got, MAX - 1), ERANGE);
	for (i = 4000; i < 4200; i += 13) {
		OK(setxattr("f", "user.big", big + i, i, 0));
		EQ(getxattr("f", "user.big", got, i), i);
		WANT(!memcmp(big + i, got, i));
	}
	OK(removexattr("f", "user.big"));
	memset(name, 'n', sizeof(name));
	memcpy(name, "user.", 5);
	name[255] = 0;
	OK(setxattr("f", name, "x", 1, 0));
	EQ(getxattr("f", name, got, 10), 1);
	name[255] = 'n';
	name[256] = 0;
	ERR(setxattr("f", name, "x", 1, 0), ERANGE);
	ERR(setxattr("f", "user.", "x", 1, 0), EINVAL);
	ERR(setxattr("f", "nothing.x", "x", 1, 0), EOPNOTSUPP);
	/* They are the inode's, not the name's. */
	OK(link("f", "g"));
	OK(rename("f", "h"));
	EQ(getxattr("g", "user.a", got, sizeof(got)), 11);
	OK(fremovexattr(fd, "user.a"));
	ERR(getxattr("h", "user.a", got, sizeof(got)), ENODATA);
	OK(unlink("g"));
	OK(unlink("h"));
	OK(fsetxattr(fd, "user.late", "x", 1, 0));
	EQ(fgetxattr(fd, "user.late", got, 10), 1);
	OK(close(fd));
	ops_touch("f", 0644);
	ERR(getxattr("f", "user.late", got, 10), ENODATA);
}

/* The names of a list, sorted and with blanks, without those that a file system has of its own. */
static void names_of(const char *path, char *ret)
{
	char list[MAX], *p, *names[64];
	ssize_t n = llistxattr(path, list, sizeof(list));
	int i, j, k = 0;

	OK(n);
	EQ(llistxattr(path, NULL, 0), n);
	for (p = list; p < list + n; p += strlen(p) + 1)
		if (!strncmp(p, "user.", 5) || !strncmp(p, "trusted.", 8) || !strncmp(p, "system.", 7) ||
		    !strcmp(p, CAPS))
			names[k++] = p;
	*ret = 0;
	for (i = 0; i < k; i++) {
		for (j = i + 1; j < k; j++) {
			if (strcmp(names[j], names[i]) < 0) {
				p = names[i];
				names[i] = names[j];
				names[j] = p;
			}
		}
		strcat(strcat(ret, *ret ? " " : ""), names[i]);
	}
}

static void want_names(const char *path, const char *want)
{
	char got[4096];

	names_of(path, got);
	if (strcmp(got, want))
		FAIL("%s has \"%s\", should be \"%s\"", path, got, want);
}

static void want_names_arg(void *arg)
{
	want_names("f", arg);
}

static void lists(void)
{
	char name[32], list[200];
	ssize_t n;
	int i;

	ops_touch("f", 0644);
	want_names("f", "");
	OK(setxattr("f", "user.b", "1", 1, 0));
	OK(setxattr("f", "user.a", "1", 1, 0));
	OK(setxattr("f", "trusted.t", "1", 1, 0));
	OK(set_acl("f", ACCESS, "u:6 u5:6 g:4 m:6 o:4"));
	want_names("f", ACCESS " trusted.t user.a user.b");
	ops_as(1000, 1000, NULL, 0, want_names_arg, ACCESS " user.a user.b");
	n = listxattr("f", NULL, 0);
	OK(n);
	ERR(listxattr("f", list, n - 1), ERANGE);
	ERR(listxattr("f", list, 1), ERANGE);
	EQ(listxattr("f", list, n), n);
	OK(removexattr("f", "user.b"));
	OK(removexattr("f", ACCESS));
	want_names("f", "trusted.t user.a");
	for (i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "user.n%02d", i);
		OK(setxattr("f", name, name, strlen(name), 0));
	}
	for (i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "user.n%02d", i);
		EQ(getxattr("f", name, list, sizeof(list)), 8);
		WANT(!memcmp(list, name, 8));
		OK(removexattr("f", name));
	}
	want_names("f", "trusted.t user.a");
}

static void as_stranger(void *unused)
{
	char b[16];

	(void)unused;
	ERR(setxattr("f", "user.x", "v", 1, 0), EACCES);
	EQ(getxattr("f", "user.r", b, sizeof(b)), 1);
	ERR(getxattr("secret", "user.r", b, sizeof(b)), EACCES);
	ERR(removexattr("f", "user.r"), EACCES);
	ERR(setxattr("f", "trusted.x", "v", 1, 0), EPERM);
	ERR(getxattr("f", "trusted.r", b, sizeof(b)), ENODATA);
	ERR(setxattr("f", "security.x", "v", 1, 0), EPERM);
	ERR(setxattr("sticky", "user.x", "v", 1, 0), EPERM);
	OK(setxattr("open", "user.x", "v", 1, 0));
	ERR(set_acl("open", ACCESS, "u:7 g:7 o:7"), EPERM);
	ERR(set_acl("open", DEFAULT, "u:7 g:7 o:7"), EPERM);
	ERR(removexattr("open", ACCESS), EPERM);
}

static void spaces(void)
{
	char b[16];

	ops_touch("f", 0644);
	ops_touch("secret", 0600);
	OK(mkdir("sticky", 01777));
	OK(mkdir("open", 0777));
	OK(mkfifo("p", 0666));
	OK(symlink("f", "s"));
	OK(setxattr("f", "user.r", "v", 1, 0));
	OK(setxattr("secret", "user.r", "v", 1, 0));
	OK(setxattr("f", "trusted.r", "v", 1, 0));
	OK(setxattr("sticky", "user.r", "v", 1, 0));
	ERR(setxattr("p", "user.x", "v", 1, 0), EPERM);
	ERR(getxattr("p", "user.x", b, sizeof(b)), ENODATA);
	OK(setxattr("p", "trusted.x", "v", 1, 0));
	/* A link's own, and what it leads to. */
	ERR(lsetxattr("s", "user.x", "v", 1, 0), EPERM);
	OK(lsetxattr("s", "trusted.own", "v", 1, 0));
	OK(setxattr("s", "trusted.other", "v", 1, 0));
	want_names("s", "trusted.own");
	EQ(getxattr("f", "trusted.other", b, sizeof(b)), 1);
	ERR(getxattr("f", "trusted.own", b, sizeof(b)), ENODATA);
	ops_as(1000, 1000, NULL, 0, as_stranger, NULL);
}

static void set_caps(const char *path)
{
	/* Version 2: one that may be set from the first user namespace, cap_net_raw. */
	static const unsigned char v2[20] = { 1, 0, 0, 2, 0, 0x20 };

	OK(setxattr(path, CAPS, v2, sizeof(v2), 0));
	EQ(getxattr(path, CAPS, NULL, 0), 20);
}

static void capabilities(void)
{
	int fd;

	ops_touch("f", 04755);
	set_caps("f");
	fd = ops_open("f", O_WRONLY, 0);
	ops_pwrite(fd, "x", 1, 0);
	ERR(getxattr("f", CAPS, NULL, 0), ENODATA);
	EQ(mode_of("f"), 04755);	/* root's write leaves that */
	set_caps("f");
	OK(ftruncate(fd, 100));
	ERR(getxattr("f", CAPS, NULL, 0), ENODATA);
	set_caps("f");
	OK(close(fd));
	OK(truncate("f", 10));
	ERR(getxattr("f", CAPS, NULL, 0), ENODATA);
	set_caps("f");
	OK(close(ops_open("f", O_WRONLY | O_TRUNC, 0)));
	ERR(getxattr("f", CAPS, NULL, 0), ENODATA);
	set_caps("f");
	OK(chmod("f", 0700));
	EQ(getxattr("f", CAPS, NULL, 0), 20);
	OK(chown("f", 5, 5));
	ERR(getxattr("f", CAPS, NULL, 0), ENODATA);
}

/* ---------------------------------------------------------------- ACLs */

static void acl_modes(void)
{
	char b[64];

	ops_touch("f", 0640);
	ERR(getxattr("f", ACCESS, b, sizeof(b)), ENODATA);
	OK(set_acl("f", ACCESS, "u:7 u5:6 g:5 m:7 o:1"));
	EQ(mode_of("f"), 0771);
	OK(chmod("f", 0640));
	want_acl("f", ACCESS, "u:6 u5:6 g:5 m:4 o:0");
	OK(set_acl("f", ACCESS, "u:7 u5:6 g:5 g6:0 m:2 o:4"));
	EQ(mode_of("f"), 0724);
	OK(set_acl("f", ACCESS, "u:7 g:5 o:2"));
	EQ(mode_of("f"), 0752);
	ERR(getxattr("f", ACCESS, b, sizeof(b)), ENODATA);
	OK(set_acl("f", ACCESS, "u:7 u5:6 g:5 m:6 o:1"));
	OK(removexattr("f", ACCESS));
	EQ(mode_of("f"), 0761);
	ERR(set_acl("f", ACCESS, "u:7 g:5"), EINVAL);
	ERR(set_acl("f", ACCESS, "u:7 u5:7 g:5 o:0"), EINVAL);
	ERR(set_acl("f", ACCESS, "g:5 u:7 o:0"), EINVAL);
	ERR(setxattr("f", ACCESS, "\2\0\0\0\1", 5, 0), EINVAL);
	ERR(set_acl("f", DEFAULT, "u:7 g:5 o:0"), EACCES);
	OK(mkfifo("p", 0600));
	OK(set_acl("p", ACCESS, "u:6 u5:6 g:4 m:6 o:0"));
	EQ(mode_of("p"), 0660);
	/*
	 * What was given to root's group is not given to its owner: setgid goes with an ACL set
	 * from outside.
	 */
	ops_touch("g", 02755);
	OK(set_acl("g", ACCESS, "u:7 u5:6 g:5 m:7 o:5"));
	EQ(mode_of("g"), 02775);
}

static void acl_defaults(void)
{
	char b[64];

	umask(027);
	OK(mkdir("d", 0777));
	EQ(mode_of("d"), 0750);
	ops_touch("d/before", 0666);
	EQ(mode_of("d/before"), 0640);
	umask(077);
	OK(set_acl("d", DEFAULT, "u:7 u5:6 g:5 m:7 o:1"));
	EQ(mode_of("d"), 0750);
	/* The default ACL takes the mask's place. */
	ops_touch("d/f", 0666);
	EQ(mode_of("d/f"), 0660);
	want_acl("d/f", ACCESS, "u:6 u5:6 g:5 m:6 o:0");
	ERR(getxattr("d/f", DEFAULT, b, sizeof(b)), ENODATA);
	OK(close(ops_open("d/g", O_RDONLY | O_CREAT, 0600)));
	want_acl("d/g", ACCESS, "u:6 u5:6 g:5 m:0 o:0");
	OK(mkdir("d/s", 0777));
	EQ(mode_of("d/s"), 0771);
	want_acl("d/s", ACCESS, "u:7 u5:6 g:5 m:7 o:1");
	want_acl("d/s", DEFAULT, "u:7 u5:6 g:5 m:7 o:1");
	OK(mkdir("d/s/t", 0700));
	want_acl("d/s/t", DEFAULT, "u:7 u5:6 g:5 m:7 o:1");
	EQ(mode_of("d/s/t"), 0700);
	OK(mknod("d/p", S_IFIFO | 0666, 0));
	want_acl("d/p", ACCESS, "u:6 u5:6 g:5 m:6 o:0");
	OK(mknod("d/r", S_IFREG | 0644, 0));
	EQ(mode_of("d/r"), 0640);
	OK(symlink("f", "d/l"));
	EQ(mode_of("d/l"), 0777);
	/* Moving in and linking do not inherit. */
	OK(rename("d/before", "before"));
	OK(rename("before", "d/after"));
	ERR(getxattr("d/after", ACCESS, b, sizeof(b)), ENODATA);
	/* One that says no more than a mode. */
	OK(set_acl("d", DEFAULT, "u:7 g:5 o:4"));
	ops_touch("d/h", 0666);
	EQ(mode_of("d/h"), 0644);
	ERR(getxattr("d/h", ACCESS, b, sizeof(b)), ENODATA);
	OK(removexattr("d", DEFAULT));
	ops_touch("d/i", 0666);
	EQ(mode_of("d/i"), 0600);
}

/* Who, by an ACL, may what. The owner is 1:10. */
static const struct row {
	const char *acl;
	uid_t uid;
	gid_t gid, group;	/* @group: a supplementary one, 0: none */
	int may;
} rows[] = {
	{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 1, 99, 0, 6 },
	{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 2, 99, 0, 5 },
	{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 2, 10, 30, 5 },
	{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 3, 10, 0, 4 },
	{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 3, 99, 10, 4 },
	{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 3, 30, 0, 2 },
	{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 3, 99, 30, 2 },
	{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 3, 10, 30, 6 },
	{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 4, 99, 0, 1 },
	{ "u:6 u2:5 g:4 g30:2 m:1 o:7", 1, 99, 0, 6 },
	{ "u:6 u2:5 g:4 g30:2 m:1 o:7", 2, 99, 0, 1 },
	{ "u:6 u2:5 g:4 g30:2 m:1 o:7", 3, 10, 0, 0 },
	{ "u:6 u2:5 g:4 g30:2 m:1 o:7", 4, 99, 0, 7 },
	{ "u:6 u2:0 g:4 m:7 o:7", 2, 99, 0, 0 },
	{ "u:6 u2:7 g:0 m:7 o:7", 3, 10, 0, 0 },
	/* a mask of nothing: Linux does not look at the ACL */
	{ "u:6 u2:7 g:7 m:0 o:4", 2, 99, 0, 4 },
};

static void expect(const struct row *r, int bits, int rc, const char *what)
{
	bool ok = (r->may & bits) == bits;

	if (ok != (rc >= 0) || (rc < 0 && errno != EACCES))
		FAIL("%s as %u:%u,%u with %s: %s", what, r->uid, r->gid, r->group, r->acl,
		     rc >= 0 ? "granted" : strerror(errno));
}

static void try_row(void *arg)
{
	const struct row *r = arg;
	struct stat st;
	int fd;

	fd = open("f", O_RDONLY);
	expect(r, 4, fd, "open to read");
	close(fd);
	fd = open("f", O_WRONLY);
	expect(r, 2, fd, "open to write");
	close(fd);
	expect(r, 4, access("f", R_OK), "access r");
	expect(r, 2, access("f", W_OK), "access w");
	expect(r, 1, access("f", X_OK), "access x");
	/* One entry has to grant it all. */
	if (!r->group)
		expect(r, 6, access("f", R_OK | W_OK), "access rw");
	expect(r, 2, truncate("f", 0), "truncate");
	fd = open("d", O_RDONLY | O_DIRECTORY);
	expect(r, 4, fd, "open of a directory");
	close(fd);
	expect(r, 1, stat("d/in", &st), "stat below");
	expect(r, 1, stat("d/.", &st), "stat of .");
	expect(r, 1, access("d", X_OK), "access of a directory");
	fd = open("d/new", O_WRONLY | O_CREAT, 0600);
	expect(r, 3, fd, "creat");
	close(fd);
	expect(r, 3, mkdir("d/newdir", 0700), "mkdir");
	expect(r, 3, rename("d/ren", "d/ren2"), "rename");
	expect(r, 3, unlink("d/gone"), "unlink");
	fd = chdir("d");
	expect(r, 1, fd, "chdir");
}

static void acl_rights(void)
{
	unsigned int i;

	OK(mkdir("d", 0700));
	ops_touch("f", 0600);
	ops_touch("d/in", 0666);
	OK(chown("f", 1, 10));
	OK(chown("d", 1, 10));
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];
		gid_t group = r->group;

		unlink("d/new");
		unlink("d/ren2");
		rmdir("d/newdir");
		OK(close(open("d/ren", O_WRONLY | O_CREAT, 0600)));
		OK(close(open("d/gone", O_WRONLY | O_CREAT, 0600)));
		OK(set_acl("f", ACCESS, r->acl));
		OK(set_acl("d", ACCESS, r->acl));
		ops_as(r->uid, r->gid, &group, group != 0, try_row, (void *)r);
	}
}

const struct ops_check ops_xattr[] = {
	{ "xattr: values, flags, limits", values },
	{ "xattr: lists", lists },
	{ "xattr: whose names they are", spaces },
	{ "xattr: security.capability goes with a write, a truncation, a chown", capabilities },
	{ "acl: ACLs and modes follow each other", acl_modes },
	{ "acl: default ACLs", acl_defaults },
	{ "acl: who may what", acl_rights },
	{ NULL, NULL },
};

/* ---------------------------------------------------------------- two mounts */

static const char *o(const char *name)
{
	static char path[4][4200];
	static int n;

	n = (n + 1) % 4;
	snprintf(path[n], sizeof(path[n]), "%s/%s", ops_other, name);
	return path[n];
}

static void two_values(void)
{
	char v[32], got[64];
	int a, b, i;

	ops_touch("f", 0644);
	a = ops_open("f", O_RDWR, 0);
	b = ops_open(o("f"), O_RDWR, 0);
	ERR(fgetxattr(b, "user.x", got, sizeof(got)), ENODATA);
	want_names(o("f"), "");
	for (i = 0; i < 20; i++) {
		int n = snprintf(v, sizeof(v), "value %d", i * i * i);

		OK(i & 1 ? fsetxattr(b, "user.x", v, n, 0) : setxattr("f", "user.x", v, n, 0));
		EQ(i & 2 ? getxattr(i & 1 ? "f" : o("f"), "user.x", got, sizeof(got)) :
			   fgetxattr(i & 1 ? a : b, "user.x", got, sizeof(got)), n);
		WANT(!memcmp(v, got, n));
		OK(i & 1 ? removexattr("f", "user.x") : fremovexattr(b, "user.x"));
		ERR(fgetxattr(i & 1 ? b : a, "user.x", got, sizeof(got)), ENODATA);
		want_names("f", "");
		OK(i & 1 ? setxattr(o("f"), "user.y", v, n, 0) : fsetxattr(a, "user.y", v, n, 0));
		want_names(i & 1 ? "f" : o("f"), "user.y");
		OK(removexattr(o("f"), "user.y"));
	}
	set_caps("f");
	EQ(fgetxattr(b, CAPS, NULL, 0), 20);
	OK(close(a));
	OK(close(b));
}

static void can_read(void *arg)
{
	int fd = open(arg, O_RDONLY);

	OK(fd);
	OK(close(fd));
	OK(access(arg, R_OK));
}

static void can_not_read(void *arg)
{
	ERR(open(arg, O_RDONLY), EACCES);
	ERR(access(arg, R_OK), EACCES);
}

static void can_search(void *arg)
{
	struct stat st;
	char path[4200];

	snprintf(path, sizeof(path), "%s/in", (char *)arg);
	OK(stat(path, &st));
	OK(access(arg, X_OK));
}

static void can_not_search(void *arg)
{
	struct stat st;
	char path[4200];

	snprintf(path, sizeof(path), "%s/in", (char *)arg);
	ERR(stat(path, &st), EACCES);
	ERR(access(arg, X_OK), EACCES);
	snprintf(path, sizeof(path), "%s/.", (char *)arg);
	ERR(stat(path, &st), EACCES);
}

static void two_acls(void)
{
	struct stat st;
	char b[64];
	int i;

	ops_touch("f", 0600);
	OK(mkdir("d", 0700));
	ops_touch("d/in", 0600);
	for (i = 0; i < 6; i++) {
		const char *here = i & 1 ? o("f") : "f", *there = i & 1 ? "f" : o("f");
		const char *dhere = i & 1 ? o("d") : "d", *dthere = i & 1 ? "d" : o("d");

		ops_as(1000, 1000, NULL, 0, can_not_read, (void *)there);
		OK(set_acl(here, ACCESS, "u:6 u1000:4 g:0 m:4 o:0"));
		ops_as(1000, 1000, NULL, 0, can_read, (void *)there);
		want_acl(there, ACCESS, "u:6 u1000:4 g:0 m:4 o:0");
		OK(stat(there, &st));
		EQ(st.st_mode & 0777, 0640);
		OK(chmod(there, 0620));
		want_acl(here, ACCESS, "u:6 u1000:4 g:0 m:2 o:0");
		ops_as(1000, 1000, NULL, 0, can_not_read, (void *)here);
		OK(removexattr(there, ACCESS));
		ERR(getxattr(here, ACCESS, b, sizeof(b)), ENODATA);
		OK(chmod(here, 0600));

		ops_as(1000, 1000, NULL, 0, can_not_search, (void *)dthere);
		OK(set_acl(dhere, ACCESS, "u:7 u1000:1 g:0 m:1 o:0"));
		ops_as(1000, 1000, NULL, 0, can_search, (void *)dthere);
		ops_as(1000, 1000, NULL, 0, can_search, (void *)dhere);
		OK(set_acl(dthere, ACCESS, "u:7 u1001:1 g:0 m:1 o:0"));
		ops_as(1000, 1000, NULL, 0, can_not_search, (void *)dhere);
		ops_as(1001, 1000, NULL, 0, can_search, (void *)dhere);
		OK(removexattr(dhere, ACCESS));
		OK(chmod(dthere, 0700));

		/* A default ACL of one is there for what the other makes next. */
		OK(set_acl(dhere, DEFAULT, "u:7 u5:7 g:0 m:7 o:0"));
		snprintf(b, sizeof(b), "d/n%d", i);
		ops_touch(i & 1 ? b : o(b), 0666);
		want_acl(i & 1 ? o(b) : b, ACCESS, "u:6 u5:7 g:0 m:6 o:0");
		OK(removexattr(dthere, DEFAULT));
		snprintf(b, sizeof(b), "d/m%d", i);
		ops_touch(i & 1 ? o(b) : b, 0666);
		EQ(mode_of(b), 0666);
	}
}

const struct ops_check ops_xattr_two[] = {
	{ "two mounts: extended attributes", two_values },
	{ "two mounts: ACLs", two_acls },
	{ NULL, NULL },
};
