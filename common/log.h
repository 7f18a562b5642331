/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * log.h - one line of text to whoever runs a daemon. User space only; any thread; never blocks on a
 * lock held long.
 *
 * Lines go to stderr: "pvfs-iod[812]: warning: ..." by hand, "<4>pvfs-iod: ..." under systemd
 * (JOURNAL_STREAM set); to a file, with a time in front; or to syslog. One event is one line, at
 * the layer that decides, with the peer, the operation, the tag, the ino and the error where they
 * are known.
 */
#ifndef PVFS_LOG_H
#define PVFS_LOG_H

#include "compat.h"

enum pvfs_log_level {
	PVFS_LOG_ERROR = 3,	/* syslog's numbers */
	PVFS_LOG_WARNING = 4,
	PVFS_LOG_INFO = 6,
	PVFS_LOG_DEBUG = 7,
};

/**
 * pvfs_log_init - before the first line; without it lines of INFO and above go to stderr as "pvfs"
 * @ident: program name, kept by reference
 * @level: least important level that is written
 * @file: append here instead of stderr, or NULL
 *
 * Return: 0 or -errno (@file can't be opened).
 */
int pvfs_log_init(const char *ident, enum pvfs_log_level level, const char *file);

/* From now on to syslog. @ident: kept by reference. */
void pvfs_log_to_syslog(const char *ident, enum pvfs_log_level level);

/*
 * The file that pvfs_log_init() was given was moved away: make a new one. May be called by a signal
 * handler. Return: 0, also when there is none, or -errno: the old one is written on.
 */
int pvfs_log_reopen(void);

void pvfs_log(enum pvfs_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define pvfs_error(...) pvfs_log(PVFS_LOG_ERROR, __VA_ARGS__)
#define pvfs_warn(...) pvfs_log(PVFS_LOG_WARNING, __VA_ARGS__)
#define pvfs_info(...) pvfs_log(PVFS_LOG_INFO, __VA_ARGS__)
#define pvfs_debug(...) pvfs_log(PVFS_LOG_DEBUG, __VA_ARGS__)

/*
 * For what a remote can cause: at most @burst lines per @ms for this place in the code; the next
 * line that passes says how many were left out.
 */
struct pvfs_ratelimit {
	u64 start;
	u32 seen, dropped;
};
bool pvfs_ratelimit_pass(struct pvfs_ratelimit *r, u32 burst, u32 ms);
#define pvfs_log_limited(level, ...) do { \
		static struct pvfs_ratelimit rl_; \
		if (pvfs_ratelimit_pass(&rl_, 10, 5000)) \
			pvfs_log(level, __VA_ARGS__); \
	} while (0)

#endif
