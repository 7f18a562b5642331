// SPDX-License-Identifier: GPL-2.0-only
/*
 * coherence_files.c - what the workers of coherence do with the blocks of the files: in one call of many
 * kinds, buffered, direct and synchronous, by copy_file_range from a file of the worker's own, through
 * mappings; and truncate, extend and punch them. On a side that is another machine only what far.h has.
 *
 * What the file system does not have is found out at the start, and said; then the plain way is taken.
 */
#include "coherence.h"
#include <linux/falloc.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

enum { DIRECT, COPY, MAPPING, SPACE, NKINDS };
static bool lacks[NKINDS];

#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define ZERO (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE)

static unsigned char block_mem[CO_BLOCK] __attribute__((aligned(CO_BLOCK)));
static int source_fd = -1;		/* the worker's own file */
/* the files, mapped by a descriptor that may only read, for as long as a round lasts; or NULL */
static void *looked_at[CO_FILES];

static off_t where(int block)
{
	return (off_t)block * CO_STRIDE;
}

/* One in @n, where the calls can be made here, and the file system has them. */
static bool some(int kind, unsigned int n)
{
	return rnd_one_in(&co.rnd, n) && !co.at && !lacks[kind];
}

static void probed(int kind, const char *what, bool failed)
{
	if (failed && errno != EOPNOTSUPP && errno != EINVAL && errno != ENODEV)
		rnd_die("%s: %s", what, strerror(errno));
	if (failed && !lacks[kind])
		printf("# LEFT OUT: %s: %s\n", what, strerror(errno));
	lacks[kind] |= failed;
}

void co_files_probe(const char *dir)
{
	loff_t from = 0, to = CO_BLOCK;
	char path[500];
	int fd, direct;
	void *p;

	snprintf(path, sizeof(path), "%s/probe", dir);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0644);
	if (fd < 0 || pwrite(fd, block_mem, CO_BLOCK, 0) != CO_BLOCK)
		rnd_die("%s: %s", path, strerror(errno));
	direct = open(path, O_RDWR | O_DIRECT);
	probed(DIRECT, "direct calls", direct < 0);
	if (direct >= 0)
		close(direct);
	probed(COPY, "copy_file_range", copy_file_range(fd, &from, fd, &to, CO_BLOCK, 0) < 0);
	probed(SPACE, "fallocate", fallocate(fd, 0, 0, CO_BLOCK) < 0);
	probed(SPACE, "punching of holes", fallocate(fd, PUNCH, 0, CO_BLOCK) < 0);
	probed(SPACE, "ranges of zeros", fallocate(fd, ZERO, 0, CO_BLOCK) < 0);
	p = mmap(NULL, CO_BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	probed(MAPPING, "shared mappings", p == MAP_FAILED);
	if (p != MAP_FAILED)
		munmap(p, CO_BLOCK);
	close(fd);
	unlink(path);
}

/* Another descriptor, for one call. */
static int open_again(int file, int flags)
{
	char name[8];
	int fd;

	snprintf(name, sizeof(name), "f%d", file);
	fd = far_openat(co.at, co.dir_fd, name, flags, 0);
	if (fd < 0)
		co_broken("open");
	return fd;
}

/* ------------------------------------------------------------------ mappings */

static sigjmp_buf beyond;

static void on_bus(int sig)
{
	siglongjmp(beyond, 1);
}

/* A block of a file, opened (@flags) and mapped for one operation. Return: it, or NULL. */
static volatile uint64_t *map_block(int file, int block, int flags, int prot)
{
	int fd = open_again(file, flags);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, CO_BLOCK, prot, MAP_SHARED, fd, where(block));

	if (p == MAP_FAILED)
		co_broken("mmap");
	if (fd >= 0)
		close(fd);
	signal(SIGBUS, on_bus);
	return p == MAP_FAILED ? NULL : p;
}

static void unmap_block(volatile uint64_t *p)
{
	signal(SIGBUS, SIG_DFL);
	if (munmap((void *)p, CO_BLOCK))
		co_broken("munmap");
}

