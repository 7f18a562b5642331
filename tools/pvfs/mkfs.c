// SPDX-License-Identifier: GPL-2.0
/*
 * mkfs.c - new stores: of all that a configuration names, or of a whole cluster on one machine.
 *
 * The daemons make their stores themselves (--mkfs); here are keys, configuration, and the care
 * that nothing is lost: a store that is there already is refused, or with --force moved aside.
 * Nothing is ever deleted but what this run has made of a cluster that can't be finished.
 */
#include "tool.h"
#include "run.h"
#include "../../common/storeid.h"
#include <ctype.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PORTS_FROM 10000u		/* those below are likely to be somebody's */

struct mkfs_opts {
	const char *dir, *name, *host, *stripe_size, *stripe_count, *stuff_max, *stuff_store;
	unsigned long iods, port;
	bool force, only, mgr;
	bool iod[PVFS_IOD_MAX];
	bool local_opts;	/* an option that only goes with --dir was given */
};

/* ---------------------------------------------------------------- files */

/* A new file with this text, on disk. -EEXIST when there is one. */
static int write_new(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode), err = 0;
	size_t n = strlen(text);

	if (fd < 0)
		return -errno;
	if (fchmod(fd, mode) || write(fd, text, n) != (ssize_t)n || fsync(fd))
		err = errno ? -errno : -EIO;
	if (close(fd) && !err)
		err = -errno;
	if (err)
		unlink(path);
	return err;
}

static int make_key(const char *path)
{
	char text[2 * PVFS_KEY_LEN + 2];
	u8 key[PVFS_KEY_LEN];
	int i, err;

	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		return -EIO;
	for (i = 0; i < PVFS_KEY_LEN; i++)
		sprintf(text + 2 * i, "%02x", key[i]);
	strcat(text, "\n");
	err = write_new(path, text, 0600);
	explicit_bzero(key, sizeof(key));
	explicit_bzero(text, sizeof(text));
	return err;
}

static int give_to_owner_of(const char *store, const char *path);

/* The key at @path, made if there is none. */
static int need_key(const char *path, const char *store, const char *what)
{
	int err;

	if (!access(path, F_OK))
		return 0;
	err = make_key(path);
	if (err)
		fail("%s: can't be made: %s", path, strerror(-err));
	else
		note("%s: made the %s key", path, what);
	return err ?: give_to_owner_of(store, path);
}

/* Moves what is at @path, if anything, to "@path.old-TIME". */
static int move_aside(const char *path)
{
	char to[4096 + 64], when[32];
	time_t now = time(NULL);
	struct tm tm;
	int i;

	if (access(path, F_OK)) {
		if (errno == ENOENT)
			return 0;
		fail("%s: %s", path, strerror(errno));
		return -errno;
	}
	localtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	for (i = 0; i < 100; i++) {
		snprintf(to, sizeof(to), i ? "%s.old-%s.%d" : "%s.old-%s", path, when, i);
		if (access(to, F_OK) && errno == ENOENT)
			break;
	}
	if (rename(path, to)) {
		fail("%s: can't be moved aside to %s: %s", path, to, strerror(errno));
		return -errno;
	}
	note("%s: moved aside to %s", path, to);
	return 0;
}

/* ---------------------------------------------------------------- stores */

static bool is_store(const char *dir)
{
	char path[4096 + 64];

	snprintf(path, sizeof(path), "%s/pvfs.store", dir);
	return !access(path, F_OK);
}

/* Something is in the way of a new store at @dir: refuse, or move it aside. */
static int clear_store(const char *dir, bool force)
{
	char err[4096 + 256];
	int fd;

	if (!is_store(dir))
		return 0;
	if (!force) {
		fail("%s: is a PVFS store already. With --force it is moved aside, and a new one made",
		     dir);
		return -EEXIST;
	}
	fd = pvfs_store_lock(dir, err, sizeof(err));
	if (fd < 0) {
		fail("%s", err);
		return fd;
	}
	close(fd);
	return move_aside(dir);
}

static uid_t give_uid;
static gid_t give_gid;

static int give_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return lchown(path, give_uid, give_gid);
}

/*
 * Root makes stores and keys for the user whom the daemons run as, and whose the directory is in
 * which the stores are: what is at @path becomes that user's, as a directory with all in it.
 */
