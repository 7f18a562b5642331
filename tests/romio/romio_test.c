// SPDX-License-Identifier: GPL-2.0
/*
 * romio_test.c - what MPI programs want of the driver for PVFS and ROMIO's own tests do not ask for:
 * views that tile a file, hints, classes of errors, a daemon that is lost. For 4 processes.
 *
 *	romio_test FILE lost PIDFILE	collective writes, during which the daemon of the pid file is
 *					killed: an error everywhere, and no hang
 *	romio_test FILE leave		ends without closing
 *	romio_test FILE			all else; prints TAP
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, nprocs, tests, failed;
static const char *file;

/* @good: on this process; the test passes when it is so on all. */
static void ok(int good, const char *name)
{
	int all;

	MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	tests++;
	failed += !all;
	if (!rank)
		printf("%sok %d - %s\n", all ? "" : "not ", tests, name);
	if (!good)
		fprintf(stderr, "# process %d: %s\n", rank, name);
}

static int class_of(int code)
{
	int class = MPI_SUCCESS;

	if (code != MPI_SUCCESS)
		MPI_Error_class(code, &class);
	return class;
}

static MPI_File open_it(int mode, MPI_Info info)
{
	MPI_File fh;

	if (MPI_File_open(MPI_COMM_WORLD, file, mode, info, &fh) != MPI_SUCCESS) {
		fprintf(stderr, "# cannot open %s\n", file);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return fh;
}

static void delete_it(void)
{
	if (!rank)
		MPI_File_delete(file, MPI_INFO_NULL);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- views ---- */

#define ROWS 96
#define COLS 80
#define ELEM 24

static unsigned char byte_of(long i)
{
	return i * 31 + (i >> 9);
}

/* The whole file, as every process sees it. */
static int whole(long bytes)
{
	unsigned char *all = malloc(bytes + 1);
	MPI_File fh = open_it(MPI_MODE_RDONLY, MPI_INFO_NULL);
	MPI_Status st;
	int n = 0, good;
	long i;

	good = MPI_File_read_at(fh, 0, all, bytes + 1, MPI_BYTE, &st) == MPI_SUCCESS;
	MPI_Get_count(&st, MPI_BYTE, &n);
	for (i = 0; good && i < bytes && all[i] == byte_of(i); i++)
		;
	good = good && n == bytes && i == bytes;
	MPI_File_close(&fh);
	free(all);
	return good;
}

/* Each process writes and reads its part of an array by a view. */
static void array(MPI_Datatype elem, MPI_Datatype type, int collective, const char *name)
{
	unsigned char *out, *in;
	MPI_File fh;
	MPI_Status st;
	MPI_Aint lb, extent;
	int size, n, good, i;

	MPI_Type_commit(&type);
	MPI_Type_size(type, &size);
	MPI_Type_get_extent(type, &lb, &extent);
	out = malloc(size);
	in = calloc(1, size);
	delete_it();
	/* What is to be where, taken out of the whole by MPI itself. */
	{
		unsigned char *all = malloc(extent);
		int at = 0;

		for (i = 0; i < extent; i++)
			all[i] = byte_of(i);
		MPI_Pack(all, 1, type, out, size, &at, MPI_COMM_WORLD);
		free(all);
	}
	fh = open_it(MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL);
	good = MPI_File_set_view(fh, 0, elem, type, "native", MPI_INFO_NULL) == MPI_SUCCESS;
	good = good && (collective ? MPI_File_write_all(fh, out, size, MPI_BYTE, &st) :
				     MPI_File_write(fh, out, size, MPI_BYTE, &st)) == MPI_SUCCESS;
	MPI_Get_count(&st, MPI_BYTE, &n);
	good = good && n == size;
	MPI_Barrier(MPI_COMM_WORLD);
	good = good && (collective ? MPI_File_read_at_all(fh, 0, in, size, MPI_BYTE, &st) :
				     MPI_File_read_at(fh, 0, in, size, MPI_BYTE, &st)) == MPI_SUCCESS;
	MPI_Get_count(&st, MPI_BYTE, &n);
	good = good && n == size && !memcmp(in, out, size);
	MPI_File_close(&fh);
	good = whole(extent) && good;
	ok(good, name);
	free(in);
	free(out);
	MPI_Type_free(&type);
}

static void test_views(void)
{
	int sizes[2] = { ROWS, COLS }, sub[2] = { ROWS / 2, COLS / 2 }, grid[2] = { 2, 2 };
	int start[2] = { rank / 2 * ROWS / 2, rank % 2 * COLS / 2 };
	int cyclic[2] = { MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC }, odd[2] = { ROWS + 1, COLS - 3 };
	int blocks[2] = { 5, 3 }, few[2] = { 5, 5 }, three[2] = { 3, 3 }, c;
	MPI_Datatype elem, type;
	char name[80];

	MPI_Type_contiguous(ELEM, MPI_BYTE, &elem);
	MPI_Type_commit(&elem);
	for (c = 0; c < 2; c++) {
		const char *how = c ? "collectively" : "by itself";

		MPI_Type_create_subarray(2, sizes, sub, start, MPI_ORDER_C, elem, &type);
		snprintf(name, sizeof(name), "tiles of 2 x 2, %s", how);
		array(elem, type, c, name);
		MPI_Type_create_subarray(2, sizes, sub, start, MPI_ORDER_FORTRAN, elem, &type);
		snprintf(name, sizeof(name), "tiles in Fortran's order, %s", how);
		array(elem, type, c, name);
		MPI_Type_create_darray(nprocs, rank, 2, odd, cyclic, blocks, grid, MPI_ORDER_C, elem, &type);
		snprintf(name, sizeof(name), "block-cyclic, with blocks that are not whole, %s", how);
		array(elem, type, c, name);
		MPI_Type_create_darray(nprocs, rank, 2, few, cyclic, three, grid, MPI_ORDER_FORTRAN, elem, &type);
		snprintf(name, sizeof(name), "block-cyclic, with none that is, %s", how);
		array(elem, type, c, name);
	}
	MPI_Type_free(&elem);
}

/* Records of all processes in turn, many of them, with gaps in memory as well. */
static void test_records(void)
{
	enum { N = 500, LEN = 470 };
	unsigned char *out = calloc(N, LEN + 10), *in = calloc(N, LEN + 10);
	MPI_Datatype inmem, view;
	MPI_Status st;
	MPI_File fh;
	int i, k, good;

	delete_it();
	MPI_Type_vector(N, LEN, LEN + 10, MPI_BYTE, &inmem);
	MPI_Type_commit(&inmem);
	MPI_Type_vector(N, LEN, LEN * nprocs, MPI_BYTE, &view);
	MPI_Type_commit(&view);
	for (i = 0; i < N; i++)
		for (k = 0; k < LEN; k++)
			out[i * (LEN + 10) + k] = byte_of(((long)i * nprocs + rank) * LEN + k);
	fh = open_it(MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL);
	good = MPI_File_set_view(fh, rank * LEN, MPI_BYTE, view, "native", MPI_INFO_NULL) == MPI_SUCCESS &&
	       MPI_File_write(fh, out, 1, inmem, &st) == MPI_SUCCESS;
	MPI_Barrier(MPI_COMM_WORLD);
	good = good && MPI_File_seek(fh, 0, MPI_SEEK_SET) == MPI_SUCCESS &&
	       MPI_File_read(fh, in, 1, inmem, &st) == MPI_SUCCESS && !memcmp(in, out, N * (LEN + 10));
	MPI_File_close(&fh);
	good = whole((long)N * LEN * nprocs) && good;
	ok(good, "interleaved records, not contiguous in memory either");
	MPI_Type_free(&inmem);
	MPI_Type_free(&view);
	free(in);
	free(out);
}

/* ---- hints ---- */

static int hint_is(MPI_File fh, const char *key, const char *want)
{
	char value[MPI_MAX_INFO_VAL + 1] = "";
	MPI_Info info;
	int there = 0;

	MPI_File_get_info(fh, &info);
	MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &there);
	MPI_Info_free(&info);
	if (there && !strcmp(value, want))
		return 1;
	fprintf(stderr, "# %s is '%s', not '%s'\n", key, value, want);
	return 0;
}

static void test_hints(void)
{
	static const char *const bad[][2] = {
		{ "striping_factor", "5" }, { "striping_factor", "-1" }, { "striping_factor", "two" },
		{ "striping_unit", "5000" }, { "striping_unit", "1024" }, { "striping_unit", "99999999999999999999" },
		{ "start_iodevice", "4" }, { "romio_pvfs_listio_read", "perhaps" }, { "romio_pvfs_stuff", "" },
	};
	MPI_Info info;
	MPI_File fh;
	size_t i;
	int good;

	delete_it();
	MPI_Info_create(&info);
	MPI_Info_set(info, "striping_factor", "2");
	MPI_Info_set(info, "striping_unit", "131072");
	MPI_Info_set(info, "start_iodevice", "3");
	fh = open_it(MPI_MODE_CREATE | MPI_MODE_RDWR, info);
	good = hint_is(fh, "striping_factor", "2") && hint_is(fh, "striping_unit", "131072") &&
	       hint_is(fh, "start_iodevice", "3");
	MPI_File_close(&fh);
	/* They are of the file, whoever opens it. */
	fh = open_it(MPI_MODE_RDWR, MPI_INFO_NULL);
	good = good && hint_is(fh, "striping_factor", "2") && hint_is(fh, "striping_unit", "131072");
	MPI_File_close(&fh);
	ok(good, "hints say how a file is striped, and say it again");
	for (i = 0, good = 1; i < sizeof(bad) / sizeof(*bad); i++) {
		MPI_Info one;

		delete_it();
		MPI_Info_create(&one);
		MPI_Info_set(one, bad[i][0], *bad[i][1] ? bad[i][1] : " ");
		fh = open_it(MPI_MODE_CREATE | MPI_MODE_RDWR, one);
		good = hint_is(fh, "striping_factor", "4") && hint_is(fh, "striping_unit", "65536") && good;
		MPI_File_close(&fh);
		MPI_Info_free(&one);
	}
	ok(good, "hints that make no sense are not taken");
	MPI_Info_free(&info);
}

/* ---- sizes and errors ---- */

static void test_sizes(void)
{
	MPI_Offset size = -1;
	MPI_Status st;
	MPI_File fh;
	char c = 'x';
	int good, n = -1;

	delete_it();
	fh = open_it(MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL);
	good = MPI_File_write_at(fh, rank * 100000, &c, 1, MPI_CHAR, &st) == MPI_SUCCESS &&
	       MPI_File_sync(fh) == MPI_SUCCESS;
	MPI_Barrier(MPI_COMM_WORLD);
	good = good && !MPI_File_get_size(fh, &size) && size == 300001;
	good = good && !MPI_File_set_size(fh, 200001) && !MPI_File_get_size(fh, &size) && size == 200001;
	MPI_Barrier(MPI_COMM_WORLD);
	good = good && !MPI_File_preallocate(fh, 1000000) && !MPI_File_get_size(fh, &size) && size == 1000000;
	MPI_Barrier(MPI_COMM_WORLD);
	/* Behind the end there is nothing; what was cut off is not there again. */
	good = good && !MPI_File_read_at(fh, 300000, &c, 1, MPI_CHAR, &st) && c == 0;
	good = good && !MPI_File_read_at(fh, 1000000, &c, 1, MPI_CHAR, &st) && !MPI_Get_count(&st, MPI_CHAR, &n) &&
	       n == 0;
	MPI_File_close(&fh);
	ok(good, "sync, size, resize, preallocate, and the end of the file");
}

static void test_errors(void)
{
	MPI_File fh = MPI_FILE_NULL;
	MPI_Status st;
	char c, path[4096];
	int good;

	delete_it();
	ok(class_of(MPI_File_open(MPI_COMM_WORLD, file, MPI_MODE_RDONLY, MPI_INFO_NULL, &fh)) ==
	   MPI_ERR_NO_SUCH_FILE, "a file that is not there: MPI_ERR_NO_SUCH_FILE");
	ok(class_of(MPI_File_delete(file, MPI_INFO_NULL)) == MPI_ERR_NO_SUCH_FILE, "so when it is deleted");
	fh = open_it(MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL);
	good = class_of(MPI_File_read_at(fh, 0, &c, 1, MPI_CHAR, &st)) == MPI_ERR_ACCESS;
	MPI_File_close(&fh);
	ok(good, "reading what is open for writing: MPI_ERR_ACCESS");
	ok(class_of(MPI_File_open(MPI_COMM_WORLD, file, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR,
				  MPI_INFO_NULL, &fh)) == MPI_ERR_FILE_EXISTS, "MPI_MODE_EXCL: MPI_ERR_FILE_EXISTS");
	snprintf(path, sizeof(path), "%s/below", file);
	ok(class_of(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh)) !=
	   MPI_SUCCESS, "a file is no directory");
	snprintf(path, sizeof(path), "%.*s%0300d", (int)(strrchr(file, '/') - file) + 1, file, 0);
	ok(class_of(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh)) ==
	   MPI_ERR_BAD_FILE, "a name that is too long: MPI_ERR_BAD_FILE");
	fh = open_it(MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
	MPI_File_close(&fh);
	ok(class_of(MPI_File_open(MPI_COMM_WORLD, file, MPI_MODE_RDONLY, MPI_INFO_NULL, &fh)) ==
	   MPI_ERR_NO_SUCH_FILE, "MPI_MODE_DELETE_ON_CLOSE");
}

