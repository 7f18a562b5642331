// SPDX-License-Identifier: GPL-2.0
/*
 * mkfs.c - the manager's part of making a volume: the marked store, the tables, the root.
 *
 * Interrupted, it can be run again: the volume exists from the transaction on that writes the super
 * record.
 */
#include "mgr.h"
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

int mgr_db_dir(const struct pvfs_conf *conf, char *buf, size_t n)
{
	return snprintf(buf, n, "%s/db", conf->mgr_store) < (int)n ? 0 : -ENAMETOOLONG;
}

void mgr_mkfs_root(const struct pvfs_conf *conf, struct mgr_inode *root)
{
	memset(root, 0, sizeof(*root));
	root->ino = PVFS_ROOT_INO;
	root->gen = 1;
	root->mode = S_IFDIR | 0755;
	root->nlink = 2;
	/* Of whoever makes the volume: root, or the user who runs a volume of their own. */
	root->uid = geteuid();
	root->gid = getegid();
	mgr_wall_now(&root->btime);
	root->atime = root->mtime = root->ctime = root->btime;
	root->version = mgr_version_after(0);
	root->parent.ino = root->ino;
	root->parent.gen = root->gen;
	root->layout.base = MGR_BASE_ANY;
	root->layout.pcount = conf->stripe_count ? conf->stripe_count : conf->niods;
	root->layout.ssize = conf->stripe_size;
	root->layout.stuff_max = conf->stuff_max;
}

static int put_u64(struct mdb *db, struct mdb_txn *t, const char *name, u64 value)
{
	__le64 v = cpu_to_le64(value);

	return mdb_put(db, t, MDB_META, name, strlen(name), &v, sizeof(v));
}

/* All of it in one transaction. -EEXIST: the volume is there. */
static int fill(struct mdb *db, const struct pvfs_conf *conf)
{
	struct mgr_super s = { .niods = conf->niods };
	struct mgr_super_disk sd;
	struct mgr_inode_disk id;
	struct mgr_inode root;
	struct mdb_txn *t;
	u8 key[MGR_INO_KEY];
	u32 n;
	int err;

	mgr_mkfs_root(conf, &root);
	if (!ns_layout_ok(&root.layout, conf->niods))
		return -EINVAL;
	memcpy(s.uuid, conf->uuid, sizeof(s.uuid));
	if (getrandom(s.hash_key, sizeof(s.hash_key), 0) != sizeof(s.hash_key))
		return -EIO;
	err = mdb_begin(db, &t);
	if (err)
		return err;
	n = mgr_super_encode(&s, &sd);
	err = mdb_put_new(db, t, MDB_META, "super", 5, &sd, n);
	err = err ?: put_u64(db, t, "next_ino", PVFS_ROOT_INO + 1);
	err = err ?: put_u64(db, t, "next_session", 1);
	err = err ?: put_u64(db, t, "files", 1);
	err = err ?: put_u64(db, t, "clean", 1);
	mgr_ino_key(key, root.ino);
	n = mgr_inode_encode(&root, &id);
	err = err ?: mdb_put(db, t, MDB_INODE, key, sizeof(key), &id, n);
	if (err) {
		mdb_abort(db, t);
		return err;
	}
	err = mdb_commit(db, t);
	return err ?: mdb_sync(db);
}

int mgr_mkfs(const struct pvfs_conf *conf, char *err, size_t errlen)
{
	struct mdb_params p = {
		.cache = (u64)4 << 20, .durability = PVFS_DURABLE_SYNC, .create = true,
	};
	struct pvfs_storeid id = { .format = PVFS_STORE_FORMAT, .role = PVFS_ROLE_MGR };
	struct mdb *db;
	char dir[4200];
	int e, lock;

	memcpy(id.uuid, conf->uuid, sizeof(id.uuid));
	memcpy(id.name, conf->name, sizeof(id.name));
	e = pvfs_storeid_create(conf->mgr_store, &id, err, errlen);
	if (e == -EEXIST)
		e = pvfs_storeid_check(conf->mgr_store, &id, err, errlen);
	e = e ?: mgr_db_dir(conf, dir, sizeof(dir));
	if (e)
		return e;
	lock = pvfs_store_lock(conf->mgr_store, err, errlen);
	if (lock < 0)
		return lock;
	if (mkdir(dir, 0700) && errno != EEXIST) {
		e = -errno;
		snprintf(err, errlen, "%s: %s", dir, strerror(errno));
		goto unlock;
	}
	p.dir = dir;
	e = mdb_bdb_open(&p, &db);
	if (e) {
		snprintf(err, errlen, "%s: %s", dir, strerror(-e));
		goto unlock;
	}
	e = fill(db, conf);
	mdb_close(db);
	if (e == -EEXIST)
		snprintf(err, errlen, "%s: the volume exists already", conf->mgr_store);
	else if (e == -EINVAL)
		snprintf(err, errlen, "stripe_count %u or stripe_size %u does not fit %u iods",
			 conf->stripe_count,
			 conf->stripe_size, conf->niods);
	else if (e)
		snprintf(err, errlen, "%s: %s", dir, strerror(e == -ERESTART ? EIO : -e));
unlock:
	close(lock);
	return e == -ERESTART ? -EIO : e;
}
