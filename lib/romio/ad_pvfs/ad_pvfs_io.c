// SPDX-License-Identifier: LGPL-2.1
/*
 * ad_pvfs_io.c - bytes. What is contiguous in memory and in the file is a read or a write; all else
 * becomes two lists, of places in memory and of places in the file, and goes to the I/O daemons as
 * list I/O: nothing is read to be written again. libpvfs sees the patterns in the list by itself.
 */
#include "ad_pvfs.h"

static void set_status(ADIO_Status *status, MPI_Datatype datatype, MPI_Count bytes)
{
#ifdef HAVE_STATUS_SET_BYTES
	MPIR_Status_set_bytes(status, datatype, bytes);
#endif
}

/* ---- contiguous ---- */

/* Moves all of it, or to the end of the file. Return: bytes, or -errno. */
static ssize_t move(struct pvfs_file *f, int write, char *buf, size_t len, off_t off)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = write ? pvfs_pwrite(f, buf + done, len - done, off + done) :
			    pvfs_pread(f, buf + done, len - done, off + done);
		if (n < 0)
			return n;
		if (!n)
			break;
		done += n;
	}
	return done;
}

static void contig(ADIO_File fd, int write, void *buf, int count, MPI_Datatype datatype,
		   int file_ptr_type, ADIO_Offset offset, ADIO_Status *status, int *error_code)
{
	static char myname[] = "ADIOI_PVFS_CONTIG";
	MPI_Count size;
	ssize_t n;

	MPI_Type_size_x(datatype, &size);
	if (file_ptr_type == ADIO_INDIVIDUAL)
		offset = fd->fp_ind;
	n = move(ADIOI_PVFS_file(fd), write, buf, size * count, offset);
	set_status(status, datatype, n < 0 ? 0 : n);
	if (n > 0)
		offset += n;
	fd->fp_sys_posn = offset;
	if (file_ptr_type == ADIO_INDIVIDUAL)
		fd->fp_ind = offset;
	*error_code = n < 0 ? ADIOI_Err_create_code(myname, fd->filename, -n) : MPI_SUCCESS;
}

void ADIOI_PVFS_ReadContig(ADIO_File fd, void *buf, int count, MPI_Datatype datatype,
			   int file_ptr_type, ADIO_Offset offset, ADIO_Status *status,
			   int *error_code)
{
	contig(fd, 0, buf, count, datatype, file_ptr_type, offset, status, error_code);
}

void ADIOI_PVFS_WriteContig(ADIO_File fd, const void *buf, int count, MPI_Datatype datatype,
			    int file_ptr_type, ADIO_Offset offset, ADIO_Status *status,
			    int *error_code)
{
	contig(fd, 1, (void *)buf, count, datatype, file_ptr_type, offset, status, error_code);
}

/* ---- lists ---- */

/* An access, taken apart. */
struct places {
	struct iovec *mem;
	size_t nmem, mem_room;
	struct pvfs_piece *file;
	size_t nfile, file_room;
	ADIO_Offset start, end;		/* in the file: the first byte, and behind the last */
	ADIO_Offset next;		/* where the view goes on behind it */
};

/* Return: 0 or -ENOMEM. */
static int grow(void **p, size_t *room, size_t each)
{
	size_t want = *room ? *room * 2 : 64;
	void *more = realloc(*p, want * each);

	if (!more)
		return -ENOMEM;
	*p = more;
	*room = want;
	return 0;
}

static int add_mem(struct places *p, char *at, size_t len)
{
	struct iovec *last = p->nmem ? &p->mem[p->nmem - 1] : NULL;

	if (!len)
		return 0;
	if (last && (char *)last->iov_base + last->iov_len == at) {
		last->iov_len += len;
		return 0;
	}
	if (p->nmem == p->mem_room && grow((void **)&p->mem, &p->mem_room, sizeof(*p->mem)))
		return -ENOMEM;
	p->mem[p->nmem++] = (struct iovec){ .iov_base = at, .iov_len = len };
	return 0;
}

static int add_file(struct places *p, ADIO_Offset off, ADIO_Offset len)
{
	if (p->nfile == p->file_room && grow((void **)&p->file, &p->file_room, sizeof(*p->file)))
		return -ENOMEM;
	p->file[p->nfile++] = (struct pvfs_piece){ .off = off, .len = len };
	if (p->nfile == 1 || off < p->start)
		p->start = off;
	if (off + len > p->end)
		p->end = off + len;
	return 0;
}

