// SPDX-License-Identifier: GPL-2.0-only
/*
 * ops_perm.c - checks of who may do what: mode bits against uid, gid and supplementary groups,
 * sticky and setgid directories, who may change owner, mode and times.
 */
#include "ops.h"
#include <grp.h>
#include <sys/wait.h>

#define U1	10001
#define U2	10002
#define G1	20001
#define G2	20002
#define G3	20003

/* Whose rights are tried; the file under test belongs to U1:G1. */
static const struct who {
	uid_t uid;
	gid_t gid;
	gid_t groups[3];
	int ngroups;
	int class;	/* shift of the bits that apply; -1: root */
} who[] = {
	{ 0, 0, { 0 }, 0, -1 },
	{ U1, G1, { 0 }, 0, 6 },
	{ U1, G2, { 0 }, 0, 6 },
	{ U2, G1, { 0 }, 0, 3 },
	{ U2, G2, { G1 }, 1, 3 },
	{ U2, G2, { G3, G2, G1 }, 3, 3 },
	{ U2, G2, { G3 }, 1, 0 },
	{ U2, G2, { 0 }, 0, 0 },
};
#define NWHO (sizeof(who) / sizeof(*who))

static const mode_t modes[] = {
	0000, 0700, 0400, 0200, 0100, 0070, 0040, 0020, 0010, 0007, 0004, 0002, 0001, 0077, 0707, 0770, 0644, 0755,
	0111, 0444, 0222,
};

static const struct who *me;

static bool allowed(mode_t mode, int bit)
{
	if (me->class < 0)
		return bit != 1 || (mode & 0111);
	return (mode >> me->class) & bit;
}

static void expect(bool ok, int r, const char *what, mode_t mode)
{
	if (ok && r < 0)
		FAIL("%s of mode %04o as %u:%u (%d groups): %s, should succeed", what, mode, me->uid, me->gid,
		     me->ngroups, strerror(errno));
	if (!ok && (r >= 0 || errno != EACCES))
		FAIL("%s of mode %04o as %u:%u (%d groups): %s, should be refused", what, mode, me->uid, me->gid,
		     me->ngroups, r >= 0 ? "succeeds" : strerror(errno));
}

static void try_files(void *arg)
{
	unsigned int i;
	char name[32];
	int fd;

	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		mode_t m = modes[i];

		snprintf(name, sizeof(name), "f%u", i);
		fd = open(name, O_RDONLY);
		expect(allowed(m, 4), fd, "open for reading", m);
		close(fd);
		fd = open(name, O_WRONLY);
		expect(allowed(m, 2), fd, "open for writing", m);
		close(fd);
		fd = open(name, O_RDWR);
		expect(allowed(m, 4) && allowed(m, 2), fd, "open for both", m);
		close(fd);
		expect(allowed(m, 2), truncate(name, 0), "truncate", m);
		expect(allowed(m, 4), access(name, R_OK), "access r", m);
		expect(allowed(m, 2), access(name, W_OK), "access w", m);
		expect(allowed(m, 1), access(name, X_OK), "access x", m);
	}
	(void)arg;
}

static void file_matrix(void)
{
	unsigned int i;
	char name[32];

	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		snprintf(name, sizeof(name), "f%u", i);
		ops_touch(name, 0600);
		OK(chown(name, U1, G1));
		OK(chmod(name, modes[i]));
	}
	for (i = 0; i < NWHO; i++) {
		me = &who[i];
		ops_as(me->uid, me->gid, me->groups, me->ngroups, try_files, NULL);
	}
}

