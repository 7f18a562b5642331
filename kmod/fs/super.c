// SPDX-License-Identifier: GPL-2.0
/*
 * super.c - mount options, the super block, and the file system's registration.
 *
 * mount.pvfs(8) resolves names and reads the key; what arrives here is an address, a volume's name
 * and a key in hex.
 */
#include <linux/fs_context.h>
#include <linux/fs_parser.h>
#include <linux/inet.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/statfs.h>
#include <linux/writeback.h>
#include "vfs.h"

#define MOUNT_TIMEOUT_S 10		/* to find the mgr */
#define TIMEO_MS 30000			/* soft: of one request */
#define IOSIZE (1u << 20)		/* rsize and wsize */
#define ACTIMEO_MAX_S 3600
#define RA_IODS 4u			/* that are read ahead from at once, with whole requests */
#define TIMEO_MAX_DS 36000		/* an hour */

enum {
	OPT_SOURCE,
	OPT_ADDR,
	OPT_PORT,
	OPT_VOL,
	OPT_HOST,
	OPT_KEYHEX,
	OPT_HARD,
	OPT_SOFT,
	OPT_TIMEO,
	OPT_NCONNECT,
	OPT_RSIZE, OPT_WSIZE, OPT_ACTIMEO, OPT_MOUNT_TIMEOUT, OPT_LOCKS, OPT_LEASE,
	OPT_READDIR, OPT_CACHE, OPT_FLUSH,
};

static const struct fs_parameter_spec pvfs_parameters[] = {
	fsparam_string("source", OPT_SOURCE),
	fsparam_string("addr", OPT_ADDR),
	fsparam_u32("port", OPT_PORT),
	fsparam_string("vol", OPT_VOL),
	fsparam_string("host", OPT_HOST),
	fsparam_string("keyhex", OPT_KEYHEX),
	fsparam_flag("hard", OPT_HARD),
	fsparam_flag("soft", OPT_SOFT),
	fsparam_u32("timeo", OPT_TIMEO),
	fsparam_u32("nconnect", OPT_NCONNECT),
	fsparam_u32("rsize", OPT_RSIZE),
	fsparam_u32("wsize", OPT_WSIZE),
	fsparam_u32("actimeo", OPT_ACTIMEO),
	fsparam_u32("mount_timeout", OPT_MOUNT_TIMEOUT),
	fsparam_string("locks", OPT_LOCKS),
	fsparam_string("lease", OPT_LEASE),
	fsparam_string("readdir", OPT_READDIR),
	fsparam_string("cache", OPT_CACHE),
	fsparam_string("flush", OPT_FLUSH),
	{}
};

/* A mount being prepared. */
struct pvfs_fc {
	struct pvfs_opts opts;
	unsigned int port;
	unsigned int mount_timeout_ms;
	u32 seen;			/* bit per OPT_* */
};

static bool super_seen(const struct pvfs_fc *ctx, int opt)
{
	return ctx->seen & BIT(opt);
}

/* ---------------------------------------------------------------- options */

static int super_parse_addr(struct fs_context *fc, struct pvfs_opts *o, const char *text)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&o->addr;
	struct sockaddr_in *in = (struct sockaddr_in *)&o->addr;
	const char *end;

	memset(&o->addr, 0, sizeof(o->addr));
	if (in4_pton(text, -1, (u8 *)&in->sin_addr, -1, &end) && !*end) {
		in->sin_family = AF_INET;
		return 0;
	}
	/* A link-local address names its interface: "fe80::1%2". */
	if (in6_pton(text, -1, (u8 *)&in6->sin6_addr, '%', &end) && (!*end || *end == '%')) {
		if (*end && kstrtou32(end + 1, 10, &in6->sin6_scope_id))
			return invalf(fc, "pvfs: addr=%s: the scope must be an interface's number",
				      text);
		in6->sin6_family = AF_INET6;
		return 0;
	}
	return invalf(fc,
		      "pvfs: addr=%s is not an IP address (mount through mount.pvfs, which resolves names)",
		      text);
}