static int give_to_owner_of(const char *store, const char *path)
{
	char copy[4096];
	struct stat st;

	if (geteuid())
		return 0;
	snprintf(copy, sizeof(copy), "%s", store);
	if (stat(dirname(copy), &st))
		return -errno;
	if (!st.st_uid)
		return 0;
	give_uid = st.st_uid;
	give_gid = st.st_gid;
	if (!nftw(path, give_one, 16, FTW_PHYS))
		return 0;
	fail("%s: can't be given to user %u: %s", path, st.st_uid, strerror(errno));
	return -EIO;
}

static int format_store(const char *conf, const char *store, bool mgr, u32 index)
{
	char path[4096], number[16];
	char *argv[] = { path, "-c", (char *)conf, "--mkfs", mgr ? NULL : "-n", number, NULL };
	int rc = sibling(mgr ? "pvfs-mgr" : "pvfs-iod", path, sizeof(path));

	if (rc) {
		fail("%s is neither beside pvfs nor in PATH", mgr ? "pvfs-mgr" : "pvfs-iod");
		return rc;
	}
	snprintf(number, sizeof(number), "%u", index);
	return run_wait(argv) ?: give_to_owner_of(store, store);
}

/* The stores of the configuration at @path, all or those that were asked for. */
static int format_conf(const char *path, const struct mkfs_opts *o)
{
	struct pvfs_conf *c = NULL;
	char err[1024] = "";
	int rc;
	u32 i;

	rc = pvfs_conf_load(path, &c, err, sizeof(err));
	if (rc) {
		fail("%s", *err ? err : strerror(-rc));
		return rc;
	}
	for (i = c->niods; i < PVFS_IOD_MAX; i++) {
		if (o->iod[i]) {
			fail("%s: has no iod %u, the last is %u", path, i, c->niods - 1);
			rc = -EINVAL;
			goto out;
		}
	}
	/* Look at all before touching any. */
	if (!o->only || o->mgr)
		rc = clear_store(c->mgr_store, o->force);
	for (i = 0; i < c->niods && !rc; i++) {
		if (!o->only || o->iod[i])
			rc = clear_store(c->iods[i].store, o->force);
	}
	if (!rc && (!o->only || o->mgr))
		rc = need_key(c->cluster_key, c->mgr_store, "cluster") ?:
		     need_key(c->server_key, c->mgr_store, "server");
	if (rc)
		goto out;
	for (i = 0; i < c->niods && !rc; i++) {
		if (!o->only || o->iod[i])
			rc = format_store(path, c->iods[i].store, false, i);
	}
	if (!rc && (!o->only || o->mgr))
		rc = format_store(path, c->mgr_store, true, 0);
	if (rc && o->dir)
		fail("%s: not all stores were made: what there is of them is removed again", o->dir);
	else if (rc)
		fail("%s: not all stores were made; when the cause is removed, run it again with --force",
		     path);
out:
	pvfs_conf_free(c);
	return rc;
}

/* ---------------------------------------------------------------- a cluster on one machine */

/*
 * Where ports are that the kernel gives to nobody who does not ask for them: below its ephemeral
 * ones. A daemon that is away for a moment would not get one of those back when a connection from
 * this machine, maybe its own client's, has been given it.
 */
static unsigned int ports_end(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	unsigned int low = 0;

	if (f) {
		if (fscanf(f, "%u", &low) != 1)
			low = 0;
		fclose(f);
	}
	return low >= PORTS_FROM + 1000 && low <= 65536 ? low : 65536;
}

/* A socket that has @port. Return: it, or -errno. */
static int take_port(const struct addrinfo *ai, unsigned int port)
{
	struct sockaddr_storage ss;
	int fd, err;

	memcpy(&ss, ai->ai_addr, ai->ai_addrlen);
	if (ai->ai_family == AF_INET6)
		((struct sockaddr_in6 *)&ss)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&ss)->sin_port = htons(port);
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&ss, ai->ai_addrlen))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* @n ports that are free at this moment. */
static int free_ports(const char *host, unsigned int n, unsigned int *ports)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *ai = NULL;
	int *fds = calloc(n, sizeof(*fds)), fd, err = 0;
	unsigned int k = 0, end = ports_end(), tries;
	u32 r;

	if (!fds)
		return -ENOMEM;
	if (getaddrinfo(host, "0", &hints, &ai)) {
		free(fds);
		return -EHOSTUNREACH;
	}
	/* All are held until the last is found, so that no two are the same. */
	for (tries = 0; k < n && !err; tries++) {
		if (getrandom(&r, sizeof(r), 0) != sizeof(r)) {
			err = -EIO;
			break;
		}
		ports[k] = PORTS_FROM + r % (end - PORTS_FROM);
		fd = take_port(ai, ports[k]);
		if (fd >= 0)
			fds[k++] = fd;
		else if (fd != -EADDRINUSE || tries > 100 * n)
			err = fd;
	}
	while (k--)
		close(fds[k]);
	freeaddrinfo(ai);
	free(fds);
	return err;
}

