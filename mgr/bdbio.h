/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bdbio.h - what Berkeley DB reads, looked at before it gets it.
 *
 * By itself the library takes a page whose checksum is wrong for the end of the whole database: it
 * panics, writes that into the log, and no recovery succeeds from then on. So its reads of pages are
 * made here. Whoever needs a damaged page gets EIO, and all the other pages serve on.
 */
#ifndef PVFS_MGR_BDBIO_H
#define PVFS_MGR_BDBIO_H

#include "../common/compat.h"

/* Before the first environment of the process. May be called again. */
void bdbio_install(void);

/**
 * bdbio_recovery - this thread begins, or ends, a recovery
 *
 * A recovery reads pages to see whether log records are still to be applied to them, and fails with
 * the first that it cannot read. While it goes on it is given a stand-in for those that are damaged,
 * which it leaves alone. What it has read must be forgotten before the tables are used.
 *
 * Return: of one that ended, how often it was given one.
 */
u32 bdbio_recovery(bool begin);

/* Has this thread been refused a page since it asked last? For the text of an error. */
bool bdbio_refused(void);

/* How many damaged pages were met in this process. */
u64 bdbio_damaged(void);

/**
 * bdbio_check_file - look at all of a table's file, or at its first page only
 * @whole: all of it
 *
 * Return: 0, -ENOENT, -EUCLEAN: a page is damaged, or it ends in the middle of one; what is wrong was
 * logged. Or -errno.
 */
int bdbio_check_file(const char *path, bool whole);

#endif
