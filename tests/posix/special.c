// SPDX-License-Identifier: GPL-2.0-only
/*
 * special.c - fifos, sockets and devices; files that have lost their names and are still open; what
 * stat and statx say; mappings and their errors.
 */
#include "conform.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

static void pipes(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = "sock" };
	int h, g, s, c;
	char b[8] = "";
	struct stat st;

	if (live()) {
		make("fifo", T_FIFO);
		make("chr", T_CHR);
		make("blk", T_BLK);
	}
	if (row("special/a fifo carries bytes")) {
		h = open("fifo", O_RDONLY | O_NONBLOCK);
		OK(sys(h));
		g = open("fifo", O_WRONLY | O_NONBLOCK);
		OK(sys(g));
		EQ(write(g, "abc", 3), 3);
		EQ(read(h, b, 8), 3);
		WANT(!memcmp(b, "abc", 3));
		close(g);
		EQ(read(h, b, 8), 0);
		close(h);
		OK(fs->stat("fifo", &st));
		EQ(st.st_size, 0);
	}
	if (row("special/a fifo without a reader: ENXIO"))
		GIVES(sys(open("fifo", O_WRONLY | O_NONBLOCK)), ENXIO);
	if (row("special/a fifo is no place: ESPIPE")) {
		h = open("fifo", O_RDWR);
		GIVES(sys(pread(h, b, 1, 0)), ESPIPE);
		GIVES(sys(pwrite(h, b, 1, 0)), ESPIPE);
		GIVES(sys(ftruncate(h, 0)), EINVAL);
		GIVES(sys(fsync(h)), EINVAL);
		close(h);
	}
	if (row("special/a fifo that lost its name goes on")) {
		make("fifo2", T_FIFO);
		h = open("fifo2", O_RDWR);
		OK(fs->unlink("fifo2"));
		EQ(write(h, "x", 1), 1);
		EQ(read(h, b, 1), 1);
		close(h);
	}
	if (row("special/a device is the device")) {
		h = open("chr", O_RDWR);
		OK(sys(h));
		EQ(write(h, "gone", 4), 4);
		EQ(read(h, b, 4), 0);
		close(h);
	}
	if (row("special/a device's numbers")) {
		OK(fs->stat("chr", &st));
		EQ(major(st.st_rdev), 1);
		EQ(minor(st.st_rdev), 3);
		OK(fs->stat("blk", &st));
		EQ(major(st.st_rdev), 240);
		EQ(minor(st.st_rdev), 77);
	}
	if (row("special/a device that no driver has: ENXIO"))
		GIVES(sys(open("blk", O_RDONLY)), ENXIO);
	if (row("special/bind makes a socket, connect finds it")) {
		s = socket(AF_UNIX, SOCK_STREAM, 0);
		OK(sys(bind(s, (struct sockaddr *)&sun, sizeof(sun))));
		OK(fs->stat("sock", &st));
		EQ(st.st_mode & S_IFMT, S_IFSOCK);
		OK(sys(listen(s, 1)));
		c = socket(AF_UNIX, SOCK_STREAM, 0);
		OK(sys(connect(c, (struct sockaddr *)&sun, sizeof(sun))));
		close(c);
		close(s);
	}
	if (row("special/bind over a name: EADDRINUSE")) {
		s = socket(AF_UNIX, SOCK_STREAM, 0);
		GIVES(sys(bind(s, (struct sockaddr *)&sun, sizeof(sun))), EADDRINUSE);
		close(s);
	}
	if (row("special/connect without a listener: ECONNREFUSED")) {
		c = socket(AF_UNIX, SOCK_STREAM, 0);
		GIVES(sys(connect(c, (struct sockaddr *)&sun, sizeof(sun))), ECONNREFUSED);
		close(c);
	}
	if (row("special/connect without the right to write: EACCES")) {
		OK(fs->chmod("sock", 0644));
		be(&OTHER);
		c = socket(AF_UNIX, SOCK_STREAM, 0);
		GIVES(sys(connect(c, (struct sockaddr *)&sun, sizeof(sun))), EACCES);
		close(c);
	}
}

/* Is it there? Else the row fails. */
static bool mapped(const char *p)
{
	WANT(p != MAP_FAILED);
	return p != MAP_FAILED;
}

