// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * log.c - one line of text to whoever runs a daemon; see log.h.
 */
#include "log.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *log_ident = "pvfs";
static enum pvfs_log_level log_level = PVFS_LOG_INFO;
static int log_fd = STDERR_FILENO;

int pvfs_log_init(const char *ident, enum pvfs_log_level level, const char *file)
{
	int fd;

	log_ident = ident;
	log_level = level;
	if (!file)
		return 0;
	fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	if (log_fd != STDERR_FILENO)
		close(log_fd);
	log_fd = fd;
	return 0;
}

static const char *level_name(enum pvfs_log_level level)
{
	switch (level) {
	case PVFS_LOG_ERROR:
		return "error: ";
	case PVFS_LOG_WARNING:
		return "warning: ";
	case PVFS_LOG_DEBUG:
		return "debug: ";
	default:
		return "";
	}
}

void pvfs_log(enum pvfs_log_level level, const char *fmt, ...)
{
	int saved = errno, n = 0, m;
	char line[1024];
	va_list ap;

	if (level > log_level)
		return;
	if (log_fd != STDERR_FILENO) {
		struct timespec ts;
		struct tm tm;

		clock_gettime(CLOCK_REALTIME, &ts);
		localtime_r(&ts.tv_sec, &tm);
		n = strftime(line, 32, "%F %T", &tm);
		n += snprintf(line + n, sizeof(line) - n, ".%03ld %s[%d]: %s", ts.tv_nsec / 1000000,
			      log_ident, (int)getpid(), level_name(level));
	} else if (getenv("JOURNAL_STREAM")) {
		n = snprintf(line, sizeof(line), "<%d>%s: ", level, log_ident);
	} else {
		n = snprintf(line, sizeof(line), "%s[%d]: %s", log_ident, (int)getpid(),
			     level_name(level));
	}
	va_start(ap, fmt);
	m = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	n = min(n + max(m, 0), (int)sizeof(line) - 2);
	line[n++] = '\n';
	if (write(log_fd, line, n) < 0)
		n = 0;	/* nowhere left to say so */
	errno = saved;
}

bool pvfs_ratelimit_pass(struct pvfs_ratelimit *r, u32 burst, u32 ms)
{
	/* protects every limit's fields */
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct timespec ts;
	u32 dropped = 0;
	bool pass;
	u64 now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
	pthread_mutex_lock(&lock);
	if (!r->start || now - r->start >= ms) {
		r->start = now;
		r->seen = 0;
	}
	pass = r->seen++ < burst;
	if (pass) {
		dropped = r->dropped;
		r->dropped = 0;
	} else {
		r->dropped++;
	}
	pthread_mutex_unlock(&lock);
	if (dropped)
		pvfs_log(PVFS_LOG_WARNING, "%u lines like the next were left out", dropped);
	return pass;
}
