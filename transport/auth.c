// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * auth.c - keys, HMAC-SHA256 (OpenSSL 3), the macs of AUTH, capabilities, tickets.
 *
 * Pure functions but for the key file; which message may come when is server.c's and peer.c's.
 */
#include "auth.h"
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CAP_LABEL "pvfs-cap"
#define TICKET_LABEL "pvfs-session"

/* ---------------------------------------------------------------- HMAC */

/* A thread's own. Making a context, naming the hash and setting a key each cost more than a short HMAC. */
struct mac {
	EVP_MAC_CTX *ctx;
	u8 key[PVFS_KEY_LEN];
	bool keyed;		/* @ctx has @key */
};

static pthread_once_t mac_once = PTHREAD_ONCE_INIT;
static pthread_key_t mac_key;	/* of the thread's struct mac */
static EVP_MAC *mac_alg;

static void mac_free(void *arg)
{
	struct mac *m = arg;

	EVP_MAC_CTX_free(m->ctx);
	OPENSSL_clear_free(m, sizeof(*m));
}

static void mac_setup(void)
{
	mac_alg = EVP_MAC_fetch(NULL, "HMAC", NULL);
	if (!mac_alg || pthread_key_create(&mac_key, mac_free))
		abort();	/* an OpenSSL without HMAC: nothing could ever be trusted */
}

static struct mac *mac_get(void)
{
	struct mac *m;

	pthread_once(&mac_once, mac_setup);
	m = pthread_getspecific(mac_key);
	if (m)
		return m;
	m = OPENSSL_zalloc(sizeof(*m));
	if (!m)
		return NULL;
	m->ctx = EVP_MAC_CTX_new(mac_alg);
	if (!m->ctx || pthread_setspecific(mac_key, m)) {
		mac_free(m);
		return NULL;
	}
	return m;
}

/* Ready for the first byte. */
static bool mac_begin(struct mac *m, const u8 key[PVFS_KEY_LEN])
{
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
		OSSL_PARAM_construct_end(),
	};

	if (m->keyed && pvfs_mac_equal(m->key, key, PVFS_KEY_LEN))
		return EVP_MAC_init(m->ctx, NULL, 0, NULL);
	m->keyed = EVP_MAC_init(m->ctx, key, PVFS_KEY_LEN, params);
	memcpy(m->key, key, PVFS_KEY_LEN);
	return m->keyed;
}

/**
 * pvfs_hmac - HMAC-SHA256 over a list of pieces
 * @key: PVFS_KEY_LEN bytes
 * @iov: @n pieces
 * @out: the mac
 *
 * Any thread. When OpenSSL fails (out of memory) @out gets random bytes: a mac that matches
 * nothing.
 */
void pvfs_hmac(const u8 key[PVFS_KEY_LEN], const struct iovec *iov, int n, u8 out[PVFS_MAC_LEN])
{
	struct mac *m = mac_get();
	size_t len = 0;
	bool ok;
	int i;

	ok = m && mac_begin(m, key);
	for (i = 0; ok && i < n; i++)
		ok = !iov[i].iov_len || EVP_MAC_update(m->ctx, iov[i].iov_base, iov[i].iov_len);
	ok = ok && EVP_MAC_final(m->ctx, out, &len, PVFS_MAC_LEN) && len == PVFS_MAC_LEN;
	if (ok)
		return;
	if (m)
		m->keyed = false;
	if (pvfs_nonce_make(out))
		/* neither a mac nor randomness: a predictable answer would be a hole */
		abort();
}

bool pvfs_mac_equal(const void *a, const void *b, size_t n)
{
	return !CRYPTO_memcmp(a, b, n);
}

int pvfs_nonce_make(u8 nonce[PVFS_NONCE_LEN])
{
	return RAND_bytes(nonce, PVFS_NONCE_LEN) == 1 ? 0 : -EIO;
}

/* ---------------------------------------------------------------- keys */

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int parse_key(const char *text, ssize_t len, struct pvfs_key *key)
{
	int i, hi, lo;

	if (len > 0 && text[len - 1] == '\n')
		len--;
	if (len > 0 && text[len - 1] == '\r')
		len--;
	if (len != 2 * PVFS_KEY_LEN)
		return -EINVAL;
	for (i = 0; i < PVFS_KEY_LEN; i++) {
		hi = hex(text[2 * i]);
		lo = hex(text[2 * i + 1]);
		if (hi < 0 || lo < 0)
			return -EINVAL;
		key->bytes[i] = hi << 4 | lo;
	}
	key->present = true;
	return 0;
}

