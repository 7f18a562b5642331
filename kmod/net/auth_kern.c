// SPDX-License-Identifier: GPL-2.0
/*
 * auth_kern.c - the module's side of HELLO and AUTH: both ends prove that they know the cluster
 * key, with the kernel's HMAC-SHA256. docs/protocol.md, "Getting in". Runs on the connecting
 * worker, blocking with time-outs.
 */
#include <crypto/algapi.h>
#include <crypto/hash.h>
#include <linux/crypto.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "conn.h"

/* the algorithm only; keys are set on clones made per handshake */
static struct crypto_shash *hmac;
static DEFINE_MUTEX(hmac_mutex);	/* protects the key in `hmac' */

int pvfs_auth_init(void)
{
	hmac = crypto_alloc_shash("hmac(sha256)", 0, 0);
	return PTR_ERR_OR_ZERO(hmac);
}

void pvfs_auth_exit(void)
{
	crypto_free_shash(hmac);
}

static int auth_make_mac(const u8 *key, const char *label, const u8 *nonce1, const u8 *nonce2,
			 const u8 *body, u32 n, u8 out[PVFS_MAC_LEN])
{
	SHASH_DESC_ON_STACK(desc, hmac);
	int err;

	mutex_lock(&hmac_mutex);
	desc->tfm = hmac;
	err = crypto_shash_setkey(hmac, key, PVFS_KEY_LEN) ?:
	      crypto_shash_init(desc) ?:
	      crypto_shash_update(desc, label, strlen(label)) ?:
	      crypto_shash_update(desc, nonce1, PVFS_NONCE_LEN) ?:
	      crypto_shash_update(desc, nonce2, PVFS_NONCE_LEN) ?:
	      crypto_shash_finup(desc, body, n, out);
	shash_desc_zero(desc);
	mutex_unlock(&hmac_mutex);
	return err;
}

/* Room for a header and the largest body of the two exchanges. */
struct auth_buf {
	struct pvfs_hdr hdr;
	u8 body[PVFS_BODY_MAX];
};

/* Return: 0 when there is an answer, whose status and body are to be looked at; or -errno. */
static int auth_exchange(struct socket *sock, struct auth_buf *b, enum pvfs_op op, u64 session,
			 u32 len, u32 *ret_status, u32 *ret_len, unsigned long end)
{
	struct pvfs_header h = {
		.op = op,
		.tag = op,
		.session = session,
		.body_len = len,
		.body_crc = pvfs_crc32c(0, b->body, len),
	};
	int err;

	pvfs_header_encode(&h, &b->hdr);
	err = pvfs_tcp_send_all(sock, b, PVFS_HDR_LEN + len, end);
	if (err)
		return err;
	err = pvfs_tcp_recv_all(sock, &b->hdr, PVFS_HDR_LEN, end);
	if (err)
		return err;
	err = pvfs_header_decode(&b->hdr, &h);
	if (err)
		return -EPROTO;
	if (h.op != op || h.tag != op || !(h.flags & PVFS_HF_REPLY) || h.payload_len)
		return -EPROTO;
	err = pvfs_tcp_recv_all(sock, b->body, h.body_len, end);
	if (err)
		return err;
	if (h.body_len && pvfs_crc32c(0, b->body, h.body_len) != h.body_crc)
		return -EBADMSG;
	*ret_status = h.status;
	*ret_len = h.body_len;
	return 0;
}

/*
 * What AUTH was answered with. Only what has our key's mac, over the status too, is the server's
 * word: without it a refusal is -EKEYREJECTED, of whatever kind (in ret->status). But who takes us
 * for a stranger has nothing to prove it with.
 */
static int auth_answer(const u8 *key, const struct auth_buf *b, u32 len, u32 status, const u8 *theirs,
		       const u8 *ours, u64 session, struct pvfs_auth_rep *ret)
{
	int err = -pvfs_errno_from_wire(status);
	u8 mac[PVFS_MAC_LEN];
	bool proved = false;
	int failed;

	if (err == -EACCES && !len)
		return err;
	if (len >= PVFS_AUTH_HEAD_LEN) {
		failed = auth_make_mac(key, "pvfs-auth-server", theirs, ours, b->body + PVFS_MAC_LEN,
				       len - PVFS_MAC_LEN, mac);
		if (failed)
			return failed;
		proved = !crypto_memneq(mac, b->body, sizeof(mac));
	}
	if (proved && pvfs_auth_version(b->body) != PVFS_PROTO_VERSION)
		return -EPROTO;
	proved = proved && !pvfs_auth_rep_decode(ret, b->body, len) && ret->status == status &&
		 ret->session == session;
	if (!proved) {
		ret->status = status;
		return err ? -EKEYREJECTED : -EACCES;
	}
	return err;
}

int pvfs_auth_client(struct socket *sock, struct pvfs_volume *vol, u8 role, u64 session,
		     const u8 *ticket, u32 channel, struct pvfs_auth_rep *ret)
{
	unsigned long end = jiffies + msecs_to_jiffies(PVFS_CONNECT_MS);
	const struct pvfs_opts *o = &vol->opts;
	struct pvfs_hello_req hello;
	struct pvfs_hello_rep theirs;
	struct pvfs_auth_req auth = {
		.version = PVFS_PROTO_VERSION,
		.role = PVFS_ROLE_CLIENT,
		.features = PVFS_FEATURES & ~PVFS_FEAT_PAYLOAD_CRC,
		.required = PVFS_FEAT_CAPS,
		.volume = PVFS_STR(o->volume),
		.session = session,
		.channel = channel,
		.host = PVFS_STR(vol->client_host),
	};
	struct auth_buf *b;
	u32 len, status;
	int n;

	memset(ret, 0, sizeof(*ret));
	memcpy(auth.ticket, ticket, sizeof(auth.ticket));
	b = kmalloc(sizeof(*b), GFP_NOFS);
	if (!b)
		return -ENOMEM;
	get_random_bytes(hello.nonce, sizeof(hello.nonce));
	n = pvfs_hello_req_encode(&hello, b->body, sizeof(b->body));
	n = auth_exchange(sock, b, PVFS_OP_HELLO, 0, n, &status, &len, end);
	if (!n && status)
		n = -EPROTO;
	if (!n)
		n = pvfs_hello_rep_decode(&theirs, b->body, len);
	if (n)
		goto out;

	n = pvfs_auth_req_encode(&auth, b->body, sizeof(b->body));
	if (n < 0)
		goto out;
	len = n;
	n = auth_make_mac(o->key, "pvfs-auth-client", hello.nonce, theirs.nonce,
			  b->body + PVFS_MAC_LEN, len - PVFS_MAC_LEN, b->body);
	if (n)
		goto out;
	n = auth_exchange(sock, b, PVFS_OP_AUTH, session, len, &status, &len, end);
	if (n)
		goto out;
	n = auth_answer(o->key, b, len, status, theirs.nonce, hello.nonce, session, ret);
	if (!n && ret->role != role)
		n = -EPROTO;
out:
	kfree_sensitive(b);
	return n;
}
