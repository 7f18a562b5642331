/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * api.h - the interfaces that a benchmark can use. What fails, ends all processes with a message,
 * and so does a read or a write that is short. Names are those of files in the directory that the
 * program was given.
 */
#ifndef PBENCH_API_H
#define PBENCH_API_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A tile of an array in a file, in elements, rows first. */
struct tile {
	int array[2], sub[2], start[2];
	long element;		/* bytes */
	off_t header;		/* bytes before the array */
};

/* How the rows of a tile are moved. */
enum how {
	LIST,		/* as a list, in one call */
	PIECES,		/* each by itself */
	COLLECTIVE,	/* all processes together */
	HOWS
};
extern const char *const how_name[HOWS];

/* An open file, of whichever interface. */
struct file {
	char name[128];
	enum how how;
	const struct tile *tile;
	union {
		int fd;
		struct pvfs_file *lib;
		void *mpi;
	};
};

/**
 * struct api - an interface
 * @can: the ways it can move a tile
 * @open: @flags as open(2); @all: all processes open it together, else this one alone
 * @view: before @tile_write and @tile_read, which move the whole tile
 * @size: of the file of that name
 * @mkdir: @mkdir and @rmdir by one process only
 * @messages: data messages to I/O daemons so far, of this process; -1: it cannot tell
 */
struct api {
	const char *name;
	bool can[HOWS];
	void (*begin)(void);
	void (*end)(void);
	struct file *(*open)(const char *name, int flags, bool all, enum how how);
	void (*close)(struct file *f);
	void (*write)(struct file *f, const void *buf, size_t n, off_t off);
	void (*read)(struct file *f, void *buf, size_t n, off_t off);
	void (*sync)(struct file *f);
	void (*view)(struct file *f, const struct tile *t);
	void (*tile_write)(struct file *f, const void *buf);
	void (*tile_read)(struct file *f, void *buf);
	off_t (*size)(const char *name);
	void (*remove)(const char *name);
	void (*mkdir)(const char *name);
	void (*rmdir)(const char *name);
	long (*messages)(void);
};
extern const struct api api_mpi, api_lib, api_posix;

/* What the interfaces share. */
const char *path_of(const char *dir, const char *name);	/* good until the next call */
off_t row_offset(const struct tile *t, int row);
size_t row_length(const struct tile *t);

struct file *new_file(const char *name, enum how how);
/* Whether @name says, as ROMIO's driver has it, "pvfs:HOST:PORT:/VOLUME...". */
bool names_volume(const char *name);

#endif
