// SPDX-License-Identifier: GPL-2.0-only
/*
 * idmap.c - mounts that map ids, and user name spaces, for tests: Debian 12's tools have neither
 * without more packages.
 *
 *	idmap mount FROM TO ID MAPPED	ID on the file system at FROM is MAPPED in the mount made at TO
 *	idmap run FIRST COMMAND...	as root of a user name space whose ids 0 .. 65535 are FIRST .. outside
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "idmap: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void map(pid_t pid, const char *file, unsigned long inside, unsigned long outside, unsigned long count)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	f = fopen(path, "w");
	if (!f || fprintf(f, "%lu %lu %lu\n", inside, outside, count) < 0 || fclose(f))
		die(path);
}

/* A child in a user name space of its own. It goes on when something is written to *@go. */
static pid_t child(int *go, int wait_for[2])
{
	int ready[2];
	pid_t pid;
	char c;

	if (pipe2(ready, O_CLOEXEC) || pipe2(wait_for, O_CLOEXEC))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		if (unshare(CLONE_NEWUSER))
			die("unshare");
		if (write(ready[1], "r", 1) != 1 || read(wait_for[0], &c, 1) != 1)
			_exit(1);
		return 0;
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		exit(1);
	*go = wait_for[1];
	return pid;
}

static int map_mount(const char *from, const char *to, unsigned long id, unsigned long mapped)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	int tree, go, fds[2];
	char path[64];
	pid_t pid = child(&go, fds);

	if (!pid) {
		pause();
		_exit(0);
	}
	map(pid, "uid_map", id, mapped, 1);
	map(pid, "gid_map", id, mapped, 1);
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	attr.userns_fd = open(path, O_RDONLY);
	tree = syscall(SYS_open_tree, AT_FDCWD, from, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if ((int)attr.userns_fd < 0 || tree < 0)
		die("open_tree");
	if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)))
		die("mount_setattr");
	if (syscall(SYS_move_mount, tree, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH))
		die("move_mount");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

static int run(unsigned long first, char **argv)
{
	int go, fds[2], status;
	pid_t pid = child(&go, fds);

	if (!pid) {
		if (setgroups(0, NULL) || setresgid(0, 0, 0) || setresuid(0, 0, 0))
			die("setresuid");
		execvp(argv[0], argv);
		die(argv[0]);
	}
	map(pid, "uid_map", 0, first, 65536);
	map(pid, "gid_map", 0, first, 65536);
	if (write(go, "g", 1) != 1 || waitpid(pid, &status, 0) != pid)
		die("wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "mount"))
		return map_mount(argv[2], argv[3], strtoul(argv[4], NULL, 10), strtoul(argv[5], NULL, 10));
	if (argc >= 4 && !strcmp(argv[1], "run"))
		return run(strtoul(argv[2], NULL, 10), argv + 3);
	fputs("usage: idmap mount FROM TO ID MAPPED | idmap run FIRST COMMAND...\n", stderr);
	return 2;
}
