// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * config.c - pvfs.conf(5): reading, checking and explaining what is wrong; see config.h.
 *
 * All that may be set is in params[]: where, what type, bounds, default, destination. Adding a
 * parameter is one line there and one in the manual page. What a single value can't tell (two
 * daemons on one address) is checked at the end.
 */
#include "config.h"
#include "storeid.h"
#include <ctype.h>
#include <libconfig.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define CONF_SIZE_MAX (4u << 20)	/* bytes of a file; 1024 iods need about 100 KiB */

enum ptype {
	P_STR,		/* char[room] */
	P_NAME,		/* char[room]: a volume's name */
	P_ADDR,		/* char[room]: host:port */
	P_PATH,		/* char[room]: made absolute, from the directory of the file */
	P_UUID,		/* u8[16] */
	P_U32,		/* u32 */
	P_SIZE32,	/* u32, bytes */
	P_SIZE64,	/* u64, bytes */
	P_DURABILITY,	/* enum pvfs_durability */
	P_STUFF_STORE,	/* enum pvfs_stuff_store */
};

#define PF_REQUIRED	0x1u
#define PF_POW2		0x2u
#define PF_IOD		0x4u	/* of an element of the list: goes to struct pvfs_conf_iod */

struct param {
	const char *group, *key;
	enum ptype type;
	unsigned int flags;
	u64 min, max;		/* numbers: bounds; texts: shortest and longest, bytes */
	const char *def;	/* as it would be written; NULL: zero or empty */
	size_t off;
};

/* What may be written for those types that are an enum. */
static const char *const choices[][2] = {
	[P_DURABILITY] = { [PVFS_DURABLE_SYNC] = "sync", [PVFS_DURABLE_WRITE] = "write" },
	[P_STUFF_STORE] = { [PVFS_STUFF_DB] = "db", [PVFS_STUFF_FILE] = "file" },
};
_Static_assert(sizeof(enum pvfs_durability) == sizeof(u32) &&
	       sizeof(enum pvfs_stuff_store) == sizeof(u32), "set_choice()");

#define TEXT(f) 1, sizeof(((struct pvfs_conf *)0)->f) - 1
#define AT(f) offsetof(struct pvfs_conf, f)
#define IOD_TEXT(f) 1, sizeof(((struct pvfs_conf_iod *)0)->f) - 1
#define IOD_AT(f) offsetof(struct pvfs_conf_iod, f)
#define KIB 1024ull
#define MIB (1024ull << 10)
#define GIB (1024ull << 20)

