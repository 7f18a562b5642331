// SPDX-License-Identifier: GPL-2.0
/*
 * main.c - the module's beginning and end. The ladder mirrors the acquisitions.
 */
#include <linux/module.h>
#include "fs/vfs.h"

static int __init pvfs_init(void)
{
	int err;

	err = pvfs_stats_init();
	if (err)
		return err;
	err = pvfs_kreq_init();
	if (err)
		goto out_stats;
	err = pvfs_auth_init();
	if (err)
		goto out_kreq;
	err = pvfs_kpvfsd_init();
	if (err)
		goto out_auth;
	err = pvfs_vfs_init();
	if (err)
		goto out_kpvfsd;
	return 0;

out_kpvfsd:
	pvfs_kpvfsd_exit();
out_auth:
	pvfs_auth_exit();
out_kreq:
	pvfs_kreq_exit();
out_stats:
	pvfs_stats_exit();
	return err;
}

static void __exit pvfs_exit(void)
{
	pvfs_vfs_exit();
	pvfs_kpvfsd_exit();
	pvfs_auth_exit();
	pvfs_kreq_exit();
	pvfs_stats_exit();
}

module_init(pvfs_init);
module_exit(pvfs_exit);

MODULE_ALIAS_FS("pvfs");
MODULE_DESCRIPTION("PVFS parallel file system client");
MODULE_AUTHOR("The PVFS developers");
MODULE_LICENSE("GPL");
