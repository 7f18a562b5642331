// SPDX-License-Identifier: LGPL-2.1
/*
 * fs.c - a volume as a process has it mounted: mount and umount, the I/O daemons, credentials,
 * counters.
 *
 * The session itself, and what becomes of it when servers go and come, is session.c's.
 */
#include "lib.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/random.h>

#define IODENT_MAX (4 + 2 + 2 + 16 + 2 + PVFS_HOST_MAX)	/* bytes of one encoded iodent */

const char *pvfs_version(void)
{
	return PVFS_VERSION;
}

/* ---------------------------------------------------------------- credentials */

static int cred_fill(struct fs_cred *c, uid_t uid, gid_t gid, const gid_t *groups, size_t n)
{
	size_t i;

	if (n > PVFS_NGROUPS_MAX)
		return -EINVAL;
	c->uid = uid;
	c->gid = gid;
	c->ngroups = n;
	for (i = 0; i < n; i++)
		put_unaligned_le32(groups[i], c->groups + 4 * i);
	return 0;
}

/*
 * The process': more groups than the protocol carries are cut, as NFS does; the kernel's own order
 * is kept.
 */
static int cred_default(struct fs_cred *c)
{
	int n = getgroups(0, NULL), err;
	gid_t *g;

	if (n < 0)
		return -errno;
	g = calloc(n + 1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	n = getgroups(n, g);
	err = n < 0 ? -errno : cred_fill(c, geteuid(), getegid(), g, min((u32)n, PVFS_NGROUPS_MAX));
	free(g);
	return err;
}

int pvfs_setcred(struct pvfs_fs *fs, uid_t uid, gid_t gid, const gid_t *groups, size_t ngroups)
{
	int err = lib_fs_check(fs);

	if (err)
		return err;
	pthread_rwlock_wrlock(&fs->cred_lock);
	err = cred_fill(&fs->cred, uid, gid, groups, ngroups);
	pthread_rwlock_unlock(&fs->cred_lock);
	return err;
}

/* Whom this thread's calls are made for, if it said so; of one mount at a time. */
static __thread struct {
	u64 mount;		/* fs->number, which no other mount has ever; 0: it did not */
	struct fs_cred cred;
	u32 umask;
} mine;

int pvfs_setcred_thread(struct pvfs_fs *fs, uid_t uid, gid_t gid, const gid_t *groups, size_t ngroups,
			mode_t mask)
{
	int err = lib_fs_check(fs) ?: cred_fill(&mine.cred, uid, gid, groups, ngroups);

	mine.mount = err ? 0 : fs->number;
	mine.umask = mask & 0777;
	return err;
}

void pvfs_endcred_thread(void)
{
	mine.mount = 0;
}

/* lib_fs_umask - the file mode creation mask requests are made with */
u32 lib_fs_umask(struct pvfs_fs *fs)
{
	return mine.mount == fs->number ? mine.umask : atomic_load(&fs->umask);
}

static void cred_copy(struct fs_cred *to, const struct fs_cred *from)
{
	to->uid = from->uid;
	to->gid = from->gid;
	to->ngroups = from->ngroups;
	memcpy(to->groups, from->groups, 4 * from->ngroups);
}

/**
 * lib_fs_cred_get - the credential requests are made with
 * @copy: gets a private copy, which must live as long as @ret
 * @ret: as msg.h wants it; borrows @copy
 */
void lib_fs_cred_get(struct pvfs_fs *fs, struct fs_cred *copy, struct pvfs_cred *ret)
{
	if (mine.mount == fs->number) {
		cred_copy(copy, &mine.cred);
	} else {
		pthread_rwlock_rdlock(&fs->cred_lock);
		cred_copy(copy, &fs->cred);
		pthread_rwlock_unlock(&fs->cred_lock);
	}
	*ret = (struct pvfs_cred){ .uid = copy->uid, .gid = copy->gid,
				   .groups = { .p = copy->groups, .len = 4 * copy->ngroups } };
}

/**
 * lib_fs_cred_may - the mode bits' word on an access, for what the mgr leaves to its clients
 * @want: R_OK, W_OK, X_OK or'ed
 *
 * The superuser may all, but execute only what someone may execute.
 */
bool lib_fs_cred_may(const struct fs_cred *c, u32 mode, u32 uid, u32 gid, unsigned int want)
{
	unsigned int have;
	bool in = c->gid == gid;
	u32 i;

	if (!c->uid)
		return !(want & X_OK) || S_ISDIR(mode) || (mode & 0111);
	for (i = 0; !in && i < c->ngroups; i++)
		in = get_unaligned_le32(c->groups + 4 * i) == gid;
	have = c->uid == uid ? mode >> 6 : in ? mode >> 3 : mode;
	return (have & want) == want;
}

mode_t pvfs_umask(struct pvfs_fs *fs, mode_t mask)
{
	return lib_fs_check(fs) ? 0 : atomic_exchange(&fs->umask, mask & 0777);
}

/* umask(2) can't be read without being set, which other threads would notice. */
static unsigned int umask_default(void)
{
	unsigned int mask = 022;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	if (!f)
		return mask;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Umask: %o", &mask) == 1)
			break;
	}
	fclose(f);
	return mask & 0777;
}