static const struct param params[] = {
	{ "volume", "name", P_NAME, PF_REQUIRED, TEXT(name), NULL, AT(name) },
	{ "volume", "uuid", P_UUID, PF_REQUIRED, 36, 36, NULL, AT(uuid) },
	{ "volume", "cluster_key", P_PATH, 0, TEXT(cluster_key), "cluster.key", AT(cluster_key) },
	{ "volume", "server_key", P_PATH, 0, TEXT(server_key), "server.key", AT(server_key) },
	{ "mgr", "address", P_ADDR, PF_REQUIRED, TEXT(mgr_address), NULL, AT(mgr_address) },
	{ "mgr", "listen", P_ADDR, 0, TEXT(mgr_listen), NULL, AT(mgr_listen) },
	{ "mgr", "store", P_PATH, PF_REQUIRED, TEXT(mgr_store), NULL, AT(mgr_store) },
	{ "mgr", "durability", P_DURABILITY, 0, 0, 0, "sync", AT(durability) },
	{ "mgr", "stuff_store", P_STUFF_STORE, 0, 0, 0, "db", AT(stuff_store) },
	{ "mgr", "db_cache", P_SIZE64, 0, MIB, 1024 * GIB, "64M", AT(db_cache) },
	{ "mgr", "threads", P_U32, 0, 1, 256, "8", AT(mgr_threads) },
	{ "mgr", "max_conns", P_U32, 0, 16, 1000000, "4096", AT(mgr_max_conns) },
	{ "mgr", "lease_ms", P_U32, 0, 1000, 600000, "30000", AT(lease_ms) },
	{ "mgr", "checkpoint_ms", P_U32, 0, 100, 3600000, "30000", AT(checkpoint_ms) },
	{ "mgr", "locks_max", P_U32, 0, 16, 100000000, "1000000", AT(locks_max) },
	{ "mgr", "session_locks_max", P_U32, 0, 16, 100000000, "65536", AT(session_locks_max) },
	{ "mgr", "leases_max", P_U32, 0, 0, 100000000, "1000000", AT(leases_max) },
	{ "layout", "stripe_count", P_U32, 0, 0, PVFS_IOD_MAX, "0", AT(stripe_count) },
	{ "layout", "stripe_size", P_SIZE32, PF_POW2, PVFS_SSIZE_MIN, PVFS_SSIZE_MAX, "64k",
	  AT(stripe_size) },
	{ "layout", "stuff_max", P_SIZE32, 0, 0, PVFS_STUFF_MAX, "16k", AT(stuff_max) },
	{ "iod", "threads", P_U32, 0, 1, 256, "8", AT(iod_threads) },
	{ "iod", "max_conns", P_U32, 0, 16, 1000000, "4096", AT(iod_max_conns) },
	{ "iod", "buffers", P_SIZE64, 0, 8 * MIB, 1024 * GIB, "64M", AT(iod_buffers) },
	{ "iod", "io_max", P_SIZE32, PF_POW2, 64 * KIB, PVFS_PAYLOAD_MAX, "1M", AT(io_max) },
	{ "iod", "fd_cache", P_U32, 0, 16, 1000000, "1024", AT(fd_cache) },
	{ "iod", "reserve", P_SIZE64, 0, 0, 1024 * GIB, "64M", AT(iod_reserve) },
	{ "iods", "address", P_ADDR, PF_REQUIRED | PF_IOD, IOD_TEXT(address), NULL,
	  IOD_AT(address) },
	{ "iods", "listen", P_ADDR, PF_IOD, IOD_TEXT(listen), NULL, IOD_AT(listen) },
	{ "iods", "store", P_PATH, PF_REQUIRED | PF_IOD, IOD_TEXT(store), NULL, IOD_AT(store) },
};

/* What one load carries around. */
struct loader {
	struct pvfs_conf *c;
	char dir[4096];		/* of the file, absolute */
	int iods_line;
	int stripe_line, key_line;
	char *err;
	size_t errlen;
};

/* Writes "file:line: text" and returns -EINVAL; @line 0 leaves the line out. */
static int __attribute__((format(printf, 4, 5)))
complain(struct loader *l, const char *file, int line, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (!file)
		file = l->c->path;
	if (line > 0)
		n = snprintf(l->err, l->errlen, "%s:%d: ", file, line);
	else
		n = snprintf(l->err, l->errlen, "%s: ", file);
	if (n >= 0 && (size_t)n < l->errlen) {
		va_start(ap, fmt);
		vsnprintf(l->err + n, l->errlen - n, fmt, ap);
		va_end(ap);
	}
	return -EINVAL;
}

#define COMPLAIN_AT(l, s, ...) \
	complain(l, config_setting_source_file(s), config_setting_source_line(s), __VA_ARGS__)

int pvfs_parse_size(const char *text, u64 *ret)
{
	static const char units[] = "kmgt";
	unsigned int shift = 0;
	const char *p = text, *u;
	u64 v = 0;

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (u64)(*p - '0'), &v))
			return -ERANGE;
	}
	if (*p && (u = strchr(units, tolower((unsigned char)*p))) != NULL) {
		shift = 10 * (u - units + 1);
		p++;
		if (p[0] == 'i' && p[1] == 'B')
			p += 2;
	}
	if (*p)
		return -EINVAL;
	if (v > UINT64_MAX >> shift)
		return -ERANGE;
	*ret = v << shift;
	return 0;
}

