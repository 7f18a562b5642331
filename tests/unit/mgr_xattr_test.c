// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_xattr_test.c - extended attributes and ACLs through the handlers: values and limits, who may
 * do what, modes and ACLs that follow each other, inheritance, what a write or a chown takes away.
 */
#include "mgr_fixture.h"

#define ACCESS PVFS_ACL_ACCESS
#define DEFAULT PVFS_ACL_DEFAULT
#define CAPS "security.capability"

/* An ACL of text: "u:7 u5:4 g:5 g6:2 m:7 o:0", names as tests need them. Return: its length. */
static u32 acl(u8 *buf, const char *text)
{
	struct pvfs_acl a = { 0 };
	char tag, *end;

	while (*text) {
		struct pvfs_acl_entry *e = &a.e[a.n++];
		bool named;

		tag = *text++;
		named = *text != ':';
		e->id = named ? strtoul(text, &end, 10) : 0xffffffff;
		text = named ? end : text;
		e->perm = text[1] - '0';
		text += text[2] ? 3 : 2;
		e->tag = tag == 'u' ? (named ? PVFS_ACL_USER : PVFS_ACL_USER_OBJ) :
			 tag == 'g' ? (named ? PVFS_ACL_GROUP : PVFS_ACL_GROUP_OBJ) :
			 tag == 'm' ? PVFS_ACL_MASK : PVFS_ACL_OTHER;
	}
	return pvfs_acl_encode(&a, buf);
}

static int set_acl(struct fx_client *c, struct pvfs_fid fid, const char *name, const char *text, struct pvfs_attr *at)
{
	u8 buf[PVFS_ACL_BYTES_MAX];

	return do_setxattr(c, fid, name, buf, acl(buf, text), 0, at);
}

static void assert_acl(struct fx_client *c, struct pvfs_fid fid, const char *name, const char *text)
{
	u8 buf[PVFS_ACL_BYTES_MAX];
	u32 n = acl(buf, text);

	assert_int_equal(do_getxattr(c, fid, name, 65536), n);
	assert_memory_equal(fx_op.payload, buf, n);
}

static int chmod_as(struct fx_client *c, struct pvfs_fid fid, u32 mode, struct pvfs_attr *a)
{
	struct pvfs_setattr_req rq = { .cred = fx_cred(c), .fid = fid, .valid = PVFS_SA_MODE, .mode = mode };
	struct pvfs_setattr_rep rp;
	int err = fx_setattr(c, &rq, &rp);

	fx_take(a, err, &rp.attr);
	return err;
}

/* ---- attributes ---- */

