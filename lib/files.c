// SPDX-License-Identifier: LGPL-2.1
/*
 * files.c - many small files in few requests: FILES_READ and FILES_WRITE for those that the manager
 * has, or may have, the bytes of; open, read or write, and close for the others, one by one.
 *
 * A directory is looked up once. A request is for files of one directory, as many as fit.
 */
#include "lib.h"
#include <fcntl.h>
#include <stdlib.h>

/* A file of the caller's, and where its last component begins. */
struct item {
	struct pvfs_small *file;
	const char *name;		/* NULL: none that a file can have, which the usual way says */
	size_t dirlen;			/* bytes of the path before it */
};

struct batch {
	struct pvfs_fs *fs;
	bool write;
	int flags;			/* to write: O_EXCL, or 0 */
	struct pvfs_fid dir;
	struct item *item;
	u32 n;
	u8 *bytes;			/* PVFS_FILES_BYTES */
	u8 list[PVFS_FILES_LIST];
	u8 rep[PVFS_FILES_MAX * PVFS_FILE_RESULT_LEN + 16];
	struct pvfs_str results;	/* borrows rep */
};

/* ---------------------------------------------------------------- one by one */

static ssize_t move(struct pvfs_file *f, struct pvfs_small *s, bool write)
{
	size_t done = 0;
	ssize_t n;

	do {
		n = write ? pvfs_pwrite(f, (u8 *)s->buf + done, s->len - done, done) :
			    pvfs_pread(f, (u8 *)s->buf + done, s->len - done, done);
		if (n < 0)
			return n;
		done += n;
	} while (n && done < s->len);
	return done;
}

static void alone(struct pvfs_fs *fs, struct pvfs_small *s, bool write, int flags)
{
	struct pvfs_file *f;
	int err;

	s->result = pvfs_open(fs, s->path, write ? O_WRONLY | O_CREAT | O_TRUNC | flags : O_RDONLY,
			      s->mode, &f);
	if (s->result)
		return;
	s->result = s->len ? move(f, s, write) : 0;
	err = pvfs_close(f);
	if (s->result >= 0 && err)
		s->result = err;
}

/* ---------------------------------------------------------------- a request */

/* How much of a file is asked for or given. */
static u32 wants(const struct pvfs_small *s)
{
	return min(s->len, (size_t)PVFS_FILES_BYTES);
}

/* Names as many as one request may. Return: so many; *@ret_sum: bytes to write. */
static u32 fill(struct batch *b, struct pvfs_str *ret_list, u32 *ret_sum)
{
	struct pvfs_wire w;
	u8 *end = b->list;
	u32 n, sum = 0;

	pvfs_wire_init(&w, b->list, sizeof(b->list));
	for (n = 0; n < b->n && n < PVFS_FILES_MAX; n++) {
		const struct pvfs_small *s = b->item[n].file;
		struct pvfs_file_wanted wanted = {
			.name = PVFS_STR(b->item[n].name), .mode = b->write ? s->mode & 07777 : 0,
			.len = wants(s),
		};

		/* Of two of one name the last one counts, whatever becomes of the first. */
		if (b->write && (sum + wanted.len > PVFS_FILES_BYTES || s->len > PVFS_STUFF_MAX ||
				 (n && !strcmp(b->item[n - 1].name, b->item[n].name))))
			break;
		pvfs_put_file_wanted(&w, &wanted);
		if (w.err)
			break;
		end = w.p;
		if (b->write && wanted.len)
			memcpy(b->bytes + sum, s->buf, wanted.len);
		sum += wanted.len;
	}
	*ret_list = (struct pvfs_str){ .p = b->list, .len = end - b->list };
	*ret_sum = sum;
	return n;
}

static int ask_read(struct batch *b, const struct pvfs_cred *cred, const struct pvfs_str *list,
		    u32 *ret_got)
{
	struct pvfs_files_read_req req = {
		.cred = *cred, .dir = b->dir, .room = PVFS_FILES_BYTES, .files = *list,
	};
	struct iovec in = { .iov_base = b->bytes, .iov_len = PVFS_FILES_BYTES };
	struct pvfs_files_read_rep rep;
	int err = MGR_CALL_IN(b->fs, FILES_READ, files_read, &req, &rep, b->rep, &in, ret_got);

	b->results = rep.results;
	return err;
}

static int ask_write(struct batch *b, const struct pvfs_cred *cred, const struct pvfs_str *list,
		     u32 sum)
{
	struct pvfs_files_write_req req = {
		.cred = *cred, .dir = b->dir, .umask = lib_fs_umask(b->fs), .files = *list,
	};
	struct iovec out = { .iov_base = b->bytes, .iov_len = sum };
	struct pvfs_files_write_rep rep;
	int err = MGR_CALL_DATA(b->fs, FILES_WRITE, files_write, &req, &rep, b->rep,
				sum ? &out : NULL, NULL, NULL);

	b->results = rep.results;
	return err;
}

/* What the manager does not do in this way. */
static bool has_to_go_alone(const struct batch *b, int err)
{
	return err == -EFBIG || err == -ELOOP ||
	       (b->write && err == -EEXIST && !(b->flags & O_EXCL));
}

