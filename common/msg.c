// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * msg.c - the codec: header and bodies. One source for the module, the daemons, the library and the
 * tests.
 */
#include "msg.h"

/* ---- encode ---- */
#define U8(f) pvfs_put_u8(w, m->f);
#define U16(f) pvfs_put_u16(w, m->f);
#define U32(f) pvfs_put_u32(w, m->f);
#define U64(f) pvfs_put_u64(w, m->f);
#define S64(f) pvfs_put_u64(w, (u64)m->f);
#define FIX(f, n) pvfs_put_fix(w, m->f, n);
#define STR(f, max) pvfs_put_str(w, &m->f, max);
#define BLOB(f, max) pvfs_put_blob(w, &m->f, max);
#define SUB(type, f) pvfs_put_##type(w, &m->f);
#define SUBMSG(name, fields) \
	void pvfs_put_##name(struct pvfs_wire *w, const struct pvfs_##name *m) { fields }
#define MSG(name, fields) \
	int pvfs_##name##_encode(const struct pvfs_##name *m, void *buf, size_t room) \
	{ \
		struct pvfs_wire wire, *w = &wire; \
		pvfs_wire_init(w, buf, room); \
		(void)m; \
		fields \
		return w->err ? w->err : (int)(w->p - (u8 *)buf); \
	}
#include "msg.def"
#include "msg_undef.h"

/* ---- decode ---- */
#define U8(f) m->f = pvfs_get_u8(w);
#define U16(f) m->f = pvfs_get_u16(w);
#define U32(f) m->f = pvfs_get_u32(w);
#define U64(f) m->f = pvfs_get_u64(w);
#define S64(f) m->f = (s64)pvfs_get_u64(w);
#define FIX(f, n) pvfs_get_fix(w, m->f, n);
#define STR(f, max) pvfs_get_str(w, &m->f, max);
#define BLOB(f, max) pvfs_get_blob(w, &m->f, max);
#define SUB(type, f) pvfs_get_##type(w, &m->f);
#define SUBMSG(name, fields) \
	void pvfs_get_##name(struct pvfs_wire *w, struct pvfs_##name *m) { fields }
#define MSG(name, fields) \
	int pvfs_##name##_decode(struct pvfs_##name *m, const void *buf, size_t len) \
	{ \
		struct pvfs_wire wire, *w = &wire; \
		pvfs_wire_init(w, buf, len); \
		(void)m; \
		fields \
		if (!w->err && w->p != w->end) \
			w->err = -EBADMSG; \
		return w->err; \
	}
#include "msg.def"
#include "msg_undef.h"

/* ---- operations ---- */
static const struct pvfs_op_info op_table[PVFS_OP_LIMIT] = {
#define PVFS_OP(num, NAME, lower, who, fl) [num] = { .name = #NAME, .by = PVFS_ROLE_##who, .flags = fl },
#include "ops.def"
#undef PVFS_OP
};

const struct pvfs_op_info *pvfs_op_info(unsigned int op)
{
	if (op >= PVFS_OP_LIMIT || !op_table[op].name)
		return NULL;
	return &op_table[op];
}

const char *pvfs_op_name(unsigned int op)
{
	const struct pvfs_op_info *i = pvfs_op_info(op);

	return i ? i->name : "?";
}

/* ---- header ---- */
void pvfs_header_encode(const struct pvfs_header *h, struct pvfs_hdr *out)
{
	memset(out, 0, sizeof(*out));
	out->magic = cpu_to_le32(PVFS_MAGIC);
	out->version = PVFS_HDR_VERSION;
	out->op = cpu_to_le16(h->op);
	out->flags = cpu_to_le32(h->flags);
	out->tag = cpu_to_le32(h->tag);
	out->session = cpu_to_le64(h->session);
	out->slot = cpu_to_le16(h->slot);
	out->credits = cpu_to_le16(h->credits);
	out->slot_seq = cpu_to_le32(h->slot_seq);
	out->status = cpu_to_le32(h->status);
	out->body_len = cpu_to_le32(h->body_len);
	out->payload_len = cpu_to_le32(h->payload_len);
	out->body_crc = cpu_to_le32(h->body_crc);
	out->payload_crc = cpu_to_le32(h->payload_crc);
	out->hdr_crc = cpu_to_le32(pvfs_crc32c(0, out, PVFS_HDR_LEN - 4));
}

int pvfs_header_decode(const struct pvfs_hdr *in, struct pvfs_header *h)
{
	if (le32_to_cpu(in->magic) != PVFS_MAGIC || in->version != PVFS_HDR_VERSION)
		return -EPROTO;
	if (le32_to_cpu(in->hdr_crc) != pvfs_crc32c(0, in, PVFS_HDR_LEN - 4))
		return -EBADMSG;
	h->op = le16_to_cpu(in->op);
	h->flags = le32_to_cpu(in->flags);
	h->tag = le32_to_cpu(in->tag);
	h->session = le64_to_cpu(in->session);
	h->slot = le16_to_cpu(in->slot);
	h->credits = le16_to_cpu(in->credits);
	h->slot_seq = le32_to_cpu(in->slot_seq);
	h->status = le32_to_cpu(in->status);
	h->body_len = le32_to_cpu(in->body_len);
	h->payload_len = le32_to_cpu(in->payload_len);
	h->body_crc = le32_to_cpu(in->body_crc);
	h->payload_crc = le32_to_cpu(in->payload_crc);
	if (in->zero || in->reserved[0] || in->reserved[1] || (h->flags & ~PVFS_HF_ALL))
		return -EBADMSG;
	if (!(h->flags & PVFS_HF_REPLY) && h->status)
		return -EBADMSG;
	if (!(h->flags & PVFS_HF_PAYLOAD_CRC) && h->payload_crc)
		return -EBADMSG;
	if (h->body_len > PVFS_BODY_MAX || h->payload_len > PVFS_PAYLOAD_MAX ||
	    h->slot >= PVFS_SLOTS_MAX || h->credits > PVFS_CREDITS_MAX)
		return -EMSGSIZE;
	return pvfs_op_info(h->op) ? 0 : -EOPNOTSUPP;
}
