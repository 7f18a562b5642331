# SPDX-License-Identifier: LGPL-2.1
# Included by adio/Makefile.mk of ROMIO.

if BUILD_AD_PVFS

noinst_HEADERS += adio/ad_pvfs/ad_pvfs.h

romio_other_sources +=              \
    adio/ad_pvfs/ad_pvfs.c          \
    adio/ad_pvfs/ad_pvfs_ctl.c      \
    adio/ad_pvfs/ad_pvfs_hints.c    \
    adio/ad_pvfs/ad_pvfs_io.c       \
    adio/ad_pvfs/ad_pvfs_open.c     \
    adio/ad_pvfs/ad_pvfs_volume.c

endif BUILD_AD_PVFS