/* Bytes as a person would write them. */
static const char *size_text(u64 v, char buf[32])
{
	static const char units[] = "\0kMGT";
	int i = 0;

	while (v && !(v & 1023) && i < 4) {
		v >>= 10;
		i++;
	}
	snprintf(buf, 32, "%llu%.1s", (unsigned long long)v, units + i);
	return buf;
}

/* Edit distance of two short words (Levenshtein), to guess what was meant. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[40], diag, up, edit, add, i, j;
	size_t n = strlen(b);

	if (n >= ARRAY_SIZE(row) || strlen(a) >= ARRAY_SIZE(row))
		return UINT_MAX;
	for (j = 0; j <= n; j++)
		row[j] = j;
	for (i = 1; a[i - 1]; i++) {
		diag = row[0];
		row[0] = i;
		for (j = 1; j <= n; j++) {
			up = row[j];
			edit = diag + (a[i - 1] != b[j - 1]);
			add = min(up, row[j - 1]) + 1;
			row[j] = min(edit, add);
			diag = up;
		}
	}
	return row[n];
}

/* An unknown @key in @group (NULL: at the top level): name what it may have been meant to be. */
static int unknown_key(struct loader *l, const config_setting_t *s, const char *group)
{
	const char *key = config_setting_name(s), *best = NULL, *other = NULL;
	unsigned int d, best_d = UINT_MAX;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(params); i++) {
		const char *word = group ? params[i].key : params[i].group;

		if (group && strcmp(params[i].group, group)) {
			if (!strcmp(word, key))
				other = params[i].group;
			continue;
		}
		if (!group && !strcmp(params[i].key, key))
			other = params[i].group;
		d = distance(key, word);
		if (d < best_d) {
			best_d = d;
			best = word;
		}
	}
	if (best && best_d <= 1 + strlen(key) / 4)
		return COMPLAIN_AT(l, s, "unknown key '%s%s%s' (did you mean '%s'?)",
				   group ? group : "",
				   group ? "." : "", key, best);
	if (other)
		return COMPLAIN_AT(l, s, "unknown key '%s%s%s' ('%s' belongs in '%s')",
				   group ? group : "",
				   group ? "." : "", key, key, other);
	return COMPLAIN_AT(l, s,
			   "unknown key '%s%s%s' (remove it, or see pvfs.conf(5) for what there is)",
			   group ? group : "", group ? "." : "", key);
}

/*
 * Splits "host:port", "[v6]:port" or "host"; loop names (the in-process transport) are a host of
 * their own. Return: NULL when it is sound, else what is wrong.
 */
static const char *split_addr(const char *text, char host[PVFS_HOST_MAX + 8],
			      unsigned int *ret_port)
{
	const char *colon, *end;
	unsigned long port;
	char *stop;
	size_t n;

	*ret_port = 0;
	if (!strncmp(text, "loop:", 5)) {
		snprintf(host, PVFS_HOST_MAX + 8, "%s", text);
		return text[5] ? NULL : "has no name after 'loop:'";
	}
	if (*text == '[') {
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return "is not of the form \"[v6]:port\"";
		text++;
		colon = end[1] ? end + 1 : NULL;
	} else {
		colon = strchr(text, ':');
		if (colon && strchr(colon + 1, ':'))
			return "has more than one ':' (write an IPv6 address as \"[address]:port\")";
		end = colon ? colon : text + strlen(text);
	}
	n = end - text;
	if (!n || n > PVFS_HOST_MAX)
		return "has no host, or a host that is too long";
	if (strcspn(text, " \t\r\n/") < n)
		return "has a space or '/' in the host";
	snprintf(host, PVFS_HOST_MAX + 8, "%.*s", (int)n, text);
	if (!colon)
		return NULL;
	port = isdigit((unsigned char)colon[1]) ? strtoul(colon + 1, &stop, 10) : 0;
	if (!port || port > 65535 || *stop)
		return "has a port that is not 1 .. 65535";
	*ret_port = port;
	return NULL;
}