/* ---------------------------------------------------------------- I/O daemons */

/* A connection to an iod is up. On an engine thread. */
static void iod_up(struct pvfs_peer *p, u32 channel, const struct pvfs_auth_rep *rep)
{
	struct fs_iod *d = pvfs_peer_arg(p);
	u32 payload;

	payload = max(rep->payload_max, 4096u);
	atomic_store(&d->payload_max, min(payload, PVFS_PAYLOAD_MAX));
}

/**
 * lib_fs_iods_ready - be sure that what is to be known of I/O daemons before the first request is
 * known
 * @index: their numbers
 * @n: how many, at least 1
 *
 * Connects to those that were never needed before, all at once. Afterwards this costs nothing.
 *
 * Return: 0, or what the transport says.
 */
int lib_fs_iods_ready(struct pvfs_fs *fs, const u32 *index, u32 n)
{
	struct ping { struct pvfs_rpc rpc; u8 rep[64]; } *pings = NULL;
	struct pvfs_rpc_set set = PVFS_RPC_SET;
	u32 i, k = 0;
	int err = 0;

	for (i = 0; i < n; i++)
		k += !atomic_load(&fs->iods[index[i]].payload_max);
	if (!k)
		return 0;
	pings = calloc(n, sizeof(*pings));
	if (!pings)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		pings[i].rpc = (struct pvfs_rpc){ .op = PVFS_OP_PING, .rep = pings[i].rep,
			.rep_room = sizeof(pings[i].rep),
			.timeout_ms = fs->soft ? (int)fs->timeo_ms : 0 };
		pvfs_rpc_set_submit(&set, fs->iods[index[i]].peer, &pings[i].rpc);
	}
	pvfs_rpc_set_wait(&set);
	for (i = 0; i < n && !err; i++)
		err = lib_fs_rpc_error(fs, pings[i].rpc.err);
	free(pings);
	return err;
}

static void iod_session_lost(struct pvfs_peer *p)
{
	struct fs_iod *d = pvfs_peer_arg(p);

	lib_session_doubt(d->fs);
}

static int iod_create(struct pvfs_fs *fs, struct fs_iod *d, u32 index, const struct pvfs_iodent *e)
{
	struct pvfs_peer_params pp = {
		.key = &fs->key, .my_role = PVFS_ROLE_CLIENT, .its_role = PVFS_ROLE_IOD,
		.nconnect = fs->nconnect, .hard = !fs->soft, .fail_ms = fs->timeo_ms, .up = iod_up,
		.session_lost = iod_session_lost, .arg = d,
	};
	char ip[INET6_ADDRSTRLEN];
	const char *why = "";
	int err;

	if (e->index != index || (e->family != 4 && e->family != 6) || !e->port)
		return -EBADMSG;
	d->fs = fs;
	d->index = index;
	if (!inet_ntop(e->family == 4 ? AF_INET : AF_INET6, e->addr, ip, sizeof(ip)))
		return -EBADMSG;
	if (e->family == 4)
		snprintf(d->name, sizeof(d->name), "%s:%u", ip, e->port);
	else
		snprintf(d->name, sizeof(d->name), "[%s]:%u", ip, e->port);
	err = pvfs_addr_resolve(d->name, e->port, &pp.addr, &why);
	if (err)
		return err;
	if (e->host.len)
		snprintf(d->name, sizeof(d->name), "%.*s (%s:%u)", (int)e->host.len, e->host.p, ip,
			 e->port);
	snprintf(pp.volume, sizeof(pp.volume), "%s", fs->volume);
	err = pvfs_peer_new(fs->engine, &pp, &d->peer);
	if (!err)
		pvfs_peer_expect(d->peer, fs->uuid, index);
	return err;
}

