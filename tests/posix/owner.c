// SPDX-License-Identifier: GPL-2.0-only
/*
 * owner.c - who may give a file which owner, group, mode and times, and what becomes of the set-id
 * bits then.
 */
#include "conform.h"
#include <grp.h>
#include <time.h>

static const struct who *const all[] = { &ROOT, &OWNER, &MEMBER, &SUPPL, &OTHER };

/* ---- chown ---- */

enum way { BY_PATH, BY_LINK, BY_FD, WAYS };
static const char *const way_name[] = { "chown", "lchown", "fchown" };

static void reset(const char *path, mode_t mode)
{
	OK(fs->chown(path, OWNER.uid, OWNER.gid));
	OK(fs->chmod(path, mode));
}

/*
 * POSIX chown with _POSIX_CHOWN_RESTRICTED: the owner may give it to a group of theirs, and nothing
 * else.
 */
static bool may_chown(const struct who *w, uid_t uid, gid_t gid)
{
	if (!w->uid)
		return true;
	if (uid != (uid_t)-1 && (w->uid != OWNER.uid || uid != OWNER.uid))
		return false;
	if (gid != (gid_t)-1 && (w->uid != OWNER.uid || (gid != OWNER.gid && !in_group(w, gid))))
		return false;
	return true;
}

static void chowns(void)
{
	static const struct { const char *name; uid_t uid; } uids[] = {
		{ "same", 2001 }, { "other", 2004 }, { "root", 0 }, { "-1", -1 },
	};
	static const struct { const char *name; gid_t gid; } gids[] = {
		{ "same", 2101 }, { "another of the owner", G_OTHER }, { "foreign", G_NONE }, { "-1", -1 },
	};
	static const mode_t modes[] = { 0644, 06755 };
	size_t w, u, g, m;
	int way;

	if (live())
		make_file("f", 5, 0644);
	for (m = 0; m < ARRAY_SIZE(modes); m++)
	for (way = 0; way < WAYS; way++)
	for (w = 0; w < ARRAY_SIZE(all); w++)
	for (u = 0; u < ARRAY_SIZE(uids); u++)
	for (g = 0; g < ARRAY_SIZE(gids); g++) {
		bool nothing = uids[u].uid == (uid_t)-1 && gids[g].gid == (gid_t)-1;
		int want = may_chown(all[w], uids[u].uid, gids[g].gid) ? 0 : EPERM;
		struct snap snap;
		struct stat st;
		int r, h = -1;

		/*
		 * Nothing to change, but bits to clear: Linux asks for the right to change the
		 * mode.
		 */
		if (nothing && (modes[m] & 06000) && all[w]->uid && all[w] != &OWNER)
			want = EPERM;
		if (!row("chown/%s of %04o to uid %s, gid %s by %s: %s", way_name[way], modes[m], uids[u].name,
			 gids[g].name, all[w]->name, err_name(want)))
			continue;
		reset("f", modes[m]);
		snap_take(&snap, "f", NULL);
		if (way == BY_FD)
			h = fs->open("f", O_RDWR, 0);
		be(all[w]);
		if (way == BY_FD)
			r = fs->fchown(h, uids[u].uid, gids[g].gid);
		else
			r = (way == BY_LINK ? fs->lchown : fs->chown)("f", uids[u].uid, gids[g].gid);
		be(&ROOT);
		GIVES(r, want);
		if (h >= 0)
			OK(fs->close(h));
		if (want) {
			SAME(&snap);
			continue;
		}
		OK(fs->lstat("f", &st));
		EQ(st.st_uid, uids[u].uid == (uid_t)-1 ? OWNER.uid : uids[u].uid);
		EQ(st.st_gid, gids[g].gid == (gid_t)-1 ? OWNER.gid : gids[g].gid);
		/*
		 * Executable files lose both bits, whoever changes their owner; Linux does so for
		 * root too.
		 */
		EQ(st.st_mode & 07777, modes[m] & 0777);
	}
}

/*
 * The set-group-id bit without execution for the group means mandatory locking: it is kept.
 * Directories keep all.
 */