static int set_text(struct loader *l, const config_setting_t *s, const struct param *p,
		    const char *v, void *dst)
{
	char host[PVFS_HOST_MAX + 8], *out = dst;
	unsigned int port;
	const char *why;
	size_t n = strlen(v), i;

	if (n < p->min || n > p->max)
		return COMPLAIN_AT(l, s, "'%s.%s' is %zu bytes long, must be %llu .. %llu",
				   p->group, p->key, n,
				   (unsigned long long)p->min, (unsigned long long)p->max);
	switch (p->type) {
	case P_NAME:
		for (i = 0; i < n; i++) {
			if (!isalnum((unsigned char)v[i]) && !strchr("-_.", v[i]))
				return COMPLAIN_AT(l, s,
						   "'%s.%s' \"%s\" must be of letters, digits, '-', '_' and '.'",
						   p->group, p->key, v);
		}
		break;
	case P_ADDR:
		why = split_addr(v, host, &port);
		if (why)
			return COMPLAIN_AT(l, s, "'%s.%s' \"%s\" %s: write it as \"host:port\"",
					   p->group, p->key, v,
					   why);
		break;
	case P_PATH:
		if (v[0] != '/') {
			int m = snprintf(out, p->max + 1, "%s/%s", l->dir, v);

			if (m < 0 || (u64)m > p->max)
				return COMPLAIN_AT(l, s, "'%s.%s' is too long a path", p->group,
						   p->key);
		} else {
			memcpy(out, v, n + 1);
		}
		/*
		 * "a//b/./c/" and "a/b/c" must compare equal. ".." is left alone: it may cross a
		 * symbolic link.
		 */
		for (i = n = 0; out[i]; i++) {
			if (out[i] == '/' && (out[i + 1] == '/' || !out[i + 1]) &&
			    (n || out[i + 1]))
				continue;
			if (out[i] == '/' && out[i + 1] == '.' &&
			    (out[i + 2] == '/' || !out[i + 2])) {
				i++;
				continue;
			}
			out[n++] = out[i];
		}
		if (!n)
			out[n++] = '/';
		out[n] = '\0';
		return 0;
	default:
		break;
	}
	memcpy(out, v, n + 1);
	return 0;
}

static int set_number(struct loader *l, const config_setting_t *s, const struct param *p, u64 v,
		      void *dst)
{
	bool size = p->type != P_U32;
	char a[32], b[32];

	if (v < p->min || v > p->max) {
		if (size)
			return COMPLAIN_AT(l, s, "'%s.%s' is out of bounds, must be %s .. %s",
					   p->group, p->key,
					   size_text(p->min, a), size_text(p->max, b));
		return COMPLAIN_AT(l, s, "'%s.%s' is out of bounds, must be %llu .. %llu", p->group,
				   p->key,
				   (unsigned long long)p->min, (unsigned long long)p->max);
	}
	if ((p->flags & PF_POW2) && (v & (v - 1)))
		return COMPLAIN_AT(l, s, "'%s.%s' must be a power of two, as %s", p->group, p->key,
				   size_text(1ull << (63 - __builtin_clzll(v)), a));
	if (p->type == P_SIZE64)
		*(u64 *)dst = v;
	else
		*(u32 *)dst = v;
	return 0;
}

static int set_choice(struct loader *l, const config_setting_t *s, const struct param *p,
		      const char *text, u32 *dst)
{
	const char *const *c = choices[p->type];

	if (strcmp(text, c[0]) && strcmp(text, c[1]))
		return COMPLAIN_AT(l, s, "'%s.%s' \"%s\" must be \"%s\" or \"%s\"", p->group,
				   p->key, text, c[0], c[1]);
	*dst = strcmp(text, c[0]) ? 1 : 0;
	return 0;
}