/* The same, which stays. */
static volatile uint64_t *look_at_block(int file, int block)
{
	int fd;

	if (!looked_at[file]) {
		fd = open_again(file, O_RDONLY);
		looked_at[file] = mmap(NULL, CO_BLOCKS * CO_STRIDE, PROT_READ, MAP_SHARED, fd, 0);
		if (looked_at[file] == MAP_FAILED) {
			co_broken("mmap");
			looked_at[file] = NULL;
		}
		if (fd >= 0)
			close(fd);
	}
	signal(SIGBUS, on_bus);
	return looked_at[file] ? (uint64_t *)((char *)looked_at[file] + where(block)) : NULL;
}

static void read_mapping(int file, int block)
{
	bool stays = rnd_one_in(&co.rnd, 2), may_store = rnd_one_in(&co.rnd, 2);
	struct co_rec *r = co_start(CO_READ, file, block, 0);
	volatile uint64_t *p = stays ? look_at_block(file, block) :
				       map_block(file, block, may_store ? O_RDWR : O_RDONLY, PROT_READ);

	if (!p)
		return;
	if (!sigsetjmp(beyond, 1)) {
		r->first = p[0];
		r->last = p[CO_BLOCK / 8 - 1];
		r->result = CO_BLOCK;
	} else {
		r->result = 0;
	}
	co_end(r);
	if (stays)
		signal(SIGBUS, SIG_DFL);
	else
		unmap_block(p);
}

static void store_mapping(int file, int block)
{
	struct co_rec *r = co_start(CO_STORE, file, block, co_version());
	volatile uint64_t *p = map_block(file, block, O_RDWR, PROT_READ | PROT_WRITE);
	volatile int i;

	if (!p)
		return;
	if (!sigsetjmp(beyond, 1))
		for (i = 0; i < CO_BLOCK / 8; i++)
			p[i] = r->b;
	if (msync((void *)p, CO_BLOCK, MS_SYNC))
		co_broken("msync");
	unmap_block(p);
	co_end(r);
}

/* ------------------------------------------------------------------ blocks */

/* From a file that nobody else knows; it may be there in the page cache only. Return: as pwrite. */
static ssize_t copy_block(int fd, int block)
{
	loff_t from = 0, to = where(block);
	char name[16];
	ssize_t n;

	if (source_fd < 0) {
		snprintf(name, sizeof(name), "source%d", co.me);
		source_fd = openat(co.dir_fd, name, O_RDWR | O_CREAT, 0644);
	}
	if (source_fd < 0 || pwrite(source_fd, block_mem, CO_BLOCK, 0) != CO_BLOCK) {
		co_broken("the file that is to be copied");
		return CO_BLOCK;
	}
	do {
		n = copy_file_range(source_fd, &from, fd, &to, CO_BLOCK - from, 0);
	} while (n > 0 && from < CO_BLOCK);
	return from ? from : n;
}

static void do_write(int file, int block, bool anew)
{
	uint64_t *word = (uint64_t *)block_mem, v = co_version();
	int fd = co.file_fd[file], flags = O_WRONLY, i;
	bool copy = some(COPY, 8), direct = !copy && some(DIRECT, 6);
	struct co_rec *r;
	ssize_t n;

	if (direct)
		flags |= O_DIRECT;
	else if (!copy && rnd_one_in(&co.rnd, 8))
		flags |= O_DSYNC;
	anew |= co.shut || flags != O_WRONLY;
	if (anew)
		fd = open_again(file, flags);
	for (i = 0; i < CO_BLOCK / 8; i++)
		word[i] = v;
	r = co_start(CO_WRITE, file, block, v);
	n = copy ? copy_block(fd, block) : far_pwrite(co.at, fd, block_mem, CO_BLOCK, where(block));
	co_end(r);
	if (n != CO_BLOCK)
		co_broken(copy ? "copy_file_range" : "write");
	if (anew)
		far_close(co.at, fd);
}

