// SPDX-License-Identifier: GPL-2.0-only
/*
 * acl.c - POSIX ACLs (1003.1e draft 17) as the attributes system.posix_acl_access and
 * system.posix_acl_default: what is malformed is refused, what an ACL grants is worked out by the
 * draft's algorithm, modes and defaults follow from it.
 */
#include "conform.h"

#define ACCESS "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"

#define USER_OBJ 1
#define USER 2
#define GROUP_OBJ 4
#define GROUP 8
#define MASK 0x10
#define OTHERS 0x20
#define NOBODY 0xffffffffu

struct ace {
	uint16_t tag, perm;
	uint32_t id;
};

struct acl {
	uint32_t version;
	struct ace e[16];
};

/* Entries end with one of tag 0. */
static size_t pack(struct acl *acl, const struct ace *e)
{
	int n = 0;

	acl->version = 2;
	for (; e[n].tag; n++)
		acl->e[n] = e[n];
	return sizeof(uint32_t) + n * sizeof(struct ace);
}

static int set_acl(const char *path, const char *which, const struct ace *e)
{
	struct acl acl;
	size_t n = pack(&acl, e);

	return fs->setxattr(path, which, &acl, n, 0);
}

static const struct ace *find(const struct ace *e, int tag)
{
	for (; e->tag; e++)
		if (e->tag == tag)
			return e;
	return NULL;
}

/*
 * The access check algorithm of the draft, 23.1.5, with what Linux makes of it on all file systems:
 * when the mode grants the group class nothing, the ACL is not looked at, and who is only named in
 * it is one of the others.
 */
static bool grants(const struct who *w, const struct ace *acl, int want)
{
	const struct ace *mask = find(acl, MASK), *e;
	int m = mask ? mask->perm : 7;
	bool matched = false;

	if (!w->uid)
		return true;
	if (w->uid == OWNER.uid)
		return (find(acl, USER_OBJ)->perm & want) == want;
	if (!(mask ? mask : find(acl, GROUP_OBJ))->perm)
		return !in_group(w, OWNER.gid) && (find(acl, OTHERS)->perm & want) == want;
	for (e = acl; e->tag; e++)
		if (e->tag == USER && e->id == w->uid)
			return (e->perm & m & want) == want;
	for (e = acl; e->tag; e++) {
		if (!((e->tag == GROUP_OBJ && in_group(w, OWNER.gid)) || (e->tag == GROUP && in_group(w, e->id))))
			continue;
		matched = true;
		if ((e->perm & m & want) == want)
			return true;
	}
	return !matched && (find(acl, OTHERS)->perm & want) == want;
}

static const struct {
	const char *name;
	struct ace e[16];
} acls[] = {
	{ "no more than a mode", { { USER_OBJ, 6, NOBODY }, { GROUP_OBJ, 4, NOBODY }, { OTHERS, 0, NOBODY } } },
	{ "a user more", { { USER_OBJ, 6, NOBODY }, { USER, 6, 2004 }, { GROUP_OBJ, 0, NOBODY }, { MASK, 6, NOBODY },
			   { OTHERS, 0, NOBODY } } },
	{ "a user less", { { USER_OBJ, 6, NOBODY }, { USER, 0, 2004 }, { GROUP_OBJ, 6, NOBODY }, { MASK, 6, NOBODY },
			   { OTHERS, 6, NOBODY } } },
	{ "a member less than its group", { { USER_OBJ, 6, NOBODY }, { USER, 4, 2002 }, { GROUP_OBJ, 6, NOBODY },
			   { MASK, 7, NOBODY }, { OTHERS, 6, NOBODY } } },
	{ "a masked user", { { USER_OBJ, 7, NOBODY }, { USER, 7, 2004 }, { GROUP_OBJ, 7, NOBODY }, { MASK, 4, NOBODY },
			   { OTHERS, 0, NOBODY } } },
	{ "a mask of nothing", { { USER_OBJ, 7, NOBODY }, { USER, 7, 2004 }, { GROUP_OBJ, 7, NOBODY },
			   { MASK, 0, NOBODY }, { OTHERS, 7, NOBODY } } },
	{ "a group more", { { USER_OBJ, 6, NOBODY }, { GROUP_OBJ, 0, NOBODY }, { GROUP, 6, 2905 }, { MASK, 7, NOBODY },
			   { OTHERS, 0, NOBODY } } },
	{ "a group less", { { USER_OBJ, 6, NOBODY }, { GROUP_OBJ, 6, NOBODY }, { GROUP, 0, 2905 }, { MASK, 7, NOBODY },
			   { OTHERS, 6, NOBODY } } },
	{ "two groups, half each", { { USER_OBJ, 6, NOBODY }, { GROUP_OBJ, 0, NOBODY }, { GROUP, 4, 2902 },
			   { GROUP, 2, 2903 }, { MASK, 7, NOBODY }, { OTHERS, 0, NOBODY } } },
	{ "a group beside the owning one", { { USER_OBJ, 6, NOBODY }, { GROUP_OBJ, 4, NOBODY }, { GROUP, 2, 2101 },
			   { MASK, 6, NOBODY }, { OTHERS, 0, NOBODY } } },
	{ "an owner with nothing", { { USER_OBJ, 0, NOBODY }, { USER, 7, 2001 }, { GROUP_OBJ, 7, NOBODY },
			   { MASK, 7, NOBODY }, { OTHERS, 7, NOBODY } } },
	{ "a mask and no names", { { USER_OBJ, 6, NOBODY }, { GROUP_OBJ, 6, NOBODY }, { MASK, 4, NOBODY },
			   { OTHERS, 0, NOBODY } } },
	{ "four users, four groups", { { USER_OBJ, 6, NOBODY }, { USER, 4, 2002 }, { USER, 2, 2003 }, { USER, 1, 2004 },
			   { USER, 7, 3000 }, { GROUP_OBJ, 4, NOBODY }, { GROUP, 6, 2901 }, { GROUP, 2, 2902 },
			   { GROUP, 5, 2905 }, { GROUP, 7, 3000 }, { MASK, 6, NOBODY }, { OTHERS, 1, NOBODY } } },
};

