// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_ns_test.c - the name space through the handlers: what POSIX says about names, links,
 * directories, permissions.
 */
#include "mgr_fixture.h"

static void names(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_attr a, b;
	char name[257];
	int i;

	assert_int_equal(do_lookup(c, fx_root, "x", &a), -ENOENT);
	assert_int_equal(do_mkfile(c, fx_root, "x", 0644, &a), 0);
	assert_int_equal(a.mode, S_IFREG | 0644);
	assert_int_equal(a.nlink, 1);
	assert_int_equal(do_lookup(c, fx_root, "x", &b), 0);
	assert_int_equal(a.fid.ino, b.fid.ino);
	assert_int_equal(a.fid.gen, b.fid.gen);
	assert_int_equal(do_mkfile(c, fx_root, "x", 0644, NULL), -EEXIST);
	assert_int_equal(do_mkfile(c, fx_root, "", 0644, NULL), -EINVAL);
	assert_int_equal(do_mkfile(c, fx_root, ".", 0644, NULL), -EINVAL);
	assert_int_equal(do_mkfile(c, fx_root, "..", 0644, NULL), -EINVAL);
	assert_int_equal(do_mkfile(c, fx_root, "a/b", 0644, NULL), -EINVAL);
	assert_int_equal(do_mkfile(c, fx_root, "...", 0644, NULL), 0);
	/* Every byte there is, alone. */
	for (i = 1; i < 256; i++) {
		name[0] = i;
		name[1] = 0;
		if (i != '/' && i != '.' && i != 'x')
			assert_int_equal(do_mkfile(c, fx_root, name, 0600, NULL), 0);
	}
	memset(name, 'n', 256);
	name[255] = 0;
	assert_int_equal(do_mkfile(c, fx_root, name, 0600, NULL), 0);
	assert_int_equal(do_lookup(c, fx_root, name, NULL), 0);
	name[254] = 0;
	assert_int_equal(do_lookup(c, fx_root, name, NULL), -ENOENT);
	assert_int_equal(do_lookup(c, a.fid, "y", NULL), -ENOTDIR);
	a.fid.gen++;
	assert_int_equal(do_getattr(c, a.fid, NULL, NULL), -ESTALE);
}

static void directories(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_attr d, s, r, f;

	assert_int_equal(do_mkdir(c, fx_root, "d", 0755, &d), 0);
	assert_int_equal(d.mode, S_IFDIR | 0755);
	assert_int_equal(d.nlink, 2);
	assert_int_equal(do_mkdir(c, d.fid, "s", 0700, &s), 0);
	do_getattr(c, d.fid, NULL, &d);
	assert_int_equal(d.nlink, 3);
	do_getattr(c, fx_root, NULL, &r);
	assert_int_equal(r.nlink, 3);
	assert_int_equal(do_rmdir(c, fx_root, "d"), -ENOTEMPTY);
	assert_int_equal(do_unlink(c, fx_root, "d"), -EISDIR);
	do_mkfile(c, d.fid, "f", 0644, &f);
	assert_int_equal(do_rmdir(c, d.fid, "f"), -ENOTDIR);
	assert_int_equal(do_rmdir(c, d.fid, "s"), 0);
	assert_int_equal(do_getattr(c, s.fid, NULL, NULL), -ESTALE);
	assert_int_equal(do_mkfile(c, s.fid, "x", 0644, NULL), -ESTALE);
	assert_int_equal(do_rmdir(c, fx_root, "d"), -ENOTEMPTY);
	assert_int_equal(do_unlink(c, d.fid, "f"), 0);
	assert_int_equal(do_rmdir(c, fx_root, "d"), 0);
	do_getattr(c, fx_root, NULL, &r);
	assert_int_equal(r.nlink, 2);
	assert_int_equal(do_rmdir(c, fx_root, "d"), -ENOENT);
}

static void links(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_readlink_req rl = { 0 };
	struct pvfs_readlink_rep rr;
	struct pvfs_attr a, d, s, old;
	char target[4097];

	do_mkdir(c, fx_root, "d", 0755, &d);
	do_mkfile(c, fx_root, "a", 0644, &a);
	old = a;
	assert_int_equal(do_link(c, a.fid, d.fid, "b"), 0);
	do_getattr(c, a.fid, NULL, &a);
	assert_int_equal(a.nlink, 2);
	assert_true(a.version > old.version);
	assert_int_equal(do_link(c, a.fid, d.fid, "b"), -EEXIST);
	assert_int_equal(do_link(c, d.fid, fx_root, "dd"), -EPERM);
	assert_int_equal(do_unlink(c, fx_root, "a"), 0);
	assert_int_equal(do_lookup(c, d.fid, "b", &a), 0);
	assert_int_equal(a.nlink, 1);
	assert_int_equal(do_unlink(c, d.fid, "b"), 0);
	assert_int_equal(do_getattr(c, a.fid, NULL, NULL), -ESTALE);
	assert_int_equal(do_link(c, a.fid, d.fid, "b"), -ESTALE);

	memset(target, 't', sizeof(target));
	target[4095] = 0;
	assert_int_equal(do_symlink(c, fx_root, "s", target, &s), 0);
	assert_int_equal(s.mode, S_IFLNK | 0777);
	assert_int_equal(s.size, 4095);
	rl.fid = s.fid;
	assert_int_equal(fx_readlink(c, &rl, &rr), 0);
	assert_int_equal(rr.target.len, 4095);
	assert_memory_equal(rr.target.p, target, 4095);
	assert_int_equal(do_symlink(c, fx_root, "e", "", NULL), -ENOENT);
	assert_int_equal(do_link(c, s.fid, fx_root, "s2"), 0);
	assert_int_equal(do_unlink(c, fx_root, "s"), 0);
	assert_int_equal(fx_readlink(c, &rl, &rr), 0);
	assert_int_equal(do_unlink(c, fx_root, "s2"), 0);
	assert_int_equal(fx_readlink(c, &rl, &rr), -ESTALE);
	rl.fid = d.fid;
	assert_int_equal(fx_readlink(c, &rl, &rr), -EINVAL);
}

