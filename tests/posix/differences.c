// SPDX-License-Identifier: GPL-2.0-only
/*
 * differences.c - rows that a file system may answer otherwise than the tables say, each with its reason. A row that is
 * listed must fail: one that has come to do as the tables say is taken out here.
 */
#include "conform.h"
#include <fnmatch.h>

static const struct {
	const char *rows;	/* as fnmatch(3) has it */
	const char *on;
	const char *why;
} differences[] = {
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