/* Puts the text or number of setting @s where @p says, below @base. */
static int set_param(struct loader *l, const config_setting_t *s, const struct param *p, void *base)
{
	int type = config_setting_type(s), err;
	void *dst = (char *)base + p->off;
	const char *text = type == CONFIG_TYPE_STRING ? config_setting_get_string(s) : NULL;
	u64 v;

	switch (p->type) {
	case P_U32:
	case P_SIZE32:
	case P_SIZE64:
		if (type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64) {
			long long n = type == CONFIG_TYPE_INT ? config_setting_get_int(s) :
							       config_setting_get_int64(s);

			return set_number(l, s, p, n < 0 ? UINT64_MAX : (u64)n, dst);
		}
		err = text && p->type != P_U32 ? pvfs_parse_size(text, &v) : -EINVAL;
		if (err == -ERANGE)
			v = UINT64_MAX;
		else if (err)
			return COMPLAIN_AT(l, s, "'%s.%s' must be a %s", p->group, p->key,
					   p->type == P_U32 ?
						   "whole number without quotes" :
						   "size: a whole number of bytes, or text such as \"64k\", \"4M\", \"1G\"");
		return set_number(l, s, p, v, dst);
	default:
		break;
	}
	if (!text)
		return COMPLAIN_AT(l, s, "'%s.%s' must be text in double quotes", p->group, p->key);
	switch (p->type) {
	case P_UUID:
		if (pvfs_uuid_parse(text, dst))
			return COMPLAIN_AT(l, s,
					   "'%s.%s' \"%s\" is not a UUID (uuidgen prints one)",
					   p->group, p->key,
					   text);
		return 0;
	case P_DURABILITY:
	case P_STUFF_STORE:
		return set_choice(l, s, p, text, dst);
	default:
		return set_text(l, s, p, text, dst);
	}
}

/* The defaults of table entries of @group go through the same code as what users write. */
static int set_default(struct loader *l, config_setting_t *root, const struct param *p, void *base)
{
	config_setting_t *s;
	int err;

	if (!p->def)
		return 0;
	s = config_setting_add(root, "default", CONFIG_TYPE_STRING);
	if (!s)
		return -ENOMEM;
	if (p->type == P_U32) {
		*(u32 *)((char *)base + p->off) = strtoul(p->def, NULL, 10);
		err = 0;
	} else {
		config_setting_set_string(s, p->def);
		err = set_param(l, s, p, base);
	}
	config_setting_remove(root, "default");
	return err;
}

/* All parameters of @group, from setting @g (NULL: the group is not in the file) to @base. */
static int load_group(struct loader *l, config_setting_t *root, config_setting_t *g,
		      const char *group, void *base)
{
	const struct param *p;
	int err, i;

	/* A misspelt key also is a missing one: the first tells more. */
	for (i = 0; g && i < config_setting_length(g); i++) {
		config_setting_t *s = config_setting_get_elem(g, i);

		for (p = params; p < params + ARRAY_SIZE(params); p++) {
			if (!strcmp(p->group, group) && !strcmp(p->key, config_setting_name(s)))
				break;
		}
		if (p == params + ARRAY_SIZE(params))
			return unknown_key(l, s, group);
	}
	for (p = params; p < params + ARRAY_SIZE(params); p++) {
		config_setting_t *s;

		if (strcmp(p->group, group))
			continue;
		s = g ? config_setting_get_member(g, p->key) : NULL;
		if (s)
			err = set_param(l, s, p, base);
		else if (!(p->flags & PF_REQUIRED))
			err = set_default(l, root, p, base);
		else if (g)
			err = COMPLAIN_AT(l, g, "'%s' has no '%s': add %s = \"...\";", group,
					  p->key, p->key);
		else
			err = complain(l, NULL, 0,
				       "has no part '%s': add %s: { %s = \"...\"; ... };", group,
				       group,
				       p->key);
		if (err)
			return err;
		if (s && !strcmp(p->key, "stripe_count"))
			l->stripe_line = config_setting_source_line(s);
		if (s && (!strcmp(p->key, "server_key") || !strcmp(p->key, "cluster_key")))
			l->key_line = config_setting_source_line(s);
	}
	return 0;
}

