/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * auth.h - proving the key to each other: the two macs of AUTH. docs/protocol.md, "Getting in".
 */
#ifndef PVFS_AUTH_H
#define PVFS_AUTH_H

#include "transport.h"

/* The two nonces of a connection, from HELLO. */
struct pvfs_nonces {
	u8 client[PVFS_NONCE_LEN], server[PVFS_NONCE_LEN];
};

/* Fills @nonce with random bytes. Return: 0 or -EIO. */
int pvfs_nonce_make(u8 nonce[PVFS_NONCE_LEN]);

/**
 * pvfs_auth_seal - write the mac into an encoded auth_req or auth_rep
 * @key: must be present
 * @by_server: auth_rep, else auth_req
 * @body: encoded, its first PVFS_MAC_LEN bytes are overwritten
 * @len: bytes of it, at least PVFS_MAC_LEN
 */
void pvfs_auth_seal(const struct pvfs_key *key, const struct pvfs_nonces *n, bool by_server,
		    u8 *body, u32 len);

/* Is the mac in @body right? False too when it is too short or the key is not present. */
bool pvfs_auth_verify(const struct pvfs_key *key, const struct pvfs_nonces *n, bool by_server,
		      const u8 *body, u32 len);

#endif
