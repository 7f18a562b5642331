/* SPDX-License-Identifier: GPL-2.0 */
/*
 * capcache.h - checking capabilities, and remembering the ones that were right.
 *
 * One small table for all connections: a capability is bound to its session, so the session is part
 * of the key, and memory does not grow with the number of connections. Any thread; never waits.
 */
#ifndef PVFS_IOD_CAPCACHE_H
#define PVFS_IOD_CAPCACHE_H

#include <stdio.h>
#include "../transport/transport.h"

struct iod_caps;

/* @key and @uuid are copied. Return: 0 or -ENOMEM. */
int iod_caps_new(const struct pvfs_key *key, const u8 uuid[PVFS_UUID_LEN], struct iod_caps **ret);
void iod_caps_free(struct iod_caps *c);

/**
 * iod_caps_check - may @session do this to @fid?
 * @want: PVFS_CAP_*: one of these rights is needed
 *
 * Return: 0, -EACCES: not signed by the mgr of this volume for this session and fid, or for less.
 */
int iod_caps_check(struct iod_caps *c, u64 session, const struct pvfs_fid *fid,
		   const struct pvfs_cap *cap, u32 want);

/* Is @session of the client that brings @ticket (PVFS_TICKET_LEN bytes)? */
bool iod_caps_ticket(struct iod_caps *c, u64 session, const u8 *ticket);

/* Appends members of a JSON object, without braces. */
void iod_caps_stats(struct iod_caps *c, FILE *f);

#endif
