// SPDX-License-Identifier: GPL-2.0
/*
 * file.c - `pvfs ls stat rm mkdir`: what is in the volume.
 */
#include "tool.h"
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Every path of these commands is in the volume; "pvfs:" may be left out. */
const char *path_of(const char *arg)
{
	return remote_path(arg) ?: arg;
}

/* @rc: of a path that there is not in the volume. Is it a local one? */
static bool local_path(const char *arg, int rc)
{
	struct stat st;

	return rc == -ENOENT && !remote_path(arg) && !lstat(arg, &st);
}

static const char *local_hint(const char *arg, int rc)
{
	return local_path(arg, rc) ? " (it is looked for in the volume)" : "";
}

/* Why there is nothing to be said of a path, by a command that takes those on mounts, too. */
void fail_path(const char *arg, int rc)
{
	if (local_path(arg, rc))
		fail("%s: is a local path, and not on a mounted volume; there is no pvfs:%s%s either", arg,
		     *arg == '/' ? "" : "/", arg);
	else
		fail("%s: %s", arg, strerror(-rc));
}

static void mode_text(mode_t m, char s[11])
{
	static const char rwx[] = "rwxrwxrwx";
	int i;

	s[0] = S_ISDIR(m)  ? 'd' :
	       S_ISLNK(m)  ? 'l' :
	       S_ISBLK(m)  ? 'b' :
	       S_ISCHR(m)  ? 'c' :
	       S_ISFIFO(m) ? 'p' :
	       S_ISSOCK(m) ? 's' :
			     '-';
	for (i = 0; i < 9; i++)
		s[1 + i] = m & (0400 >> i) ? rwx[i] : '-';
	if (m & S_ISUID)
		s[3] = m & 0100 ? 's' : 'S';
	if (m & S_ISGID)
		s[6] = m & 010 ? 's' : 'S';
	if (m & S_ISVTX)
		s[9] = m & 1 ? 't' : 'T';
	s[10] = '\0';
}

static void time_text(const struct timespec *ts, char *s, size_t n, bool full)
{
	struct tm tm;
	size_t k;

	localtime_r(&ts->tv_sec, &tm);
	k = strftime(s, n, full ? "%F %T" : "%F %H:%M", &tm);
	if (full && k) {
		k += snprintf(s + k, n - k, ".%09ld ", ts->tv_nsec);
		strftime(s + k, n - k, "%z", &tm);
	}
}

static void owner_text(const struct stat *st, char *user, char *group, size_t n)
{
	struct passwd *pw = getpwuid(st->st_uid);
	struct group *gr = getgrgid(st->st_gid);

	if (pw)
		snprintf(user, n, "%s", pw->pw_name);
	else
		snprintf(user, n, "%u", st->st_uid);
	if (gr)
		snprintf(group, n, "%s", gr->gr_name);
	else
		snprintf(group, n, "%u", st->st_gid);
}

/* ---------------------------------------------------------------- ls */

struct ls {
	struct pvfs_fs *fs;
	bool longer, all, recurse, itself;
	struct out *table;
	int failed;
};

struct name_list {
	struct pvfs_dirent *e;
	size_t n, room;
};

static const struct out_col ls_cols[] = {
	{ "mode", "MODE", OUT_TEXT },	{ "links", "LINKS", OUT_NUMBER },
	{ "user", "USER", OUT_TEXT },	{ "group", "GROUP", OUT_TEXT },
	{ "size", "SIZE", OUT_NUMBER }, { "mtime", "MODIFIED", OUT_TEXT },
	{ "name", "NAME", OUT_TEXT },
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct pvfs_dirent *)a)->name, ((const struct pvfs_dirent *)b)->name);
}

/* A name as a line of plain ls: what would upset a terminal or a script is escaped as in C. */
static void print_name(const char *name)
{
	const unsigned char *p;

	for (p = (const unsigned char *)name; *p; p++) {
		if (*p == '\\')
			printf("\\\\");
		else if (*p == '\n')
			printf("\\n");
		else if (*p < 32 || *p == 127)
			printf("\\%03o", *p);
		else
			putchar(*p);
	}
	putchar('\n');
}