static void values(void **state)
{
	struct fx_client *c = *state;
	u8 *big = malloc(PVFS_XATTR_VALUE_MAX + 1);
	struct pvfs_attr a, b;
	char name[257];
	u32 i;

	for (i = 0; i <= PVFS_XATTR_VALUE_MAX; i++)
		big[i] = i * 7 + (i >> 8);
	assert_int_equal(do_mkfile(c, fx_root, "f", 0644, &a), 0);
	assert_int_equal(a.flags, 0);
	assert_int_equal(do_getxattr(c, a.fid, "user.x", 100), -ENODATA);
	assert_int_equal(do_listxattr(c, a.fid, 100), 0);
	assert_int_equal(do_removexattr(c, a.fid, "user.x", NULL), -ENODATA);
	assert_int_equal(do_setxattr(c, a.fid, "user.x", "one", 3, PVFS_XA_REPLACE, NULL), -ENODATA);
	assert_int_equal(do_setxattr(c, a.fid, "user.x", "one", 3, PVFS_XA_CREATE, &b), 0);
	assert_int_equal(b.flags, PVFS_AF_XATTR);
	assert_true(b.version > a.version);
	assert_true(pvfs_ts_after(&b.ctime, &a.ctime));
	assert_int_equal(b.mtime.nsec, a.mtime.nsec);
	assert_int_equal(do_setxattr(c, a.fid, "user.x", "two", 3, PVFS_XA_CREATE, NULL), -EEXIST);
	assert_int_equal(do_setxattr(c, a.fid, "user.x", "four", 4, PVFS_XA_REPLACE, NULL), 0);
	assert_int_equal(do_setxattr(c, a.fid, "user.x", "four", 4, 4, NULL), -EINVAL);
	assert_int_equal(do_getxattr(c, a.fid, "user.x", 100), 4);
	assert_int_equal(fx_op.payload_len, 4);
	assert_memory_equal(fx_op.payload, "four", 4);
	assert_int_equal(do_getxattr(c, a.fid, "user.x", 0), 4);
	assert_int_equal(fx_op.payload_len, 0);
	assert_int_equal(do_getxattr(c, a.fid, "user.x", 3), -ERANGE);
	/* Empty is something. */
	assert_int_equal(do_setxattr(c, a.fid, "user.e", "", 0, 0, NULL), 0);
	assert_int_equal(do_getxattr(c, a.fid, "user.e", 100), 0);
	/* As long as can be. */
	assert_int_equal(do_setxattr(c, a.fid, "user.big", big, PVFS_XATTR_VALUE_MAX, 0, NULL), 0);
	assert_int_equal(do_setxattr(c, a.fid, "user.big", big, PVFS_XATTR_VALUE_MAX + 1, 0, NULL), -E2BIG);
	assert_int_equal(do_getxattr(c, a.fid, "user.big", PVFS_XATTR_VALUE_MAX), PVFS_XATTR_VALUE_MAX);
	assert_memory_equal(fx_op.payload, big, PVFS_XATTR_VALUE_MAX);
	memset(name, 'n', sizeof(name));
	memcpy(name, "user.", 5);
	name[255] = 0;
	assert_int_equal(do_setxattr(c, a.fid, name, "v", 1, 0, NULL), 0);
	name[255] = 'n';
	name[256] = 0;
	assert_int_equal(do_setxattr(c, a.fid, name, "v", 1, 0, NULL), -EMSGSIZE);
	fx_check(c->f);
	/* The list is in the names' order. */
	assert_int_equal(do_listxattr(c, a.fid, 0), 256 + 7 + 7 + 9);
	assert_int_equal(do_listxattr(c, a.fid, 278), -ERANGE);
	assert_int_equal(do_listxattr(c, a.fid, 65536), 279);
	assert_memory_equal(fx_op.payload, "user.big\0user.e", 16);
	assert_memory_equal(fx_op.payload + 279 - 7, "user.x", 7);
	assert_int_equal(do_removexattr(c, a.fid, "user.big", NULL), 0);
	assert_int_equal(do_getxattr(c, a.fid, "user.big", 0), -ENODATA);
	/* They stay when the manager goes, and go with the inode. */
	fx_reopen(c->f);
	assert_int_equal(do_getxattr(c, a.fid, "user.x", 100), 4);
	fx_end_grace(c->f);
	assert_int_equal(do_unlink(c, fx_root, "f"), 0);
	assert_int_equal(do_getxattr(c, a.fid, "user.x", 100), -ESTALE);
	fx_check(c->f);
	free(big);
}

static void limits(void **state)
{
	struct fx_client *c = *state;
	u8 *big = calloc(1, PVFS_XATTR_VALUE_MAX);
	struct pvfs_attr a, d;
	char name[256];
	u32 i;
	int err;

	do_mkfile(c, fx_root, "f", 0644, &a);
	do_mkdir(c, fx_root, "d", 0755, &d);
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "user.%u", i);
		err = do_setxattr(c, a.fid, name, big, PVFS_XATTR_VALUE_MAX, 0, NULL);
		if (err)
			break;
	}
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(i, 16);
	/* In the place of another of its size it fits. */
	assert_int_equal(do_setxattr(c, a.fid, "user.0", big, PVFS_XATTR_VALUE_MAX, 0, NULL), 0);
	fx_check(c->f);
	assert_int_equal(do_unlink(c, fx_root, "f"), 0);
	memset(name, 'x', sizeof(name));
	name[255] = 0;
	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "user.%03u", i);
		name[8] = 'x';
		err = do_setxattr(c, d.fid, name, "", 0, 0, NULL);
		if (err)
			break;
	}
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(do_listxattr(c, d.fid, 65536), i * 256);
	assert_int_equal(i, 256);
	fx_check(c->f);
	assert_int_equal(do_rmdir(c, fx_root, "d"), 0);
	free(big);
}

