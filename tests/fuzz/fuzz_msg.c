// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * fuzz_msg.c - the decoders under fuzz: header, every body, the lists that travel as payload,
 * striping with layouts from outside.
 *
 * What is checked beyond "does not crash": a decoded body encodes to the very bytes it was decoded
 * from, and what is refused is refused with the error that the header promises.
 */
#include "driver.h"
#include "common/stripe.h"

#define MEND_HEADER 0x02

#define MUST(cond) do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #cond); \
			abort(); \
		} \
	} while (0)

static u8 again[FUZZ_INPUT_MAX + 8];

#define U8(f)
#define U16(f)
#define U32(f)
#define U64(f)
#define S64(f)
#define FIX(f, n)
#define STR(f, max) touch(m->f.p, m->f.len, max);
#define BLOB(f, max) touch(m->f.p, m->f.len, max);
#define SUB(type, f) touch_##type(&m->f);
#define SUBMSG(name, fields) static void touch_##name(const struct pvfs_##name *m) { (void)m; fields }
#define MSG(name, fields) \
static void try_##name(const u8 *p, size_t n) \
{ \
	struct pvfs_##name body, *m = &body; \
	int err = pvfs_##name##_decode(m, p, n); \
	fields \
	MUST(err == 0 || err == -EBADMSG); \
	if (err) \
		return; \
	MUST(pvfs_##name##_encode(m, again, sizeof(again)) == (int)n); \
	MUST(!n || !memcmp(again, p, n)); \
}

/* Every byte that a string claims to have is read: a sanitizer sees the one that is not there. */
static void touch(const u8 *p, u32 len, u32 max)
{
	static volatile u8 sink __attribute__((unused));

	MUST(len <= max);
	while (len--)
		sink ^= p[len];
}

#include "common/msg.def"
#include "common/msg_undef.h"

static void try_body(const struct pvfs_header *h, const u8 *p, size_t n)
{
	switch (h->op) {
#define PVFS_OP(num, NAME, lower, who, fl) \
	case num: \
		if (h->flags & PVFS_HF_REPLY) \
			try_##lower##_rep(p, n); \
		else \
			try_##lower##_req(p, n); \
		break;
#include "common/ops.def"
#undef PVFS_OP
	}
}

/* What goes as a list of groups, in a payload or a blob. */
static void try_lists(const u8 *p, size_t n)
{
	struct pvfs_wire w;

#define TRY(group) do { \
		struct pvfs_##group m_; \
		pvfs_wire_init(&w, p, n); \
		while (!w.err && pvfs_wire_left(&w)) { \
			pvfs_get_##group(&w, &m_); \
			touch_##group(&m_); \
		} \
	} while (0)
	TRY(dent);
	TRY(iodent);
	TRY(closing);
	TRY(file_wanted);
	TRY(file_result);
	TRY(sharer);
	TRY(holder);
#undef TRY
}

static void try_layout(const u8 *p, size_t n)
{
	struct pvfs_extent e;
	struct pvfs_layout l;
	struct pvfs_wire w;
	u64 off, len;
	u32 niods, df;

	pvfs_wire_init(&w, p, n);
	pvfs_get_layout(&w, &l);
	off = pvfs_get_u64(&w) & PVFS_FILE_MAX;
	len = pvfs_get_u64(&w);
	niods = pvfs_get_u16(&w) % PVFS_IOD_MAX + 1;
	if (w.err || !pvfs_layout_valid(&l, niods))
		return;
	len = 1 + len % (PVFS_FILE_MAX - off + 1);
	pvfs_stripe_map(&l, off, len, &e);
	MUST(e.df < l.pcount && e.len && e.len <= len);
	MUST(pvfs_stripe_file_off(&l, e.df, e.off) == off);
	MUST(pvfs_stripe_iod(&l, e.df, niods) < niods);
	df = off % l.pcount;
	pvfs_stripe_share(&l, df, off, len, &e);
	MUST(e.len <= len);
	MUST(pvfs_stripe_file_size(&l, df, pvfs_stripe_df_size(&l, df, off)) <= off);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

void fuzz_end(void)
{
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pvfs_header h, again_h;
	struct pvfs_hdr hdr;
	u8 *body, *copy;
	size_t n;
	int err;

	if (size < 1 + PVFS_HDR_LEN || size > FUZZ_INPUT_MAX)
		return 0;
	/* Exactly as much memory as there are bytes. */
	n = size - 1 - PVFS_HDR_LEN;
	copy = malloc(size - 1);
	body = malloc(n ?: 1);
	if (!copy || !body)
		abort();
	memcpy(copy, data + 1, size - 1);
	if (data[0] & MEND_HEADER)
		fuzz_mend(copy, n, true);
	memcpy(body, copy + PVFS_HDR_LEN, n);
	memcpy(&hdr, copy, sizeof(hdr));
	err = pvfs_header_decode(&hdr, &h);
	MUST(err == 0 || err == -EPROTO || err == -EBADMSG || err == -EMSGSIZE || err == -EOPNOTSUPP);
	if (!err) {
		MUST(h.body_len <= PVFS_BODY_MAX && h.payload_len <= PVFS_PAYLOAD_MAX && pvfs_op_info(h.op));
		pvfs_header_encode(&h, &hdr);
		MUST(!memcmp(&hdr, copy, sizeof(hdr)));
		MUST(!pvfs_header_decode(&hdr, &again_h));
		/* The body as long as it says it is, and as long as it happens to be. */
		if (h.body_len < n) {
			u8 *exact = malloc(h.body_len ?: 1);

			memcpy(exact, body, h.body_len);
			try_body(&h, exact, h.body_len);
			free(exact);
		}
		try_body(&h, body, n);
	}
	try_lists(body, n);
	try_layout(body, n);
	free(body);
	free(copy);
	return 0;
}
