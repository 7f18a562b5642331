// SPDX-License-Identifier: LGPL-2.1
/*
 * ask.c - one small question to each of several datafiles, all at once: FSYNC, SPACE, SEEK, COPY.
 * Reads and writes are io.c's.
 */
#include "lib.h"
#include <stdlib.h>

/**
 * lib_ask_all - send each question to the daemon of its datafile, and wait for all answers
 * @layout: of the file
 * @op: of the I/O daemons, PVFS_OP_*
 * @asks: df, body and body_len are set; of each that was sent, err is set afterwards, and if that
 *         is 0 rep and rep_len
 * @n: how many; 0 is fine
 *
 * Return: 0, all were sent; or -errno, none was.
 */
int lib_ask_all(struct pvfs_fs *fs, const struct pvfs_layout *layout, u16 op, struct lib_ask *asks,
		u32 n)
{
	struct pvfs_rpc_set set = PVFS_RPC_SET;
	u32 i, *iods;
	int err;

	if (!n)
		return 0;
	iods = malloc(n * sizeof(*iods));
	if (!iods)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		iods[i] = pvfs_stripe_iod(layout, asks[i].df, fs->niods);
	err = lib_fs_iods_ready(fs, iods, n);
	if (err)
		goto out;
	for (i = 0; i < n; i++) {
		struct lib_ask *a = &asks[i];

		a->rpc = (struct pvfs_rpc){
			.op = op, .body = a->body, .body_len = a->body_len, .rep = a->rep,
			.rep_room = sizeof(a->rep),
			.timeout_ms = fs->soft ? (int)fs->timeo_ms : 0,
		};
		pvfs_rpc_set_submit(&set, fs->iods[iods[i]].peer, &a->rpc);
	}
	pvfs_rpc_set_wait(&set);
	for (i = 0; i < n; i++) {
		asks[i].rep_len = asks[i].rpc.rep_len;
		asks[i].err = lib_fs_rpc_error(fs, asks[i].rpc.err);
	}
out:
	free(iods);
	return err;
}
