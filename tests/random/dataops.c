// SPDX-License-Identifier: GPL-2.0-only
/*
 * dataops.c - random operations on two files, compared with a model of their bytes.
 *
 *	dataops [-s SEED] [-n OPS] [-l MAXLEN] [-o LOG] [-r LOG] [-k OPS] [-x OP] [-m] DIR [DIR2]
 *
 *	-s	a seed repeats its run (default: one of the time)
 *	-n	how many operations (default 10000)
 *	-l	how long files get (default 600000 bytes)
 *	-o	writes a line for each operation, before it is done
 *	-r	carries out the operations of such a log, or of what is left of it: cut it down to find which matter
 *	-k	all bytes are compared through all sides every so many operations (default 250), and at the end
 *	-x	changes a byte behind the model's back at operation OP: the run must fail
 *
 *	-m	mappings through both mounts are one memory: what is stored is seen without msync
 *
 * DIR2 is DIR through another mount: each operation picks one of the two. Exits with 1 when file
 * and model differ; the files as each side reads them, and the models, are then in DIR, and their
 * names in the output.
 */
#include "dataops.h"
#include <signal.h>

struct data_state data;
static uint64_t sabotage, every = 250;
static struct rnd rnd;

const char *const data_names[OP_NR] = {
	[OP_READ] = "read", [OP_WRITE] = "write", [OP_APPEND] = "append",
	[OP_DREAD] = "direct-read", [OP_DWRITE] = "direct-write", [OP_MAPREAD] = "mapped-read",
	[OP_MAPWRITE] = "mapped-write", [OP_MSYNC] = "msync", [OP_MUNMAP] = "munmap",
	[OP_TRUNC] = "truncate", [OP_ALLOC] = "allocate", [OP_ALLOC_KEEP] = "allocate-keep",
	[OP_PUNCH] = "punch", [OP_ZERO] = "zero", [OP_ZERO_KEEP] = "zero-keep",
	[OP_COPY] = "copy-within", [OP_COPY_TO] = "copy-to-other", [OP_SYNC] = "sync",
	[OP_REOPEN] = "reopen", [OP_SEEK] = "seek", [OP_FADVISE] = "fadvise", [OP_STAT] = "stat",
};

/* How often each is drawn. Truncation is rare enough that files have something in them. */
static const unsigned int weights[OP_NR] = {
	[OP_READ] = 16, [OP_WRITE] = 16, [OP_APPEND] = 5, [OP_DREAD] = 4, [OP_DWRITE] = 4,
	[OP_MAPREAD] = 8, [OP_MAPWRITE] = 8, [OP_MSYNC] = 1, [OP_MUNMAP] = 2, [OP_TRUNC] = 6,
	[OP_ALLOC] = 2, [OP_ALLOC_KEEP] = 2, [OP_PUNCH] = 5, [OP_ZERO] = 3, [OP_ZERO_KEEP] = 2,
	[OP_COPY] = 4, [OP_COPY_TO] = 4, [OP_SYNC] = 1, [OP_REOPEN] = 2, [OP_SEEK] = 4,
	[OP_FADVISE] = 2, [OP_STAT] = 1,
};

/* Close to where pages, stripe units and the file end. */
static int64_t draw_offset(int64_t size)
{
	static const int64_t edges[] = { PAGE, 65536 };
	int64_t off, edge;

	switch (rnd_below(&rnd, 8)) {
	case 0:
		off = size + (int64_t)rnd_below(&rnd, 600) - 300;
		break;
	case 1:
		off = size;
		break;
	case 2:
	case 3:
		edge = edges[rnd_below(&rnd, 2)];
		off = (int64_t)rnd_below(&rnd, data.max / edge + 1) * edge +
			(int64_t)rnd_below(&rnd, 5) - 2;
		break;
	default:
		off = rnd_below(&rnd, data.max);
	}
	return off < 0 ? 0 : off > data.max ? data.max : off;
}

static int64_t draw_length(void)
{
	static const int64_t limit[8] = { 16, 512, 512, 5000, 5000, 20000, 20000, 140000 };

	if (rnd_one_in(&rnd, 40))
		return rnd_below(&rnd, data.max + 1);
	return rnd_below(&rnd, limit[rnd_below(&rnd, 8)] + 1);
}

static void draw(struct data_op *op)
{
	unsigned int total = 0, pick, i;
	struct data_file *f;

	for (i = 0; i < OP_NR; i++)
		total += weights[i];
	pick = rnd_below(&rnd, total);
	for (i = 0; pick >= weights[i]; i++)
		pick -= weights[i];
	op->kind = i;
	op->side = rnd_below(&rnd, data.sides);
	op->file = rnd_one_in(&rnd, 4);
	f = &data.file[op->file];
	op->off = draw_offset(f->size);
	op->off2 = draw_offset(data.file[op->kind == OP_COPY_TO ? !op->file : op->file].size);
	op->len = draw_length();
	op->arg = rnd_next(&rnd);
	/* Half of what only acts before the end is drawn there. */
	if (op->off >= f->size && rnd_one_in(&rnd, 2) &&
	    (op->kind == OP_READ || op->kind == OP_MAPREAD || op->kind == OP_MAPWRITE ||
	     op->kind == OP_SEEK ||
	     op->kind == OP_COPY || op->kind == OP_COPY_TO || op->kind == OP_DREAD))
		op->off = rnd_below(&rnd, f->size);
}