static int places_in_memory(struct places *p, char *buf, int count, MPI_Datatype datatype)
{
	ADIOI_Flatlist_node *flat;
	MPI_Aint lb, extent;
	MPI_Count i, size;
	int k, contig, err = 0;

	ADIOI_Datatype_iscontig(datatype, &contig);
	if (contig) {
		MPI_Type_size_x(datatype, &size);
		return add_mem(p, buf, size * count);
	}
	MPI_Type_get_extent(datatype, &lb, &extent);
	flat = ADIOI_Flatten_and_find(datatype);
	for (k = 0; k < count && !err; k++)
		for (i = 0; i < flat->count && !err; i++)
			err = add_mem(p, buf + (MPI_Aint)k * extent + flat->indices[i], flat->blocklens[i]);
	return err;
}

/* @left bytes of the view, tile by tile, from block @i of tile @n on, of which @skip are left out. */
static int walk(struct places *p, ADIO_File fd, const ADIOI_Flatlist_node *flat, MPI_Aint extent,
		ADIO_Offset n, MPI_Count i, ADIO_Offset skip, ADIO_Offset left)
{
	ADIO_Offset off, len;
	int err;

	for (;; i++, skip = 0) {
		if (i == flat->count) {
			i = 0;
			n++;
		}
		len = flat->blocklens[i] - skip;
		off = fd->disp + n * extent + flat->indices[i] + skip;
		if (len <= 0)
			continue;
		if (!left) {
			p->next = off;
			return 0;
		}
		len = len < left ? len : left;
		err = add_file(p, off, len);
		if (err)
			return err;
		left -= len;
		if (len < flat->blocklens[i] - skip) {
			p->next = off + len;
			return 0;
		}
	}
}

static int places_in_file(struct places *p, ADIO_File fd, int file_ptr_type, ADIO_Offset offset,
			  ADIO_Offset bytes)
{
	ADIO_Offset at, n, reach = 0, end;
	ADIOI_Flatlist_node *flat;
	MPI_Aint lb, extent;
	MPI_Count i, size;
	int contig;

	ADIOI_Datatype_iscontig(fd->filetype, &contig);
	if (contig) {
		at = file_ptr_type == ADIO_INDIVIDUAL ? fd->fp_ind : fd->disp + offset * fd->etype_size;
		p->next = at + bytes;
		return add_file(p, at, bytes);
	}
	MPI_Type_size_x(fd->filetype, &size);
	MPI_Type_get_extent(fd->filetype, &lb, &extent);
	flat = ADIOI_Flatten_and_find(fd->filetype);
	if (file_ptr_type != ADIO_INDIVIDUAL) {
		/* So many bytes of the view come before. */
		at = offset * fd->etype_size;
		n = at / size;
		for (i = 0, at %= size; at >= flat->blocklens[i]; i++)
			at -= flat->blocklens[i];
		return walk(p, fd, flat, extent, n, i, at, bytes);
	}
	/* The first block that ends behind the pointer, in the first tile that may have it. */
	for (i = 0; i < flat->count; i++)
		reach = flat->indices[i] + flat->blocklens[i] > reach ?
			flat->indices[i] + flat->blocklens[i] : reach;
	n = fd->fp_ind - fd->disp >= reach ? (fd->fp_ind - fd->disp - reach) / extent : 0;
	for (i = 0;; i++) {
		if (i == flat->count) {
			i = 0;
			n++;
		}
		end = fd->disp + n * extent + flat->indices[i] + flat->blocklens[i];
		if (flat->blocklens[i] && end > fd->fp_ind)
			break;
	}
	at = fd->fp_ind - (end - flat->blocklens[i]);
	return walk(p, fd, flat, extent, n, i, at > 0 ? at : 0, bytes);
}

/* Takes what was moved off the front. */
static void skip(struct places *p, size_t n)
{
	size_t left = n;

	while (left && p->nmem && left >= p->mem->iov_len) {
		left -= p->mem->iov_len;
		memmove(p->mem, p->mem + 1, --p->nmem * sizeof(*p->mem));
	}
	if (left) {
		p->mem->iov_base = (char *)p->mem->iov_base + left;
		p->mem->iov_len -= left;
	}
	for (left = n; left && p->nfile && left >= p->file->len; ) {
		left -= p->file->len;
		memmove(p->file, p->file + 1, --p->nfile * sizeof(*p->file));
	}
	if (left) {
		p->file->off += left;
		p->file->len -= left;
	}
}