/* A short target comes with the LOOKUP; nothing comes with what is no link. */
static void eager_target(void **state)
{
	struct pvfs_lookup_req rq = { .dir = fx_root, .name = PVFS_STR("l") };
	struct fx_client *c = *state;
	struct pvfs_lookup_rep rp;
	char target[PVFS_SYMLINK_EAGER + 2];
	u32 len;

	rq.cred = fx_cred(c);
	memset(target, 'e', sizeof(target));
	for (len = PVFS_SYMLINK_EAGER; len <= PVFS_SYMLINK_EAGER + 1; len++) {
		target[len] = 0;
		assert_int_equal(do_symlink(c, fx_root, "l", target, NULL), 0);
		assert_int_equal(fx_lookup(c, &rq, &rp), 0);
		assert_int_equal(rp.attr.size, len);
		assert_int_equal(rp.target.len, len > PVFS_SYMLINK_EAGER ? 0 : len);
		assert_memory_equal(rp.target.p, target, rp.target.len);
		assert_int_equal(do_unlink(c, fx_root, "l"), 0);
		target[len] = 'e';
	}
	do_mkfile(c, fx_root, "l", 0644, NULL);
	assert_int_equal(fx_lookup(c, &rq, &rp), 0);
	assert_int_equal(rp.target.len, 0);
}

static void link_limit(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_attr a;
	char name[16];
	u32 i;

	do_mkfile(c, fx_root, "a", 0644, &a);
	for (i = 1; i < PVFS_LINK_MAX; i++) {
		snprintf(name, sizeof(name), "l%u", i);
		assert_int_equal(do_link(c, a.fid, fx_root, name), 0);
	}
	assert_int_equal(do_link(c, a.fid, fx_root, "one-too-many"), -EMLINK);
}

/* Names change owners, and nothing else changes. */
static void exchanges(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_attr a, d, e, g, t, root;

	do_mkfile(c, fx_root, "a", 0644, &a);
	do_mkdir(c, fx_root, "d", 0755, &d);
	do_mkdir(c, fx_root, "e", 0755, &e);
	do_mkdir(c, d.fid, "g", 0755, &g);
	assert_int_equal(do_rename(c, fx_root, "a", fx_root, "nope", 2), -ENOENT);
	assert_int_equal(do_rename(c, fx_root, "nope", fx_root, "a", 2), -ENOENT);
	/* A file and a directory that is not empty, in one directory. */
	assert_int_equal(do_rename(c, fx_root, "a", fx_root, "d", 2), 0);
	assert_int_equal(do_lookup(c, fx_root, "d", &t), 0);
	assert_int_equal(t.fid.ino, a.fid.ino);
	assert_int_equal(do_lookup(c, fx_root, "a", &t), 0);
	assert_int_equal(t.fid.ino, d.fid.ino);
	fx_check(c->f);
	/*
	 * In two: d is named a, a is named d. The directory's new parent has one more link, its old
	 * one less.
	 */
	do_getattr(c, fx_root, NULL, &root);
	assert_int_equal(do_rename(c, fx_root, "d", d.fid, "g", 2), 0);
	assert_int_equal(do_lookup(c, fx_root, "d", &t), 0);
	assert_int_equal(t.fid.ino, g.fid.ino);
	do_getattr(c, d.fid, NULL, &t);
	assert_int_equal(t.nlink, 2);
	do_getattr(c, fx_root, NULL, &t);
	assert_int_equal(t.nlink, root.nlink + 1);
	fx_check(c->f);
	/* Two directories of two parents. */
	do_mkdir(c, e.fid, "x", 0755, &t);
	assert_int_equal(do_rename(c, e.fid, "x", fx_root, "d", 2), 0);
	fx_check(c->f);
	/* Into itself, from above and from below. */
	assert_int_equal(do_rename(c, fx_root, "e", e.fid, "x", 2), -EINVAL);
	assert_int_equal(do_rename(c, e.fid, "x", fx_root, "e", 2), -EINVAL);
	/* With itself. */
	assert_int_equal(do_link(c, a.fid, fx_root, "a2"), 0);
	assert_int_equal(do_rename(c, fx_root, "a2", d.fid, "g", 2), 0);
	fx_check(c->f);
}

