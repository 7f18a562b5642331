/* SPDX-License-Identifier: GPL-2.0 */
/*
 * salvage.h - what the files of `pvfs-mgr --salvage` share: salvage.c (reads what is readable out of
 * the old store) and mend.c (makes the new one's tables agree).
 */
#ifndef PVFS_MGR_SALVAGE_H
#define PVFS_MGR_SALVAGE_H

#include <stdio.h>
#include "../common/config.h"
#include "mdb.h"
#include "schema.h"

struct salvage {
	const struct pvfs_conf *conf;
	FILE *report;
	struct mdb *db;		/* the new one */
	struct mdb_txn *txn;	/* open, or NULL */
	u32 in_txn;		/* changes in it */
	struct mgr_super super;
	bool have_super;	/* the old one's was readable */
	u64 max_ino, max_session;
	u64 next_ino, next_session;	/* as the old one's table has them; 0: it does not */
	u64 lost;		/* pages, records and references that were given up */
};

/* A change of the new store; committed every now and then. @val NULL: the record goes. */
int salvage_put(struct salvage *s, enum mdb_table tab, const void *key, u32 klen, const void *val,
		u32 vlen);
int salvage_commit(struct salvage *s);
/* One line of the report, about something that is lost. */
void salvage_lost(struct salvage *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/**
 * salvage_mend - make the tables agree that were filled with what was readable
 *
 * Names of inodes that are lost go; inodes whose name is lost, or whose directory is, get one in
 * /lost+found; counts are made to fit; what belonged to a lost inode goes.
 *
 * Return: 0 or -errno.
 */
int salvage_mend(struct salvage *s);

#endif