static void try_dirs(void *arg)
{
	unsigned int i;
	char name[64], inner[96], other[96];
	struct stat st;
	int fd;

	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		mode_t m = modes[i];
		bool x = me->class < 0 || allowed(m, 1), w = me->class < 0 || allowed(m, 2);

		snprintf(name, sizeof(name), "d%u", i);
		snprintf(inner, sizeof(inner), "%s/inner", name);
		snprintf(other, sizeof(other), "%s/new", name);
		fd = open(name, O_RDONLY | O_DIRECTORY);
		expect(me->class < 0 || allowed(m, 4), fd, "opendir", m);
		close(fd);
		expect(x, stat(inner, &st), "search", m);
		expect(x, open(inner, O_RDONLY), "open below", m);
		expect(w && x, open(other, O_WRONLY | O_CREAT, 0644), "create below", m);
		if (w && x) {
			OK(rename(other, inner));
			OK(link(inner, other));
			OK(unlink(other));
			OK(mkdir(other, 0755));
			OK(rmdir(other));
			OK(symlink("inner", other));
			OK(unlink(other));
		} else {
			expect(false, mkdir(other, 0755), "mkdir below", m);
			expect(false, unlink(inner), "unlink below", m);
			expect(false, symlink("x", other), "symlink below", m);
			expect(false, rename(inner, other), "rename below", m);
		}
	}
	(void)arg;
}

static void directory_matrix(void)
{
	unsigned int i, j;
	char name[64];

	for (i = 0; i < NWHO; i++) {
		char top[16];

		snprintf(top, sizeof(top), "who%u", i);
		OK(mkdir(top, 0755));
		OK(chdir(top));
		for (j = 0; j < sizeof(modes) / sizeof(*modes); j++) {
			snprintf(name, sizeof(name), "d%u", j);
			OK(mkdir(name, 0777));
			snprintf(name, sizeof(name), "d%u/inner", j);
			ops_touch(name, 0666);
			OK(chown(name, who[i].uid, who[i].gid));
			snprintf(name, sizeof(name), "d%u", j);
			OK(chown(name, U1, G1));
			OK(chmod(name, modes[j]));
		}
		me = &who[i];
		ops_as(me->uid, me->gid, me->groups, me->ngroups, try_dirs, NULL);
		OK(chdir(".."));
	}
}

static void run_program(void *arg)
{
	bool ok = *(bool *)arg;
	int status;
	pid_t pid = fork();

	OK(pid);
	if (!pid) {
		execl("./prog", "prog", (char *)NULL);
		_exit(errno == EACCES ? 77 : 78);
	}
	WANT(waitpid(pid, &status, 0) == pid);
	EQ(WEXITSTATUS(status), ok ? 0 : 77);
}

static void execution(void)
{
	static const struct { mode_t mode; int who; bool ok; } t[] = {
		{ 0711, 1, true }, { 0611, 1, false }, { 0711, 3, true }, { 0701, 3, false }, { 0701, 6, true },
		{ 0710, 6, false }, { 0100, 1, true }, { 0001, 0, true }, { 0666, 0, false },
	};
	unsigned int i;
	char buf[65536];
	ssize_t n;
	int in = ops_open("/bin/true", O_RDONLY, 0), out = ops_open("prog", O_WRONLY | O_CREAT, 0755);

	while ((n = read(in, buf, sizeof(buf))) > 0)
		EQ(write(out, buf, n), n);
	OK(close(out));
	OK(chown("prog", U1, G1));
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		bool ok = t[i].ok;

		OK(chmod("prog", t[i].mode));
		me = &who[t[i].who];
		ops_as(me->uid, me->gid, me->groups, me->ngroups, run_program, &ok);
	}
	/* A script needs r for its interpreter as well. */
	out = ops_open("script", O_WRONLY | O_CREAT, 0755);
	EQ(write(out, "#!/bin/sh\nexit 5\n", 17), 17);
	OK(close(out));
	EQ(WEXITSTATUS(system("./script")), 5);
}

static void as_other(void *arg)
{
	struct stat st;

	(void)arg;
	ERR(unlink("t/mine"), EPERM);
	ERR(rename("t/mine", "t/x"), EPERM);
	ERR(rename("t/his", "t/mine"), EPERM);
	ERR(rmdir("t/dir"), EPERM);
	OK(rename("t/his", "t/his2"));
	OK(unlink("t/his2"));
	OK(stat("t/mine", &st));
}

