// SPDX-License-Identifier: GPL-2.0
/*
 * io.c - one transfer between memory and the iods: cut by stripe (io_cut.c), all iods asked at once, gathered.
 *
 * Nothing is copied here: bio_vecs point into the caller's pages. Memory for the bookkeeping is
 * bounded: small transfers take it from a pool, big ones are limited in number, and requests are
 * reserved before the first is made, so that transfers that hold some never wait for each other.
 */
#include <linux/highmem.h>
#include <linux/mempool.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include "io_part.h"
#include "../../common/runs.h"

#define SMALL_MEM 24			/* bio_vecs in a small transfer */
#define SMALL_BV 48
#define SMALL_PARTS 20
#define BIG_PARTS 256
#define SMALL_RESERVED 32		/* small transfers that never fail */
#define BIG_MAX 64			/* big transfers at once, of a volume */
/*
 * Requests of a volume's transfers: so many, and as many of those from and to the page cache, which wait
 * for no others. kreq.c has room for more.
 */
#define PERMITS 1536
#define AHEAD_MAX 24			/* transfers that nobody waits for, of a volume */
#define SESSION_TRIES 5
/* bytes of a WRITE_LIST's body without its runs, more than enough, and of a run without dimensions */
#define LIST_BODY 256u
#define LIST_RUN 17u
#define LIST_PAUSE HZ			/* without lists, if there was no memory for one */

/* A small transfer with all it needs. */
struct small_io {
	struct pvfs_io io;
	struct bio_vec mem[SMALL_MEM], bv[SMALL_BV];
	struct pvfs_io_part part[SMALL_PARTS];
	u16 last_part[SMALL_PARTS];
};

static struct kmem_cache *small_cache;

int pvfs_io_init(void)
{
	small_cache = kmem_cache_create("pvfs_io", sizeof(struct small_io), 0, SLAB_HWCACHE_ALIGN,
					NULL);
	return small_cache ? 0 : -ENOMEM;
}

void pvfs_io_exit(void)
{
	kmem_cache_destroy(small_cache);
}

/* ---------------------------------------------------------------- room */

int pvfs_io_room_init(struct pvfs_volume *vol)
{
	struct pvfs_room *room = &vol->room;

	atomic_set(&room->big, BIG_MAX);
	atomic_set(&room->ahead, AHEAD_MAX);
	room->lists = jiffies;
	atomic_set(&room->permits[false], PERMITS);
	atomic_set(&room->permits[true], PERMITS);
	init_waitqueue_head(&room->io_wait);
	room->ios = mempool_create_slab_pool(SMALL_RESERVED, small_cache);
	return room->ios ? 0 : -ENOMEM;
}

void pvfs_io_room_fini(struct pvfs_volume *vol)
{
	mempool_destroy(vol->room.ios);
}

static bool io_take_permits(atomic_t *permits, unsigned int n)
{
	int old = atomic_read(permits);

	do {
		if (old < (int)n)
			return false;
	} while (!atomic_try_cmpxchg(permits, &old, old - n));
	return true;
}

int pvfs_io_permits_get(struct pvfs_volume *vol, unsigned int n, bool gives)
{
	atomic_t *permits = &vol->room.permits[gives];

	return pvfs_wait_event(vol->room.io_wait, io_take_permits(permits, n)) ? -EINTR : 0;
}

void pvfs_io_permits_put(struct pvfs_volume *vol, unsigned int n, bool gives)
{
	if (!n)
		return;
	atomic_add(n, &vol->room.permits[gives]);
	if (wq_has_sleeper(&vol->room.io_wait))
		wake_up_all(&vol->room.io_wait);
}

static void io_big_put(struct pvfs_room *room)
{
	atomic_inc(&room->big);
	if (wq_has_sleeper(&room->io_wait))
		wake_up_all(&room->io_wait);
}

