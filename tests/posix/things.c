// SPDX-License-Identifier: GPL-2.0-only
/*
 * things.c - who asks, what is asked about, and what must not change; used by all tables.
 */
#include "conform.h"
#include <limits.h>
#include <stdarg.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <time.h>

const struct who ROOT = { "root", 0, 0, { 0 }, 1 };
const struct who OWNER = { "owner", 2001, 2101, { G_OTHER, 2101 }, 2 };
const struct who MEMBER = { "member", 2002, 2101, { 0 }, 0 };
const struct who SUPPL = { "supplementary", 2003, 2903, { 2902, 2101, 2901 }, 3 };
const struct who OTHER = { "other", 2004, 2904, { 2905 }, 1 };

const char *const type_name[T_MAX] = {
	"nothing", "file", "directory", "full-directory", "link-to-file", "link-to-directory", "dangling-link",
	"link-loop", "fifo", "socket", "character-device", "block-device",
};

void be(const struct who *w)
{
	static const struct who *now;
	static const struct api *through;

	/* A forked table begins as root, as its parent is. */
	if (w == now && through == fs)
		return;
	now = w;
	through = fs;
	fs->setcred(w);
}

const char *err_name(int err)
{
	static char text[2][64];
	static int turn;
	const char *name = strerrorname_np(err);

	turn = !turn;
	if (!err)
		return "0";
	snprintf(text[turn], sizeof(text[turn]), "%s", name ? name : "?");
	if (!name)
		snprintf(text[turn], sizeof(text[turn]), "errno %d", err);
	return text[turn];
}

void make_file(const char *path, size_t n, mode_t mode)
{
	static char buf[65536];
	int h = fs->open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	size_t at, m;

	memset(buf, 'x', sizeof(buf));
	OK(h);
	if (h < 0)
		return;
	for (at = 0; at < n; at += m) {
		m = n - at < sizeof(buf) ? n - at : sizeof(buf);
		EQ(fs->pwrite(h, buf, m, at), m);
	}
	OK(fs->close(h));
	OK(fs->chmod(path, mode));
}

void make(const char *path, enum type type)
{
	char sub[300];

	switch (type) {
	case T_FILE:
		make_file(path, 5, 0644);
		break;
	case T_DIR:
		OK(fs->mkdir(path, 0755));
		break;
	case T_FULLDIR:
		OK(fs->mkdir(path, 0755));
		snprintf(sub, sizeof(sub), "%s/inside", path);
		OK(fs->mknod(sub, S_IFREG | 0644, 0));
		break;
	case T_SYMFILE:
		OK(fs->symlink("tfile", path));
		break;
	case T_SYMDIR:
		OK(fs->symlink("tdir", path));
		break;
	case T_DANGLING:
		OK(fs->symlink("tnothing", path));
		break;
	case T_LOOP:
		OK(fs->symlink(strrchr(path, '/') ? strrchr(path, '/') + 1 : path, path));
		break;
	case T_FIFO:
		OK(fs->mknod(path, S_IFIFO | 0644, 0));
		break;
	case T_SOCK:
		OK(fs->mknod(path, S_IFSOCK | 0644, 0));
		break;
	case T_CHR:
		/* /dev/null */
		OK(fs->mknod(path, S_IFCHR | 0644, makedev(1, 3)));
		break;
	case T_BLK:
		/* For local use: no driver has it. */
		OK(fs->mknod(path, S_IFBLK | 0644, makedev(240, 77)));
		break;
	case T_NONE:
	case T_MAX:
		break;
	}
}

void make_targets(const char *dir)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/tfile", dir);
	make_file(path, 5, 0644);
	snprintf(path, sizeof(path), "%s/tdir", dir);
	OK(fs->mkdir(path, 0755));
}

mode_t type_ifmt(enum type type)
{
	static const mode_t fmt[T_MAX] = {
		0, S_IFREG, S_IFDIR, S_IFDIR, S_IFLNK, S_IFLNK, S_IFLNK, S_IFLNK, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK
	};

	return fmt[type];
}

void wipe(const char *path)
{
	char sub[PATH_MAX + 300], names[16][256];
	struct entry e;
	int h, i, n = 0;

	if (fs->unlink(path) >= 0 || fs->rmdir(path) >= 0)
		return;
	h = fs->opendir(path);
	if (h < 0)
		return;
	while (n < 16 && fs->readdir(h, &e) == 1)
		if (strcmp(e.name, ".") && strcmp(e.name, ".."))
			strcpy(names[n++], e.name);
	fs->closedir(h);
	for (i = 0; i < n; i++) {
		snprintf(sub, sizeof(sub), "%s/%s", path, names[i]);
		wipe(sub);
	}
	OK(fs->rmdir(path));
}