static void renames(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_attr a, b, d, e, g, t;

	do_mkfile(c, fx_root, "a", 0644, &a);
	do_mkfile(c, fx_root, "b", 0644, &b);
	do_mkdir(c, fx_root, "d", 0755, &d);
	do_mkdir(c, fx_root, "e", 0755, &e);
	assert_int_equal(do_rename(c, fx_root, "nope", fx_root, "x", 0), -ENOENT);
	assert_int_equal(do_rename(c, fx_root, "a", fx_root, "a", 0), 0);
	assert_int_equal(do_rename(c, fx_root, "a", fx_root, "b", 1), -EEXIST);
	assert_int_equal(do_rename(c, fx_root, "a", fx_root, "b", 3), -EINVAL);
	assert_int_equal(do_rename(c, fx_root, "a", fx_root, "b", 6), -EINVAL);
	assert_int_equal(do_rename(c, fx_root, "a", fx_root, "b", 8), -EINVAL);
	/* What a whiteout leaves counts as a file, and goes as one. */
	assert_int_equal(do_rename(c, fx_root, "b", fx_root, "b2", 4), 0);
	assert_int_equal(do_lookup(c, fx_root, "b", &t), 0);
	assert_int_equal(t.mode, S_IFCHR);
	assert_int_equal(t.rdev, 0);
	fx_check(c->f);
	assert_int_equal(do_rename(c, fx_root, "b2", fx_root, "b", 0), 0);
	fx_check(c->f);
	assert_int_equal(do_rename(c, fx_root, "a", fx_root, "b", 0), 0);
	assert_int_equal(do_getattr(c, b.fid, NULL, NULL), -ESTALE);
	assert_int_equal(do_lookup(c, fx_root, "b", &t), 0);
	assert_int_equal(t.fid.ino, a.fid.ino);
	/* Two names of one inode: nothing happens, both stay. */
	assert_int_equal(do_link(c, a.fid, d.fid, "b2"), 0);
	assert_int_equal(do_rename(c, fx_root, "b", d.fid, "b2", 0), 0);
	assert_int_equal(do_lookup(c, fx_root, "b", NULL), 0);
	assert_int_equal(do_lookup(c, d.fid, "b2", NULL), 0);
	/* Types. */
	assert_int_equal(do_rename(c, fx_root, "b", fx_root, "e", 0), -EISDIR);
	assert_int_equal(do_rename(c, fx_root, "e", fx_root, "b", 0), -ENOTDIR);
	assert_int_equal(do_rename(c, fx_root, "e", fx_root, "d", 0), -ENOTEMPTY);
	assert_int_equal(do_rename(c, fx_root, "d", fx_root, "e", 0), 0);
	assert_int_equal(do_getattr(c, e.fid, NULL, NULL), -ESTALE);
	fx_check(c->f);
	/* Loops: d is named e now. */
	do_mkdir(c, d.fid, "g", 0755, &g);
	assert_int_equal(do_rename(c, fx_root, "e", g.fid, "x", 0), -EINVAL);
	assert_int_equal(do_rename(c, fx_root, "e", d.fid, "x", 0), -EINVAL);
	assert_int_equal(do_rename(c, d.fid, "g", fx_root, "e", 0), -ENOTEMPTY);
	/* To another parent, and over an empty directory there. */
	do_mkdir(c, fx_root, "h", 0755, &t);
	do_mkdir(c, t.fid, "g", 0755, NULL);
	assert_int_equal(do_rename(c, d.fid, "g", t.fid, "g", 0), 0);
	do_getattr(c, d.fid, NULL, &d);
	do_getattr(c, t.fid, NULL, &t);
	assert_int_equal(d.nlink, 2);
	assert_int_equal(t.nlink, 3);
	assert_int_equal(do_rename(c, fx_root, "e", g.fid, "e", 0), 0);
	fx_check(c->f);
	/* Over a file with more links: it keeps them. */
	do_mkfile(c, fx_root, "p", 0644, NULL);
	assert_int_equal(do_rename(c, fx_root, "p", d.fid, "b2", 0), 0);
	do_getattr(c, a.fid, NULL, &a);
	assert_int_equal(a.nlink, 1);
}

