/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * config.h - pvfs.conf(5): one file describes a volume, and every daemon of it reads the same one.
 *
 * Syntax is libconfig's. Parameters are in one table in config.c: name, type, bounds, default,
 * where it goes. User space only; load once at start, then read-only.
 */
#ifndef PVFS_CONFIG_H
#define PVFS_CONFIG_H

#include "proto.h"

enum pvfs_durability {
	/* default: the log is on disk before the reply; survives power loss */
	PVFS_DURABLE_SYNC,
	/* the log is handed to the kernel: survives kill -9, not power loss */
	PVFS_DURABLE_WRITE,
};

/* Where the manager puts the bytes of stuffed files. */
enum pvfs_stuff_store {
	PVFS_STUFF_DB,		/* default: records of its database */
	PVFS_STUFF_FILE,	/* files beside it */
};

struct pvfs_conf_iod {
	char address[PVFS_HOST_MAX + 8];	/* "host:port" as written */
	char listen[PVFS_HOST_MAX + 8];		/* "" : same as address */
	char store[4096];
	int line;				/* where it is in the file */
};

struct pvfs_conf {
	char path[4096];
	/* volume */
	char name[PVFS_VOLUME_MAX + 1];
	u8 uuid[PVFS_UUID_LEN];
	char cluster_key[4096], server_key[4096];
	/* mgr */
	char mgr_address[PVFS_HOST_MAX + 8], mgr_listen[PVFS_HOST_MAX + 8], mgr_store[4096];
	enum pvfs_durability durability;
	enum pvfs_stuff_store stuff_store;
	u64 db_cache;			/* bytes */
	u32 mgr_threads, mgr_max_conns;
	u32 lease_ms, checkpoint_ms;
	u32 locks_max, session_locks_max;	/* byte-range locks and waiters */
	u32 leases_max;			/* that clients hold on inodes; 0: none are given */
	/* layout of new volumes' root */
	u32 stripe_count;		/* 0: all iods */
	u32 stripe_size;		/* bytes */
	u32 stuff_max;			/* bytes; 0: no file is stuffed */
	/* iods */
	u32 niods;
	struct pvfs_conf_iod *iods;
	u32 iod_threads, iod_max_conns;
	u64 iod_buffers;		/* bytes of data buffers one iod may use */
	u32 io_max;	/* largest payload of one request, bytes; power of two, 64 KiB .. 4 MiB */
	u32 fd_cache;			/* datafiles an iod keeps open */
	u64 iod_reserve;		/* bytes that an iod leaves free below its store */
};

/**
 * pvfs_conf_load - read and check a configuration
 * @path: the file
 * @ret: filled; free with pvfs_conf_free()
 * @err: on failure one line for the user: file, line, what is wrong, what to do
 * @errlen: room in @err
 *
 * Unknown keys, numbers out of bounds, two daemons on one address or one store, a missing part: all
 * refused.
 *
 * Return: 0 or -errno.
 */
int pvfs_conf_load(const char *path, struct pvfs_conf **ret, char *err, size_t errlen);
void pvfs_conf_free(struct pvfs_conf *c);

/* Parses "64k", "4M", "1g", plain bytes. Return 0, -EINVAL, -ERANGE. */
int pvfs_parse_size(const char *text, u64 *ret);

#endif