/* There is room for one more big one. */
static struct pvfs_io *io_big_get(struct pvfs_room *room, unsigned int mem_room, unsigned int bv_room,
				  unsigned int part_room)
{
	struct pvfs_io *io;
	size_t size;

	size = sizeof(*io) + (mem_room + bv_room) * sizeof(struct bio_vec) +
	       part_room * (sizeof(struct pvfs_io_part) + sizeof(u16));
	io = kvmalloc(size, GFP_NOFS);
	if (!io) {
		io_big_put(room);
		return NULL;
	}
	memset(io, 0, sizeof(*io));
	io->big = true;
	io->mem = (struct bio_vec *)(io + 1);
	io->mem_room = mem_room;
	io->bv = io->mem + mem_room;
	io->bv_room = bv_room;
	io->part = (struct pvfs_io_part *)(io->bv + bv_room);
	io->part_room = part_room;
	io->last_part = (u16 *)(io->part + part_room);
	return io;
}

static struct pvfs_io *io_init(struct pvfs_io *io, struct inode *inode, bool write, loff_t pos, size_t len,
			       bool fill)
{
	io->vol = PVFS_VOL(inode);
	io->inode = inode;
	io->write = write;
	io->fill = fill;
	io->pos = pos;
	io->len = len;
	return io;
}

/**
 * pvfs_io_get - a transfer to be filled
 * @inode: the file
 * @write: memory to file; else file to memory
 * @pos: in the file, bytes
 * @len: bytes wanted; what is too much for one transfer is cut off
 * @fill: for the page cache, or from it: never waits for another transfer, which may be waiting for a
 *	page of ours; nor fails, but becomes shorter. Its requests to iods wait for none that another
 *	client, who may be waiting for these pages, can hold up (PVFS_RF_GIVES)
 *
 * The caller fills mem and nmem, of mem_room, and may make len smaller.
 *
 * Return: the transfer, or ERR_PTR(-EINTR | -ENOMEM).
 */
struct pvfs_io *pvfs_io_get(struct inode *inode, bool write, loff_t pos, size_t len, bool fill)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	u32 xsize = write ? vol->wsize : vol->rsize;
	struct pvfs_room *room = &vol->room;
	struct pvfs_io *io = NULL;
	size_t limit;

	/* One request to each datafile, and some more when those are few. */
	limit = min_t(u64, PVFS_IO_MAX,
		      (u64)max_t(u32, READ_ONCE(PVFS_I(inode)->layout.pcount), 4) * xsize);
	len = min(len, limit);
	if (len > PVFS_IO_SMALL && atomic_dec_if_positive(&room->big) < 0) {
		if (fill)
			len = PVFS_IO_SMALL;
		else if (pvfs_wait_event(room->io_wait, atomic_dec_if_positive(&room->big) >= 0))
			return ERR_PTR(-EINTR);
	}
	if (len > PVFS_IO_SMALL) {
		io = io_big_get(room, len / PAGE_SIZE + 34, len / PAGE_SIZE + 34 + len / PVFS_SSIZE_MIN + 2,
				BIG_PARTS);
		if (!io && !fill)
			return ERR_PTR(-ENOMEM);
	}
	if (!io) {
		struct small_io *s = mempool_alloc(room->ios, GFP_NOFS);

		io = &s->io;
		memset(io, 0, sizeof(*io));
		io->mem = s->mem;
		io->mem_room = SMALL_MEM;
		io->bv = s->bv;
		io->bv_room = SMALL_BV;
		io->part = s->part;
		io->part_room = SMALL_PARTS;
		io->last_part = s->last_part;
		len = min_t(size_t, len, PVFS_IO_SMALL);
	}
	return io_init(io, inode, write, pos, len, fill);
}

/**
 * pvfs_io_get_list - a transfer of pages of the page cache, to be written to where they are in the file
 * @inode: a striped file
 * @n: pages
 *
 * The caller fills mem with them, or as many as there is room for, in the order of the file, nmem, pos (of the first) and
 * len (of all). What is not next to each other goes to an iod in one message all the same, or in a few.
 *
 * Return: the transfer; NULL: not now, or not of this file.
 */
struct pvfs_io *pvfs_io_get_list(struct inode *inode, unsigned int n)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_room *room = &vol->room;
	struct pvfs_io *io;

	n = min(n, pvfs_io_list_room(READ_ONCE(PVFS_I(inode)->layout.pcount), READ_ONCE(PVFS_I(inode)->layout.ssize),
				     vol->wsize));
	if (!n || time_before(jiffies, READ_ONCE(room->lists)) || atomic_dec_if_positive(&room->big) < 0)
		return NULL;
	io = io_big_get(room, n, n, PVFS_IO_LIST_PARTS);
	if (!io)
		return NULL;
	io->list = true;
	return io_init(io, inode, true, 0, 0, true);
}