static void as_owner_of_dir(void *arg)
{
	(void)arg;
	OK(unlink("t/mine"));
	OK(rmdir("t/dir"));
}

static void sticky(void)
{
	OK(mkdir("t", 0777));
	OK(chown("t", U1, G1));
	OK(chmod("t", 01777));
	ops_touch("t/mine", 0666);
	ops_touch("t/his", 0666);
	OK(mkdir("t/dir", 0777));
	OK(chown("t/his", U2, G2));
	ops_as(U2, G2, NULL, 0, as_other, NULL);
	ops_as(U1, G2, NULL, 0, as_owner_of_dir, NULL);
	EQ(access("t/mine", F_OK), -1);
}

static void in_setgid_dir(void *arg)
{
	struct stat st;

	(void)arg;
	ops_touch("d/f", 0664);
	OK(stat("d/f", &st));
	EQ(st.st_uid, U2);
	EQ(st.st_gid, G1);
	OK(mkdir("d/e", 0755));
	OK(stat("d/e", &st));
	EQ(st.st_gid, G1);
	EQ(st.st_mode & 07777, 02755);
	OK(mkdir("d/e/deep", 0700));
	OK(stat("d/e/deep", &st));
	EQ(st.st_mode & 07777, 02700);
	OK(symlink("x", "d/s"));
	OK(lstat("d/s", &st));
	EQ(st.st_gid, G1);
	ops_touch("p/f", 0664);
	OK(stat("p/f", &st));
	EQ(st.st_gid, G2);
	/* Not a member: a setgid file can't be made so. */
	OK(close(ops_open("d/sg", O_WRONLY | O_CREAT | O_EXCL, 02775)));
	OK(stat("d/sg", &st));
	EQ(st.st_mode & 02000, 0);
}

static void setgid_dirs(void)
{
	OK(mkdir("d", 0777));
	OK(chown("d", 0, G1));
	OK(chmod("d", 02777));
	OK(mkdir("p", 0777));
	ops_as(U2, G2, NULL, 0, in_setgid_dir, NULL);
}

static void change_as_owner(void *arg)
{
	struct stat st;

	(void)arg;
	OK(chmod("f", 0640));
	ERR(chown("f", U2, -1), EPERM);
	ERR(chown("f", -1, G2), EPERM);
	OK(chown("f", -1, G3));
	OK(chown("f", -1, G1));
	OK(chown("f", U1, G1));
	/* The group's own set id may be set by members only. */
	OK(chmod("f", 06755));
	OK(stat("f", &st));
	EQ(st.st_mode & 07777, 06755);
	OK(chmod("g", 02755));
	OK(stat("g", &st));
	EQ(st.st_mode & 07777, 0755);
	OK(utimensat(AT_FDCWD, "f", NULL, 0));
	OK(utimensat(AT_FDCWD, "f", (struct timespec[2]){ { 5, 5 }, { 6, 6 } }, 0));
}

static void change_as_other(void *arg)
{
	(void)arg;
	ERR(chmod("f", 0777), EPERM);
	ERR(chown("f", U2, -1), EPERM);
	ERR(chown("f", -1, G1), EPERM);
	ERR(utimensat(AT_FDCWD, "f", (struct timespec[2]){ { 5, 5 }, { 6, 6 } }, 0), EPERM);
	ERR(utimensat(AT_FDCWD, "f", NULL, 0), EACCES);
	/* Who may write may say "now". */
	OK(utimensat(AT_FDCWD, "w", NULL, 0));
	ERR(utimensat(AT_FDCWD, "w", (struct timespec[2]){ { 5, 5 }, { 6, 6 } }, 0), EPERM);
}

