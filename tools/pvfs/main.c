// SPDX-License-Identifier: GPL-2.0
/*
 * main.c - the `pvfs` command: which subcommand, options all of them share, help. See pvfs(8).
 */
#include "tool.h"
#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct tool_opts tool = { .timeout_ms = 10000 };

static const struct command *current;

static const struct command commands[] = {
	{ "mkfs", "[--dir DIR] [options]",
	  "make the stores of a volume, or a cluster of one machine",
	  "  pvfs mkfs --dir DIR [--iods N] [--port P] [--name VOLUME] [--host H] [--force]\n"
	  "      Makes a cluster of one machine in the new directory DIR: pvfs.conf, keys, stores.\n"
	  "  pvfs mkfs -c FILE [--mgr] [--iod N]... [--force]\n"
	  "      Makes the stores that the configuration FILE names: all, or those given.\n\n"
	  "  -d, --dir DIR          make a one-machine cluster there\n"
	  "  -i, --iods N           with N I/O daemons (4)\n"
	  "  -p, --port P           ports from P on (7100); 0: ports that are free now\n"
	  "  -n, --name VOLUME      name of the volume (the directory's)\n"
	  "      --host H           address that the daemons listen on (127.0.0.1)\n"
	  "      --stripe-size S    stripe unit, as 64k\n"
	  "      --stripe-count N   daemons a file is spread over (all)\n"
	  "      --stuff-max S      the manager keeps files of at most S bytes (16k; 0: none, to 64k)\n"
	  "      --stuff-store W    as records of its database (db) or as files beside it (file)\n"
	  "      --mgr, --iod N     only these stores of a configuration\n"
	  "      --force            move stores that are there already aside, as NAME.old-TIME; nothing is deleted\n",
	  cmd_mkfs },
	{ "start", "[DIR] [mgr | iodN]...", "start the daemons of a one-machine cluster",
	  "  Starts the daemons that do not run yet and waits until they serve.\n"
	  "  DIR is what was given to mkfs --dir; without it, where the configuration is.\n\n"
	  "      --wait SECONDS     give up after so long (60)\n",
	  cmd_start },
	{ "stop", "[DIR] [mgr | iodN]...", "stop them",
	  "  Ends the daemons in order and waits until they are gone; what they accepted is finished.\n\n"
	  "      --wait SECONDS     give up after so long (60)\n"
	  "      --kill             SIGKILL instead of SIGTERM\n",
	  cmd_stop },
	{ "status", "", "how the manager and every I/O daemon are",
	  "  Asks each daemon. The exit status is 0 when all answered.\n", cmd_status },
	{ "ping", "[-n COUNT]", "round-trip times",
	  "  -n, --count COUNT      pings to each daemon (10)\n", cmd_ping },
	{ "df", "[--iods]", "space and inodes, all I/O daemons together",
	  "      --iods             the space of each I/O daemon\n"
	  "  -h is for help; sizes are in binary units (1.5G), with --json in bytes.\n", cmd_df },
	{ "cp", "[options] SOURCE... TARGET", "copy in, out, or within the volume",
	  "  Paths in the volume are written pvfs:/path.\n\n"
	  "  -r, --recursive        directories too\n"
	  "  -p, --preserve         keep mode, times, attributes and ACLs; as root owners\n"
	  "  -j, --jobs N           copies at once (4)\n"
	  "      --chunk SIZE       unit of work (4M)\n"
	  "      --resume           go on where an earlier copy of the same file ended\n"
	  "      --checkpoint SEC   note progress for --resume every SEC seconds (1; 0: after every chunk)\n"
	  "      --fsync            have every file on stable storage before its copy counts as done\n"
	  "      --no-progress      no progress bar\n",
	  cmd_cp },
	{ "ls", "[-laR] [PATH]...", "list directories",
	  "  -l                     with mode, links, owner, size, time\n"
	  "  -a                     names that begin with '.' too\n"
	  "  -R                     and all below\n"
	  "  -d                     the directory itself\n",
	  cmd_ls },
	{ "stat", "PATH...", "attributes of files, and where their bytes lie", "", cmd_stat },
	{ "rm", "[-rf] PATH...", "remove files in the volume",
	  "  -r, --recursive        directories with all that is in them\n"
	  "  -f, --force            what does not exist is fine\n"
	  "      --all-of-it        -r pvfs:/ is meant: the whole volume is emptied\n"
	  "  PATH is pvfs:/path; 'pvfs:' may be left out where no local file has that name.\n",
	  cmd_rm },
	{ "mkdir", "[-p] PATH...", "make directories",
	  "  -p, --parents          and those above; what exists is fine\n"
	  "      --mode MODE        octal\n",
	  cmd_mkdir },
	{ "setstripe", "[options] PATH...",
	  "how new files in a directory, or an empty file, are laid out",
	  "  -S, --size SIZE        stripe unit, a power of two, 4k .. 1G\n"
	  "  -n, --count N          daemons a file is spread over; 0: all\n"
	  "  -b, --base N           first daemon; 'any': each file begins on the next one\n"
	  "  -s, --stuff-max SIZE   the manager keeps files of at most SIZE; 0: none, to 64k\n"
	  "  PATH is pvfs:/path, or a path on a mounted volume. A file that does not exist is made.\n",
	  cmd_setstripe },
	{ "getstripe", "PATH...", "how a file is laid out, or new files of a directory are", "",
	  cmd_getstripe },
	{ "leases", "[-n N] PATH...", "who has a lease on a file, or has it open",
	  "  -n, --limit N          at most so many of each (1000; 0: all)\n"
	  "  PATH is pvfs:/path, or a path on a mounted volume. Nothing is recalled for it. Root sees hosts.\n",
	  cmd_leases },
	{ "tune", "[-n FILES] [DIR]", "measure up to what size files are better off with the manager",
	  "  -n, --files N          so many files of each size and kind (50)\n"
	  "  In a directory of its own, which it makes in DIR (/) and removes.\n",
	  cmd_tune },
};