static void chown_bits(void)
{
	static const struct { mode_t before, after; bool dir; } t[] = {
		{ 04755, 0755 }, { 02755, 0755 }, { 06755, 0755 }, { 07755, 01755 }, { 04644, 0644 }, { 02644, 02644 },
		{ 06644, 02644 }, { 02745, 02745 }, { 02654, 0654 }, { 01644, 01644 },
		{ 07755, 07755, true }, { 02755, 02755, true }, { 04700, 04700, true },
	};
	static const struct who *const who[] = { &ROOT, &OWNER };
	struct stat st;
	size_t i, w;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		for (w = 0; w < 2; w++) {
			mode_t after = t[i].after;
			const char *p = t[i].dir ? "d" : "f";

			/*
			 * One who is not in the group loses set-group-id anyway; OWNER is in both.
			 */
			if (!row("chown-bits/%s %04o given to another group by %s becomes %04o",
				 t[i].dir ? "directory" : "file", t[i].before, who[w]->name, after))
				continue;
			make(p, t[i].dir ? T_DIR : T_FILE);
			reset(p, t[i].before);
			be(who[w]);
			OK(fs->chown(p, -1, G_OTHER));
			be(&ROOT);
			OK(fs->stat(p, &st));
			EQ(st.st_mode & 07777, after);
			EQ(st.st_gid, G_OTHER);
			wipe(p);
		}
	}
}

/* ---- chmod ---- */

static void chmods(void)
{
	static const mode_t modes[] = {
		0, 0100, 0400, 0644, 0755, 0777, 01777, 02644, 02755, 04644, 04755, 06755, 07000, 07777,
	};
	static const enum type types[] = { T_FILE, T_DIR, T_FIFO };
	struct snap snap;
	struct stat st;
	size_t t, m, w;
	int by_fd;

	for (t = 0; t < ARRAY_SIZE(types); t++) {
		for (by_fd = 0; by_fd < 2; by_fd++) {
			if (by_fd && types[t] != T_FILE)
				continue;
			if (live()) {
				wipe("x");
				make("x", types[t]);
			}
			for (m = 0; m < ARRAY_SIZE(modes); m++) {
				for (w = 0; w < ARRAY_SIZE(all); w++) {
					int want = !all[w]->uid || all[w] == &OWNER ? 0 : EPERM, r, h = -1;

					if (!row("chmod/%s %s to %04o by %s: %s", by_fd ? "descriptor of" : "path of",
						 type_name[types[t]], modes[m], all[w]->name, err_name(want)))
						continue;
					reset("x", 0644);
					snap_take(&snap, "x", NULL);
					if (by_fd)
						h = fs->open("x", O_RDONLY, 0);
					be(all[w]);
					r = by_fd ? fs->fchmod(h, modes[m]) : fs->chmod("x", modes[m]);
					be(&ROOT);
					GIVES(r, want);
					if (h >= 0)
						fs->close(h);
					if (want) {
						SAME(&snap);
						continue;
					}
					OK(fs->stat("x", &st));
					EQ(st.st_mode & 07777, modes[m]);
				}
			}
		}
	}
	/* An owner who is not in the file's group cannot make it run with that. */
	for (t = 0; t < ARRAY_SIZE(types); t++) {
		if (live()) {
			wipe("x");
			make("x", types[t]);
			OK(fs->chown("x", OWNER.uid, G_NONE));
		}
		for (m = 0; m < ARRAY_SIZE(modes); m++) {
			if (!row("chmod/%s of a foreign group to %04o by owner: set-group-id is dropped",
				 type_name[types[t]], modes[m]))
				continue;
			be(&OWNER);
			OK(fs->chmod("x", modes[m]));
			be(&ROOT);
			OK(fs->stat("x", &st));
			EQ(st.st_mode & 07777, modes[m] & ~S_ISGID);
		}
	}
}

/* ---- times ---- */

#define SET(s) { s, 123456789 }
#define NOW { 5, UTIME_NOW }
#define OMIT { 6, UTIME_OMIT }

/*
 * What POSIX asks for: nothing, when both are left; to write, when both become now; else to be the
 * owner.
 */
static const struct {
	const char *name;
	struct timespec ts[2];
	bool null;
	enum { ANYBODY, WRITER, ITS_OWNER, NOBODY } by;
} settings[] = {
	{ "NULL", { SET(0), SET(0) }, true, WRITER },
	{ "now, now", { NOW, NOW }, false, WRITER },
	{ "omit, omit", { OMIT, OMIT }, false, ANYBODY },
	{ "now, omit", { NOW, OMIT }, false, ITS_OWNER },
	{ "omit, now", { OMIT, NOW }, false, ITS_OWNER },
	{ "set, omit", { SET(1000000000), OMIT }, false, ITS_OWNER },
	{ "omit, set", { OMIT, SET(1100000000) }, false, ITS_OWNER },
	{ "set, now", { SET(1000000000), NOW }, false, ITS_OWNER },
	{ "now, set", { NOW, SET(1100000000) }, false, ITS_OWNER },
	{ "set, set", { SET(1000000000), SET(1100000000) }, false, ITS_OWNER },
	{ "a second short of 1970", { SET(-1), SET(-1) }, false, ITS_OWNER },
	{ "after 2038", { SET(0x80000001l), SET(0x90000001l) }, false, ITS_OWNER },
	{ "nanoseconds too many", { { 1, 1000000000 }, SET(1) }, false, NOBODY },
	{ "nanoseconds too many for the second", { SET(1), { 1, 1000000000 } }, false, NOBODY },
	{ "nanoseconds below 0", { { 1, -5 }, SET(1) }, false, NOBODY },
	{ "nanoseconds near the special values", { SET(1), { 1, UTIME_NOW + 2 } }, false, NOBODY },
};

