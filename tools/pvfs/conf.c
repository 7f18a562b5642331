// SPDX-License-Identifier: GPL-2.0
/*
 * conf.c - which cluster the command line means, and the ways to it: a mounted volume, or a single
 * server.
 */
#include "tool.h"
#include "../../common/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/**
 * parse_mgr - "host[:port]/volume", also as mount(8) writes it: "host[:port]:/volume"
 * @t: gets mgr and volume
 *
 * Return: 0 or -EINVAL, and the user was told.
 */
int parse_mgr(const char *text, struct target *t)
{
	const char *slash = strrchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : 0;

	if (n && text[n - 1] == ':')
		n--;
	if (!n || n >= sizeof(t->mgr) || !slash[1] || strlen(slash + 1) > PVFS_VOLUME_MAX) {
		fail("'%s' must be \"host/volume\" or \"host:port/volume\"", text);
		return -EINVAL;
	}
	memcpy(t->mgr, text, n);
	t->mgr[n] = '\0';
	strcpy(t->volume, slash + 1);
	return 0;
}

/**
 * target_find - the cluster that the options mean
 * @t: free with target_free() in all cases
 *
 * Return: 0, or -errno and the user was told.
 */
int target_find(struct target *t)
{
	const char *path = tool.conf ?: getenv("PVFS_CONF");
	char err[1024] = "";
	int rc;

	memset(t, 0, sizeof(*t));
	if (tool.mgr) {
		snprintf(t->key, sizeof(t->key), "%s", tool.key ?: KEY_DEFAULT);
		return parse_mgr(tool.mgr, t);
	}
	if (!path)
		path = CONF_DEFAULT;
	rc = pvfs_conf_load(path, &t->conf, err, sizeof(err));
	if (rc) {
		fail("%s%s", *err ? err : strerror(-rc),
		     rc == -ENOENT && !tool.conf ?
			     "; give -c FILE, or -m HOST/VOLUME and -k KEYFILE" :
			     "");
		return rc;
	}
	snprintf(t->mgr, sizeof(t->mgr), "%s", t->conf->mgr_address);
	snprintf(t->volume, sizeof(t->volume), "%s", t->conf->name);
	snprintf(t->key, sizeof(t->key), "%s", tool.key ?: t->conf->cluster_key);
	return 0;
}

void target_free(struct target *t)
{
	if (t->conf)
		pvfs_conf_free(t->conf);
	t->conf = NULL;
}

/* Where messages about servers go, and which. */
static int tool_log(void)
{
	int rc = pvfs_log_init("pvfs", tool.verbose ? PVFS_LOG_DEBUG : PVFS_LOG_INFO, tool.log);

	if (rc)
		fail("%s: %s", tool.log, strerror(-rc));
	return rc;
}

/**
 * tool_connect - mount the volume that the options mean
 *
 * Return: 0, or -errno and the user was told.
 */
int tool_connect(struct pvfs_fs **ret)
{
	struct pvfs_mount_opts o = PVFS_MOUNT_OPTS_INIT;
	char err[1024] = "";
	struct target t = { 0 };
	int rc = tool_log() ?: target_find(&t);

	if (!rc) {
		o.mgr = t.mgr;
		o.volume = t.volume;
		o.key_file = t.key;
		o.mount_timeout_ms = tool.timeout_ms;
		o.soft = tool.soft;
		o.timeo_ms = tool.timeout_ms;
		rc = pvfs_mount(&o, ret, err, sizeof(err));
		if (rc)
			fail("%s", *err ? err : strerror(-rc));
	}
	target_free(&t);
	return rc;
}

void tool_disconnect(struct pvfs_fs *fs)
{
	char text[PVFS_HOST_MAX + 300];
	int err;

	if (tool.counters)
		pvfs_counters_print(fs, stderr);
	/* What failed was told of files: an error of --soft does not say which server it was. */
	if (tool.soft && has_failed() && pvfs_away(fs, text, sizeof(text)) > 0)
		fail("does not answer: %s", text);
	err = pvfs_umount(fs);
	if (err)
		fail("can't end the session: %s", strerror(-err));
}

/* The path in the volume that @arg ("pvfs:/path") means, or NULL: it is a local one. */
const char *remote_path(const char *arg)
{
	if (strncmp(arg, "pvfs:", 5))
		return NULL;
	return arg[5] ? arg + 5 : "/";
}

/**
 * probe_open - a way to one server, without a session
 * @address: "host:port"
 * @port: default
 * @role: PVFS_ROLE_MGR or PVFS_ROLE_IOD
 * @ret: free with pvfs_peer_free()
 * @err: on failure a text for the user
 */
int probe_open(struct pvfs_engine *e, const struct target *t, const char *address, u16 port,
	       u8 role, struct pvfs_peer **ret, char *err, size_t errlen)
{
	struct pvfs_peer_params pp = { .my_role = PVFS_ROLE_CLIENT, .its_role = role, .nconnect = 1,
				       .fail_ms = tool.timeout_ms };
	const char *why = "";
	struct pvfs_key key;
	int rc;

	rc = pvfs_key_load(t->key, &key, &why);
	if (rc) {
		snprintf(err, errlen, "%s: %s", t->key, why && *why ? why : strerror(-rc));
		return rc;
	}
	pp.key = &key;
	snprintf(pp.volume, sizeof(pp.volume), "%s", t->volume);
	rc = pvfs_addr_resolve(address, port, &pp.addr, &why);
	if (rc)
		snprintf(err, errlen, "%s: %s", address, why && *why ? why : strerror(-rc));
	else
		rc = pvfs_peer_new(e, &pp, ret);
	explicit_bzero(&key, sizeof(key));
	return rc;
}

/**
 * probe_call - PING or STATS
 * @payload: memory for the reply's payload, or NULL
 * @ret_len: its length; may be NULL
 * @ret_ns: how long it took; may be NULL
 * @err: on failure a text for the user
 */
int probe_call(struct pvfs_peer *p, u16 op, void *payload, size_t room, u32 *ret_len, u64 *ret_ns,
	       char *err, size_t errlen)
{
	struct iovec in = { .iov_base = payload, .iov_len = room };
	char why[200] = "";
	struct timespec a, b;
	u8 rep[128];
	struct pvfs_rpc rpc = { .op = op,
				.in = payload ? &in : NULL,
				.nin = payload ? 1 : 0,
				.rep = rep,
				.rep_room = sizeof(rep),
				.timeout_ms = tool.timeout_ms };
	int rc, perr = 0;

	clock_gettime(CLOCK_MONOTONIC, &a);
	rc = pvfs_peer_call(p, &rpc);
	clock_gettime(CLOCK_MONOTONIC, &b);
	if (ret_ns)
		*ret_ns = (b.tv_sec - a.tv_sec) * 1000000000ull + b.tv_nsec - a.tv_nsec;
	if (ret_len)
		*ret_len = rpc.in_len;
	if (!rc)
		return 0;
	if (pvfs_peer_state(p, &perr, why, sizeof(why)) == PVFS_PEER_REFUSED && perr == -EACCES)
		snprintf(err, errlen, "refused the key");
	else
		snprintf(err, errlen, "%s", *why ? why : strerror(perr ? -perr : -rc));
	return rc;
}
