// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_daemons.c - a whole manager and a whole I/O daemon, on real stores, fed with mutated
 * streams: what fuzz_server.c does to the transport, this does to the handlers behind it.
 *
 * Flags beyond those of client.h:
 *   10 to the iod, else to the mgr
 *   20 as it is; else, as the seeds are, in a session of our own, with numbers for its slots and
 *      capabilities that hold. What is for a head is then for that of a file that is there, and
 *      stuffed until somebody has made it long.
 *
 * Checked: nothing crashes, and after every few inputs a client that keeps to the rules reads what
 * it wrote. At the end the manager's database is consistent.
 */
#include "client.h"
#include "common/storeid.h"
#include "iod/iod.h"
#include "lib/pvfs.h"
#include "mgr/mgr.h"
#include <arpa/inet.h>
#include <ftw.h>
#include <sys/stat.h>

#define F_IOD 0x10
#define F_STRANGE 0x20
#define MGR "loop:fuzzmgr"
#define TEXT "what a client that keeps to the rules has written\n"

#ifdef __SANITIZE_ADDRESS__
/* The library's own, for the life of the process. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libdb-5.3";
}
#endif

static char dir[] = "/tmp/pvfs-fuzz-XXXXXX";
static struct pvfs_conf *conf;
static struct pvfs_engine *engine;
static struct mgr_iodtab *iods;
static struct mgr *mgr;
static struct pvfs_server *mgr_server;
static struct iod *iod;
static struct pvfs_fs *fs;
static struct pvfs_fid stuffed;		/* /mine/stuffed */
static struct pvfs_addr addrs[2];

static void put_file(const char *name, const char *text, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, mode);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die(name);
	close(fd);
}

static void put_conf(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t n = sizeof(sa);
	const char *why = "";
	char text[2048];

	/* Clients learn the I/O daemon's address from the manager, which knows of numbers only. */
	if (fd < 0 || bind(fd, (void *)&sa, n) || getsockname(fd, (void *)&sa, &n))
		die("no port");
	close(fd);
	snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(sa.sin_port));
	if (pvfs_addr_resolve(MGR, 0, &addrs[0], &why) || pvfs_addr_resolve(text, 0, &addrs[1], &why))
		die(why);
	put_file("cluster.key", "6363636363636363636363636363636363636363636363636363636363636363\n", 0600);
	put_file("server.key", "7373737373737373737373737373737373737373737373737373737373737373\n", 0600);
	snprintf(text, sizeof(text),
		 "volume: { name = \"vol\"; uuid = \"0f0e0d0c-0b0a-4009-8807-060504030201\";\n"
		 "  cluster_key = \"cluster.key\"; server_key = \"server.key\"; };\n"
		 "mgr: { address = \"" MGR "\"; store = \"mgr\"; threads = 2; };\n"
		 "layout: { stuff_max = \"8k\"; };\n"
		 "iods: ( { address = \"%s\"; store = \"iod\"; } );\n", addrs[1].text);
	put_file("pvfs.conf", text, 0600);
}

static void start_iod(void)
{
	struct pvfs_storeid id = { .format = PVFS_STORE_FORMAT, .role = PVFS_ROLE_IOD };
	struct iod_store *store;
	char err[6000];

	memcpy(id.uuid, conf->uuid, sizeof(id.uuid));
	memcpy(volume_uuid, conf->uuid, sizeof(volume_uuid));
	memcpy(id.name, conf->name, sizeof(id.name));
	if (pvfs_storeid_create(conf->iods[0].store, &id, err, sizeof(err)) ||
	    iod_store_posix_open(conf->iods[0].store, 0, &store) || iod_start(conf, 0, store, &iod, err, sizeof(err)))
		die(err);
}

static void start_mgr(void)
{
	struct pvfs_server_params p = { .ops = &mgr_server_ops, .role = PVFS_ROLE_MGR, .cluster_key = cluster_key,
					.server_key = server_key, .payload_max = 65536, .credits = 64, .max_conns = 200,
					.auth_ms = 1000 };
	const char *why = "";
	char err[512];

	if (mgr_mkfs(conf, err, sizeof(err)) || mgr_iodtab_open(conf, &server_key, &iods) ||
	    mgr_core_open(conf, &server_key, &mgr_iodtab_ops, iods, &mgr, err, sizeof(err)))
		die(err);
	p.arg = mgr;
	p.epoch = mgr->epoch;
	memcpy(p.volume, conf->name, sizeof(p.volume));
	memcpy(p.uuid, mgr->uuid, sizeof(p.uuid));
	if (mgr_workers_start(mgr, 2) || pvfs_engine_new("mgr", 2, &engine) ||
	    pvfs_server_start(engine, &addrs[0], 1, &p, &mgr_server, &why))
		die(why);
	mgr->server = mgr_server;
	if (mgr_core_start(mgr))
		die("mgr_core_start");
}