static void check_time(const struct timespec *got, const struct timespec *was, const struct timespec *set, bool null,
		       const char *which)
{
	if (!null && set->tv_nsec == UTIME_OMIT) {
		if (got->tv_sec != was->tv_sec || got->tv_nsec != was->tv_nsec)
			wrong(__FILE__, __LINE__, "%s should not change", which);
	} else if (null || set->tv_nsec == UTIME_NOW) {
		if (got->tv_sec - time(NULL) > 2 || time(NULL) - got->tv_sec > 60)
			wrong(__FILE__, __LINE__, "%s should be now, not %lld", which, (long long)got->tv_sec);
	} else if (got->tv_sec != set->tv_sec || got->tv_nsec != set->tv_nsec) {
		wrong(__FILE__, __LINE__, "%s should be as set, not %lld.%09ld", which, (long long)got->tv_sec,
		      got->tv_nsec);
	}
}

static void times_of(void)
{
	static const struct timespec before[2] = { { 1200000000, 1 }, { 1300000000, 2 } };
	static const mode_t modes[] = { 0666, 0444, 0600 };
	struct stat was, st;
	struct snap snap;
	size_t w, i, m;
	int way;

	if (live()) {
		make_file("f", 5, 0644);
		OK(fs->chown("f", OWNER.uid, OWNER.gid));
	}
	for (m = 0; m < ARRAY_SIZE(modes); m++)
	for (way = 0; way < WAYS; way++)
	for (i = 0; i < ARRAY_SIZE(settings); i++)
	for (w = 0; w < ARRAY_SIZE(all); w++) {
		const struct timespec *ts = settings[i].null ? NULL : settings[i].ts;
		bool owner = !all[w]->uid || all[w] == &OWNER;
		bool writer = may(all[w], S_IFREG | modes[m], OWNER.uid, OWNER.gid, W_OK);
		int want = 0, r, h = -1;

		if (settings[i].by == NOBODY)
			want = EINVAL;
		else if (settings[i].by == WRITER && !owner && !writer)
			want = EACCES;
		else if (settings[i].by == ITS_OWNER && !owner)
			want = EPERM;
		if (!row("utimens/%s %04o, %s by %s: %s",
			 way == BY_PATH ? "path" : way == BY_LINK ? "nofollow" : "descriptor", modes[m],
			 settings[i].name, all[w]->name, err_name(want)))
			continue;
		OK(fs->chmod("f", modes[m]));
		OK(fs->utimens("f", before));
		OK(fs->stat("f", &was));
		snap_take(&snap, "f", NULL);
		if (way == BY_FD)
			h = fs->open("f", O_RDWR, 0);
		be(all[w]);
		if (way == BY_FD)
			r = fs->futimens(h, ts);
		else
			r = (way == BY_LINK ? fs->lutimens : fs->utimens)("f", ts);
		be(&ROOT);
		GIVES(r, want);
		if (h >= 0)
			OK(fs->close(h));
		if (want) {
			SAME(&snap);
			continue;
		}
		OK(fs->stat("f", &st));
		check_time(&st.st_atim, &was.st_atim, &settings[i].ts[0], settings[i].null, "atime");
		check_time(&st.st_mtim, &was.st_mtim, &settings[i].ts[1], settings[i].null, "mtime");
	}
}