/**
 * pvfs_io_put - done with it; what mem pointed to is the caller's business. NULL is fine.
 * @io: the transfer
 */
void pvfs_io_put(struct pvfs_io *io)
{
	struct pvfs_room *room;

	if (!io)
		return;
	room = &io->vol->room;
	if (io->big) {
		kvfree(io);
		io_big_put(room);
	} else {
		mempool_free(container_of(io, struct small_io, io), room->ios);
	}
}

/* ---------------------------------------------------------------- asking */

struct pvfs_server *pvfs_io_iod(const struct pvfs_volume *vol, const struct pvfs_layout *l, u32 df)
{
	return vol->iods[pvfs_stripe_iod(l, df, vol->niods)];
}

static void io_part_answered(struct pvfs_request *req);

/* Encodes a WRITE_LIST; pages in a row are one run. There is room for the runs twice. */
static void io_part_encode_list(const struct pvfs_io_part *p, struct pvfs_request *req)
{
	const struct pvfs_io *io = p->io;
	struct pvfs_write_list_req m = {
		.fid = PVFS_I(io->inode)->fid, .df = p->df, .pcount = io->layout.pcount,
		.ssize = io->layout.ssize, .len = p->len, .cap = io->cap,
	};
	u8 *runs = req->body + req->body_room - p->nbv * LIST_RUN;
	struct pvfs_run run = { };
	struct pvfs_wire w;
	unsigned int i;

	pvfs_wire_init(&w, runs, p->nbv * LIST_RUN);
	for (i = 0; i < p->nbv; i++) {
		u64 off = page_offset(p->bv[i].bv_page);

		if (run.len && run.off + run.len == off) {
			run.len += p->bv[i].bv_len;
			continue;
		}
		if (run.len)
			pvfs_put_run(&w, &run);
		run.off = off;
		run.len = p->bv[i].bv_len;
	}
	pvfs_put_run(&w, &run);
	m.runs.p = runs;
	m.runs.len = w.p - runs;
	req->body_len = pvfs_write_list_req_encode(&m, req->body, req->body_room - p->nbv * LIST_RUN);
}

/* @async: io_part_answered() is called, and nobody waits; not when there is an error at once. */
static void io_part_submit(struct pvfs_io *io, struct pvfs_io_part *p, bool async)
{
	struct pvfs_volume *vol = PVFS_VOL(io->inode);
	struct pvfs_server *iod = pvfs_io_iod(vol, &io->layout, p->df);
	enum pvfs_op op = io->list ? PVFS_OP_WRITE_LIST : io->write ? PVFS_OP_WRITE : PVFS_OP_READ;
	u32 room = io->list ? LIST_BODY + 2 * p->nbv * LIST_RUN : 0;
	struct pvfs_fid fid = PVFS_I(io->inode)->fid;
	struct pvfs_request *req;

	p->got = 0;
	p->err = 0;
	if (io->fill)
		req = pvfs_req_alloc_giving(iod, op, room);
	else
		req = pvfs_req_alloc(iod, op, room);
	if (IS_ERR(req)) {
		p->req = NULL;
		p->err = PTR_ERR(req);
		/* No memory for its body: the pages stay dirty, and go without one when they come again. */
		if (io->list) {
			p->err = -EINTR;
			WRITE_ONCE(vol->room.lists, jiffies + LIST_PAUSE);
		}
		return;
	}
	if (io->list) {
		io_part_encode_list(p, req);
	} else if (io->write) {
		struct pvfs_write_req m = { .fid = fid, .off = p->off, .cap = io->cap };

		req->body_len = pvfs_write_req_encode(&m, req->body, req->body_room);
	} else {
		struct pvfs_read_req m = { .fid = fid, .off = p->off, .len = p->len,
					   .cap = io->cap };

		req->body_len = pvfs_read_req_encode(&m, req->body, req->body_room);
	}
	req->bv = p->bv;
	req->nbv = p->nbv;
	req->bv_len = p->len;
	req->write = io->write;
	p->req = req;
	if (!async) {
		pvfs_req_submit(req);
		return;
	}
	req->flags |= PVFS_RF_ASYNC;
	req->done = io_part_answered;
	req->priv = p;
	atomic_inc(&io->left);
	pvfs_req_submit(req);
	pvfs_req_put(req);
}