/**
 * lib_fs_iods_create - make the table of I/O daemons from what SESSION_OPEN answered
 * @table: encoded entries, @len bytes
 * @n: how many
 *
 * Connects to none of them: that happens when they are needed.
 */
int lib_fs_iods_create(struct pvfs_fs *fs, const void *table, u32 len, u32 n, char *err,
		       size_t errlen)
{
	struct pvfs_iodent e;
	struct pvfs_wire w;
	int rc = -EBADMSG;
	u32 i;

	if (!n || n > PVFS_IOD_MAX)
		goto bad;
	fs->iods = calloc(n, sizeof(*fs->iods));
	if (!fs->iods)
		return -ENOMEM;
	pvfs_wire_init(&w, table, len);
	for (i = 0; i < n; i++) {
		pvfs_get_iodent(&w, &e);
		rc = w.err ?: iod_create(fs, &fs->iods[i], i, &e);
		if (rc)
			goto bad;
		fs->niods = i + 1;
		pvfs_peer_set_session(fs->iods[i].peer, fs->session, fs->ticket);
	}
	return 0;
bad:
	snprintf(err, errlen, "%s: sent a table of I/O daemons that can't be used: %s",
		 fs->mgr_name, strerror(-rc));
	return rc;
}

int pvfs_iod_name(struct pvfs_fs *fs, unsigned int index, char *buf, size_t n)
{
	int err = lib_fs_check(fs);

	if (err)
		return err;
	if (index >= fs->niods)
		return -ENOENT;
	snprintf(buf, n, "%s", fs->iods[index].name);
	return 0;
}

int pvfs_away(struct pvfs_fs *fs, char *buf, size_t n)
{
	enum pvfs_peer_state st;
	int err = lib_fs_check(fs);
	char why[200] = "";
	u32 i;

	if (err)
		return err;
	for (i = 0; i <= fs->niods; i++) {
		st = pvfs_peer_state(i ? fs->iods[i - 1].peer : fs->mgr, NULL, why, sizeof(why));
		if (st == PVFS_PEER_IDLE || st == PVFS_PEER_UP)
			continue;
		snprintf(buf, n, "%s: %s", i ? fs->iods[i - 1].name : fs->mgr_name, why);
		return 1;
	}
	return 0;
}

/* ---------------------------------------------------------------- mount and umount */

static void fs_free(struct pvfs_fs *fs)
{
	u32 i;

	for (i = 0; i < fs->niods; i++)
		pvfs_peer_free(fs->iods[i].peer);
	pvfs_peer_free(fs->mgr);
	pvfs_engine_free(fs->engine);
	free(fs->iods);
	pthread_rwlock_destroy(&fs->cred_lock);
	pthread_mutex_destroy(&fs->lock);
	pthread_mutex_destroy(&fs->inode_lock);
	pthread_cond_destroy(&fs->cond);
	explicit_bzero(&fs->key, sizeof(fs->key));
	free(fs);
}

static struct pvfs_fs *fs_alloc(void)
{
	static atomic_ullong number;
	struct pvfs_fs *fs = calloc(1, sizeof(*fs));
	pthread_condattr_t ca;

	if (!fs)
		return NULL;
	fs->number = atomic_fetch_add(&number, 1) + 1;
	fs->pid = getpid();
	pthread_rwlock_init(&fs->cred_lock, NULL);
	pthread_mutex_init(&fs->lock, NULL);
	pthread_mutex_init(&fs->inode_lock, NULL);
	pthread_condattr_init(&ca);
	pthread_condattr_setclock(&ca, CLOCK_MONOTONIC);
	pthread_cond_init(&fs->cond, &ca);
	pthread_condattr_destroy(&ca);
	return fs;
}

/*
 * Why the mgr can't be used, in the user's terms. @perr: pvfs_peer_state()'s error, @why its text.
 */
