/* SPDX-License-Identifier: LGPL-2.1 */
/*
 * ad_pvfs.h - ROMIO's driver for PVFS, over libpvfs: files of a volume without the kernel.
 *
 *   ad_pvfs.c         the table of functions
 *   ad_pvfs_open.c    open and close: one process looks the name up, the others get the handle
 *   ad_pvfs_io.c      bytes: contiguous ones, and views as lists of places
 *   ad_pvfs_ctl.c     sizes, sync, delete, locks, features
 *   ad_pvfs_hints.c   hints
 *   ad_pvfs_volume.c  which volume a file name is of; volumes that this process has mounted
 *
 * Names are ROMIO's, in its style: it is part of that program.
 */
#ifndef AD_PVFS_H_INCLUDED
#define AD_PVFS_H_INCLUDED

#include "adio.h"
#include "adio_extern.h"
#include "pvfs.h"

/* What fd->fs_ptr points to while the file is open. */
struct ADIOI_PVFS_File {
	struct pvfs_fs *fs;
	struct pvfs_file *f;
};

static inline struct pvfs_file *ADIOI_PVFS_file(ADIO_File fd)
{
	return ((struct ADIOI_PVFS_File *)fd->fs_ptr)->f;
}

/**
 * ADIOI_PVFS_Volume - the volume that a file is on
 * @name: "host[:port]:/volume/path"; a path of a mount of PVFS; or, with PVFS_MGR and PVFS_VOLUME in
 *        the environment, a path in that volume
 * @fs: mounted in this process, until MPI_Finalize()
 * @path: in the volume, to be given to free()
 *
 * The cluster key is in the file PVFS_KEY says, or where it usually is. A server that is away is
 * waited for as long as PVFS_TIMEO says, in tenths of a second as for mount(8), or a minute.
 *
 * Return: 0 or -errno, with a line on stderr for what the user has to mend.
 */
int ADIOI_PVFS_Volume(const char *name, struct pvfs_fs **fs, char **path);

/* A line on stderr from the first process, when the hint romio_pvfs_debug is "enable". */
void ADIOI_PVFS_Warn(ADIO_File fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * What the hints in fd->info say of a new file at @path, an absolute one; what is out of range is left
 * out, with a warning. Return: whether they say anything.
 */
int ADIOI_PVFS_Striping(ADIO_File fd, struct pvfs_fs *fs, const char *path,
			struct pvfs_striping *ret);
/* Into fd->info: how the file is striped. */
void ADIOI_PVFS_Striped(ADIO_File fd, const struct pvfs_striping *s);

void ADIOI_PVFS_Open(ADIO_File fd, int *error_code);
void ADIOI_PVFS_Close(ADIO_File fd, int *error_code);
void ADIOI_PVFS_ReadContig(ADIO_File fd, void *buf, int count, MPI_Datatype datatype,
			   int file_ptr_type, ADIO_Offset offset, ADIO_Status *status,
			   int *error_code);
void ADIOI_PVFS_WriteContig(ADIO_File fd, const void *buf, int count, MPI_Datatype datatype,
			    int file_ptr_type, ADIO_Offset offset, ADIO_Status *status,
			    int *error_code);
void ADIOI_PVFS_ReadStrided(ADIO_File fd, void *buf, int count, MPI_Datatype datatype,
			    int file_ptr_type, ADIO_Offset offset, ADIO_Status *status,
			    int *error_code);
void ADIOI_PVFS_WriteStrided(ADIO_File fd, const void *buf, int count, MPI_Datatype datatype,
			     int file_ptr_type, ADIO_Offset offset, ADIO_Status *status,
			     int *error_code);
void ADIOI_PVFS_ReadStridedColl(ADIO_File fd, void *buf, int count, MPI_Datatype datatype,
				int file_ptr_type, ADIO_Offset offset, ADIO_Status *status,
				int *error_code);
void ADIOI_PVFS_WriteStridedColl(ADIO_File fd, const void *buf, int count, MPI_Datatype datatype,
				 int file_ptr_type, ADIO_Offset offset, ADIO_Status *status,
				 int *error_code);
void ADIOI_PVFS_Fcntl(ADIO_File fd, int flag, ADIO_Fcntl_t *fcntl_struct, int *error_code);
void ADIOI_PVFS_SetInfo(ADIO_File fd, MPI_Info users_info, int *error_code);
void ADIOI_PVFS_Flush(ADIO_File fd, int *error_code);
void ADIOI_PVFS_Resize(ADIO_File fd, ADIO_Offset size, int *error_code);
void ADIOI_PVFS_Delete(const char *filename, int *error_code);
int ADIOI_PVFS_Feature(ADIO_File fd, int flag);
int ADIOI_PVFS_SetLock(ADIO_File fd, int cmd, int type, ADIO_Offset offset, int whence,
		       ADIO_Offset len);

#endif