/**
 * pvfs_layout_get - the layout that a file is read or written with
 * @inode: the file
 * @write: something will be written: there is room for all datafiles' verifiers from here on
 * @layout: filled
 *
 * Return: 0, or -errno of pvfs_unstable_room() or pvfs_layout_settled().
 */
int pvfs_layout_get(struct inode *inode, bool write, struct pvfs_layout *layout)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	u32 room = 0;
	bool fits;
	int err;

	err = pvfs_layout_settled(inode);
	if (err)
		return err;
	do {
		if (write) {
			room = READ_ONCE(pi->layout.pcount);
			err = pvfs_unstable_room(inode, room);
			if (err)
				return err;
		}
		spin_lock(&pi->lock);
		*layout = pi->layout;
		fits = !write || room >= layout->pcount;
		spin_unlock(&pi->lock);
	} while (!fits);
	return 0;
}

/* The capability of the present session. Pages of a former one never land: see wlease.c. */
static int io_get_cap(struct pvfs_io *io)
{
	int err = pvfs_file_cap(io->inode, io->write ? PVFS_CAP_WRITE : PVFS_CAP_READ, &io->cap,
				&io->session);

	if (!err && io->bound && io->session != io->bound)
		return -EIO;
	/* By now it is known what went with the session before that one. */
	if (!err && io->file && pvfs_locks_are_lost(io->file))
		return -EIO;
	return err ?: io->write && io->fill && pvfs_wlease_lost(io->inode) ? -EIO : 0;
}

/*
 * All up to the iods' requests: those may be made when this returns 0, unless the mgr had the bytes
 * (io->head), and all is done.
 */
static int io_prepare(struct pvfs_io *io)
{
	struct pvfs_volume *vol = PVFS_VOL(io->inode);
	struct pvfs_inode *pi = PVFS_I(io->inode);
	int err;

	if (pvfs_stuffed(io->inode) && !io->list) {
		err = pvfs_layout_settled(io->inode) ?: pvfs_head_run(io);
		io->head = !err;
		if (err != -EREMCHG)
			return err;
	}
	err = pvfs_layout_get(io->inode, io->write, &io->layout);
	err = err ?: io_get_cap(io);
	if (err)
		return err;
	/* In a new session the lock is gone, and the end may be elsewhere. */
	if (io->append && !(io->appender && pvfs_append_holds(io->appender)))
		return -EAGAIN;
	/* It was laid out anew since they were gathered. */
	if (io->list && !pvfs_io_list_room(io->layout.pcount, io->layout.ssize, vol->wsize))
		return -EINTR;
	spin_lock(&pi->lock);
	io->trunc_gen = pi->attr.trunc_gen;
	io->size = i_size_read(io->inode);
	spin_unlock(&pi->lock);
	pvfs_io_plan(io, io->write ? vol->wsize : vol->rsize);
	/* One more: for the GETATTR that may be made beside a read. */
	err = pvfs_io_permits_get(PVFS_VOL(io->inode), io->nparts + 1, io->fill);
	if (err)
		return err;
	io->permits = io->nparts + 1;
	return 0;
}

/**
 * pvfs_io_start - ask the iods, or the mgr, if it has the bytes: then it is done when this returns
 * @io: filled
 *
 * len may become smaller. Requests' errors are found by pvfs_io_finish(), which must follow when
 * this returns 0.
 *
 * Return: 0, or -errno when nothing was asked.
 */
int pvfs_io_start(struct pvfs_io *io)
{
	unsigned int i;
	int err;

	err = io_prepare(io);
	if (err || io->head)
		return err;
	for (i = 0; i < io->nparts; i++)
		io_part_submit(io, &io->part[i], false);
	return 0;
}

/* ---------------------------------------------------------------- gathering */

static int io_bogus_answer(struct pvfs_io *io, const struct pvfs_io_part *p)
{
	struct pvfs_volume *vol = PVFS_VOL(io->inode);

	pr_warn_ratelimited("%s: iod %u sent nonsense (%s, ino %llu)\n", vol->opts.volume,
			    pvfs_stripe_iod(&io->layout, p->df, vol->niods),
			    io->write ? "WRITE" : "READ", PVFS_I(io->inode)->fid.ino);
	return -EIO;
}