static bool name_ok(const char *name)
{
	const char *p;

	if (!*name || strlen(name) > PVFS_VOLUME_MAX)
		return false;
	for (p = name; *p; p++) {
		if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
			return false;
	}
	return true;
}

/* What can be seen before anything is made. Return: 0 or the exit status, and the user was told. */
static int cluster_right(const struct mkfs_opts *o)
{
	bool v6 = strchr(o->host, ':');
	char address[PVFS_HOST_MAX + 16];
	const char *why = "";
	struct pvfs_addr addr;

	if (o->name && !name_ok(o->name))
		return tool_usage("'%s' can't be a volume's name: letters, digits, '-', '_' and '.', at most %u",
				  o->name, PVFS_VOLUME_MAX);
	if (o->port + o->iods > 65535)
		return tool_usage("ports %lu .. %lu are too many", o->port, o->port + o->iods);
	if (o->stripe_count && strtoul(o->stripe_count, NULL, 10) > o->iods)
		return tool_usage("--stripe-count %s: there are %lu I/O daemons; --iods makes more",
				  o->stripe_count, o->iods);
	if (!*o->host || strlen(o->host) > PVFS_HOST_MAX)
		return tool_usage("--host '%s': an address of this machine, or its name", o->host);
	snprintf(address, sizeof(address), v6 ? "[%s]:%lu" : "%s:%lu", o->host, o->port ?: PVFS_PORT_MGR);
	if (!pvfs_addr_resolve(address, PVFS_PORT_MGR, &addr, &why))
		return 0;
	fail("--host %s: %s: give an address of this machine, or its name", o->host, why);
	return EXIT_FAILURE;
}

static char *conf_text(const struct mkfs_opts *o, const char *name, const unsigned int *ports)
{
	bool v6 = strchr(o->host, ':');
	const char *l = v6 ? "[" : "", *r = v6 ? "]" : "";
	u8 uuid[PVFS_UUID_LEN];
	char id[37], *text = NULL;
	unsigned long i;
	size_t size;
	FILE *f;

	if (getrandom(uuid, sizeof(uuid), 0) != sizeof(uuid))
		return NULL;
	uuid[6] = (uuid[6] & 0x0f) | 0x40;	/* RFC 4122: version 4, random */
	uuid[8] = (uuid[8] & 0x3f) | 0x80;
	pvfs_uuid_text(uuid, id);
	f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	fprintf(f,
		"# A PVFS cluster of one machine, made by pvfs mkfs. See pvfs.conf(5).\n\n"
		"volume: {\n\tname = \"%s\";\n\tuuid = \"%s\";\n"
		"\tcluster_key = \"cluster.key\";\t# clients need it too\n\tserver_key = \"server.key\";\n};\n\n"
		"mgr: {\n\taddress = \"%s%s%s:%u\";\n\tstore = \"mgr\";\n",
		name, id, l, o->host, r, ports[0]);
	if (o->stuff_store)
		fprintf(f, "\tstuff_store = \"%s\";\n", o->stuff_store);
	fprintf(f, "};\n\n");
	if (o->stripe_size || o->stripe_count || o->stuff_max) {
		fprintf(f, "layout: {\n");
		if (o->stripe_count)
			fprintf(f, "\tstripe_count = %s;\n", o->stripe_count);
		if (o->stripe_size)
			fprintf(f, "\tstripe_size = \"%s\";\n", o->stripe_size);
		if (o->stuff_max)
			fprintf(f, "\tstuff_max = \"%s\";\n", o->stuff_max);
		fprintf(f, "};\n\n");
	}
	fprintf(f, "iods: (\n");
	for (i = 0; i < o->iods; i++)
		fprintf(f, "\t{ address = \"%s%s%s:%u\"; store = \"iod%lu\"; }%s\n", l, o->host, r,
			ports[1 + i], i, i + 1 < o->iods ? "," : "");
	fprintf(f, ");\n");
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* mkdir -p. @ret_had: so many bytes of @dir are what was there. */
static int make_dirs(const char *dir, size_t *ret_had)
{
	char path[4096], *p;
	bool made = false;
	struct stat st;

	*ret_had = 0;
	if (strlen(dir) >= sizeof(path))
		return -ENAMETOOLONG;
	strcpy(path, dir);
	for (p = path + 1;; p++) {
		char c = *p;

		if (c && c != '/')
			continue;
		*p = '\0';
		if (!mkdir(path, 0755))
			made = true;
		else if (errno != EEXIST)
			return -errno;
		else if (stat(path, &st) || !S_ISDIR(st.st_mode))
			return -ENOTDIR;
		else if (!made)
			*ret_had = p - path;
		*p = c;
		if (!c)
			return 0;
	}
}

static int old_cluster(const char *dir, const struct mkfs_opts *o)
{
	static const char *const files[] = { "pvfs.conf", "cluster.key", "server.key" };
	char path[4096 + 32];
	size_t i;
	int rc = 0;

	snprintf(path, sizeof(path), "%s/pvfs.conf", dir);
	if (!access(path, F_OK) && !o->force) {
		fail("%s: is a cluster already: `pvfs start %s` starts it. With --force it is moved aside",
		     dir, dir);
		return -EEXIST;
	}
	snprintf(path, sizeof(path), "%s/mgr", dir);
	rc = clear_store(path, o->force);
	for (i = 0; i < PVFS_IOD_MAX && !rc; i++) {
		snprintf(path, sizeof(path), "%s/iod%zu", dir, i);
		if (access(path, F_OK))
			break;
		rc = clear_store(path, o->force);
	}
	for (i = 0; i < ARRAY_SIZE(files) && !rc; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		if (!access(path, F_OK) && !o->force) {
			fail("%s: is in the way", path);
			rc = -EEXIST;
		} else {
			rc = move_aside(path);
		}
	}
	return rc;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

/*
 * A cluster was not finished: what was made of it would be in the way of the next attempt. Only what old_cluster() has
 * found missing is given here.
 */
static void remove_made(const char *dir, const bool *had_store, u32 n)
{
	static const char *const files[] = { "pvfs.conf", "cluster.key", "server.key" };
	char path[PATH_MAX + 32];
	size_t i;

	for (i = 0; i < n; i++) {
		if (i)
			snprintf(path, sizeof(path), "%s/iod%zu", dir, i - 1);
		else
			snprintf(path, sizeof(path), "%s/mgr", dir);
		if (!had_store[i] && !access(path, F_OK) &&
		    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT))
			fail("%s: can't be removed: %s", path, strerror(errno));
	}
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		unlink(path);
	}
}

