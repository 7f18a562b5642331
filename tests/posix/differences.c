// SPDX-License-Identifier: GPL-2.0-only
/*
 * differences.c - rows that a file system may answer otherwise than the tables say, each with its
 * reason. A row that is listed must fail: one that has come to do as the tables say is taken out
 * here.
 */
#include "conform.h"
#include <fnmatch.h>

static const struct {
	const char *rows;	/* as fnmatch(3) has it */
	const char *on;
	const char *why;
} differences[] = {
	{ "rename/RENAME_WHITEOUT of directory over full-directory, *", "ext4",
	  "it writes the whiteout, finds the directory not empty and takes it back, but not the times" },
	{ "rename/RENAME_WHITEOUT of full-directory over full-directory, *", "ext4",
	  "it writes the whiteout, finds the directory not empty and takes it back, but not the times" },
	{ "rlimit/fallocate beyond it: *", "ext4", "it marks the times of the file before it looks at the limit" },
	{ "fallocate-errors/COLLAPSE_RANGE of no block: *", "ext4", "it marks the times before it looks at the range" },
	{ "fallocate-errors/COLLAPSE_RANGE beyond the end: *", "ext4", "it marks the times before it looks at the range" },
	{ "fallocate-errors/INSERT_RANGE of no block: *", "ext4", "it marks the times before it looks at the range" },
	{ "fallocate-errors/INSERT_RANGE beyond the end: *", "ext4", "it marks the times before it looks at the range" },
	{ NULL, NULL, NULL },
};

const char *difference(const char *name, const char *on)
{
	size_t i;

	for (i = 0; differences[i].rows; i++)
		if (!strcmp(differences[i].on, on) && !fnmatch(differences[i].rows, name, 0))
			return differences[i].why;
	return NULL;
}
