// SPDX-License-Identifier: GPL-2.0
/* bdbfiles.c - see bdbfiles.h. */
#include "bdbfiles.h"
#include "bdbpage.h"
#include "../common/log.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where it is about rights nothing is wrong with the store, and nothing is gained by another one. */
static int tell(const char *path, int err)
{
	char user[48];
	struct passwd *pw;

	if (err != EACCES) {
		pvfs_error("%s: can't be opened: %s%s", path, strerror(err), err == EIO || err == EUCLEAN ?
			   "; restore the store from a backup, or get out what is readable with pvfs-mgr --salvage" : "");
		return -err;
	}
	pw = getpwuid(geteuid());
	if (pw)
		snprintf(user, sizeof(user), "%s", pw->pw_name);
	else
		snprintf(user, sizeof(user), "%u", geteuid());
	pvfs_error("%s: %s: all files of the store must belong to the user that the manager runs as, here %s: chown -R",
		   path, strerror(err), user);
	return -err;
}

static bool is_ours(const char *name, bool *ret_log)
{
	size_t n = strlen(name);

	*ret_log = !strncmp(name, "log.", 4);
	return *ret_log || (n > 3 && !strcmp(name + n - 3, ".db"));
}

int bdbfiles_check_access(const char *dir, u32 *ret_logs)
{
	char path[4400];
	struct dirent *d;
	bool is_log;
	u32 logs = 0;
	int fd, err = 0;
	DIR *dp;

	if (ret_logs)
		*ret_logs = 0;
	dp = opendir(dir);
	if (!dp)
		return errno == ENOENT ? 0 : tell(dir, errno);
	if (faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS))
		err = tell(dir, errno);
	while (!err && (d = readdir(dp))) {
		if (!is_ours(d->d_name, &is_log))
			continue;
		logs += is_log;
		snprintf(path, sizeof(path), "%s/%s", dir, d->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			close(fd);
		else
			err = tell(path, errno);
	}
	closedir(dp);
	if (ret_logs)
		*ret_logs = logs;
	return err;
}

/* Return: 0; -ENOENT: no table, or none whose first page is sound, which others tell of; or -errno. */
static int first_page(const char *path, u8 page[BDB_PAGE], u64 *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : tell(path, errno);
	if (fstat(fd, &st))
		err = -errno;
	else if (pread(fd, page, BDB_PAGE, 0) != BDB_PAGE || !bdb_page_sound(page, 0) ||
		 bdb_page_type(page) != BDB_PAGE_META)
		err = -ENOENT;
	else
		*ret_size = st.st_size;
	close(fd);
	return err;
}

int bdbfiles_check_length(const char *path, bool advise)
{
	u64 pages, want, size = 0;
	u8 page[BDB_PAGE];
	int err = first_page(path, page, &size);

	if (err)
		return err == -ENOENT ? 0 : err;
	pages = size / BDB_PAGE;
	want = (u64)bdb_meta_last(page) + 1;
	if (pages >= want)
		return 0;
	pvfs_error("%s: ends after page %llu, %llu bytes short: it was cut off%s", path,
		   (unsigned long long)pages - 1, (unsigned long long)(want - pages) * BDB_PAGE, !advise ? "" :
		   "; restore the store from a backup, or get out what is readable with pvfs-mgr --salvage");
	return -EUCLEAN;
}

int bdbfiles_check_log(const char *path, u64 end)
{
	u8 page[BDB_PAGE];
	u64 lsn, size = 0;
	int err = first_page(path, page, &size);

	if (err)
		return err == -ENOENT ? 0 : err;
	lsn = bdb_page_lsn(page);
	if (lsn < end)
		return 0;
	pvfs_error("%s: was last changed at %u/%u of the log, which ends at %u/%u: the log (log.*) is older than the tables, or not theirs; put the right one back, or restore the store from a backup, or get out what is readable with pvfs-mgr --salvage",
		   path, (u32)(lsn >> 32), (u32)lsn, (u32)(end >> 32), (u32)end);
	return -ESTALE;
}
