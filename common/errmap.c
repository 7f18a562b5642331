// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * errmap.c - errno values to and from the numbers the protocol uses.
 *
 * The protocol's numbers are those of Linux on x86-64, and stay so on hosts that count otherwise.
 * Whatever is not listed travels as EIO: a peer never sees a number it can't name.
 */
#include "msg.h"

static const struct {
	int host;
	u32 wire;
} map[] = {
	{ EPERM, 1 },	    { ENOENT, 2 },	  { EINTR, 4 },	      { EIO, 5 },
	{ ENXIO, 6 },	    { E2BIG, 7 },	  { EBADF, 9 },	      { EAGAIN, 11 },
	{ ENOMEM, 12 },	    { EACCES, 13 },	  { EBUSY, 16 },      { EEXIST, 17 },
	{ EXDEV, 18 },	    { ENODEV, 19 },	  { ENOTDIR, 20 },    { EISDIR, 21 },
	{ EINVAL, 22 },	    { ENFILE, 23 },	  { ETXTBSY, 26 },    { EFBIG, 27 },
	{ ENOSPC, 28 },	    { EROFS, 30 },	  { EMLINK, 31 },     { ERANGE, 34 },
	{ EDEADLK, 35 },    { ENAMETOOLONG, 36 }, { ENOLCK, 37 },     { ENOSYS, 38 },
	{ ENOTEMPTY, 39 },  { ELOOP, 40 },	  { ENODATA, 61 },    { EPROTO, 71 },
	{ EBADMSG, 74 },    { EOVERFLOW, 75 },	  { EUSERS, 87 },     { EMSGSIZE, 90 },
	{ EOPNOTSUPP, 95 }, { ESHUTDOWN, 108 },	  { ETIMEDOUT, 110 }, { EHOSTDOWN, 112 },
	{ ESTALE, 116 },    { EDQUOT, 122 },
};

u32 pvfs_errno_to_wire(int err)
{
	unsigned int i;

	if (!err)
		return 0;
	for (i = 0; i < ARRAY_SIZE(map); i++)
		if (map[i].host == err)
			return map[i].wire;
	return 5;
}

int pvfs_errno_from_wire(u32 wire)
{
	unsigned int i;

	if (!wire)
		return 0;
	for (i = 0; i < ARRAY_SIZE(map); i++)
		if (map[i].wire == wire)
			return map[i].host;
	return EIO;
}