/* Another one: they don't stay stuffed. It stays the old one when the others have seen to that. */
static void make_stuffed(void)
{
	struct pvfs_file *f;
	struct pvfs_stat st;

	pvfs_unlink(fs, "/mine/stuffed");
	if (pvfs_open(fs, "/mine/stuffed", O_RDWR | O_CREAT | O_EXCL, 0600, &f))
		return;
	if (pvfs_pwrite(f, TEXT, sizeof(TEXT), 0) == sizeof(TEXT) && !pvfs_fstat(f, &st))
		stuffed = (struct pvfs_fid){ .ino = st.fh.ino, .gen = st.fh.gen };
	pvfs_close(f);
}

/* Something of every kind, so that small numbers name it. */
static void populate(void)
{
	struct pvfs_mount_opts o = PVFS_MOUNT_OPTS_INIT;
	struct pvfs_file *f;
	char err[512];

	o.mgr = MGR;
	o.volume = "vol";
	o.key_file = "cluster.key";
	if (pvfs_mount(&o, &fs, err, sizeof(err)))
		die(err);
	if (pvfs_mkdir(fs, "/mine", 0700) || pvfs_mkdir(fs, "/dir", 0777) || pvfs_mkdir(fs, "/dir/sub", 0777) ||
	    pvfs_symlink(fs, "dir/file", "/link"))
		die("populate");
	if (pvfs_open(fs, "/mine/file", O_RDWR | O_CREAT, 0600, &f) ||
	    pvfs_pwrite(f, TEXT, sizeof(TEXT), 0) != sizeof(TEXT) || pvfs_close(f))
		die("populate");
	if (pvfs_open(fs, "/dir/file", O_RDWR | O_CREAT, 0666, &f) ||
	    pvfs_pwrite(f, TEXT, sizeof(TEXT), 0) != sizeof(TEXT) || pvfs_close(f))
		die("populate");
	make_stuffed();
	if (!stuffed.ino)
		die("populate");
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static int back = -1;
	const char *why = "";
	char err[512];

	pvfs_log_init("fuzz_daemons", PVFS_LOG_ERROR, NULL);
	signal(SIGPIPE, SIG_IGN);
	back = open(".", O_DIRECTORY | O_RDONLY);
	if (back < 0 || !mkdtemp(dir) || chdir(dir))
		return -1;
	put_conf();
	if (pvfs_conf_load("pvfs.conf", &conf, err, sizeof(err)))
		die(err);
	if (pvfs_key_load("cluster.key", &cluster_key, &why) || pvfs_key_load("server.key", &server_key, &why))
		die(why);
	start_iod();
	start_mgr();
	populate();
	return fchdir(back) || close(back) ? -1 : 0;
}

/* ---------------------------------------------------------------- let in */

static u64 open_session(struct pvfs_xprt *x)
{
	struct pvfs_session_open_req req = { .host = PVFS_STR("fuzz") };
	struct pvfs_session_open_rep rep;
	static u8 body[PVFS_BODY_MAX];
	static atomic_uint next;
	struct pvfs_header h;
	struct pvfs_hdr hdr;
	int n;

	/* Few clients, so that a later one finds an earlier one's slots. */
	req.client[0] = atomic_fetch_add(&next, 1) % 3 + 1;
	n = pvfs_session_open_req_encode(&req, body, sizeof(body));
	if (!send_msg(x, PVFS_OP_SESSION_OPEN, 0, 3, body, n) || !recv_all(x, &hdr, sizeof(hdr)) ||
	    pvfs_header_decode(&hdr, &h) || h.body_len > sizeof(body) || !recv_all(x, body, h.body_len) || h.status ||
	    pvfs_session_open_rep_decode(&rep, body, h.body_len) || h.payload_len > sizeof(body) ||
	    !recv_all(x, body, h.payload_len))
		return 0;
	return rep.session;
}

/* Half of them: the others are refused at first sight. */
static void tame(struct pvfs_head_write_req *m)
{
	if (m->flags & 8)
		return;
	m->flags &= PVFS_HW_APPEND;
	m->off = m->flags ? 0 : m->off % 16384;
}

