// SPDX-License-Identifier: GPL-2.0
/*
 * cp.c - `pvfs cp`: copying into the volume, out of it, and within.
 *
 * The main thread walks the sources and queues files; workers copy them. A file larger than a chunk
 * is shared by all workers that have nothing else to do, chunk by chunk; what is contiguous from
 * its start and synced is noted now and then for --resume (resume.c). Zeroes of files that have
 * holes are not written. Within the volume the I/O daemons copy.
 */
#include "cp.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define QUEUE_MAX	1024u	/* files waiting; the walker waits for room */
#define ZERO_BLOCK	4096u	/* what is looked at for zeroes at a time */
#define RUN_MIN		(256 << 10)	/* bytes between holes that are worth a request */
#define END_SECONDS	1		/* from a signal to the end, if servers don't answer */

struct task {			/* a file to be copied */
	struct task *next;
	char *from, *to;
	struct stat st;
};

/*
 * A file that is being copied by several. Protected by the copier's lock, but for what never
 * changes.
 */
struct big {
	struct big *next;
	struct task *task;
	struct end_file src, dst;
	struct resume note;
	off_t start;		/* good from an earlier copy */
	ssize_t have;		/* bytes of the source's beginning in its worker's buffer, at first */
	bool sparse;
	u64 chunks, taken, done;
	u8 *bits;		/* chunks done */
	u64 low;		/* all below are done */
	u32 users;
	int err;
	bool reading;		/* it was the source that failed */
	bool opened;		/* -p: it was read-only, and is of @was again if the copy fails */
	mode_t was;
	u64 noted_ms;
	bool noting;
};

struct dir_done {		/* directories get their attributes when all is in them */
	struct dir_done *next;
	char *from, *to;
	struct stat st;
};

struct copier {
	struct end from, to;
	bool recurse, preserve, resume, fsync;
	size_t chunk;
	u64 checkpoint_ms;
	mode_t umask;

	pthread_mutex_t lock;	/* protects what follows */
	pthread_cond_t cond;	/* work came, went, or none will come */
	struct task *head, **tail;
	u32 queued;
	struct big *bigs;
	bool walked;
	bool failed;
	u64 bytes, total, files;
	u32 notes;		/* files that --resume could go on with */
	const char *latest;	/* owned by nobody: for the progress bar, under lock */
	char latest_buf[64];

	struct dir_done *dirs;	/* the walker's */
	dev_t root_dev;		/* made by this copy: not to be copied into itself */
	ino_t root_ino;
	bool have_root;
};

static u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

static void set_failed(struct copier *c)
{
	pthread_mutex_lock(&c->lock);
	c->failed = true;
	pthread_mutex_unlock(&c->lock);
}

static void complain(struct copier *c, const char *path, int err)
{
	set_failed(c);
	fail("%s: %s", path, strerror(-err));
}

static void keep(struct copier *c, const char *from, const struct stat *st, const char *to)
{
	if (!keep_all(c->from, from, st, c->to, to))
		set_failed(c);
}