static void explain(struct pvfs_fs *fs, const char *key_file, int rc, enum pvfs_peer_state st,
		    int perr, const char *why, char *err, size_t errlen)
{
	if (st == PVFS_PEER_REFUSED && perr == -EACCES)
		snprintf(err, errlen,
			 "%s: refused the key in %s: copy the cluster's key there, or name the right file",
			 fs->mgr_name, key_file);
	else if (st == PVFS_PEER_REFUSED && perr == -ENOENT)
		snprintf(err, errlen, "%s: has no volume '%s'%s%s: check the name after ':/'",
			 fs->mgr_name, fs->volume, *why ? ": " : "", why);
	else if (st == PVFS_PEER_REFUSED && perr == -EPROTOTYPE)
		snprintf(err, errlen, "%s: %s: name the address of pvfs-mgr", fs->mgr_name, why);
	else if (st == PVFS_PEER_REFUSED && perr == -EPROTO)
		snprintf(err, errlen,
			 "%s: its version does not match this one (%s): install the same version on both%s%s",
			 fs->mgr_name, PVFS_VERSION, *why ? ": " : "", why);
	else if (st == PVFS_PEER_REFUSED)
		snprintf(err, errlen, "%s: refused the connection: %s", fs->mgr_name,
			 *why ? why : strerror(-perr));
	else if (st == PVFS_PEER_UP && rc == -EAGAIN)
		snprintf(err, errlen,
			 "%s: opens no session yet: it waits for something, as for the address of an I/O daemon; its log says what",
			 fs->mgr_name);
	else if (st == PVFS_PEER_UP)
		snprintf(err, errlen, "%s: can't open a session: %s", fs->mgr_name, strerror(-rc));
	else
		snprintf(err, errlen,
			 "%s: no answer: %s: is pvfs-mgr running there, and reachable?",
			 fs->mgr_name, *why ? why : strerror(perr ? -perr : -rc));
}

static int mount_session(struct pvfs_fs *fs, const char *key_file, char *err, size_t errlen)
{
	size_t room = (size_t)PVFS_IOD_MAX * IODENT_MAX;
	enum pvfs_peer_state st;
	u8 *table = malloc(room);
	char why[200] = "";
	int rc, perr = 0;
	u32 len, n;

	if (!table)
		return -ENOMEM;
	rc = lib_session_open(fs, fs->mount_timeout_ms, table, room, &len, &n);
	if (rc) {
		st = pvfs_peer_state(fs->mgr, &perr, why, sizeof(why));
		explain(fs, key_file, rc, st, perr, why, err, errlen);
		if (st == PVFS_PEER_REFUSED && perr)
			rc = perr;
		else if (st != PVFS_PEER_UP && (rc == -ETIMEDOUT || rc == -ENOTCONN) && perr)
			rc = perr;
	} else {
		rc = lib_fs_iods_create(fs, table, len, n, err, errlen);
	}
	free(table);
	return rc;
}

/* "node7, anna, cp[812]": what the manager's log says of us. */
static void who_am_i(char *who, size_t n)
{
	char host[HOST_NAME_MAX + 1] = "", buf[1024], user[64];
	struct passwd pw, *found = NULL;

	if (gethostname(host, sizeof(host) - 1) || !*host)
		strcpy(host, "localhost");
	if (!getpwuid_r(geteuid(), &pw, buf, sizeof(buf), &found) && found)
		snprintf(user, sizeof(user), "%s", pw.pw_name);
	else
		snprintf(user, sizeof(user), "uid %u", geteuid());
	snprintf(who, n, "%s, %s, %.64s[%d]", host, user, program_invocation_short_name,
		 (int)getpid());
}

static void mgr_session_lost(struct pvfs_peer *p)
{
	lib_session_lost(pvfs_peer_arg(p));
}

/**
 * pvfs_mount - open a session with a volume
 * @opts: borrowed during the call
 * @ret: on success the volume; end it with pvfs_umount()
 * @err: on failure one line for the user that names the host or file; may be NULL
 * @errlen: room in @err
 *
 * Return: 0; -EINVAL; -ENOENT (no such volume, no key file), -EACCES (key), -EPROTO (version),
 * -EPROTOTYPE (an I/O daemon), -EHOSTUNREACH, -ECONNREFUSED, -ETIMEDOUT (no such manager).
 */