static void names(void **state)
{
	struct fx_client *c = *state, u = fx_as(c, 1000, 1000, 1), o = fx_as(c, 2000, 2000, 2);
	static const char *const bad[] = { "user.", "trusted.", "security.", "" };
	struct pvfs_getxattr_req rq = { .name = { .p = (const u8 *)"user.a\0b", .len = 8 } };
	struct pvfs_attr a, d, s, p;
	struct pvfs_mknod_req mk = { .dir = fx_root, .name = PVFS_STR("p"), .mode = S_IFIFO | 0666 };
	struct pvfs_mknod_rep mr;
	u32 i;

	do_mkfile(c, fx_root, "f", 0644, &a);
	do_mkdir(c, fx_root, "d", 01777, &d);
	do_symlink(c, fx_root, "s", "f", &s);
	assert_int_equal(fx_mknod(c, &mk, &mr), 0);
	p = mr.attr;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(do_setxattr(c, a.fid, bad[i], "v", 1, 0, NULL), -EINVAL);
		assert_int_equal(do_getxattr(c, a.fid, bad[i], 10), -EINVAL);
		assert_int_equal(do_removexattr(c, a.fid, bad[i], NULL), -EINVAL);
	}
	rq.fid = a.fid;
	rq.cred = fx_cred(c);
	assert_int_equal(fx_getxattr(c, &rq, &(struct pvfs_getxattr_rep){ 0 }), -EINVAL);
	assert_int_equal(do_setxattr(c, a.fid, "system.other", "v", 1, 0, NULL), -EOPNOTSUPP);
	assert_int_equal(do_setxattr(c, a.fid, "nothing", "v", 1, 0, NULL), -EOPNOTSUPP);
	assert_int_equal(do_getxattr(c, a.fid, "pvfs.layout", 10), -EOPNOTSUPP);

	/* user.*: the permissions of the data */
	assert_int_equal(do_setxattr(&u, a.fid, "user.x", "v", 1, 0, NULL), -EACCES);
	assert_int_equal(do_setxattr(c, a.fid, "user.x", "v", 1, 0, NULL), 0);
	assert_int_equal(do_getxattr(&u, a.fid, "user.x", 10), 1);
	assert_int_equal(do_removexattr(&u, a.fid, "user.x", NULL), -EACCES);
	chmod_as(c, a.fid, 0600, NULL);
	assert_int_equal(do_getxattr(&u, a.fid, "user.x", 10), -EACCES);
	assert_int_equal(do_listxattr(&u, a.fid, 100), 7);
	/* only of files and directories; those sticky: the owner's */
	assert_int_equal(do_setxattr(c, s.fid, "user.x", "v", 1, 0, NULL), -EPERM);
	assert_int_equal(do_getxattr(c, s.fid, "user.x", 10), -ENODATA);
	assert_int_equal(do_setxattr(c, p.fid, "user.x", "v", 1, 0, NULL), -EPERM);
	assert_int_equal(do_setxattr(&u, d.fid, "user.x", "v", 1, 0, NULL), -EPERM);
	chmod_as(c, d.fid, 0777, NULL);
	assert_int_equal(do_setxattr(&u, d.fid, "user.x", "v", 1, 0, NULL), 0);

	/* trusted.*: root's, and nobody else sees them */
	assert_int_equal(do_setxattr(&u, d.fid, "trusted.x", "v", 1, 0, NULL), -EPERM);
	assert_int_equal(do_setxattr(c, d.fid, "trusted.x", "v", 1, 0, NULL), 0);
	assert_int_equal(do_setxattr(c, s.fid, "trusted.x", "v", 1, 0, NULL), 0);
	assert_int_equal(do_getxattr(&u, d.fid, "trusted.x", 10), -ENODATA);
	assert_int_equal(do_getxattr(c, d.fid, "trusted.x", 10), 1);
	assert_int_equal(do_listxattr(c, d.fid, 100), 10 + 7);
	assert_int_equal(do_listxattr(&u, d.fid, 100), 7);
	assert_int_equal(do_removexattr(&u, d.fid, "trusted.x", NULL), -EPERM);

	/* security.*: root's to write, anybody's to read */
	assert_int_equal(do_setxattr(&o, d.fid, "security.x", "v", 1, 0, NULL), -EPERM);
	assert_int_equal(do_setxattr(c, d.fid, "security.x", "v", 1, 0, NULL), 0);
	assert_int_equal(do_getxattr(&o, d.fid, "security.x", 10), 1);
	assert_int_equal(do_removexattr(&o, d.fid, "security.x", NULL), -EPERM);

	/* Only SETXATTR has a payload. */
	struct mgr_request rq2 = { .op = PVFS_OP_STATFS, .data = "x", .data_len = 1 };
	assert_int_equal(mgr_execute(c->f->m, &rq2, &fx_op), -EINVAL);
	fx_op.payload = NULL;
}

