// SPDX-License-Identifier: GPL-2.0
/*
 * status.c - `pvfs status`, `pvfs ping`, `pvfs df`: are the servers there, how fast, how full.
 *
 * status and ping talk to each daemon on a connection of its own, without a session, all at once: a
 * manager that is down does not hide the I/O daemons when the configuration names them.
 */
#include "tool.h"
#include <json-c/json.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STATS_MAX (1u << 20)	/* bytes of one daemon's STATS answer */
#define AT_ONCE 32		/* daemons asked at a time */

struct server {
	u8 role;
	u32 index;
	char address[PVFS_HOST_MAX + 96];
	/* result */
	int rc;
	char err[512];
	char *stats;		/* JSON text, owned */
	u64 rtt_min, rtt_max, rtt_sum;	/* ns */
	u32 pings;
};

struct survey {
	struct target target;
	struct pvfs_engine *engine;
	struct server *servers;
	u32 n;
	u8 uuid[PVFS_UUID_LEN];	/* of the volume that they should serve */
	/* what to do */
	bool stats;
	u32 count;		/* pings */
	pthread_mutex_t lock;	/* protects next */
	u32 next;
};

/* ---------------------------------------------------------------- the servers */

/* The iods as the mgr lists them: for -m, where there is no configuration. */
static int list_by_mgr(struct survey *s)
{
	char name[PVFS_HOST_MAX + 96], *open, *close;
	struct pvfs_volinfo vi;
	struct pvfs_fs *fs;
	int rc = tool_connect(&fs);
	u32 i;

	if (rc)
		return rc;
	rc = pvfs_volinfo(fs, &vi);
	memcpy(s->uuid, vi.uuid, sizeof(s->uuid));
	s->servers = rc ? NULL : calloc(vi.niods + 1, sizeof(*s->servers));
	if (!rc && !s->servers)
		rc = -ENOMEM;
	for (i = 0; !rc && i < vi.niods; i++) {
		struct server *v = &s->servers[1 + i];

		rc = pvfs_iod_name(fs, i, name, sizeof(name));
		if (rc)
			break;
		/* "host (address:port)" */
		open = strrchr(name, '(');
		close = strrchr(name, ')');
		if (open && close)
			*close = '\0';
		v->role = PVFS_ROLE_IOD;
		v->index = i;
		snprintf(v->address, sizeof(v->address), "%s", open ? open + 1 : name);
		s->n = i + 2;
	}
	tool_disconnect(fs);
	return rc;
}

static int list_by_conf(struct survey *s)
{
	struct pvfs_conf *c = s->target.conf;
	u32 i;

	s->servers = calloc(c->niods + 1, sizeof(*s->servers));
	if (!s->servers)
		return -ENOMEM;
	for (i = 0; i < c->niods; i++) {
		s->servers[1 + i].role = PVFS_ROLE_IOD;
		s->servers[1 + i].index = i;
		snprintf(s->servers[1 + i].address, sizeof(s->servers->address), "%s",
			 c->iods[i].address);
	}
	memcpy(s->uuid, c->uuid, sizeof(s->uuid));
	s->n = c->niods + 1;
	return 0;
}

static int survey_open(struct survey *s)
{
	int rc;

	memset(s, 0, sizeof(*s));
	pthread_mutex_init(&s->lock, NULL);
	rc = target_find(&s->target);
	if (rc)
		return rc;
	rc = s->target.conf ? list_by_conf(s) : list_by_mgr(s);
	if (rc)
		return rc;
	s->servers[0].role = PVFS_ROLE_MGR;
	snprintf(s->servers[0].address, sizeof(s->servers->address), "%s", s->target.mgr);
	rc = pvfs_engine_new("pvfs", 2, &s->engine);
	if (rc)
		fail("can't start threads: %s", strerror(-rc));
	return rc;
}

static void survey_close(struct survey *s)
{
	u32 i;

	pvfs_engine_free(s->engine);
	for (i = 0; i < s->n; i++)
		free(s->servers[i].stats);
	free(s->servers);
	target_free(&s->target);
	pthread_mutex_destroy(&s->lock);
}