static int super_parse_key(struct fs_context *fc, struct pvfs_opts *o, char *text)
{
	bool good = strlen(text) == 2 * PVFS_KEY_LEN && !hex2bin(o->key, text, PVFS_KEY_LEN);

	/* Not left behind in freed memory, nor ever shown. */
	memzero_explicit(text, strlen(text));
	return good ? 0 :
		      invalf(fc, "pvfs: keyhex must be %u hexadecimal digits", 2 * PVFS_KEY_LEN);
}

static int super_parse_iosize(struct fs_context *fc, const char *name, u32 value, u32 *ret)
{
	/* A page comes or goes in one transfer. */
	u32 low = max_t(u32, 4096, PAGE_SIZE);

	if (!is_power_of_2(value) || value < low || value > PVFS_PAYLOAD_MAX)
		return invalf(fc, "pvfs: %s=%u must be a power of two from %u to %u", name, value,
			      low, PVFS_PAYLOAD_MAX);
	*ret = value;
	return 0;
}

static int super_parse_text(struct fs_context *fc, const char *name, const char *text, char *ret,
			    size_t room)
{
	if (!*text || strlen(text) >= room)
		return invalf(fc, "pvfs: %s must have 1 to %zu bytes", name, room - 1);
	strscpy(ret, text, room);
	return 0;
}

static int super_parse_range(struct fs_context *fc, const char *name, u32 value, u32 low, u32 high)
{
	if (value < low || value > high)
		return invalf(fc, "pvfs: %s=%u must be from %u to %u", name, value, low, high);
	return 0;
}

static int pvfs_parse_param(struct fs_context *fc, struct fs_parameter *param)
{
	struct pvfs_fc *ctx = fc->fs_private;
	struct pvfs_opts *o = &ctx->opts;
	struct fs_parse_result r;
	int opt, err = 0;

	opt = fs_parse(fc, pvfs_parameters, param, &r);
	if (opt == -ENOPARAM)
		return invalf(fc, "pvfs: unknown option %s", param->key);
	if (opt < 0)
		return opt;
	switch (opt) {
	case OPT_SOURCE:
		if (fc->source)
			return invalf(fc, "pvfs: more than one source");
		fc->source = param->string;
		param->string = NULL;
		return 0;
	case OPT_ADDR:
		err = super_parse_addr(fc, o, param->string);
		break;
	case OPT_PORT:
		err = super_parse_range(fc, "port", r.uint_32, 1, 65535);
		ctx->port = r.uint_32;
		break;
	case OPT_VOL:
		err = super_parse_text(fc, "vol", param->string, o->volume, sizeof(o->volume));
		break;
	case OPT_HOST:
		err = super_parse_text(fc, "host", param->string, o->host, sizeof(o->host));
		break;
	case OPT_KEYHEX:
		err = super_parse_key(fc, o, param->string);
		break;
	case OPT_HARD:
	case OPT_SOFT:
		if (super_seen(ctx, opt == OPT_HARD ? OPT_SOFT : OPT_HARD))
			return invalf(fc, "pvfs: hard and soft exclude each other");
		o->soft = opt == OPT_SOFT;
		break;
	case OPT_TIMEO:
		err = super_parse_range(fc, "timeo", r.uint_32, 1, TIMEO_MAX_DS);
		o->timeo_ms = r.uint_32 * 100;
		break;
	case OPT_NCONNECT:
		err = super_parse_range(fc, "nconnect", r.uint_32, 1, PVFS_CHANNELS_MAX);
		o->nconnect = r.uint_32;
		break;
	case OPT_RSIZE:
		err = super_parse_iosize(fc, "rsize", r.uint_32, &o->rsize);
		break;
	case OPT_WSIZE:
		err = super_parse_iosize(fc, "wsize", r.uint_32, &o->wsize);
		break;
	case OPT_ACTIMEO:
		err = super_parse_range(fc, "actimeo", r.uint_32, 0, ACTIMEO_MAX_S);
		o->actimeo_ms = r.uint_32 * 1000;
		break;
	case OPT_MOUNT_TIMEOUT:
		err = super_parse_range(fc, "mount_timeout", r.uint_32, 1, 3600);
		ctx->mount_timeout_ms = r.uint_32 * 1000;
		break;
	case OPT_LOCKS:
		o->locks_local = !strcmp(param->string, "local");
		if (!o->locks_local && strcmp(param->string, "cluster"))
			err = invalf(fc, "pvfs: locks=%s must be cluster or local", param->string);
		break;
	case OPT_LEASE:
		o->lease = !strcmp(param->string, "on");
		if (!o->lease && strcmp(param->string, "off"))
			err = invalf(fc, "pvfs: lease=%s must be on or off", param->string);
		break;
	case OPT_CACHE:
		o->cache = !strcmp(param->string, "lease");
		if (!o->cache && strcmp(param->string, "none"))
			err = invalf(fc, "pvfs: cache=%s must be lease or none", param->string);
		break;
	case OPT_FLUSH:
		o->flush_close = !strcmp(param->string, "close");
		if (!o->flush_close && strcmp(param->string, "behind"))
			err = invalf(fc, "pvfs: flush=%s must be behind or close", param->string);
		break;
	case OPT_READDIR:
		o->readdir_one = !strcmp(param->string, "one");
		if (!o->readdir_one && strcmp(param->string, "many"))
			err = invalf(fc, "pvfs: readdir=%s must be many or one", param->string);
		break;
	}
	ctx->seen |= BIT(opt);
	return err;
}

