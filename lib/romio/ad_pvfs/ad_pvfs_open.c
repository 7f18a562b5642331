// SPDX-License-Identifier: LGPL-2.1
/*
 * ad_pvfs_open.c - open and close. The first process of those that open a file together looks its
 * name up, or makes it, and opens it for all of them: one message to the manager, however many they
 * are.
 */
#include "ad_pvfs.h"

/* Of each process to the first one, and what that gives to each. */
struct question {
	int err;
	struct pvfs_mount_id id;
};

struct answer {
	int err;
	struct pvfs_shared file;
};

static int flags_of(int access_mode)
{
	int flags = access_mode & ADIO_RDWR ? O_RDWR : access_mode & ADIO_WRONLY ? O_WRONLY : O_RDONLY;

	if (access_mode & ADIO_CREATE)
		flags |= O_CREAT;
	if (access_mode & ADIO_EXCL)
		flags |= O_EXCL;
	return flags;
}

static int open_name(ADIO_File fd, struct pvfs_fs *fs, const char *path,
		     const struct pvfs_mount_id *others, int n, struct pvfs_shared *given,
		     struct pvfs_file **f)
{
	struct pvfs_striping s;
	int hints = (fd->access_mode & ADIO_CREATE) && ADIOI_PVFS_Striping(fd, fs, path, &s);

	return pvfs_open_for(fs, path, flags_of(fd->access_mode),
			     fd->perm == ADIO_PERM_NULL ? 0666 : fd->perm, hints ? &s : NULL, others,
			     n, given, f);
}

/* The first process, when all have asked: opens, and fills in what each is answered. */
static void open_for_all(ADIO_File fd, struct pvfs_fs *fs, const char *path, int me, int n,
			 const struct question *q, struct answer *a, struct pvfs_file **f)
{
	struct pvfs_mount_id *id = ADIOI_Malloc(n * sizeof(*id));
	struct pvfs_shared *given = ADIOI_Malloc(n * sizeof(*given));
	int i, k, err = 0;

	for (i = k = 0; i < n; i++) {
		err = err ? err : q[i].err;
		if (i != me)
			id[k++] = q[i].id;
	}
	err = err ? err : open_name(fd, fs, path, id, n - 1, given, f);
	for (i = k = 0; i < n; i++) {
		a[i].err = err;
		if (!err && i != me)
			a[i].file = given[k++];
	}
	ADIOI_Free(id);
	ADIOI_Free(given);
}

void ADIOI_PVFS_Open(ADIO_File fd, int *error_code)
{
	static char myname[] = "ADIOI_PVFS_OPEN";
	struct ADIOI_PVFS_File *p = ADIOI_Calloc(1, sizeof(*p));
	struct question q = { 0 }, *qs = NULL;
	struct answer a = { 0 }, *as = NULL;
	struct pvfs_file *f = NULL;
	struct pvfs_fs *fs = NULL;
	struct pvfs_striping s;
	char *path = NULL;
	int rank, n, first = fd->hints->ranklist[0], err, worst;

	MPI_Comm_rank(fd->comm, &rank);
	MPI_Comm_size(fd->comm, &n);
	fd->fd_sys = -1;
	q.err = p ? ADIOI_PVFS_Volume(fd->filename, &fs, &path) : -ENOMEM;
	if (!q.err)
		q.err = pvfs_mount_id(fs, &q.id);
	if (rank == first) {
		qs = ADIOI_Calloc(n, sizeof(*qs));
		as = ADIOI_Calloc(n, sizeof(*as));
	}
	MPI_Gather(&q, sizeof(q), MPI_BYTE, qs, sizeof(q), MPI_BYTE, first, fd->comm);
	if (rank == first)
		open_for_all(fd, fs, path, rank, n, qs, as, &f);
	MPI_Scatter(as, sizeof(a), MPI_BYTE, &a, sizeof(a), MPI_BYTE, first, fd->comm);
	if (rank == first) {
		ADIOI_Free(qs);
		ADIOI_Free(as);
	}
	err = a.err;
	if (!err && !f)
		err = pvfs_open_shared(fs, &a.file, flags_of(fd->access_mode), &f);
	if (!err)
		err = pvfs_fgetlayout(f, &s);
	/* All or none: who is left alone would wait for the others in the next collective call. */
	MPI_Allreduce(&err, &worst, 1, MPI_INT, MPI_MIN, fd->comm);
	free(path);
	if (worst) {
		if (f)
			pvfs_close(f);
		ADIOI_Free(p);
		*error_code = ADIOI_Err_create_code(myname, fd->filename, -worst);
		return;
	}
	p->fs = fs;
	p->f = f;
	fd->fs_ptr = p;
	fd->blksize = s.ssize;
	ADIOI_PVFS_Striped(fd, &s);
	*error_code = MPI_SUCCESS;
}

void ADIOI_PVFS_Close(ADIO_File fd, int *error_code)
{
	static char myname[] = "ADIOI_PVFS_CLOSE";
	int err = pvfs_close(ADIOI_PVFS_file(fd));

	ADIOI_Free(fd->fs_ptr);
	fd->fs_ptr = NULL;
	*error_code = ADIOI_Err_create_code(myname, fd->filename, -err);
}
