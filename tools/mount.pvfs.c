// SPDX-License-Identifier: GPL-2.0
/*
 * mount.pvfs.c - what mount(8) runs for `mount -t pvfs host[:port]:/volume /mnt`. See mount.pvfs(8)
 * and pvfs(5).
 *
 * The kernel knows neither names nor key files: they are resolved and read here. Before the kernel
 * is asked, the manager is, so that a wrong key, host or volume gets a clear answer in bounded
 * time. With -o user it is not the kernel that mounts, but pvfsd.
 */
#include "../transport/transport.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EX_USAGE	1	/* mount(8)'s exit codes */
#define EX_FAIL		32
#define KEY_DEFAULT	"/etc/pvfs/cluster.key"
#ifndef MS_NOSYMFOLLOW
#define MS_NOSYMFOLLOW	256
#endif

struct mount_opts {
	char host[PVFS_HOST_MAX + 1], volume[PVFS_VOLUME_MAX + 1];
	u16 port;
	const char *key_file;
	unsigned long flags;
	unsigned int timeout_ms;
	bool sloppy, fake, verbose;
	bool soft, timeo, actimeo;
	bool user, client;	/* pvfsd is to mount; client= has said so, or not */
	bool port_given;	/* by an option */
	const char *repeated;	/* an option of repeated_opts[] that was given */
	const char *module_only;	/* the last that was given of those that pvfsd has not */
	char *kernel;		/* options the kernel gets, without address and key; owned */
	char *daemon;		/* those of them that pvfsd has too; owned */
};

/* Options of mount(8) and what they do to the flags; nothing: ignored here. */
static const struct {
	const char *name;
	unsigned long set, clear;
} known[] = {
	{ "defaults", 0, 0 },
	{ "auto", 0, 0 },
	{ "noauto", 0, 0 },
	{ "_netdev", 0, 0 },
	{ "nofail", 0, 0 },
	{ "nouser", 0, 0 },
	{ "users", 0, 0 },
	{ "owner", 0, 0 },
	{ "group", 0, 0 },
	{ "rw", 0, MS_RDONLY },
	{ "ro", MS_RDONLY, 0 },
	{ "suid", 0, MS_NOSUID },
	{ "nosuid", MS_NOSUID, 0 },
	{ "dev", 0, MS_NODEV },
	{ "nodev", MS_NODEV, 0 },
	{ "exec", 0, MS_NOEXEC },
	{ "noexec", MS_NOEXEC, 0 },
	{ "async", 0, MS_SYNCHRONOUS },
	{ "sync", MS_SYNCHRONOUS, 0 },
	{ "dirsync", MS_DIRSYNC, 0 },
	{ "remount", MS_REMOUNT, 0 },
	{ "silent", MS_SILENT, 0 },
	{ "loud", 0, MS_SILENT },
	{ "atime", 0, MS_NOATIME },
	{ "noatime", MS_NOATIME, 0 },
	{ "diratime", 0, MS_NODIRATIME },
	{ "nodiratime", MS_NODIRATIME, 0 },
	{ "relatime", MS_RELATIME, 0 },
	{ "norelatime", 0, MS_RELATIME },
	{ "strictatime", MS_STRICTATIME, 0 },
	{ "nostrictatime", 0, MS_STRICTATIME },
	{ "lazytime", MS_LAZYTIME, 0 },
	{ "nolazytime", 0, MS_LAZYTIME },
	{ "nosymfollow", MS_NOSYMFOLLOW, 0 },
	{ "symfollow", 0, MS_NOSYMFOLLOW },
};