static void ask(struct survey *s, struct server *v)
{
	struct pvfs_peer *p = NULL;
	u16 port = v->role == PVFS_ROLE_MGR ? PVFS_PORT_MGR : PVFS_PORT_IOD;
	u64 ns;
	u32 len, i;

	v->rc = probe_open(s->engine, &s->target, v->address, port, v->role, &p, v->err,
			   sizeof(v->err));
	if (v->rc)
		return;
	pvfs_peer_expect(p, s->uuid, v->index);
	/* The first one connects: not counted. */
	v->rc = probe_call(p, PVFS_OP_PING, NULL, 0, NULL, NULL, v->err, sizeof(v->err));
	v->rtt_min = UINT64_MAX;
	for (i = 0; i < s->count && !v->rc; i++) {
		v->rc = probe_call(p, PVFS_OP_PING, NULL, 0, NULL, &ns, v->err, sizeof(v->err));
		if (v->rc)
			break;
		v->pings++;
		v->rtt_sum += ns;
		v->rtt_min = min(v->rtt_min, ns);
		v->rtt_max = max(v->rtt_max, ns);
	}
	if (!v->rc && s->stats) {
		v->stats = malloc(STATS_MAX + 1);
		v->rc = -ENOMEM;
		if (v->stats)
			v->rc = probe_call(p, PVFS_OP_STATS, v->stats, STATS_MAX, &len, NULL,
					   v->err, sizeof(v->err));
		if (!v->rc)
			v->stats[len] = '\0';
	}
	pvfs_peer_free(p);
}

static void *asker(void *arg)
{
	struct survey *s = arg;
	u32 i;

	for (;;) {
		pthread_mutex_lock(&s->lock);
		i = s->next++;
		pthread_mutex_unlock(&s->lock);
		if (i >= s->n)
			return NULL;
		ask(s, &s->servers[i]);
	}
}

static int survey_run(struct survey *s)
{
	pthread_t threads[AT_ONCE];
	u32 n = min(s->n, (u32)AT_ONCE), i, k, down = 0;

	for (k = 0; k < n; k++) {
		if (pthread_create(&threads[k], NULL, asker, s))
			break;
	}
	if (!k)
		asker(s);
	while (k--)
		pthread_join(threads[k], NULL);
	for (i = 0; i < s->n; i++)
		down += s->servers[i].rc != 0;
	return down;
}

static void server_name(const struct server *v, char buf[16])
{
	snprintf(buf, 16, v->role == PVFS_ROLE_MGR ? "mgr" : "iod%u", v->index);
}

/* ---------------------------------------------------------------- status */

/* A member of a daemon's answer as a number; false: it has none. */
static bool stat_number(struct json_object *top, const char *key, u64 *ret)
{
	struct json_object *o;

	if (!json_object_is_type(top, json_type_object) ||
	    !json_object_object_get_ex(top, key, &o) || !json_object_is_type(o, json_type_int))
		return false;
	*ret = json_object_get_uint64(o);
	return true;
}

/* Requests of all kinds that a daemon has answered. */
static bool count_requests(struct json_object *top, u64 *ret)
{
	struct json_object *ops;
	u64 n;

	if (!json_object_is_type(top, json_type_object) ||
	    !json_object_object_get_ex(top, "ops", &ops) ||
	    !json_object_is_type(ops, json_type_object))
		return false;
	*ret = 0;
	json_object_object_foreach(ops, name, op) {
		if (*name && stat_number(op, "count", &n))
			*ret += n;
	}
	return true;
}

/*
 * How the manager sees an I/O daemon, if not as up: that one may answer here, and not there; in words, or
 * nothing. Return: false: the two refuse each other, so that no client can use it.
 */
static bool seen_by_mgr(const struct survey *s, const struct server *v, char *buf, size_t n)
{
	const struct server *mgr = &s->servers[0];
	struct json_object *j = mgr->stats ? json_tokener_parse(mgr->stats) : NULL;
	struct json_object *iods = NULL, *iod, *state = NULL, *why = NULL;
	const char *text;
	bool usable = true;
	u64 ms = 0;

	*buf = '\0';
	if (v->role == PVFS_ROLE_IOD && json_object_is_type(j, json_type_object) &&
	    json_object_object_get_ex(j, "iods", &iods) &&
	    json_object_is_type(iods, json_type_array) &&
	    v->index < json_object_array_length(iods)) {
		iod = json_object_array_get_idx(iods, v->index);
		json_object_object_get_ex(iod, "state", &state);
		text = json_object_get_string(state);
		stat_number(iod, "away_ms", &ms);
		if (text && !strcmp(text, "down"))
			snprintf(buf, n, "away for the manager, %llu s", (unsigned long long)ms / 1000);
		if (text && !strcmp(text, "refused")) {
			json_object_object_get_ex(iod, "why", &why);
			snprintf(buf, n, "refused: %s", why ? json_object_get_string(why) : "the manager's log says why");
			usable = false;
		}
	}
	json_object_put(j);
	return usable;
}