int pvfs_mount(const struct pvfs_mount_opts *opts, struct pvfs_fs **ret, char *err, size_t errlen)
{
	const char *why = "", *key_file;
	struct pvfs_mount_opts o = { 0 };
	struct pvfs_peer_params pp = { 0 };
	struct pvfs_fs *fs;
	char dummy[1];
	long cpus;
	int rc;

	if (!err || !errlen) {
		err = dummy;
		errlen = 1;
	}
	err[0] = '\0';
	if (!opts || !opts->struct_size || opts->struct_size > sizeof(o)) {
		snprintf(err, errlen,
			 "options of an unknown size: the program needs a newer libpvfs");
		return -EINVAL;
	}
	memcpy(&o, opts, opts->struct_size);
	key_file = o.key_file ?: "/etc/pvfs/cluster.key";
	if (!o.mgr || !*o.mgr || !o.volume || !*o.volume || strlen(o.volume) > PVFS_VOLUME_MAX ||
	    o.nconnect > PVFS_CHANNELS_MAX || o.threads > 128) {
		snprintf(err, errlen,
			 "options need a mgr, a volume (at most %u bytes) and nconnect of at most %u",
			 PVFS_VOLUME_MAX, PVFS_CHANNELS_MAX);
		return -EINVAL;
	}
	fs = fs_alloc();
	if (!fs) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	fs->soft = o.soft;
	fs->timeo_ms = o.timeo_ms ?: 60000;
	fs->mount_timeout_ms = o.mount_timeout_ms ?: 10000;
	fs->nconnect = o.nconnect ?: NCONNECT_DEFAULT;
	snprintf(fs->volume, sizeof(fs->volume), "%s", o.volume);
	snprintf(fs->mgr_name, sizeof(fs->mgr_name), "%s", o.mgr);
	who_am_i(fs->who, sizeof(fs->who));
	atomic_store(&fs->umask, umask_default());
	rc = cred_default(&fs->cred);
	if (!rc && getrandom(fs->client, sizeof(fs->client), 0) != sizeof(fs->client))
		rc = -EIO;
	if (rc) {
		snprintf(err, errlen, "can't tell who this process is: %s", strerror(-rc));
		goto out;
	}
	rc = pvfs_key_load(key_file, &fs->key, &why);
	if (rc) {
		snprintf(err, errlen, "%s: %s", key_file, why && *why ? why : strerror(-rc));
		goto out;
	}
	rc = pvfs_addr_resolve(o.mgr, PVFS_PORT_MGR, &pp.addr, &why);
	if (rc) {
		snprintf(err, errlen, "%s: %s", o.mgr, why && *why ? why : strerror(-rc));
		goto out;
	}
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (!o.threads)
		o.threads = cpus < 1 ? 1 : min(cpus, 4l);
	/* lib_session_mgr_up() may keep one for each connection to the mgr. */
	rc = pvfs_engine_new("libpvfs", o.threads + fs->nconnect, &fs->engine);
	if (rc) {
		snprintf(err, errlen, "can't start threads: %s", strerror(-rc));
		goto out;
	}
	pp.key = &fs->key;
	pp.my_role = PVFS_ROLE_CLIENT;
	pp.its_role = PVFS_ROLE_MGR;
	memcpy(pp.volume, fs->volume, sizeof(pp.volume));
	pp.nconnect = fs->nconnect;
	pp.hard = !fs->soft;
	pp.fail_ms = fs->timeo_ms;
	pp.up = lib_session_mgr_up;
	pp.session_lost = mgr_session_lost;
	pp.callback = lib_lock_callback;
	pp.arg = fs;
	rc = pvfs_peer_new(fs->engine, &pp, &fs->mgr);
	if (!rc)
		rc = mount_session(fs, key_file, err, errlen);
	if (!rc)
		rc = lib_session_start(fs);
	if (rc) {
		if (!*err)
			snprintf(err, errlen, "%s: %s", fs->mgr_name, strerror(-rc));
		goto out;
	}
	*ret = fs;
	return 0;
out:
	fs_free(fs);
	return rc;
}

