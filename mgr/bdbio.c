// SPDX-License-Identifier: GPL-2.0
/*
 * bdbio.c - see bdbio.h.
 *
 * The library calls open, close, pread and lseek through pointers that a program may set. A pread
 * that fails it repeats as lseek and read: so the lseek that follows on the same thread fails too,
 * and that error it hands up, as any error of the disk. It does not read pages in other ways; the
 * first 512 bytes of a file, which it reads when it opens it, have a checksum that it takes well.
 */
#include "bdbio.h"
#include "bdbpage.h"
#include "../common/log.h"
#include <db.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 256u	/* the library keeps one descriptor of a table, or two */
#define SAID 256u	/* damaged pages that the log tells of once */

static struct {
	_Atomic int fd;		/* + 1; 0: unused */
	char path[4200];	/* of the table; written before fd is */
} files[FILES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* protects the next two, and entering a file */
static u64 said[SAID];	/* hashes of path and page */
static u32 nsaid;
static atomic_ullong damaged;

static _Thread_local bool recovering, refuse_seek, refused;
static _Thread_local u32 stand_ins;

static const char *path_of(int fd)
{
	u32 i;

	for (i = 0; i < FILES; i++)
		if (atomic_load_explicit(&files[i].fd, memory_order_acquire) == fd + 1)
			return files[i].path;
	return NULL;
}

static bool first_time(const char *path, u32 pgno)
{
	u64 h = pgno * 0x9e3779b97f4a7c15ull + 1;
	bool ret;
	u32 i;

	while (*path)
		h = (h ^ (u8)*path++) * 0x100000001b3ull;
	pthread_mutex_lock(&lock);
	for (i = 0; i < min(nsaid, SAID) && said[i] != h; i++)
		;
	ret = i == min(nsaid, SAID);
	if (ret)
		said[nsaid++ % SAID] = h;
	pthread_mutex_unlock(&lock);
	return ret;
}

static void tell(const char *path, u32 pgno, bool is_short)
{
	if (!first_time(path, pgno))
		return;
	atomic_fetch_add(&damaged, 1);
	pvfs_error("%s: page %u is damaged (%s): what is on it can't be read; see --salvage in pvfs-mgr(8)",
		   path, pgno, is_short ? "the file ends in it" : "its checksum is wrong");
}

static int io_open(const char *path, int flags, ...)
{
	size_t n = strlen(path);
	va_list ap;
	int fd, mode;
	u32 i;

	va_start(ap, flags);
	mode = va_arg(ap, int);
	va_end(ap);
	fd = open(path, flags, mode);
	if (fd < 0 || n < 3 || strcmp(path + n - 3, ".db"))
		return fd;
	pthread_mutex_lock(&lock);
	for (i = 0; i < FILES && atomic_load(&files[i].fd); i++)
		;
	if (i < FILES) {
		snprintf(files[i].path, sizeof(files[i].path), "%s", path);
		atomic_store_explicit(&files[i].fd, fd + 1, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	if (i < FILES)
		return fd;
	close(fd);
	errno = EMFILE;		/* rather than pages that nobody looks at */
	return -1;
}

static int io_close(int fd)
{
	u32 i;

	for (i = 0; i < FILES; i++)
		if (atomic_load(&files[i].fd) == fd + 1)
			atomic_store(&files[i].fd, 0);
	return close(fd);
}

static ssize_t io_pread(int fd, void *buf, size_t len, off_t off)
{
	u32 pgno = off / BDB_PAGE;
	const char *path;
	ssize_t n;

	do {
		n = pread(fd, buf, len, off);
	} while (n < 0 && errno == EINTR);
	if (n < 0 || !n || len != BDB_PAGE || off % BDB_PAGE)
		return n;
	path = path_of(fd);
	if (!path || (n == BDB_PAGE && bdb_page_sound(buf, pgno)))
		return n;
	tell(path, pgno, n < BDB_PAGE);
	if (recovering && pgno) {
		bdb_page_stand_in(buf, pgno);
		stand_ins++;
		return BDB_PAGE;
	}
	refuse_seek = refused = true;
	errno = EIO;
	return -1;
}

/* Return: 0 or an error number, as the library wants it. */
static int io_seek(int fd, off_t off, int whence)
{
	if (refuse_seek) {
		refuse_seek = false;
		return EIO;
	}
	return lseek(fd, off, whence) < 0 ? errno : 0;
}

void bdbio_install(void)
{
	db_env_set_func_open(io_open);
	db_env_set_func_close(io_close);
	db_env_set_func_pread(io_pread);
	db_env_set_func_seek(io_seek);
}

u32 bdbio_recovery(bool begin)
{
	u32 n = stand_ins;

	recovering = begin;
	stand_ins = 0;
	return n;
}

bool bdbio_refused(void)
{
	bool ret = refused;

	refused = false;
	return ret;
}

u64 bdbio_damaged(void)
{
	return atomic_load(&damaged);
}

int bdbio_check_file(const char *path, bool whole)
{
	u8 page[BDB_PAGE];
	ssize_t n = 0;
	u32 pgno = 0;
	int fd, err = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		n = pread(fd, page, sizeof(page), (off_t)pgno * BDB_PAGE);
		if (n < 0) {
			err = -errno;
			pvfs_error("%s: page %u: %s", path, pgno, strerror(errno));
		} else if (n && (n != BDB_PAGE || !bdb_page_sound(page, pgno))) {
			err = -EUCLEAN;
			tell(path, pgno, n < BDB_PAGE);
		}
		pgno++;
	} while (whole && n > 0);
	close(fd);
	return err;
}
