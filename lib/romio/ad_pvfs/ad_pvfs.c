// SPDX-License-Identifier: LGPL-2.1
/*
 * ad_pvfs.c - the driver's functions, as ROMIO calls them.
 *
 * Collective calls are ROMIO's own (two-phase), but that a failure on one process is one on all: its
 * aggregators come here with contiguous accesses. Non-blocking ones are done when they are called.
 */
#include "ad_pvfs.h"

struct ADIOI_Fns_struct ADIO_PVFS_operations = {
	ADIOI_PVFS_Open,
	ADIOI_SCALEABLE_OpenColl,
	ADIOI_PVFS_ReadContig,
	ADIOI_PVFS_WriteContig,
	ADIOI_PVFS_ReadStridedColl,
	ADIOI_PVFS_WriteStridedColl,
	ADIOI_GEN_SeekIndividual,
	ADIOI_PVFS_Fcntl,
	ADIOI_PVFS_SetInfo,
	ADIOI_PVFS_ReadStrided,
	ADIOI_PVFS_WriteStrided,
	ADIOI_PVFS_Close,
	ADIOI_FAKE_IreadContig,
	ADIOI_FAKE_IwriteContig,
	ADIOI_FAKE_IODone,
	ADIOI_FAKE_IODone,
	ADIOI_FAKE_IOComplete,
	ADIOI_FAKE_IOComplete,
	ADIOI_FAKE_IreadStrided,
	ADIOI_FAKE_IwriteStrided,
	ADIOI_PVFS_Flush,
	ADIOI_PVFS_Resize,
	ADIOI_PVFS_Delete,
	ADIOI_PVFS_Feature,
	"PVFS: over libpvfs",
	ADIOI_GEN_IreadStridedColl,
	ADIOI_GEN_IwriteStridedColl,
	ADIOI_PVFS_SetLock,
};