static void once(void **state)
{
	struct fx_client *c = *state, t = fx_thread(c, 5);
	struct pvfs_setxattr_req rq = { .name = PVFS_STR("user.x"), .flags = PVFS_XA_CREATE };
	struct pvfs_setxattr_rep rp;
	struct pvfs_attr a;
	u8 body[512];
	int n;

	do_mkfile(c, fx_root, "f", 0644, &a);
	rq.cred = fx_cred(c);
	rq.fid = a.fid;
	n = pvfs_setxattr_req_encode(&rq, body, sizeof(body));
	t.data = "v";
	t.data_len = 1;
	free(fx_op.payload);
	fx_op.payload = NULL;
	assert_int_equal(fx_execute(&t, PVFS_OP_SETXATTR, 1, body, n, &fx_op), 0);
	/* Sent again it is answered again, and not done: else it would be -EEXIST. */
	fx_reopen(c->f);
	assert_int_equal(fx_execute(&t, PVFS_OP_SETXATTR, 1, body, n, &fx_op), 0);
	assert_int_equal(pvfs_setxattr_rep_decode(&rp, fx_op.body, fx_op.body_len), 0);
	assert_int_equal(rp.attr.flags, PVFS_AF_XATTR);
	assert_int_equal(fx_execute(&t, PVFS_OP_SETXATTR, 2, body, n, &fx_op), -EEXIST);
	assert_int_equal(fx_execute(&t, PVFS_OP_SETXATTR, 0, body, n, &fx_op), -EINVAL);
}

static void capabilities(void **state)
{
	struct fx_client *c = *state, u = fx_as(c, 1000, 1000, 1);
	struct pvfs_setattr_req rq = { .valid = PVFS_SA_KILL_CAPS };
	struct pvfs_setattr_rep rp;
	struct pvfs_attr a, b;

	do_mkfile(c, fx_root, "f", 04777, &a);
	assert_int_equal(do_setxattr(c, a.fid, CAPS, "12345678", 8, 0, &b), 0);
	assert_int_equal(b.flags, PVFS_AF_XATTR | PVFS_AF_CAPS);
	/* A write takes them away, not the set-id bits of who may keep those. */
	rq.cred = fx_cred(c);
	rq.fid = a.fid;
	assert_int_equal(fx_setattr(c, &rq, &rp), 0);
	assert_int_equal(rp.attr.flags, 0);
	assert_int_equal(rp.attr.mode & 07777, 04777);
	/* So does a truncation, */
	do_setxattr(c, a.fid, CAPS, "12345678", 8, 0, NULL);
	assert_int_equal(do_truncate(c, a.fid, 0, NULL, &b), 0);
	assert_int_equal(b.flags, 0);
	/* an open that truncates, */
	do_setxattr(c, a.fid, CAPS, "12345678", 8, 0, NULL);
	assert_int_equal(do_open(&u, a.fid, PVFS_O_WRITE | PVFS_O_TRUNC, &b), 0);
	assert_int_equal(b.flags & PVFS_AF_CAPS, 0);
	assert_int_equal(b.mode & 07777, 0777);
	do_close(&u, a.fid, PVFS_O_WRITE, NULL);
	/* and another owner, but no chmod. */
	do_setxattr(c, a.fid, CAPS, "12345678", 8, 0, NULL);
	assert_int_equal(chmod_as(c, a.fid, 0755, &b), 0);
	assert_int_equal(b.flags & PVFS_AF_CAPS, PVFS_AF_CAPS);
	rq.valid = PVFS_SA_UID;
	rq.uid = 5;
	assert_int_equal(fx_setattr(c, &rq, &rp), 0);
	assert_int_equal(rp.attr.flags, 0);
	assert_int_equal(do_getxattr(c, a.fid, CAPS, 100), -ENODATA);
}

/* ---- ACLs ---- */