static int load_iods(struct loader *l, config_setting_t *root, config_setting_t *list)
{
	struct pvfs_conf *c = l->c;
	int n, i, err;

	if (!list)
		return complain(l, NULL, 0,
				"has no part 'iods': add iods: ( { address = \"host:%u\"; store = \"...\"; } );",
				PVFS_PORT_IOD);
	l->iods_line = config_setting_source_line(list);
	n = config_setting_length(list);
	if (n < 1 || n > (int)PVFS_IOD_MAX)
		return COMPLAIN_AT(l, list, "'iods' has %d entries, must have 1 .. %u", n,
				   PVFS_IOD_MAX);
	c->iods = calloc(n, sizeof(*c->iods));
	if (!c->iods)
		return -ENOMEM;
	c->niods = n;
	for (i = 0; i < n; i++) {
		config_setting_t *e = config_setting_get_elem(list, i);

		if (!config_setting_is_group(e))
			return COMPLAIN_AT(l, e,
					   "'iods' entry %d must be { address = \"...\"; store = \"...\"; }",
					   i);
		c->iods[i].line = config_setting_source_line(e);
		err = load_group(l, root, e, "iods", &c->iods[i]);
		if (err)
			return err;
	}
	return 0;
}

/* A daemon, for the comparison of all pairs; -1 is the mgr. */
static void daemon_at(const struct pvfs_conf *c, int i, char host[PVFS_HOST_MAX + 8],
		      unsigned int *port, const char **store, char name[32])
{
	split_addr(i < 0 ? c->mgr_address : c->iods[i].address, host, port);
	if (!*port)
		*port = i < 0 ? PVFS_PORT_MGR : PVFS_PORT_IOD;
	*store = i < 0 ? c->mgr_store : c->iods[i].store;
	if (i < 0)
		snprintf(name, 32, "the mgr");
	else
		snprintf(name, 32, "iod %d (line %d)", i, c->iods[i].line);
}

/* What only the whole can tell. */
static int check_whole(struct loader *l)
{
	char hi[PVFS_HOST_MAX + 8], hj[PVFS_HOST_MAX + 8], ni[32], nj[32];
	struct pvfs_conf *c = l->c;
	const char *si, *sj;
	unsigned int pi, pj;
	int i, j;

	for (i = 0; i < (int)c->niods; i++) {
		daemon_at(c, i, hi, &pi, &si, ni);
		for (j = -1; j < i; j++) {
			daemon_at(c, j, hj, &pj, &sj, nj);
			/* The same directory on another machine is another directory. */
			if (strcasecmp(hi, hj))
				continue;
			if (pi == pj)
				return complain(l, NULL, c->iods[i].line,
						"iod %d has the address \"%s\" of %s: give each daemon its own port",
						i, c->iods[i].address, nj);
			if (!strcmp(si, sj))
				return complain(l, NULL, c->iods[i].line,
						"iod %d has the store \"%s\" of %s: give each daemon its own directory",
						i, si, nj);
		}
	}
	/* Clients have the one: with the other they would be servers. */
	if (!strcmp(c->cluster_key, c->server_key))
		return complain(l, NULL, l->key_line,
				"'volume.cluster_key' and 'volume.server_key' are both \"%s\": clients have the one and must not have the other, give each its own file",
				c->server_key);
	if (c->stripe_count > c->niods)
		return complain(l, NULL, l->stripe_line,
				"'layout.stripe_count' is %u but there are %u iods: use at most that, or 0 for all",
				c->stripe_count, c->niods);
	if (c->iod_buffers < 8ull * c->io_max)
		return complain(l, NULL, 0,
				"'iod.buffers' must hold at least 8 requests of 'iod.io_max' (8 x %u KiB): raise it or lower 'io_max'",
				c->io_max >> 10);
	return 0;
}