static void ls_entry(struct ls *l, const char *dir, const char *name, const struct pvfs_stat *st)
{
	char mode[11], when[64], user[64], group[64], target[4096] = "", *shown = NULL;
	char path[8192];
	ssize_t n;

	if (!l->longer && !tool.json) {
		print_name(name);
		return;
	}
	if (S_ISLNK(st->st.st_mode)) {
		n = pvfs_readlink_fh(l->fs, &st->fh, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
	}
	mode_text(st->st.st_mode, mode);
	owner_text(&st->st, user, group, sizeof(user));
	time_text(&st->st.st_mtim, when, sizeof(when), tool.json);
	out_row(l->table);
	out_text(l->table, 0, "%s", mode);
	out_number(l->table, 1, st->st.st_nlink, NULL);
	out_text(l->table, 2, "%s", user);
	out_text(l->table, 3, "%s", group);
	out_number(l->table, 4, st->st.st_size, NULL);
	out_text(l->table, 5, "%s", when);
	if (tool.json) {
		snprintf(path, sizeof(path), "%s%s%s", dir ?: "",
			 dir && dir[strlen(dir) - 1] != '/' ? "/" : "", name);
		out_name(l->table, 6, path);
	} else if (*target && asprintf(&shown, "%s -> %s", name, target) >= 0) {
		out_name(l->table, 6, shown);
		free(shown);
	} else {
		out_name(l->table, 6, name);
	}
}

static int read_dir(struct ls *l, const char *path, struct name_list *list)
{
	struct pvfs_dir *d;
	int rc = pvfs_opendir(l->fs, path, &d);

	if (rc)
		return rc;
	for (;;) {
		if (list->n == list->room) {
			size_t room = list->room * 2 + 64;
			struct pvfs_dirent *more = realloc(list->e, room * sizeof(*more));

			if (!more) {
				rc = -ENOMEM;
				break;
			}
			list->e = more;
			list->room = room;
		}
		rc = pvfs_readdir(d, &list->e[list->n]);
		if (rc <= 0)
			break;
		if (list->e[list->n].name[0] != '.' || l->all)
			list->n++;
	}
	pvfs_closedir(d);
	if (list->n)
		qsort(list->e, list->n, sizeof(*list->e), by_name);
	return rc;
}

/* @head: print the directory's name above. */
static void ls_dir(struct ls *l, const char *path, bool head)
{
	struct name_list list = { 0 };
	const char *slash = path[strlen(path) - 1] == '/' ? "" : "/";
	char *sub;
	size_t i;
	int rc = read_dir(l, path, &list);

	if (rc) {
		fail("%s: %s", path, strerror(-rc));
		l->failed = 1;
	}
	if (head && !tool.json)
		printf("%s:\n", path);
	if (l->longer && !tool.json)
		l->table = out_new("entries", ls_cols, ARRAY_SIZE(ls_cols));
	for (i = 0; i < list.n; i++) {
		/* Of ".." a directory knows no more than the number. */
		if (!strcmp(list.e[i].name, ".") || !strcmp(list.e[i].name, "..")) {
			if (asprintf(&sub, "%s%s%s", path, slash, list.e[i].name) < 0)
				continue;
			if (l->longer || tool.json)
				pvfs_stat(l->fs, sub, &list.e[i].stat);
			free(sub);
		}
		ls_entry(l, path, list.e[i].name, &list.e[i].stat);
	}
	if (l->longer && !tool.json)
		out_print(l->table);
	for (i = 0; l->recurse && i < list.n; i++) {
		const char *name = list.e[i].name;

		if (!S_ISDIR(list.e[i].stat.st.st_mode) || !strcmp(name, ".") ||
		    !strcmp(name, ".."))
			continue;
		if (asprintf(&sub, "%s%s%s", path, slash, name) < 0)
			break;
		if (!tool.json)
			putchar('\n');
		ls_dir(l, sub, true);
		free(sub);
	}
	free(list.e);
}

static void ls_arg(struct ls *l, const char *arg, bool many, bool first)
{
	const char *path = path_of(arg);
	struct pvfs_stat st;
	int rc = pvfs_lstat(l->fs, path, &st);

	if (!rc && S_ISLNK(st.st.st_mode) && !l->longer && !l->itself)
		rc = pvfs_stat(l->fs, path, &st);
	if (rc) {
		fail("%s: %s%s", path, strerror(-rc), local_hint(arg, rc));
		l->failed = 1;
		return;
	}
	if (S_ISDIR(st.st.st_mode) && !l->itself) {
		if (!first && !tool.json)
			putchar('\n');
		ls_dir(l, path, many || l->recurse);
		return;
	}
	if (l->longer && !tool.json)
		l->table = out_new("entries", ls_cols, ARRAY_SIZE(ls_cols));
	ls_entry(l, NULL, path, &st);
	if (l->longer && !tool.json)
		out_print(l->table);
}

int cmd_ls(int argc, char **argv)
{
	static const struct option longopts[] = { { "recursive", no_argument, NULL, 'R' },
						  TOOL_LONG };
	struct ls l = { 0 };
	int c, i, rc;

	while ((c = getopt_long(argc, argv, TOOL_SHORT "laRd", longopts, NULL)) != -1) {
		l.longer |= c == 'l';
		l.all |= c == 'a';
		l.recurse |= c == 'R';
		l.itself |= c == 'd';
		if (strchr("laRd", c))
			continue;
		rc = tool_option(c);
		if (rc)
			return rc < 0 ? EXIT_USAGE : 0;
	}
	if (tool_connect(&l.fs))
		return EXIT_FAILURE;
	if (tool.json)
		l.table = out_new("entries", ls_cols, ARRAY_SIZE(ls_cols));
	if (optind >= argc)
		ls_arg(&l, "/", false, true);
	for (i = optind; i < argc; i++)
		ls_arg(&l, argv[i], argc - optind > 1, i == optind);
	if (tool.json)
		out_print(l.table);
	tool_disconnect(l.fs);
	return l.failed ? EXIT_FAILURE : 0;
}

/* ---------------------------------------------------------------- stat */

/* Which daemon has how much of a file. */
static void print_datafiles(struct pvfs_fs *fs, const struct pvfs_stat *st, u32 niods)
{
	struct pvfs_layout l = { .base = st->striping.base,
				 .pcount = st->striping.pcount,
				 .ssize = st->striping.ssize };
	char name[PVFS_HOST_MAX + 96], text[16];
	u32 i, iod;

	if (!pvfs_layout_valid(&l, niods))
		return;
	for (i = 0; i < l.pcount; i++) {
		iod = pvfs_stripe_iod(&l, i, niods);
		if (pvfs_iod_name(fs, iod, name, sizeof(name)))
			continue;
		printf("%s iod%-4u %-40s %s\n", i ? "          " : "Datafiles:", iod, name,
		       human(pvfs_stripe_df_size(&l, i, st->st.st_size), text));
	}
}

static void stat_text(struct pvfs_fs *fs, const char *path, const struct pvfs_stat *st, u32 niods)
{
	char mode[11], user[64], group[64], base[16], t[4][64], target[4096];
	const struct timespec *ts[4] = { &st->st.st_atim, &st->st.st_mtim, &st->st.st_ctim,
					 &st->btime };
	char a[16];
	ssize_t n;
	int i;

	mode_text(st->st.st_mode, mode);
	owner_text(&st->st, user, group, sizeof(user));
	for (i = 0; i < 4; i++)
		time_text(ts[i], t[i], sizeof(t[i]), true);
	printf("     Name: ");
	print_name(path);
	if (S_ISLNK(st->st.st_mode)) {
		n = pvfs_readlink_fh(fs, &st->fh, target, sizeof(target) - 1);
		if (n >= 0) {
			target[n] = '\0';
			printf("   Target: ");
			print_name(target);
		}
	}
	printf("    Inode: %llu (generation %u)   Version: %llu   Links: %lu\n",
	       (unsigned long long)st->fh.ino, st->fh.gen, (unsigned long long)st->version,
	       (unsigned long)st->st.st_nlink);
	printf("     Mode: %s (%04o)   Owner: %s:%s\n", mode, st->st.st_mode & 07777, user, group);
	printf("     Size: %lld   Blocks: %lld\n", (long long)st->st.st_size,
	       (long long)st->st.st_blocks);
	printf(" Accessed: %s\n Modified: %s\n  Changed: %s\n     Made: %s\n", t[0], t[1], t[2],
	       t[3]);
	if (st->striping.pcount) {
		base_text(&st->striping, base);
		printf("   %s %u daemons, from %s on, in units of %s\n",
		       S_ISDIR(st->st.st_mode) ? "New files:" : "Striping:", st->striping.pcount,
		       base, human(st->striping.ssize, a));
	}
	if (S_ISDIR(st->st.st_mode) && st->striping.stuff_max)
		printf("           up to %s stay with the manager\n", human(st->striping.stuff_max, a));
	if (st->flags & PVFS_ST_STUFFED)
		printf("Datafiles: none, its bytes are with the manager\n");
	else if (S_ISREG(st->st.st_mode))
		print_datafiles(fs, st, niods);
	if (st->flags & PVFS_ST_WRITERS)
		printf("           another client has it open for writing\n");
}

static const struct out_col stat_cols[] = {
	{ "name", "NAME", OUT_TEXT },
	{ "ino", "INO", OUT_NUMBER },
	{ "generation", "GENERATION", OUT_NUMBER },
	{ "version", "VERSION", OUT_NUMBER },
	{ "mode", "MODE", OUT_NUMBER },
	{ "links", "LINKS", OUT_NUMBER },
	{ "uid", "UID", OUT_NUMBER },
	{ "gid", "GID", OUT_NUMBER },
	{ "size", "SIZE", OUT_NUMBER },
	{ "blocks", "BLOCKS", OUT_NUMBER },
	{ "atime", "ACCESSED", OUT_TEXT },
	{ "mtime", "MODIFIED", OUT_TEXT },
	{ "ctime", "CHANGED", OUT_TEXT },
	{ "btime", "MADE", OUT_TEXT },
	{ "stripe_base", "BASE", OUT_TEXT },
	{ "stripe_count", "COUNT", OUT_NUMBER },
	{ "stripe_size", "UNIT", OUT_NUMBER },
	{ "stuff_max", "STUFF", OUT_NUMBER },
};

static void stat_json(struct out *o, struct pvfs_fs *fs, const char *path,
		      const struct pvfs_stat *st, u32 niods)
{
	const struct timespec *ts[4] = { &st->st.st_atim, &st->st.st_mtim, &st->st.st_ctim,
					 &st->btime };
	struct pvfs_layout l = { .base = st->striping.base,
				 .pcount = st->striping.pcount,
				 .ssize = st->striping.ssize };
	const uint64_t numbers[] = { st->fh.ino,     st->fh.gen,      st->version,
				     st->st.st_mode, st->st.st_nlink, st->st.st_uid,
				     st->st.st_gid,  st->st.st_size,  st->st.st_blocks };
	char text[64], *extra = NULL;
	size_t size;
	FILE *f;
	u32 i;

	out_row(o);
	out_name(o, 0, path);
	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		out_number(o, 1 + i, numbers[i], NULL);
	for (i = 0; i < 4; i++) {
		time_text(ts[i], text, sizeof(text), true);
		out_text(o, 10 + i, "%s", text);
	}
	base_text(&st->striping, text);
	out_text(o, 14, "%s", text);
	out_number(o, 15, l.pcount, NULL);
	out_number(o, 16, l.ssize, NULL);
	out_number(o, 17, st->striping.stuff_max, NULL);
	if (st->flags & PVFS_ST_STUFFED)
		out_extra(o, "datafiles", "[]");
	if (!S_ISREG(st->st.st_mode) || (st->flags & PVFS_ST_STUFFED) ||
	    !pvfs_layout_valid(&l, niods))
		return;
	f = open_memstream(&extra, &size);
	if (!f)
		return;
	for (i = 0; i < l.pcount; i++)
		fprintf(f, "%s{\"iod\":%u,\"bytes\":%llu}", i ? "," : "[",
			pvfs_stripe_iod(&l, i, niods),
			(unsigned long long)pvfs_stripe_df_size(&l, i, st->st.st_size));
	fputc(']', f);
	fclose(f);
	out_extra(o, "datafiles", extra);
	free(extra);
}

int cmd_stat(int argc, char **argv)
{
	static const struct option longopts[] = { TOOL_LONG };
	struct pvfs_volinfo vi;
	struct pvfs_stat st;
	struct pvfs_fs *fs;
	struct out *o = NULL;
	int c, i, rc, failed = 0;

	while ((c = getopt_long(argc, argv, TOOL_SHORT, longopts, NULL)) != -1) {
		rc = tool_option(c);
		if (rc)
			return rc < 0 ? EXIT_USAGE : 0;
	}
	if (optind >= argc)
		return tool_usage("what of?");
	if (tool_connect(&fs))
		return EXIT_FAILURE;
	pvfs_volinfo(fs, &vi);
	if (tool.json)
		o = out_new("files", stat_cols, ARRAY_SIZE(stat_cols));
	for (i = optind; i < argc; i++) {
		const char *path = path_of(argv[i]);

		rc = pvfs_lstat(fs, path, &st);
		if (rc) {
			fail("%s: %s%s", path, strerror(-rc), local_hint(argv[i], rc));
			failed = 1;
		} else if (o) {
			stat_json(o, fs, path, &st, vi.niods);
		} else {
			stat_text(fs, path, &st, vi.niods);
		}
	}
	if (o)
		out_print(o);
	tool_disconnect(fs);
	return failed ? EXIT_FAILURE : 0;
}

/* ---------------------------------------------------------------- rm, mkdir */

/**
 * changing_path - what a command that changes something is to change
 * @arg: "pvfs:/path", or "/path" or "path" of the volume when there is nothing of that name here
 *
 * Who forgets that the command is not for local files must not lose those of the same name in the
 * volume.
 *
 * Return: the path, or NULL and the user was told.
 */
const char *changing_path(const char *arg)
{
	struct stat st;

	if (remote_path(arg))
		return remote_path(arg);
	if (!lstat(arg, &st)) {
		tool_usage("%s: is a local path; in the volume it is pvfs:%s%s", arg,
			   *arg == '/' ? "" : "/", arg);
		return NULL;
	}
	return arg;
}

/* Everything below a directory; by handle, so that depth and renames do no harm. */
static int rm_below(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *shown)
{
	struct pvfs_dirent e;
	struct pvfs_dir *d;
	int rc = pvfs_opendir_fh(fs, dir, &d), first = 0;
	char *sub;

	if (rc) {
		fail("%s: %s", shown, strerror(-rc));
		return rc;
	}
	while ((rc = pvfs_readdir(d, &e)) > 0) {
		if (!strcmp(e.name, ".") || !strcmp(e.name, ".."))
			continue;
		if (asprintf(&sub, "%s/%s", shown, e.name) < 0) {
			rc = -ENOMEM;
			break;
		}
		if (S_ISDIR(e.stat.st.st_mode))
			rc = rm_below(fs, &e.stat.fh, sub);
		else
			rc = 0;
		if (!rc) {
			rc = S_ISDIR(e.stat.st.st_mode) ? pvfs_rmdir_fh(fs, dir, e.name) :
							  pvfs_unlink_fh(fs, dir, e.name);
			if (rc && rc != -ENOENT)
				fail("%s: %s", sub, strerror(-rc));
			else
				rc = 0;
		}
		free(sub);
		first = first ?: rc;
	}
	pvfs_closedir(d);
	return first ?: rc;
}

/* Every way to write it: "/", "//.", "/a/.." */
static bool is_root(struct pvfs_fs *fs, const char *path)
{
	struct pvfs_volinfo vi;
	struct pvfs_stat st;

	return !pvfs_lstat(fs, path, &st) && !pvfs_volinfo(fs, &vi) && st.fh.ino == vi.root.ino;
}

/* @all: the root may be emptied, too; it stays itself. */
static int rm_one(struct pvfs_fs *fs, const char *path, bool recurse, bool force, bool all)
{
	bool whole = recurse && is_root(fs, path);
	struct pvfs_stat st;
	int rc;

	if (whole && !all) {
		fail("%s: is the whole volume: it is emptied with --all-of-it only", path);
		return -EPERM;
	}
	if (whole)
		return pvfs_lstat(fs, path, &st) ?: rm_below(fs, &st.fh, "");
	rc = pvfs_unlink(fs, path);
	if (rc == -ENOENT && force)
		return 0;
	if (rc == -EISDIR && recurse) {
		rc = pvfs_lstat(fs, path, &st);
		if (!rc && rm_below(fs, &st.fh, path))
			return -EIO;	/* what and why was said */
		if (!rc)
			rc = pvfs_rmdir(fs, path);
	}
	if (rc)
		fail("%s: %s%s", path, strerror(-rc),
		     rc == -EISDIR ? " (-r removes it with all that is in it)" : "");
	return rc;
}

int cmd_rm(int argc, char **argv)
{
	static const struct option longopts[] = { { "recursive", no_argument, NULL, 'r' },
						  { "force", no_argument, NULL, 'f' },
						  { "all-of-it", no_argument, NULL, 'A' },
						  TOOL_LONG };
	bool recurse = false, force = false, all = false;
	struct pvfs_fs *fs;
	int c, i, rc, failed = 0;

	while ((c = getopt_long(argc, argv, TOOL_SHORT "rf", longopts, NULL)) != -1) {
		recurse |= c == 'r';
		force |= c == 'f';
		all |= c == 'A';
		if (c == 'r' || c == 'f' || c == 'A')
			continue;
		rc = tool_option(c);
		if (rc)
			return rc < 0 ? EXIT_USAGE : 0;
	}
	if (optind >= argc)
		return tool_usage("what?");
	/* Nothing is removed before all are understood. */
	for (i = optind; i < argc; i++) {
		/* "/" is here, too; rm_one() has more to say of it. */
		if (argv[i][strspn(argv[i], "/")] && !changing_path(argv[i]))
			return EXIT_USAGE;
	}
	if (tool_connect(&fs))
		return EXIT_FAILURE;
	for (i = optind; i < argc; i++)
		failed |= !!rm_one(fs, path_of(argv[i]), recurse, force, all);
	tool_disconnect(fs);
	return failed ? EXIT_FAILURE : 0;
}

static int mkdir_parents(struct pvfs_fs *fs, const char *path, mode_t mode)
{
	char *copy = strdup(path), *p;
	struct pvfs_stat st;
	int rc = 0;

	if (!copy)
		return -ENOMEM;
	for (p = copy + 1; !rc; p++) {
		char c = *p;

		if (c && c != '/')
			continue;
		*p = '\0';
		rc = pvfs_mkdir(fs, copy, c ? 0777 : mode);
		if (rc == -EEXIST)
			rc = pvfs_stat(fs, copy, &st) ?: S_ISDIR(st.st.st_mode) ? 0 : -ENOTDIR;
		*p = c;
		if (!c)
			break;
	}
	free(copy);
	return rc;
}

int cmd_mkdir(int argc, char **argv)
{
	static const struct option longopts[] = { { "parents", no_argument, NULL, 'p' },
						  { "mode", required_argument, NULL, 'M' },
						  TOOL_LONG };
	int c, i, rc, failed = 0;
	bool parents = false;
	mode_t mode = 0777;
	struct pvfs_fs *fs;
	char *end;

	while ((c = getopt_long(argc, argv, TOOL_SHORT "p", longopts, NULL)) != -1) {
		if (c == 'p') {
			parents = true;
		} else if (c == 'M') {
			mode = strtoul(optarg, &end, 8);
			if (*end || !*optarg || mode > 07777)
				return tool_usage("'%s' is not an octal mode", optarg);
		} else {
			rc = tool_option(c);
			if (rc)
				return rc < 0 ? EXIT_USAGE : 0;
		}
	}
	if (optind >= argc)
		return tool_usage("which?");
	for (i = optind; i < argc; i++) {
		if (!changing_path(argv[i]))
			return EXIT_USAGE;
	}
	if (tool_connect(&fs))
		return EXIT_FAILURE;
	for (i = optind; i < argc; i++) {
		const char *path = path_of(argv[i]);

		rc = parents ? mkdir_parents(fs, path, mode) : pvfs_mkdir(fs, path, mode);
		if (rc)
			fail("%s: %s", path, strerror(-rc));
		failed |= !!rc;
	}
	tool_disconnect(fs);
	return failed ? EXIT_FAILURE : 0;
}
