// SPDX-License-Identifier: GPL-2.0-only
/*
 * locks.c - which locks go together: fcntl's, open file descriptions' and flock's, by whom, for
 * what ranges; ranges that wrap; errors. Over libpvfs one process has one set of fcntl locks, so
 * conflicts are between open files.
 */
#include "conform.h"
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

static const struct { const char *name; short type; } kinds[] = {
	{ "F_RDLCK", F_RDLCK }, { "F_WRLCK", F_WRLCK },
};

static const struct { const char *name; off_t at, n; } ranges[] = {
	{ "all", 0, 0 }, { "0-9", 0, 10 }, { "5-14", 5, 10 }, { "10-19", 10, 10 }, { "9", 9, 1 },
	{ "10 to the end", 10, 0 }, { "the last byte", LLONG_MAX, 1 }, { "20 and 10 back", 20, -10 },
};

static struct flock lk(short type, off_t at, off_t n)
{
	struct flock fl = { .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = n };

	return fl;
}

static bool overlap(size_t a, size_t b)
{
	off_t as = ranges[a].n < 0 ? ranges[a].at + ranges[a].n : ranges[a].at;
	off_t bs = ranges[b].n < 0 ? ranges[b].at + ranges[b].n : ranges[b].at;
	off_t ae = !ranges[a].n ? LLONG_MAX : ranges[a].n < 0 ? ranges[a].at - 1 : as + (ranges[a].n - 1);
	off_t be_ = !ranges[b].n ? LLONG_MAX : ranges[b].n < 0 ? ranges[b].at - 1 : bs + (ranges[b].n - 1);

	return as <= be_ && bs <= ae;
}

/* A process of its own that tries fcntl locks when it is told. */
static int to_child[2], from_child[2];
static pid_t child;

struct order {
	int cmd;
	struct flock fl;
};

static void child_start(const char *path)
{
	OK(sys(pipe(to_child)));
	OK(sys(pipe(from_child)));
	child = fork();
	if (!child) {
		struct order o;
		int h = open(path, O_RDWR), r;

		close(to_child[1]);
		while (read(to_child[0], &o, sizeof(o)) == sizeof(o)) {
			r = sys(fcntl(h, o.cmd, &o.fl));
			if (write(from_child[1], &r, sizeof(r)) != sizeof(r) ||
			    write(from_child[1], &o.fl, sizeof(o.fl)) != sizeof(o.fl))
				break;
		}
		_exit(0);
	}
	close(to_child[0]);
	close(from_child[1]);
}

static int child_lock(int cmd, struct flock *fl)
{
	struct order o = { cmd, *fl };
	int r = -EIO;

	if (write(to_child[1], &o, sizeof(o)) != sizeof(o) || read(from_child[0], &r, sizeof(r)) != sizeof(r) ||
	    read(from_child[0], fl, sizeof(*fl)) != sizeof(*fl))
		return -EIO;
	return r;
}

static void child_end(void)
{
	close(to_child[1]);
	close(from_child[0]);
	waitpid(child, NULL, 0);
}