int pvfs_key_load(const char *path, struct pvfs_key *ret_key, const char **ret_why)
{
	struct pvfs_key key = { 0 };
	char text[2 * PVFS_KEY_LEN + 8];
	struct stat st;
	ssize_t n;
	int fd, err;

	/* O_NONBLOCK: a FIFO in its place must not hold us up. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		err = errno == ENOENT ? -ENOENT : -EACCES;
		*ret_why = errno == ENOENT ? "there is no key file: copy it from the mgr's node" :
					     strerror(errno);
		return err;
	}
	err = -EACCES;
	if (fstat(fd, &st)) {
		*ret_why = strerror(errno);
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		*ret_why = "not a regular file";
		goto out;
	}
	if (st.st_mode & 077) {
		*ret_why = "others than its owner may use the key: chmod 600 it";
		goto out;
	}
	n = read(fd, text, sizeof(text));
	if (n < 0) {
		*ret_why = strerror(errno);
		goto out;
	}
	err = parse_key(text, n, &key);
	if (err)
		*ret_why = "not a key: expected 64 hexadecimal digits and a newline";
	else
		*ret_key = key;
out:
	explicit_bzero(text, sizeof(text));
	explicit_bzero(&key, sizeof(key));
	close(fd);
	return err;
}

bool pvfs_key_same(const struct pvfs_key *a, const struct pvfs_key *b)
{
	return !CRYPTO_memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

/* ---------------------------------------------------------------- AUTH */

static void auth_mac(const struct pvfs_key *key, const struct pvfs_nonces *n, bool by_server,
		     const u8 *body, u32 len, u8 out[PVFS_MAC_LEN])
{
	const char *label = by_server ? "pvfs-auth-server" : "pvfs-auth-client";
	/* The prover's nonce first: a mac of one direction is worth nothing in the other. */
	const u8 *first = by_server ? n->server : n->client,
		 *second = by_server ? n->client : n->server;
	struct iovec iov[] = {
		{ .iov_base = (void *)label, .iov_len = strlen(label) },
		{ .iov_base = (void *)first, .iov_len = PVFS_NONCE_LEN },
		{ .iov_base = (void *)second, .iov_len = PVFS_NONCE_LEN },
		{ .iov_base = (void *)(body + PVFS_MAC_LEN), .iov_len = len - PVFS_MAC_LEN },
	};

	pvfs_hmac(key->bytes, iov, ARRAY_SIZE(iov), out);
}

void pvfs_auth_seal(const struct pvfs_key *key, const struct pvfs_nonces *n, bool by_server,
		    u8 *body, u32 len)
{
	auth_mac(key, n, by_server, body, len, body);
}

bool pvfs_auth_verify(const struct pvfs_key *key, const struct pvfs_nonces *n, bool by_server,
		      const u8 *body, u32 len)
{
	u8 mac[PVFS_MAC_LEN];

	if (!key->present || len < PVFS_MAC_LEN)
		return false;
	auth_mac(key, n, by_server, body, len, mac);
	return pvfs_mac_equal(mac, body, PVFS_MAC_LEN);
}

/* ---------------------------------------------------------------- capabilities */

static void cap_mac(const struct pvfs_key *server_key, const u8 uuid[PVFS_UUID_LEN], u64 session,
		    const struct pvfs_fid *fid, u32 rights, u8 out[PVFS_MAC_LEN])
{
	u8 fixed[24];
	struct iovec iov[] = {
		{ .iov_base = (void *)CAP_LABEL, .iov_len = strlen(CAP_LABEL) },
		{ .iov_base = (void *)uuid, .iov_len = PVFS_UUID_LEN },
		{ .iov_base = fixed, .iov_len = sizeof(fixed) },
	};

	put_unaligned_le64(session, fixed);
	put_unaligned_le64(fid->ino, fixed + 8);
	put_unaligned_le32(fid->gen, fixed + 16);
	put_unaligned_le32(rights, fixed + 20);
	pvfs_hmac(server_key->bytes, iov, ARRAY_SIZE(iov), out);
}

void pvfs_cap_make(const struct pvfs_key *server_key, const u8 uuid[PVFS_UUID_LEN], u64 session,
		   const struct pvfs_fid *fid, u32 rights, struct pvfs_cap *ret_cap)
{
	u8 mac[PVFS_MAC_LEN];

	cap_mac(server_key, uuid, session, fid, rights, mac);
	ret_cap->rights = rights;
	ret_cap->session = session;
	memcpy(ret_cap->mac, mac, sizeof(ret_cap->mac));
}

bool pvfs_cap_check(const struct pvfs_key *server_key, const u8 uuid[PVFS_UUID_LEN], u64 session,
		    const struct pvfs_fid *fid, const struct pvfs_cap *cap)
{
	u8 mac[PVFS_MAC_LEN];

	if (!server_key->present)
		return false;
	cap_mac(server_key, uuid, session, fid, cap->rights, mac);
	return pvfs_mac_equal(mac, cap->mac, sizeof(cap->mac));
}

/* ---------------------------------------------------------------- tickets */

void pvfs_ticket_make(const struct pvfs_key *server_key, const u8 uuid[PVFS_UUID_LEN], u64 session,
		      u8 ret_ticket[PVFS_TICKET_LEN])
{
	u8 number[8], mac[PVFS_MAC_LEN];
	struct iovec iov[] = {
		{ .iov_base = (void *)TICKET_LABEL, .iov_len = strlen(TICKET_LABEL) },
		{ .iov_base = (void *)uuid, .iov_len = PVFS_UUID_LEN },
		{ .iov_base = number, .iov_len = sizeof(number) },
	};

	put_unaligned_le64(session, number);
	pvfs_hmac(server_key->bytes, iov, ARRAY_SIZE(iov), mac);
	memcpy(ret_ticket, mac, PVFS_TICKET_LEN);
}

bool pvfs_ticket_check(const struct pvfs_key *server_key, const u8 uuid[PVFS_UUID_LEN], u64 session,
		       const u8 ticket[PVFS_TICKET_LEN])
{
	u8 want[PVFS_TICKET_LEN];

	if (!server_key->present)
		return false;
	pvfs_ticket_make(server_key, uuid, session, want);
	return pvfs_mac_equal(want, ticket, sizeof(want));
}
