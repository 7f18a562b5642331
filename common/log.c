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
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

static const char *log_ident = "pvfs";
static enum pvfs_log_level log_level = PVFS_LOG_INFO;
static int log_fd = STDERR_FILENO;
static bool log_syslog;
static char log_path[4096];	/* absolute: daemons change their directory */
static bool log_stderr;		/* standard error is the same file */

/* Is standard error the file that @st is of? */
static bool is_stderr(const struct stat *st)
{
	struct stat err;

	return !fstat(STDERR_FILENO, &err) && err.st_dev == st->st_dev && err.st_ino == st->st_ino;
}

int pvfs_log_init(const char *ident, enum pvfs_log_level level, const char *file)
{
	char dir[2048] = "", path[sizeof(log_path)];
	struct stat st;
	int fd;

	log_ident = ident;
	log_level = level;
	if (!file)
		return 0;
	if (*file != '/' && !getcwd(dir, sizeof(dir)))
		return -errno;
	if (snprintf(path, sizeof(path), "%s%s%s", dir, *dir ? "/" : "", file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	log_stderr = !fstat(fd, &st) && is_stderr(&st);
	if (log_fd != STDERR_FILENO)
		close(log_fd);
	log_fd = fd;
	strcpy(log_path, path);
	return 0;
}

void pvfs_log_to_syslog(const char *ident, enum pvfs_log_level level)
{
	log_ident = ident;
	log_level = level;
	openlog(ident, LOG_PID, LOG_DAEMON);
	log_syslog = true;
}

int pvfs_log_reopen(void)
{
	int fd, saved = errno, err = 0;

	if (!*log_path)
		return 0;
	fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	/* In one step: other threads are writing. */
	if (fd < 0 || dup3(fd, log_fd, O_CLOEXEC) < 0 ||
	    (log_stderr && dup2(fd, STDERR_FILENO) < 0))
		err = -errno;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return err;
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
	if (log_syslog) {
		n = 0;
	} else if (log_fd != STDERR_FILENO) {
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
	if (log_syslog) {
		line[n] = '\0';
		syslog(level, "%s", line);
		errno = saved;
		return;
	}
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
