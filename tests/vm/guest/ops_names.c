// SPDX-License-Identifier: GPL-2.0-only
/*
 * ops_names.c - checks of names, directories, links and attributes.
 */
#include "ops.h"
#include <dirent.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#endif
#ifndef RENAME_WHITEOUT
#define RENAME_WHITEOUT 4
#endif

static int renameat2_(const char *from, const char *to, unsigned int flags)
{
	return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

static ino_t ino_of(const char *path)
{
	struct stat st;

	OK(lstat(path, &st));
	return st.st_ino;
}

static nlink_t links(const char *path)
{
	struct stat st;

	OK(lstat(path, &st));
	return st.st_nlink;
}

static bool later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

/* Number of entries without "." and "..". */
static int entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int n = 0;

	WANT(d);
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return n;
}

static void directories(void)
{
	OK(mkdir("d", 0755));
	ERR(mkdir("d", 0755), EEXIST);
	EQ(links("d"), 2);
	OK(mkdir("d/e", 0755));
	EQ(links("d"), 3);
	ERR(rmdir("d"), ENOTEMPTY);
	ops_touch("d/f", 0644);
	ERR(mkdir("d/f", 0755), EEXIST);
	ERR(mkdir("d/f/g", 0755), ENOTDIR);
	ERR(mkdir("none/g", 0755), ENOENT);
	ERR(rmdir("d/f"), ENOTDIR);
	WANT(unlink("d/e") < 0 && (errno == EISDIR || errno == EPERM));
	ERR(rmdir("d/e/."), EINVAL);
	WANT(rmdir("d/e/..") < 0 && (errno == ENOTEMPTY || errno == EINVAL));
	OK(rmdir("d/e"));
	EQ(links("d"), 2);
	ERR(rmdir("d/e"), ENOENT);
	ERR(unlink("d/e"), ENOENT);
	OK(unlink("d/f"));
	OK(rmdir("d"));
	EQ(entries("."), 0);
}

/* One's current directory may go: nothing can be made in it then. */
static void removed_cwd(void)
{
	struct stat st;

	OK(mkdir("d", 0755));
	OK(chdir("d"));
	OK(rmdir("../d"));
	ERR(open("f", O_WRONLY | O_CREAT, 0644), ENOENT);
	ERR(mkdir("e", 0755), ENOENT);
	OK(stat(".", &st));
	EQ(st.st_nlink, 0);
}

static void opens(void)
{
	int fd;

	ERR(open("f", O_RDONLY), ENOENT);
	fd = ops_open("f", O_RDWR | O_CREAT | O_EXCL, 0444);
	/* The mode is for later opens; git makes its objects so. */
	ops_pwrite(fd, "x", 1, 0);
	OK(close(fd));
	ERR(open("f", O_RDWR | O_CREAT | O_EXCL, 0644), EEXIST);
	OK(close(ops_open("f", O_RDONLY | O_CREAT, 0777)));
	OK(mkdir("d", 0755));
	ERR(open("d", O_WRONLY), EISDIR);
	ERR(open("d", O_RDWR), EISDIR);
	ERR(open("d", O_WRONLY | O_CREAT, 0644), EISDIR);
	ERR(open("f", O_RDONLY | O_DIRECTORY), ENOTDIR);
	ERR(open("f/x", O_RDONLY), ENOTDIR);
	ERR(open("new/", O_WRONLY | O_CREAT, 0644), EISDIR);
	OK(symlink("f", "s"));
	ERR(open("s", O_RDONLY | O_NOFOLLOW), ELOOP);
	ERR(open("s", O_RDWR | O_CREAT | O_EXCL, 0644), EEXIST);
	OK(close(ops_open("s", O_RDONLY, 0)));
	OK(symlink("target", "dangling"));
	OK(close(ops_open("dangling", O_WRONLY | O_CREAT, 0600)));
	OK(access("target", F_OK));
	OK(close(ops_open("f", O_PATH, 0)));
	ERR(open(".", O_TMPFILE | O_RDONLY, 0600), EINVAL);
	ERR(open("f", O_TMPFILE | O_RDWR, 0600), ENOTDIR);
}