/* The kernel's own options, and their bounds; checked here for the sake of the message. */
static const struct {
	const char *name;
	unsigned long min, max;	/* max 0: takes no value */
	bool size;		/* 64k, 1M */
	bool daemon;		/* pvfsd has it too */
} kernel_opts[] = {
	{ "hard", 0, 0, false, true }, { "soft", 0, 0, false, true }, { "timeo", 1, 36000, false, true },
	{ "nconnect", 1, PVFS_CHANNELS_MAX, false, true },
	{ "rsize", 4096, PVFS_PAYLOAD_MAX, true, false },
	{ "wsize", 4096, PVFS_PAYLOAD_MAX, true, false }, { "actimeo", 0, 3600, false, false },
};

/* Those that take one of two words. */
static const struct {
	const char *name, *one, *other;
} word_opts[] = {
	{ "locks", "cluster", "local" }, { "lease", "on", "off" }, { "cache", "lease", "none" },
	{ "flush", "behind", "close" }, { "readdir", "many", "one" },
};

/* What pvfsd is told of the flags; @off NULL: it has no such thing. */
static const struct {
	unsigned long flag;
	const char *on, *off;
} daemon_flags[] = {
	{ MS_RDONLY, "ro", "rw" }, { MS_NOSUID, "nosuid", "suid" }, { MS_NODEV, "nodev", "dev" },
	{ MS_NOEXEC, "noexec", "exec" }, { MS_SYNCHRONOUS, "sync", "async" },
	{ MS_DIRSYNC, "dirsync", "" }, { MS_REMOUNT, "remount", NULL },
	{ MS_NOATIME, "noatime", NULL }, { MS_NODIRATIME, "nodiratime", NULL },
	{ MS_STRICTATIME, "strictatime", NULL }, { MS_LAZYTIME, "lazytime", NULL },
	{ MS_NOSYMFOLLOW, "nosymfollow", NULL },
};

/* What /proc/mounts shows and mount(8) repeats at a remount; the device's name says the same. */
static const char *const repeated_opts[] = { "addr", "vol", "host" };

static int __attribute__((format(printf, 1, 2))) complain(const char *fmt, ...)
{
	va_list ap;

	fputs("mount.pvfs: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return -EINVAL;
}

/* ---------------------------------------------------------------- the command line */

/* "host:/volume", "host:port:/volume", "[v6]:/volume", "[v6]:port:/volume". */
static int parse_device(const char *dev, struct mount_opts *o)
{
	const char *slash = strstr(dev, ":/"), *end, *colon, *vol;
	unsigned long port = PVFS_PORT_MGR;
	char *stop;
	size_t n;

	if (*dev == '[') {
		end = strchr(dev, ']');
		slash = end ? strstr(end, ":/") : NULL;
		colon = end && slash && end + 1 < slash ? end + 1 : NULL;
		dev++;
	} else {
		colon = slash ? memchr(dev, ':', slash - dev) : NULL;
		end = colon ?: slash;
	}
	if (!slash || (colon && *colon != ':'))
		return complain("'%s' must be \"host:/volume\" or \"host:port:/volume\"", dev);
	n = end - dev;
	vol = slash + 2;
	if (colon) {
		port = isdigit((unsigned char)colon[1]) ? strtoul(colon + 1, &stop, 10) : 0;
		if (!port || port > 65535 || stop != slash)
			return complain("'%.*s' is not a port (an IPv6 address goes in brackets)",
					(int)(slash - colon - 1), colon + 1);
	}
	if (!n || n > PVFS_HOST_MAX)
		return complain("there is no host in '%s'", dev);
	if (!*vol || strlen(vol) > PVFS_VOLUME_MAX || strpbrk(vol, "/,"))
		return complain("'%s' is not the name of a volume", vol);
	memcpy(o->host, dev, n);
	o->host[n] = '\0';
	o->port = port;
	strcpy(o->volume, vol);
	return 0;
}

static int append(char **list, const char *text)
{
	char *more;

	if (asprintf(&more, "%s%s%s", *list ?: "", *list && **list ? "," : "", text) < 0)
		return -ENOMEM;
	free(*list);
	*list = more;
	return 0;
}

/* "64k", "1M", bytes. */
static bool parse_value(const char *text, bool size, unsigned long *ret)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*ret = strtoul(text, &end, 10);
	if (size && (*end == 'k' || *end == 'K' || *end == 'm' || *end == 'M')) {
		if (__builtin_mul_overflow(*ret, *end == 'k' || *end == 'K' ? 1ul << 10 : 1ul << 20, ret))
			return false;
		end++;
	}
	return !errno && !*end;
}