static char *join(const char *dir, const char *name)
{
	size_t n = strlen(dir);
	char *s;

	if (asprintf(&s, "%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name) < 0) {
		fail("out of memory");
		exit(EXIT_FAILURE);
	}
	return s;
}

static void task_free(struct task *t)
{
	free(t->from);
	free(t->to);
	free(t);
}

static void count(struct copier *c, u64 bytes, u64 files)
{
	pthread_mutex_lock(&c->lock);
	c->bytes += bytes;
	c->files += files;
	pthread_mutex_unlock(&c->lock);
}

/* ---------------------------------------------------------------- bytes */

static bool all_zero(const u8 *p, size_t n)
{
	return !n || (!p[0] && !memcmp(p, p + 1, n - 1));
}

/* Writes what is not zero. */
static int write_sparse(struct end_file *dst, const u8 *buf, size_t n, off_t off)
{
	size_t at = 0, run, step;
	ssize_t k;

	while (at < n) {
		step = min(n - at, (size_t)ZERO_BLOCK);
		if (all_zero(buf + at, step)) {
			at += step;
			continue;
		}
		for (run = step; at + run < n; run += step) {
			step = min(n - at - run, (size_t)ZERO_BLOCK);
			if (all_zero(buf + at + run, step))
				break;
		}
		k = end_pwrite(dst, buf + at, run, off + at);
		if (k < 0)
			return k;
		at += run;
	}
	return 0;
}

/*
 * Copies @off .. @end. -ENODATA: the source is shorter than it was. @have: bytes of the source's
 * beginning that are in @buf. @ret_reading: it was the source that failed.
 */
static int copy_range(struct copier *c, struct end_file *src, struct end_file *dst, bool sparse,
		      off_t off, off_t end, u8 *buf, ssize_t have, bool *ret_reading)
{
	off_t data, stop;
	ssize_t n;
	int err;

	while (off < end) {
		if (interrupted())
			return -EINTR;
		if (sparse) {
			data = end_next_data(src, off, end);
			count(c, data - off, 0);
			off = data;
			if (off == end)
				break;
		}
		stop = c->from.fs && c->to.fs ? sparse ? end_next_hole(src, off, end) : end : off;
		if (stop - off >= RUN_MIN) {
			n = end_copy(src, dst, off, stop - off);
			if (n < 0)
				return n;
			if (!n) {
				*ret_reading = true;
				return -ENODATA;
			}
			off += n;
			count(c, n, 0);
			continue;
		}
		n = have && !off ? have : end_pread(src, buf, min((off_t)c->chunk, end - off), off);
		if (n <= 0) {
			*ret_reading = true;
			return n ?: -ENODATA;
		}
		if (sparse) {
			err = write_sparse(dst, buf, n, off);
		} else {
			ssize_t k = end_pwrite(dst, buf, n, off);

			err = k < 0 ? (int)k : 0;
		}
		if (err)
			return err;
		off += n;
		count(c, n, 0);
	}
	return 0;
}

/* ---------------------------------------------------------------- one file */

/* What may be the same file twice would be emptied before it is read. */
static bool same_file(struct copier *c, const struct task *t)
{
	struct stat st;

	if (c->from.fs != c->to.fs || end_stat(c->to, t->to, true, &st))
		return false;
	return st.st_ino == t->st.st_ino && st.st_dev == t->st.st_dev;
}

/* --resume --preserve: what has size and time of the source was copied to its end. */
static bool complete(struct copier *c, const struct task *t)
{
	struct stat st;

	return c->resume && c->preserve && !end_stat(c->to, t->to, true, &st) &&
	       S_ISREG(st.st_mode) && st.st_size == t->st.st_size &&
	       st.st_mtim.tv_sec == t->st.st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == t->st.st_mtim.tv_nsec;
}

/* -p, again: the copy is read-only, as its source. Return: 0, it can be written now; or @err. */
static int make_writable(struct copier *c, struct big *b, int err)
{
	struct stat st;

	if (err != -EACCES || !c->preserve || end_stat(c->to, b->task->to, true, &st) ||
	    !S_ISREG(st.st_mode) || (st.st_mode & 0200) ||
	    end_chmod(c->to, b->task->to, (st.st_mode & 07777) | 0600))
		return err;
	b->opened = true;
	b->was = st.st_mode & 07777;
	return 0;
}

/*
 * What is there is not emptied for something that can't be read: its beginning is, which has pieces
 * of all I/O daemons of a volume that is not very wide.
 */
static int try_source(struct copier *c, struct big *b, u8 *buf)
{
	struct task *t = b->task;
	struct stat st;
	ssize_t n;

	if (c->resume || !t->st.st_size || end_stat(c->to, t->to, true, &st) ||
	    !S_ISREG(st.st_mode) || !st.st_size)
		return 0;
	n = end_pread(&b->src, buf, min((off_t)c->chunk, t->st.st_size), 0);
	b->have = max(n, (ssize_t)0);
	return n < 0 ? n : 0;
}

#define LAST_WORDS "\npvfs cp: interrupted: a server does not answer"

/* There is a note more for --resume, or (@n -1) less: only while there is one may it be promised. */
static void count_notes(struct copier *c, int n)
{
	pthread_mutex_lock(&c->lock);
	c->notes += n;
	interrupt_words(c->notes ? LAST_WORDS "; --resume goes on from what was noted\n" : LAST_WORDS "\n");
	pthread_mutex_unlock(&c->lock);
}

static void write_note(struct copier *c, struct big *b, off_t done)
{
	bool had = b->note.exists;

	/* One that can't be written is no reason to give up the copy. */
	resume_write(&b->note, c->to, &b->task->st, done);
	if (!had && b->note.exists)
		count_notes(c, 1);
}

static void remove_note(struct copier *c, struct big *b)
{
	if (b->note.exists)
		count_notes(c, -1);
	resume_remove(&b->note, c->to);
}

/* @buf: room for a chunk */
static int open_both(struct copier *c, struct big *b, u8 *buf)
{
	struct task *t = b->task;
	int flags = c->resume ? O_RDWR | O_CREAT : O_WRONLY | O_CREAT | O_TRUNC, err;
	const char *why = "";

	err = end_open(c->from, t->from, O_RDONLY, 0, &b->src);
	if (!err) {
		err = try_source(c, b, buf);
		if (err)
			end_close(&b->src);
	}
	if (err) {
		complain(c, t->from, err);
		return err;
	}
	/* -p: nobody else's before it is complete, and writable, as attributes want it. */
	err = end_open(c->to, t->to, flags, c->preserve ? 0600 : t->st.st_mode & 0777, &b->dst);
	if (err && !make_writable(c, b, err))
		err = end_open(c->to, t->to, flags, 0600, &b->dst);
	if (err)
		goto bad;
	resume_init(&b->note, t->to);
	if (c->resume) {
		b->start = resume_find(&b->note, c->to, &t->st, &b->src, &b->dst, &why);
		if (b->start)
			note("pvfs cp: %s: going on at byte %lld of %lld", t->to,
			     (long long)b->start, (long long)t->st.st_size);
		else if (b->note.exists)
			note("pvfs cp: %s: copied from the beginning: %s", t->to, why);
		err = end_truncate(&b->dst, b->start);
		if (err)
			goto bad;
		count(c, b->start, 0);
		/* One that is not believed is good for nothing any more. */
		if (!b->start)
			resume_remove(&b->note, c->to);
		else
			count_notes(c, 1);
	}
	b->sparse = (u64)t->st.st_blocks * 512 < (u64)t->st.st_size;
	return 0;
bad:
	complain(c, t->to, err);
	end_close(&b->src);
	end_close(&b->dst);
	if (b->opened)
		end_chmod(c->to, t->to, b->was);
	return err;
}

/* The file's bytes are there, or not (@err). */
static void finish(struct copier *c, struct big *b, int err)
{
	struct task *t = b->task;
	off_t low;
	int cerr;

	/* What is missing at the end are zeroes. */
	if (!err && (b->sparse || c->resume))
		err = end_truncate(&b->dst, t->st.st_size);
	if (!err && c->fsync)
		err = end_fsync(&b->dst);
	if (err && b->chunks && !b->err)
		b->err = err;
	low = b->start + (off_t)(b->low * c->chunk);
	if (err == -EINTR && b->low && !end_fsync(&b->dst))
		write_note(c, b, low);
	cerr = end_close(&b->dst);
	err = err ?: cerr;
	end_close(&b->src);
	if (!err && c->preserve)
		keep(c, t->from, &t->st, t->to);
	else if (b->opened)
		end_chmod(c->to, t->to, b->was);
	if (!err)
		remove_note(c, b);
	if (err == -ENODATA)
		fail("%s: became shorter while it was copied", t->from);
	else if (err == -EINTR)
		fail("%s: interrupted%s", t->to,
		     b->note.exists ? "; --resume goes on where it ended" : "");
	if (err == -ENODATA || err == -EINTR)
		c->failed = true;
	else if (err)
		complain(c, b->reading ? t->from : t->to, err);
	count(c, 0, !err);
	task_free(t);
}

/* ---------------------------------------------------------------- workers */

/* Notes how far the file has come, if it is time. With c->lock held, which is dropped meanwhile. */
static void checkpoint(struct copier *c, struct big *b)
{
	off_t low;

	while (b->low < b->chunks && (b->bits[b->low / 8] & (1 << (b->low % 8))))
		b->low++;
	if (b->noting || !b->low || b->low == b->chunks ||
	    now_ms() - b->noted_ms < c->checkpoint_ms)
		return;
	b->noting = true;
	low = b->start + (off_t)(b->low * c->chunk);
	pthread_mutex_unlock(&c->lock);
	if (!end_fsync(&b->dst))
		write_note(c, b, low);
	pthread_mutex_lock(&c->lock);
	b->noting = false;
	b->noted_ms = now_ms();
}

/* Takes part in a big file until no chunk is left. With c->lock held. */
static void big_work(struct copier *c, struct big *b, u8 *buf)
{
	struct big **pp;
	off_t off, end;
	bool reading;
	u64 i;
	int err;

	b->users++;
	while (b->taken < b->chunks && !b->err) {
		i = b->taken++;
		pthread_mutex_unlock(&c->lock);
		off = b->start + (off_t)(i * c->chunk);
		end = min(off + (off_t)c->chunk, b->task->st.st_size);
		reading = false;
		err = copy_range(c, &b->src, &b->dst, b->sparse, off, end, buf, 0, &reading);
		pthread_mutex_lock(&c->lock);
		if (err) {
			if (!b->err) {
				b->err = err;
				b->reading = reading;
			}
			break;
		}
		b->bits[i / 8] |= 1 << (i % 8);
		b->done++;
		checkpoint(c, b);
	}
	if (--b->users)
		return;
	/* The last one out: nobody comes in any more, as there is no chunk to be had. */
	for (pp = &c->bigs; *pp != b; pp = &(*pp)->next)
		;
	*pp = b->next;
	pthread_mutex_unlock(&c->lock);
	finish(c, b, b->err);
	free(b->bits);
	free(b);
	pthread_mutex_lock(&c->lock);
	pthread_cond_broadcast(&c->cond);
}

/* A file from the queue. With c->lock not held. */
static void file_work(struct copier *c, struct task *t, u8 *buf)
{
	struct big small = { .task = t }, *b;
	int err;

	pthread_mutex_lock(&c->lock);
	snprintf(c->latest_buf, sizeof(c->latest_buf), "%s",
		 strrchr(t->to, '/') ? strrchr(t->to, '/') + 1 : t->to);
	pthread_mutex_unlock(&c->lock);
	if (same_file(c, t)) {
		fail("%s and %s are the same file", t->from, t->to);
		c->failed = true;
		task_free(t);
		return;
	}
	if (complete(c, t)) {
		count(c, t->st.st_size, 1);
		task_free(t);
		return;
	}
	if (open_both(c, &small, buf)) {
		task_free(t);
		return;
	}
	if (t->st.st_size - small.start <= (off_t)c->chunk) {
		err = copy_range(c, &small.src, &small.dst, small.sparse, small.start,
				 t->st.st_size, buf, small.have, &small.reading);
		finish(c, &small, err);
		return;
	}
	b = malloc(sizeof(*b));
	if (b) {
		*b = small;
		b->chunks = (t->st.st_size - b->start + c->chunk - 1) / c->chunk;
		b->noted_ms = now_ms();
		b->bits = calloc(b->chunks / 8 + 1, 1);
	}
	if (!b || !b->bits) {
		free(b);
		finish(c, &small, -ENOMEM);
		return;
	}
	if (!c->resume && *b->note.path)
		end_unlink(c->to, b->note.path);	/* of an earlier copy: not true any more */
	pthread_mutex_lock(&c->lock);
	b->next = c->bigs;
	c->bigs = b;
	pthread_cond_broadcast(&c->cond);
	big_work(c, b, buf);
	pthread_mutex_unlock(&c->lock);
}

static void *worker(void *arg)
{
	struct copier *c = arg;
	u8 *buf = calloc(1, c->chunk);
	struct task *t;
	struct big *b;

	pthread_mutex_lock(&c->lock);
	while (buf) {
		for (b = c->bigs; b && (b->taken == b->chunks || b->err); b = b->next)
			;
		if (b) {
			big_work(c, b, buf);
			continue;
		}
		t = c->head;
		if (t) {
			c->head = t->next;
			if (!c->head)
				c->tail = &c->head;
			c->queued--;
			pthread_cond_broadcast(&c->cond);
			pthread_mutex_unlock(&c->lock);
			if (interrupted())
				task_free(t);
			else
				file_work(c, t, buf);
			pthread_mutex_lock(&c->lock);
			continue;
		}
		if (c->walked)
			break;
		pthread_cond_wait(&c->cond, &c->lock);
	}
	if (!buf)
		c->failed = true;
	pthread_mutex_unlock(&c->lock);
	free(buf);
	return NULL;
}

/* ---------------------------------------------------------------- walking */

static void queue_file(struct copier *c, const char *from, const char *to, const struct stat *st)
{
	struct task *t = calloc(1, sizeof(*t));

	if (t) {
		t->from = strdup(from);
		t->to = strdup(to);
		t->st = *st;
	}
	if (!t || !t->from || !t->to) {
		fail("out of memory");
		exit(EXIT_FAILURE);
	}
	pthread_mutex_lock(&c->lock);
	while (c->queued >= QUEUE_MAX)
		pthread_cond_wait(&c->cond, &c->lock);
	*c->tail = t;
	c->tail = &t->next;
	c->queued++;
	c->total += st->st_size;
	pthread_cond_broadcast(&c->cond);
	pthread_mutex_unlock(&c->lock);
}

static void walk(struct copier *c, const char *from, const char *to, bool follow);

struct walk_ctx {
	struct copier *c;
	const char *from, *to;
};

static int walk_entry(const char *name, void *arg)
{
	struct walk_ctx *w = arg;
	char *from = join(w->from, name), *to = join(w->to, name);

	walk(w->c, from, to, false);
	free(from);
	free(to);
	return interrupted() ? -EINTR : 0;
}

static void walk_dir(struct copier *c, const char *from, const char *to, const struct stat *st)
{
	struct walk_ctx w = { .c = c, .from = from, .to = to };
	struct dir_done *d;
	struct stat is;
	int err;

	if (!c->recurse) {
		fail("%s: is a directory; -r copies it", from);
		c->failed = true;
		return;
	}
	if (c->have_root && c->from.fs == c->to.fs && st->st_ino == c->root_ino &&
	    st->st_dev == c->root_dev) {
		fail("%s: is being made by this copy: left out", from);
		c->failed = true;
		return;
	}
	/* Writable while it is filled. */
	err = end_mkdir(c->to, to, (st->st_mode & 0777) | 0700);
	if (err == -EEXIST && !end_stat(c->to, to, true, &is) && S_ISDIR(is.st_mode)) {
		err = 0;
		if (c->preserve || (is.st_mode & 0700) != 0700)
			err = end_chmod(c->to, to, (is.st_mode & 07777) | 0700);
	}
	if (!err && !c->have_root && !end_stat(c->to, to, true, &is)) {
		c->root_dev = is.st_dev;
		c->root_ino = is.st_ino;
		c->have_root = true;
	}
	if (err) {
		complain(c, to, err);
		return;
	}
	if (c->preserve || (st->st_mode & 0700) != 0700) {
		d = calloc(1, sizeof(*d));
		if (d) {
			d->from = strdup(from);
			d->to = strdup(to);
			d->st = *st;
			d->next = c->dirs;
			c->dirs = d;
		}
	}
	err = end_list(c->from, from, walk_entry, &w);
	if (err && err != -EINTR)
		complain(c, from, err);
}

/* Is @to what a copy of the link, pipe, socket or device at @from would be? */
static bool same_special(struct copier *c, const char *from, const struct stat *st, const char *to,
			 const struct stat *is)
{
	char a[PVFS_SYMLINK_MAX + 1], b[PVFS_SYMLINK_MAX + 1];

	if ((st->st_mode & S_IFMT) != (is->st_mode & S_IFMT))
		return false;
	if (S_ISLNK(st->st_mode))
		return !end_readlink(c->from, from, a) && !end_readlink(c->to, to, b) &&
		       !strcmp(a, b);
	return (!S_ISCHR(st->st_mode) && !S_ISBLK(st->st_mode)) || st->st_rdev == is->st_rdev;
}

/* What is there already, of an earlier copy or not, is replaced, as files are; directories not. */
static int copy_special(struct copier *c, const char *from, const struct stat *st, const char *to)
{
	int err = end_copy_special(c->from, from, st, c->to, to);
	struct stat is;

	if (err != -EEXIST)
		return err;
	err = end_stat(c->to, to, false, &is);
	if (!err && S_ISDIR(is.st_mode))
		return -EISDIR;
	if (!err && same_special(c, from, st, to, &is))
		return 0;
	err = err ?: end_unlink(c->to, to);
	return err ?: end_copy_special(c->from, from, st, c->to, to);
}

static void walk(struct copier *c, const char *from, const char *to, bool follow)
{
	struct stat st;
	int err = end_stat(c->from, from, follow, &st);

	if (err) {
		complain(c, from, err);
		return;
	}
	if (S_ISREG(st.st_mode)) {
		queue_file(c, from, to, &st);
	} else if (S_ISDIR(st.st_mode)) {
		walk_dir(c, from, to, &st);
	} else if (!c->recurse) {
		fail("%s: is not a file; -r copies it as what it is", from);
		c->failed = true;
	} else {
		err = copy_special(c, from, &st, to);
		if (!err && c->preserve)
			keep(c, from, &st, to);
		if (err)
			complain(c, to, err);
		else
			count(c, 0, 1);
	}
}

/* What was made last is deepest: attributes from there up. */
static void finish_dirs(struct copier *c)
{
	struct dir_done *d;
	int err;

	while ((d = c->dirs) != NULL) {
		c->dirs = d->next;
		err = d->from && d->to ? 0 : -ENOMEM;
		if (!err && c->preserve)
			keep(c, d->from, &d->st, d->to);
		else if (!err)
			err = end_chmod(c->to, d->to, d->st.st_mode & 07777 & ~c->umask);
		if (err)
			complain(c, d->to ?: "?", err);
		free(d->from);
		free(d->to);
		free(d);
	}
}

/* ---------------------------------------------------------------- progress */

struct progress {
	struct copier *c;
	u64 start_ms;
	bool stop;		/* c->lock */
};

static void draw(struct progress *p, bool last)
{
	struct copier *c = p->c;
	char a[16], b[16], r[16], name[64], eta[32] = "";
	u64 ms = now_ms() - p->start_ms, rate, left;
	bool walked;

	pthread_mutex_lock(&c->lock);
	human(c->bytes, a);
	human(c->total, b);
	rate = ms ? c->bytes * 1000 / ms : 0;
	left = c->total > c->bytes ? c->total - c->bytes : 0;
	walked = c->walked;
	memcpy(name, c->latest_buf, sizeof(name));
	pthread_mutex_unlock(&c->lock);
	if (rate && walked && !last)
		snprintf(eta, sizeof(eta), "  %llu:%02llu left",
			 (unsigned long long)(left / rate / 60),
			 (unsigned long long)(left / rate % 60));
	/* Names may hold anything: none of it to the terminal. */
	for (char *s = name; *s; s++) {
		if ((unsigned char)*s < 32 || *s == 127)
			*s = '?';
	}
	fprintf(stderr, "\r\033[K%6s of %s%s  %s/s%s  %.40s", a, b, walked ? "" : "+",
		human(rate, r), eta, name);
	if (last)
		fputc('\n', stderr);
	fflush(stderr);
}

static void *progress_thread(void *arg)
{
	struct progress *p = arg;
	struct timespec ts;

	pthread_mutex_lock(&p->c->lock);
	while (!p->stop) {
		clock_gettime(CLOCK_REALTIME, &ts);
		ts.tv_nsec += 200000000;
		if (ts.tv_nsec >= 1000000000) {
			ts.tv_sec++;
			ts.tv_nsec -= 1000000000;
		}
		/* c->cond is broadcast for every file: draw by the clock only. */
		while (!p->stop &&
		       pthread_cond_timedwait(&p->c->cond, &p->c->lock, &ts) != ETIMEDOUT)
			;
		pthread_mutex_unlock(&p->c->lock);
		draw(p, false);
		pthread_mutex_lock(&p->c->lock);
	}
	pthread_mutex_unlock(&p->c->lock);
	return NULL;
}

/* ---------------------------------------------------------------- the command */

/* Where @from goes: into @target when that is a directory. */
static char *target_of(const char *from, const char *target, bool into)
{
	char *copy, *slash, *path;

	if (!into)
		return strdup(target);
	copy = strdup(from);
	if (!copy)
		return NULL;
	while ((slash = strrchr(copy, '/')) != NULL && !slash[1] && slash != copy)
		*slash = '\0';
	slash = strrchr(copy, '/');
	path = join(target, slash ? slash + 1 : copy);
	free(copy);
	return path;
}

static int run(struct copier *c, char **from, int n, const char *to, unsigned long jobs, bool bar)
{
	struct progress p = { .c = c, .start_ms = now_ms() };
	pthread_t threads[64], drawer;
	unsigned long k;
	struct stat st;
	bool into;
	char *path;
	int i, err;

	err = end_stat(c->to, to, true, &st);
	into = !err && S_ISDIR(st.st_mode);
	if (!into && (n > 1 || (strlen(to) > 1 && to[strlen(to) - 1] == '/' && !c->recurse))) {
		fail("%s: %s", to, err ? strerror(-err) : "is not a directory");
		return EXIT_FAILURE;
	}
	for (k = 0; k < jobs; k++) {
		if (pthread_create(&threads[k], NULL, worker, c))
			break;
	}
	if (!k) {
		fail("can't start threads");
		return EXIT_FAILURE;
	}
	if (bar && pthread_create(&drawer, NULL, progress_thread, &p))
		bar = false;
	for (i = 0; i < n && !interrupted(); i++) {
		c->have_root = false;
		path = target_of(remote_path(from[i]) ?: from[i], to, into);
		if (path)
			walk(c, remote_path(from[i]) ?: from[i], path, !c->recurse);
		free(path);
	}
	pthread_mutex_lock(&c->lock);
	c->walked = true;
	pthread_cond_broadcast(&c->cond);
	pthread_mutex_unlock(&c->lock);
	while (k--)
		pthread_join(threads[k], NULL);
	if (bar) {
		pthread_mutex_lock(&c->lock);
		p.stop = true;
		pthread_cond_broadcast(&c->cond);
		pthread_mutex_unlock(&c->lock);
		pthread_join(drawer, NULL);
		draw(&p, true);
	}
	if (!interrupted())
		finish_dirs(c);
	return interrupted() ? EXIT_INTERRUPTED : c->failed ? EXIT_FAILURE : 0;
}

int cmd_cp(int argc, char **argv)
{
	enum { CHUNK = 1, RESUME, CHECKPOINT, FSYNC, NO_PROGRESS };
	static const struct option longopts[] = { { "recursive", no_argument, NULL, 'r' },
						  { "preserve", no_argument, NULL, 'p' },
						  { "jobs", required_argument, NULL, 'j' },
						  { "chunk", required_argument, NULL, CHUNK },
						  { "resume", no_argument, NULL, RESUME },
						  { "checkpoint", required_argument, NULL,
						    CHECKPOINT },
						  { "fsync", no_argument, NULL, FSYNC },
						  { "no-progress", no_argument, NULL, NO_PROGRESS },
						  TOOL_LONG };
	struct copier c = { .chunk = 4u << 20,
			    .checkpoint_ms = 1000,
			    .lock = PTHREAD_MUTEX_INITIALIZER,
			    .cond = PTHREAD_COND_INITIALIZER };
	bool bar = isatty(STDERR_FILENO);
	struct pvfs_fs *fs = NULL;
	unsigned long jobs = 4, v;
	const char *to;
	int opt, i, rc, remote = 0;
	u64 size;

	while ((opt = getopt_long(argc, argv, TOOL_SHORT "rpj:", longopts, NULL)) != -1) {
		switch (opt) {
		case 'r':
			c.recurse = true;
			break;
		case 'p':
			c.preserve = true;
			break;
		case 'j':
			if (parse_number(optarg, 1, 64, &jobs))
				return EXIT_USAGE;
			break;
		case CHUNK:
			if (pvfs_parse_size(optarg, &size) || size < 4096 || size > (1u << 30))
				return tool_usage("a chunk has 4k .. 1G");
			c.chunk = size;
			break;
		case RESUME:
			c.resume = true;
			break;
		case CHECKPOINT:
			if (parse_number(optarg, 0, 86400, &v))
				return EXIT_USAGE;
			c.checkpoint_ms = v * 1000;
			break;
		case FSYNC:
			c.fsync = true;
			break;
		case NO_PROGRESS:
			bar = false;
			break;
		default:
			rc = tool_option(opt);
			if (rc)
				return rc < 0 ? EXIT_USAGE : 0;
		}
	}
	if (argc - optind < 2)
		return tool_usage("needs a source and a target");
	to = argv[argc - 1];
	for (i = optind; i < argc - 1; i++)
		remote += !!remote_path(argv[i]);
	if (remote && remote != argc - 1 - optind)
		return tool_usage("sources are either all in the volume or all local");
	if (!remote && !remote_path(to))
		return tool_usage("neither source nor target is in the volume: paths in it are written pvfs:/path");
	if (tool_connect(&fs))
		return EXIT_FAILURE;
	c.from.fs = remote ? fs : NULL;
	c.to.fs = remote_path(to) ? fs : NULL;
	to = remote_path(to) ?: to;
	c.tail = &c.head;
	c.umask = umask(0);
	umask(c.umask);
	/* Time to note how far the copies are: what is good of them has been noted before (--checkpoint). */
	interrupt_begin(LAST_WORDS "\n", END_SECONDS);
	rc = run(&c, argv + optind, argc - 1 - optind, to, jobs, bar);
	tool_disconnect(fs);
	return rc;
}
