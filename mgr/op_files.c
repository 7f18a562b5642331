// SPDX-License-Identifier: GPL-2.0
/*
 * op_files.c - FILES_READ, FILES_WRITE: many small files of one directory in one request.
 *
 *   operation    needs                                      changes
 *   FILES_READ   x on the directory, r on each file         their access times
 *   FILES_WRITE  w,x on the directory                       directory; inode, entry, head of each
 *
 * What becomes of one file is its result, and the others go on; only what keeps all of them from
 * being done is the answer's status. An answer may be about the first of them only: when the next
 * one does not fit, or has to wait for somebody. None is ever waited for with others done.
 *
 * Files that are written are made, in one transaction, with their bytes, whole, and nobody sees one
 * that is not: they are not open in between, and nothing is to be settled afterwards.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/stat.h>

struct wanted {
	struct pvfs_file_wanted w;
	struct pvfs_file_result result;
};

/* The requests of both, and their answers, which are encoded after the handler has returned. */
struct files {
	const struct pvfs_cred *cred;
	const struct pvfs_fid *dir;
	u32 n;
	struct wanted file[PVFS_FILES_MAX];
	u8 results[PVFS_FILES_MAX * PVFS_FILE_RESULT_LEN];
};

/* FILES_READ's, which does not park; and any results, from the handler's end to the encoder. */
static __thread struct files now;

/* Return: how many, or -EINVAL: too many, or not a list of them. */
static int take(struct files *f, const struct pvfs_cred *cred, const struct pvfs_fid *dir,
		const struct pvfs_str *list)
{
	struct pvfs_wire w;

	f->cred = cred;
	f->dir = dir;
	pvfs_wire_init(&w, (void *)list->p, list->len);
	for (f->n = 0; f->n < PVFS_FILES_MAX && w.p < w.end && !w.err; f->n++) {
		pvfs_get_file_wanted(&w, &f->file[f->n].w);
		f->file[f->n].result = (struct pvfs_file_result){ 0 };
	}
	return w.err || w.p < w.end ? -EINVAL : (int)f->n;
}

/* The results of the first @n. */
static struct pvfs_str give(struct files *f, u32 n)
{
	struct pvfs_wire w;
	u32 i;

	pvfs_wire_init(&w, f->results, sizeof(f->results));
	for (i = 0; i < n; i++)
		pvfs_put_file_result(&w, &f->file[i].result);
	return (struct pvfs_str){ .p = f->results, .len = w.p - f->results };
}

/* ---- reading ---- */

struct reading {
	const struct files *f;
	const struct wanted *file;
	u32 room;			/* for its bytes */
	struct mgr_inode in;
	struct mgr_head_disk *rec;	/* room for a head, whole */
	bool full;			/* there is none */
};

static int find(struct mgr_op *op, struct reading *r)
{
	struct mgr_inode dir;
	struct ns_entry e;
	unsigned int tries;
	int err;

	err = ns_dir_get(op, r->f->dir, 0, &dir);
	err = err ?: ns_may(op, r->f->cred, &dir, MGR_MAY_EXEC);
	for (tries = 0; !err && tries < 10; tries++) {
		err = ns_entry_find(op, dir.ino, &r->file->w.name, 0, &e);
		if (err)
			return err;
		err = ns_fid_get(op, &e.fid, 0, &r->in);
		if (err != -ESTALE)
			return err;
		/* It was removed since, or its name given to another: look again. */
		err = 0;
	}
	return err ?: -EAGAIN;
}

static int read_fn(struct mgr_op *op, void *arg)
{
	struct reading *r = arg;
	int err;

	r->full = false;
	err = find(op, r);
	if (err)
		return err;
	if (!S_ISREG(r->in.mode))
		return S_ISLNK(r->in.mode) ? -ELOOP : S_ISDIR(r->in.mode) ? -EISDIR : -ENXIO;
	err = ns_may(op, r->f->cred, &r->in, MGR_MAY_READ);
	if (err)
		return err;
	if (!(r->in.flags & MGR_IF_STUFFED))
		return -EREMCHG;
	r->full = min((u64)r->file->w.len, r->in.size) > r->room;
	return r->full ? 0 : mgr_heads_get(op, &r->in, 0, r->rec);
}

/* Can it be one file's own misfortune? Else it is what becomes of the request. */
static bool of_one(int err)
{
	switch (err) {
	case -ENOENT:
	case -EACCES:
	case -ELOOP:
	case -EISDIR:
	case -ENXIO:
	case -EREMCHG:
	case -EEXIST:
	case -EINVAL:
	case -ENAMETOOLONG:
	case -EUCLEAN:
	case -EIO:
		return true;
	default:
		return false;
	}
}

static void result(struct wanted *file, int err, u32 len)
{
	file->result.status = pvfs_errno_to_wire(err == -EREMCHG ? EFBIG : -err);
	file->result.len = err ? 0 : len;
}

/* Whose access times are to be set: MGR_NOTED_MAX at a time is what a transaction may change. */
struct readers {
	struct pvfs_fid fid[MGR_NOTED_MAX];
	u32 n;
};

static int accessed_fn(struct mgr_op *op, void *arg)
{
	const struct readers *r = arg;
	int err = 0;
	u32 i;

	for (i = 0; !err && i < r->n; i++) {
		err = mgr_atime_set(op, &r->fid[i], &op->now);
		if (err == -ESTALE)
			err = 0;
	}
	return err;
}