/* One option for the kernel. -ENOENT: it has none of that name. */
static int kernel_option(struct mount_opts *o, const char *name, const char *value)
{
	char text[64];
	unsigned long v;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kernel_opts) && strcmp(kernel_opts[i].name, name); i++)
		;
	if (i == ARRAY_SIZE(kernel_opts))
		return -ENOENT;
	if (!kernel_opts[i].max) {
		if (value)
			return complain("option '%s' takes no value", name);
		/*
		 * They may come twice, from fstab and from the command line: the last one counts.
		 */
		o->soft = !strcmp(name, "soft");
		return 0;
	}
	if (!strcmp(name, "timeo"))
		o->timeo = true;
	if (!value || !parse_value(value, kernel_opts[i].size, &v) || v < kernel_opts[i].min ||
	    v > kernel_opts[i].max)
		return complain("option '%s' takes a number of %lu .. %lu, not '%s'", name,
				kernel_opts[i].min, kernel_opts[i].max, value ?: "");
	if (kernel_opts[i].size && (v & (v - 1)))
		return complain("option '%s' must be a power of two, not '%s'", name, value);
	if (!strcmp(name, "actimeo"))
		o->actimeo = v;
	snprintf(text, sizeof(text), "%s=%lu", name, v);
	if (!kernel_opts[i].daemon)
		o->module_only = kernel_opts[i].name;
	else if (append(&o->daemon, text))
		return -ENOMEM;
	return append(&o->kernel, text);
}

/*
 * Which client. mount(8) hands on "user" as it is written, also when somebody means by it that any
 * user may mount: only pvfsd can do that, too. It writes "user=name" itself, in its own tables.
 */
static int client_option(struct mount_opts *o, const char *opt, const char *value)
{
	if (!strcmp(opt, "user")) {
		if (!o->client && !value)
			o->user = true;
		return 0;
	}
	if (!value || (strcmp(value, "kernel") && strcmp(value, "user")))
		return complain("option 'client' takes kernel or user, not '%s'", value ?: "");
	o->client = true;
	o->user = !strcmp(value, "user");
	return 0;
}

static int one_option(struct mount_opts *o, char *opt)
{
	char *value = strchr(opt, '='), text[64];
	unsigned long v;
	size_t i;
	int rc;

	if (value)
		*value++ = '\0';
	if (!*opt || !strncmp(opt, "x-", 2) || !strncmp(opt, "X-", 2) || !strcmp(opt, "comment") ||
	    !strcmp(opt, "uhelper") || !strcmp(opt, "helper"))
		return 0;
	if (!strcmp(opt, "key")) {
		if (!value || !*value)
			return complain("option 'key' takes the name of a file");
		o->key_file = value;
		return 0;
	}
	if (!strcmp(opt, "user") || !strcmp(opt, "client"))
		return client_option(o, opt, value);
	for (i = 0; i < ARRAY_SIZE(word_opts); i++) {
		if (strcmp(opt, word_opts[i].name))
			continue;
		if (!value || (strcmp(value, word_opts[i].one) && strcmp(value, word_opts[i].other)))
			return complain("option '%s' takes %s or %s, not '%s'", opt,
					word_opts[i].one, word_opts[i].other, value ?: "");
		snprintf(text, sizeof(text), "%s=%s", opt, value);
		o->module_only = word_opts[i].name;
		return append(&o->kernel, text);
	}
	if (!strcmp(opt, "port")) {
		if (!value || !parse_value(value, false, &v) || !v || v > 65535)
			return complain("option 'port' takes a number of 1 .. 65535, not '%s'", value ?: "");
		o->port = v;
		o->port_given = true;
		return 0;
	}
	if (!strcmp(opt, "mount_timeout")) {
		if (!value || !parse_value(value, false, &v) || !v || v > 3600)
			return complain("option 'mount_timeout' takes seconds, 1 .. 3600, not '%s'",
					value ?: "");
		o->timeout_ms = v * 1000;
		snprintf(text, sizeof(text), "mount_timeout=%lu", v);
		return append(&o->daemon, text) ?: append(&o->kernel, text);
	}
	for (i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(known[i].name, opt))
			continue;
		if (value)
			return o->sloppy ? 0 : complain("option '%s' takes no value", opt);
		o->flags = (o->flags & ~known[i].clear) | known[i].set;
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(repeated_opts); i++) {
		if (!strcmp(repeated_opts[i], opt)) {
			o->repeated = repeated_opts[i];
			return 0;
		}
	}
	rc = kernel_option(o, opt, value);
	if (rc != -ENOENT)
		return rc;
	if (o->sloppy)
		return 0;
	return complain("unknown option '%s'; see pvfs(5)", opt);
}