static int io_part_read_done(struct pvfs_io *io, struct pvfs_io_part *p,
			     const struct pvfs_request *req)
{
	struct pvfs_read_rep rep;

	if (pvfs_read_rep_decode(&rep, req->rep, req->rep_len) || rep.size > PVFS_FILE_MAX)
		return io_bogus_answer(io, p);
	/* Less than was asked for although there is more would be read as a hole. */
	if (req->in_len < p->len && p->off + req->in_len < rep.size)
		return io_bogus_answer(io, p);
	p->got = req->in_len;
	return 0;
}

static int io_part_write_done(struct pvfs_io *io, struct pvfs_io_part *p,
			      const struct pvfs_request *req)
{
	struct pvfs_write_rep rep;

	if (pvfs_write_rep_decode(&rep, req->rep, req->rep_len) || rep.wtime.nsec >= NSEC_PER_SEC)
		return io_bogus_answer(io, p);
	/* Before the pages are let go of: who looks finds them dirty, or what room there is without them. */
	pvfs_iod_tells_room(req->server, rep.room);
	pvfs_unstable_note(io->inode, &io->layout, p->df, rep.verifier, &io->cap, io->session,
			   io->kept);
	p->wtime = rep.wtime;
	return 0;
}

/* @req was answered, or failed. */
static void io_part_done(struct pvfs_io_part *p, const struct pvfs_request *req)
{
	struct pvfs_io *io = p->io;

	p->req = NULL;
	p->err = req->err;
	if (!p->err)
		p->err = io->write ? io_part_write_done(io, p, req) : io_part_read_done(io, p, req);
	else if (p->err == -ENOSPC || p->err == -EDQUOT)
		pvfs_iod_tells_room(req->server, 0);
	if (p->err == -ESHUTDOWN || p->err == -EAGAIN)	/* an iod has no cause to say "again" */
		p->err = -EIO;
}

static void io_part_wait(struct pvfs_io_part *p)
{
	struct pvfs_request *req = p->req;

	if (!req)
		return;
	pvfs_req_wait(req);
	io_part_done(p, req);
	pvfs_req_put(req);
}

/**
 * pvfs_session_over - an iod has refused a capability: because it was another session's?
 * @vol: the volume
 * @session: in which the capability was good
 *
 * The iods may know that we have been evicted before we do: then the mgr is asked.
 */
bool pvfs_session_over(struct pvfs_volume *vol, u64 session)
{
	struct pvfs_attr attr;

	if (READ_ONCE(vol->session) != session)
		return true;
	/* Of the root: the file's may have to wait for another iod. */
	return !pvfs_meta_getattr_fid(vol, &vol->root, &attr) &&
	       READ_ONCE(vol->session) != session;
}

/*
 * Refused because the capability was a former session's: again with that of the new one. But not
 * what was to go to the end of the file, which may be elsewhere by now: that gets EAGAIN.
 */
static void io_ask_in_new_session(struct pvfs_io *io)
{
	unsigned int i, tries, refused;
	int err;

	for (tries = 0; tries < SESSION_TRIES; tries++) {
		for (i = refused = 0; i < io->nparts; i++)
			refused += io->part[i].err == -EACCES;
		if (!refused || !pvfs_session_over(PVFS_VOL(io->inode), io->session))
			return;
		if (io->appender) {
			for (i = 0; i < io->nparts; i++)
				if (io->part[i].err == -EACCES)
					io->part[i].err = -EAGAIN;
			return;
		}
		err = io_get_cap(io);
		for (i = 0; i < io->nparts; i++) {
			if (io->part[i].err == -EACCES && err)
				io->part[i].err = err;
			else if (io->part[i].err == -EACCES)
				io_part_submit(io, &io->part[i], false);
		}
		for (i = 0; i < io->nparts; i++)
			io_part_wait(&io->part[i]);
	}
}

/* Is there less than was asked for, below where the file ended then? Of a page more may be asked for. */
static bool io_lacks(const struct pvfs_io *io, const struct pvfs_io_part *p)
{
	if (p->got == p->len)
		return false;
	return !io->fill ||
	       pvfs_stripe_file_off(&io->layout, p->df, p->off + p->got) < io->size;
}

