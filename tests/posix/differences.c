// SPDX-License-Identifier: GPL-2.0-only
/*
 * differences.c - rows that a file system may answer otherwise than the tables say, each with its
 * reason. A row that is listed must fail: one that has come to do as the tables say is taken out.
 */
#include "conform.h"
#include <fnmatch.h>

/*
 * From 6.14 on, and in 6.12's later updates, ext4_fallocate() does what its modes have in common,
 * file_modified() too, first. It is seen when the clock has ticked since the file was last changed.
 */
#define EXT4_MARKS_FIRST "it marks the times of the file before it looks at the range"
#define EXT4_WHITEOUT "it writes the whiteout, finds the directory not empty and takes it back, but not the times, when the clock has ticked"

/* pvfsd. Bytes do not stay in the kernel, or other clients would not be seen to write. */
#define LIBFUSE "libfuse 3.14 has no call for it"
#define NO_MAPPING "FUSE has no shared mappings of files whose bytes do not stay in the kernel"
#define NO_READ "a program is read as any file, and has to be readable"

static const struct {
	const char *rows;	/* as fnmatch(3) has it */
	const char *on;
	const char *why;
	int major, minor;	/* kernels from there on; 0: all */
	bool luck;		/* it may also do as the tables say */
} differences[] = {
	{ "rename/RENAME_WHITEOUT of directory over full-directory, *", "ext4", EXT4_WHITEOUT, .luck = true },
	{ "rename/RENAME_WHITEOUT of full-directory over full-directory, *", "ext4", EXT4_WHITEOUT, .luck = true },
	{ "rlimit/fallocate beyond it: *", "ext4", EXT4_MARKS_FIRST, 6, 12, true },
	{ "fallocate-errors/COLLAPSE_RANGE of no block: *", "ext4", EXT4_MARKS_FIRST, 6, 12, true },
	{ "fallocate-errors/COLLAPSE_RANGE beyond the end: *", "ext4", EXT4_MARKS_FIRST, 6, 12, true },
	{ "fallocate-errors/INSERT_RANGE of no block: *", "ext4", EXT4_MARKS_FIRST, 6, 12, true },
	{ "fallocate-errors/INSERT_RANGE beyond the end: *", "ext4", EXT4_MARKS_FIRST, 6, 12, true },
	{ "perm/*, setxattr security by *: EPERM", "ext4", "Debian's 6.1 lets owners set a name that no LSM claims",
	  .luck = true },
	{ "*O_TMPFILE*", "fuse", LIBFUSE, .luck = true },
	{ "tmpfile/*", "fuse", LIBFUSE, .luck = true },
	{ "nameless/a mapping of it", "fuse", NO_MAPPING },
	{ "statx/STATX_BTIME, *", "fuse", LIBFUSE },
	{ "mmap/*", "fuse", NO_MAPPING, .luck = true },
	{ "times/a store to a mapping *", "fuse", NO_MAPPING, .luck = true },
	{ "set-id/a store by one who is not root*", "fuse", NO_MAPPING },
	{ "perm/file *, execve by *: ENOEXEC", "fuse", NO_READ, .luck = true },
	{ NULL },
};

const char *difference(const char *name, const char *on, bool *luck)
{
	size_t i;

	for (i = 0; differences[i].rows; i++)
		if (!fnmatch(differences[i].on, on, 0) && !fnmatch(differences[i].rows, name, 0) &&
		    kernel_from(differences[i].major, differences[i].minor))
		{
			*luck = differences[i].luck;
			return differences[i].why;
		}
	return NULL;
}