/* A file without names lives until it is closed. */
static void nameless(void)
{
	struct stat st;
	char c[8] = "";
	int h;

	if (row("nameless/read and written")) {
		make_file("f", 5, 0644);
		h = fs->open("f", O_RDWR, 0);
		OK(fs->unlink("f"));
		EQ(fs->pread(h, c, 8, 0), 5);
		EQ(fs->pwrite(h, "0123456789", 10, 100000), 10);
		EQ(fs->pread(h, c, 8, 100002), 8);
		WANT(!memcmp(c, "23456789", 8));
		OK(fs->fstat(h, &st));
		EQ(st.st_size, 100010);
		EQ(st.st_nlink, 0);
		OK(fs->close(h));
	}
	if (row("nameless/its mode, owner, times and size can be set")) {
		const struct timespec ts[2] = { { 1000000000, 1 }, { 1000000002, 3 } };

		make_file("f", 5, 0644);
		h = fs->open("f", O_RDWR, 0);
		OK(fs->unlink("f"));
		OK(fs->fchmod(h, 0421));
		OK(fs->fchown(h, 5, 6));
		OK(fs->ftruncate(h, 3));
		OK(fs->futimens(h, ts));
		OK(fs->fstat(h, &st));
		EQ(st.st_mode & 07777, 0421);
		EQ(st.st_uid, 5);
		EQ(st.st_size, 3);
		EQ(st.st_mtim.tv_sec, 1000000002);
		OK(fs->fsync(h));
		OK(fs->close(h));
	}
	if (row("nameless/attributes")) {
		make_file("f", 5, 0644);
		h = fs->open("f", O_RDWR, 0);
		OK(fs->fsetxattr(h, "user.a", "b", 1, 0));
		OK(fs->unlink("f"));
		EQ(fs->fgetxattr(h, "user.a", c, 8), 1);
		OK(fs->fsetxattr(h, "user.a", "bcd", 3, 0));
		EQ(fs->fgetxattr(h, "user.a", c, 8), 3);
		OK(fs->fremovexattr(h, "user.a"));
		OK(fs->close(h));
	}
	if (row("nameless/a new file of its name is another")) {
		make_file("f", 5, 0644);
		h = fs->open("f", O_RDWR, 0);
		OK(fs->unlink("f"));
		make_file("f", 2, 0644);
		OK(fs->fstat(h, &st));
		EQ(st.st_size, 5);
		WANT(st.st_ino != ino_of("f"));
		OK(fs->close(h));
		OK(fs->stat("f", &st));
		EQ(st.st_size, 2);
	}
	if (row("nameless/two descriptors, one closed")) {
		int g;

		make_file("f", 5, 0644);
		h = fs->open("f", O_RDWR, 0);
		g = fs->open("f", O_RDONLY, 0);
		OK(fs->unlink("f"));
		OK(fs->close(h));
		EQ(fs->pread(g, c, 8, 0), 5);
		OK(fs->close(g));
	}
	if (on_vfs() && row("nameless/opened anew through /proc")) {
		char proc[64];
		int g;

		make_file("f", 5, 0644);
		h = open("f", O_RDWR);
		OK(fs->unlink("f"));
		snprintf(proc, sizeof(proc), "/proc/self/fd/%d", h);
		g = open(proc, O_RDONLY);
		OK(sys(g));
		close(h);
		EQ(read(g, c, 8), 5);
		close(g);
	}
	if (on_vfs() && row("nameless/a mapping of it")) {
		char *p;

		make_file("f", 5, 0644);
		h = open("f", O_RDWR);
		p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, h, 0);
		OK(fs->unlink("f"));
		close(h);
		if (mapped(p)) {
			EQ(p[0], 'x');
			p[0] = 'y';
			OK(sys(msync(p, 4096, MS_SYNC)));
			munmap(p, 4096);
		}
	}
}

