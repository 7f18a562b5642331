// SPDX-License-Identifier: LGPL-2.1
/*
 * holders.c - who has a lease on a file, or has it open: HOLDERS. Of the file itself nothing is
 * asked, as that would draw in what a client has not told yet of a new one.
 */
#include "lib.h"
#include <stdlib.h>

static void who_of(const struct pvfs_holder *h, struct pvfs_who *ret)
{
	_Static_assert(PVFS_WHO_LEASE == PVFS_HD_LEASE && PVFS_WHO_DRAFT == PVFS_HD_DRAFT &&
		       PVFS_WHO_RECALL == PVFS_HD_RECALL && PVFS_WHO_OWN == PVFS_HD_OWN &&
		       PVFS_WHO_WRITE == PVFS_HD_WRITE && PVFS_WHO_OUT == PVFS_HD_OUT &&
		       PVFS_WHO_GRACE == PVFS_HR_GRACE,
		       "as the protocol has them");
	_Static_assert(sizeof(ret->host) == PVFS_HOST_MAX + 1, "room for any host");

	*ret = (struct pvfs_who){
		.session = h->session, .flags = h->flags, .lease_ms = h->ms,
		.readers = h->readers, .writers = h->writers,
	};
	memcpy(ret->host, h->host.p, h->host.len);
}

/* @n more of them, encoded. */
static int append(struct pvfs_who_list *l, u32 n, const void *data, u32 len)
{
	u64 last = l->n ? l->who[l->n - 1].session : 0;
	struct pvfs_who *more;
	struct pvfs_holder h;
	struct pvfs_wire w;

	/* As many as the bytes may be: what a server says is not believed before. */
	if (!n || n > len)
		return n ? -EIO : 0;
	more = realloc(l->who, (l->n + n) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	l->who = more;
	pvfs_wire_init(&w, data, len);
	while (n--) {
		pvfs_get_holder(&w, &h);
		/* Else it could go on for ever. */
		if (w.err || h.session <= last)
			return -EIO;
		last = h.session;
		who_of(&h, &l->who[l->n++]);
	}
	return 0;
}

/* What the walk leads to; then all behind the last, of the same inode whatever its name is by then. */
static int fetch(struct pvfs_fs *fs, const struct walk *w, size_t max, void *data, u32 room,
		 struct pvfs_who_list *l)
{
	struct pvfs_holders_req req = { .fid = *lib_walk_dir(w), .name = PVFS_STR(w->name), .bytes = room };
	struct iovec in = { .iov_base = data, .iov_len = room };
	struct pvfs_holders_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];
	u32 len;
	int err;

	lib_fs_cred_get(fs, &cred, &req.cred);
	do {
		len = 0;
		err = MGR_CALL_IN(fs, HOLDERS, holders, &req, &rep, buf, &in, &len);
		if (!err && w->must_dir && !S_ISDIR(rep.mode))
			err = -ENOTDIR;
		err = err ?: append(l, rep.count, data, len);
		if (err)
			return err;
		l->fh = (struct pvfs_fh){ .ino = rep.fid.ino, .gen = rep.fid.gen };
		l->mode = rep.mode;
		l->flags = rep.flags;
		l->left = rep.left;
		req.fid = rep.fid;
		req.name.len = 0;
		req.after = l->n ? l->who[l->n - 1].session : 0;
	} while (rep.left && rep.count && (!max || l->n < max));
	if (max && l->n > max) {
		l->left += l->n - max;
		l->n = max;
	}
	return 0;
}

int pvfs_who_holds(struct pvfs_fs *fs, const char *path, size_t max, struct pvfs_who_list *ret)
{
	struct pvfs_who_list l = { 0 };
	int err = lib_fs_check(fs);
	struct walk w;
	void *data;

	if (err)
		return err;
	data = malloc(PVFS_READDIR_MAX);
	if (!data)
		return -ENOMEM;
	err = lib_walk_parent(fs, path, &w) ?: fetch(fs, &w, max, data, PVFS_READDIR_MAX, &l);
	lib_walk_free(&w);
	free(data);
	if (err)
		pvfs_who_free(&l);
	else
		*ret = l;
	return err;
}

void pvfs_who_free(struct pvfs_who_list *l)
{
	free(l->who);
	l->who = NULL;
	l->n = 0;
}