/**
 * pvfs_umount - end the session and free everything
 * @fs: taken, unless an error is returned
 *
 * Waits for closes that nobody waited for, at most as long as a mount may take.
 *
 * Return: 0, -EBUSY (files or directories are open, or queues not freed), -EBADF (not this process').
 */
int pvfs_umount(struct pvfs_fs *fs)
{
	int err = lib_fs_check(fs);

	if (err)
		return err;
	if (atomic_load(&fs->nfiles) || atomic_load(&fs->ndirs) || atomic_load(&fs->nqueues))
		return -EBUSY;
	lib_session_stop(fs);
	fs_free(fs);
	return 0;
}

int pvfs_volinfo(struct pvfs_fs *fs, struct pvfs_volinfo *ret)
{
	int err = lib_fs_check(fs);

	if (err)
		return err;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->name, fs->volume, sizeof(fs->volume));
	memcpy(ret->uuid, fs->uuid, sizeof(ret->uuid));
	ret->root = (struct pvfs_fh){ .ino = fs->root.ino, .gen = fs->root.gen };
	ret->niods = fs->niods;
	pthread_mutex_lock(&fs->lock);
	ret->lease_ms = fs->lease_ms;	/* a renewal may bring another one */
	pthread_mutex_unlock(&fs->lock);
	ret->striping = lib_striping(&fs->root_layout);
	return 0;
}

/* ---------------------------------------------------------------- counters */

static void add_counts(struct pvfs_peer *p, int op, struct pvfs_opcount *sum)
{
	struct pvfs_peer_counts c;
	int i;

	pvfs_peer_counts(p, &c);
	for (i = 0; i < PVFS_OP_LIMIT; i++) {
		if (op >= 0 && op != i)
			continue;
		sum->count += c.op[i].n;
		sum->errors += c.op[i].errors;
		sum->bytes_out += c.op[i].bytes_out;
		sum->bytes_in += c.op[i].bytes_in;
		sum->resent += c.op[i].resent;
		sum->ns_total += c.op[i].ns_total;
		sum->ns_max = max(sum->ns_max, (uint64_t)c.op[i].ns_max);
	}
}

int pvfs_counters(struct pvfs_fs *fs, int server, const char *op, struct pvfs_opcount *ret)
{
	int err = lib_fs_check(fs), n = -1, i;

	if (err)
		return err;
	for (i = 0; op && n < 0 && i < PVFS_OP_LIMIT; i++) {
		if (pvfs_op_info(i) && !strcasecmp(op, pvfs_op_name(i)))
			n = i;
	}
	if ((op && n < 0) || server < PVFS_SERVER_ALL || server >= (int)fs->niods)
		return -ENOENT;
	memset(ret, 0, sizeof(*ret));
	if (server == PVFS_SERVER_MGR || server == PVFS_SERVER_ALL)
		add_counts(fs->mgr, n, ret);
	for (i = 0; i < (int)fs->niods; i++) {
		if (server == i || server == PVFS_SERVER_ALL)
			add_counts(fs->iods[i].peer, n, ret);
	}
	return 0;
}

void pvfs_counters_print(struct pvfs_fs *fs, FILE *f)
{
	struct pvfs_opcount c;
	int op, server;
	char name[16];

	if (lib_fs_check(fs))
		return;
	fprintf(f, "%-8s %-14s %10s %8s %14s %14s %8s %10s %10s\n", "server", "operation", "count",
		"errors", "bytes out", "bytes in", "resent", "mean us", "max us");
	for (server = PVFS_SERVER_MGR; server < (int)fs->niods; server++) {
		snprintf(name, sizeof(name), server < 0 ? "mgr" : "iod%d", server);
		for (op = 0; op < PVFS_OP_LIMIT; op++) {
			if (!pvfs_op_info(op) || pvfs_counters(fs, server, pvfs_op_name(op), &c) ||
			    !c.count)
				continue;
			fprintf(f, "%-8s %-14s %10llu %8llu %14llu %14llu %8llu %10.1f %10.1f\n",
				name, pvfs_op_name(op), (unsigned long long)c.count,
				(unsigned long long)c.errors, (unsigned long long)c.bytes_out,
				(unsigned long long)c.bytes_in, (unsigned long long)c.resent,
				c.ns_total / 1e3 / c.count, c.ns_max / 1e3);
		}
	}
}
