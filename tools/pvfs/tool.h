/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tool.h - the `pvfs` command from inside: options all subcommands share, tables, and who does
 * what.
 *
 *   main.c     subcommands and help          conf.c     which cluster, and the way to it
 *   mkfs.c     new stores and clusters       cluster.c  start and stop of a one-machine cluster
 *   status.c   status, ping, df              file.c     ls, stat, rm, mkdir
 *   stripe.c   setstripe, getstripe          out.c      tables as text and as JSON
 *   cp.c       copying                       end.c      what can be copied from and to
 *   keep.c     what cp -p keeps              resume.c   going on after an interruption
 *   tune.c     tune                        leases.c   leases
 *
 * Functions return 0 or -errno unless they say otherwise; cmd_*() return the exit status.
 */
#ifndef PVFS_TOOL_H
#define PVFS_TOOL_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include "../../common/config.h"
#include "../../common/stripe.h"
#include "../../transport/transport.h"
#include "../../lib/pvfs.h"

#define EXIT_USAGE 2
#define EXIT_INTERRUPTED 130
#define CONF_DEFAULT "/etc/pvfs/pvfs.conf"
#define KEY_DEFAULT "/etc/pvfs/cluster.key"

/* Options that every subcommand takes. */
struct tool_opts {
	const char *conf;		/* -c; NULL: $PVFS_CONF, then the default */
	const char *mgr;		/* -m "host[:port]/volume"; no configuration is read */
	const char *key;		/* -k */
	unsigned int timeout_ms;	/* --timeout: for a server to answer at first */
	bool json, counters, soft;
	bool verbose;			/* -v */
	const char *log;		/* -l, --log: libpvfs's messages go there */
};
extern struct tool_opts tool;

#define TOOL_SHORT "c:m:k:hvV"
#define TOOL_LONG \
	{ "conf", required_argument, NULL, 'c' }, \
	{ "mgr", required_argument, NULL, 'm' }, \
	{ "key", required_argument, NULL, 'k' }, \
	{ "help", no_argument, NULL, 'h' }, \
	{ "json", no_argument, NULL, 1000 }, \
	{ "timeout", required_argument, NULL, 1001 }, \
	{ "counters", no_argument, NULL, 1002 }, \
	{ "soft", no_argument, NULL, 1003 }, \
	{ "verbose", no_argument, NULL, 'v' }, \
	{ "log", required_argument, NULL, 1004 }, \
	{ "version", no_argument, NULL, 'V' }, \
	{ NULL, 0, NULL, 0 }

struct command {
	const char *name, *args, *brief, *help;
	int (*run)(int argc, char **argv);
};

/* main.c */
void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool has_failed(void);
int tool_option(int c);
int tool_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int parse_number(const char *text, unsigned long min, unsigned long max, unsigned long *ret);

/* interrupt.c */
bool interrupted(void);
void interrupt_begin(const char *words, unsigned int seconds);
void interrupt_words(const char *words);

/* conf.c */
struct target {			/* the cluster that the options mean */
	char mgr[PVFS_HOST_MAX + 8];
	char volume[PVFS_VOLUME_MAX + 1];
	char key[4096];
	struct pvfs_conf *conf;	/* NULL with -m */
};
int parse_mgr(const char *text, struct target *t);
int target_find(struct target *t);
void target_free(struct target *t);
int tool_connect(struct pvfs_fs **ret);
void tool_disconnect(struct pvfs_fs *fs);
const char *remote_path(const char *arg);
int probe_open(struct pvfs_engine *e, const struct target *t, const char *address, u16 port,
	       u8 role, struct pvfs_peer **ret, char *err, size_t errlen);
int probe_call(struct pvfs_peer *p, u16 op, void *payload, size_t room, u32 *ret_len, u64 *ret_ns,
	       char *err, size_t errlen);

/* out.c */
struct out;
enum out_kind { OUT_TEXT, OUT_NUMBER };
struct out_col {
	const char *key, *title;
	enum out_kind kind;
};
struct out *out_new(const char *name, const struct out_col *cols, int n);
void out_row(struct out *o);
void out_text(struct out *o, int col, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void out_name(struct out *o, int col, const char *name);
void out_number(struct out *o, int col, uint64_t v, const char *shown);
void out_extra(struct out *o, const char *key, const char *text);
int out_print(struct out *o);
const char *human(uint64_t v, char buf[16]);

/* file.c, stripe.c */
const char *path_of(const char *arg);
const char *changing_path(const char *arg);
void fail_path(const char *arg, int rc);
void base_text(const struct pvfs_striping *s, char buf[16]);

/* the subcommands */
int cmd_mkfs(int argc, char **argv);
int cmd_start(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_ping(int argc, char **argv);
int cmd_df(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_mkdir(int argc, char **argv);
int cmd_setstripe(int argc, char **argv);
int cmd_getstripe(int argc, char **argv);
int cmd_leases(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_cp(int argc, char **argv);

#endif