/* Return: bytes, or -errno. */
static ssize_t move_list(ADIO_File fd, int write, struct places *p, ADIO_Offset bytes)
{
	struct pvfs_file *f = ADIOI_PVFS_file(fd);
	ADIO_Offset done = 0;
	ssize_t n;

	do {
		n = write ? pvfs_write_list(f, p->mem, p->nmem, p->file, p->nfile) :
			    pvfs_read_list(f, p->mem, p->nmem, p->file, p->nfile);
		if (n < 0)
			return n;
		done += n;
		/* A write that was short says why when it goes on. */
		if (write && done < bytes)
			skip(p, n);
	} while (write && n && done < bytes);
	return done;
}

static void strided(ADIO_File fd, int write, void *buf, int count, MPI_Datatype datatype,
		    int file_ptr_type, ADIO_Offset offset, ADIO_Status *status, int *error_code)
{
	static char myname[] = "ADIOI_PVFS_STRIDED";
	struct places p = { 0 };
	MPI_Count size, filesize;
	ADIO_Offset bytes;
	int err, locked = 0;
	ssize_t n = 0;

	MPI_Type_size_x(datatype, &size);
	MPI_Type_size_x(fd->filetype, &filesize);
	bytes = size * count;
	*error_code = MPI_SUCCESS;
	set_status(status, datatype, 0);
	if (!bytes || !filesize)
		return;
	err = places_in_memory(&p, buf, count, datatype);
	err = err ? err : places_in_file(&p, fd, file_ptr_type, offset, bytes);
	if (!err && fd->atomicity) {
		*error_code = ADIOI_PVFS_SetLock(fd, F_SETLKW, write ? F_WRLCK : F_RDLCK, p.start,
						 SEEK_SET, p.end - p.start);
		locked = *error_code == MPI_SUCCESS;
	}
	if (!err && *error_code == MPI_SUCCESS) {
		n = move_list(fd, write, &p, bytes);
		err = n < 0 ? n : 0;
	}
	if (locked)
		ADIOI_PVFS_SetLock(fd, F_SETLK, F_UNLCK, p.start, SEEK_SET, p.end - p.start);
	if (err)
		*error_code = ADIOI_Err_create_code(myname, fd->filename, -err);
	if (*error_code == MPI_SUCCESS) {
		set_status(status, datatype, n);
		fd->fp_sys_posn = -1;
		if (file_ptr_type == ADIO_INDIVIDUAL)
			fd->fp_ind = p.next;
	}
	free(p.mem);
	free(p.file);
}

void ADIOI_PVFS_ReadStrided(ADIO_File fd, void *buf, int count, MPI_Datatype datatype,
			    int file_ptr_type, ADIO_Offset offset, ADIO_Status *status,
			    int *error_code)
{
	if (fd->hints->fs_hints.pvfs.listio_read)
		strided(fd, 0, buf, count, datatype, file_ptr_type, offset, status, error_code);
	else
		ADIOI_GEN_ReadStrided_naive(fd, buf, count, datatype, file_ptr_type, offset, status,
					    error_code);
}

void ADIOI_PVFS_WriteStrided(ADIO_File fd, const void *buf, int count, MPI_Datatype datatype,
			     int file_ptr_type, ADIO_Offset offset, ADIO_Status *status,
			     int *error_code)
{
	if (fd->hints->fs_hints.pvfs.listio_write)
		strided(fd, 1, (void *)buf, count, datatype, file_ptr_type, offset, status, error_code);
	else
		ADIOI_GEN_WriteStrided_naive(fd, buf, count, datatype, file_ptr_type, offset, status,
					     error_code);
}

/* ---- collective ---- */

/*
 * A daemon may be lost while some processes have done their part and others not: all are told, or
 * those that go on would wait for those that do not.
 */
static void share_error(ADIO_File fd, int *error_code)
{
	int worst;

	MPI_Allreduce(error_code, &worst, 1, MPI_INT, MPI_MAX, fd->comm);
	if (*error_code == MPI_SUCCESS)
		*error_code = worst;
}

void ADIOI_PVFS_ReadStridedColl(ADIO_File fd, void *buf, int count, MPI_Datatype datatype,
				int file_ptr_type, ADIO_Offset offset, ADIO_Status *status,
				int *error_code)
{
	ADIOI_GEN_ReadStridedColl(fd, buf, count, datatype, file_ptr_type, offset, status, error_code);
	share_error(fd, error_code);
}

void ADIOI_PVFS_WriteStridedColl(ADIO_File fd, const void *buf, int count, MPI_Datatype datatype,
				 int file_ptr_type, ADIO_Offset offset, ADIO_Status *status,
				 int *error_code)
{
	ADIOI_GEN_WriteStridedColl(fd, buf, count, datatype, file_ptr_type, offset, status, error_code);
	share_error(fd, error_code);
}