static void do_read(int file, int block, bool anew)
{
	uint64_t *word = (uint64_t *)block_mem;
	bool direct = some(DIRECT, 6);
	int fd = co.file_fd[file];
	struct co_rec *r;

	if (co.mapped && !direct && some(MAPPING, 4)) {
		read_mapping(file, block);
		return;
	}
	r = co_start(CO_READ, file, block, 0);
	anew |= direct;
	if (anew)
		fd = open_again(file, O_RDONLY | (direct ? O_DIRECT : 0));
	r->result = far_pread(co.at, fd, block_mem, CO_BLOCK, where(block));
	co_end(r);
	if (r->result < 0)
		co_broken("read");
	if (anew)
		far_close(co.at, fd);
	r->first = word[0];
	r->last = word[CO_BLOCK / 8 - 1];
}

/* ------------------------------------------------------------------ space */

static void do_truncate(int file, int blocks)
{
	bool by_open = !blocks && rnd_one_in(&co.rnd, 2);
	int fd = co.shut ? open_again(file, O_WRONLY) : co.file_fd[file], err;
	struct co_rec *r = co_start(CO_TRUNC, file, where(blocks), 0);

	if (by_open) {
		err = open_again(file, O_WRONLY | O_TRUNC);
		if (err >= 0)
			err = far_close(co.at, err);
	} else {
		err = far_ftruncate(co.at, fd, where(blocks));
	}
	co_end(r);
	if (err < 0)
		co_broken("truncate");
	if (co.shut)
		far_close(co.at, fd);
}

static void do_space(int file, int block)
{
	static const int modes[] = { 0, PUNCH, ZERO };
	int mode = modes[rnd_below(&co.rnd, 3)];
	int fd = co.shut ? open_again(file, O_WRONLY) : co.file_fd[file], err;
	struct co_rec *r = co_start(mode ? CO_ZERO : CO_EXTEND, file, block, 0);

	err = fallocate(fd, mode, where(block), CO_BLOCK);
	co_end(r);
	if (err < 0)
		co_broken("fallocate");
	if (co.shut)
		close(fd);
}

static void do_stat(int file, bool by_name)
{
	struct co_rec *r;
	struct stat st;
	char name[8];
	int err;

	snprintf(name, sizeof(name), "f%d", file);
	r = co_start(CO_FSTAT, file, 0, 0);
	err = by_name ? far_fstatat(co.at, co.dir_fd, name, &st, 0) : far_fstat(co.at, co.file_fd[file], &st);
	r->result = st.st_size;
	co_end(r);
	if (err < 0)
		co_broken("stat");
}

void co_files_op(void)
{
	int file = rnd_below(&co.rnd, CO_FILES), block = rnd_below(&co.rnd, CO_BLOCKS);

	if (co.shut && !rnd_one_in(&co.rnd, 3)) {
		do_read(file, block, rnd_one_in(&co.rnd, 2));
		return;
	}
	switch (rnd_below(&co.rnd, 12)) {
	case 0:
		if (some(SPACE, 2))
			do_space(file, block);
		else
			do_truncate(file, rnd_below(&co.rnd, CO_BLOCKS + 1));
		break;
	case 1:
	case 2:
		do_stat(file, rnd_one_in(&co.rnd, 2));
		break;
	case 3:
	case 4:
	case 5:
	case 6:
		if (co.mapped && some(MAPPING, 4))
			store_mapping(file, block);
		else
			do_write(file, block, rnd_one_in(&co.rnd, 3));
		break;
	default:
		do_read(file, block, rnd_one_in(&co.rnd, 3));
	}
}

void co_files_look(int file)
{
	int block;

	do_stat(file, false);
	for (block = 0; block < CO_BLOCKS; block++)
		do_read(file, block, false);
}

void co_files_end(void)
{
	int i;

	for (i = 0; i < CO_FILES; i++) {
		if (looked_at[i])
			munmap(looked_at[i], CO_BLOCKS * CO_STRIDE);
		looked_at[i] = NULL;
	}
	if (source_fd >= 0)
		close(source_fd);
	source_fd = -1;
}