static void super_set_port(struct sockaddr_storage *ss, unsigned int port)
{
	if (ss->ss_family == AF_INET6)
		((struct sockaddr_in6 *)ss)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)ss)->sin_port = htons(port);
}

static unsigned int super_get_port(const struct sockaddr_storage *ss)
{
	return ntohs(ss->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)ss)->sin6_port :
						 ((const struct sockaddr_in *)ss)->sin_port);
}

static int super_check_options(struct fs_context *fc, struct pvfs_fc *ctx)
{
	if (!super_seen(ctx, OPT_ADDR))
		return invalf(fc, "pvfs: no addr= (mount through mount.pvfs)");
	if (!super_seen(ctx, OPT_VOL))
		return invalf(fc, "pvfs: no vol=");
	if (!super_seen(ctx, OPT_KEYHEX))
		return invalf(fc,
			      "pvfs: no keyhex= (mount through mount.pvfs, which reads the key file)");
	if (super_seen(ctx, OPT_TIMEO) && !ctx->opts.soft)
		return invalf(fc, "pvfs: timeo= is for soft mounts; hard ones wait");
	if (!super_seen(ctx, OPT_LEASE))
		ctx->opts.lease = !ctx->opts.actimeo_ms;
	if (ctx->opts.lease && ctx->opts.actimeo_ms)
		return invalf(fc, "pvfs: lease=on and actimeo= exclude each other");
	if (!super_seen(ctx, OPT_CACHE))
		ctx->opts.cache = ctx->opts.lease;
	if (ctx->opts.cache && !ctx->opts.lease)
		return invalf(fc, "pvfs: cache=lease needs leases: not with lease=off or actimeo=");
	super_set_port(&ctx->opts.addr, ctx->port);
	if (!super_seen(ctx, OPT_HOST))
		snprintf(ctx->opts.host, sizeof(ctx->opts.host), "%pISc", &ctx->opts.addr);
	return 0;
}

/* ---------------------------------------------------------------- super block */

static int pvfs_statfs(struct dentry *dentry, struct kstatfs *st)
{
	struct pvfs_volume *vol = dentry->d_sb->s_fs_info;
	struct pvfs_statfs_rep rep;
	int err;

	err = pvfs_meta_statfs(vol, &rep);
	if (err)
		return err;
	if (!rep.bsize || !is_power_of_2(rep.bsize))
		return pvfs_bogus(vol, "sizes of the volume", 0);
	st->f_type = PVFS_SUPER_MAGIC;
	st->f_bsize = rep.bsize;
	st->f_frsize = rep.bsize;
	st->f_blocks = rep.blocks;
	st->f_bfree = rep.bfree;
	st->f_bavail = rep.bavail;
	st->f_files = rep.files;
	st->f_ffree = rep.ffree;
	st->f_namelen = min(rep.namelen, PVFS_NAME_MAX);
	st->f_fsid.val[0] = get_unaligned_le32(vol->uuid);
	st->f_fsid.val[1] = get_unaligned_le32(vol->uuid + 4);
	return 0;
}