static int load_settings(struct loader *l, config_t *cfg)
{
	static const char *const groups[] = { "volume", "mgr", "layout", "iod", "iods" };
	config_setting_t *root = config_root_setting(cfg), *s[ARRAY_SIZE(groups)] = { NULL };
	size_t g;
	int i, err;

	for (i = 0; i < config_setting_length(root); i++) {
		config_setting_t *e = config_setting_get_elem(root, i);

		for (g = 0; g < ARRAY_SIZE(groups); g++) {
			if (!strcmp(config_setting_name(e), groups[g]))
				break;
		}
		if (g == ARRAY_SIZE(groups))
			return unknown_key(l, e, NULL);
		if (g == 4 ? !config_setting_is_list(e) : !config_setting_is_group(e))
			return COMPLAIN_AT(l, e, "'%s' must be %s", groups[g],
					   g == 4 ?
						   "a list in parentheses: iods: ( { ... }, ... );" :
						   "a group in braces: { name = value; ... };");
		s[g] = e;
	}
	for (g = 0; g < 4; g++) {
		err = load_group(l, root, s[g], groups[g], l->c);
		if (err)
			return err;
	}
	err = load_iods(l, root, s[4]);
	return err ? err : check_whole(l);
}

/* Reads all of @path; libconfig's own reader ends the process when a read fails. */
static int slurp(struct loader *l, const char *path, char **ret)
{
	char *text = NULL, *slash;
	size_t n = 0;
	FILE *f;
	int err;

	f = fopen(path, "re");
	if (!f) {
		err = -errno;
		complain(l, NULL, 0, "%s%s", strerror(-err),
			 err == -ENOENT ?
				 ": name the volume's configuration file, or make one with 'pvfs mkfs'" :
				 "");
		return err;
	}
	text = malloc(CONF_SIZE_MAX + 1);
	if (!text) {
		err = -ENOMEM;
		goto out;
	}
	n = fread(text, 1, CONF_SIZE_MAX + 1, f);
	if (ferror(f)) {
		err = -errno;
		complain(l, NULL, 0, "can't be read: %s", strerror(-err));
		goto out;
	}
	if (n > CONF_SIZE_MAX || memchr(text, '\0', n)) {
		err = complain(l, NULL, 0, "is not a configuration file: %s",
			       n > CONF_SIZE_MAX ? "too large" :
			       "it has binary bytes");
		goto out;
	}
	text[n] = '\0';
	if (!realpath(path, l->dir)) {
		err = -errno;
		complain(l, NULL, 0, "%s", strerror(-err));
		goto out;
	}
	slash = strrchr(l->dir, '/');
	slash[slash == l->dir] = '\0';
	*ret = text;
	text = NULL;
	err = 0;
out:
	free(text);
	fclose(f);
	return err;
}

int pvfs_conf_load(const char *path, struct pvfs_conf **ret, char *err, size_t errlen)
{
	struct loader l = { .err = err, .errlen = errlen };
	char *text = NULL;
	config_t cfg;
	int rc;

	if (errlen)
		*err = '\0';
	l.c = calloc(1, sizeof(*l.c));
	if (!l.c)
		return -ENOMEM;
	if (strlen(path) >= sizeof(l.c->path)) {
		snprintf(err, errlen, "the configuration file's path is too long");
		rc = -ENAMETOOLONG;
		goto out_free;
	}
	strcpy(l.c->path, path);
	rc = slurp(&l, path, &text);
	if (rc)
		goto out_free;
	config_init(&cfg);
	config_set_include_dir(&cfg, l.dir);
	if (!config_read_string(&cfg, text)) {
		bool twice = !strcmp(config_error_text(&cfg), "duplicate setting name");

		rc = complain(&l, config_error_file(&cfg), config_error_line(&cfg), "%s (%s)",
			      config_error_text(&cfg),
			      twice ? "it was set above already: remove one of the two" :
				      "near this line: a missing ';', quote or bracket?");
		goto out_cfg;
	}
	rc = load_settings(&l, &cfg);
out_cfg:
	config_destroy(&cfg);
out_free:
	free(text);
	if (rc) {
		if (rc == -ENOMEM)
			snprintf(err, errlen, "%s: out of memory", path);
		pvfs_conf_free(l.c);
		return rc;
	}
	*ret = l.c;
	return 0;
}

void pvfs_conf_free(struct pvfs_conf *c)
{
	if (!c)
		return;
	free(c->iods);
	free(c);
}