/* "pvfs cp: " and the message. */
static void say(const char *fmt, va_list ap)
{
	fflush(stdout);
	fprintf(stderr, "pvfs%s%s: ", current ? " " : "", current ? current->name : "");
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

static atomic_bool failed;

/* Was anything said to have failed? */
bool has_failed(void)
{
	return atomic_load(&failed);
}

void fail(const char *fmt, ...)
{
	va_list ap;

	atomic_store(&failed, true);
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/**
 * parse_number - a decimal number from the command line
 *
 * Return: 0 or -EINVAL, and the user was told.
 */
int parse_number(const char *text, unsigned long min, unsigned long max, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || *ret < min || *ret > max) {
		fail("'%s' is not a number of %lu .. %lu", text, min, max);
		return -EINVAL;
	}
	return 0;
}

static void help_command(const struct command *c)
{
	printf("Usage: pvfs %s %s\n\n%s%s\n", c->name, c->args, c->help,
	       *c->help ? "" : "  No options of its own.\n");
	printf("Every subcommand takes -c CONF, -m HOST[:PORT]/VOLUME, -k KEYFILE, --json, --timeout SECONDS,\n"
	       "-v, --log FILE, -h, -V; see pvfs(8).\n");
}

static void help_all(FILE *f)
{
	size_t i;

	fprintf(f, "Usage: pvfs [options] SUBCOMMAND ...\n\n");
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(f, "  %-10s %s\n", commands[i].name, commands[i].brief);
	fprintf(f, "\n"
	       "  -c, --conf FILE          the cluster's configuration ($PVFS_CONF, " CONF_DEFAULT
	       ")\n"
	       "  -m, --mgr HOST/VOLUME    or its manager, \"host[:port]/volume\", and\n"
	       "  -k, --key FILE           its key (" KEY_DEFAULT ")\n"
	       "      --json               tables as JSON\n"
	       "      --timeout SECONDS    for the manager's first answer (10)\n"
	       "      --soft               give up on servers that go away later, too\n"
	       "      --counters           at the end print requests by server and operation\n"
	       "  -v, --verbose            more messages\n"
	       "  -l, --log FILE           append messages about servers to FILE instead of standard error\n"
	       "                           (as -l, before SUBCOMMAND only)\n"
	       "  -h, --help               this text\n"
	       "  -V, --version            print the version\n\n"
	       "pvfs SUBCOMMAND --help tells more. Paths in the volume are written pvfs:/path.\n");
}

static int help(const char *name)
{
	size_t i;

	for (i = 0; name && i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(commands[i].name, name)) {
			help_command(&commands[i]);
			return 0;
		}
	}
	if (name) {
		fail("there is no subcommand '%s'; pvfs help lists them", name);
		return EXIT_USAGE;
	}
	help_all(stdout);
	return 0;
}