static void access_by(void)
{
	static const struct who *const all[] = { &ROOT, &OWNER, &MEMBER, &SUPPL, &OTHER };
	static const struct { const char *name; int flags, want; } how[] = {
		{ "read", O_RDONLY, R_OK }, { "write", O_WRONLY, W_OK }, { "both", O_RDWR, R_OK | W_OK },
	};
	size_t a, w, k;

	for (a = 0; a < ARRAY_SIZE(acls); a++) {
		const struct ace *mask = find(acls[a].e, MASK);
		mode_t mode = find(acls[a].e, USER_OBJ)->perm << 6 |
			      (mask ? mask : find(acls[a].e, GROUP_OBJ))->perm << 3 | find(acls[a].e, OTHERS)->perm;
		struct stat st;

		if (row("acl/%s: it is set, and the mode is %04o", acls[a].name, mode)) {
			wipe("f");
			make_file("f", 5, 0600);
			OK(fs->chown("f", OWNER.uid, OWNER.gid));
			OK(set_acl("f", ACCESS, acls[a].e));
			OK(fs->stat("f", &st));
			EQ(st.st_mode & 07777, mode);
		}
		for (w = 0; w < ARRAY_SIZE(all); w++) {
			for (k = 0; k < ARRAY_SIZE(how); k++) {
				int err = grants(all[w], acls[a].e, how[k].want) ? 0 : EACCES, h;

				if (row("acl/%s: open to %s by %s: %s", acls[a].name, how[k].name, all[w]->name,
					err_name(err))) {
					be(all[w]);
					h = fs->open("f", how[k].flags, 0);
					GIVES(h, err);
					if (h >= 0)
						fs->close(h);
				}
				if (row("acl/%s: access to %s by %s: %s", acls[a].name, how[k].name, all[w]->name,
					err_name(err))) {
					be(all[w]);
					GIVES(fs->access("f", how[k].want), err);
				}
			}
		}
		if (row("acl/%s: it comes back as it was", acls[a].name)) {
			struct acl acl, got;
			size_t n = pack(&acl, acls[a].e);
			ssize_t r = fs->getxattr("f", ACCESS, &got, sizeof(got));

			/* What is no more than a mode is not kept. */
			if (n == 28) {
				GIVES(r, ENODATA);
			} else {
				EQ(r, n);
				WANT(!memcmp(&acl, &got, n));
			}
		}
		if (row("acl/%s: chmod sets the mask", acls[a].name)) {
			struct acl got;

			OK(fs->chmod("f", 0751));
			OK(fs->stat("f", &st));
			EQ(st.st_mode & 07777, 0751);
			if (mask) {
				OK(fs->getxattr("f", ACCESS, &got, sizeof(got)));
				EQ(find(got.e, USER_OBJ)->perm, 7);
				EQ(find(got.e, MASK)->perm, 5);
				EQ(find(got.e, OTHERS)->perm, 1);
				EQ(find(got.e, GROUP_OBJ)->perm, find(acls[a].e, GROUP_OBJ)->perm);
			}
		}
		if (row("acl/%s: it is removed, the mode stays", acls[a].name)) {
			char c[8];

			OK(fs->removexattr("f", ACCESS));
			GIVES(fs->getxattr("f", ACCESS, c, 8), ENODATA);
			OK(fs->stat("f", &st));
			EQ(st.st_mode & 07777, 0751);
		}
	}
}