static int pvfs_show_options(struct seq_file *m, struct dentry *root)
{
	struct pvfs_volume *vol = root->d_sb->s_fs_info;
	const struct pvfs_opts *o = &vol->opts;

	seq_printf(m, ",addr=%pISc,port=%u", &o->addr, super_get_port(&o->addr));
	seq_show_option(m, "vol", o->volume);
	seq_show_option(m, "host", o->host);
	if (o->soft)
		seq_printf(m, ",soft,timeo=%u", o->timeo_ms / 100);
	else
		seq_puts(m, ",hard");
	seq_printf(m, ",nconnect=%u,rsize=%u,wsize=%u", o->nconnect, vol->rsize, vol->wsize);
	if (o->actimeo_ms)
		seq_printf(m, ",actimeo=%u", o->actimeo_ms / 1000);
	if (o->locks_local)
		seq_puts(m, ",locks=local");
	if (o->readdir_one)
		seq_puts(m, ",readdir=one");
	seq_printf(m, ",lease=%s,cache=%s", o->lease ? "on" : "off", o->cache ? "lease" : "none");
	if (o->flush_close)
		seq_puts(m, ",flush=close");
	return 0;
}

/**
 * pvfs_umount_begin - umount -f, and umount when it has waited long enough: whoever waits for a
 * server gets an error, now
 * @sb: the super block
 */
void pvfs_umount_begin(struct super_block *sb)
{
	struct pvfs_volume *vol = sb->s_fs_info;

	WRITE_ONCE(vol->forced, jiffies);
	pvfs_locks_abort(vol);
	pvfs_volume_abort(vol);
}

/*
 * The VFS has written all that was dirty; not pages that were on their way then, and it has waited for those. If who
 * wrote them was killed they are dirty once more, and maybe were when somebody else's sync ended so.
 */
static void super_write_redirtied(struct super_block *sb)
{
	struct pvfs_volume *vol = sb->s_fs_info;
	int n;

	while ((n = atomic_read(&vol->redirtied)) != READ_ONCE(vol->rewritten)) {
		smp_rmb();	/* pairs with wb_redirtied(): those are dirty */
		sync_inodes_sb(sb);
		WRITE_ONCE(vol->rewritten, n);
	}
}

/*
 * sync(2), after what was stored in mappings: also of drafts, which are files that are open, and of
 * all that iods have and may not have written.
 */
static int pvfs_sync_fs(struct super_block *sb, int wait)
{
	struct pvfs_volume *vol = sb->s_fs_info;
	struct inode *inode;
	struct pvfs_walk w;
	int err = 0;

	if (!wait)
		return 0;
	super_write_redirtied(sb);
	pvfs_walk_begin(&w, &vol->open_lock, &vol->open_list, offsetof(struct pvfs_inode, opens.listed));
	while (!err) {
		inode = pvfs_walk_next(&w);
		if (!inode)
			break;
		err = pvfs_draft_settle(inode);
		iput(inode);
	}
	pvfs_walk_end(&w);
	err = err ?: pvfs_unstable_sync(vol);
	/* The super block is going: inodes that are to be sent again, or were looked at, must not be held beyond this. */
	if (READ_ONCE(vol->leaving))
		pvfs_closes_wait(vol);
	return err;
}

static const struct super_operations pvfs_super_operations = {
	.alloc_inode = pvfs_alloc_inode,
	.free_inode = pvfs_free_inode,
	.evict_inode = pvfs_evict_inode,
	.sync_fs = pvfs_sync_fs,
	.statfs = pvfs_statfs,
	.show_options = pvfs_show_options,
	.umount_begin = pvfs_umount_begin,
};

/* The root has no name to be looked up by: it is the one inode that is asked for by its number. */
static struct inode *super_root(struct super_block *sb, struct pvfs_volume *vol)
{
	struct pvfs_attr attr;
	int err;