/* Where a write ends in the file. */
static u64 io_end(const struct pvfs_io *io)
{
	const struct bio_vec *mem = io->mem;
	u32 done = mem->bv_len;

	if (!io->list)
		return io->pos + io->len;
	for (; done < io->len; done += mem->bv_len)
		mem++;
	return page_offset(mem->bv_page) + mem->bv_len;
}

/* All parts are answered, for good: the results. Does not sleep. */
static int io_gather(struct pvfs_io *io)
{
	struct inode *inode = io->inode;
	unsigned int i;

	pvfs_io_permits_put(PVFS_VOL(io->inode), io->permits, io->fill);
	io->permits = 0;
	io->err = 0;
	io->good = io->len;
	io->is_short = false;
	for (i = 0; i < io->nparts; i++) {
		struct pvfs_io_part *p = &io->part[i];

		if (!p->err) {
			io->is_short |= !io->write && io_lacks(io, p);
			if (io->write && !io->again && pvfs_ts_after(&p->wtime, &io->wtime))
				io->wtime = p->wtime;
			continue;
		}
		/* What was not asked for is not told as what failed elsewhere. */
		if (p->first < io->good || !io->err || (io->list && p->err == -EINTR))
			io->err = p->err;
		io->good = min(io->good, p->first);
		if (p->err == -ESTALE)
			pvfs_inode_stale(inode);
	}
	if (!io->write)
		return io->err;
	if (!io->err) {
		/* Does it leave a hole behind the end that we know? */
		bool hole = io->pos > round_up(i_size_read(inode), SZ_4K);

		pvfs_writes_note(inode, io_end(io), &io->wtime, io->trunc_gen, hole);
	} else {
		/*
		 * Parts may have been written, or may yet be (a request that was abandoned): only
		 * the iods know where the file ends.
		 */
		pvfs_writes_note(inode, io_end(io), &io->wtime, PVFS_GEN_ASK, true);
	}
	return io->err;
}

/**
 * pvfs_io_finish - wait for the iods' answers
 * @io: the transfer
 *
 * When it returns nothing below touches the memory any more. Fills the results; for a write, what
 * the mgr will have to be told is noted. Bytes that a datafile does not have are left as they were:
 * see pvfs_io_zero().
 *
 * Return: io->err.
 */
int pvfs_io_finish(struct pvfs_io *io)
{
	unsigned int i;

	if (io->head)
		return io->err;
	for (i = 0; i < io->nparts; i++)
		io_part_wait(&io->part[i]);
	io_ask_in_new_session(io);
	return io_gather(io);
}

/* ---------------------------------------------------------------- without waiting */

/*
 * May one more go on alone? What an iod that does not answer holds up must leave room for those who
 * wait for others.
 */
static bool io_may_go_on(struct pvfs_room *room, const struct pvfs_io *io)
{
	return atomic_read(&room->permits[io->fill]) > PERMITS / 3 &&
	       atomic_dec_if_positive(&room->ahead) >= 0;
}

/* The last that looks at @io. It may have been what kept the inode: that waits for its other pages. */
static void io_over(struct pvfs_io *io)
{
	struct pvfs_volume *vol = io->vol;
	struct inode *inode = io->inode;

	io->done(io);
	atomic_inc(&vol->room.ahead);
	if (!atomic_add_unless(&inode->i_count, -1, 1))
		pvfs_use_iput(PVFS_I(inode)->use);	/* counts vol->closing down */
	else if (atomic_dec_and_test(&vol->closing))
		wake_up_all(&vol->async_wait);
}

/* What is written back is waited for by somebody who can't be killed, or by nobody. */
static void io_alone_work(struct work_struct *work)
{
	struct pvfs_io *io = container_of(work, struct pvfs_io, work);

	io->err = pvfs_io_run(io);
	io_over(io);
}

static void io_failed_work(struct work_struct *work)
{
	struct pvfs_io *io = container_of(work, struct pvfs_io, work);

	io_ask_in_new_session(io);
	io_gather(io);
	io_over(io);
}

/* One part less. What has failed may have to be asked for again, which waits. */
static void io_left(struct pvfs_io *io)
{
	bool failed = false;
	unsigned int i;

	if (!atomic_dec_and_test(&io->left))
		return;
	for (i = 0; i < io->nparts; i++)
		failed |= io->part[i].err;
	if (failed) {
		INIT_WORK(&io->work, io_failed_work);
		queue_work(io->vol->io_wq, &io->work);
		return;
	}
	io_gather(io);
	io_over(io);
}