static void changing(void)
{
	ops_touch("f", 0600);
	OK(chown("f", U1, G1));
	ops_touch("g", 0600);
	OK(chown("g", U1, G2));
	ops_touch("w", 0600);
	OK(chown("w", U1, G1));
	OK(chmod("w", 0666));
	ops_as(U1, G1, (gid_t[]){ G3 }, 1, change_as_owner, NULL);
	OK(chmod("f", 0755));
	ops_as(U2, G1, NULL, 0, change_as_other, NULL);
}

static void write_byte(void *arg)
{
	int fd = ops_open(arg, O_WRONLY, 0);

	ops_pwrite(fd, "x", 1, 0);
	OK(close(fd));
}

static void truncate_it(void *arg)
{
	OK(truncate(arg, 0));
}

/* Set-id bits go when the content or the owner changes. */
static void set_id_dropped(void)
{
	struct stat st;

	ops_make("f", 10, 1);
	OK(chown("f", U1, G1));
	OK(chmod("f", 06777));
	ops_as(U2, G2, NULL, 0, write_byte, "f");
	OK(stat("f", &st));
	EQ(st.st_mode & 07777, 0777);
	OK(chmod("f", 06777));
	ops_as(U2, G2, NULL, 0, truncate_it, "f");
	OK(stat("f", &st));
	EQ(st.st_mode & 07777, 0777);
	/* Not when root writes. */
	OK(chmod("f", 06777));
	write_byte("f");
	OK(stat("f", &st));
	EQ(st.st_mode & 07777, 06777);
	OK(chown("f", U2, G2));
	OK(stat("f", &st));
	EQ(st.st_mode & 07777, 0777);
	/* Group bit without group execution is no set-id. */
	OK(chmod("f", 02767));
	OK(chown("f", U1, G1));
	OK(stat("f", &st));
	EQ(st.st_mode & 07777, 02767);
}

static void masks(void)
{
	struct stat st;

	umask(027);
	ops_touch("f", 0666);
	OK(stat("f", &st));
	EQ(st.st_mode & 07777, 0640);
	OK(mkdir("d", 01777));
	OK(stat("d", &st));
	EQ(st.st_mode & 07777, 01750);
	OK(mknod("n", S_IFIFO | 0666, 0));
	OK(stat("n", &st));
	EQ(st.st_mode & 07777, 0640);
}

/* Rights are those of the time of open. */
static void open_keeps_rights(void)
{
	char c = 'x';
	int r, w;

	ops_make("f", 10, 1);
	OK(chown("f", U1, G1));
	r = ops_open("f", O_RDONLY, 0);
	w = ops_open("f", O_RDWR, 0);
	OK(chmod("f", 0));
	OK(setgroups(0, NULL));
	OK(setresgid(G2, G2, G2));
	OK(setresuid(U2, U2, U2));
	EQ(pread(r, &c, 1, 0), 1);
	EQ(pwrite(w, &c, 1, 0), 1);
	OK(ftruncate(w, 5));
	ERR(open("f", O_RDONLY), EACCES);
	ERR(truncate("f", 0), EACCES);
}

static void many_groups_try(void *arg)
{
	OK(close(ops_open(arg, O_RDONLY, 0)));
}

/* As many groups as fit the protocol. */
static void many_groups(void)
{
	static gid_t g[1024];
	int i;

	for (i = 0; i < 1024; i++)
		g[i] = 50000 + i;
	ops_make("f", 1, 1);
	OK(chown("f", 0, 50000 + 1023));
	OK(chmod("f", 0040));
	ops_as(U2, G2, g, 1024, many_groups_try, "f");
}

const struct ops_check ops_perm[] = {
	{ "files: every mode, every kind of user", file_matrix },
	{ "directories: every mode, every kind of user", directory_matrix },
	{ "execution", execution },
	{ "sticky directories", sticky },
	{ "setgid directories", setgid_dirs },
	{ "who may chmod, chown, utimes", changing },
	{ "set-id bits are dropped", set_id_dropped },
	{ "umask", masks },
	{ "an open file keeps its rights", open_keeps_rights },
	{ "1024 supplementary groups", many_groups },
	{ NULL, NULL }
};