/* Is it the value that counts, the last one given, of a module's option? */
static bool option_is(const struct mount_opts *o, const char *name, const char *value)
{
	size_t n = strlen(name), v = strlen(value);
	const char *p = o->kernel;
	bool is = false;

	for (; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (!strncmp(p, name, n) && p[n] == '=')
			is = !strncmp(p + n + 1, value, v) && (!p[n + 1 + v] || p[n + 1 + v] == ',');
	return is;
}

/* What the module would refuse, and could say in the kernel's log only. */
static bool options_agree(const struct mount_opts *o)
{
	if (o->timeo && !o->soft)
		complain("option 'timeo' goes with 'soft': a hard mount waits as long as a server is away");
	else if (o->actimeo && option_is(o, "lease", "on"))
		complain("options 'lease=on' and 'actimeo' exclude each other: leave out one of the two");
	else if (option_is(o, "cache", "lease") && (o->actimeo || option_is(o, "lease", "off")))
		complain("option 'cache=lease' needs leases: leave it out, or '%s'",
			 o->actimeo ? "actimeo" : "lease=off");
	else
		return true;
	return false;
}

/* ---------------------------------------------------------------- asking the manager */

static void explain(const struct mount_opts *o, const char *mgr, int rc, enum pvfs_peer_state st,
		    int perr, const char *why)
{
	if (st == PVFS_PEER_REFUSED && perr == -EACCES)
		complain("%s: refused the key in %s: copy the cluster's key there, or name its file with -o key=FILE",
			 mgr, o->key_file);
	else if (st == PVFS_PEER_REFUSED && perr == -ENOENT)
		complain("%s: has no volume '%s': check what follows ':/'", mgr, o->volume);
	else if (st == PVFS_PEER_REFUSED && perr == -EPROTOTYPE)
		complain("%s: %s: name the address of pvfs-mgr", mgr, why);
	else if (st == PVFS_PEER_REFUSED && perr == -EPROTO)
		complain("%s: its version does not match this one (%s): install the same version on both%s%s",
			 mgr, PVFS_VERSION, *why ? ": " : "", why);
	else if (st == PVFS_PEER_REFUSED)
		complain("%s: refused the connection: %s", mgr, *why ? why : strerror(-perr));
	else
		complain("%s: no answer within %u s: %s: is pvfs-mgr running there, and reachable?",
			 mgr, o->timeout_ms / 1000, *why ? why : strerror(perr ? -perr : -rc));
}

/* HELLO, AUTH and a PING: is there a manager that takes our key and has this volume? */
static int ask_mgr(const struct mount_opts *o, const struct pvfs_addr *addr,
		   const struct pvfs_key *key)
{
	struct pvfs_peer_params pp = { .addr = *addr, .key = key, .my_role = PVFS_ROLE_CLIENT,
				       .its_role = PVFS_ROLE_MGR, .nconnect = 1, .hard = 1 };
	u8 rep[64];
	struct pvfs_rpc rpc = { .op = PVFS_OP_PING, .rep = rep, .rep_room = sizeof(rep),
				.timeout_ms = o->timeout_ms };
	struct pvfs_engine *e = NULL;
	struct pvfs_peer *p = NULL;
	char why[200] = "", mgr[PVFS_HOST_MAX + 32];
	enum pvfs_peer_state st;
	int rc, perr = 0;

	snprintf(mgr, sizeof(mgr), strchr(o->host, ':') ? "[%s]:%u" : "%s:%u", o->host, o->port);
	strcpy(pp.volume, o->volume);
	rc = pvfs_engine_new("mount.pvfs", 1, &e);
	if (!rc)
		rc = pvfs_peer_new(e, &pp, &p);
	if (rc) {
		complain("%s", strerror(-rc));
		goto out;
	}
	rc = pvfs_peer_call(p, &rpc);
	if (rc) {
		st = pvfs_peer_state(p, &perr, why, sizeof(why));
		explain(o, mgr, rc, st, perr, why);
	}
out:
	pvfs_peer_free(p);
	pvfs_engine_free(e);
	return rc;
}

/* ---------------------------------------------------------------- the mount itself */

static char *mount_data(const struct mount_opts *o, const struct pvfs_addr *addr,
			const struct pvfs_key *key)
{
	char ip[INET6_ADDRSTRLEN], scope[16] = "", hex[2 * PVFS_KEY_LEN + 1], *data = NULL;
	const void *in = addr->ss.ss_family == AF_INET6 ?
			 (const void *)&((const struct sockaddr_in6 *)&addr->ss)->sin6_addr :
			 (const void *)&((const struct sockaddr_in *)&addr->ss)->sin_addr;
	int i;

	if (!inet_ntop(addr->ss.ss_family, in, ip, sizeof(ip)))
		return NULL;
	/* A link-local address means nothing without its interface. */
	if (addr->ss.ss_family == AF_INET6 &&
	    ((const struct sockaddr_in6 *)&addr->ss)->sin6_scope_id)
		snprintf(scope, sizeof(scope), "%%%u",
			 ((const struct sockaddr_in6 *)&addr->ss)->sin6_scope_id);
	for (i = 0; i < PVFS_KEY_LEN; i++)
		sprintf(hex + 2 * i, "%02x", key->bytes[i]);
	if (asprintf(&data, "addr=%s%s,port=%u,vol=%s,host=%s,keyhex=%s%s%s", ip, scope, o->port,
		     o->volume, o->host, hex, o->kernel ? "," : "", o->kernel ?: "") < 0)
		data = NULL;
	explicit_bzero(hex, sizeof(hex));
	return data;
}

static void mount_failed(const struct mount_opts *o, const char *dir, int err)
{
	switch (err) {
	case ENODEV:
		complain("the kernel has no pvfs: load the module (modprobe pvfs), or install the package for this kernel; -o user mounts without it, see pvfsd(8)");
		break;
	case EPERM:
		complain("only root may mount");
		break;
	case ENOENT:
	case ENOTDIR:
		complain("%s: %s", dir, strerror(err));
		break;
	case EBUSY:
		complain("%s: is in use, or mounted there already", dir);
		break;
	case EINVAL:
		complain("%s: the kernel refused the options%s%s: `dmesg` says which", dir,
			 o->kernel ? " " : "", o->kernel ?: "");
		break;
	default:
		complain("%s: %s; `dmesg` may say more", dir, strerror(err));
	}
}

static void usage(FILE *f)
{
	fputs("Usage: mount.pvfs HOST[:PORT]:/VOLUME DIR [-sfnvhV] [-o OPTIONS]\n"
	      "Run by mount(8) for `mount -t pvfs`. Options are in pvfs(5).\n\n"
	      "  -s  ignore unknown options\n"
	      "  -f  do everything but the mount itself\n"
	      "  -n  accepted and ignored\n"
	      "  -v, --verbose  say what is done\n"
	      "  -o  options, separated by commas\n"
	      "  -h, --help     this text\n"
	      "  -V, --version  print the version\n", f);
}

/* ---------------------------------------------------------------- by pvfsd */

/* As pvfsd is to have them. Return: to be freed, or NULL, and it was said why. */
static char *daemon_options(const struct mount_opts *o)
{
	char *list = NULL, *key = NULL;
	size_t i;
	int rc = 0;

	for (i = 0; i < ARRAY_SIZE(daemon_flags) && !rc; i++) {
		bool on = o->flags & daemon_flags[i].flag;

		if (on && !daemon_flags[i].off && !o->sloppy) {
			complain("option '%s' is not for pvfsd, which 'user' asks for: leave out one of the two",
				 daemon_flags[i].on);
			goto fail;
		}
		if (!daemon_flags[i].off || (!on && !*daemon_flags[i].off))
			continue;
		/* That a mount has set-id programs and devices is root's to say. */
		if (!on && geteuid() && daemon_flags[i].flag & (MS_NOSUID | MS_NODEV))
			continue;
		rc = append(&list, on ? daemon_flags[i].on : daemon_flags[i].off);
	}
	if (!rc && !geteuid())
		rc = append(&list, "allow_other");
	if (!rc && o->daemon)
		rc = append(&list, o->daemon);
	if (!rc && o->soft)
		rc = append(&list, "soft");
	if (!rc && asprintf(&key, "key=%s", o->key_file) < 0) {
		key = NULL;
		rc = -ENOMEM;
	}
	if (!rc)
		rc = append(&list, key);
	free(key);
	if (!rc)
		return list;
	complain("out of memory");
fail:
	free(list);
	return NULL;
}

/* The one that came with this program, else the one that there is. It ends with us, who wait for it. */
static void exec_pvfsd(char *const argv[])
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("pvfsd"));
	char *slash;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	path[n < 0 ? 0 : n] = '\0';
	slash = strrchr(path, '/');
	if (slash) {
		strcpy(slash + 1, "pvfsd");
		execv(path, argv);
	}
	execvp("pvfsd", argv);
	complain("pvfsd: %s: it is what 'user' needs: install it beside mount.pvfs, or where $PATH leads",
		 strerror(errno));
	_exit(127);
}