static void stats(void)
{
	static const struct { const char *name; unsigned int mask; } masks[] = {
		{ "STATX_TYPE", STATX_TYPE }, { "STATX_MODE", STATX_MODE }, { "STATX_NLINK", STATX_NLINK },
		{ "STATX_UID", STATX_UID }, { "STATX_GID", STATX_GID }, { "STATX_ATIME", STATX_ATIME },
		{ "STATX_MTIME", STATX_MTIME }, { "STATX_CTIME", STATX_CTIME }, { "STATX_INO", STATX_INO },
		{ "STATX_SIZE", STATX_SIZE }, { "STATX_BLOCKS", STATX_BLOCKS }, { "STATX_BTIME", STATX_BTIME },
		{ "STATX_BASIC_STATS", STATX_BASIC_STATS },
	};
	static const struct { const char *name; int flags; } syncs[] = {
		{ "as stat", AT_STATX_SYNC_AS_STAT }, { "forced", AT_STATX_FORCE_SYNC }, { "cached", AT_STATX_DONT_SYNC },
	};
	enum type t;
	struct statx sx;
	struct stat st;
	size_t i, k;

	if (live())
		make_targets(".");
	for (t = T_FILE; t < T_MAX; t++) {
		if (!row("stat/a %s", type_name[t]))
			continue;
		make("x", t);
		OK(fs->lstat("x", &st));
		EQ(st.st_mode & S_IFMT, type_ifmt(t));
		EQ(st.st_nlink, t == T_DIR || t == T_FULLDIR ? 2 : 1);
		EQ(st.st_uid, 0);
		EQ(st.st_gid, 0);
		WANT(st.st_ino);
		WANT(st.st_blksize >= 512);
		if (t == T_FILE)
			EQ(st.st_size, 5);
		else if (type_ifmt(t) == S_IFLNK)
			EQ(st.st_size, t == T_LOOP ? 1 : t == T_SYMFILE ? 5 : t == T_SYMDIR ? 4 : 8);
		else if (t >= T_FIFO)
			EQ(st.st_size, 0);
		wipe("x");
	}
	for (i = 0; i < ARRAY_SIZE(masks); i++) {
		for (k = 0; k < ARRAY_SIZE(syncs); k++) {
			if (!row("statx/%s, %s", masks[i].name, syncs[k].name))
				continue;
			memset(&sx, 0x55, sizeof(sx));
			OK(fs->stat("tfile", &st));
			OK(sys(statx(AT_FDCWD, "tfile", syncs[k].flags, masks[i].mask, &sx)));
			EQ(sx.stx_mask & masks[i].mask, masks[i].mask);
			if (masks[i].mask & (STATX_TYPE | STATX_MODE))
				EQ(sx.stx_mode & (masks[i].mask & STATX_TYPE ? S_IFMT : 07777),
				   st.st_mode & (masks[i].mask & STATX_TYPE ? S_IFMT : 07777));
			if (masks[i].mask & STATX_SIZE)
				EQ(sx.stx_size, st.st_size);
			if (masks[i].mask & STATX_INO)
				EQ(sx.stx_ino, st.st_ino);
			if (masks[i].mask & STATX_NLINK)
				EQ(sx.stx_nlink, st.st_nlink);
			if (masks[i].mask & STATX_MTIME)
				EQ(sx.stx_mtime.tv_nsec, st.st_mtim.tv_nsec);
			if (masks[i].mask & STATX_BLOCKS)
				EQ(sx.stx_blocks, st.st_blocks);
		}
	}
	if (row("statx/the birth time stays"))  {
		struct statx was;

		OK(sys(statx(AT_FDCWD, "tfile", 0, STATX_BTIME, &was)));
		later_than("tfile");
		OK(fs->chmod("tfile", 0600));
		OK(fs->utimens("tfile", NULL));
		OK(fs->rename("tfile", "moved", 0));
		OK(sys(statx(AT_FDCWD, "moved", 0, STATX_BTIME, &sx)));
		EQ(sx.stx_btime.tv_sec, was.stx_btime.tv_sec);
		EQ(sx.stx_btime.tv_nsec, was.stx_btime.tv_nsec);
		OK(fs->rename("moved", "tfile", 0));
	}
	if (row("statx/an unknown reserved mask: EINVAL"))
		GIVES(sys(statx(AT_FDCWD, "tfile", 0, STATX__RESERVED, &sx)), EINVAL);
	if (row("statx/both ways to be in sync: EINVAL"))
		GIVES(sys(statx(AT_FDCWD, "tfile", AT_STATX_SYNC_TYPE, STATX_SIZE, &sx)), EINVAL);
	if (row("statx/unknown flags: EINVAL"))
		GIVES(sys(statx(AT_FDCWD, "tfile", 0x80000, STATX_SIZE, &sx)), EINVAL);
	if (row("statx/AT_EMPTY_PATH of a descriptor")) {
		int h = open("tfile", O_PATH);

		OK(sys(statx(h, "", AT_EMPTY_PATH, STATX_SIZE, &sx)));
		EQ(sx.stx_size, 5);
		close(h);
	}
	if (row("statx/an empty path: ENOENT"))
		GIVES(sys(statx(AT_FDCWD, "", 0, STATX_SIZE, &sx)), ENOENT);
	if (row("statvfs/what it says is possible")) {
		struct statvfs v;

		OK(sys(statvfs(".", &v)));
		WANT(v.f_bsize && v.f_frsize && v.f_blocks && v.f_namemax == 255);
		WANT(v.f_bfree <= v.f_blocks && v.f_bavail <= v.f_bfree);
		WANT(v.f_ffree <= v.f_files);
	}
	if (row("statvfs/fstatvfs says the same")) {
		struct statvfs v, w;
		int h = open("tfile", O_RDONLY);

		OK(sys(statvfs(".", &v)));
		OK(sys(fstatvfs(h, &w)));
		EQ(v.f_blocks, w.f_blocks);
		EQ(v.f_fsid, w.f_fsid);
		EQ(v.f_flag, w.f_flag);
		close(h);
	}
	if (row("stat/all of it is on one device")) {
		struct stat a;

		OK(fs->stat(".", &st));
		OK(fs->stat("tfile", &a));
		EQ(st.st_dev, a.st_dev);
		OK(fs->stat("tdir", &a));
		EQ(st.st_dev, a.st_dev);
	}
}

