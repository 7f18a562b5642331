/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bdbfiles.h - the files of a database, looked at from outside: what Berkeley DB says of one that it
 * can't open, that is gone or too short, is no help to whoever has to do something about it.
 */
#ifndef PVFS_MGR_BDBFILES_H
#define PVFS_MGR_BDBFILES_H

#include "../common/compat.h"

/**
 * bdbfiles_check_access - can all tables and log files in @dir be opened?
 * @ret_logs: how many log files there are; may be NULL
 *
 * Return: 0, also when there is no @dir; or -errno, and what is in the way was logged.
 */
int bdbfiles_check_access(const char *dir, u32 *ret_logs);

/**
 * bdbfiles_check_end - is a table as long as its first page says, and no younger than the log?
 * @log_file: and @log_offset: where the log ends
 * @advise: what is said of one that is too short has what to do in it
 *
 * True of all after recovery only: pages that the log is about need not be in the file before, and one
 * that was cut may be as long as it should be again, with holes.
 *
 * Return: 0, also when there is none; -EUCLEAN: it is too short, -ESTALE: it is younger than the log, and
 * that was logged; or -errno.
 */
int bdbfiles_check_end(const char *path, u32 log_file, u32 log_offset, bool advise);

#endif
