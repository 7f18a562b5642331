// SPDX-License-Identifier: GPL-2.0
/*
 * resume.c - going on with a copy that was interrupted.
 *
 * While a large file is copied, a note lies beside the copy: ".NAME.pvfs-resume". It says of which
 * source (inode, size, time of last change) how many bytes from the start are good; it is renewed
 * only after those bytes were synced, and replaced in one step. `cp --resume` believes it when the
 * source is still the same, the copy has that many bytes, and the last of them, up to 1 MiB, are
 * equal to the source's. The copy is cut there, and goes on from there.
 */
#include "cp.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define TAIL (1u << 20)		/* bytes that are compared */
#define SUFFIX ".pvfs-resume"

void resume_init(struct resume *r, const char *target)
{
	const char *name = strrchr(target, '/');

	name = name ? name + 1 : target;
	*r = (struct resume){ 0 };
	/* ".new" is added while it is written. */
	if (strlen(name) + strlen(SUFFIX) + 5 > PVFS_NAME_MAX ||
	    strlen(target) + 32 > sizeof(r->path))
		return;
	snprintf(r->path, sizeof(r->path), "%.*s.%s" SUFFIX, (int)(name - target), target, name);
}

static int note_text(const struct stat *src, off_t done, char *buf, size_t n)
{
	return snprintf(buf, n, "pvfs-resume 1\nino %llu\nsize %lld\nmtime %lld.%09ld\ndone %lld\n",
			(unsigned long long)src->st_ino, (long long)src->st_size,
			(long long)src->st_mtim.tv_sec, src->st_mtim.tv_nsec, (long long)done);
}

/**
 * resume_write - note that @done bytes are good
 *
 * The caller has synced them.
 */
int resume_write(struct resume *r, struct end e, const struct stat *src, off_t done)
{
	char tmp[sizeof(r->path) + 8], text[256];
	struct end_file f;
	ssize_t n;
	int err, cerr;

	if (!*r->path)
		return 0;
	snprintf(tmp, sizeof(tmp), "%s.new", r->path);
	err = end_open(e, tmp, O_WRONLY | O_CREAT | O_TRUNC, 0600, &f);
	if (err)
		return err;
	n = end_pwrite(&f, text, note_text(src, done, text, sizeof(text)), 0);
	err = n < 0 ? (int)n : end_fsync(&f);
	cerr = end_close(&f);
	err = err ?: cerr ?: end_rename(e, tmp, r->path);
	if (err)
		end_unlink(e, tmp);
	else
		r->exists = true;
	return err;
}

static bool same_tail(struct end_file *from, struct end_file *to, off_t done)
{
	size_t n = done < TAIL ? done : TAIL;
	char *a = malloc(TAIL), *b = malloc(TAIL);
	bool same = a && b && end_pread(from, a, n, done - n) == (ssize_t)n &&
		    end_pread(to, b, n, done - n) == (ssize_t)n && !memcmp(a, b, n);

	free(a);
	free(b);
	return same;
}

/**
 * resume_find - how much of an earlier copy is good
 * @src: the source now
 * @from: it, open
 * @to: the copy, open for reading and writing
 * @ret_why: why not, when 0 is returned
 *
 * Return: bytes from the start.
 */
off_t resume_find(struct resume *r, struct end e, const struct stat *src, struct end_file *from,
		  struct end_file *to, const char **ret_why)
{
	char text[257] = "", want[256];
	long long done = -1;
	struct end_file f;
	struct stat st;
	const char *p;
	ssize_t n = -1;

	*ret_why = "there is no note of an earlier copy";
	if (!*r->path || end_open(e, r->path, O_RDONLY, 0, &f))
		return 0;
	r->exists = true;
	n = end_pread(&f, text, sizeof(text) - 1, 0);
	end_close(&f);
	*ret_why = "the note of the earlier copy can't be read";
	if (n <= 0)
		return 0;
	text[n] = '\0';
	p = strstr(text, "\ndone ");
	if (!p || sscanf(p, "\ndone %lld\n", &done) != 1 || done < 0 || done > src->st_size)
		return 0;
	*ret_why = "the source is not what it was at the earlier copy";
	note_text(src, done, want, sizeof(want));
	if (strcmp(text, want))
		return 0;
	*ret_why = "the copy was changed since";
	if (end_fstat(to, &st) || st.st_size < done || !same_tail(from, to, done))
		return 0;
	return done;
}

void resume_remove(struct resume *r, struct end e)
{
	if (r->exists)
		end_unlink(e, r->path);
	r->exists = false;
}