static int link_fd(int fd, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* Files without a name. */
static void tmpfiles(void)
{
	int fd = ops_open(".", O_TMPFILE | O_RDWR, 0640), two;
	static char buf[3 * UNIT];
	struct stat st, named;

	OK(fstat(fd, &st));
	EQ(st.st_nlink, 0);
	EQ(st.st_mode, S_IFREG | 0640);
	ops_fill(buf, sizeof(buf), 0, 5);
	ops_pwrite(fd, buf, sizeof(buf), 0);
	OK(link_fd(fd, "linked"));
	OK(fstat(fd, &st));
	EQ(st.st_nlink, 1);
	OK(stat("linked", &named));
	EQ(named.st_ino, st.st_ino);
	EQ(named.st_size, sizeof(buf));
	ERR(link_fd(fd, "linked"), EEXIST);
	OK(link_fd(fd, "again"));
	OK(close(fd));
	ops_verify("linked", sizeof(buf), 5);
	OK(unlink("again"));
	ops_verify("linked", sizeof(buf), 5);
	/* Unlinked again it is as any other: no name any more. */
	fd = ops_open("linked", O_RDWR, 0);
	OK(unlink("linked"));
	ERR(link_fd(fd, "linked"), ENOENT);
	OK(close(fd));
	fd = ops_open(".", O_TMPFILE | O_WRONLY | O_EXCL, 0600);
	ERR(link_fd(fd, "never"), ENOENT);
	two = ops_open(".", O_TMPFILE | O_WRONLY, 0600);
	ops_pwrite(two, buf, UNIT, 0);
	OK(close(fd));
	OK(close(two));
	ERR(access("never", F_OK), ENOENT);
}

/* What overlayfs leaves where something was. */
static void whiteouts(void)
{
	struct stat st;

	ops_make("a", 100, 1);
	OK(mkdir("d", 0755));
	OK(renameat2_("a", "d/b", RENAME_WHITEOUT));
	ops_verify("d/b", 100, 1);
	OK(lstat("a", &st));
	WANT(S_ISCHR(st.st_mode) && st.st_rdev == 0);
	EQ(st.st_nlink, 1);
	ERR(renameat2_("d/b", "a", RENAME_WHITEOUT | RENAME_NOREPLACE), EEXIST);
	ERR(renameat2_("d/b", "a", RENAME_WHITEOUT | RENAME_EXCHANGE), EINVAL);
	OK(renameat2_("d/b", "a", RENAME_WHITEOUT));
	ops_verify("a", 100, 1);
	OK(lstat("d/b", &st));
	WANT(S_ISCHR(st.st_mode));
	OK(unlink("d/b"));
	OK(rmdir("d"));
}

/* Opened, then unlinked: lives until it is closed. */
static void unlinked_open(void)
{
	char buf[200000], got[200000];
	struct stat st;
	int fd, two;

	fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	two = ops_open("f", O_RDONLY, 0);
	ops_fill(buf, sizeof(buf), 0, 1);
	ops_pwrite(fd, buf, 100000, 0);
	OK(unlink("f"));
	ERR(open("f", O_RDONLY), ENOENT);
	ops_pwrite(fd, buf + 100000, 100000, 100000);
	OK(fstat(fd, &st));
	EQ(st.st_nlink, 0);
	EQ(st.st_size, 200000);
	EQ(ops_pread(two, got, sizeof(got), 0), sizeof(got));
	WANT(!memcmp(buf, got, sizeof(buf)));
	OK(fchmod(fd, 0600));
	OK(ftruncate(fd, 70000));
	OK(close(fd));
	EQ(ops_pread(two, got, sizeof(got), 0), 70000);
	/* The name is free meanwhile. */
	ops_make("f", 10, 2);
	EQ(ops_pread(two, got, sizeof(got), 0), 70000);
	WANT(!memcmp(buf, got, 70000));
	ops_verify("f", 10, 2);
}

static void name_lengths(void)
{
	char name[300], path[600];

	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	ops_make(name, 5, 1);
	ops_verify(name, 5, 1);
	name[254] = '\0';
	OK(mkdir(name, 0755));
	snprintf(path, sizeof(path), "%s/%s", name, name);
	OK(symlink(name, path));
	name[254] = 'n';
	name[256] = '\0';
	name[255] = 'n';
	ERR(open(name, O_WRONLY | O_CREAT, 0644), ENAMETOOLONG);
	ERR(mkdir(name, 0755), ENAMETOOLONG);
	ERR(access(name, F_OK), ENAMETOOLONG);
	ops_touch("x", 0644);
	ERR(rename("x", name), ENAMETOOLONG);
	OK(unlink("x"));
	EQ(entries("."), 2);
}

/* A name is bytes: all but '/' and NUL, alone, in the middle, and together. */
static void name_bytes(void)
{
	char name[8], all[256];
	bool seen[256] = { false };
	struct dirent *e;
	int c, n = 0;
	DIR *d;

	for (c = 1; c < 256; c++) {
		if (c == '/')
			continue;
		all[n++] = c;
		snprintf(name, sizeof(name), "%cx%c", c, c);
		ops_touch(name, 0644);
		if (c != '.') {
			snprintf(name, sizeof(name), "%c", c);
			OK(mkdir(name, 0755));
		}
	}
	all[n] = '\0';
	ops_touch(all, 0644);
	d = opendir(".");
	WANT(d);
	while ((e = readdir(d))) {
		if (strlen(e->d_name) == 3 && e->d_name[1] == 'x' && e->d_name[0] == e->d_name[2])
			seen[(unsigned char)e->d_name[0]] = true;
	}
	closedir(d);
	for (c = 1; c < 256; c++)
		if (c != '/' && !seen[c])
			FAIL("the name with byte %#x is not listed", c);
	EQ(entries("."), 254 + 253 + 1);
	OK(unlink(all));
	for (c = 1; c < 256; c++) {
		if (c == '/')
			continue;
		snprintf(name, sizeof(name), "%cx%c", c, c);
		OK(unlink(name));
		snprintf(name, sizeof(name), "%c", c);
		if (c != '.')
			OK(rmdir(name));
	}
	EQ(entries("."), 0);
}

static void renames(void)
{
	ino_t ino;

	ops_make("a", 100, 1);
	ino = ino_of("a");
	OK(rename("a", "b"));
	ERR(access("a", F_OK), ENOENT);
	EQ(ino_of("b"), ino);
	ops_verify("b", 100, 1);
	/* Replaces. */
	ops_make("c", 70000, 2);
	OK(rename("b", "c"));
	EQ(ino_of("c"), ino);
	ops_verify("c", 100, 1);
	EQ(entries("."), 1);
	/* Onto itself, and onto another link of itself: nothing happens. */
	OK(rename("c", "c"));
	OK(link("c", "d"));
	OK(rename("c", "d"));
	EQ(entries("."), 2);
	EQ(links("c"), 2);
	OK(mkdir("dir", 0755));
	ERR(rename("none", "x"), ENOENT);
	ERR(rename("c", "dir"), EISDIR);
	ERR(rename("dir", "c"), ENOTDIR);
	ERR(rename("c", "none/x"), ENOENT);
	ERR(rename("c", "d/x"), ENOTDIR);
	OK(mkdir("full", 0755));
	ops_touch("full/x", 0644);
	ERR(rename("dir", "full"), ENOTEMPTY);
	OK(unlink("full/x"));
	ino = ino_of("dir");
	OK(rename("dir", "full"));
	EQ(ino_of("full"), ino);
	ERR(access("dir", F_OK), ENOENT);
	WANT(rename(".", "x") < 0 && (errno == EBUSY || errno == EINVAL));
	OK(symlink("c", "s"));
	OK(rename("s", "t"));
	EQ(entries("."), 4);
}

static void rename_directories(void)
{
	struct stat st, up;

	OK(mkdir("a", 0755));
	OK(mkdir("a/b", 0755));
	OK(mkdir("a/b/c", 0755));
	OK(mkdir("z", 0755));
	ops_make("a/b/c/f", 10, 1);
	ERR(rename("a", "a/b"), EINVAL);
	ERR(rename("a", "a/b/c/d"), EINVAL);
	ERR(rename("a/b", "a/b/c/d"), EINVAL);
	WANT(rename("a/b/c", "a") < 0 && (errno == ENOTEMPTY || errno == EEXIST));
	EQ(links("a"), 3);
	EQ(links("z"), 2);
	OK(rename("a/b", "z/b2"));
	EQ(links("a"), 2);
	EQ(links("z"), 3);
	ops_verify("z/b2/c/f", 10, 1);
	/* ".." follows. */
	OK(stat("z/b2/..", &st));
	OK(stat("z", &up));
	EQ(st.st_ino, up.st_ino);
	OK(chdir("z/b2/c"));
	OK(rename("../../../z", "../../../y"));
	ops_verify("f", 10, 1);
	OK(stat("../..", &st));
	EQ(st.st_ino, up.st_ino);
	/* What was an ancestor may go below now. */
	OK(chdir("../../.."));
	OK(rename("y/b2", "b2"));
	OK(rename("y", "b2/c/y"));
	OK(access("b2/c/y", F_OK));
}

static void rename_flags(void)
{
	ops_make("a", 1, 1);
	ops_make("b", 2, 2);
	ERR(renameat2_("a", "b", RENAME_NOREPLACE), EEXIST);
	ops_verify("b", 2, 2);
	OK(renameat2_("a", "c", RENAME_NOREPLACE));
	ERR(access("a", F_OK), ENOENT);
	OK(renameat2_("b", "c", RENAME_EXCHANGE));
	ops_verify("c", 2, 2);
	ops_verify("b", 1, 1);
	ERR(renameat2_("b", "nope", RENAME_EXCHANGE), ENOENT);
	ERR(renameat2_("b", "c", RENAME_EXCHANGE | RENAME_NOREPLACE), EINVAL);
	/* A file and a directory with something in it, across directories. */
	OK(mkdir("d", 0755));
	OK(mkdir("d/e", 0755));
	ops_make("d/e/f", 3, 3);
	OK(renameat2_("b", "d/e", RENAME_EXCHANGE));
	ops_verify("d/e", 1, 1);
	ops_verify("b/f", 3, 3);
	ERR(renameat2_("d", "d/e", RENAME_EXCHANGE), EINVAL);
	OK(renameat2_("b", "d", RENAME_EXCHANGE));
	ops_verify("d/f", 3, 3);
	ops_verify("b/e", 1, 1);
}

/* File handles lead to the inode whatever its name is, and nowhere when it is gone. */
static void handles(void)
{
	struct { struct file_handle h; unsigned char room[MAX_HANDLE_SZ]; } file, dir, gone;
	int id, here = ops_open(".", O_RDONLY | O_DIRECTORY, 0), fd;
	struct stat a, b;
	char c[4] = "";

	file.h.handle_bytes = dir.h.handle_bytes = gone.h.handle_bytes = 0;
	ops_make("f", 0, 0);
	ERR(name_to_handle_at(AT_FDCWD, "f", &file.h, &id, 0), EOVERFLOW);
	WANT(file.h.handle_bytes > 0 && file.h.handle_bytes <= MAX_HANDLE_SZ);
	file.h.handle_bytes = dir.h.handle_bytes = gone.h.handle_bytes = MAX_HANDLE_SZ;
	OK(mkdir("d", 0755));
	OK(mkdir("d/e", 0755));
	OK(name_to_handle_at(AT_FDCWD, "f", &file.h, &id, 0));
	OK(name_to_handle_at(AT_FDCWD, "d/e", &dir.h, &id, 0));
	OK(rename("f", "d/e/g"));
	fd = open_by_handle_at(here, &file.h, O_RDWR);
	OK(fd);
	ops_pwrite(fd, "yes", 3, 0);
	OK(close(fd));
	fd = ops_open("d/e/g", O_RDONLY, 0);
	EQ(pread(fd, c, 3, 0), 3);
	WANT(!strcmp(c, "yes"));
	OK(close(fd));
	/* A directory, and the way up from it. */
	fd = open_by_handle_at(here, &dir.h, O_RDONLY | O_DIRECTORY);
	OK(fd);
	OK(fstatat(fd, "..", &a, 0));
	OK(stat("d", &b));
	EQ(a.st_ino, b.st_ino);
	OK(faccessat(fd, "g", F_OK, 0));
	OK(close(fd));
	ops_make("h", 1, 1);
	OK(name_to_handle_at(AT_FDCWD, "h", &gone.h, &id, 0));
	OK(unlink("h"));
	ERR(open_by_handle_at(here, &gone.h, O_RDONLY), ESTALE);
	gone.room[0] ^= 0x55;
	gone.room[5] ^= 0x55;
	ERR(open_by_handle_at(here, &gone.h, O_RDONLY), ESTALE);
}

/* An open file follows its inode, not its name. */
static void rename_open(void)
{
	char c[2] = "";
	int a, b;

	ops_make("a", 10, 1);
	ops_make("b", 10, 2);
	a = ops_open("a", O_RDWR, 0);
	b = ops_open("b", O_RDWR, 0);
	OK(rename("a", "b"));
	ops_pwrite(b, "B", 1, 0);
	ops_pwrite(a, "A", 1, 0);
	EQ(pread(b, c, 1, 0), 1);
	EQ(c[0], 'B');
	OK(close(a));
	OK(close(b));
	a = ops_open("b", O_RDONLY, 0);
	EQ(pread(a, c, 1, 0), 1);
	EQ(c[0], 'A');
}

static void hard_links(void)
{
	struct stat a, b;
	int fd;

	ops_make("a", 10, 1);
	OK(mkdir("d", 0755));
	OK(lstat("a", &a));
	usleep(20000);
	OK(link("a", "b"));
	OK(link("b", "d/c"));
	OK(lstat("d/c", &b));
	EQ(a.st_ino, b.st_ino);
	EQ(b.st_nlink, 3);
	WANT(later(b.st_ctim, a.st_ctim));
	WANT(!later(b.st_mtim, a.st_mtim));
	ERR(link("a", "b"), EEXIST);
	ERR(link("d", "e"), EPERM);
	ERR(link("none", "e"), ENOENT);
	ERR(link("a", "none/e"), ENOENT);
	fd = ops_open("d/c", O_WRONLY, 0);
	ops_pwrite(fd, "zzzzz", 5, 0);
	OK(close(fd));
	OK(chmod("b", 0751));
	OK(lstat("a", &a));
	EQ(a.st_mode & 07777, 0751);
	OK(unlink("a"));
	EQ(links("b"), 2);
	OK(unlink("d/c"));
	EQ(links("b"), 1);
	OK(symlink("b", "s"));
	/* Not followed by default. */
	OK(link("s", "s2"));
	WANT(lstat("s2", &a) == 0 && S_ISLNK(a.st_mode));
	EQ(a.st_nlink, 2);
	OK(linkat(AT_FDCWD, "s", AT_FDCWD, "b2", AT_SYMLINK_FOLLOW));
	EQ(links("b2"), 2);
}

static void symbolic_links(void)
{
	char target[5000], got[5000];
	struct stat st;
	ssize_t r;

	memset(target, 't', sizeof(target));
	target[4095] = '\0';
	OK(symlink(target, "long"));
	r = readlink("long", got, sizeof(got));
	EQ(r, 4095);
	WANT(!memcmp(got, target, 4095));
	OK(lstat("long", &st));
	EQ(st.st_size, 4095);
	EQ(st.st_mode, S_IFLNK | 0777);
	EQ(readlink("long", got, 10), 10);
	target[4095] = 't';
	target[4096] = '\0';
	ERR(symlink(target, "longer"), ENAMETOOLONG);
	ERR(symlink("", "empty"), ENOENT);
	OK(symlink("loop2", "loop1"));
	OK(symlink("loop1", "loop2"));
	ERR(open("loop1", O_RDONLY), ELOOP);
	OK(symlink("x\x01\xff y", "odd"));
	EQ(readlink("odd", got, sizeof(got)), 5);
	WANT(!memcmp(got, "x\x01\xff y", 5));
	OK(mkdir("d", 0755));
	OK(symlink("d", "dl"));
	ops_make("dl/f", 3, 1);
	ops_verify("d/f", 3, 1);
	ERR(symlink("a", "dl"), EEXIST);
	ERR(rmdir("dl"), ENOTDIR);
	OK(unlink("dl"));
	ERR(readlink("d", got, sizeof(got)), EINVAL);
}

static void deep_paths(void)
{
	char path[PATH_MAX], *p;
	int i, fd;

	/* As deep as a path can name, and deeper by steps. */
	for (i = 0; i < 300; i++) {
		OK(mkdir("directory", 0755));
		OK(chdir("directory"));
	}
	ops_make("f", 9, 1);
	p = getcwd(path, sizeof(path));
	WANT(p && strlen(p) > 3000);
	strcat(p, "/f");
	ops_verify(p, 9, 1);
	fd = ops_open("..", O_RDONLY | O_DIRECTORY, 0);
	OK(fchdir(fd));
	ops_verify("directory/f", 9, 1);
	OK(unlink("directory/f"));
	for (i = 0; i < 299; i++) {
		OK(rmdir("directory"));
		OK(chdir(".."));
	}
	OK(rmdir("directory"));
}

static void special_files(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "sock" };
	int s, r, w;
	struct stat st;
	char c = 0;

	OK(mkfifo("fifo", 0640));
	OK(lstat("fifo", &st));
	EQ(st.st_mode, S_IFIFO | 0640);
	r = ops_open("fifo", O_RDONLY | O_NONBLOCK, 0);
	w = ops_open("fifo", O_WRONLY, 0);
	EQ(write(w, "x", 1), 1);
	EQ(read(r, &c, 1), 1);
	EQ(c, 'x');
	s = socket(AF_UNIX, SOCK_STREAM, 0);
	OK(bind(s, (struct sockaddr *)&a, sizeof(a)));
	OK(listen(s, 1));
	OK(lstat("sock", &st));
	WANT(S_ISSOCK(st.st_mode));
	w = socket(AF_UNIX, SOCK_STREAM, 0);
	OK(connect(w, (struct sockaddr *)&a, sizeof(a)));
	OK(mknod("null", S_IFCHR | 0666, makedev(1, 3)));
	OK(lstat("null", &st));
	EQ(st.st_rdev, makedev(1, 3));
	OK(mknod("block", S_IFBLK | 0600, makedev(259, 70000)));
	OK(lstat("block", &st));
	EQ(st.st_rdev, makedev(259, 70000));
	OK(mknod("plain", S_IFREG | 0604, 0));
	OK(lstat("plain", &st));
	EQ(st.st_mode, S_IFREG | 0604);
	w = open("null", O_WRONLY);
	if (w >= 0)
		EQ(write(w, "x", 1), 1);
	else
		EQ(errno, EACCES);	/* mounted nodev */
}