	err = pvfs_meta_getattr_fid(vol, &vol->root, &attr);
	if (!err && !S_ISDIR(attr.mode))
		err = pvfs_bogus(vol, "a root that is no directory", attr.fid.ino);
	return err ? ERR_PTR(err) : pvfs_iget(sb, &attr, NULL);
}

static int pvfs_fill_super(struct super_block *sb, struct fs_context *fc)
{
	struct pvfs_fc *ctx = fc->fs_private;
	struct pvfs_volume *vol;
	struct inode *root;
	char why[160] = "";
	int err;

	err = pvfs_volume_open(&ctx->opts, &pvfs_volume_ops, ctx->mount_timeout_ms, &vol, why);
	if (err) {
		errorf(fc, "pvfs: %s", why[0] ? why : "mount failed");
		return err;
	}
	pvfs_unstable_init(vol);
	vol->sb = sb;
	sb->s_fs_info = vol;
	sb->s_magic = PVFS_SUPER_MAGIC;
	sb->s_op = &pvfs_super_operations;
	sb->s_d_op = &pvfs_dentry_operations;
	sb->s_xattr = pvfs_xattr_handlers;
	sb->s_export_op = &pvfs_export_operations;
	sb->s_flags |= SB_POSIXACL;	/* also: the umask is left to us */
	sb->s_maxbytes = MAX_LFS_FILESIZE;
	sb->s_blocksize = PAGE_SIZE;
	sb->s_blocksize_bits = PAGE_SHIFT;
	sb->s_time_gran = 1;
	sb->s_time_min = S64_MIN;
	sb->s_time_max = S64_MAX;
	memcpy(&sb->s_uuid, vol->uuid, sizeof(sb->s_uuid));
	err = super_setup_bdi(sb);
	if (err)
		return err;
	/* Something for several iods at once; readers come to that step by step. */
	sb->s_bdi->ra_pages = max_t(u32, vol->rsize / PAGE_SIZE, VM_READAHEAD_PAGES) *
			      clamp_t(u32, vol->niods, 2, RA_IODS);
	sb->s_bdi->io_pages = vol->rsize / PAGE_SIZE;
	/* Who has little memory may dirty a part of that; else all of it may be dirty, and he is killed for it. */
	sb->s_iflags |= SB_I_CGROUPWB;

	root = super_root(sb, vol);
	if (IS_ERR(root)) {
		errorf(fc, "pvfs: cannot read the root of volume %s: error %ld", vol->opts.volume,
		       PTR_ERR(root));
		return PTR_ERR(root);
	}
	sb->s_root = d_make_root(root);
	return sb->s_root ? 0 : -ENOMEM;
}

static void pvfs_kill_sb(struct super_block *sb)
{
	struct pvfs_volume *vol = sb->s_fs_info;

	if (vol) {
		pvfs_closes_wait(vol);	/* some hold inodes */
		pvfs_locks_wait(vol);
		pvfs_unstable_unmount(vol);
		pvfs_volume_leave(vol);	/* so may recovery; what it holds goes as closes do */
		synchronize_rcu();	/* see pvfs_leases_yield() */
		pvfs_closes_wait(vol);
	}
	kill_anon_super(sb);
	if (vol) {
		pvfs_unstable_free(vol);
		pvfs_volume_close(vol);
	}
}

/* ---------------------------------------------------------------- fs_context */

static int pvfs_get_tree(struct fs_context *fc)
{
	struct pvfs_fc *ctx = fc->fs_private;
	int err;

	err = super_check_options(fc, ctx);
	return err ?: get_tree_nodev(fc, pvfs_fill_super);
}

/*
 * Only what the VFS itself looks at (ro and the like) can change. mount(8) repeats the options that
 * it finds in /proc/mounts or fstab: those are fine as long as they say what is.
 */
