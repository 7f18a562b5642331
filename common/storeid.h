/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * storeid.h - the mark in a store directory that says whose it is, so that no daemon serves another
 * volume's data.
 *
 * A file "pvfs.store" of text lines: format, volume (uuid), name, role, index. User space only.
 */
#ifndef PVFS_STOREID_H
#define PVFS_STOREID_H

#include "proto.h"

#define PVFS_STORE_FORMAT 2	/* 2: inodes have a stuff_max, and there are heads */

struct pvfs_storeid {
	u32 format;
	u8 uuid[PVFS_UUID_LEN];
	char name[PVFS_VOLUME_MAX + 1];
	u8 role;		/* PVFS_ROLE_MGR or PVFS_ROLE_IOD */
	u32 index;		/* of an iod */
};

/*
 * Marks an empty or new directory (made with mode 0700). -EEXIST: it is marked already. -ENOTEMPTY:
 * others' files.
 */
int pvfs_storeid_create(const char *dir, const struct pvfs_storeid *id, char *err, size_t errlen);

/*
 * Checks that @dir is what @want says. Return 0, -ENOENT (not a store), -ESTALE (another volume,
 * role or index), -EPROTONOSUPPORT (another format); @err gets a line for the user: directory, what
 * it is, what was expected.
 */
int pvfs_storeid_check(const char *dir, const struct pvfs_storeid *want, char *err, size_t errlen);

/*
 * Takes an exclusive lock that lives as long as the process: two daemons on one store are refused.
 * Return fd or -errno.
 */
int pvfs_store_lock(const char *dir, char *err, size_t errlen);

void pvfs_uuid_text(const u8 uuid[PVFS_UUID_LEN], char out[37]);
int pvfs_uuid_parse(const char *text, u8 uuid[PVFS_UUID_LEN]);

#endif