/* Makes an operation one that fits, wherever it comes from. */
static void fit(struct data_op *op)
{
	if (op->kind == OP_DREAD || op->kind == OP_DWRITE) {
		op->off -= op->off % PAGE;
		op->len = (op->len + PAGE - 1) / PAGE * PAGE;
	}
	if (op->off > data.max)
		op->off = data.max;
	if (op->off2 > data.max)
		op->off2 = data.max;
	if (op->len > data.max - op->off)
		op->len = data.max - op->off;
	if ((op->kind == OP_COPY || op->kind == OP_COPY_TO) && op->len > data.max - op->off2)
		op->len = data.max - op->off2;
}

static void check_size(struct data_file *f, bool by_name)
{
	struct stat st;
	int i;

	for (i = 0; i < data.sides; i++) {
		if (fstat(f->fd[i][FD_RW], &st) < 0 || (by_name && stat(f->path[i], &st) < 0))
			rnd_fail("stat %s: %s", f->path[i], strerror(errno));
		if (st.st_size != f->size)
			rnd_fail("%sstat through side %d: the size of %s is %lld, should be %lld",
				 by_name ? "" : "f", i,
				 f->path[i], (long long)st.st_size, (long long)f->size);
		/* A file with bytes may not pretend that it has none, but for those that were stored just now. */
		if (by_name && !data.one_memory && f->size && f->model[f->size - 1] && !f->dirty[0] && !f->dirty[1] &&
		    !st.st_blocks)
			rnd_fail("%s has %lld bytes and no blocks", f->path[i], (long long)f->size);
	}
}

static void check_all(void)
{
	int i, side;

	for (i = 0; i < DATA_FILES; i++) {
		struct data_file *f = &data.file[i];

		for (side = 0; side < data.sides; side++)
			data_settle(f, side, rnd_next(&rnd));
		check_size(f, true);
		for (side = 0; side < data.sides; side++) {
			ssize_t r = pread(f->fd[side][FD_RW], data.buf, data.max + PAGE, 0);

			if (r != f->size)
				rnd_fail("side %d: all of %s is %zd bytes, should be %lld, errno %d", side, f->path[side],
					 r, (long long)f->size, errno);
			data_compare(f, data.buf, 0, r,
				     side ? "all bytes, second side" : "all bytes, first side");
		}
	}
}

static void save(const char *path, const void *bytes, size_t n)
{
	FILE *out = fopen(path, "w");

	if (!out || fwrite(bytes, 1, n, out) != n || fclose(out))
		printf("cannot write %s: %s\n", path, strerror(errno));
	else
		printf("  %s\n", path);
}

/* Part of rnd_fail. */
static void report(void)
{
	char path[600];
	int i, side;

	if (data.now)
		printf("seed %llu, operation %llu (%s, side %d, file %d); again: -s %llu -n %llu -l %lld\n",
		       (unsigned long long)data.seed, (unsigned long long)data.now->n,
			       data_names[data.now->kind],
		       data.now->side, data.now->file, (unsigned long long)data.seed,
		       (unsigned long long)data.now->n + 1, (long long)data.max);
	printf("left behind:\n");
	for (i = 0; i < DATA_FILES; i++) {
		struct data_file *f = &data.file[i];

		for (side = 0; side < data.sides; side++) {
			ssize_t r = f->fd[side][FD_RW] < 0 ? -1 :
				pread(f->fd[side][FD_RW], data.buf, data.max + PAGE, 0);

			snprintf(path, sizeof(path), "%s.side%d", f->path[0], side);
			if (r >= 0)
				save(path, data.buf, r);
		}
		snprintf(path, sizeof(path), "%s.model", f->path[0]);
		save(path, f->model, f->size);
	}
}

static void on_signal(int sig)
{
	rnd_fail("signal %d (%s)", sig, strsignal(sig));
}

static void run_one(struct data_op *op)
{
	data.now = op;
	rnd_note("%llu %d %d %s %lld %lld %lld %llu", (unsigned long long)op->n, op->side, op->file,
		 data_names[op->kind], (long long)op->off, (long long)op->len, (long long)op->off2,
		 (unsigned long long)op->arg);
	data_exec(op);
	if (sabotage && op->n == sabotage) {
		struct data_file *f = &data.file[0];
		int64_t at = f->size / 2;
		unsigned char c = f->model[at] ^ 0x55;
		int fd = open(f->path[0], O_WRONLY);

		if (fd < 0 || pwrite(fd, &c, 1, at) != 1 || close(fd) < 0)
			rnd_die("cannot do harm: %s", strerror(errno));
	}
	check_size(&data.file[op->file], op->arg % 16 == 0);
	if (op->kind == OP_COPY_TO)
		check_size(&data.file[!op->file], false);
	if (op->n % every == every - 1)
		check_all();
}