/* ---- a daemon is lost ---- */

static void lost(const char *pidfile)
{
	enum { LEN = 1 << 20 };
	char *buf = calloc(1, LEN);
	MPI_File fh = open_it(MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL);
	MPI_Status st;
	int i, err = MPI_SUCCESS;

	for (i = 0; i < 1000 && err == MPI_SUCCESS; i++) {
		if (i == 5 && !rank) {
			FILE *f = fopen(pidfile, "r");
			int pid = 0;

			if (!f || fscanf(f, "%d", &pid) != 1 || kill(pid, SIGKILL))
				MPI_Abort(MPI_COMM_WORLD, 1);
			fclose(f);
		}
		err = MPI_File_write_at_all(fh, ((long)i % 8 * nprocs + rank) * LEN, buf, LEN, MPI_BYTE, &st);
	}
	ok(i > 5 && class_of(err) == MPI_ERR_IO, "a daemon that is lost: MPI_ERR_IO on all processes");
	MPI_File_close(&fh);
	free(buf);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nprocs);
	if (argc < 2 || nprocs != 4) {
		fprintf(stderr, "usage: mpiexec -n 4 %s FILE [lost PIDFILE | leave]\n", argv[0]);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	file = argv[1];
	if (argc > 3 && !strcmp(argv[2], "lost")) {
		lost(argv[3]);
	} else if (argc > 2) {
		MPI_File fh = open_it(MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL);
		MPI_Status st;

		MPI_File_write_at(fh, rank * 4, "left", 4, MPI_CHAR, &st);
		MPI_Barrier(MPI_COMM_WORLD);
		_exit(0);
	} else {
		test_views();
		test_records();
		test_hints();
		test_sizes();
		test_errors();
	}
	if (!rank)
		printf("1..%d\n", tests);
	MPI_Finalize();
	return failed > 0;
}
