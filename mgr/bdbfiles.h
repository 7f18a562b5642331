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
 * bdbfiles_check_length - is a table as long as its first page says?
 * @advise: what is said has what to do in it
 *
 * True after recovery only. Before, the first page may tell of pages that are in the log alone, and of some
 * that are gone: the library cuts the file as soon as it frees the last ones. Of a table that is cut between
 * a crash and the start nothing can be said: recovery may make it as long as it was, with holes.
 *
 * Return: 0, also when there is none; -EUCLEAN: it is too short, which was logged; or -errno.
 */
int bdbfiles_check_length(const char *path, bool advise);

/* Was a table changed before lsn @end, the end of the log? -ESTALE: not so, which was logged. */
int bdbfiles_check_log(const char *path, u64 end);

#endif