/* Links themselves have times, owners and no use for a mode. */
static void links(void)
{
	static const struct timespec ts[2] = { { 1000000000, 7 }, { 1000000001, 8 } };
	struct snap snap;
	struct stat st;

	if (live()) {
		make_targets(".");
		make("l", T_SYMFILE);
		make("dangling", T_DANGLING);
	}
	if (row("links/lutimens changes the link, not the file")) {
		snap_take(&snap, "tfile", NULL);
		OK(fs->lutimens("l", ts));
		OK(fs->lstat("l", &st));
		EQ(st.st_mtim.tv_sec, 1000000001);
		EQ(st.st_mtim.tv_nsec, 8);
		SAME(&snap);
	}
	if (row("links/utimens changes the file, not the link")) {
		snap_take(&snap, "l", NULL);
		OK(fs->utimens("l", ts));
		OK(fs->stat("tfile", &st));
		EQ(st.st_mtim.tv_sec, 1000000001);
		SAME(&snap);
	}
	if (row("links/lchown changes the link, not the file")) {
		snap_take(&snap, "tfile", NULL);
		OK(fs->lchown("l", 2001, 2101));
		OK(fs->lstat("l", &st));
		EQ(st.st_uid, 2001);
		EQ(st.st_gid, 2101);
		EQ(st.st_mode, S_IFLNK | 0777);
		SAME(&snap);
	}
	if (row("links/chown changes the file, not the link")) {
		snap_take(&snap, "l", NULL);
		OK(fs->chown("l", 2004, 2904));
		OK(fs->stat("tfile", &st));
		EQ(st.st_uid, 2004);
		SAME(&snap);
	}
	if (row("links/chmod changes the file, not the link")) {
		snap_take(&snap, "l", NULL);
		OK(fs->chmod("l", 0600));
		OK(fs->stat("tfile", &st));
		EQ(st.st_mode & 07777, 0600);
		SAME(&snap);
	}
	if (row("links/lutimens of a dangling link"))
		OK(fs->lutimens("dangling", ts));
	if (row("links/utimens through a dangling link"))
		GIVES(fs->utimens("dangling", ts), ENOENT);
	if (row("links/lchown of a dangling link"))
		OK(fs->lchown("dangling", 2001, 2101));
	if (row("links/chown through a dangling link"))
		GIVES(fs->chown("dangling", 2001, 2101), ENOENT);
	if (row("links/chmod through a dangling link"))
		GIVES(fs->chmod("dangling", 0644), ENOENT);
	if (row("links/a link's owner decides about its times")) {
		OK(fs->lchown("l", OWNER.uid, OWNER.gid));
		be(&OWNER);
		OK(fs->lutimens("l", ts));
		be(&OTHER);
		GIVES(fs->lutimens("l", ts), EPERM);
	}
	if (row("links/anybody may read a link")) {
		char buf[16];

		be(&OTHER);
		EQ(fs->readlink("l", buf, sizeof(buf)), 5);
	}
}

/*
 * access() goes by the real ids, all else by the effective ones; with AT_EACCESS access does too.
 */
static void real_ids(void)
{
	static const struct { const char *name; uid_t real, effective; } t[] = {
		{ "root for another", 2004, 0 }, { "root for the owner", 2001, 0 }, { "the owner for root", 0, 2001 },
		{ "another for the owner", 2001, 2004 }, { "the owner for another", 2004, 2001 },
	};
	static const mode_t modes[] = { 0600, 0400, 0006, 0000 };
	size_t i, m;
	int k;

	if (live()) {
		make_file("f", 5, 0600);
		OK(fs->chown("f", OWNER.uid, OWNER.gid));
	}
	for (i = 0; i < ARRAY_SIZE(t); i++)
	for (m = 0; m < ARRAY_SIZE(modes); m++)
	for (k = 0; k < 4; k++) {
		static const char *const what[] = { "access", "faccessat AT_EACCESS", "open", "utimensat now" };
		struct who w = OTHER;
		int want, r = 0;

		w.uid = k ? t[i].effective : t[i].real;
		w.ngroups = 0;
		want = may(&w, S_IFREG | modes[m], OWNER.uid, OWNER.gid, W_OK) ? 0 : EACCES;
		if (k == 3 && w.uid == OWNER.uid)
			want = 0;
		if (!row("real-ids/%s of %04o by %s: %s", what[k], modes[m], t[i].name, err_name(want)))
			continue;
		OK(fs->chmod("f", modes[m]));
		/* Not by be(): the two differ. */
		OK(sys(setgroups(0, NULL)));
		OK(sys(setresgid(OTHER.gid, OTHER.gid, 0)));
		OK(sys(setresuid(t[i].real, t[i].effective, 0)));
		switch (k) {
		case 0:
			r = sys(access("f", W_OK));
			break;
		case 1:
			r = sys(faccessat(AT_FDCWD, "f", W_OK, AT_EACCESS));
			break;
		case 2:
			r = sys(open("f", O_WRONLY));
			break;
		case 3:
			r = fs->utimens("f", NULL);
			break;
		}
		fs->setcred(&ROOT);
		GIVES(r, want);
		if (k == 2 && r >= 0)
			close(r);
	}
}

const struct table tables_owner[] = {
	{ "chown", chowns },
	{ "chown-bits", chown_bits },
	{ "chmod", chmods },
	{ "utimens", times_of },
	{ "links", links },
	{ "real-ids", real_ids, true },
	{ NULL },
};