static void attributes(void)
{
	struct timespec t[2] = { { 1, 999999999 }, { 4102444800, 1 } };
	struct stat a, b;

	ops_make("f", 10, 1);
	OK(chmod("f", 07751));
	OK(stat("f", &a));
	EQ(a.st_mode, S_IFREG | 07751);
	OK(chown("f", 1234, 4321));
	OK(stat("f", &a));
	EQ(a.st_uid, 1234);
	EQ(a.st_gid, 4321);
	OK(lchown("f", -1, 4000000000u));
	OK(stat("f", &a));
	EQ(a.st_uid, 1234);
	EQ(a.st_gid, 4000000000u);
	OK(utimensat(AT_FDCWD, "f", t, 0));
	OK(stat("f", &a));
	EQ(a.st_atim.tv_sec, 1);
	EQ(a.st_atim.tv_nsec, 999999999);
	EQ(a.st_mtim.tv_sec, 4102444800);
	EQ(a.st_mtim.tv_nsec, 1);
	t[0].tv_nsec = UTIME_OMIT;
	t[1].tv_sec = -5;
	OK(utimensat(AT_FDCWD, "f", t, 0));
	OK(stat("f", &b));
	EQ(b.st_atim.tv_nsec, 999999999);
	EQ(b.st_mtim.tv_sec, -5);
	WANT(later(b.st_ctim, a.st_ctim) || !memcmp(&a.st_ctim, &b.st_ctim, sizeof(a.st_ctim)));
	t[0].tv_nsec = t[1].tv_nsec = UTIME_NOW;
	usleep(20000);
	OK(utimensat(AT_FDCWD, "f", t, 0));
	OK(stat("f", &b));
	WANT(later(b.st_mtim, a.st_ctim));
	OK(symlink("f", "s"));
	t[0] = t[1] = (struct timespec){ 77, 88 };
	OK(utimensat(AT_FDCWD, "s", t, AT_SYMLINK_NOFOLLOW));
	OK(lstat("s", &a));
	EQ(a.st_mtim.tv_sec, 77);
	OK(lchown("s", 5, 6));
	OK(lstat("s", &a));
	EQ(a.st_uid, 5);
	OK(stat("f", &a));
	EQ(a.st_uid, 1234);
}