static uint64_t replay(const char *path)
{
	struct data_op op;
	char line[400], name[32];
	FILE *in = fopen(path, "r");
	uint64_t count = 0;

	if (!in)
		rnd_die("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), in)) {
		unsigned long long n, arg;
		long long off, len, off2;
		int i;

		if (sscanf(line, "%llu %d %d %31s %lld %lld %lld %llu", &n, &op.side, &op.file,
			   name, &off, &len,
			   &off2, &arg) != 8)
			rnd_die("%s: not a line of a log: %s", path, line);
		for (i = 0; i < OP_NR && strcmp(name, data_names[i]); i++)
			;
		if (i == OP_NR || op.file < 0 || op.file >= DATA_FILES || op.side < 0 || off < 0 ||
		    len < 0 || off2 < 0)
			rnd_die("%s: out of range: %s", path, line);
		op.side %= data.sides;
		op.n = n;
		op.kind = i;
		op.off = off;
		op.len = len;
		op.off2 = off2;
		op.arg = arg;
		fit(&op);
		run_one(&op);
		count++;
	}
	fclose(in);
	return count;
}

static void set_up(char **dirs)
{
	int i, side;

	data.buf = aligned_alloc(PAGE, data.max + PAGE);
	if (!data.buf)
		rnd_die("no memory");
	memset(data.buf, 1, data.max + PAGE);
	for (i = 0; i < DATA_FILES; i++) {
		struct data_file *f = &data.file[i];

		f->model = rnd_alloc(data.max + PAGE);
		for (side = 0; side < RND_SIDES; side++)
			f->fd[side][FD_RW] = f->fd[side][FD_APPEND] = f->fd[side][FD_DIRECT] = -1;
		for (side = 0; side < data.sides; side++)
			snprintf(f->path[side], sizeof(f->path[side]), "%s/dataops-%llu.%d",
				 dirs[side],
				 (unsigned long long)data.seed, i);
	}
	data_probe();
	for (i = 0; i < DATA_FILES; i++)
		for (side = 0; side < data.sides; side++)
			data_open(&data.file[i], side, side ? 0 : O_TRUNC);
}

int main(int argc, char **argv)
{
	uint64_t ops = 10000, n;
	const char *log = NULL, *from = NULL;
	struct data_op op;
	double start;
	int opt, i;

	data.seed = time(NULL);
	data.max = 600000;
	while ((opt = getopt(argc, argv, "s:n:l:o:r:k:x:m")) != -1) {
		switch (opt) {
		case 's':
			data.seed = rnd_number(optarg, 0, UINT64_MAX);
			break;
		case 'n':
			ops = rnd_number(optarg, 0, UINT64_MAX);
			break;
		case 'l':
			data.max = rnd_number(optarg, 2 * PAGE, 1 << 30);
			break;
		case 'o':
			log = optarg;
			break;
		case 'm':
			data.one_memory = true;
			break;
		case 'r':
			from = optarg;
			break;
		case 'k':
			every = rnd_number(optarg, 1, UINT64_MAX);
			break;
		case 'x':
			sabotage = rnd_number(optarg, 1, UINT64_MAX);
			break;
		default:
			return 2;
		}
	}
	data.sides = argc - optind;
	if (data.sides < 1 || data.sides > RND_SIDES)
		rnd_die("usage: dataops [-s SEED] [-n OPS] [-l MAXLEN] [-o LOG] [-r LOG] "
			"[-k OPS] [-x OP] [-m] DIR [DIR2]");
	data.max -= data.max % PAGE;
	setvbuf(stdout, NULL, _IOLBF, 0);
	rnd_report = report;
	signal(SIGBUS, on_signal);
	signal(SIGSEGV, on_signal);
	if (log)
		rnd_log_to(log);
	set_up(argv + optind);
	rnd_seed(&rnd, data.seed, 1);
	start = rnd_now();
	if (from) {
		ops = replay(from);
	} else {
		for (n = 0; n < ops; n++) {
			op.n = n;
			draw(&op);
			fit(&op);
			run_one(&op);
		}
	}
	check_all();
	printf("# dataops: seed %llu, %llu operations through %d side(s) in %.1f s, %.0f a second:",
	       (unsigned long long)data.seed, (unsigned long long)ops, data.sides,
		       rnd_now() - start,
	       ops / (rnd_now() - start));
	for (i = 0; i < OP_NR; i++)
		printf(" %s %llu", data_names[i], (unsigned long long)data.done[i]);
	printf("\n");
	for (i = 0; i < DATA_FILES; i++)
		unlink(data.file[i].path[0]);
	return 0;
}