static void malformed(void)
{
	static const struct { const char *name; struct ace e[16]; } t[] = {
		{ "no owner", { { GROUP_OBJ, 4, NOBODY }, { OTHERS, 4, NOBODY } } },
		{ "no group", { { USER_OBJ, 4, NOBODY }, { OTHERS, 4, NOBODY } } },
		{ "no others", { { USER_OBJ, 4, NOBODY }, { GROUP_OBJ, 4, NOBODY } } },
		{ "two owners", { { USER_OBJ, 4, NOBODY }, { USER_OBJ, 4, NOBODY }, { GROUP_OBJ, 4, NOBODY },
				  { OTHERS, 4, NOBODY } } },
		{ "two others", { { USER_OBJ, 4, NOBODY }, { GROUP_OBJ, 4, NOBODY }, { OTHERS, 4, NOBODY },
				  { OTHERS, 4, NOBODY } } },
		{ "two masks", { { USER_OBJ, 4, NOBODY }, { GROUP_OBJ, 4, NOBODY }, { MASK, 4, NOBODY },
				 { MASK, 4, NOBODY }, { OTHERS, 4, NOBODY } } },
		{ "a user and no mask", { { USER_OBJ, 4, NOBODY }, { USER, 4, 7 }, { GROUP_OBJ, 4, NOBODY },
					  { OTHERS, 4, NOBODY } } },
		{ "a group and no mask", { { USER_OBJ, 4, NOBODY }, { GROUP_OBJ, 4, NOBODY }, { GROUP, 4, 7 },
					   { OTHERS, 4, NOBODY } } },
		{ "the wrong order", { { GROUP_OBJ, 4, NOBODY }, { USER_OBJ, 4, NOBODY }, { OTHERS, 4, NOBODY } } },
		{ "a user after the group", { { USER_OBJ, 4, NOBODY }, { GROUP_OBJ, 4, NOBODY }, { USER, 4, 7 },
					      { MASK, 4, NOBODY }, { OTHERS, 4, NOBODY } } },
		{ "the mask last", { { USER_OBJ, 4, NOBODY }, { GROUP_OBJ, 4, NOBODY }, { OTHERS, 4, NOBODY },
				     { MASK, 4, NOBODY } } },
		{ "an unknown tag", { { USER_OBJ, 4, NOBODY }, { GROUP_OBJ, 4, NOBODY }, { OTHERS, 4, NOBODY },
				      { 0x40, 4, NOBODY } } },
		{ "permissions above 7", { { USER_OBJ, 8, NOBODY }, { GROUP_OBJ, 4, NOBODY }, { OTHERS, 4, NOBODY } } },
		{ "a user of id -1", { { USER_OBJ, 4, NOBODY }, { USER, 4, NOBODY }, { GROUP_OBJ, 4, NOBODY },
				       { MASK, 4, NOBODY }, { OTHERS, 4, NOBODY } } },
		{ "a group of id -1", { { USER_OBJ, 4, NOBODY }, { GROUP_OBJ, 4, NOBODY }, { GROUP, 4, NOBODY },
					{ MASK, 4, NOBODY }, { OTHERS, 4, NOBODY } } },
	};
	static const struct ace good[] = {
		{ USER_OBJ, 6, NOBODY }, { USER, 6, 7 }, { GROUP_OBJ, 4, NOBODY }, { MASK, 6, NOBODY },
		{ OTHERS, 0, NOBODY }, { 0 }
	};
	static const char *const which[] = { ACCESS, DEFAULT };
	struct snap snap;
	struct acl acl;
	size_t i, k, n;

	if (live())
		OK(fs->mkdir("d", 0750));
	for (k = 0; k < 2; k++) {
		const char *name = k ? "default" : "access";

		for (i = 0; i < ARRAY_SIZE(t); i++) {
			if (!row("acl-bad/%s ACL, %s: EINVAL", name, t[i].name))
				continue;
			snap_take(&snap, "d", NULL);
			GIVES(set_acl("d", which[k], t[i].e), EINVAL);
			SAME(&snap);
			GIVES(fs->getxattr("d", which[k], NULL, 0), ENODATA);
		}
		for (n = 1; n < 44; n++) {
			/* 4 bytes are an ACL without entries, which removes it. */
			if (n % 8 == 4 || !row("acl-bad/%s ACL, cut to %zu bytes: EINVAL", name, n))
				continue;
			pack(&acl, good);
			snap_take(&snap, "d", NULL);
			GIVES(fs->setxattr("d", which[k], &acl, n, 0), EINVAL);
			SAME(&snap);
		}
		for (i = 0; i < 5; i++) {
			static const uint32_t versions[] = { 0, 1, 3, 0x02000000, 0xffffffff };

			if (!row("acl-bad/%s ACL, version %#x: EOPNOTSUPP", name, versions[i]))
				continue;
			n = pack(&acl, good);
			acl.version = versions[i];
			snap_take(&snap, "d", NULL);
			GIVES(fs->setxattr("d", which[k], &acl, n, 0), EOPNOTSUPP);
			SAME(&snap);
		}
		if (row("acl-bad/%s ACL without entries removes it", name)) {
			n = pack(&acl, good);
			OK(fs->setxattr("d", which[k], &acl, n, 0));
			EQ(fs->getxattr("d", which[k], NULL, 0), n);
			OK(fs->setxattr("d", which[k], &acl, 4, 0));
			GIVES(fs->getxattr("d", which[k], NULL, 0), ENODATA);
		}
		if (row("acl-bad/%s ACL, a buffer too small: ERANGE", name)) {
			n = pack(&acl, good);
			OK(fs->setxattr("d", which[k], &acl, n, 0));
			GIVES(fs->getxattr("d", which[k], &acl, n - 1), ERANGE);
			OK(fs->removexattr("d", which[k]));
		}
		if (row("acl-bad/%s ACL by one who is not the owner: EPERM", name)) {
			snap_take(&snap, "d", NULL);
			OK(fs->chmod(".", 0755));
			be(&OTHER);
			OK(fs->chmod("d", 0777) == -EPERM ? 0 : -1);
			GIVES(set_acl("d", which[k], good), EPERM);
			SAME(&snap);
		}
	}
	if (row("acl-bad/default ACL of a file: EACCES")) {
		make_file("f", 5, 0644);
		snap_take(&snap, "f", NULL);
		GIVES(set_acl("f", DEFAULT, good), EACCES);
		SAME(&snap);
	}
	if (row("acl-bad/an ACL of a link: EOPNOTSUPP")) {
		n = pack(&acl, good);
		OK(fs->symlink("f", "l"));
		snap_take(&snap, "l", "f", NULL);
		GIVES(fs->lsetxattr("l", ACCESS, &acl, n, 0), EOPNOTSUPP);
		GIVES(fs->lgetxattr("l", ACCESS, &acl, n), EOPNOTSUPP);
		SAME(&snap);
	}
}