/* The directories of @dir behind its first @had bytes, where they are empty. */
static void remove_dirs(const char *dir, size_t had)
{
	char *path = strdup(dir), *slash;

	while (path && strlen(path) > had && (!*path || !rmdir(path) || errno == ENOENT)) {
		slash = strrchr(path, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
	free(path);
}

/* In @dir, which is there and has no cluster. */
static int fill_cluster(const struct mkfs_opts *o, const char *dir)
{
	char path[PATH_MAX + 32], copy[PATH_MAX], *text = NULL;
	unsigned int ports[PVFS_IOD_MAX + 1];
	bool had_store[PVFS_IOD_MAX + 1];
	const char *name = o->name;
	unsigned long i;
	int rc = 0;

	strcpy(copy, dir);
	if (!name)
		name = name_ok(basename(copy)) ? basename(strcpy(copy, dir)) : "pvfs";
	for (i = 0; i <= o->iods; i++) {
		if (i)
			snprintf(path, sizeof(path), "%s/iod%lu", dir, i - 1);
		else
			snprintf(path, sizeof(path), "%s/mgr", dir);
		had_store[i] = !access(path, F_OK);
	}
	for (i = 0; i <= o->iods; i++)
		ports[i] = o->port + i;
	if (!o->port)
		rc = free_ports(o->host, o->iods + 1, ports);
	if (rc) {
		fail("%s: no free ports: %s", o->host, strerror(-rc));
		return rc;
	}
	text = conf_text(o, name, ports);
	snprintf(path, sizeof(path), "%s/pvfs.conf", dir);
	rc = text ? write_new(path, text, 0644) : -ENOMEM;
	free(text);
	if (rc) {
		fail("%s: can't be written: %s", path, strerror(-rc));
		return rc;
	}
	rc = format_conf(path, o);
	if (!rc)
		printf("%s: made volume '%s' with %lu I/O daemons. Next: pvfs start %s\n", dir,
		       name, o->iods, o->dir);
	else
		remove_made(dir, had_store, o->iods + 1);
	return rc;
}

static int make_cluster(const struct mkfs_opts *o)
{
	char dir[PATH_MAX];
	size_t had;
	int rc = make_dirs(o->dir, &had);

	if (!rc && !realpath(o->dir, dir))
		rc = -errno;
	if (rc)
		fail("%s: can't be made: %s", o->dir, strerror(-rc));
	else
		rc = old_cluster(dir, o) ?: fill_cluster(o, dir);
	if (rc)
		remove_dirs(o->dir, had);
	return rc;
}

int cmd_mkfs(int argc, char **argv)
{
	enum { HOST = 1, MGR, IOD, FORCE, SSIZE, SCOUNT, STUFF, STUFF_STORE };
	static const struct option longopts[] = { { "dir", required_argument, NULL, 'd' },
						  { "iods", required_argument, NULL, 'i' },
						  { "port", required_argument, NULL, 'p' },
						  { "name", required_argument, NULL, 'n' },
						  { "host", required_argument, NULL, HOST },
						  { "mgr", no_argument, NULL, MGR },
						  { "iod", required_argument, NULL, IOD },
						  { "force", no_argument, NULL, FORCE },
						  { "stripe-size", required_argument, NULL, SSIZE },
						  { "stripe-count", required_argument, NULL,
						    SCOUNT },
						  { "stuff-max", required_argument, NULL, STUFF },
						  { "stuff-store", required_argument, NULL,
						    STUFF_STORE },
						  TOOL_LONG };
	static struct mkfs_opts o = { .iods = 4, .port = PVFS_PORT_MGR, .host = "127.0.0.1" };
	struct target t = { 0 };
	unsigned long v;
	u64 size;
	int c, rc;

	while ((c = getopt_long(argc, argv, TOOL_SHORT "d:i:p:n:", longopts, NULL)) != -1) {
		if (strchr("ipn", c) || c == HOST || c == SSIZE || c == SCOUNT || c == STUFF ||
		    c == STUFF_STORE)
			o.local_opts = true;
		switch (c) {
		case 'd':
			o.dir = optarg;
			break;
		case 'i':
			if (parse_number(optarg, 1, PVFS_IOD_MAX, &o.iods))
				return EXIT_USAGE;
			break;
		case 'p':
			if (parse_number(optarg, 0, 65535, &o.port))
				return EXIT_USAGE;
			break;
		case 'n':
			o.name = optarg;
			break;
		case HOST:
			o.host = optarg;
			break;
		case SSIZE:
			if (pvfs_parse_size(optarg, &size) || size < PVFS_SSIZE_MIN ||
			    size > PVFS_SSIZE_MAX || (size & (size - 1)))
				return tool_usage("--stripe-size is a power of two, 4k .. 1G");
			o.stripe_size = optarg;
			break;
		case SCOUNT:
			if (parse_number(optarg, 0, PVFS_IOD_MAX, &v))
				return EXIT_USAGE;
			o.stripe_count = optarg;
			break;
		case STUFF:
			if (pvfs_parse_size(optarg, &size) || size > PVFS_STUFF_MAX)
				return tool_usage("--stuff-max is at most %uk", PVFS_STUFF_MAX >> 10);
			o.stuff_max = optarg;
			break;
		case STUFF_STORE:
			if (strcmp(optarg, "db") && strcmp(optarg, "file"))
				return tool_usage("--stuff-store is db or file");
			o.stuff_store = optarg;
			break;
		case MGR:
			o.only = o.mgr = true;
			break;
		case IOD:
			if (parse_number(optarg, 0, PVFS_IOD_MAX - 1, &v))
				return EXIT_USAGE;
			o.only = o.iod[v] = true;
			break;
		case FORCE:
			o.force = true;
			break;
		default:
			rc = tool_option(c);
			if (rc)
				return rc < 0 ? EXIT_USAGE : 0;
		}
	}
	if (optind < argc)
		return tool_usage("'%s'? the directory of a new cluster is given by --dir",
				  argv[optind]);
	if (o.dir) {
		if (o.only)
			return tool_usage("--dir makes all stores: --mgr and --iod go with a configuration");
		rc = cluster_right(&o);
		return rc ?: (make_cluster(&o) ? EXIT_FAILURE : 0);
	}
	if (o.local_opts)
		return tool_usage("that option goes with --dir");
	if (!tool.conf && !getenv("PVFS_CONF") && access(CONF_DEFAULT, F_OK))
		return tool_usage("--dir DIR makes a cluster of one machine, -c FILE the stores of a configuration");
	if (tool.mgr)
		return tool_usage("needs a configuration: give -c FILE instead of -m");
	rc = target_find(&t);
	if (!rc)
		rc = format_conf(t.conf->path, &o);
	target_free(&t);
	return rc ? EXIT_FAILURE : 0;
}