/* Only what asks for being done again is an error: that a file was read is no more than news. */
static int accessed(struct mgr_op *op, struct readers *r, const struct mgr_inode *in)
{
	int err = 0;

	if (in && pvfs_relatime(&in->atime, &in->mtime, &in->ctime, &op->now))
		r->fid[r->n++] = (struct pvfs_fid){ .ino = in->ino, .gen = in->gen };
	if (r->n && (!in || r->n == MGR_NOTED_MAX)) {
		err = mgr_run_now(op, accessed_fn, r, 0);
		r->n = 0;
	}
	return err == -ERESTART || err == -EINPROGRESS ? err : 0;
}

int mgr_op_files_read(struct mgr_op *op, const struct pvfs_files_read_req *req,
		      struct pvfs_files_read_rep *rep)
{
	struct reading r = { .f = &now };
	struct readers readers = { .n = 0 };
	u32 at = 0, i, len;
	int err = 0;
	u8 *bytes;

	if (take(&now, &req->cred, &req->dir, &req->files) <= 0 ||
	    req->room < PVFS_STUFF_MAX || req->room > PVFS_FILES_BYTES)
		return -EINVAL;
	bytes = malloc(req->room + MGR_HEAD_MAX);
	if (!bytes)
		return -ENOMEM;
	for (i = 0; i < now.n; i++) {
		r.file = &now.file[i];
		r.room = req->room - at;
		r.rec = (void *)(bytes + at);
		err = ns_name_check(&r.file->w.name);
		err = err ?: mgr_run(op, read_fn, &r, MGR_RUN_READ);
		if (err == -EAGAIN)	/* it is being written to */
			err = mgr_run(op, read_fn, &r, 0);
		if (err == -ERESTART)
			break;
		if ((err && !of_one(err)) || r.full) {
			if (i)		/* the others are asked for anew */
				err = 0;
			break;
		}
		len = err ? 0 : min((u64)r.file->w.len, r.in.size);
		memmove(r.rec, r.rec + 1, len);
		at += len;
		result(&now.file[i], err, len);
		err = accessed(op, &readers, err ? NULL : &r.in);
		if (err)
			break;
	}
	err = err ?: accessed(op, &readers, NULL);
	if (err) {
		free(bytes);
		return err;
	}
	rep->results = give(&now, i);
	op->payload = bytes;
	op->payload_len = at;
	return 0;
}

/* ---- writing ---- */

struct writing {
	struct files *f;
	struct pvfs_files_write_rep *rep;
	struct mgr_make *make;		/* of each */
	u32 n, made;
};

static int write_fn(struct mgr_op *op, void *arg)
{
	struct writing *w = arg;
	const u8 *data = op->data;
	struct mgr_inode dir;
	int err;
	u32 i;

	w->made = 0;
	err = ns_dir_get(op, w->f->dir, MDB_RMW, &dir);
	err = err ?: ns_may(op, w->f->cred, &dir, MGR_MAY_EXEC);
	for (i = 0; !err && i < w->f->n; data += w->f->file[i++].w.len) {
		struct wanted *file = &w->f->file[i];
		struct mgr_make *mk = &w->make[i];

		/* A transaction has one file of a head's. */
		if (w->made && op->m->heads.files)
			break;
		mk->data = data;
		mk->len = file->w.len;
		err = ns_name_check(mk->name);
		if (!err) {
			err = mgr_make_in(op, mk, &dir);
			/* After any other the transaction may not be committed. */
			if (err && err != -EEXIST && err != -EREMCHG)
				break;
		}
		result(file, err, mk->len);
		w->made += !err;
		err = 0;
	}
	if (err)
		return err;
	w->n = i;
	w->rep->results = give(w->f, i);
	if (!w->made)
		return 0;
	ns_touch_mtime(op, &dir);
	return ns_inode_put(op, &dir);
}

/*
 * Where they are found after the handler has returned. Not inlined: the task may have parked, so what
 * belongs to the thread is not what it was (park.h).
 */
static void __attribute__((noinline)) keep_results(struct pvfs_files_write_rep *rep)
{
	memcpy(now.results, rep->results.p, rep->results.len);
	rep->results.p = now.results;
}

int mgr_op_files_write(struct mgr_op *op, const struct pvfs_files_write_req *req,
		       struct pvfs_files_write_rep *rep)
{
	struct files *f = malloc(sizeof(*f));
	struct writing w = { .f = f, .rep = rep };
	int n, i, err = 0;
	u64 sum = 0;

	if (!f)
		return -ENOMEM;
	n = take(f, &req->cred, &req->dir, &req->files);
	for (i = 0; i < n; i++)
		sum += f->file[i].w.len;
	if (n <= 0 || sum != op->data_len || sum > PVFS_FILES_BYTES)
		err = -EINVAL;
	else if (!(w.make = calloc(n, sizeof(*w.make))))
		err = -ENOMEM;
	for (i = 0; !err && i < n; i++) {
		w.make[i] = (struct mgr_make){
			.cred = &req->cred, .dir = &req->dir, .name = &f->file[i].w.name,
			.mode = S_IFREG | (f->file[i].w.mode & 07777), .umask = req->umask,
		};
		err = ns_ino_alloc(op, &w.make[i].fid);
	}
	err = err ?: mgr_run(op, write_fn, &w, MGR_RUN_SYNC | MGR_RUN_FINAL | MGR_RUN_GROWS);
	if (!err) {
		keep_results(rep);
		atomic_fetch_add_explicit(&op->m->files, w.made, memory_order_relaxed);
	}
	free(w.make);
	free(f);
	return err;
}