/*
 * What is made in a directory with a default ACL gets it, cut to the mode asked for; the umask is
 * not heeded.
 */
static void inheritance(void)
{
	static const struct ace def[] = {
		{ USER_OBJ, 7, NOBODY }, { USER, 6, 2004 }, { GROUP_OBJ, 5, NOBODY }, { MASK, 7, NOBODY },
		{ OTHERS, 1, NOBODY }, { 0 }
	};
	static const struct ace plain[] = {
		{ USER_OBJ, 7, NOBODY }, { GROUP_OBJ, 5, NOBODY }, { OTHERS, 0, NOBODY }, { 0 }
	};
	static const mode_t modes[] = { 0777, 0666, 0640, 0600, 0, 0755, 0123 };
	static const enum type types[] = { T_FILE, T_FIFO, T_DIR };
	struct stat st;
	struct acl got;
	size_t m, t, k;

	if (live()) {
		OK(fs->mkdir("long", 0777));
		OK(set_acl("long", DEFAULT, def));
		OK(fs->mkdir("short", 0777));
		OK(set_acl("short", DEFAULT, plain));
	}
	for (k = 0; k < 2; k++)
	for (t = 0; t < ARRAY_SIZE(types); t++)
	for (m = 0; m < ARRAY_SIZE(modes); m++) {
		const char *path = k ? "short/x" : "long/x";
		mode_t want = modes[m] & (k ? 0750 : 0771);
		int h;

		if (!row("acl-default/%s of %04o under %s default ACL is %04o", type_name[types[t]], modes[m],
			 k ? "a short" : "an extended", want))
			continue;
		fs->umask(077);
		if (types[t] == T_FILE) {
			h = fs->open(path, O_RDWR | O_CREAT | O_EXCL, modes[m]);
			OK(h);
			if (h >= 0)
				fs->close(h);
		} else if (types[t] == T_DIR) {
			OK(fs->mkdir(path, modes[m]));
		} else {
			OK(fs->mknod(path, S_IFIFO | modes[m], 0));
		}
		fs->umask(0);
		OK(fs->stat(path, &st));
		EQ(st.st_mode & 07777, want);
		if (k) {
			GIVES(fs->getxattr(path, ACCESS, &got, sizeof(got)), ENODATA);
		} else {
			EQ(fs->getxattr(path, ACCESS, &got, sizeof(got)), 44);
			got.e[5].tag = 0;
			EQ(find(got.e, USER_OBJ)->perm, (modes[m] >> 6) & 7);
			EQ(find(got.e, USER)->perm, 6);
			EQ(find(got.e, GROUP_OBJ)->perm, 5);
			EQ(find(got.e, MASK)->perm, (modes[m] >> 3) & 7);
			EQ(find(got.e, OTHERS)->perm, modes[m] & 1);
		}
		if (types[t] == T_DIR)
			EQ(fs->getxattr(path, DEFAULT, &got, sizeof(got)), k ? 28 : 44);
		wipe(path);
	}
	if (row("acl-default/a link gets none, and 0777")) {
		OK(fs->symlink("to", "long/l"));
		OK(fs->lstat("long/l", &st));
		EQ(st.st_mode, S_IFLNK | 0777);
		wipe("long/l");
	}
	if (row("acl-default/two levels down")) {
		OK(fs->mkdir("long/a", 0777));
		OK(fs->mkdir("long/a/b", 0777));
		EQ(fs->getxattr("long/a/b", DEFAULT, &got, sizeof(got)), 44);
		wipe("long/a");
	}
	if (row("acl-default/what is moved in gets none")) {
		make_file("m", 5, 0640);
		OK(fs->rename("m", "long/m", 0));
		GIVES(fs->getxattr("long/m", ACCESS, &got, sizeof(got)), ENODATA);
		OK(fs->stat("long/m", &st));
		EQ(st.st_mode & 07777, 0640);
		wipe("long/m");
	}
	if (row("acl-default/removed, and the umask counts again")) {
		OK(fs->removexattr("long", DEFAULT));
		fs->umask(027);
		OK(fs->mkdir("long/d", 0777));
		fs->umask(0);
		OK(fs->stat("long/d", &st));
		EQ(st.st_mode & 07777, 0750);
		/* It is not an error to remove what is not there. */
		GIVES(fs->removexattr("long", DEFAULT), 0);
	}
	if (on_vfs() && row("acl-default/an O_TMPFILE gets it")) {
		int h;

		OK(set_acl("long", DEFAULT, def));
		h = open("long", O_TMPFILE | O_RDWR, 0666);
		OK(sys(h));
		EQ(fs->fgetxattr(h, ACCESS, &got, sizeof(got)), 44);
		OK(fs->fstat(h, &st));
		EQ(st.st_mode & 07777, 0660);
		close(h);
	}
	if (row("acl-default/a directory is searched by its ACL")) {
		static const struct ace only[] = {
			{ USER_OBJ, 7, NOBODY }, { USER, 1, 2004 }, { GROUP_OBJ, 0, NOBODY }, { MASK, 7, NOBODY },
			{ OTHERS, 0, NOBODY }, { 0 }
		};

		OK(fs->mkdir("s", 0700));
		make_file("s/f", 5, 0644);
		OK(set_acl("s", ACCESS, only));
		be(&OTHER);
		OK(fs->stat("s/f", &st));
		GIVES(fs->opendir("s"), EACCES);
		GIVES(fs->mknod("s/new", S_IFREG | 0644, 0), EACCES);
		be(&MEMBER);
		GIVES(fs->stat("s/f", &st), EACCES);
	}
}

const struct table tables_acl[] = {
	{ "acl", access_by },
	{ "acl-bad", malformed },
	{ "acl-default", inheritance },
	{ NULL },
};