/* Return: can it be used? */
static bool status_row(struct out *o, const struct survey *s, const struct server *v)
{
	enum { SERVER, ADDRESS, STATE, RTT, CONNS, REQUESTS, UPTIME, VERSION, MGR };
	struct json_object *j = v->stats ? json_tokener_parse(v->stats) : NULL, *version;
	char name[16], text[32], seen[200];
	bool usable;
	u64 n;

	out_row(o);
	server_name(v, name);
	out_text(o, SERVER, "%s", name);
	out_text(o, ADDRESS, "%s", v->address);
	out_text(o, STATE, "%s", v->rc ? v->err : "up");
	usable = seen_by_mgr(s, v, seen, sizeof(seen)) && !v->rc;
	if (*seen)
		out_text(o, MGR, "%s", seen);
	if (v->pings) {
		snprintf(text, sizeof(text), "%.0f us", v->rtt_min / 1e3);
		out_number(o, RTT, v->rtt_min, text);
	}
	if (stat_number(j, "connections", &n))
		out_number(o, CONNS, n, NULL);
	if (count_requests(j, &n))
		out_number(o, REQUESTS, n, NULL);
	if (stat_number(j, "uptime_s", &n)) {
		snprintf(text, sizeof(text), "%llu:%02llu:%02llu", (unsigned long long)n / 3600,
			 (unsigned long long)n / 60 % 60, (unsigned long long)n % 60);
		out_number(o, UPTIME, n, text);
	}
	if (json_object_object_get_ex(j, "version", &version))
		out_text(o, VERSION, "%s", json_object_get_string(version));
	if (j && v->stats)
		out_extra(o, "stats", v->stats);
	json_object_put(j);
	return usable;
}

int cmd_status(int argc, char **argv)
{
	static const struct out_col cols[] = {
		{ "server", "SERVER", OUT_TEXT },
		{ "address", "ADDRESS", OUT_TEXT },
		{ "state", "STATE", OUT_TEXT },
		{ "rtt_ns", "RTT", OUT_NUMBER },
		{ "connections", "CONNECTIONS", OUT_NUMBER },
		{ "requests", "REQUESTS", OUT_NUMBER },
		{ "uptime_s", "UP", OUT_NUMBER },
		{ "version", "VERSION", OUT_TEXT },
		{ "manager_sees", "MANAGER SEES", OUT_TEXT },
	};
	static const struct option longopts[] = { TOOL_LONG };
	struct survey s;
	struct out *o;
	int c, rc;
	u32 i;

	while ((c = getopt_long(argc, argv, TOOL_SHORT, longopts, NULL)) != -1) {
		rc = tool_option(c);
		if (rc)
			return rc < 0 ? EXIT_USAGE : 0;
	}
	if (optind < argc)
		return tool_usage("'%s'? there are no arguments", argv[optind]);
	rc = survey_open(&s);
	if (!rc) {
		s.stats = true;
		s.count = 3;
		rc = survey_run(&s);
		o = out_new("servers", cols, ARRAY_SIZE(cols));
		for (i = 0; i < s.n; i++)
			rc |= !status_row(o, &s, &s.servers[i]);
		out_print(o);
	}
	survey_close(&s);
	return rc ? EXIT_FAILURE : 0;
}

/* ---------------------------------------------------------------- ping */