bool exists(const char *path)
{
	struct stat st;

	return fs->lstat(path, &st) >= 0;
}

ino_t ino_of(const char *path)
{
	struct stat st = { 0 };

	OK(fs->lstat(path, &st));
	return st.st_ino;
}

void snap_take(struct snap *s, const char *path, ...)
{
	va_list ap;

	s->n = 0;
	va_start(ap, path);
	for (; path && s->n < 4; path = va_arg(ap, const char *)) {
		s->path[s->n] = path;
		memset(&s->st[s->n], 0, sizeof(s->st[0]));
		s->rc[s->n] = fs->lstat(path, &s->st[s->n]);
		s->n++;
	}
	va_end(ap);
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Not the access time: looking may change that. */
void snap_same(const struct snap *s, const char *file, int line)
{
	struct stat st;
	int i;

	for (i = 0; i < s->n; i++) {
		const struct stat *was = &s->st[i];
		const char *what = NULL;
		int rc = fs->lstat(s->path[i], &st);

		if (rc < 0 || s->rc[i] < 0) {
			if (rc != s->rc[i])
				wrong(file, line, "%s has come or gone: it gave %s, now %s", s->path[i],
				      err_name(-s->rc[i]), err_name(-rc));
			continue;
		}
		if (st.st_ino != was->st_ino)
			what = "inode number";
		else if (st.st_mode != was->st_mode)
			what = "mode";
		else if (st.st_uid != was->st_uid || st.st_gid != was->st_gid)
			what = "owner";
		else if (st.st_nlink != was->st_nlink)
			what = "link count";
		else if (st.st_size != was->st_size)
			what = "size";
		else if (!same_time(&st.st_mtim, &was->st_mtim))
			what = "mtime";
		else if (!same_time(&st.st_ctim, &was->st_ctim))
			what = "ctime";
		if (what)
			wrong(file, line, "the %s of %s has changed", what, s->path[i]);
	}
}

void later_than(const char *path)
{
	struct timespec now;
	struct stat st;

	OK(fs->lstat(path, &st));
	/* File systems stamp with the coarse clock, which ticks every few ms. */
	do {
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	} while (now.tv_sec < st.st_ctim.tv_sec ||
		 (now.tv_sec == st.st_ctim.tv_sec && now.tv_nsec <= st.st_ctim.tv_nsec));
}

bool in_group(const struct who *w, gid_t gid)
{
	int i;

	if (w->gid == gid)
		return true;
	for (i = 0; i < w->ngroups; i++)
		if (w->groups[i] == gid)
			return true;
	return false;
}

bool may(const struct who *w, mode_t mode, uid_t uid, gid_t gid, int want)
{
	int bits;

	/* Privilege: all, but execution only of what somebody may execute. */
	if (!w->uid)
		return !(want & X_OK) || S_ISDIR(mode) || (mode & 0111);
	if (w->uid == uid)
		bits = mode >> 6;
	else if (in_group(w, gid))
		bits = mode >> 3;
	else
		bits = mode;
	return (bits & want) == want;
}

/* The class of @w has @bits, the others what is missing; root is in none, and all have @bits. */
mode_t class_mode(const struct who *w, int bits, char *letter)
{
	int not = 7 - bits;

	if (w == &ROOT) {
		*letter = 'r';
		return bits << 6 | bits << 3 | bits;
	}
	if (w == &OWNER) {
		*letter = 'u';
		return bits << 6 | not << 3 | not;
	}
	if (w == &OTHER) {
		*letter = 'o';
		return not << 6 | not << 3 | bits;
	}
	*letter = 'g';
	return not << 6 | bits << 3 | not;
}

int sysctl_fs(const char *name)
{
	char path[128];
	int v = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/sys/fs/%s", name);
	f = fopen(path, "r");
	if (f) {
		if (fscanf(f, "%d", &v) != 1)
			v = -1;
		fclose(f);
	}
	return v;
}

bool kernel_from(int major, int minor)
{
	struct utsname u;
	int a = 0, b = 0;

	uname(&u);
	if (sscanf(u.release, "%d.%d", &a, &b) != 2)
		return false;
	return a > major || (a == major && b >= minor);
}
