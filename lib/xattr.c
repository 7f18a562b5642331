// SPDX-License-Identifier: LGPL-2.1
/*
 * xattr.c - extended attributes; and ACLs where a permission is decided here and not by the mgr.
 *
 * Nothing is kept: each call asks the mgr, once.
 */
#include "lib.h"
#include "../common/acl.h"

/* ---------------------------------------------------------------- one exchange each */

static int name_check(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	return !n || n > PVFS_XATTR_NAME_MAX ? -ERANGE : 0;
}

/* What came, @size bytes as the answer says, for who had @room; 0: who only wants the size. */
static ssize_t taken(u32 size, u32 got, size_t room)
{
	if (room && (size > room || got != size))
		return -EBADMSG;
	return size;
}

static ssize_t do_get(struct pvfs_fs *fs, const struct pvfs_fid *fid, const char *name, void *value,
		      size_t size)
{
	struct iovec iov = { .iov_base = value,
			     .iov_len = min(size, (size_t)PVFS_XATTR_VALUE_MAX) };
	struct pvfs_getxattr_req req = { .fid = *fid, .size = iov.iov_len };
	struct pvfs_getxattr_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];
	u32 got = 0;
	int err = name_check(name);

	if (err)
		return err;
	req.name = PVFS_STR(name);
	lib_fs_cred_get(fs, &cred, &req.cred);
	err = MGR_CALL_DATA(fs, GETXATTR, getxattr, &req, &rep, buf, NULL, size ? &iov : NULL,
			    &got);
	return err ?: taken(rep.size, got, iov.iov_len);
}

static ssize_t do_list(struct pvfs_fs *fs, const struct pvfs_fid *fid, char *list, size_t size)
{
	struct iovec iov = { .iov_base = list, .iov_len = min(size, (size_t)PVFS_XATTR_LIST_MAX) };
	struct pvfs_listxattr_req req = { .fid = *fid, .size = iov.iov_len };
	struct pvfs_listxattr_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];
	u32 got = 0;
	int err;

	lib_fs_cred_get(fs, &cred, &req.cred);
	err = MGR_CALL_DATA(fs, LISTXATTR, listxattr, &req, &rep, buf, NULL, size ? &iov : NULL,
			    &got);
	/* Whoever walks over the names stops at their ends. */
	if (!err && got && list[got - 1])
		return -EBADMSG;
	return err ?: taken(rep.size, got, iov.iov_len);
}

/* Attributes that an answer brought, to the inode if it is open here. */
static void note_attr(struct pvfs_fs *fs, const struct pvfs_attr *attr)
{
	struct inode *ino = lib_inode_find(fs, &attr->fid);

	if (ino)
		lib_inode_update(ino, attr);
	lib_inode_put(fs, ino);
}

static int do_set(struct pvfs_fs *fs, const struct pvfs_fid *fid, const char *name,
		  const void *value, size_t size, int flags)
{
	struct iovec iov = { .iov_base = (void *)value, .iov_len = size };
	struct pvfs_setxattr_req req = { .fid = *fid, .flags = flags };
	struct pvfs_setxattr_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];
	int err = name_check(name);

	if (err)
		return err;
	if (size > PVFS_XATTR_VALUE_MAX)
		return -E2BIG;
	req.name = PVFS_STR(name);
	lib_fs_cred_get(fs, &cred, &req.cred);
	err = MGR_CALL_DATA(fs, SETXATTR, setxattr, &req, &rep, buf, size ? &iov : NULL, NULL,
			    NULL);
	if (!err)
		note_attr(fs, &rep.attr);
	return err;
}

static int do_remove(struct pvfs_fs *fs, const struct pvfs_fid *fid, const char *name)
{
	struct pvfs_removexattr_req req = { .fid = *fid };
	struct pvfs_removexattr_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];
	int err = name_check(name);

	if (err)
		return err;
	req.name = PVFS_STR(name);
	lib_fs_cred_get(fs, &cred, &req.cred);
	err = MGR_CALL(fs, REMOVEXATTR, removexattr, &req, &rep, buf);
	if (!err)
		note_attr(fs, &rep.attr);
	return err;
}

/* ---------------------------------------------------------------- ACLs */

/**
 * lib_acl_may - does mode or ACL grant an access? For what the mgr leaves to its clients
 * @attr: fresh attributes of the inode
 * @want: R_OK, W_OK, X_OK or'ed
 *
 * Return: 0, -EACCES, or what went wrong in asking.
 */