/* The times of a directory are those of its entries' comings and goings. */
static void directory_times(void)
{
	struct stat a, b;

#define STEP(what) do { \
	OK(stat("d", &a)); \
	usleep(15000); \
	what; \
	OK(stat("d", &b)); \
	if (!later(b.st_mtim, a.st_mtim) || !later(b.st_ctim, a.st_ctim)) \
		FAIL("%s does not change the directory's times", #what); \
} while (0)
	OK(mkdir("d", 0755));
	STEP(ops_touch("d/f", 0644));
	STEP(OK(link("d/f", "d/g")));
	STEP(OK(rename("d/g", "d/h")));
	STEP(OK(symlink("x", "d/s")));
	STEP(OK(mkdir("d/e", 0755)));
	STEP(OK(rmdir("d/e")));
	STEP(OK(rename("d/h", "h")));
	STEP(OK(unlink("d/f")));
	OK(stat("d", &a));
	usleep(15000);
	EQ(entries("d"), 1);
	OK(stat("d", &b));
	WANT(!memcmp(&a.st_mtim, &b.st_mtim, sizeof(a.st_mtim)));
}

#define MANY 2000

static void name_of(char *name, int i)
{
	sprintf(name, "entry-%d", i);
}

/* Every entry once, types right, positions usable. */
static void listing(void)
{
	static bool seen[MANY];
	long at[MANY + 3];
	char name[32], first[MANY + 2][256];
	struct dirent *e;
	struct stat st;
	int i, n = 0;
	DIR *d;

	OK(mkdir("d", 0755));
	OK(chdir("d"));
	for (i = 0; i < MANY; i++) {
		name_of(name, i);
		if (i % 10 == 1)
			OK(symlink("x", name));
		else if (i % 10 == 2)
			OK(mkdir(name, 0755));
		else
			OK(mknod(name, S_IFREG | 0644, 0));
	}
	d = opendir(".");
	WANT(d);
	for (at[n] = telldir(d); (e = readdir(d)); at[n] = telldir(d)) {
		strcpy(first[n], e->d_name);
		n++;
		OK(lstat(e->d_name, &st));
		EQ(st.st_ino, e->d_ino);
		WANT(e->d_type == DT_UNKNOWN || e->d_type == IFTODT(st.st_mode));
		if (sscanf(e->d_name, "entry-%d", &i) == 1) {
			WANT(i >= 0 && i < MANY && !seen[i]);
			seen[i] = true;
		}
	}
	EQ(n, MANY + 2);
	for (i = n - 1; i >= 0; i -= 97) {
		seekdir(d, at[i]);
		e = readdir(d);
		WANT(e && !strcmp(e->d_name, first[i]));
	}
	rewinddir(d);
	for (n = 0; readdir(d); n++)
		;
	EQ(n, MANY + 2);
	closedir(d);
}

