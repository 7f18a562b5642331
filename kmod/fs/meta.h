/* SPDX-License-Identifier: GPL-2.0 */
/*
 * meta.h - what the operations of the manager have in common; for meta*.c only. They are functions
 * that encode, exchange, decode and check: no state, no policy. Bodies and replies are in
 * common/msg.def.
 */
#ifndef PVFS_META_H
#define PVFS_META_H

#include <linux/slab.h>
#include "vfs.h"

/* Room for any body but its groups and a symbolic link's target. */
#define META_ROOM 768

/* The caller's credentials as they travel. */
struct who {
	struct pvfs_cred cred;
	u8 *heap;
	u8 small[4 * 32];
};

int pvfs_who_get(struct who *w, struct inode *inode, struct pvfs_idmap *idmap,
		 struct pvfs_cred *ret);
void pvfs_who_put(struct who *w);

/* A request that is answered EAGAIN. Zero before the first time. */
struct again {
	unsigned long since;	/* jiffies */
	u32 aborts;		/* of the volume, then */
	bool told;
};

int pvfs_ask_again(struct pvfs_volume *vol, struct again *a);
int pvfs_final_error(struct pvfs_volume *vol, enum pvfs_op op, int err);
int pvfs_attr_check(struct pvfs_volume *vol, const struct pvfs_attr *attr);
int pvfs_own_attr_check(struct inode *inode, const struct pvfs_attr *attr);
int pvfs_own_attr_result(struct inode *inode, int err, const struct pvfs_attr *attr,
			 const struct pvfs_ask *ask);
int pvfs_own_changed(struct inode *inode, int err, const struct pvfs_attr *attr);

/* What goes along with a request, or comes with its answer. */
struct payload {
	const struct bio_vec *bv;
	unsigned int nbv;
	u32 len;		/* bytes to send, or room */
	bool write;
	bool gives;		/* PVFS_RF_GIVES */
	u32 got;		/* bytes received */
	/* room for a string of the answer, and its NUL; it stays empty when there is none */
	char *text;
	u32 text_room;
};

static inline void keep_text(struct payload *p, const struct pvfs_str *s)
{
	if (s->len >= p->text_room)
		return;
	memcpy(p->text, s->p, s->len);
	p->text[s->len] = 0;
}

/*
 * meta_<name>(vol, room, m, r): sends pvfs_<name>_req and decodes pvfs_<name>_rep, whose strings
 * must not outlive the request: for replies without any. data_<name>() has a payload too. @keep:
 * what to do with a string.
 */
#define META_TEXT(OP, name, keep) \
static int data_##name(struct pvfs_volume *vol, u32 room, const struct pvfs_##name##_req *m, \
		       struct pvfs_##name##_rep *r, struct payload *p) \
{ \
	struct pvfs_request *req; \
	struct again again = { }; \
	int err; \
	\
	do { \
		if (p && p->gives) \
			req = pvfs_req_alloc_giving(vol->mgr, PVFS_OP_##OP, room); \
		else \
			req = pvfs_req_alloc(vol->mgr, PVFS_OP_##OP, room); \
		if (IS_ERR(req)) \
			return pvfs_final_error(vol, PVFS_OP_##OP, PTR_ERR(req)); \
		err = pvfs_##name##_req_encode(m, req->body, req->body_room); \
		if (err >= 0) { \
			req->body_len = err; \
			if (p) { \
				req->bv = p->bv; \
				req->nbv = p->nbv; \
				req->bv_len = p->len; \
				req->write = p->write; \
			} \
			err = pvfs_req_run(req); \
			if (!err) \
				err = pvfs_##name##_rep_decode(r, req->rep, req->rep_len); \
			if (p) \
				p->got = req->in_len; \
			if (!err) \
				keep; \
		} \
		pvfs_req_put(req); \
		if (err == -EAGAIN) \
			err = pvfs_ask_again(vol, &again); \
	} while (err == -EAGAIN); \
	return pvfs_final_error(vol, PVFS_OP_##OP, err); \
}

#define META_DATA(OP, name) META_TEXT(OP, name, (void)0)

#define META(OP, name) \
META_DATA(OP, name) \
static int meta_##name(struct pvfs_volume *vol, u32 room, const struct pvfs_##name##_req *m, \
		       struct pvfs_##name##_rep *r) \
{ \
	return data_##name(vol, room, m, r, NULL); \
}

/* The inode's identity on the wire. */
static inline struct pvfs_fid fid_of(const struct inode *inode)
{
	return PVFS_I(inode)->fid;
}

/* Room for a body with these credentials. */
static inline u32 room(const struct who *w)
{
	return META_ROOM + w->cred.groups.len;
}

#endif
