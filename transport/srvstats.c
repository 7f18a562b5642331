// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * srvstats.c - a server's counters and the answer to STATS, a JSON object.
 */
#include "server.h"
#include <stdlib.h>

#define ADD(counter, n) atomic_fetch_add_explicit(&(counter), n, memory_order_relaxed)
#define GET(counter) ((unsigned long long)atomic_load_explicit(&(counter), memory_order_relaxed))

void srv_count_reply(struct srv_call *k, int err, u64 bytes_out)
{
	u16 op = k->call.head.op;
	unsigned long long ns = pvfs_now() - k->call.t_start, seen;
	struct srv_count *c;

	if (op >= PVFS_OP_LIMIT)
		return;
	c = &k->call.server->counts[op];
	ADD(c->count, 1);
	if (err)
		ADD(c->errors, 1);
	ADD(c->bytes_in, k->bytes);
	ADD(c->bytes_out, bytes_out);
	ADD(c->ns_total, ns);
	seen = GET(c->ns_max);
	while (ns > seen && !atomic_compare_exchange_weak(&c->ns_max, &seen, ns))
		;
}

static void write_ops(struct pvfs_server *s, FILE *f)
{
	const char *comma = "";
	unsigned int op;

	for (op = 0; op < PVFS_OP_LIMIT; op++) {
		struct srv_count *c = &s->counts[op];
		unsigned long long n = GET(c->count);

		if (!n || !pvfs_op_info(op))
			continue;
		fprintf(f,
			"%s\"%s\":{\"count\":%llu,\"errors\":%llu,\"bytes_in\":%llu,\"bytes_out\":%llu,"
			"\"mean_us\":%.1f,\"max_us\":%.1f}",
			comma, pvfs_op_name(op), n, GET(c->errors), GET(c->bytes_in),
			GET(c->bytes_out), GET(c->ns_total) / 1e3 / n, GET(c->ns_max) / 1e3);
		comma = ",";
	}
}

static void write_stats(struct pvfs_server *s, FILE *f)
{
	u32 nconns;

	pthread_mutex_lock(&s->lock);
	nconns = s->nconns;
	pthread_mutex_unlock(&s->lock);
	fprintf(f, "{\"role\":\"%s\",\"index\":%u,\"volume\":\"",
		s->p.role == PVFS_ROLE_MGR ? "mgr" : "iod", s->p.index);
	/* A volume's name has no characters that JSON would mind; be sure all the same. */
	for (const char *v = s->p.volume; *v; v++)
		fputc(*v >= ' ' && *v != '"' && *v != '\\' && *v < 127 ? *v : '?', f);
	fprintf(f,
		"\",\"version\":\"%s\",\"epoch\":%llu,\"uptime_s\":%llu,\"connections\":%u,\"accepted\":%llu,"
		"\"refused\":%llu,\"protocol_errors\":%llu,\"replies_dropped\":%llu,\"wakeups\":%llu,\"ops\":{",
		PVFS_VERSION, (unsigned long long)s->p.epoch,
		(unsigned long long)((pvfs_now() - s->t_start) / 1000000000), nconns,
		GET(s->accepted), GET(s->refused), GET(s->protocol_errors), GET(s->replies_dropped),
		(unsigned long long)pvfs_engine_wakeups(s->e));
	write_ops(s, f);
	fputc('}', f);
	if (s->p.ops->stats)
		s->p.ops->stats(s, f);
	fputs("}\n", f);
}

void srv_stats_reply(struct srv_call *k)
{
	struct pvfs_out out = { .release = free };
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int err = 0;

	if (!f) {
		pvfs_call_reply(&k->call, -ENOMEM, NULL, 0, NULL);
		return;
	}
	write_stats(k->call.server, f);
	if (fclose(f))
		err = -ENOMEM;
	else if (len > PVFS_PAYLOAD_MAX)
		err = -EOVERFLOW;
	out.mem = out.arg = text;
	out.len = err ? 0 : len;
	pvfs_call_reply(&k->call, err, NULL, 0, &out);
}