static void acl_forms(void **state)
{
	struct fx_client *c = *state, u = fx_as(c, 1000, 1000, 1);
	static const char *const bad[] = {
		"u:7", "u:7 g:5", "g:5 u:7 o:0", "u:7 o:0 g:5", "u:7 u5:7 g:5 o:0", "u:7 g:5 g6:1 o:0",
		"u:7 g:5 m:7 m:7 o:0", "u:7 u:7 g:5 o:0", "u:7 g:5 o:0 o:0", "u:7 m:7 g:5 o:0", "u:8 g:5 o:0",
		"u:7 g6:5 g:5 m:7 o:0", "u5:7 u:7 g:5 m:7 o:0", "u:7 u4294967295:1 g:5 m:7 o:0",
	};
	u8 buf[PVFS_ACL_BYTES_MAX + 8] = { 2 }, *many;
	struct pvfs_attr a, b, s;
	u32 i, n;

	do_mkfile(c, fx_root, "f", 0644, &a);
	do_symlink(c, fx_root, "s", "f", &s);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(set_acl(c, a.fid, ACCESS, bad[i], NULL), -EINVAL);
	assert_int_equal(do_setxattr(c, a.fid, ACCESS, buf, 3, 0, NULL), -EINVAL);
	assert_int_equal(do_setxattr(c, a.fid, ACCESS, buf, 11, 0, NULL), -EINVAL);
	assert_int_equal(do_setxattr(c, a.fid, ACCESS, NULL, 0, 0, NULL), -EINVAL);
	n = acl(buf, "u:7 g:5 o:0");
	buf[0] = 3;
	assert_int_equal(do_setxattr(c, a.fid, ACCESS, buf, n, 0, NULL), -EOPNOTSUPP);
	many = calloc(1, PVFS_XATTR_VALUE_MAX);
	many[0] = 2;
	assert_int_equal(do_setxattr(c, a.fid, ACCESS, many, 4 + 8 * (PVFS_ACL_MAX + 1), 0, NULL), -E2BIG);
	free(many);
	assert_int_equal(set_acl(c, s.fid, ACCESS, "u:7 g:5 o:0", NULL), -EOPNOTSUPP);
	assert_int_equal(set_acl(&u, a.fid, ACCESS, "u:7 g:5 o:0", NULL), -EPERM);
	assert_int_equal(set_acl(c, a.fid, DEFAULT, "u:7 g:5 o:0", NULL), -EACCES);
	assert_int_equal(do_removexattr(c, a.fid, DEFAULT, NULL), 0);
	assert_int_equal(do_getxattr(c, a.fid, ACCESS, 0), -ENODATA);
	/* What is ignored is stored in its one form. */
	n = acl(buf, "u:6 u9:6 g:4 m:6 o:4");
	memset(buf + 8, 0, 4);
	assert_int_equal(do_setxattr(c, a.fid, ACCESS, buf, n, PVFS_XA_REPLACE, &b), 0);
	assert_int_equal(b.flags, PVFS_AF_XATTR | PVFS_AF_ACL);
	assert_int_equal(b.mode & 07777, 0664);
	assert_acl(c, a.fid, ACCESS, "u:6 u9:6 g:4 m:6 o:4");
	assert_int_equal(do_listxattr(c, a.fid, 100), sizeof(ACCESS));
	fx_check(c->f);
}

static void acl_and_mode(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_attr a, b;

	do_mkfile(c, fx_root, "f", 0644, &a);
	assert_int_equal(set_acl(c, a.fid, ACCESS, "u:7 u5:6 g:5 m:7 o:1", &b), 0);
	assert_int_equal(b.mode & 0777, 0771);
	assert_true(b.acl_version > a.acl_version);
	assert_int_equal(chmod_as(c, a.fid, 0640, &a), 0);
	assert_acl(c, a.fid, ACCESS, "u:6 u5:6 g:5 m:4 o:0");
	assert_true(a.acl_version > b.acl_version);
	fx_check(c->f);
	/* No named entries but a mask: kept. */
	assert_int_equal(set_acl(c, a.fid, ACCESS, "u:7 g:5 m:4 o:1", &b), 0);
	assert_int_equal(b.mode & 0777, 0741);
	assert_int_equal(b.flags & PVFS_AF_ACL, PVFS_AF_ACL);
	/* One that is the mode's equal is not kept. */
	assert_int_equal(set_acl(c, a.fid, ACCESS, "u:7 g:5 o:2", &b), 0);
	assert_int_equal(b.mode & 0777, 0752);
	assert_int_equal(b.flags, 0);
	assert_int_equal(do_getxattr(c, a.fid, ACCESS, 0), -ENODATA);
	/* Removing it leaves the mode alone; removing what is not there is fine. */
	set_acl(c, a.fid, ACCESS, "u:7 u5:6 g:5 m:6 o:1", NULL);
	assert_int_equal(do_removexattr(c, a.fid, ACCESS, &b), 0);
	assert_int_equal(b.mode & 0777, 0761);
	assert_int_equal(do_removexattr(c, a.fid, ACCESS, &b), 0);
	assert_int_equal(set_acl(c, a.fid, ACCESS, "u:7 u5:6 g:5 m:6 o:1", NULL), 0);
	assert_int_equal(set_acl(c, a.fid, ACCESS, "", &b), 0);
	assert_int_equal(b.flags, 0);
	fx_check(c->f);
}

