// SPDX-License-Identifier: GPL-2.0
/*
 * layout.c - the attribute pvfs.layout of files and directories, as the module has it:
 * "base=0 pcount=4 ssize=65536 stuff_max=16384". It is not listed, and what is not given when it
 * is set stays as it is.
 */
#include "pvfsd.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define TEXT_MAX 96

static int layout_of(const struct pvfs_fh *fh, struct pvfs_striping *ret)
{
	struct pvfs_stat st;
	int err = pvfs_stat_fh(fs, fh, &st);

	if (!err && !S_ISREG(st.st.st_mode) && !S_ISDIR(st.st.st_mode))
		err = -ENODATA;
	if (!err)
		*ret = st.striping;
	return err;
}

ssize_t layout_get(const struct pvfs_fh *fh, char *buf, size_t size)
{
	char text[TEXT_MAX], base[16] = "any";
	struct pvfs_striping s;
	int n, err = layout_of(fh, &s);

	if (err)
		return err;
	if (s.base != PVFS_BASE_ANY)
		snprintf(base, sizeof(base), "%u", s.base);
	n = snprintf(text, sizeof(text), "base=%s pcount=%u ssize=%u stuff_max=%u", base, s.pcount,
		     s.ssize, s.stuff_max);
	if (size && (size_t)n > size)
		return -ERANGE;
	if (size)
		memcpy(buf, text, n);
	return n;
}

static int number(const char *text, unsigned long max, unsigned long *ret)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*ret = strtoul(text, &end, 0);
	return errno || *end || *ret > max ? -EINVAL : 0;
}

/* One "key=value". */
static int parse_word(struct pvfs_striping *s, const char *word)
{
	unsigned long v;

	if (!strcmp(word, "base=any")) {
		s->base = PVFS_BASE_ANY;
	} else if (!strncmp(word, "base=", 5) && !number(word + 5, PVFS_BASE_ANY - 1, &v)) {
		s->base = v;
	} else if (!strncmp(word, "pcount=", 7) && !number(word + 7, UINT16_MAX, &v)) {
		s->pcount = v;
	} else if (!strncmp(word, "ssize=", 6) && !number(word + 6, UINT32_MAX, &v)) {
		s->ssize = v;
	} else if (!strncmp(word, "stuff_max=", 10) && !number(word + 10, UINT32_MAX - 2, &v)) {
		s->stuff_max = v ? v : PVFS_STUFF_NONE;
	} else {
		return -EINVAL;
	}
	return 0;
}

int layout_set(const struct pvfs_fh *fh, const char *value, size_t size, int flags)
{
	char text[TEXT_MAX], *word, *save = NULL;
	struct pvfs_striping s;
	int err = layout_of(fh, &s);

	if (err)
		return err == -ENODATA ? -EOPNOTSUPP : err;
	if (flags & XATTR_CREATE)
		return -EEXIST;
	if (size >= sizeof(text))
		return -EINVAL;
	memcpy(text, value, size);
	text[size] = '\0';
	s.stuff_max = 0;	/* to libpvfs: as it is */
	for (word = strtok_r(text, "\n ", &save); word; word = strtok_r(NULL, "\n ", &save)) {
		err = parse_word(&s, word);
		if (err)
			return err;
	}
	return pvfs_setlayout_fh(fs, fh, &s);
}