/* One process holds, another asks: tried, and asked about by F_GETLK. */
static void processes(void)
{
	struct flock fl, un = lk(F_UNLCK, 0, 0);
	size_t a, b, i, k;
	int h = -1;

	if (live()) {
		make_file("f", 5, 0644);
		h = open("f", O_RDWR);
		child_start("f");
	}
	for (i = 0; i < 2; i++)
	for (a = 0; a < ARRAY_SIZE(ranges); a++)
	for (k = 0; k < 2; k++)
	for (b = 0; b < ARRAY_SIZE(ranges); b++) {
		bool conflict = overlap(a, b) && (i || k);

		if (!row("fcntl/%s of %s held, %s of %s by another process: %s", kinds[i].name, ranges[a].name,
			 kinds[k].name, ranges[b].name, conflict ? "EAGAIN" : "0"))
			continue;
		fl = un;
		OK(child_lock(F_SETLK, &fl));
		OK(sys(fcntl(h, F_SETLK, &un)));
		fl = lk(kinds[i].type, ranges[a].at, ranges[a].n);
		OK(sys(fcntl(h, F_SETLK, &fl)));
		fl = lk(kinds[k].type, ranges[b].at, ranges[b].n);
		OK(child_lock(F_GETLK, &fl));
		if (conflict) {
			EQ(fl.l_type, kinds[i].type);
			EQ(fl.l_pid, getpid());
			EQ(fl.l_whence, SEEK_SET);
			EQ(fl.l_start, ranges[a].n < 0 ? ranges[a].at + ranges[a].n : ranges[a].at);
			EQ(fl.l_len, ranges[a].at == LLONG_MAX ? 0 : ranges[a].n < 0 ? -ranges[a].n : ranges[a].n);
		} else {
			EQ(fl.l_type, F_UNLCK);
		}
		fl = lk(kinds[k].type, ranges[b].at, ranges[b].n);
		GIVES(child_lock(F_SETLK, &fl), conflict ? EAGAIN : 0);
	}
	if (row("fcntl/the same process may ask again, and change its mind")) {
		OK(child_lock(F_SETLK, &un));
		fl = lk(F_WRLCK, 0, 10);
		OK(sys(fcntl(h, F_SETLK, &fl)));
		OK(sys(fcntl(h, F_SETLK, &fl)));
		fl = lk(F_RDLCK, 0, 0);
		OK(sys(fcntl(h, F_SETLK, &fl)));
		fl = lk(F_RDLCK, 0, 10);
		OK(child_lock(F_SETLK, &fl));
		/* Both read: neither can write now. */
		fl = lk(F_WRLCK, 0, 1);
		GIVES(sys(fcntl(h, F_SETLK, &fl)), EAGAIN);
	}
	if (row("fcntl/a hole is unlocked in the middle")) {
		un = lk(F_UNLCK, 0, 0);
		OK(child_lock(F_SETLK, &un));
		fl = lk(F_WRLCK, 0, 100);
		OK(sys(fcntl(h, F_SETLK, &fl)));
		fl = lk(F_UNLCK, 40, 20);
		OK(sys(fcntl(h, F_SETLK, &fl)));
		fl = lk(F_WRLCK, 40, 20);
		OK(child_lock(F_SETLK, &fl));
		fl = lk(F_WRLCK, 39, 1);
		GIVES(child_lock(F_SETLK, &fl), EAGAIN);
		fl = lk(F_WRLCK, 60, 1);
		GIVES(child_lock(F_SETLK, &fl), EAGAIN);
	}
	if (row("fcntl/another descriptor's close gives all up")) {
		int g = open("f", O_RDONLY);

		close(g);
		fl = lk(F_WRLCK, 0, 0);
		OK(child_lock(F_SETLK, &fl));
		fl = lk(F_UNLCK, 0, 0);
		OK(child_lock(F_SETLK, &fl));
	}
	if (row("fcntl/a process that ends gives all up")) {
		fl = lk(F_WRLCK, 0, 0);
		OK(child_lock(F_SETLK, &fl));
		child_end();
		fl = lk(F_WRLCK, 0, 0);
		OK(sys(fcntl(h, F_SETLKW, &fl)));
		child_start("f");
	}
	if (row("fcntl/a child does not have its parent's")) {
		int status = 0;
		pid_t pid = fork();

		if (!pid) {
			fl = lk(F_WRLCK, 0, 0);
			_exit(fcntl(h, F_SETLK, &fl) ? errno : 0);
		}
		waitpid(pid, &status, 0);
		EQ(WEXITSTATUS(status), EAGAIN);
	}
	if (row("fcntl/relative to the offset and to the end")) {
		un = lk(F_UNLCK, 0, 0);
		OK(sys(fcntl(h, F_SETLK, &un)));
		OK(sys(ftruncate(h, 100)));
		OK(sys(lseek(h, 50, SEEK_SET)));
		fl = lk(F_WRLCK, -10, 5);
		fl.l_whence = SEEK_CUR;
		OK(sys(fcntl(h, F_SETLK, &fl)));
		fl = lk(F_WRLCK, 0, 0);
		OK(child_lock(F_GETLK, &fl));
		EQ(fl.l_start, 40);
		EQ(fl.l_len, 5);
		OK(sys(fcntl(h, F_SETLK, &un)));
		fl = lk(F_WRLCK, -30, 5);
		fl.l_whence = SEEK_END;
		OK(sys(fcntl(h, F_SETLK, &fl)));
		fl = lk(F_WRLCK, 0, 0);
		OK(child_lock(F_GETLK, &fl));
		EQ(fl.l_start, 70);
	}
	if (live()) {
		child_end();
		close(h);
	}
}