/* Set-group-id goes when an owner outside the group sets an ACL. */
static void acl_setgid(void **state)
{
	struct fx_client *c = *state, u = fx_as(c, 1000, 1000, 1), in = fx_as(c, 1000, 77, 2);
	struct pvfs_setattr_req rq = { .valid = PVFS_SA_UID | PVFS_SA_GID | PVFS_SA_MODE, .uid = 1000, .gid = 77,
				       .mode = 02755 };
	struct pvfs_setattr_rep rp;
	struct pvfs_attr a;

	do_mkfile(c, fx_root, "f", 0755, &a);
	rq.cred = fx_cred(c);
	rq.fid = a.fid;
	assert_int_equal(fx_setattr(c, &rq, &rp), 0);
	assert_int_equal(set_acl(&in, a.fid, ACCESS, "u:7 g:5 o:5", &a), 0);
	assert_int_equal(a.mode & 07777, 02755);
	assert_int_equal(set_acl(&u, a.fid, ACCESS, "u:7 g:5 o:5", &a), 0);
	assert_int_equal(a.mode & 07777, 0755);
}

/* Every subject against every permission: what open says. */
static void acl_permissions(void **state)
{
	static const struct {
		const char *acl;
		u32 uid, gid, group;	/* @group: a supplementary one, 0: none */
		u32 may;		/* rwx */
	} row[] = {
		{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 1, 99, 0, 6 },	/* owner */
		{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 2, 99, 0, 5 },	/* named user */
		/* the user's entry, not the groups' */
		{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 2, 10, 30, 5 },
		{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 3, 10, 0, 4 },	/* owning group */
		{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 3, 99, 10, 4 },	/* by a supplementary group */
		{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 3, 30, 0, 2 },	/* named group */
		{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 3, 99, 30, 2 },
		/* either group's entry, one for each question */
		{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 3, 10, 30, 6 },
		{ "u:6 u2:5 g:4 g30:2 m:7 o:1", 4, 99, 0, 1 },	/* others */
		/* a mask limits all but owner and others */
		{ "u:6 u2:5 g:4 g30:2 m:1 o:7", 1, 99, 0, 6 },
		{ "u:6 u2:5 g:4 g30:2 m:1 o:7", 2, 99, 0, 1 },
		{ "u:6 u2:5 g:4 g30:2 m:1 o:7", 3, 10, 0, 0 },
		{ "u:6 u2:5 g:4 g30:2 m:1 o:7", 3, 30, 0, 0 },
		{ "u:6 u2:5 g:4 g30:2 m:1 o:7", 4, 99, 0, 7 },
		/* an entry that grants nothing refuses */
		{ "u:6 u2:0 g:4 m:7 o:7", 2, 99, 0, 0 },
		{ "u:6 u2:7 g:0 m:7 o:7", 3, 10, 0, 0 },
		{ "u:0 u1:7 g:7 m:7 o:7", 1, 10, 0, 0 },	/* the owner's is first */
	};
	struct fx_client *c = *state;
	struct pvfs_setattr_req rq = { .valid = PVFS_SA_UID | PVFS_SA_GID, .uid = 1, .gid = 10 };
	struct pvfs_setattr_rep rp;
	struct pvfs_attr a, d;
	u32 i, bit;

	do_mkfile(c, fx_root, "f", 0, &a);
	do_mkdir(c, fx_root, "d", 0, &d);
	rq.cred = fx_cred(c);
	rq.fid = a.fid;
	assert_int_equal(fx_setattr(c, &rq, &rp), 0);
	rq.fid = d.fid;
	assert_int_equal(fx_setattr(c, &rq, &rp), 0);
	assert_int_equal(do_mkfile(c, d.fid, "in", 0666, NULL), 0);
	for (i = 0; i < ARRAY_SIZE(row); i++) {
		static const u32 flag[] = { PVFS_O_EXEC, PVFS_O_WRITE, PVFS_O_READ };
		struct fx_client u = fx_as(c, row[i].uid, row[i].gid, 10 + i);

		u.ngroups = !!row[i].group;
		put_unaligned_le32(row[i].group, u.groups);
		assert_int_equal(set_acl(c, a.fid, ACCESS, row[i].acl, NULL), 0);
		assert_int_equal(set_acl(c, d.fid, ACCESS, row[i].acl, NULL), 0);
		for (bit = 0; bit < 3; bit++) {
			bool ok = row[i].may >> bit & 1;
			int err = do_open(&u, a.fid, flag[bit], NULL);

			if (err != (ok ? 0 : -EACCES))
				fail_msg("row %u, permission %u: %d", i, 1u << bit, err);
			if (!err)
				do_close(&u, a.fid, flag[bit], NULL);
		}
		assert_int_equal(do_lookup(&u, d.fid, "in", NULL), row[i].may & 1 ? 0 : -EACCES);
		assert_int_equal(do_mkfile(&u, d.fid, "new", 0666, NULL), (row[i].may & 3) == 3 ? 0 : -EACCES);
		do_unlink(c, d.fid, "new");
	}
	/* As on Linux: a mask of nothing makes the named ones others. */
	struct fx_client u = fx_as(c, 2, 99, 40);
	assert_int_equal(set_acl(c, a.fid, ACCESS, "u:6 u2:7 g:7 m:0 o:4", NULL), 0);
	assert_int_equal(do_open(&u, a.fid, PVFS_O_READ, NULL), 0);
	do_close(&u, a.fid, PVFS_O_READ, NULL);
	/* Root reads and writes, and executes what anybody may execute. */
	assert_int_equal(do_open(c, a.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	do_close(c, a.fid, PVFS_O_READ | PVFS_O_WRITE, NULL);
	assert_int_equal(do_open(c, a.fid, PVFS_O_EXEC, NULL), -EACCES);
	set_acl(c, a.fid, ACCESS, "u:6 u2:1 g:0 m:1 o:0", NULL);
	assert_int_equal(do_open(c, a.fid, PVFS_O_EXEC, NULL), 0);
	do_close(c, a.fid, PVFS_O_EXEC, NULL);
}

static void inheritance(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_attr d, s, f, l;

	c->umask = 027;
	assert_int_equal(do_mkdir(c, fx_root, "plain", 0777, &d), 0);
	assert_int_equal(d.mode & 0777, 0750);
	assert_int_equal(do_mkfile(c, d.fid, "f", 0666, &f), 0);
	assert_int_equal(f.mode & 0777, 0640);
	assert_int_equal(do_create(c, d.fid, "c", PVFS_O_CREAT | PVFS_O_READ, 0666, &f), 0);
	assert_int_equal(f.mode & 0777, 0640);
	do_close(c, f.fid, PVFS_O_READ, NULL);
	/* A default ACL takes the mask's place. */
	c->umask = 077;
	assert_int_equal(set_acl(c, d.fid, DEFAULT, "u:7 u5:6 g:5 m:7 o:1", &d), 0);
	assert_int_equal(d.flags, PVFS_AF_XATTR | PVFS_AF_DEFACL);
	assert_int_equal(d.mode & 0777, 0750);
	assert_int_equal(do_mkfile(c, d.fid, "g", 0666, &f), 0);
	assert_int_equal(f.mode & 0777, 0660);
	assert_int_equal(f.flags, PVFS_AF_XATTR | PVFS_AF_ACL);
	assert_acl(c, f.fid, ACCESS, "u:6 u5:6 g:5 m:6 o:0");
	assert_int_equal(do_getxattr(c, f.fid, DEFAULT, 0), -ENODATA);
	assert_int_equal(do_create(c, d.fid, "h", PVFS_O_CREAT | PVFS_O_WRITE, 0600, &f), 0);
	assert_acl(c, f.fid, ACCESS, "u:6 u5:6 g:5 m:0 o:0");
	do_close(c, f.fid, PVFS_O_WRITE, NULL);
	assert_int_equal(do_mkdir(c, d.fid, "s", 0777, &s), 0);
	assert_int_equal(s.mode & 0777, 0771);
	assert_int_equal(s.flags, PVFS_AF_XATTR | PVFS_AF_ACL | PVFS_AF_DEFACL);
	assert_acl(c, s.fid, ACCESS, "u:7 u5:6 g:5 m:7 o:1");
	assert_acl(c, s.fid, DEFAULT, "u:7 u5:6 g:5 m:7 o:1");
	assert_int_equal(do_mkdir(c, s.fid, "t", 0700, &s), 0);
	assert_acl(c, s.fid, ACCESS, "u:7 u5:6 g:5 m:0 o:0");
	assert_int_equal(do_symlink(c, d.fid, "l", "f", &l), 0);
	assert_int_equal(l.flags, 0);
	assert_int_equal(l.mode & 0777, 0777);
	/* A default ACL that is a mode: kept by the directory, no ACL for what is in it. */
	assert_int_equal(set_acl(c, d.fid, DEFAULT, "u:7 g:5 o:4", NULL), 0);
	assert_int_equal(do_mkfile(c, d.fid, "i", 0666, &f), 0);
	assert_int_equal(f.mode & 0777, 0644);
	assert_int_equal(f.flags, 0);
	assert_acl(c, d.fid, DEFAULT, "u:7 g:5 o:4");
	assert_int_equal(do_removexattr(c, d.fid, DEFAULT, &d), 0);
	assert_int_equal(d.flags, 0);
	assert_int_equal(do_mkfile(c, d.fid, "j", 0666, &f), 0);
	assert_int_equal(f.mode & 0777, 0600);
	fx_check(c->f);
}

/* Set-group-id directories and ACLs together. */
static void inherit_setgid(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_attr d, s;

	do_mkdir(c, fx_root, "d", 0770, &d);
	assert_int_equal(chmod_as(c, d.fid, 02770, NULL), 0);
	assert_int_equal(set_acl(c, d.fid, DEFAULT, "u:7 g:7 o:0", NULL), 0);
	assert_int_equal(do_mkdir(c, d.fid, "s", 0777, &s), 0);
	assert_int_equal(s.mode & 07777, 02770);
	assert_int_equal(s.flags & PVFS_AF_DEFACL, PVFS_AF_DEFACL);
}

/* mgr_check() sees what does not go together. */
static void check_finds(void **state)
{
	static const struct mgr_xattr_disk d = { .format = MGR_XATTR_FORMAT };
	struct fx_client *c = *state;
	struct mgr_check_result r;
	u8 key[MGR_XATTR_KEY_MAX];
	struct mgr_op *op = calloc(1, sizeof(*op));
	struct mgr_inode in;
	struct pvfs_attr a;
	u32 n;

	mgr_op_init_bg(op, c->f->m);
	do_mkfile(c, fx_root, "f", 0644, &a);
	/* one of nobody's */
	n = mgr_xattr_key(key, 4711, &PVFS_STR("user.x"));
	assert_int_equal(mdb_begin(c->f->m->db, &op->txn), 0);
	assert_int_equal(mdb_put(c->f->m->db, op->txn, MDB_XATTR, key, n, &d, sizeof(d)), 0);
	assert_int_equal(mdb_commit(c->f->m->db, op->txn), 0);
	assert_int_equal(mgr_check(c->f->m, NULL, &r), 0);
	assert_int_equal(r.problems, 1);
	assert_int_equal(mdb_begin(c->f->m->db, &op->txn), 0);
	assert_int_equal(mdb_del(c->f->m->db, op->txn, MDB_XATTR, key, n), 0);
	/* one that its inode does not count */
	n = mgr_xattr_key(key, a.fid.ino, &PVFS_STR("user.x"));
	assert_int_equal(mdb_put(c->f->m->db, op->txn, MDB_XATTR, key, n, &d, sizeof(d)), 0);
	assert_int_equal(mdb_commit(c->f->m->db, op->txn), 0);
	assert_int_equal(mgr_check(c->f->m, NULL, &r), 0);
	assert_int_equal(r.problems, 1);
	assert_int_equal(mdb_begin(c->f->m->db, &op->txn), 0);
	assert_int_equal(mdb_del(c->f->m->db, op->txn, MDB_XATTR, key, n), 0);
	assert_int_equal(mdb_commit(c->f->m->db, op->txn), 0);
	/* an ACL that says other than the mode */
	assert_int_equal(set_acl(c, a.fid, ACCESS, "u:7 u5:6 g:5 m:7 o:1", NULL), 0);
	assert_int_equal(mdb_begin(c->f->m->db, &op->txn), 0);
	assert_int_equal(ns_inode_get(op, a.fid.ino, MDB_RMW, &in), 0);
	in.mode ^= 1;
	assert_int_equal(ns_inode_put(op, &in), 0);
	assert_int_equal(mdb_commit(c->f->m->db, op->txn), 0);
	assert_int_equal(mgr_check(c->f->m, NULL, &r), 0);
	assert_int_equal(r.problems, 1);
	op->txn = NULL;
	chmod_as(c, a.fid, 0644, NULL);
	fx_check(c->f);
	free(op);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fx_setup, fx_teardown)
		T(values), T(limits), T(names), T(once), T(capabilities), T(acl_forms), T(acl_and_mode), T(acl_setgid),
		T(acl_permissions), T(inheritance), T(inherit_setgid), T(check_finds),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("mgr_xattr", tests, NULL, NULL);
}