static int pvfs_reconfigure(struct fs_context *fc)
{
	struct pvfs_volume *vol = fc->root->d_sb->s_fs_info;
	const struct pvfs_opts *o = &vol->opts;
	struct pvfs_fc *ctx = fc->fs_private;
	struct sockaddr_storage addr = ctx->opts.addr;
	bool differs;

	super_set_port(&addr, super_seen(ctx, OPT_PORT) ? ctx->port : super_get_port(&o->addr));
	differs = (super_seen(ctx, OPT_ADDR) && memcmp(&addr, &o->addr, sizeof(addr))) ||
		  (super_seen(ctx, OPT_PORT) && ctx->port != super_get_port(&o->addr)) ||
		  (super_seen(ctx, OPT_VOL) && strcmp(ctx->opts.volume, o->volume)) ||
		  (super_seen(ctx, OPT_HARD) && o->soft) ||
		  (super_seen(ctx, OPT_SOFT) && !o->soft) ||
		  (super_seen(ctx, OPT_TIMEO) && ctx->opts.timeo_ms != o->timeo_ms) ||
		  (super_seen(ctx, OPT_NCONNECT) && ctx->opts.nconnect != o->nconnect) ||
		  (super_seen(ctx, OPT_RSIZE) && ctx->opts.rsize != vol->rsize) ||
		  (super_seen(ctx, OPT_WSIZE) && ctx->opts.wsize != vol->wsize) ||
		  (super_seen(ctx, OPT_ACTIMEO) && ctx->opts.actimeo_ms != o->actimeo_ms) ||
		  (super_seen(ctx, OPT_LOCKS) && ctx->opts.locks_local != o->locks_local) ||
		  (super_seen(ctx, OPT_LEASE) && ctx->opts.lease != o->lease) ||
		  (super_seen(ctx, OPT_CACHE) && ctx->opts.cache != o->cache) ||
		  (super_seen(ctx, OPT_FLUSH) && ctx->opts.flush_close != o->flush_close) ||
		  (super_seen(ctx, OPT_READDIR) && ctx->opts.readdir_one != o->readdir_one);
	if (differs)
		return invalf(fc, "pvfs: remount can't change pvfs's own options; unmount first");
	/* What was written and closed is written before nothing is to be any more. */
	if ((fc->sb_flags & fc->sb_flags_mask & SB_RDONLY) && !sb_rdonly(fc->root->d_sb))
		return sync_filesystem(fc->root->d_sb);
	return 0;
}

static void pvfs_free_fc(struct fs_context *fc)
{
	kfree_sensitive(fc->fs_private);
}

static const struct fs_context_operations pvfs_context_operations = {
	.parse_param = pvfs_parse_param,
	.get_tree = pvfs_get_tree,
	.reconfigure = pvfs_reconfigure,
	.free = pvfs_free_fc,
};

static int pvfs_init_fs_context(struct fs_context *fc)
{
	struct pvfs_fc *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL);

	if (!ctx)
		return -ENOMEM;
	ctx->port = PVFS_PORT_MGR;
	ctx->mount_timeout_ms = MOUNT_TIMEOUT_S * 1000;
	ctx->opts.timeo_ms = TIMEO_MS;
	ctx->opts.rsize = IOSIZE;
	ctx->opts.wsize = IOSIZE;
	fc->fs_private = ctx;
	fc->ops = &pvfs_context_operations;
	return 0;
}

static struct file_system_type pvfs_type = {
	.owner = THIS_MODULE,
	.name = "pvfs",
	.init_fs_context = pvfs_init_fs_context,
	.parameters = pvfs_parameters,
	.fs_flags = FS_ALLOW_IDMAP,
	.kill_sb = pvfs_kill_sb,
};

int pvfs_vfs_init(void)
{
	int err;

	err = pvfs_inode_cache_init();
	if (err)
		return err;
	err = pvfs_io_init();
	if (err)
		goto out_inodes;
	err = pvfs_locks_init();
	if (err)
		goto out_io;
	err = register_filesystem(&pvfs_type);
	if (err)
		goto out_locks;
	return 0;

out_locks:
	pvfs_locks_exit();
out_io:
	pvfs_io_exit();
out_inodes:
	pvfs_inode_cache_exit();
	return err;
}

void pvfs_vfs_exit(void)
{
	unregister_filesystem(&pvfs_type);
	pvfs_locks_exit();
	pvfs_io_exit();
	pvfs_inode_cache_exit();
}