int lib_acl_may(struct pvfs_fs *fs, const struct pvfs_attr *attr, unsigned int want)
{
	u8 value[PVFS_ACL_BYTES_MAX];
	struct fs_cred copy;
	struct pvfs_cred cred;
	struct pvfs_acl acl;
	ssize_t n = -ENODATA;

	lib_fs_cred_get(fs, &copy, &cred);
	/* As the kernel and the mgr: an ACL whose mask grants nothing is not looked at. */
	if (cred.uid && cred.uid != attr->uid && (attr->flags & PVFS_AF_ACL) && (attr->mode & 070))
		n = do_get(fs, &attr->fid, PVFS_ACL_ACCESS, value, sizeof(value));
	if (n == -ENODATA)
		return lib_fs_cred_may(&copy, attr->mode, attr->uid, attr->gid, want) ? 0 : -EACCES;
	if (n < 0)
		return n;
	if (pvfs_acl_decode(&acl, value, n) || !acl.n)
		return -EIO;
	return pvfs_acl_may(&acl, &cred, attr->uid, attr->gid, want) ? 0 : -EACCES;
}

/*
 * ---------------------------------------------------------------- by handle, of an open file, by
 * path
 */

#define BY_HANDLE(call) ({ \
		struct pvfs_fid fid_ = fid_of(fh); \
		lib_fs_check(fs) ?: (call); })
#define BY_FILE(call) ({ \
		struct pvfs_fs *fs = f->fs; \
		const struct pvfs_fid fid_ = f->inode->fid; \
		lib_fs_check(fs) ?: (call); })
#define BY_PATH(follow, call) ({ \
		ssize_t rc_ = lib_fs_check(fs); \
		if (!rc_) { \
			struct pvfs_fid fid_; \
			struct walk w_; \
			rc_ = lib_walk_full(fs, path, follow, &w_); \
			fid_ = w_.attr.fid; \
			if (!rc_) \
				rc_ = (call); \
			lib_walk_free(&w_); \
		} \
		rc_; })

ssize_t pvfs_getxattr_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, const char *name,
			 void *value, size_t size)
{
	return BY_HANDLE(do_get(fs, &fid_, name, value, size));
}

ssize_t pvfs_fgetxattr(struct pvfs_file *f, const char *name, void *value, size_t size)
{
	return BY_FILE(do_get(fs, &fid_, name, value, size));
}

ssize_t pvfs_getxattr(struct pvfs_fs *fs, const char *path, const char *name, void *value,
		      size_t size)
{
	return BY_PATH(true, do_get(fs, &fid_, name, value, size));
}

ssize_t pvfs_lgetxattr(struct pvfs_fs *fs, const char *path, const char *name, void *value,
		       size_t size)
{
	return BY_PATH(false, do_get(fs, &fid_, name, value, size));
}

int pvfs_setxattr_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, const char *name,
		     const void *value, size_t size, int flags)
{
	return BY_HANDLE(do_set(fs, &fid_, name, value, size, flags));
}

int pvfs_fsetxattr(struct pvfs_file *f, const char *name, const void *value, size_t size, int flags)
{
	return BY_FILE(do_set(fs, &fid_, name, value, size, flags));
}

int pvfs_setxattr(struct pvfs_fs *fs, const char *path, const char *name, const void *value,
		  size_t size, int flags)
{
	return BY_PATH(true, do_set(fs, &fid_, name, value, size, flags));
}

int pvfs_lsetxattr(struct pvfs_fs *fs, const char *path, const char *name, const void *value,
		   size_t size, int flags)
{
	return BY_PATH(false, do_set(fs, &fid_, name, value, size, flags));
}

ssize_t pvfs_listxattr_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, char *list, size_t size)
{
	return BY_HANDLE(do_list(fs, &fid_, list, size));
}

ssize_t pvfs_flistxattr(struct pvfs_file *f, char *list, size_t size)
{
	return BY_FILE(do_list(fs, &fid_, list, size));
}

ssize_t pvfs_listxattr(struct pvfs_fs *fs, const char *path, char *list, size_t size)
{
	return BY_PATH(true, do_list(fs, &fid_, list, size));
}

ssize_t pvfs_llistxattr(struct pvfs_fs *fs, const char *path, char *list, size_t size)
{
	return BY_PATH(false, do_list(fs, &fid_, list, size));
}

int pvfs_removexattr_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, const char *name)
{
	return BY_HANDLE(do_remove(fs, &fid_, name));
}

int pvfs_fremovexattr(struct pvfs_file *f, const char *name)
{
	return BY_FILE(do_remove(fs, &fid_, name));
}

int pvfs_removexattr(struct pvfs_fs *fs, const char *path, const char *name)
{
	return BY_PATH(true, do_remove(fs, &fid_, name));
}

int pvfs_lremovexattr(struct pvfs_fs *fs, const char *path, const char *name)
{
	return BY_PATH(false, do_remove(fs, &fid_, name));
}
