// SPDX-License-Identifier: LGPL-2.1
/* ad_pvfs_ctl.c - sizes, sync, delete, locks, features. */
#include "ad_pvfs.h"

void ADIOI_PVFS_Fcntl(ADIO_File fd, int flag, ADIO_Fcntl_t *fcntl_struct, int *error_code)
{
	static char myname[] = "ADIOI_PVFS_FCNTL";
	struct pvfs_stat st;
	int err;

	*error_code = MPI_SUCCESS;
	switch (flag) {
	case ADIO_FCNTL_GET_FSIZE:
		err = pvfs_fstat(ADIOI_PVFS_file(fd), &st);
		fcntl_struct->fsize = err ? -1 : st.st.st_size;
		break;
	case ADIO_FCNTL_SET_DISKSPACE:
		err = fcntl_struct->diskspace ?
		      pvfs_fallocate(ADIOI_PVFS_file(fd), 0, 0, fcntl_struct->diskspace) : 0;
		if (err == -EOPNOTSUPP) {
			ADIOI_GEN_Prealloc(fd, fcntl_struct->diskspace, error_code);
			return;
		}
		break;
	case ADIO_FCNTL_SET_ATOMICITY:
		fd->atomicity = !!fcntl_struct->atomicity;
		err = 0;
		break;
	default:
		err = -EINVAL;
	}
	*error_code = ADIOI_Err_create_code(myname, fd->filename, -err);
}

void ADIOI_PVFS_Flush(ADIO_File fd, int *error_code)
{
	static char myname[] = "ADIOI_PVFS_FLUSH";

	*error_code = ADIOI_Err_create_code(myname, fd->filename, -pvfs_fsync(ADIOI_PVFS_file(fd)));
}

/* The first process does it, when all are here: what they wrote before is cut, too. */
void ADIOI_PVFS_Resize(ADIO_File fd, ADIO_Offset size, int *error_code)
{
	static char myname[] = "ADIOI_PVFS_RESIZE";
	int rank, err = 0;

	MPI_Comm_rank(fd->comm, &rank);
	MPI_Barrier(fd->comm);
	if (rank == fd->hints->ranklist[0])
		err = pvfs_ftruncate(ADIOI_PVFS_file(fd), size);
	MPI_Bcast(&err, 1, MPI_INT, fd->hints->ranklist[0], fd->comm);
	*error_code = ADIOI_Err_create_code(myname, fd->filename, -err);
}

void ADIOI_PVFS_Delete(const char *filename, int *error_code)
{
	static char myname[] = "ADIOI_PVFS_DELETE";
	struct pvfs_fs *fs;
	char *path = NULL;
	int err = ADIOI_PVFS_Volume(filename, &fs, &path);

	err = err ? err : pvfs_unlink(fs, path);
	free(path);
	*error_code = ADIOI_Err_create_code(myname, filename, -err);
}

/* Of the open file, and good among all clients. */
int ADIOI_PVFS_SetLock(ADIO_File fd, int cmd, int type, ADIO_Offset offset, int whence,
		       ADIO_Offset len)
{
	static char myname[] = "ADIOI_PVFS_SETLOCK";
	struct flock lock = { .l_type = type, .l_whence = whence, .l_start = offset, .l_len = len };
	int err;

	if (!len)
		return MPI_SUCCESS;
	err = pvfs_lock(ADIOI_PVFS_file(fd), cmd == F_SETLKW ? F_OFD_SETLKW : F_OFD_SETLK, &lock, -1);
	return ADIOI_Err_create_code(myname, fd->filename, -err);
}

int ADIOI_PVFS_Feature(ADIO_File fd, int flag)
{
	switch (flag) {
	case ADIO_LOCKS:
	case ADIO_SHARED_FP:
	case ADIO_ATOMIC_MODE:
	case ADIO_SCALABLE_OPEN:
	case ADIO_SCALABLE_RESIZE:
	case ADIO_UNLINK_AFTER_CLOSE:
	case ADIO_TWO_PHASE:
	case ADIO_IMMEDIATELY_VISIBLE:
		return 1;
	default:	/* ADIO_DATA_SIEVING_WRITES: nothing is read to be written */
		return 0;
	}
}
