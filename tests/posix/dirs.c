// SPDX-License-Identifier: GPL-2.0-only
/*
 * dirs.c - reading directories: that every name is given once, whatever else happens meanwhile;
 * places in them that can be gone back to; types and inode numbers.
 */
#include "conform.h"
#include <dirent.h>
#include <sys/syscall.h>

#define N 300		/* more than one reply or block of any file system holds */

static char seen[N];

/* The number of name nK, or -1. */
static int number(const char *name)
{
	int k;

	return name[0] == 'n' && sscanf(name + 1, "%d", &k) == 1 && k >= 0 && k < N ? k : -1;
}

static void fill(const char *dir)
{
	char path[64];
	int i;

	OK(fs->mkdir(dir, 0755));
	for (i = 0; i < N; i++) {
		snprintf(path, sizeof(path), "%s/n%d", dir, i);
		OK(fs->mknod(path, S_IFREG | 0644, 0));
	}
}

/* Reads on until the end or @max entries; names that come twice are wrong. */
static int read_on(int h, int max)
{
	struct entry e;
	int n = 0, r, k;

	while (n < max && (r = fs->readdir(h, &e)) == 1) {
		n++;
		k = number(e.name);
		if (k >= 0 && seen[k]++)
			wrong(__FILE__, __LINE__, "%s came twice", e.name);
	}
	if (n < max)
		EQ(r, 0);
	return n;
}

static int seen_of(int from, int to)
{
	int i, n = 0;

	for (i = from; i < to; i++)
		n += !!seen[i];
	return n;
}

static void reading(void)
{
	struct entry e;
	char path[300];
	int h, i, r, dots;

	if (live()) {
		fill("d");
		OK(fs->mkdir("empty", 0755));
	}
	if (row("readdir/an empty directory has dot and dotdot")) {
		h = fs->opendir("empty");
		OK(h);
		dots = 0;
		while ((r = fs->readdir(h, &e)) == 1) {
			if (!strcmp(e.name, ".")) {
				dots |= 1;
				EQ(e.ino, ino_of("empty"));
			} else if (!strcmp(e.name, "..")) {
				dots |= 2;
				EQ(e.ino, ino_of("."));
			} else {
				wrong(__FILE__, __LINE__, "%s is not there", e.name);
			}
		}
		EQ(r, 0);
		EQ(dots, 3);
		OK(fs->closedir(h));
	}
	if (row("readdir/every name once")) {
		memset(seen, 0, sizeof(seen));
		h = fs->opendir("d");
		EQ(read_on(h, N + 100), N + 2);
		EQ(seen_of(0, N), N);
		EQ(fs->readdir(h, &e), 0);
		OK(fs->closedir(h));
	}
	if (row("readdir/inode numbers are stat's")) {
		h = fs->opendir("d");
		for (i = 0; i < 20 && fs->readdir(h, &e) == 1; i++) {
			snprintf(path, sizeof(path), "d/%s", e.name);
			EQ(e.ino, ino_of(path));
		}
		OK(fs->closedir(h));
	}
	if (row("readdir/rewound, from the start, with what is new")) {
		memset(seen, 0, sizeof(seen));
		h = fs->opendir("d");
		read_on(h, 50);
		OK(fs->mknod("d/new", S_IFREG | 0644, 0));
		fs->seekdir(h, 0);
		memset(seen, 0, sizeof(seen));
		EQ(read_on(h, N + 100), N + 3);
		EQ(seen_of(0, N), N);
		OK(fs->closedir(h));
		OK(fs->unlink("d/new"));
	}
	for (i = 0; i < 10; i++) {
		int64_t at;
		char first[256];

		if (!row("readdir/back to the place after %d entries", 1 + i * 33))
			continue;
		memset(seen, 0, sizeof(seen));
		h = fs->opendir("d");
		EQ(read_on(h, 1 + i * 33), 1 + i * 33);
		at = fs->telldir(h);
		if (fs->readdir(h, &e) != 1)
			strcpy(e.name, "");
		strcpy(first, e.name);
		read_on(h, N);
		fs->seekdir(h, at);
		EQ(fs->telldir(h), at);
		EQ(fs->readdir(h, &e), 1);
		WANT(!strcmp(first, e.name));
		OK(fs->closedir(h));
	}
	if (row("readdir/all removed meanwhile: those that stay come once")) {
		memset(seen, 0, sizeof(seen));
		h = fs->opendir("d");
		read_on(h, 20);
		/* Those with odd numbers go. */
		for (i = 1; i < N; i += 2) {
			snprintf(path, sizeof(path), "d/n%d", i);
			OK(fs->unlink(path));
		}
		read_on(h, N + 100);
		for (i = 0; i < N; i += 2)
			EQ(seen[i], 1);
		OK(fs->closedir(h));
	}
	if (row("readdir/many made meanwhile: those that were there come once")) {
		memset(seen, 0, sizeof(seen));
		h = fs->opendir("d");
		read_on(h, 20);
		for (i = 1; i < N; i += 2) {
			snprintf(path, sizeof(path), "d/n%d", i);
			OK(fs->mknod(path, S_IFREG | 0644, 0));
		}
		read_on(h, 2 * N);
		for (i = 0; i < N; i += 2)
			EQ(seen[i], 1);
		OK(fs->closedir(h));
	}
	if (row("readdir/removing each as it comes leaves none")) {
		h = fs->opendir("d");
		while (fs->readdir(h, &e) == 1) {
			if (number(e.name) < 0)
				continue;
			snprintf(path, sizeof(path), "d/%s", e.name);
			OK(fs->unlink(path));
		}
		OK(fs->closedir(h));
		OK(fs->rmdir("d"));
	}
	if (row("opendir/a file: ENOTDIR")) {
		make("f", T_FILE);
		GIVES(fs->opendir("f"), ENOTDIR);
	}
	if (row("opendir/a fifo: ENOTDIR")) {
		make("fifo", T_FIFO);
		GIVES(fs->opendir("fifo"), ENOTDIR);
	}
	if (row("opendir/a removed one that is open has no entries")) {
		OK(fs->mkdir("gone", 0755));
		h = fs->opendir("gone");
		OK(fs->rmdir("gone"));
		while ((r = fs->readdir(h, &e)) == 1)
			WANT(!strcmp(e.name, ".") || !strcmp(e.name, ".."));
		WANT(r == 0 || r == -ENOENT);
		OK(fs->closedir(h));
	}
	if (row("opendir/one that is renamed is read on")) {
		OK(fs->mkdir("before", 0755));
		make("before/file", T_FILE);
		h = fs->opendir("before");
		OK(fs->rename("before", "after", 0));
		for (i = 0; fs->readdir(h, &e) == 1; i++)
			;
		EQ(i, 3);
		OK(fs->closedir(h));
		wipe("after");
	}
}