/* The generations of inodes can't be guessed: @of is whose capability it is, NULL for any. */
#define SEAL(name, of, also) do { \
		struct pvfs_##name##_req m; \
		const struct pvfs_fid *of_ = of; \
		int k; \
		if (pvfs_##name##_req_decode(&m, body, h->body_len)) \
			break; \
		m.fid = of_ ? *of_ : m.fid; \
		also; \
		pvfs_cap_make(&server_key, conf->uuid, session, &m.fid, m.cap.rights | 3, &m.cap); \
		k = pvfs_##name##_req_encode(&m, body, h->body_len); \
		if (k != (int)h->body_len) \
			die("a body has two encodings"); \
	} while (0)

static void seal(const struct pvfs_header *h, u8 *body, u64 session)
{
	switch (h->op) {
	case PVFS_OP_READ:
		SEAL(read, NULL, );
		break;
	case PVFS_OP_WRITE:
		SEAL(write, NULL, );
		break;
	case PVFS_OP_READ_LIST:
		SEAL(read_list, NULL, );
		break;
	case PVFS_OP_WRITE_LIST:
		SEAL(write_list, NULL, );
		break;
	case PVFS_OP_FSYNC:
		SEAL(fsync, NULL, );
		break;
	case PVFS_OP_HEAD_READ:
		SEAL(head_read, &stuffed, );
		break;
	case PVFS_OP_HEAD_WRITE:
		SEAL(head_write, &stuffed, tame(&m));
		break;
	case PVFS_OP_UNSTUFF:
		SEAL(unstuff, &stuffed, );
		break;
	case PVFS_OP_RECLAIM:
		SEAL(reclaim, &stuffed, );
		break;
	}
}

/* What the stream holds is of this session from now on. */
static void inside(struct pvfs_xprt *x, u8 flags, u8 *p, size_t n)
{
	u64 session = flags & F_IOD ? 5 : 0;
	static atomic_uint seq;
	struct pvfs_header h;
	struct pvfs_hdr hdr;
	size_t at = 0;

	if (flags & F_STRANGE)
		return;
	if (!session)
		session = open_session(x);
	while (n - at >= PVFS_HDR_LEN) {
		memcpy(&hdr, p + at, sizeof(hdr));
		if (pvfs_header_decode(&hdr, &h) || n - at - PVFS_HDR_LEN < (u64)h.body_len + h.payload_len)
			break;
		h.session = session;
		h.flags &= PVFS_HF_PAYLOAD_CRC;		/* a request */
		h.status = 0;
		/* Odd ones, as the seeds have, are the next one; the others may have been used. */
		if (h.slot_seq)
			h.slot_seq = h.slot_seq % 2 ? atomic_fetch_add(&seq, 1) + 1 : h.slot_seq % 1024;
		seal(&h, p + at + PVFS_HDR_LEN, session);
		h.body_crc = h.body_len ? pvfs_crc32c(0, p + at + PVFS_HDR_LEN, h.body_len) : 0;
		pvfs_header_encode(&h, &hdr);
		memcpy(p + at, &hdr, sizeof(hdr));
		at += PVFS_HDR_LEN + h.body_len + h.payload_len;
	}
}

/* ---------------------------------------------------------------- one that keeps to the rules */

static void check_mine(void)
{
	char buf[sizeof(TEXT)];
	struct pvfs_file *f;
	struct pvfs_fsstat st;

	/* The others are root too: they may have taken the file away, but not half of it. */
	if (pvfs_open(fs, "/mine/file", O_RDONLY, 0, &f)) {
		if (pvfs_statfs(fs, &st))
			die("a client that keeps to the rules is not served");
		return;
	}
	if (pvfs_pread(f, buf, sizeof(buf), 0) < 0)
		die("a client that keeps to the rules cannot read");
	if (pvfs_close(f))
		die("a client that keeps to the rules cannot close");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

void fuzz_end(void)
{
	struct mgr_check_result r;
	FILE *null = fopen("/dev/null", "w");

	check_mine();
	pvfs_umount(fs);
	pvfs_server_stop(mgr_server, 5000);
	mgr_core_stop(mgr);
	mgr_workers_stop(mgr);
	mgr->server = NULL;
	if (mgr_check(mgr, null ?: stdout, &r) || r.problems)
		die("the manager's database is not consistent");
	fclose(null);
	pvfs_engine_free(engine);
	mgr_core_close(mgr);
	mgr_iodtab_close(iods);
	iod_stop(iod, 5000);
	pvfs_conf_free(conf);
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned int count;
	u8 *copy;

	if (size < 2)
		return 0;
	copy = malloc(size - 1);
	memcpy(copy, data + 1, size - 1);
	at_server(&addrs[!!(data[0] & F_IOD)], "vol", data[0] & F_IOD ? 5 : 0, inside, data[0], copy, size - 1);
	free(copy);
	if (++count % 32 == 0) {
		check_mine();
		make_stuffed();
	}
	return 0;
}