/* Takes the results in. Return: how many, or -EBADMSG. */
static int take(struct batch *b, u32 asked, u32 got)
{
	u32 n = b->results.len / PVFS_FILE_RESULT_LEN, at = 0, i;
	struct pvfs_wire w;

	if (!n || n > asked || b->results.len % PVFS_FILE_RESULT_LEN)
		return -EBADMSG;
	pvfs_wire_init(&w, b->results.p, b->results.len);
	for (i = 0; i < n; i++) {
		struct pvfs_small *s = b->item[i].file;
		struct pvfs_file_result r;

		pvfs_get_file_result(&w, &r);
		if (r.len > wants(s) || (!b->write && r.len > got - at))
			return -EBADMSG;
		s->result = r.status ? -pvfs_errno_from_wire(r.status) : (ssize_t)r.len;
		if (!b->write && r.len)
			memcpy(s->buf, b->bytes + at, r.len);
		at += r.len;
		if (has_to_go_alone(b, s->result))
			alone(b->fs, s, b->write, b->flags);
	}
	return n;
}

/* The first of the files that are left, in one request. Return: how many are done with. */
static u32 some(struct batch *b)
{
	struct pvfs_str list;
	struct pvfs_cred cred;
	struct fs_cred copy;
	u32 n, sum, got = 0, i;
	int rc;

	n = fill(b, &list, &sum);
	if (!n) {
		alone(b->fs, b->item->file, b->write, b->flags);
		return 1;
	}
	lib_fs_cred_get(b->fs, &copy, &cred);
	rc = b->write ? ask_write(b, &cred, &list, sum) : ask_read(b, &cred, &list, &got);
	rc = rc ?: take(b, n, got);
	if (rc > 0)
		return rc;
	for (i = 0; i < n; i++) {
		struct pvfs_small *s = b->item[i].file;

		/*
		 * A manager that does not know the request, or takes no payload of that size; or
		 * nobody can say whether it was done: what is written over is written once more.
		 * All else is as true of each of them.
		 */
		if (rc == -EOPNOTSUPP || rc == -EMSGSIZE || rc == -ESTALE ||
		    (rc == -EIO && !(b->flags & O_EXCL)))
			alone(b->fs, s, b->write, b->flags);
		else
			s->result = rc;
	}
	return n;
}

/* ---------------------------------------------------------------- all of them */

static void name_of(struct item *it, struct pvfs_small *s)
{
	const char *slash = s->path ? strrchr(s->path, '/') : NULL;

	it->file = s;
	it->dirlen = slash ? slash + 1 - s->path : 0;
	it->name = s->path ? s->path + it->dirlen : NULL;
	if (!s->path || lib_name_check(it->name) || !strcmp(it->name, ".") ||
	    !strcmp(it->name, ".."))
		it->name = NULL;
}

static bool same_dir(const struct item *a, const struct item *b)
{
	return a->dirlen == b->dirlen && !memcmp(a->file->path, b->file->path, a->dirlen);
}

/* By directory and name; of one name in the order they came. */
static int order(const void *pa, const void *pb)
{
	const struct item *a = pa, *b = pb;
	size_t n = min(a->dirlen, b->dirlen);
	int c = memcmp(a->file->path, b->file->path, n);

	if (!c && a->dirlen != b->dirlen)
		c = a->dirlen < b->dirlen ? -1 : 1;
	c = c ?: strcmp(a->name, b->name);
	return c ?: a->file < b->file ? -1 : 1;
}

static int find_dir(struct pvfs_fs *fs, const struct item *it, struct pvfs_fid *ret)
{
	char *path = strndup(it->dirlen ? it->file->path : "/", it->dirlen ?: 1);
	struct walk w;
	int err;

	if (!path)
		return -ENOMEM;
	err = lib_walk_full(fs, path, true, &w);
	if (!err)
		*ret = w.attr.fid;
	lib_walk_free(&w);
	free(path);
	return err;
}

/* The first of @n, and those that come after it in its directory. Return: how many. */
static u32 one_dir(struct batch *b, struct item *item, u32 n)
{
	u32 i, count;
	int err;

	for (count = 1; count < n && same_dir(item, item + count); count++)
		;
	err = find_dir(b->fs, item, &b->dir);
	for (i = 0; err && i < count; i++)
		item[i].file->result = err;
	b->item = item;
	b->n = err ? 0 : count;
	while (b->n) {
		u32 done = some(b);

		b->item += done;
		b->n -= done;
	}
	return count;
}

static ssize_t run(struct pvfs_fs *fs, struct pvfs_small *files, size_t n, bool write, int flags)
{
	size_t i, k = 0, ok = 0;
	struct item *items;
	struct batch *b;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	if (n > INT32_MAX || (flags & ~O_EXCL))
		return -EINVAL;
	items = calloc(n + 1, sizeof(*items));
	b = malloc(sizeof(*b));
	if (b)
		b->bytes = malloc(PVFS_FILES_BYTES);
	if (!items || !b || !b->bytes) {
		err = -ENOMEM;
		goto out;
	}
	b->fs = fs;
	b->write = write;
	b->flags = flags;
	for (i = 0; i < n; i++) {
		name_of(&items[k], &files[i]);
		files[i].result = -EIO;
		if (items[k].name)
			k++;
		else
			alone(fs, &files[i], write, flags);
	}
	qsort(items, k, sizeof(*items), order);
	for (i = 0; i < k; i += one_dir(b, items + i, k - i))
		;
	for (i = 0; i < n; i++)
		ok += files[i].result >= 0;
out:
	if (b)
		free(b->bytes);
	free(b);
	free(items);
	return err ?: (ssize_t)ok;
}

ssize_t pvfs_read_files(struct pvfs_fs *fs, struct pvfs_small *files, size_t n)
{
	return run(fs, files, n, false, 0);
}

ssize_t pvfs_write_files(struct pvfs_fs *fs, struct pvfs_small *files, size_t n, int flags)
{
	return run(fs, files, n, true, flags);
}