int cmd_ping(int argc, char **argv)
{
	enum { SERVER, ADDRESS, COUNT, MIN, MEAN, MAX, STATE };
	static const struct out_col cols[] = {
		{ "server", "SERVER", OUT_TEXT },  { "address", "ADDRESS", OUT_TEXT },
		{ "count", "COUNT", OUT_NUMBER },  { "min_ns", "MIN", OUT_NUMBER },
		{ "mean_ns", "MEAN", OUT_NUMBER }, { "max_ns", "MAX", OUT_NUMBER },
		{ "state", "STATE", OUT_TEXT },
	};
	static const struct option longopts[] = { { "count", required_argument, NULL, 'n' },
						  TOOL_LONG };
	unsigned long count = 10;
	char text[3][32], name[16];
	struct survey s;
	struct out *o;
	int c, rc;
	u32 i;

	while ((c = getopt_long(argc, argv, TOOL_SHORT "n:", longopts, NULL)) != -1) {
		if (c == 'n') {
			if (parse_number(optarg, 1, 1000000, &count))
				return EXIT_USAGE;
			continue;
		}
		rc = tool_option(c);
		if (rc)
			return rc < 0 ? EXIT_USAGE : 0;
	}
	if (optind < argc)
		return tool_usage("'%s'? there are no arguments", argv[optind]);
	rc = survey_open(&s);
	if (!rc) {
		s.count = count;
		rc = survey_run(&s);
		o = out_new("pings", cols, ARRAY_SIZE(cols));
		for (i = 0; i < s.n; i++) {
			struct server *v = &s.servers[i];

			out_row(o);
			server_name(v, name);
			out_text(o, SERVER, "%s", name);
			out_text(o, ADDRESS, "%s", v->address);
			out_number(o, COUNT, v->pings, NULL);
			if (v->pings) {
				u64 mean = v->rtt_sum / v->pings;

				snprintf(text[0], 32, "%.1f us", v->rtt_min / 1e3);
				snprintf(text[1], 32, "%.1f us", mean / 1e3);
				snprintf(text[2], 32, "%.1f us", v->rtt_max / 1e3);
				out_number(o, MIN, v->rtt_min, text[0]);
				out_number(o, MEAN, mean, text[1]);
				out_number(o, MAX, v->rtt_max, text[2]);
			}
			out_text(o, STATE, "%s", v->rc ? v->err : "up");
		}
		out_print(o);
	}
	survey_close(&s);
	return rc ? EXIT_FAILURE : 0;
}

/* ---------------------------------------------------------------- df */

/* One line of `df --iods`. */
static void iod_row(struct out *o, const struct survey *s, u32 i)
{
	enum { SERVER, ADDRESS, SIZE, USED, AVAIL, USE, SHARES, STATE };
	const struct server *v = &s->servers[i];
	struct json_object *j = v->stats ? json_tokener_parse(v->stats) : NULL;
	struct json_object *iod = NULL, *space = NULL, *disk = NULL, *other;
	u64 bytes, free_bytes, avail, used, use;
	char name[16], text[16];
	u32 k;

	out_row(o);
	server_name(v, name);
	out_text(o, SERVER, "%s", name);
	out_text(o, ADDRESS, "%s", v->address);
	out_text(o, STATE, "%s", v->rc ? v->err : "up");
	if (!json_object_is_type(j, json_type_object) ||
	    !json_object_object_get_ex(j, "iod", &iod) ||
	    !json_object_is_type(iod, json_type_object) ||
	    !json_object_object_get_ex(iod, "space", &space) ||
	    !stat_number(space, "bytes", &bytes) || !stat_number(space, "free", &free_bytes) ||
	    !stat_number(space, "avail", &avail))
		goto out;
	used = bytes - min(free_bytes, bytes);
	use = used + avail ? (u64)((unsigned __int128)100 * used / (used + avail)) : 0;
	out_number(o, SIZE, bytes, human(bytes, text));
	out_number(o, USED, used, human(used, text));
	out_number(o, AVAIL, avail, human(avail, text));
	snprintf(text, sizeof(text), "%llu%%", (unsigned long long)use);
	out_number(o, USE, use, text);
	/* The first one whose disk it is, too. */
	json_object_object_get_ex(space, "disk", &disk);
	for (k = 1; disk && k < i; k++) {
		struct json_object *jk = s->servers[k].stats ?
						 json_tokener_parse(s->servers[k].stats) : NULL;

		if (json_object_object_get_ex(jk, "iod", &other) &&
		    json_object_object_get_ex(other, "space", &other) &&
		    json_object_object_get_ex(other, "disk", &other) &&
		    !strcmp(json_object_get_string(other), json_object_get_string(disk))) {
			server_name(&s->servers[k], name);
			out_text(o, SHARES, "%s", name);
			k = i;
		}
		json_object_put(jk);
	}
out:
	json_object_put(j);
}

