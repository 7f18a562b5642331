/* SPDX-License-Identifier: GPL-2.0 */
/*
 * run.h - daemons as processes: found, run, watched. cluster.c.
 */
#ifndef PVFS_TOOL_RUN_H
#define PVFS_TOOL_RUN_H

#include <stddef.h>

/* The program @name: beside this one, else in PATH. Return: 0 or -ENOENT. */
int sibling(const char *name, char *path, size_t n);
/* Runs a program to its end. Return: 0, -EIO when it failed (it has said why), -errno. */
int run_wait(char *const argv[]);

#endif
