// SPDX-License-Identifier: GPL-2.0
/*
 * dir.c - listing a directory.
 *
 * The mgr sends entries in the order of their cookies, up to 256 KiB at a time; what one getdents()
 * does not use is kept for the next. A position in the directory is the cookie of the last entry
 * before it, so it stays good whatever is made or removed meanwhile: 0 is before ".", 1 before
 * "..", 2 before the first entry.
 *
 * With actimeo or leases the entries come with attributes, and names and inodes are filled in: `ls
 * -l' asks nothing more. Under a lease the whole listing is kept (listing.c), and is used for as
 * long as that spares requests: when the attributes of several entries would have to be asked for,
 * one READDIR brings them all.
 */
#include <linux/dcache.h>
#include <linux/fs_types.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/stringhash.h>
#include <linux/vmalloc.h>
#include "vfs.h"

/* As many open directories may keep entries between calls; others ask again. */
#define DIR_KEEP_MAX 64

static atomic_t dir_kept = ATOMIC_INIT(0);

/* An open directory. Used by one task at a time: the VFS holds the file's position lock. */
struct pvfs_dir {
	u8 *buf;		/* PVFS_READDIR_MAX bytes of entries; NULL: none, or in @known */
	struct pvfs_listing *known;	/* a listing that is kept, and a reference; NULL: none */
	/* all that came so far, from the first entry on; NULL: it is not to be kept */
	struct pvfs_listing *build;
	u64 build_owns;			/* from before that */
	bool kept;		/* counted in dir_kept */
	struct pvfs_wire next;	/* the entry after pos */
	u32 left;		/* entries from there on */
	bool eof;		/* nothing follows them */
	loff_t pos;		/* where `next' is */
	struct pvfs_ask ask;	/* of the question that brought them */
	u64 owns;		/* from before it; see dir_prime() */
	unsigned long token;	/* of the directory's lease under which they may be believed */
};

static void dir_forget(struct pvfs_dir *d)
{
	kvfree(d->buf);
	d->buf = NULL;
	pvfs_listing_put(d->known);
	d->known = NULL;
	if (d->kept)
		atomic_dec(&dir_kept);
	d->kept = false;
	d->left = 0;
}

static void dir_build_end(struct pvfs_dir *d)
{
	pvfs_listing_put(d->build);
	d->build = NULL;
}

/*
 * The buffer as the lower half wants it: one bio_vec, or one a page when it had to be put together.
 */
static unsigned int dir_buf_bvecs(u8 *buf, struct bio_vec *bv)
{
	unsigned int i;

	if (!is_vmalloc_addr(buf)) {
		bv[0] = (struct bio_vec){
			.bv_page = virt_to_page(buf),
			.bv_len = PVFS_READDIR_MAX,
			.bv_offset = offset_in_page(buf),
		};
		return 1;
	}
	for (i = 0; i < PVFS_READDIR_MAX / PAGE_SIZE; i++)
		bv[i] = (struct bio_vec){
			.bv_page = vmalloc_to_page(buf + i * PAGE_SIZE), .bv_len = PAGE_SIZE,
		};
	return i;
}

/* Are names and inodes to be filled in? */
static bool dir_primes(const struct inode *dir)
{
	const struct pvfs_opts *o = &PVFS_VOL(dir)->opts;

	return o->actimeo_ms || o->lease;
}

/* Asks for the entries behind @pos. */
static int dir_ask(struct inode *dir, struct pvfs_dir *d, loff_t pos)
{
	struct pvfs_readdir_rep rep;
	struct bio_vec *bv;
	u32 len;
	int err;

	bv = kmalloc_array(PVFS_READDIR_MAX / PAGE_SIZE, sizeof(*bv), GFP_KERNEL);
	if (!bv)
		return -ENOMEM;
	if (!d->buf)
		d->buf = kvmalloc(PVFS_READDIR_MAX, GFP_KERNEL_ACCOUNT);
	if (!d->buf) {
		kfree(bv);
		return -ENOMEM;
	}
	d->left = 0;
	pvfs_listing_begin(dir, &d->owns);
	if (pos <= 2) {
		dir_build_end(d);
		d->build_owns = d->owns;
	}
	err = pvfs_meta_readdir(dir, pos > 2 ? pos : 0, dir_primes(dir), bv,
				dir_buf_bvecs(d->buf, bv), PVFS_READDIR_MAX, &rep, &len, &d->ask,
				&d->token);
	kfree(bv);
	if (err)
		return err;
	pvfs_wire_init(&d->next, d->buf, len);
	d->left = rep.count;
	d->eof = rep.eof;
	d->pos = pos;
	if (pos <= 2 || d->build)
		d->build = pvfs_listing_add(d->build, d->build_owns, d->token, d->buf, len, rep.count);
	if (d->eof && d->build) {
		pvfs_listing_keep(dir, d->build);
		dir_build_end(d);
	}
	return 0;
}