static void permissions(void **state)
{
	struct fx_client *c = *state, u = fx_as(c, 1000, 100, 1), o = fx_as(c, 1001, 100, 2),
		x = fx_as(c, 1002, 200, 3);
	struct pvfs_attr d, t, f, g;

	do_mkdir(c, fx_root, "d", 0755, &d);
	assert_int_equal(do_mkfile(&u, d.fid, "f", 0644, NULL), -EACCES);
	assert_int_equal(do_mkfile(&u, fx_root, "d", 0644, NULL), -EEXIST);
	do_mkdir(c, fx_root, "t", 01777, &t);
	assert_int_equal(t.mode, S_IFDIR | 01777);
	assert_int_equal(do_mkfile(&u, t.fid, "f", 0640, &f), 0);
	assert_int_equal(f.uid, 1000);
	assert_int_equal(f.gid, 100);
	/* Sticky: others may not remove it, nor rename it, nor rename over it. */
	assert_int_equal(do_unlink(&o, t.fid, "f"), -EPERM);
	assert_int_equal(do_rename(&o, t.fid, "f", t.fid, "g", 0), -EPERM);
	do_mkfile(&o, t.fid, "g", 0600, &g);
	assert_int_equal(do_rename(&o, t.fid, "g", t.fid, "f", 0), -EPERM);
	/* Owner, group, others. */
	assert_int_equal(do_open(&u, f.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_close(&u, f.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_open(&o, f.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_close(&o, f.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_open(&o, f.fid, PVFS_O_WRITE, NULL), -EACCES);
	assert_int_equal(do_open(&x, f.fid, PVFS_O_READ, NULL), -EACCES);
	put_unaligned_le32(100, x.groups);
	x.ngroups = 1;
	assert_int_equal(do_open(&x, f.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_close(&x, f.fid, PVFS_O_READ, NULL), 0);
	/* Root, and what even root may not. */
	assert_int_equal(do_open(c, f.fid, PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_close(c, f.fid, PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_open(c, f.fid, PVFS_O_EXEC, NULL), -EACCES);
	/* Search permission. */
	assert_int_equal(do_mkdir(&u, t.fid, "p", 0600, &g), 0);
	assert_int_equal(do_lookup(&o, g.fid, "x", NULL), -EACCES);
	assert_int_equal(do_lookup(&u, g.fid, "x", NULL), -EACCES);
	assert_int_equal(do_lookup(c, g.fid, "x", NULL), -ENOENT);
	/* Devices. */
	{
		struct pvfs_mknod_req rq = {
			.cred = fx_cred(&u), .dir = t.fid, .name = PVFS_STR("dev"),
			.mode = S_IFCHR | 0666, .rdev = 5,
		};
		struct pvfs_mknod_rep rp;

		assert_int_equal(fx_mknod(&u, &rq, &rp), -EPERM);
		rq.mode = S_IFIFO | 0666;
		assert_int_equal(fx_mknod(&u, &rq, &rp), 0);
		assert_int_equal(rp.attr.rdev, 0);
		rq.mode = S_IFDIR | 0666;
		assert_int_equal(fx_mknod(&u, &rq, &rp), -EPERM);
	}
	/* Moving a directory changes its "..": needs write permission on it. */
	assert_int_equal(do_mkdir(&u, t.fid, "q", 0555, NULL), 0);
	assert_int_equal(do_rename(&u, t.fid, "q", g.fid, "q", 0), -EACCES);
}

static void setgid_dirs(void **state)
{
	struct fx_client *c = *state, u = fx_as(c, 1000, 100, 1);
	struct pvfs_setattr_req rq = { .valid = PVFS_SA_GID | PVFS_SA_MODE, .gid = 300,
		.mode = 02777 };
	struct pvfs_setattr_rep rp;
	struct pvfs_attr d, a;

	do_mkdir(c, fx_root, "d", 0777, &d);
	rq.fid = d.fid;
	rq.cred = fx_cred(c);
	assert_int_equal(fx_setattr(c, &rq, &rp), 0);
	assert_int_equal(rp.attr.mode, S_IFDIR | 02777);
	assert_int_equal(do_mkfile(&u, d.fid, "f", 0644, &a), 0);
	assert_int_equal(a.gid, 300);
	assert_int_equal(a.mode & 07777, 0644);
	assert_int_equal(do_mkdir(&u, d.fid, "s", 0755, &a), 0);
	assert_int_equal(a.gid, 300);
	assert_int_equal(a.mode & 07777, 02755);
	/* Not in the group: no set-group-id program for it. */
	assert_int_equal(do_mkfile(&u, d.fid, "x", 02755, &a), 0);
	assert_int_equal(a.mode & 07777, 0755);
}

static int chmod_as(struct fx_client *c, struct pvfs_fid fid, u32 mode, struct pvfs_attr *a)
{
	struct pvfs_setattr_req rq = { .cred = fx_cred(c), .fid = fid, .valid = PVFS_SA_MODE,
		.mode = mode };
	struct pvfs_setattr_rep rp;
	int err = fx_setattr(c, &rq, &rp);

	fx_take(a, err, &rp.attr);
	return err;
}

static int chown_as(struct fx_client *c, struct pvfs_fid fid, u32 valid, u32 uid, u32 gid,
		    struct pvfs_attr *a)
{
	struct pvfs_setattr_req rq = { .cred = fx_cred(c), .fid = fid, .valid = valid, .uid = uid,
		.gid = gid };
	struct pvfs_setattr_rep rp;
	int err = fx_setattr(c, &rq, &rp);

	fx_take(a, err, &rp.attr);
	return err;
}

static int utimes_as(struct fx_client *c, struct pvfs_fid fid, u32 valid, s64 sec,
		     struct pvfs_attr *a)
{
	struct pvfs_setattr_req rq = {
		.cred = fx_cred(c), .fid = fid, .valid = valid, .atime = { sec, 5 }, .mtime = { sec,
			5 },
	};
	struct pvfs_setattr_rep rp;
	int err = fx_setattr(c, &rq, &rp);

	fx_take(a, err, &rp.attr);
	return err;
}

/* Set-group-id without execution for the group: its members keep it when they change a file, others don't. */
static void setgid_kept(void **state)
{
	struct fx_client *c = *state, member = fx_as(c, 1001, 300, 1), other = fx_as(c, 1002, 100, 2);
	struct pvfs_setattr_req rq = { 0 };
	struct pvfs_setattr_rep rp;
	static const u32 changes[] = { PVFS_SA_KILL_PRIV | PVFS_SA_OPENED, PVFS_SA_SIZE };
	struct pvfs_attr t, f, a;
	size_t i;

	do_mkdir(c, fx_root, "t", 0777, &t);
	do_mkfile(c, t.fid, "f", 0666, &f);
	for (i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		const struct { struct fx_client *who; u32 flags, valid, want; } rows[] = {
			{ &member, 0, 0, 02666 }, { &other, 0, 0, 0666 }, { c, 0, 0, 02666 },
			/* Where the client has checked it is the client that says it. */
			{ &other, PVFS_CRED_CHECKED, 0, 02666 },
			{ &other, PVFS_CRED_CHECKED, PVFS_SA_KILL_PRIV | PVFS_SA_KILL_SGID, 0666 },
		};
		size_t r;

		for (r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
			assert_int_equal(chown_as(c, f.fid, PVFS_SA_UID | PVFS_SA_GID, 1000, 300, NULL), 0);
			assert_int_equal(chmod_as(c, f.fid, 02666, NULL), 0);
			rq = (struct pvfs_setattr_req){ .fid = f.fid, .cred = fx_cred(rows[r].who),
				.valid = changes[i] | rows[r].valid };
			rq.cred.flags = rows[r].flags;
			assert_int_equal(fx_setattr(rows[r].who, &rq, &rp), 0);
			assert_int_equal(rp.attr.mode & 07777, rows[r].want);
		}
	}
	/* Who gives it to another group had to be in the old one to keep the bit. */
	other.uid = 1000;
	assert_int_equal(chmod_as(c, f.fid, 02644, NULL), 0);
	assert_int_equal(chown_as(&other, f.fid, PVFS_SA_GID, 0, 100, &a), 0);
	assert_int_equal(a.mode & 07777, 0644);
	assert_int_equal(chmod_as(c, f.fid, 02644, NULL), 0);
	put_unaligned_le32(300, other.groups);
	other.ngroups = 1;
	assert_int_equal(chown_as(&other, f.fid, PVFS_SA_GID, 0, 300, &a), 0);
	assert_int_equal(a.mode & 07777, 02644);
}

static void attributes(void **state)
{
	struct fx_client *c = *state, u = fx_as(c, 1000, 100, 1), o = fx_as(c, 1001, 100, 2);
	struct pvfs_attr t, f, a;

	do_mkdir(c, fx_root, "t", 0777, &t);
	do_mkfile(&u, t.fid, "f", 0644, &f);
	assert_int_equal(chmod_as(&o, f.fid, 0777, NULL), -EPERM);
	assert_int_equal(chmod_as(&u, f.fid, 06755, &a), 0);
	assert_int_equal(a.mode, S_IFREG | 06755);
	/* chown takes the set-id bits away. */
	assert_int_equal(chown_as(&u, f.fid, PVFS_SA_UID, 1001, 0, NULL), -EPERM);
	assert_int_equal(chown_as(&u, f.fid, PVFS_SA_GID, 0, 555, NULL), -EPERM);
	put_unaligned_le32(555, u.groups);
	u.ngroups = 1;
	assert_int_equal(chown_as(&u, f.fid, PVFS_SA_GID, 0, 555, &a), 0);
	assert_int_equal(a.gid, 555);
	assert_int_equal(a.mode & 07777, 0755);
	assert_int_equal(chown_as(c, f.fid, PVFS_SA_UID | PVFS_SA_GID, 1000, 777, &a), 0);
	/* Not in its group any more: no set-group-id bit. */
	assert_int_equal(chmod_as(&u, f.fid, 02755, &a), 0);
	assert_int_equal(a.mode & 07777, 0755);
	/* Times. */
	assert_int_equal(utimes_as(&o, f.fid, PVFS_SA_MTIME, 1000, NULL), -EPERM);
	assert_int_equal(utimes_as(&o, f.fid, PVFS_SA_MTIME_NOW, 0, NULL), -EPERM);
	assert_int_equal(utimes_as(&o, f.fid, PVFS_SA_MTIME_NOW | PVFS_SA_ATIME_NOW, 0, NULL), -EACCES);
	assert_int_equal(utimes_as(&u, f.fid, PVFS_SA_MTIME | PVFS_SA_ATIME, 1000, &a), 0);
	assert_int_equal(a.mtime.sec, 1000);
	assert_int_equal(a.mtime.nsec, 5);
	assert_int_equal(a.atime.sec, 1000);
	assert_true(a.ctime.sec > 1000000);
	assert_int_equal(utimes_as(&u, f.fid, PVFS_SA_MTIME, -5, &a), 0);
	assert_int_equal(a.mtime.sec, -5);
	chmod_as(&u, f.fid, 0666, NULL);
	assert_int_equal(utimes_as(&o, f.fid, PVFS_SA_MTIME_NOW | PVFS_SA_ATIME_NOW, 0, &a), 0);
	assert_true(a.mtime.sec > 1000000);
	/* Truncation by somebody else takes set-id bits away; permission counts. */
	chmod_as(&u, f.fid, 04766, NULL);
	assert_int_equal(do_truncate(&o, f.fid, 100, NULL, &a), 0);
	assert_int_equal(a.mode & 07777, 0766);
	assert_int_equal(a.size, 100);
	chmod_as(&u, f.fid, 0600, NULL);
	assert_int_equal(do_truncate(&o, f.fid, 0, NULL, NULL), -EACCES);
	assert_int_equal(do_truncate(&u, t.fid, 0, NULL, NULL), -EISDIR);
	assert_int_equal(do_truncate(&u, f.fid, PVFS_FILE_MAX + 1ull, NULL, NULL), -EFBIG);
}

static void create_flags(void **state)
{
	struct fx_client *c = *state, u = fx_as(c, 1000, 100, 1);
	struct pvfs_create_req rq = {
		.cred = fx_cred(c), .dir = fx_root, .name = PVFS_STR("f"),
		.flags = PVFS_O_CREAT | PVFS_O_WRITE,
		.mode = 0644,
	};
	struct pvfs_create_rep rp;
	struct pvfs_attr a;

	assert_int_equal(fx_create(c, &rq, &rp), 0);
	assert_int_equal(rp.created, 1);
	assert_int_equal(rp.cap.rights, PVFS_CAP_WRITE);
	assert_true(rp.attr.layout.base < FX_NIODS);
	assert_int_equal(rp.attr.layout.pcount, FX_NIODS);
	assert_int_equal(do_close(c, rp.attr.fid, PVFS_O_WRITE, NULL), 0);
	assert_int_equal(fx_create(c, &rq, &rp), 0);
	assert_int_equal(rp.created, 0);
	assert_int_equal(do_close(c, rp.attr.fid, PVFS_O_WRITE, NULL), 0);
	rq.flags |= PVFS_O_EXCL;
	assert_int_equal(fx_create(c, &rq, &rp), -EEXIST);
	rq.cred = fx_cred(&u);
	rq.flags = PVFS_O_CREAT | PVFS_O_WRITE;
	assert_int_equal(fx_create(&u, &rq, &rp), -EACCES);
	rq.flags = PVFS_O_CREAT | PVFS_O_READ;
	assert_int_equal(fx_create(&u, &rq, &rp), 0);
	assert_int_equal(do_close(&u, rp.attr.fid, PVFS_O_READ, NULL), 0);
	/* A read-only mode does not stop its maker from writing. */
	rq.cred = fx_cred(c);
	rq.name = PVFS_STR("ro");
	rq.mode = 0;
	rq.flags = PVFS_O_CREAT | PVFS_O_READ | PVFS_O_WRITE;
	assert_int_equal(fx_create(c, &rq, &rp), 0);
	assert_int_equal(rp.cap.rights, PVFS_CAP_READ | PVFS_CAP_WRITE);
	assert_int_equal(do_close(c, rp.attr.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	/* By name, without making it. */
	rq.flags = PVFS_O_READ;
	rq.name = PVFS_STR("none");
	assert_int_equal(fx_create(c, &rq, &rp), -ENOENT);
	do_mkdir(c, fx_root, "d", 0755, NULL);
	do_symlink(c, fx_root, "l", "f", NULL);
	rq.name = PVFS_STR("d");
	assert_int_equal(fx_create(c, &rq, &rp), 0);
	rq.flags = PVFS_O_CREAT | PVFS_O_READ;
	assert_int_equal(fx_create(c, &rq, &rp), -EISDIR);
	rq.flags = PVFS_O_WRITE;
	assert_int_equal(fx_create(c, &rq, &rp), -EISDIR);
	rq.name = PVFS_STR("l");
	assert_int_equal(fx_create(c, &rq, &rp), -ELOOP);
	rq.name = PVFS_STR("f");
	rq.flags = PVFS_O_READ | PVFS_O_DIRECTORY;
	assert_int_equal(fx_create(c, &rq, &rp), -ENOTDIR);
	assert_int_equal(c->f->m->opens.files, 0);
	/* Truncating. */
	assert_int_equal(do_lookup(c, fx_root, "f", &a), 0);
	do_truncate(c, a.fid, 1000, NULL, &a);
	assert_int_equal(a.size, 1000);
	rq.flags = PVFS_O_CREAT | PVFS_O_WRITE | PVFS_O_TRUNC;
	assert_int_equal(fx_create(c, &rq, &rp), 0);
	assert_int_equal(rp.attr.size, 0);
	assert_int_equal(rp.created, 0);
	assert_true(rp.attr.trunc_gen > a.trunc_gen);
	assert_int_equal(do_close(c, rp.attr.fid, PVFS_O_WRITE, NULL), 0);
}

/* Reads a whole directory in pieces of @bytes; checks order and counts. */
static u32 list(struct fx_client *c, struct pvfs_fid dir, u32 bytes, u32 flags, u32 *ret_calls)
{
	struct pvfs_readdir_req rq = { .dir = dir, .bytes = bytes, .flags = flags };
	struct pvfs_readdir_rep rp;
	struct pvfs_dent d;
	struct pvfs_wire w;
	u32 i, n = 0;

	*ret_calls = 0;
	do {
		assert_int_equal(fx_readdir(c, &rq, &rp), 0);
		++*ret_calls;
		pvfs_wire_init(&w, fx_op.payload, fx_op.payload_len);
		for (i = 0; i < rp.count; i++) {
			pvfs_get_dent(&w, &d);
			assert_int_equal(w.err, 0);
			assert_true(d.cookie >= MGR_COOKIE_MIN && d.cookie > rq.cookie);
			assert_true(d.cookie < 1ull << 63);
			if (flags & PVFS_RD_ATTRS)
				assert_int_equal(d.attr.nlink, S_ISDIR(d.attr.mode) ? 2 : 1);
			else
				assert_int_equal(d.attr.nlink, 0);
			assert_true(d.attr.fid.ino);
			rq.cookie = d.cookie;
		}
		assert_int_equal(pvfs_wire_left(&w), 0);
		assert_true(fx_op.payload_len <= bytes);
		n += rp.count;
		assert_true(rp.count || rp.eof);
	} while (!rp.eof);
	return n;
}

static void readdirs(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_readdir_req rq = { .dir = fx_root, .bytes = 100 };
	struct pvfs_readdir_rep rp;
	struct pvfs_attr d, f;
	char name[64];
	u32 i, calls;

	assert_int_equal(fx_readdir(c, &rq, &rp), -EINVAL);
	assert_int_equal(list(c, fx_root, 65536, 0, &calls), 0);
	do_mkdir(c, fx_root, "d", 0755, &d);
	for (i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "entry-number-%u", i);
		assert_int_equal(i % 10 ? do_mkfile(c, d.fid, name, 0644, &f) :
				 do_mkdir(c, d.fid, name, 0755, NULL), 0);
	}
	assert_int_equal(list(c, d.fid, PVFS_READDIR_MAX, PVFS_RD_ATTRS, &calls), 3000);
	assert_true(calls <= 3);
	assert_int_equal(list(c, d.fid, 1000, 0, &calls), 3000);
	assert_int_equal(list(c, d.fid, 1 << 30, PVFS_RD_ATTRS, &calls), 3000);
	assert_int_equal(list(c, d.fid, PVFS_READDIR_MAX, PVFS_RD_ATTRS | PVFS_RD_ONE, &calls), 3000);
	assert_int_equal(calls, 3000);
	/* What is removed behind a reader's back does not disturb it. */
	rq.dir = d.fid;
	rq.bytes = 4096;
	assert_int_equal(fx_readdir(c, &rq, &rp), 0);
	assert_int_equal(rp.parent.ino, 1);
	for (i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "entry-number-%u", i);
		assert_int_equal(i % 10 ? do_unlink(c, d.fid, name) : do_rmdir(c, d.fid, name), 0);
	}
	rq.cookie = 1ull << 62;
	assert_int_equal(fx_readdir(c, &rq, &rp), 0);
	assert_int_equal(rp.count, 0);
	assert_true(rp.eof);
	rq.cookie = ~0ull;
	assert_int_equal(fx_readdir(c, &rq, &rp), 0);
	assert_true(rp.eof);
	rq.dir = f.fid;
	assert_int_equal(fx_readdir(c, &rq, &rp), -ESTALE);
}

static void layouts(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_setlayout_req rq = { .cred = fx_cred(c), .layout = { .base = 1, .pcount = 2,
		.ssize = 8192 } };
	struct pvfs_setlayout_rep rp;
	struct pvfs_attr d, s, f, g;
	struct fx_client other;
	u32 i, seen = 0;

	do_mkdir(c, fx_root, "d", 0755, &d);
	assert_int_equal(d.layout.base, MGR_BASE_ANY);
	for (i = 0; i < FX_NIODS; i++) {
		char name[8];

		snprintf(name, sizeof(name), "%u", i);
		do_mkfile(c, d.fid, name, 0644, &f);
		seen |= 1u << f.layout.base;
	}
	assert_int_equal(seen, (1u << FX_NIODS) - 1);
	rq.fid = d.fid;
	assert_int_equal(fx_setlayout(c, &rq, &rp), 0);
	do_mkfile(c, d.fid, "f", 0644, &f);
	assert_int_equal(f.layout.base, 1);
	assert_int_equal(f.layout.pcount, 2);
	assert_int_equal(f.layout.ssize, 8192);
	do_mkdir(c, d.fid, "s", 0755, &s);
	assert_int_equal(s.layout.pcount, 2);
	rq.layout.pcount = FX_NIODS + 1;
	assert_int_equal(fx_setlayout(c, &rq, &rp), -EINVAL);
	rq.layout.pcount = 1;
	rq.layout.ssize = 5000;
	assert_int_equal(fx_setlayout(c, &rq, &rp), -EINVAL);
	/* A file: only while nothing can have been written. */
	rq.fid = f.fid;
	rq.layout = (struct pvfs_layout){ .base = MGR_BASE_ANY, .pcount = 1, .ssize = 4096 };
	assert_int_equal(fx_setlayout(c, &rq, &rp), 0);
	assert_true(rp.attr.layout.base < FX_NIODS);
	assert_int_equal(rp.attr.layout.pcount, 1);
	do_truncate(c, f.fid, 10, NULL, NULL);
	assert_int_equal(fx_setlayout(c, &rq, &rp), -EEXIST);
	do_create(c, d.fid, "g", PVFS_O_CREAT | PVFS_O_WRITE, 0644, &g);
	rq.fid = g.fid;
	assert_int_equal(fx_setlayout(c, &rq, &rp), 0);
	/* Another client that has it open goes by the layout that it was given. */
	fx_client_init(&other, c->f, 2);
	assert_int_equal(do_open(&other, g.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(fx_setlayout(c, &rq, &rp), -EBUSY);
	do_close(&other, g.fid, PVFS_O_READ, NULL);
	assert_int_equal(fx_setlayout(c, &rq, &rp), 0);
	do_close(c, g.fid, PVFS_O_WRITE, NULL);
}

static void statfs_sum(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_statfs_req rq;
	struct pvfs_statfs_rep rp;

	assert_int_equal(fx_statfs(c, &rq, &rp), 0);
	assert_int_equal(rp.iods, FX_NIODS);
	assert_int_equal(rp.iods_up, FX_NIODS);
	assert_int_equal(rp.blocks, FX_NIODS * 2000);
	assert_int_equal(rp.bavail, FX_NIODS * 1000);
	assert_true(rp.files > rp.ffree);
	c->f->x.down = 2;
	assert_int_equal(fx_statfs(c, &rq, &rp), 0);
	assert_int_equal(rp.iods_up, FX_NIODS - 1);
	assert_int_equal(rp.blocks, (FX_NIODS - 1) * 2000);
	/* Stores on one disk: it is there as long as one of its iods answers. */
	c->f->x.disk[1] = c->f->x.disk[2] = 77;
	c->f->x.disk[3] = 78;
	assert_int_equal(fx_statfs(c, &rq, &rp), 0);
	assert_int_equal(rp.iods_up, FX_NIODS - 1);
	assert_int_equal(rp.blocks, (FX_NIODS - 1) * 2000);
	c->f->x.down = 0;
	assert_int_equal(fx_statfs(c, &rq, &rp), 0);
	assert_int_equal(rp.iods_up, FX_NIODS);
	assert_int_equal(rp.blocks, (FX_NIODS - 1) * 2000);
	assert_int_equal(rp.bavail, (FX_NIODS - 1) * 1000);
}

/* Damaged bodies never get past the decoder. */
static void bad_bodies(void **state)
{
	struct fx_client *c = *state;
	u8 junk[64];
	u32 nr, len;

	memset(junk, 0xff, sizeof(junk));
	for (nr = 0; nr < PVFS_OP_LIMIT; nr++) {
		const struct pvfs_op_info *info = pvfs_op_info(nr);

		if (!info || info->by != PVFS_ROLE_MGR || nr == PVFS_OP_SESSION_CLOSE)
			continue;
		for (len = 1; len < sizeof(junk); len += 7)
			assert_true(fx_call(c, nr, junk, len) < 0);
	}
	assert_int_equal(fx_execute(c, PVFS_OP_MKDIR, 0, "", 0, &fx_op), -EBADMSG);
	c->session += 1000;
	assert_int_equal(do_lookup(c, fx_root, "x", NULL), -ESTALE);
	c->session -= 1000;
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fx_setup, fx_teardown)
	const struct CMUnitTest tests[] = {
		T(names), T(directories), T(links), T(eager_target), T(link_limit), T(renames), T(exchanges),
		T(permissions), T(setgid_dirs), T(setgid_kept), T(attributes),
		T(create_flags), T(readdirs), T(layouts), T(statfs_sum), T(bad_bodies),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