/* pvfsd goes into the background when the volume is mounted, or says why not. */
static int mount_by_pvfsd(struct mount_opts *o, const char *dev, const char *dir)
{
	char source[PVFS_HOST_MAX + PVFS_VOLUME_MAX + 32], *opts;
	int status = -1, rc = EX_FAIL;
	pid_t pid;

	if (o->module_only && !o->sloppy) {
		complain("option '%s' is the module's, and 'user' mounts without it: leave out one of the two",
			 o->module_only);
		return EX_USAGE;
	}
	/* The source as it was written: it is how mount(8) knows what is mounted. */
	if (o->port_given)
		snprintf(source, sizeof(source), strchr(o->host, ':') ? "[%s]:%u:/%s" : "%s:%u:/%s",
			 o->host, o->port, o->volume);
	else
		snprintf(source, sizeof(source), "%s", dev);
	opts = daemon_options(o);
	if (!opts)
		return EX_USAGE;
	if (o->verbose)
		printf("mount.pvfs: pvfsd -o %s %s %s\n", opts, source, dir);
	fflush(stdout);
	pid = o->fake ? 0 : fork();
	if (!pid && !o->fake)
		exec_pvfsd((char *[]){ "pvfsd", "-o", opts, source, (char *)dir, NULL });
	if (pid < 0)
		complain("fork: %s", strerror(errno));
	else if (o->fake || (waitpid(pid, &status, 0) == pid && !status))
		rc = 0;
	else if (WIFSIGNALED(status))
		complain("pvfsd ended by signal %d", WTERMSIG(status));
	if (!rc && !o->fake)
		fputs("mount.pvfs: user: mounted by pvfsd, without the kernel module\n", stderr);
	free(opts);
	return rc;
}