static bool dir_name_sane(const struct pvfs_str *s)
{
	if (!s->len || s->len > PVFS_NAME_MAX || memchr(s->p, '/', s->len) ||
	    memchr(s->p, 0, s->len))
		return false;
	return !(s->p[0] == '.' && (s->len == 1 || (s->len == 2 && s->p[1] == '.')));
}

static bool dir_dent_sane(const struct pvfs_dent *e)
{
	return e->cookie > 2 && e->cookie <= LLONG_MAX && dir_name_sane(&e->name) &&
	       e->attr.fid.ino && pvfs_mode_sane(e->attr.mode);
}

/* Does a dentry stand for what the entry says? */
static bool dir_dent_is(const struct pvfs_dent *e, const struct dentry *dentry)
{
	const struct inode *inode = d_inode(dentry);

	return inode && pvfs_inode_is(inode, &e->attr.fid);
}

/*
 * Puts an entry, which came with attributes, into the caches. Failing to is no harm. The lease on the
 * directory outlasts changes of our own, so what came before one is not to be believed after it; none
 * begins while the VFS holds the directory's lock for us.
 */
static void dir_prime(struct dentry *parent, const struct pvfs_dent *e, const struct pvfs_dir *d)
{
	struct qstr name = QSTR_INIT(e->name.p, e->name.len);
	DECLARE_WAIT_QUEUE_HEAD_ONSTACK(wq);
	struct dentry *dentry, *alias;
	struct inode *inode;
	int tries;

	if (READ_ONCE(PVFS_I(d_inode(parent))->own.begun) != d->owns)
		return;
	/* Another client's draft comes without attributes. */
	if (!e->attr.version || !pvfs_attr_sane(parent->d_sb->s_fs_info, &e->attr))
		return;
	name.hash = full_name_hash(parent, name.name, name.len);
	for (tries = 0; ; tries++) {
		dentry = d_lookup(parent, &name);
		if (!dentry)
			dentry = d_alloc_parallel(parent, &name, &wq);
		if (IS_ERR(dentry))
			return;
		if (d_in_lookup(dentry))
			break;
		if (dir_dent_is(e, dentry)) {
			if (!pvfs_inode_update(d_inode(dentry), &e->attr, &d->ask))
				pvfs_dentry_validated(dentry, d->token);
			dput(dentry);
			return;
		}
		/* The name stood for something else, or for nothing. */
		d_invalidate(dentry);
		dput(dentry);
		if (tries)
			return;
	}
	inode = pvfs_iget(parent->d_sb, &e->attr, &d->ask);
	if (!IS_ERR(inode)) {
		pvfs_dentry_validated(dentry, d->token);
		alias = d_splice_alias(inode, dentry);
		if (!IS_ERR_OR_NULL(alias)) {
			pvfs_dentry_validated(alias, d->token);
			dput(alias);
		}
	}
	d_lookup_done(dentry);
	dput(dentry);
}

/* Would a stat of an entry ask nothing? */
static bool dir_dent_known(struct dentry *parent, const struct pvfs_dent *e, unsigned long token)
{
	struct qstr name = QSTR_INIT(e->name.p, e->name.len);
	struct dentry *dentry;
	bool ret;

	name.hash = full_name_hash(parent, name.name, name.len);
	dentry = d_lookup(parent, &name);
	if (!dentry)
		return false;
	ret = READ_ONCE(dentry->d_time) == token && dir_dent_is(e, dentry) &&
	      pvfs_attrs_leased(d_inode(dentry));
	dput(dentry);
	return ret;
}

