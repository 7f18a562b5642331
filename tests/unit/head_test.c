// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * head_test.c - the header: round trip, every flipped bit, every limit.
 */
#include "common/msg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static const struct pvfs_header good = {
	.op = PVFS_OP_WRITE,
	.flags = PVFS_HF_PAYLOAD_CRC | PVFS_HF_RESEND,
	.tag = 0x12345678,
	.session = 0x1122334455667788ull,
	.slot = PVFS_SLOTS_MAX - 1,
	.credits = PVFS_CREDITS_MAX,
	.slot_seq = 0xfffffffe,
	.body_len = PVFS_BODY_MAX,
	.payload_len = PVFS_PAYLOAD_MAX,
	.body_crc = 0xdeadbeef,
	.payload_crc = 0xcafef00d,
};

/* Seals a header that was tampered with. */
static void seal(struct pvfs_hdr *h)
{
	h->hdr_crc = cpu_to_le32(pvfs_crc32c(0, h, PVFS_HDR_LEN - 4));
}

static int decode(struct pvfs_hdr *h)
{
	struct pvfs_header out;

	seal(h);
	return pvfs_header_decode(h, &out);
}

static void test_round_trip(void **state)
{
	struct pvfs_header out;
	struct pvfs_hdr h;

	pvfs_header_encode(&good, &h);
	assert_memory_equal(&h, "PVFS", 4);
	assert_int_equal(pvfs_header_decode(&h, &out), 0);
	assert_int_equal(out.op, good.op);
	assert_int_equal(out.flags, good.flags);
	assert_int_equal(out.tag, good.tag);
	assert_true(out.session == good.session);
	assert_int_equal(out.slot, good.slot);
	assert_int_equal(out.credits, good.credits);
	assert_int_equal(out.slot_seq, good.slot_seq);
	assert_int_equal(out.status, 0);
	assert_int_equal(out.body_len, good.body_len);
	assert_int_equal(out.payload_len, good.payload_len);
	assert_int_equal(out.body_crc, good.body_crc);
	assert_int_equal(out.payload_crc, good.payload_crc);
}

static void test_every_bit(void **state)
{
	struct pvfs_header out;
	struct pvfs_hdr h;
	unsigned int bit;
	int err;

	for (bit = 0; bit < PVFS_HDR_LEN * 8; bit++) {
		pvfs_header_encode(&good, &h);
		((u8 *)&h)[bit / 8] ^= 1 << bit % 8;
		err = pvfs_header_decode(&h, &out);
		assert_true(err == -EPROTO || err == -EBADMSG);
	}
}

static void test_identity(void **state)
{
	struct pvfs_hdr h;

	pvfs_header_encode(&good, &h);
	h.magic = cpu_to_le32(PVFS_MAGIC + 1);
	assert_int_equal(decode(&h), -EPROTO);
	pvfs_header_encode(&good, &h);
	h.version = PVFS_HDR_VERSION + 1;
	assert_int_equal(decode(&h), -EPROTO);
}

static void test_must_be_zero(void **state)
{
	struct pvfs_hdr h;

	pvfs_header_encode(&good, &h);
	h.zero = 1;
	assert_int_equal(decode(&h), -EBADMSG);
	pvfs_header_encode(&good, &h);
	h.reserved[0] = 1;
	assert_int_equal(decode(&h), -EBADMSG);
	pvfs_header_encode(&good, &h);
	h.reserved[1] = 1;
	assert_int_equal(decode(&h), -EBADMSG);
	pvfs_header_encode(&good, &h);
	h.flags = cpu_to_le32(PVFS_HF_ALL + 1);
	assert_int_equal(decode(&h), -EBADMSG);
	/* A request has no status; a checksum that must not be looked at is zero. */
	pvfs_header_encode(&good, &h);
	h.status = cpu_to_le32(5);
	assert_int_equal(decode(&h), -EBADMSG);
	h.flags = cpu_to_le32(PVFS_HF_REPLY | PVFS_HF_PAYLOAD_CRC);
	assert_int_equal(decode(&h), 0);
	h.flags = cpu_to_le32(PVFS_HF_REPLY);
	assert_int_equal(decode(&h), -EBADMSG);
}

static void test_limits(void **state)
{
	struct pvfs_hdr h;

	pvfs_header_encode(&good, &h);
	h.body_len = cpu_to_le32(PVFS_BODY_MAX + 1);
	assert_int_equal(decode(&h), -EMSGSIZE);
	pvfs_header_encode(&good, &h);
	h.payload_len = cpu_to_le32(PVFS_PAYLOAD_MAX + 1);
	assert_int_equal(decode(&h), -EMSGSIZE);
	h.payload_len = cpu_to_le32(0xffffffff);
	assert_int_equal(decode(&h), -EMSGSIZE);
	pvfs_header_encode(&good, &h);
	h.slot = cpu_to_le16(PVFS_SLOTS_MAX);
	assert_int_equal(decode(&h), -EMSGSIZE);
	pvfs_header_encode(&good, &h);
	h.credits = cpu_to_le16(PVFS_CREDITS_MAX + 1);
	assert_int_equal(decode(&h), -EMSGSIZE);
}

static void test_operations(void **state)
{
	struct pvfs_header out;
	struct pvfs_hdr h;
	unsigned int op;
	int want;

	for (op = 0; op < 65536; op++) {
		pvfs_header_encode(&good, &h);
		h.op = cpu_to_le16(op);
		seal(&h);
		want = pvfs_op_info(op) ? 0 : -EOPNOTSUPP;
		assert_int_equal(pvfs_header_decode(&h, &out), want);
		assert_int_equal(out.op, op);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_must_be_zero),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_operations),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("head", tests, NULL, NULL);
}