static int df_iods(void)
{
	static const struct out_col cols[] = {
		{ "server", "SERVER", OUT_TEXT },      { "address", "ADDRESS", OUT_TEXT },
		{ "size", "SIZE", OUT_NUMBER },	       { "used", "USED", OUT_NUMBER },
		{ "avail", "AVAIL", OUT_NUMBER },      { "use_percent", "USE%", OUT_NUMBER },
		{ "disk_of", "SAME DISK AS", OUT_TEXT }, { "state", "STATE", OUT_TEXT },
	};
	struct survey s;
	struct out *o;
	int rc = survey_open(&s);
	u32 i;

	if (!rc) {
		s.stats = true;
		survey_run(&s);
		o = out_new("iods", cols, ARRAY_SIZE(cols));
		for (i = 1; i < s.n; i++) {
			iod_row(o, &s, i);
			rc |= s.servers[i].rc;
		}
		out_print(o);
	}
	survey_close(&s);
	return rc ? EXIT_FAILURE : 0;
}

int cmd_df(int argc, char **argv)
{
	enum { VOLUME, SIZE, USED, AVAIL, USE, INODES, IODS };
	static const struct out_col cols[] = {
		{ "volume", "VOLUME", OUT_TEXT },      { "size", "SIZE", OUT_NUMBER },
		{ "used", "USED", OUT_NUMBER },	       { "avail", "AVAIL", OUT_NUMBER },
		{ "use_percent", "USE%", OUT_NUMBER }, { "inodes_used", "INODES", OUT_NUMBER },
		{ "iods_up", "IODS UP", OUT_NUMBER },
	};
	static const struct option longopts[] = { { "iods", no_argument, NULL, 2000 }, TOOL_LONG };
	char a[16], b[16], d[16], p[16], up[32];
	bool iods = false;
	struct pvfs_volinfo vi;
	struct pvfs_fsstat st;
	struct pvfs_fs *fs;
	u64 used, unit;
	struct out *o;
	int c, rc;

	while ((c = getopt_long(argc, argv, TOOL_SHORT, longopts, NULL)) != -1) {
		if (c == 2000) {
			iods = true;
			continue;
		}
		rc = tool_option(c);
		if (rc)
			return rc < 0 ? EXIT_USAGE : 0;
	}
	if (optind < argc)
		return tool_usage("'%s'? there are no arguments", argv[optind]);
	if (iods)
		return df_iods();
	rc = tool_connect(&fs);
	if (rc)
		return EXIT_FAILURE;
	rc = pvfs_statfs(fs, &st) ?: pvfs_volinfo(fs, &vi);
	if (rc) {
		fail("%s", strerror(-rc));
	} else {
		unit = st.vfs.f_frsize;
		used = (st.vfs.f_blocks - st.vfs.f_bfree) * unit;
		o = out_new("volumes", cols, ARRAY_SIZE(cols));
		out_row(o);
		out_text(o, VOLUME, "%s", vi.name);
		out_number(o, SIZE, st.vfs.f_blocks * unit, human(st.vfs.f_blocks * unit, a));
		out_number(o, USED, used, human(used, b));
		out_number(o, AVAIL, st.vfs.f_bavail * unit, human(st.vfs.f_bavail * unit, d));
		used = used / unit + st.vfs.f_bavail ?
			       100 * (used / unit) / (used / unit + st.vfs.f_bavail) :
			       0;
		snprintf(p, sizeof(p), "%llu%%", (unsigned long long)used);
		out_number(o, USE, used, p);
		out_number(o, INODES, st.vfs.f_files - st.vfs.f_ffree, NULL);
		snprintf(up, sizeof(up), "%u of %u", st.iods_up, st.iods);
		out_number(o, IODS, st.iods_up, up);
		out_print(o);
		if (!st.vfs.f_ffree)
			note("%s: the manager's disk is full: nothing new can be made", vi.name);
	}
	tool_disconnect(fs);
	return rc ? EXIT_FAILURE : 0;
}