/* Locks of open files: of one process or not does not matter. */
static void descriptions(void)
{
	struct flock fl, un = lk(F_UNLCK, 0, 0);
	int h = -1, g = -1, r;
	size_t a, b, i, k;

	if (live()) {
		make_file("f", 5, 0644);
		h = fs->open("f", O_RDWR, 0);
		g = fs->open("f", O_RDWR, 0);
		OK(g);
	}
	for (i = 0; i < 2; i++)
	for (a = 0; a < ARRAY_SIZE(ranges); a++)
	for (k = 0; k < 2; k++)
	for (b = 0; b < ARRAY_SIZE(ranges); b++) {
		bool conflict = overlap(a, b) && (i || k);

		if (!row("ofd/%s of %s held, %s of %s by another open: %s", kinds[i].name, ranges[a].name,
			 kinds[k].name, ranges[b].name, conflict ? "EAGAIN" : "0"))
			continue;
		fl = un;
		OK(fs->lock(g, F_OFD_SETLK, &fl));
		fl = un;
		OK(fs->lock(h, F_OFD_SETLK, &fl));
		fl = lk(kinds[i].type, ranges[a].at, ranges[a].n);
		OK(fs->lock(h, F_OFD_SETLK, &fl));
		fl = lk(kinds[k].type, ranges[b].at, ranges[b].n);
		OK(fs->lock(g, F_OFD_GETLK, &fl));
		if (conflict) {
			EQ(fl.l_type, kinds[i].type);
			EQ(fl.l_pid, -1);
			EQ(fl.l_start, ranges[a].n < 0 ? ranges[a].at + ranges[a].n : ranges[a].at);
			EQ(fl.l_len, ranges[a].at == LLONG_MAX ? 0 : ranges[a].n < 0 ? -ranges[a].n : ranges[a].n);
		} else {
			EQ(fl.l_type, F_UNLCK);
		}
		fl = lk(kinds[k].type, ranges[b].at, ranges[b].n);
		GIVES(fs->lock(g, F_OFD_SETLK, &fl), conflict ? EAGAIN : 0);
	}
	if (row("ofd/against fcntl locks of the same process: EAGAIN")) {
		fl = un;
		OK(fs->lock(g, F_OFD_SETLK, &fl));
		fl = lk(F_WRLCK, 0, 0);
		OK(fs->lock(h, F_OFD_SETLK, &fl));
		fl = lk(F_WRLCK, 0, 0);
		GIVES(fs->lock(g, F_SETLK, &fl), EAGAIN);
		GIVES(fs->lock(h, F_SETLK, &fl), EAGAIN);
	}
	if (row("ofd/another descriptor's close gives nothing up")) {
		r = fs->open("f", O_RDWR, 0);
		fs->close(r);
		fl = lk(F_WRLCK, 0, 0);
		GIVES(fs->lock(g, F_OFD_SETLK, &fl), EAGAIN);
	}
	if (on_vfs() && row("ofd/a duplicate has it too, and keeps it")) {
		int d = dup(h);

		fl = lk(F_WRLCK, 0, 0);
		OK(fs->lock(d, F_OFD_SETLK, &fl));
		close(h);
		GIVES(fs->lock(g, F_OFD_SETLK, &fl), EAGAIN);
		h = d;
	}
	if (row("ofd/its own close gives it up")) {
		fs->close(h);
		fl = lk(F_WRLCK, 0, 0);
		OK(fs->lock(g, F_OFD_SETLK, &fl));
		h = fs->open("f", O_RDWR, 0);
	}
	if (row("ofd/a pid that is not 0: EINVAL")) {
		fl = lk(F_RDLCK, 0, 1);
		fl.l_pid = 1;
		GIVES(fs->lock(h, F_OFD_SETLK, &fl), EINVAL);
		GIVES(fs->lock(h, F_OFD_GETLK, &fl), EINVAL);
	}
	if (live()) {
		fs->close(h);
		fs->close(g);
	}
}

