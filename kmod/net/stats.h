/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stats.h - what is counted per operation and per volume, and shown in /proc/fs/pvfs.
 */
#ifndef PVFS_KSTATS_H
#define PVFS_KSTATS_H

#include "net.h"

/* One per operation and CPU; times in ns. Queued: submit to post. In flight: post to reply. */
struct pvfs_op_stats {
	u64 count, errors, bytes_out, bytes_in;
	u64 queued, queued_max, flight, flight_max;
};

struct pvfs_stats {
	struct pvfs_op_stats op[PVFS_OP_LIMIT];
	u64 counter[PVFS_CNT_MAX];
};

/* Called once for each request that ends, successful or not. */
void pvfs_stats_request(struct pvfs_volume *vol, const struct pvfs_request *req, u64 now);
int pvfs_stats_add_volume(struct pvfs_volume *vol);
void pvfs_stats_del_volume(struct pvfs_volume *vol);

#endif