/**
 * tool_usage - the command line is wrong: say how
 *
 * Return: the exit status for it.
 */
int tool_usage(const char *fmt, ...)
{
	va_list ap;

	if (fmt) {
		va_start(ap, fmt);
		say(fmt, ap);
		va_end(ap);
	}
	fprintf(stderr, "Usage: pvfs %s %s (pvfs %s --help tells more)\n", current->name,
		current->args, current->name);
	return EXIT_USAGE;
}

/**
 * tool_option - an option that is not the subcommand's own
 * @c: from getopt_long() with TOOL_SHORT and TOOL_LONG
 *
 * Return: 0 taken; 1 it was --help or --version, which was answered; -EINVAL wrong, and the user was told.
 */
int tool_option(int c)
{
	struct target t;
	unsigned long v;

	switch (c) {
	case 'c':
		tool.conf = optarg;
		return 0;
	case 'm':
		tool.mgr = optarg;
		return parse_mgr(optarg, &t);
	case 'k':
		tool.key = optarg;
		return 0;
	case 1000:
		tool.json = true;
		return 0;
	case 1001:
		if (parse_number(optarg, 1, 86400, &v))
			return -EINVAL;
		tool.timeout_ms = v * 1000;
		return 0;
	case 1002:
		tool.counters = true;
		return 0;
	case 1003:
		tool.soft = true;
		return 0;
	case 1004:
		tool.log = optarg;
		return 0;
	case 'v':
		tool.verbose = true;
		return 0;
	case 'V':
		printf("pvfs %s (protocol %u)\n", pvfs_version(), PVFS_PROTO_VERSION);
		return 1;
	case 'h':
		if (current)
			help_command(current);
		else
			help(NULL);
		return 1;
	default:
		if (current)
			tool_usage(NULL);
		else
			fprintf(stderr, "pvfs help tells more\n");
		return -EINVAL;
	}
}

int main(int argc, char **argv)
{
	static const struct option longopts[] = { TOOL_LONG };
	const char *name;
	size_t i;
	int c, rc;

	signal(SIGPIPE, SIG_IGN);
	while ((c = getopt_long(argc, argv, "+" TOOL_SHORT "l:", longopts, NULL)) != -1) {
		if (c == 'l') {
			tool.log = optarg;
			continue;
		}
		rc = tool_option(c);
		if (rc)
			return rc < 0 ? EXIT_USAGE : 0;
	}
	if (optind >= argc) {
		help_all(stderr);
		return EXIT_USAGE;
	}
	name = argv[optind];
	if (!strcmp(name, "help")) {
		if (argc - optind <= 2)
			return help(argv[optind + 1]);
		fail("help: one subcommand at a time");
		return EXIT_USAGE;
	}
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i].name, name))
			continue;
		current = &commands[i];
		argc -= optind;
		argv += optind;
		optind = 0;	/* glibc: begin anew, with the subcommand's own options */
		rc = current->run(argc, argv);
		if (fflush(stdout) || ferror(stdout)) {
			fail("can't write the output: %s", strerror(errno));
			rc = rc ?: EXIT_FAILURE;
		}
		return rc;
	}
	fail("there is no subcommand '%s'; pvfs help lists them", name);
	return EXIT_USAGE;
}