static void io_part_answered(struct pvfs_request *req)
{
	struct pvfs_io_part *p = req->priv;

	io_part_done(p, req);
	io_left(p->io);
}

/**
 * pvfs_io_submit - the same as pvfs_io_run(), but it goes on without the caller
 * @io: filled; of a file that is, or was, open
 * @done: called once, with the results filled, from wherever the last answer comes: it does not
 *	sleep. Gives @io back
 *
 * On a soft mount, where who waits is also who gives up, it waits; and when too many go on alone
 * already. But what is written back (kept) goes on alone all the same. write(2) has returned for these
 * bytes: if who happens to bring them were killed, and left the request to its fate, it could be done
 * after a later one of the same pages. Where somebody has to wait for the answer, on a soft mount and
 * for the mgr's, which is one after the other, that is a work item.
 *
 * len may become smaller.
 *
 * Return: 0; 1: of those that go on alone there are many, and who submits more is to wait for this one
 * first; or -errno, when nothing was asked, and @done is not called.
 */
int pvfs_io_submit(struct pvfs_io *io, void (*done)(struct pvfs_io *io))
{
	struct pvfs_volume *vol = PVFS_VOL(io->inode);
	bool alone, many;
	unsigned int i;
	int err;

	many = !io_may_go_on(&vol->room, io);
	if (many)
		atomic_dec(&vol->room.ahead);
	alone = io->kept || !(many || vol->opts.soft);
	/* What is written back is perhaps of an inode that goes as soon as that is done. */
	if (!alone || !igrab(io->inode)) {
		atomic_inc(&vol->room.ahead);
		err = pvfs_io_start(io);
		if (err)
			return err;
		pvfs_io_finish(io);
		done(io);
		return 0;
	}
	io->done = done;
	if (io->kept && (vol->opts.soft || pvfs_stuffed(io->inode))) {
		atomic_inc(&vol->closing);
		INIT_WORK(&io->work, io_alone_work);
		queue_work(vol->back_wq, &io->work);
		return many;
	}
	err = io_prepare(io);
	if (err) {
		atomic_inc(&vol->room.ahead);
		pvfs_iput_later(io->inode);
		return err;
	}
	atomic_inc(&vol->closing);
	if (io->head) {
		io_over(io);
		return 0;
	}
	atomic_set(&io->left, 1);
	for (i = 0; i < io->nparts; i++)
		io_part_submit(io, &io->part[i], true);
	io_left(io);
	return many;
}

/* Behind the end of a head. */
static void io_zero_behind(const struct pvfs_io *io, u64 limit)
{
	u32 end = min_t(u64, io->len, limit - io->pos), at = 0;
	const struct bio_vec *to = io->mem;

	for (; at < end; at += to->bv_len, to++) {
		u32 from = max(at, io->good), upto = min(at + to->bv_len, end);

		if (from < upto)
			memzero_page(to->bv_page, to->bv_offset + from - at, upto - from);
	}
}

/**
 * pvfs_io_zero - fill in what the datafiles did not have
 * @io: the transfer
 * @limit: file offset; bytes from there on are left alone
 *
 * For a read that was answered: what lies below the file's end and in no datafile is a hole.
 */
void pvfs_io_zero(struct pvfs_io *io, u64 limit)
{
	unsigned int i;

	if (io->head)
		io_zero_behind(io, limit);
	for (i = 0; i < io->nparts; i++) {
		const struct pvfs_io_part *p = &io->part[i];
		struct pvfs_io_cursor c = { .bv = p->bv };
		u32 at = p->got;

		if (p->err || at == p->len)
			continue;
		pvfs_io_advance(&c, at, NULL);
		while (at < p->len) {
			u64 pos = pvfs_stripe_file_off(&io->layout, p->df, p->off + at);
			u32 n = c.bv->bv_len - c.skip;

			if (pos >= limit)
				break;
			memzero_page(c.bv->bv_page, c.bv->bv_offset + c.skip,
				     min_t(u64, n, limit - pos));
			at += n;
			c.bv++;
			c.skip = 0;
		}
	}
}