/* Goes on behind @pos in a listing that was kept, if that is better than to ask. */
static bool dir_use_kept(struct dentry *parent, struct pvfs_dir *d, loff_t pos)
{
	struct pvfs_listing *l = pvfs_listing_get(d_inode(parent));
	u32 i, unknown = 0, behind = 0;
	struct pvfs_wire w, at;
	struct pvfs_dent e;

	if (!l)
		return false;
	pvfs_wire_init(&w, l->raw, l->len);
	d->next = w;
	for (i = 0; i < l->count; i++) {
		at = w;
		pvfs_get_dent(&w, &e);
		if (w.err || !dir_dent_sane(&e))
			break;
		if (e.cookie <= pos)
			continue;
		if (!behind++)
			d->next = at;
		if (!dir_dent_known(parent, &e, l->token) && ++unknown > 1 + l->count / 64)
			break;
	}
	if (i < l->count) {
		pvfs_listing_drop(d_inode(parent), l);
		pvfs_listing_put(l);
		return false;
	}
	dir_forget(d);
	d->known = l;
	d->left = behind;
	d->eof = true;
	d->pos = pos;
	return true;
}

/* Gets the entries behind @pos. */
static int dir_fill(struct dentry *parent, struct pvfs_dir *d, loff_t pos)
{
	if (!d->build && dir_use_kept(parent, d, pos))
		return 0;
	return dir_ask(d_inode(parent), d, pos);
}

static int pvfs_iterate(struct file *file, struct dir_context *ctx)
{
	struct inode *dir = file_inode(file);
	struct pvfs_dir *d = file->private_data;
	bool prime = dir_primes(dir);
	int err = 0;

	/*
	 * From the start, or from elsewhere than where we are: what we have is not what is wanted.
	 */
	if (ctx->pos < 2 || ctx->pos != d->pos) {
		dir_forget(d);
		dir_build_end(d);
		d->eof = false;
	}
	if (!dir_emit_dots(file, ctx))
		return 0;
	d->pos = ctx->pos;
	while (d->left || !d->eof) {
		struct pvfs_wire at;
		struct pvfs_dent e;

		if (!d->left) {
			err = dir_fill(file->f_path.dentry, d, ctx->pos);
			if (err == -ESTALE && pvfs_dir_removed(dir))
				err = -ENOENT;		/* as the VFS says of those removed here */
			if (err)
				break;
			continue;
		}
		at = d->next;
		pvfs_get_dent(&d->next, &e);
		if (d->next.err || !dir_dent_sane(&e)) {
			err = pvfs_bogus(PVFS_VOL(dir), "a directory entry", PVFS_I(dir)->fid.ino);
			d->left = 0;
			break;
		}
		if (!dir_emit(ctx, e.name.p, e.name.len, e.attr.fid.ino,
			      fs_umode_to_dtype(e.attr.mode))) {
			d->next = at;
			break;
		}
		d->left--;
		ctx->pos = e.cookie;
		d->pos = e.cookie;
		if (prime && !d->known)
			dir_prime(file->f_path.dentry, &e, d);
	}
	if (!d->left) {
		dir_forget(d);
	} else if (!d->kept) {
		d->kept = atomic_inc_return(&dir_kept) <= DIR_KEEP_MAX;
		if (!d->kept) {
			atomic_dec(&dir_kept);
			dir_forget(d);
			dir_build_end(d);
			d->eof = false;
		}
	}
	return err;
}

static loff_t pvfs_dir_llseek(struct file *file, loff_t offset, int whence)
{
	if (whence == SEEK_CUR)
		offset += file->f_pos;
	else if (whence != SEEK_SET)
		return -EINVAL;
	if (offset < 0)
		return -EINVAL;
	return vfs_setpos(file, offset, LLONG_MAX);
}

static int pvfs_dir_open(struct inode *inode, struct file *file)
{
	file->private_data = kzalloc(sizeof(struct pvfs_dir), GFP_KERNEL_ACCOUNT);
	return file->private_data ? 0 : -ENOMEM;
}

static int pvfs_dir_release(struct inode *inode, struct file *file)
{
	pvfs_locks_released(inode, file);
	pvfs_meta_atime(inode);
	dir_forget(file->private_data);
	dir_build_end(file->private_data);
	kfree(file->private_data);
	return 0;
}

const struct file_operations pvfs_dir_operations = {
	.llseek = pvfs_dir_llseek,
	.read = generic_read_dir,
	.iterate_shared = pvfs_iterate,
	.open = pvfs_dir_open,
	.release = pvfs_dir_release,
	.flush = pvfs_file_flush,
	.lock = pvfs_file_lock,
	.flock = pvfs_file_flock,
	.setlease = simple_nosetlease,
	.fsync = noop_fsync,		/* what the mgr has answered is kept */
};