static void errors(void)
{
	static const struct { const char *name; short type, whence; off_t at, n; int err; } t[] = {
		{ "a start below 0", F_WRLCK, SEEK_SET, -1, 1, EINVAL },
		{ "a length that leads below 0", F_WRLCK, SEEK_SET, 5, -6, EINVAL },
		{ "a length back to 0", F_WRLCK, SEEK_SET, 5, -5, 0 },
		{ "an end above 2^63 - 1", F_WRLCK, SEEK_SET, LLONG_MAX, 2, EOVERFLOW },
		{ "a length of 2^63 - 1 from 2", F_WRLCK, SEEK_SET, 2, LLONG_MAX, EOVERFLOW },
		{ "the whole range by its length", F_WRLCK, SEEK_SET, 0, LLONG_MAX, 0 },
		{ "a length of 2^63 - 1 from 1", F_WRLCK, SEEK_SET, 1, LLONG_MAX, 0 },
		{ "the lowest start", F_WRLCK, SEEK_SET, LLONG_MIN, 0, EINVAL },
		{ "the lowest length", F_WRLCK, SEEK_SET, LLONG_MAX, LLONG_MIN, EINVAL },
		{ "an unknown type", 77, SEEK_SET, 0, 0, EINVAL },
		{ "an unknown whence", F_WRLCK, 77, 0, 0, EINVAL },
	};
	static const int cmds[] = { F_SETLK, F_OFD_SETLK };
	struct flock fl;
	int h = -1, w = -1, r = -1, c;
	size_t i;

	if (live()) {
		make_file("f", 5, 0644);
		h = fs->open("f", O_RDWR, 0);
		r = fs->open("f", O_RDONLY, 0);
		w = fs->open("f", O_WRONLY, 0);
	}
	for (c = 0; c < 2; c++) {
		const char *name = c ? "OFD" : "fcntl";

		for (i = 0; i < ARRAY_SIZE(t); i++) {
			if (!row("lock-errors/%s: %s: %s", name, t[i].name, err_name(t[i].err)))
				continue;
			fl = lk(t[i].type, t[i].at, t[i].n);
			fl.l_whence = t[i].whence;
			GIVES(fs->lock(h, cmds[c], &fl), t[i].err);
			fl = lk(F_UNLCK, 0, 0);
			OK(fs->lock(h, cmds[c], &fl));
		}
		if (row("lock-errors/%s: shared on one open for writing: EBADF", name)) {
			fl = lk(F_RDLCK, 0, 0);
			GIVES(fs->lock(w, cmds[c], &fl), EBADF);
		}
		if (row("lock-errors/%s: exclusive on one open for reading: EBADF", name)) {
			fl = lk(F_WRLCK, 0, 0);
			GIVES(fs->lock(r, cmds[c], &fl), EBADF);
		}
		if (row("lock-errors/%s: unlocking what is not locked", name)) {
			fl = lk(F_UNLCK, 100, 5);
			OK(fs->lock(r, cmds[c], &fl));
		}
		if (row("lock-errors/%s: no descriptor: EBADF", name)) {
			fl = lk(F_WRLCK, 0, 0);
			GIVES(fs->lock(-1, cmds[c], &fl), EBADF);
		}
		if (row("lock-errors/%s: 100 ranges of one owner", name)) {
			int k;

			for (k = 0; k < 100; k++) {
				fl = lk(F_WRLCK, 3 * k, 1);
				OK(fs->lock(h, cmds[c], &fl));
			}
			fl = lk(F_UNLCK, 0, 0);
			OK(fs->lock(h, cmds[c], &fl));
		}
	}
	if (live()) {
		fs->close(h);
		fs->close(r);
		fs->close(w);
	}
}