static int map(int h, size_t n, int prot, int flags, off_t at)
{
	char *p = mmap(NULL, n, prot, flags, h, at);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, n);
	return 0;
}

/* Which signal touching @p gives: 0 for none. */
static int touch(volatile char *p, bool store)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		signal(SIGBUS, SIG_DFL);
		signal(SIGSEGV, SIG_DFL);
		if (store)
			*p = 1;
		else
			(void)*p;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void mappings(void)
{
	static const struct { const char *name; int flags; } opens[] = {
		{ "O_RDONLY", O_RDONLY }, { "O_WRONLY", O_WRONLY }, { "O_RDWR", O_RDWR }, { "O_PATH", O_PATH },
	};
	static const struct { const char *name; int prot; } prots[] = {
		{ "none", PROT_NONE }, { "read", PROT_READ }, { "write", PROT_WRITE }, { "read and write", PROT_READ | PROT_WRITE },
		{ "read and execute", PROT_READ | PROT_EXEC },
	};
	static const struct { const char *name; int flags; } kinds[] = {
		{ "MAP_SHARED", MAP_SHARED }, { "MAP_PRIVATE", MAP_PRIVATE },
	};
	size_t o, p, k;
	char *m;
	int h;

	if (live()) {
		make_file("f", 5000, 0644);
		make_file("empty", 0, 0644);
		make_targets(".");
	}
	for (o = 0; o < ARRAY_SIZE(opens); o++)
	for (k = 0; k < ARRAY_SIZE(kinds); k++)
	for (p = 0; p < ARRAY_SIZE(prots); p++) {
		int err = 0;

		/* A mapping reads, whatever it is for; a shared one that writes, writes. */
		if (opens[o].flags == O_PATH)
			err = EBADF;
		else if (opens[o].flags == O_WRONLY)
			err = EACCES;
		else if (opens[o].flags == O_RDONLY && kinds[k].flags == MAP_SHARED && (prots[p].prot & PROT_WRITE))
			err = EACCES;
		if (!row("mmap/%s of %s to %s: %s", kinds[k].name, opens[o].name, prots[p].name, err_name(err)))
			continue;
		h = open("f", opens[o].flags);
		GIVES(map(h, 4096, prots[p].prot, kinds[k].flags, 0), err);
		close(h);
	}
	if (live())
		h = open("f", O_RDWR);
	else
		h = -1;
	if (row("mmap/no bytes: EINVAL"))
		GIVES(map(h, 0, PROT_READ, MAP_SHARED, 0), EINVAL);
	if (row("mmap/an offset that is not a page's: EINVAL"))
		GIVES(map(h, 4096, PROT_READ, MAP_SHARED, 100), EINVAL);
	if (row("mmap/neither shared nor private: EINVAL"))
		GIVES(map(h, 4096, PROT_READ, 0, 0), EINVAL);
	if (row("mmap/too much: ENOMEM"))
		GIVES(map(h, (size_t)1 << 62, PROT_READ, MAP_SHARED, 0), ENOMEM);
	if (row("mmap/beyond the end"))
		OK(map(h, 4096, PROT_READ, MAP_SHARED, 1 << 20));
	if (row("mmap/a directory: ENODEV")) {
		int d = open("tdir", O_RDONLY);

		GIVES(map(d, 4096, PROT_READ, MAP_SHARED, 0), ENODEV);
		close(d);
	}
	if (row("mmap/no descriptor: EBADF"))
		GIVES(map(-1, 4096, PROT_READ, MAP_SHARED, 0), EBADF);
	m = live() ? mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, h, 0) : NULL;
	if (row("mmap/the last page has zeros after the end") && mapped(m)) {
		EQ(m[4999], 'x');
		EQ(m[5000], 0);
		EQ(m[8191], 0);
	}
	if (row("mmap/a page beyond the end: SIGBUS, reading") && mapped(m))
		EQ(touch(m + 8192, false), SIGBUS);
	if (row("mmap/a page beyond the end: SIGBUS, writing") && mapped(m))
		EQ(touch(m + 8192, true), SIGBUS);
	if (row("mmap/what is stored is read, and the other way round") && mapped(m)) {
		char c = 0;

		m[100] = 'm';
		EQ(pread(h, &c, 1, 100), 1);
		EQ(c, 'm');
		EQ(pwrite(h, "w", 1, 101), 1);
		EQ(m[101], 'w');
	}
	if (row("mmap/a store after the end is not in the file") && mapped(m)) {
		char c = 'c';

		m[6000] = 'z';
		OK(sys(msync(m, 3 * 4096, MS_SYNC)));
		OK(sys(ftruncate(h, 7000)));
		EQ(pread(h, &c, 1, 6000), 1);
		EQ(c, 0);
	}
	if (row("mmap/a file made longer is there") && mapped(m)) {
		OK(sys(ftruncate(h, 3 * 4096)));
		EQ(touch(m + 8192, false), 0);
	}
	if (row("mmap/a file cut shorter is not: SIGBUS") && mapped(m)) {
		OK(sys(ftruncate(h, 4096)));
		EQ(touch(m + 4096, false), SIGBUS);
		EQ(m[0], 'x');
	}
	if (row("mmap/what was cut off is zeros when it comes back") && mapped(m)) {
		m[4095] = 'q';
		OK(sys(ftruncate(h, 10)));
		OK(sys(ftruncate(h, 8192)));
		EQ(m[4095], 0);
		EQ(m[9], 'x');
	}
	if (row("mmap/a private one does not change the file")) {
		char *q = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, h, 0), c;

		if (mapped(q)) {
			q[0] = 'p';
			OK(sys(pread(h, &c, 1, 0)));
			EQ(c, 'x');
			munmap(q, 4096);
		}
	}
	if (row("mmap/it outlives the descriptor, not its rights")) {
		int r = open("f", O_RDONLY);
		char *q = mmap(NULL, 4096, PROT_READ, MAP_SHARED, r, 0);

		close(r);
		if (mapped(q)) {
			EQ(q[0], 'x');
			GIVES(sys(mprotect(q, 4096, PROT_READ | PROT_WRITE)), EACCES);
			EQ(touch(q, true), SIGSEGV);
			munmap(q, 4096);
		}
	}
	if (row("mmap/msync: flags that contradict: EINVAL") && mapped(m))
		GIVES(sys(msync(m, 4096, MS_SYNC | MS_ASYNC)), EINVAL);
	if (row("mmap/msync of what is not mapped: ENOMEM")) {
		char *q = mmap(NULL, 8192, PROT_READ, MAP_SHARED, h, 0);

		if (mapped(q)) {
			munmap(q + 4096, 4096);
			GIVES(sys(msync(q, 8192, MS_SYNC)), ENOMEM);
			munmap(q, 4096);
		}
	}
	if (live()) {
		if (m != MAP_FAILED)
			munmap(m, 3 * 4096);
		close(h);
	}
}

const struct table tables_special[] = {
	{ "special", pipes, true },
	{ "nameless", nameless },
	{ "stat", stats, true },
	{ "mmap", mappings, true },
	{ NULL },
};
