// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * mkcorpus.c - writes a seed for fuzzing per operation, its request and its reply, made from
 * ops.def and msg.def: mkcorpus DIR. The same every time, so that running it again after a new
 * operation adds that one's files.
 */
#include "common/runs.h"
#include "tests/unit/msg_fill.h"
#include <stdio.h>
#include <stdlib.h>

#define FLAGS 0x07	/* see fuzz_server.c: proved itself, header and body mended */

static const char *dir;
static int failed;

static void write_seed(const char *name, const char *kind, struct pvfs_header *h, const u8 *body)
{
	u8 payload[64];
	struct pvfs_hdr hdr;
	char path[4096];
	u8 flags = FLAGS;
	FILE *f;

	h->body_crc = h->body_len ? pvfs_crc32c(0, body, h->body_len) : 0;
	memset(payload, 0x5a, sizeof(payload));
	pvfs_header_encode(h, &hdr);
	snprintf(path, sizeof(path), "%s/%s-%s", dir, name, kind);
	f = fopen(path, "wb");
	if (!f || fwrite(&flags, 1, 1, f) != 1 || fwrite(&hdr, sizeof(hdr), 1, f) != 1 ||
	    fwrite(body, 1, h->body_len, f) != h->body_len ||
	    fwrite(payload, 1, h->payload_len, f) != h->payload_len || fclose(f)) {
		perror(path);
		failed = 1;
	}
}

/* Requests whose runs are sound: 64 bytes, in a row of blocks, of the first datafile. */
static void write_lists(u8 *body)
{
	static const struct pvfs_run run = { .len = 16, .ndims = 1, .dim = { { 4, 100 } } };
	u8 raw[PVFS_RUN_BYTES_MAX];
	struct pvfs_read_list_req r = { .fid = { 2, 2 }, .pcount = 4, .ssize = 65536, .len = 64,
					.runs.p = raw };
	struct pvfs_write_list_req w = { .fid = { 2, 2 }, .pcount = 4, .ssize = 65536, .len = 64,
					 .runs.p = raw };
	struct pvfs_header h = { .tag = 1, .session = 7 };
	struct pvfs_wire wire;

	pvfs_wire_init(&wire, raw, sizeof(raw));
	pvfs_put_run(&wire, &run);
	r.runs.len = w.runs.len = wire.p - raw;
	h.op = PVFS_OP_READ_LIST;
	h.body_len = pvfs_read_list_req_encode(&r, body, PVFS_BODY_MAX);
	write_seed("READ_LIST", "sound", &h, body);
	h.op = PVFS_OP_WRITE_LIST;
	h.payload_len = 64;
	h.body_len = pvfs_write_list_req_encode(&w, body, PVFS_BODY_MAX);
	write_seed("WRITE_LIST", "sound", &h, body);
}

/* Requests about two files in the root; to write, of 64 bytes together. */
static void write_files(u8 *body)
{
	u8 raw[64], who[PVFS_SHARER_LEN];
	struct pvfs_files_read_req r = { .dir = { 1, 1 }, .room = PVFS_STUFF_MAX, .files.p = raw };
	struct pvfs_files_write_req w = { .dir = { 1, 1 }, .umask = 022, .files.p = raw };
	struct pvfs_open_shared_req s = { .dir = { 1, 1 }, .name = PVFS_STR("shared"), .mode = 0600,
					  .flags = PVFS_O_READ | PVFS_O_WRITE | PVFS_O_CREAT,
					  .sharers = { who, sizeof(who) } };
	struct pvfs_holders_req q = { .fid = { 1, 1 }, .name = PVFS_STR("one"), .bytes = 4096 };
	struct pvfs_header h = { .tag = 1, .session = 7, .slot_seq = 1 };
	struct pvfs_wire wire;

	h.op = PVFS_OP_HOLDERS;
	h.body_len = pvfs_holders_req_encode(&q, body, PVFS_BODY_MAX);
	write_seed("HOLDERS", "sound", &h, body);
	pvfs_wire_init(&wire, raw, sizeof(raw));
	pvfs_put_file_wanted(&wire, &(struct pvfs_file_wanted){ PVFS_STR("one"), 0644, 24 });
	pvfs_put_file_wanted(&wire, &(struct pvfs_file_wanted){ PVFS_STR("two"), 0600, 40 });
	r.files.len = w.files.len = wire.p - raw;
	h.op = PVFS_OP_FILES_READ;
	h.body_len = pvfs_files_read_req_encode(&r, body, PVFS_BODY_MAX);
	write_seed("FILES_READ", "sound", &h, body);
	pvfs_wire_init(&wire, who, sizeof(who));
	pvfs_put_sharer(&wire, &(struct pvfs_sharer){ .session = 1 });
	h.op = PVFS_OP_OPEN_SHARED;
	h.body_len = pvfs_open_shared_req_encode(&s, body, PVFS_BODY_MAX);
	write_seed("OPEN_SHARED", "sound", &h, body);
	h.op = PVFS_OP_FILES_WRITE;
	h.payload_len = 64;
	h.body_len = pvfs_files_write_req_encode(&w, body, PVFS_BODY_MAX);
	write_seed("FILES_WRITE", "sound", &h, body);
}

int main(int argc, char **argv)
{
	static u8 body[PVFS_BODY_MAX];
	struct filler fl;
	struct pvfs_header h;

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIR\n", argv[0]);
		return 2;
	}
	dir = argv[1];
#define ONE(num, name, fl_, below_) do { \
		struct pvfs_##name m; \
		fl = (struct filler){ .state = 0x123456789abcdefull + num, .len = 20, .below = below_ }; \
		memset(&m, 0, sizeof(m)); \
		fill_##name(&m, &fl); \
		h = (struct pvfs_header){ .op = num, .flags = fl_, .tag = num, .session = 7, .slot_seq = 1 }; \
		h.body_len = pvfs_##name##_encode(&m, body, sizeof(body)); \
	} while (0)
/* Requests with a payload. */
#define PAYLOAD(num) (num == PVFS_OP_WRITE || num == PVFS_OP_SETXATTR || num == PVFS_OP_HEAD_WRITE || \
		      num == PVFS_OP_FILL || num == PVFS_OP_WRITE_LIST || num == PVFS_OP_FILES_WRITE ? 64 : 0)
#define PVFS_OP(num, NAME, lower, who, opf) \
	ONE(num, lower##_req, 0, 0); \
	h.payload_len = PAYLOAD(num); \
	write_seed(#NAME, "req", &h, body); \
	/* With small numbers, such as inodes that exist have. */ \
	ONE(num, lower##_req, 0, 4); \
	h.payload_len = PAYLOAD(num); \
	write_seed(#NAME, "small", &h, body); \
	ONE(num, lower##_rep, PVFS_HF_REPLY, 0); \
	h.slot_seq = 0; \
	h.credits = 64; \
	h.payload_len = num == PVFS_OP_READ || num == PVFS_OP_STATS || num == PVFS_OP_READDIR || \
			num == PVFS_OP_SESSION_OPEN || num == PVFS_OP_GETXATTR || num == PVFS_OP_LISTXATTR || \
			num == PVFS_OP_HEAD_READ || num == PVFS_OP_READ_LIST || num == PVFS_OP_FILES_READ || \
			num == PVFS_OP_OPEN_SHARED || num == PVFS_OP_HOLDERS ? 40 : 0; \
	write_seed(#NAME, "rep", &h, body);
#include "common/ops.def"
#undef PVFS_OP
	write_lists(body);
	write_files(body);
	return failed;
}