static void flocks(void)
{
	static const struct { const char *name; int op; } ops[] = {
		{ "LOCK_SH", LOCK_SH }, { "LOCK_EX", LOCK_EX }, { "LOCK_UN", LOCK_UN },
	};
	static const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR };
	static const char *const mode_name[] = { "O_RDONLY", "O_WRONLY", "O_RDWR" };
	size_t i, k, m;
	int h = -1, g = -1;

	if (live())
		make_file("f", 5, 0644);
	for (m = 0; m < 3; m++) {
		for (i = 0; i < 3; i++) {
			for (k = 0; k < 3; k++) {
				bool conflict = i < 2 && k < 2 && (i || k);

				if (!row("flock/%s held, %s by another, %s: %s", ops[i].name, ops[k].name,
					 mode_name[m], conflict ? "EAGAIN" : "0"))
					continue;
				h = fs->open("f", modes[m], 0);
				g = fs->open("f", modes[m], 0);
				OK(fs->flock(h, ops[i].op | LOCK_NB));
				GIVES(fs->flock(g, ops[k].op | LOCK_NB), conflict ? EAGAIN : 0);
				fs->close(h);
				/* The first's end lets the second have it. */
				OK(fs->flock(g, ops[k].op | LOCK_NB));
				fs->close(g);
			}
		}
	}
	if (live()) {
		h = fs->open("f", O_RDWR, 0);
		g = fs->open("f", O_RDWR, 0);
	}
	if (row("flock/from shared to exclusive and back")) {
		OK(fs->flock(h, LOCK_SH | LOCK_NB));
		OK(fs->flock(h, LOCK_EX | LOCK_NB));
		GIVES(fs->flock(g, LOCK_SH | LOCK_NB), EAGAIN);
		OK(fs->flock(h, LOCK_SH | LOCK_NB));
		OK(fs->flock(g, LOCK_SH | LOCK_NB));
		GIVES(fs->flock(h, LOCK_EX | LOCK_NB), EAGAIN);
		OK(fs->flock(g, LOCK_UN));
		OK(fs->flock(h, LOCK_UN));
	}
	if (row("flock/apart from fcntl's")) {
		struct flock fl = lk(F_WRLCK, 0, 0);

		OK(fs->flock(h, LOCK_EX | LOCK_NB));
		OK(fs->lock(g, F_OFD_SETLK, &fl));
		OK(fs->flock(h, LOCK_UN));
		fl = lk(F_UNLCK, 0, 0);
		OK(fs->lock(g, F_OFD_SETLK, &fl));
	}
	if (row("flock/no operation: EINVAL"))
		GIVES(fs->flock(h, 0), EINVAL);
	if (row("flock/shared and exclusive: EINVAL"))
		GIVES(fs->flock(h, LOCK_SH | LOCK_EX | LOCK_NB), EINVAL);
	if (row("flock/no descriptor: EBADF"))
		GIVES(fs->flock(-1, LOCK_SH), EBADF);
	if (on_vfs()) {
		if (row("flock/a duplicate is the same")) {
			int d = dup(h);

			OK(fs->flock(h, LOCK_EX | LOCK_NB));
			OK(fs->flock(d, LOCK_EX | LOCK_NB));
			close(h);
			GIVES(fs->flock(g, LOCK_SH | LOCK_NB), EAGAIN);
			OK(fs->flock(d, LOCK_UN));
			OK(fs->flock(g, LOCK_SH | LOCK_NB));
			h = d;
		}
		if (row("flock/a directory")) {
			int d = open(".", O_RDONLY), e = open(".", O_RDONLY);

			OK(fs->flock(d, LOCK_EX | LOCK_NB));
			GIVES(fs->flock(e, LOCK_EX | LOCK_NB), EAGAIN);
			close(d);
			OK(fs->flock(e, LOCK_EX | LOCK_NB));
			close(e);
		}
		if (row("flock/O_PATH: EBADF")) {
			int d = open("f", O_PATH);

			GIVES(fs->flock(d, LOCK_SH), EBADF);
			close(d);
		}
	}
	if (live()) {
		fs->close(h);
		fs->close(g);
	}
}

const struct table tables_locks[] = {
	{ "fcntl", processes, true },
	{ "ofd", descriptions },
	{ "lock-errors", errors },
	{ "flock", flocks },
	{ NULL },
};
