// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * errmap_test.c - errors on the wire: there and back, and what is unknown is EIO.
 */
#include "common/msg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void test_known(void **state)
{
	/* Those the protocol gives a meaning to. */
	static const int errs[] = {
		EPERM, ENOENT, EINTR, EIO, ENXIO, E2BIG, EBADF, EAGAIN, ENOMEM, EACCES, EBUSY, EEXIST, EXDEV, ENODEV,
		ENOTDIR, EISDIR, EINVAL, ENFILE, ETXTBSY, EFBIG, ENOSPC, EROFS, EMLINK, ERANGE, EDEADLK, ENAMETOOLONG,
		ENOLCK, ENOSYS, ENOTEMPTY, ELOOP, ENODATA, EPROTO, EBADMSG, EOVERFLOW, EUSERS, EMSGSIZE, EOPNOTSUPP,
		ESHUTDOWN, ETIMEDOUT, EHOSTDOWN, ESTALE, EDQUOT,
	};
	unsigned int i;

	assert_int_equal(pvfs_errno_to_wire(0), 0);
	assert_int_equal(pvfs_errno_from_wire(0), 0);
	for (i = 0; i < ARRAY_SIZE(errs); i++)
		assert_int_equal(pvfs_errno_from_wire(pvfs_errno_to_wire(errs[i])), errs[i]);
	/* The numbers themselves are part of the protocol. */
	assert_int_equal(pvfs_errno_to_wire(ENOENT), 2);
	assert_int_equal(pvfs_errno_to_wire(ESTALE), 116);
	assert_int_equal(pvfs_errno_to_wire(ENOTEMPTY), 39);
}

static void test_unknown(void **state)
{
	u32 w;
	int e;

	assert_int_equal(pvfs_errno_to_wire(9999), 5);
	assert_int_equal(pvfs_errno_to_wire(-ENOENT), 5);
	assert_int_equal(pvfs_errno_from_wire(0xffffffff), EIO);
	assert_int_equal(pvfs_errno_from_wire(0x80000000), EIO);
	/* Never a success, and never a negative number, out of an error. */
	for (w = 1; w < 5000; w++)
		assert_true(pvfs_errno_from_wire(w) > 0);
	for (e = 1; e < 5000; e++)
		assert_true(pvfs_errno_to_wire(e) > 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_unknown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("errmap", tests, NULL, NULL);
}
