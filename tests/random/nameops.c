// SPDX-License-Identifier: GPL-2.0-only
/*
 * nameops.c - random operations on the names and attributes of a small tree, compared with a model
 * that says beforehand what each returns.
 *
 *	nameops [-s SEED] [-n OPS] [-k OPS] [-o LOG] [-x OP] DIR [DIR2]
 *
 *	-s	a seed repeats its run (default: one of the time)
 *	-n	how many operations (default 10000); the last number of a failed run repeats it
 *	-k	the whole tree is compared through all sides every so many operations (default 200), and at the end
 *	-o	writes a line for each operation, before it is done
 *	-x	makes or removes a name behind the model's back after operation OP: the run must fail
 *
 * DIR2 is DIR through another mount: each operation picks one of the two. To be run as root. Exits
 * with 1 when tree and model differ, and leaves the tree.
 */
#include "nameops.h"
#include <dirent.h>
#include <ftw.h>

static char where[RND_SIDES][512];
static uint64_t every = 200;

static void report(void)
{
	printf("seed %llu, operation %llu; again: -s %llu -n %llu -k %llu; the tree is %s\n",
	       (unsigned long long)names.seed, (unsigned long long)names.op,
		       (unsigned long long)names.seed,
	       (unsigned long long)names.op + 1, (unsigned long long)every, where[0]);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void set_up(char **dirs)
{
	struct stat st;
	int side;

	for (side = 0; side < names.sides; side++) {
		snprintf(where[side], sizeof(where[side]), "%s/nameops-%llu", dirs[side],
			 (unsigned long long)names.seed);
		if (!side && mkdir(where[0], 0755) < 0)
			rnd_die("mkdir %s: %s", where[0], strerror(errno));
		names.root_fd[side] = open(where[side], O_RDONLY | O_DIRECTORY);
		if (names.root_fd[side] < 0)
			rnd_die("open %s: %s", where[side], strerror(errno));
	}
	names_probe();
	if (fstat(names.root_fd[0], &st) < 0)
		rnd_die("stat %s: %s", where[0], strerror(errno));
	names.root = node_new(st.st_mode, NULL);
	names.root->gid = st.st_gid;
	names.root->links = 1;
	names.start = time(NULL) - 2;
}

static void step(unsigned int total)
{
	struct name_op *op;
	unsigned int pick;
	int side;

	names.refused = false;
	do {
		pick = rnd_below(&name_rnd, total);
		for (op = name_ops; pick >= op->weight; op++)
			pick -= op->weight;
		side = rnd_below(&name_rnd, names.sides);
	} while ((op->makes && names.nodes >= NODES_MAX) || !op->run(side));
	op->done++;
	op->refused += names.refused;
}

static void harm(void)
{
	if (names.root->entry[0] && !S_ISDIR(names.root->entry[0]->mode))
		unlinkat(names.root_fd[0], "a", 0);
	else
		renameat2(names.root_fd[0], "a", names.root_fd[0], "z", 0);
	close(openat(names.root_fd[0], "y", O_CREAT | O_WRONLY, 0644));
}

int main(int argc, char **argv)
{
	uint64_t ops = 10000, sabotage = UINT64_MAX, n;
	const char *log = NULL;
	unsigned int total = 0;
	struct name_op *op;
	double start;
	int opt;

	names.seed = time(NULL);
	while ((opt = getopt(argc, argv, "s:n:k:o:x:")) != -1) {
		switch (opt) {
		case 's':
			names.seed = rnd_number(optarg, 0, UINT64_MAX);
			break;
		case 'n':
			ops = rnd_number(optarg, 0, UINT64_MAX);
			break;
		case 'k':
			every = rnd_number(optarg, 1, UINT64_MAX);
			break;
		case 'o':
			log = optarg;
			break;
		case 'x':
			sabotage = rnd_number(optarg, 0, UINT64_MAX);
			break;
		default:
			return 2;
		}
	}
	names.sides = argc - optind;
	if (names.sides < 1 || names.sides > RND_SIDES)
		rnd_die("usage: nameops [-s SEED] [-n OPS] [-k OPS] [-o LOG] [-x OP] DIR [DIR2]");
	if (geteuid())
		rnd_die("nameops wants to be root");
	umask(0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	rnd_report = report;
	if (log)
		rnd_log_to(log);
	set_up(argv + optind);
	rnd_seed(&name_rnd, names.seed, 2);
	for (op = name_ops; op->name; op++)
		total += op->weight;
	start = rnd_now();
	for (n = 0; n < ops; n++) {
		names.op = n;
		step(total);
		if (n == sabotage)
			harm();
		if (n % every == every - 1)
			check_tree();
	}
	check_tree();
	printf("# nameops: seed %llu, %llu operations through %d side(s) in %.1f s, %.0f a second, %d inodes at the end; "
	       "done/refused as it should be:",
	       (unsigned long long)names.seed, (unsigned long long)ops, names.sides,
		       rnd_now() - start,
	       ops / (rnd_now() - start), names.nodes);
	for (op = name_ops; op->name; op++)
		printf(" %s %llu/%llu", op->name, (unsigned long long)(op->done - op->refused),
		       (unsigned long long)op->refused);
	printf("\n");
	handles_close();
	if (nftw(where[0], remove_one, 20, FTW_DEPTH | FTW_PHYS) < 0)
		rnd_fail("cannot remove %s: %s", where[0], strerror(errno));
	return 0;
}
