// SPDX-License-Identifier: LGPL-2.1
/*
 * ad_pvfs_open.c - open and close. The first process of those that open a file together looks its
 * name up, or makes it, and tells the others the handle: they open that, and walk no path.
 */
#include "ad_pvfs.h"

/* What the first process tells the others. */
struct answer {
	int err;
	struct pvfs_fh fh;
	struct pvfs_striping striping;
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

static void open_name(ADIO_File fd, struct pvfs_fs *fs, const char *path, struct pvfs_file **f,
		      struct answer *a)
{
	struct pvfs_striping s;
	struct pvfs_stat st;
	int hints = (fd->access_mode & ADIO_CREATE) && ADIOI_PVFS_Striping(fd, fs, path, &s);

	a->err = pvfs_open_striped(fs, path, flags_of(fd->access_mode),
				   fd->perm == ADIO_PERM_NULL ? 0666 : fd->perm, hints ? &s : NULL, f);
	if (a->err)
		return;
	a->err = pvfs_fstat(*f, &st);
	if (a->err) {
		pvfs_close(*f);
		*f = NULL;
		return;
	}
	a->fh = st.fh;
	a->striping = st.striping;
}

void ADIOI_PVFS_Open(ADIO_File fd, int *error_code)
{
	static char myname[] = "ADIOI_PVFS_OPEN";
	struct answer a = { 0 };
	struct ADIOI_PVFS_File *p = ADIOI_Calloc(1, sizeof(*p));
	struct pvfs_file *f = NULL;
	struct pvfs_fs *fs = NULL;
	char *path = NULL;
	int rank, err, worst;

	MPI_Comm_rank(fd->comm, &rank);
	fd->fd_sys = -1;
	err = p ? ADIOI_PVFS_Volume(fd->filename, &fs, &path) : -ENOMEM;
	if (rank == fd->hints->ranklist[0]) {
		a.err = err;
		if (!err)
			open_name(fd, fs, path, &f, &a);
	}
	MPI_Bcast(&a, sizeof(a), MPI_BYTE, fd->hints->ranklist[0], fd->comm);
	err = a.err ? a.err : err;
	if (!err && !f)
		err = pvfs_open_fh(fs, &a.fh, flags_of(fd->access_mode & ~(ADIO_CREATE | ADIO_EXCL)), &f);
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
	fd->blksize = a.striping.ssize;
	ADIOI_PVFS_Striped(fd, &a.striping);
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