/*
 * Removing while listing, as rm -r does, leaves nothing, and what was removed is not there because it
 * was listed later; what stays all the time is listed exactly once. So many do not fit into one
 * call of getdents(2).
 */
static void listing_while_changing(void)
{
	int i, n = 0, stay = 0, seen[MANY] = { 0 };
	char name[32], other[40];
	struct dirent *e;
	struct stat st;
	DIR *d;

	OK(mkdir("d", 0755));
	OK(chdir("d"));
	for (i = 0; i < MANY; i++) {
		name_of(name, i);
		OK(mknod(name, S_IFREG | 0644, 0));
	}
	d = opendir(".");
	WANT(d);
	while ((e = readdir(d))) {
		if (sscanf(e->d_name, "entry-%d", &i) != 1)
			continue;
		n++;
		if (i % 2 == 0) {
			seen[i]++;
			/* One that comes and one that goes, beside it. */
			snprintf(other, sizeof(other), "new-%d", i);
			OK(mknod(other, S_IFREG | 0644, 0));
			name_of(name, i + 1);
			if (unlink(name) < 0)
				EQ(errno, ENOENT);
		}
		WANT(n < 2 * MANY);
	}
	for (i = 0; i < MANY; i += 2) {
		if (seen[i] != 1)
			FAIL("entry %d was there all the time but was listed %d times", i, seen[i]);
		stay++;
		name_of(name, i + 1);
		ERR(lstat(name, &st), ENOENT);
	}
	rewinddir(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			OK(unlink(e->d_name));
	closedir(d);
	EQ(stay, MANY / 2);
	EQ(entries("."), 0);
	OK(rmdir("../d"));
}

static void inode_numbers(void)
{
	struct stat a, b;

	ops_touch("a", 0644);
	ops_touch("b", 0644);
	OK(stat("a", &a));
	OK(stat("b", &b));
	WANT(a.st_ino != b.st_ino && a.st_dev == b.st_dev && a.st_ino && b.st_ino);
	OK(unlink("a"));
	ops_touch("a", 0644);
	OK(stat("a", &b));
	OK(stat(".", &b));
	EQ(a.st_dev, b.st_dev);
	/* "." in a listing of the mount has its number too. */
	OK(stat("./", &a));
	EQ(a.st_ino, b.st_ino);
}

/* The next event of @h is @mask, of @name. */
static void event_is(int h, uint32_t mask, const char *name)
{
	static char buf[4096] __attribute__((aligned(8)));
	static size_t at, len;
	struct inotify_event *e;

	if (at == len) {
		ssize_t n = read(h, buf, sizeof(buf));

		OK(n);
		at = 0;
		len = n;
	}
	e = (struct inotify_event *)(buf + at);
	at += sizeof(*e) + e->len;
	if ((e->mask & ~IN_ISDIR) != mask || strcmp(e->len ? e->name : "", name))
		FAIL("event %#x of '%s', should be %#x of '%s'", e->mask, e->len ? e->name : "", mask, name);
}

static void watches(void)
{
	int h, fd;

	OK(mkdir("d", 0755));
	h = inotify_init1(IN_NONBLOCK);
	OK(h);
	OK(inotify_add_watch(h, "d", IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_MOVE | IN_DELETE | IN_CLOSE_WRITE | IN_DELETE_SELF));
	fd = ops_open("d/f", O_WRONLY | O_CREAT, 0644);
	event_is(h, IN_CREATE, "f");
	ops_pwrite(fd, "x", 1, 0);
	event_is(h, IN_MODIFY, "f");
	OK(close(fd));
	event_is(h, IN_CLOSE_WRITE, "f");
	OK(chmod("d/f", 0600));
	event_is(h, IN_ATTRIB, "f");
	OK(rename("d/f", "d/g"));
	event_is(h, IN_MOVED_FROM, "f");
	event_is(h, IN_MOVED_TO, "g");
	OK(mkdir("d/e", 0755));
	event_is(h, IN_CREATE, "e");
	OK(rmdir("d/e"));
	event_is(h, IN_DELETE, "e");
	OK(unlink("d/g"));
	event_is(h, IN_DELETE, "g");
	OK(rmdir("d"));
	event_is(h, IN_DELETE_SELF, "");
}

const struct ops_check ops_names[] = {
	{ "mkdir, rmdir and their errors", directories },
	{ "a current directory that was removed", removed_cwd },
	{ "open and its errors", opens },
	{ "unlink of an open file", unlinked_open },
	{ "files without a name", tmpfiles },
	{ "whiteouts", whiteouts },
	{ "names of 255 bytes, not of 256", name_lengths },
	{ "names of all bytes", name_bytes },
	{ "rename and its errors", renames },
	{ "rename of directories, loops refused", rename_directories },
	{ "renameat2 flags", rename_flags },
	{ "file handles", handles },
	{ "rename over an open file", rename_open },
	{ "hard links", hard_links },
	{ "symbolic links", symbolic_links },
	{ "deep paths", deep_paths },
	{ "fifos, sockets, devices", special_files },
	{ "mode, owner, times with nanoseconds", attributes },
	{ "times of directories", directory_times },
	{ "listing: each entry once, seekdir", listing },
	{ "listing while entries come and go", listing_while_changing },
	{ "inode numbers", inode_numbers },
	{ "inotify", watches },
	{ NULL, NULL }
};