static int do_mount(struct mount_opts *o, const char *dev, const char *dir)
{
	struct pvfs_addr addr;
	struct pvfs_key key;
	const char *why = "";
	char *data, text[PVFS_HOST_MAX + 32];
	int rc;

	rc = pvfs_key_load(o->key_file, &key, &why);
	if (rc) {
		complain("%s: %s", o->key_file, why && *why ? why : strerror(-rc));
		return EX_FAIL;
	}
	snprintf(text, sizeof(text), strchr(o->host, ':') ? "[%s]:%u" : "%s:%u", o->host, o->port);
	rc = pvfs_addr_resolve(text, o->port, &addr, &why);
	if (rc) {
		complain("%s: %s", o->host, why && *why ? why : strerror(-rc));
		return EX_FAIL;
	}
	if (!(o->flags & MS_REMOUNT) && ask_mgr(o, &addr, &key))
		return EX_FAIL;
	if (o->user) {
		explicit_bzero(&key, sizeof(key));
		return mount_by_pvfsd(o, dev, dir);
	}
	data = mount_data(o, &addr, &key);
	explicit_bzero(&key, sizeof(key));
	if (!data) {
		complain("out of memory");
		return EX_FAIL;
	}
	if (o->verbose)
		printf("mount.pvfs: mount(\"%s\", \"%s\", \"pvfs\", 0x%lx, \"%.*s...%s\")\n", dev,
		       dir, o->flags, (int)(strstr(data, "keyhex=") + 7 - data), data,
		       strstr(data, "keyhex=") + 7 + 2 * PVFS_KEY_LEN);
	rc = 0;
	if (!o->fake && mount(dev, dir, "pvfs", o->flags, data)) {
		mount_failed(o, dir, errno);
		rc = EX_FAIL;
	}
	explicit_bzero(data, strlen(data));
	free(data);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "verbose", no_argument, NULL, 'v' }, { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' }, { NULL, 0, NULL, 0 },
	};
	struct mount_opts o = { .key_file = KEY_DEFAULT, .timeout_ms = 10000 };
	const char *dev, *dir;
	char *opts = NULL, *opt, *save = NULL;
	int c, rc;

	while ((c = getopt_long(argc, argv, "sfnvho:t:V", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			o.sloppy = true;
			break;
		case 'f':
			o.fake = true;
			break;
		case 'n':
		case 't':
			break;
		case 'v':
			o.verbose = true;
			break;
		case 'o':
			if (append(&opts, optarg))
				return EX_FAIL;
			break;
		case 'V':
			printf("mount.pvfs %s (protocol %u)\n", PVFS_VERSION, PVFS_PROTO_VERSION);
			return 0;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return EX_USAGE;
		}
	}
	rc = EX_USAGE;
	if (argc - optind != 2) {
		usage(stderr);
		goto out;
	}
	dev = argv[optind];
	dir = argv[optind + 1];
	if (parse_device(dev, &o))
		goto out;
	for (opt = opts ? strtok_r(opts, ",", &save) : NULL; opt;
	     opt = strtok_r(NULL, ",", &save)) {
		if (one_option(&o, opt))
			goto out;
	}
	if (!options_agree(&o))
		goto out;
	rc = EX_FAIL;
	if (o.soft && append(&o.kernel, "soft"))
		goto out;
	if (!o.fake && !o.user && geteuid()) {
		complain("only root may mount");
		goto out;
	}
	rc = do_mount(&o, dev, dir);
out:
	free(opts);
	free(o.kernel);
	free(o.daemon);
	return rc;
}