static void by_descriptor(void)
{
	enum type t;
	struct stat st;
	char c[4096];
	int h;

	if (live())
		make_targets(".");
	for (t = T_FILE; t < T_MAX; t++) {
		static const unsigned char dt[T_MAX] = {
			0, DT_REG, DT_DIR, DT_DIR, DT_LNK, DT_LNK, DT_LNK, DT_LNK, DT_FIFO, DT_SOCK, DT_CHR, DT_BLK
		};
		struct dirent *de;
		bool found = false;
		DIR *d;

		if (!row("dirent/d_type of a %s", type_name[t]))
			continue;
		OK(fs->mkdir("typed", 0755));
		make("typed/x", t);
		d = opendir("typed");
		while ((de = readdir(d))) {
			if (strcmp(de->d_name, "x"))
				continue;
			found = true;
			WANT(de->d_type == dt[t] || de->d_type == DT_UNKNOWN);
		}
		WANT(found);
		closedir(d);
		wipe("typed");
	}
	if (row("directory/read: EISDIR")) {
		h = open("tdir", O_RDONLY);
		GIVES(sys(read(h, c, 10)), EISDIR);
		GIVES(sys(pread(h, c, 10, 0)), EISDIR);
		close(h);
	}
	if (row("directory/write: EBADF")) {
		h = open("tdir", O_RDONLY);
		GIVES(sys(write(h, c, 10)), EBADF);
		close(h);
	}
	if (row("directory/ftruncate: EINVAL")) {
		h = open("tdir", O_RDONLY);
		GIVES(sys(ftruncate(h, 0)), EINVAL);
		close(h);
	}
	if (row("directory/fsync, fdatasync")) {
		h = open("tdir", O_RDONLY);
		OK(sys(fsync(h)));
		OK(sys(fdatasync(h)));
		close(h);
	}
	if (row("directory/fchmod, fchown, futimens")) {
		h = open("tdir", O_RDONLY);
		OK(sys(fchmod(h, 0711)));
		OK(sys(fchown(h, 3, 4)));
		OK(sys(futimens(h, NULL)));
		OK(sys(fstat(h, &st)));
		EQ(st.st_mode, S_IFDIR | 0711);
		EQ(st.st_uid, 3);
		close(h);
	}
	if (row("directory/fchdir, and getcwd knows it")) {
		h = open("tdir", O_RDONLY);
		OK(sys(fchdir(h)));
		WANT(getcwd(c, sizeof(c)) && strstr(c, "/tdir"));
		OK(sys(chdir("..")));
		close(h);
	}
	if (row("directory/fchdir of a file: ENOTDIR")) {
		h = open("tfile", O_RDONLY);
		GIVES(sys(fchdir(h)), ENOTDIR);
		close(h);
	}
	if (row("directory/fchdir without search permission: EACCES")) {
		OK(fs->mkdir("closed", 0700));
		h = open("closed", O_RDONLY);
		be(&OTHER);
		GIVES(sys(fchdir(h)), EACCES);
		be(&ROOT);
		close(h);
	}
	if (row("directory/getdents of a file: ENOTDIR")) {
		h = open("tfile", O_RDONLY);
		GIVES(sys(syscall(SYS_getdents64, h, c, sizeof(c))), ENOTDIR);
		close(h);
	}
	if (row("directory/getdents of O_PATH: EBADF")) {
		h = open("tdir", O_PATH);
		GIVES(sys(syscall(SYS_getdents64, h, c, sizeof(c))), EBADF);
		close(h);
	}
	if (row("directory/getdents of a removed one: ENOENT")) {
		OK(fs->mkdir("gone", 0755));
		h = open("gone", O_RDONLY);
		OK(fs->rmdir("gone"));
		GIVES(sys(syscall(SYS_getdents64, h, c, sizeof(c))), ENOENT);
		close(h);
	}
	if (row("directory/the current one may be removed")) {
		OK(fs->mkdir("here", 0755));
		h = open(".", O_RDONLY);
		OK(sys(chdir("here")));
		OK(sys(rmdir("../here")));
		GIVES(sys(open("x", O_RDWR | O_CREAT, 0644)), ENOENT);
		GIVES(sys(mkdir("x", 0755)), ENOENT);
		GIVES(getcwd(c, sizeof(c)) ? 0 : -errno, ENOENT);
		OK(sys(stat(".", &st)));
		EQ(st.st_nlink, 0);
		OK(sys(fchdir(h)));
		close(h);
	}
}

const struct table tables_dirs[] = {
	{ "readdir", reading },
	{ "directory", by_descriptor, true },
	{ NULL },
};
