// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * config_test.c - what pvfs.conf(5) accepts, and that every refusal names file, line and what to
 * do.
 */
#include "common/config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define UUID "uuid = \"00112233-4455-6677-8899-aabbccddeeff\"; "
#define VOL "volume: { name = \"v\"; " UUID "};\n"
#define MGR "mgr: { address = \"h:7100\"; store = \"mgr\"; };\n"
#define IODS "iods: ( { address = \"h:7101\"; store = \"i0\"; },\n" \
	     "{ address = \"h:7102\"; store = \"/srv//i1/./x/\"; } );\n"

static char dir[64], path[96], msg[1024];
static struct pvfs_conf *conf;

static int load(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	pvfs_conf_free(conf);
	conf = NULL;
	return pvfs_conf_load(path, &conf, msg, sizeof(msg));
}

static void refused(const char *text, int line, const char *part)
{
	char where[128];

	assert_int_equal(load(text), -EINVAL);
	if (line)
		snprintf(where, sizeof(where), "%s:%d: ", path, line);
	else
		snprintf(where, sizeof(where), "%s: ", path);
	if (strncmp(msg, where, strlen(where)) || !strstr(msg, part))
		fail_msg("expected '%s...%s', got '%s'", where, part, msg);
	assert_null(strchr(msg, '\n'));
}

static void test_defaults(void **state)
{
	char want[128];

	if (load(VOL MGR IODS))
		fail_msg("%s", msg);
	assert_string_equal(conf->name, "v");
	assert_int_equal(conf->uuid[0], 0x00);
	assert_int_equal(conf->uuid[15], 0xff);
	assert_int_equal(conf->durability, PVFS_DURABLE_SYNC);
	assert_int_equal(conf->stuff_store, PVFS_STUFF_DB);
	assert_int_equal(conf->db_cache, 64 << 20);
	assert_int_equal(conf->lease_ms, 30000);
	assert_int_equal(conf->stripe_count, 0);
	assert_int_equal(conf->stripe_size, 65536);
	assert_int_equal(conf->stuff_max, 16384);
	assert_int_equal(conf->io_max, 1 << 20);
	assert_int_equal(conf->iod_buffers, 64 << 20);
	assert_int_equal(conf->fd_cache, 1024);
	assert_int_equal(conf->iod_reserve, 64 << 20);
	assert_int_equal(conf->niods, 2);
	snprintf(want, sizeof(want), "%s/cluster.key", dir);
	assert_string_equal(conf->cluster_key, want);
	snprintf(want, sizeof(want), "%s/i0", dir);
	assert_string_equal(conf->iods[0].store, want);
	assert_string_equal(conf->iods[1].store, "/srv/i1/x");
	assert_string_equal(conf->iods[1].address, "h:7102");
	assert_string_equal(conf->iods[1].listen, "");
	assert_int_equal(conf->iods[1].line, 4);
}

static void test_all_set(void **state)
{
	if (load("volume: { name = \"vol-1.x\"; " UUID "cluster_key = \"/k/c\"; server_key = \"s\"; };\n"
		 "mgr: { address = \"[::1]:7100\"; listen = \"0.0.0.0:7100\"; store = \"/m\"; durability = \"write\";\n"
		 " stuff_store = \"file\"; db_cache = \"1G\"; threads = 3; max_conns = 100; lease_ms = 5000; checkpoint_ms = 1000; };\n"
		 "layout: { stripe_count = 1; stripe_size = 131072; stuff_max = 0; };\n"
		 "iod: { threads = 2; max_conns = 77; buffers = 8589934592L; io_max = \"4m\"; fd_cache = 99; };\n"
		 "iods: ( { address = \"[::1]:7101\"; store = \"/i\"; listen = \"[::]:7101\"; } );\n"))
		fail_msg("%s", msg);
	assert_int_equal(conf->durability, PVFS_DURABLE_WRITE);
	assert_int_equal(conf->stuff_store, PVFS_STUFF_FILE);
	assert_int_equal(conf->db_cache, 1 << 30);
	assert_int_equal(conf->mgr_threads, 3);
	assert_int_equal(conf->mgr_max_conns, 100);
	assert_int_equal(conf->checkpoint_ms, 1000);
	assert_int_equal(conf->stripe_count, 1);
	assert_int_equal(conf->stripe_size, 131072);
	assert_int_equal(conf->stuff_max, 0);
	assert_int_equal(conf->iod_threads, 2);
	assert_int_equal(conf->iod_max_conns, 77);
	assert_true(conf->iod_buffers == 8ull << 30);
	assert_int_equal(conf->io_max, 4 << 20);
	assert_int_equal(conf->fd_cache, 99);
	assert_string_equal(conf->cluster_key, "/k/c");
	assert_string_equal(conf->iods[0].listen, "[::]:7101");
}

static void test_unknown_keys(void **state)
{
	refused(VOL "mgr: {\n adress = \"h:1\"; address = \"h:7100\"; store = \"m\"; };\n" IODS, 3,
		"unknown key 'mgr.adress' (did you mean 'address'?)");
	refused(VOL MGR IODS "layuot: { };\n", 5, "unknown key 'layuot' (did you mean 'layout'?)");
	refused(VOL MGR IODS "layout: { io_max = 1; };\n", 5, "('io_max' belongs in 'iod')");
	refused(VOL MGR IODS "zzz = 1;\n", 5, "unknown key 'zzz'");
	refused(VOL MGR IODS "threads = 1;\n", 5, "belongs in");
	refused(VOL MGR "iods: ( { address = \"h:1\"; store = \"a\"; adress = 1; } );\n", 3,
		"unknown key 'iods.adress' (did you mean 'address'?)");
}

static void test_twice(void **state)
{
	refused(VOL MGR IODS "iod: { threads = 1;\n threads = 2; };\n", 6,
		"duplicate setting name (it was set above already: remove one of the two)");
	refused(VOL MGR IODS "iod: { threads = ; };\n", 5, "a missing ';', quote or bracket?");
}

/* Whoever has the server key is a server. */
static void test_same_key(void **state)
{
	refused("volume: { name = \"v\"; " UUID "\ncluster_key = \"/k\";\n server_key = \"//k\"; };\n" MGR IODS, 3,
		"'volume.cluster_key' and 'volume.server_key' are both \"/k\"");
	refused("volume: { name = \"v\"; " UUID "\ncluster_key = \"server.key\"; };\n" MGR IODS, 2, "are both");
}

static void test_default_ports(void **state)
{
	refused(VOL "mgr: { address = \"h\"; store = \"mgr\"; };\n"
		"iods: ( { address = \"h:7100\"; store = \"i\"; } );\n", 3, "has the address \"h:7100\" of the mgr");
	refused(VOL MGR "iods: ( { address = \"h\"; store = \"i\"; },\n{ address = \"h:7101\"; store = \"j\"; } );\n", 4,
		"has the address \"h:7101\" of iod 0");
}

static void test_bad_values(void **state)
{
	refused(VOL MGR IODS "iod: { threads = 0; };\n", 5,
		"'iod.threads' is out of bounds, must be 1 .. 256");
	refused(VOL MGR IODS "iod: { threads = -1; };\n", 5, "must be 1 .. 256");
	refused(VOL MGR IODS "iod: { threads = \"many\"; };\n", 5, "whole number");
	refused(VOL MGR IODS "iod: { threads = 1.5; };\n", 5, "whole number");
	refused(VOL MGR IODS "iod: { threads = { }; };\n", 5, "whole number");
	refused(VOL MGR IODS "iod: { io_max = \"32k\"; };\n", 5, "must be 64k .. 4M");
	refused(VOL MGR IODS "iod: { io_max = \"96k\"; };\n", 5, "must be a power of two, as 64k");
	refused(VOL MGR IODS "iod: { io_max = \"1x\"; };\n", 5, "must be a size");
	refused(VOL MGR IODS "iod: { io_max = \"\"; };\n", 5, "must be a size");
	refused(VOL MGR IODS "iod: { buffers = \"99999999999999999999999\"; };\n", 5,
		"out of bounds");
	refused(VOL MGR IODS "iod: { buffers = \"8M\"; io_max = \"4M\"; };\n", 0,
		"'iod.buffers' must hold");
	refused(VOL MGR IODS "layout: { stripe_size = \"65537\"; };\n", 5, "power of two");
	refused(VOL MGR IODS "layout: { stripe_count = 3; };\n", 5, "there are 2 iods");
	refused("volume: { name = \"v\";\n uuid = \"zz\"; };\n" MGR IODS, 2, "is not a UUID");
	refused("volume: { name = \"a/b\"; " UUID "};\n" MGR IODS, 1, "must be of letters");
	refused("volume: { name = 7; " UUID "};\n" MGR IODS, 1, "must be text in double quotes");
	refused(VOL "mgr: { address = \"h:0\"; store = \"m\"; };\n" IODS, 2, "port that is not");
	refused(VOL "mgr: { address = \"h:70000\"; store = \"m\"; };\n" IODS, 2,
		"port that is not");
	refused(VOL "mgr: { address = \"h:7x\"; store = \"m\"; };\n" IODS, 2, "port that is not");
	refused(VOL "mgr: { address = \":7100\"; store = \"m\"; };\n" IODS, 2, "has no host");
	refused(VOL "mgr: { address = \"::1\"; store = \"m\"; };\n" IODS, 2, "more than one ':'");
	refused(VOL "mgr: { address = \"\"; store = \"m\"; };\n" IODS, 2, "0 bytes long");
	refused(VOL "mgr: { address = \"h\"; store = \"m\"; durability = \"no\"; };\n" IODS, 2,
		"must be \"sync\" or \"write\"");
	refused(VOL "mgr: { address = \"h\"; store = \"m\";\n stuff_store = \"disk\"; };\n" IODS, 3,
		"'mgr.stuff_store' \"disk\" must be \"db\" or \"file\"");
}

static void test_whole(void **state)
{
	refused(VOL MGR "iods: ( { address = \"h:7101\"; store = \"a\"; },\n { address = \"H:7101\"; store = \"b\"; } );",
		4, "iod 1 has the address \"H:7101\" of iod 0 (line 3)");
	refused(VOL MGR "iods: ( { address = \"h\"; store = \"a\"; },\n { address = \"h:7101\"; store = \"b\"; } );",
		4, "iod 1 has the address");
	refused(VOL MGR "iods: ( { address = \"h:7100\"; store = \"a\"; } );", 3, "of the mgr");
	refused(VOL MGR "iods: ( { address = \"h:7101\"; store = \"./mgr/\"; } );", 3, "store");
	refused(VOL MGR "iods: ( { address = \"h:7101\"; store = \"a\"; },\n { address = \"h:7102\"; store = \"a\"; } );",
		4, "give each daemon its own directory");
	/* the same directory on two machines is no conflict */
	assert_int_equal(load(VOL MGR "iods: ( { address = \"h:7101\"; store = \"/a\"; },\n"
			      "{ address = \"g:7101\"; store = \"/a\"; } );"), 0);
}

static void test_missing(void **state)
{
	refused("", 0, "has no part 'volume'");
	refused(VOL IODS, 0, "has no part 'mgr'");
	refused(VOL MGR, 0, "has no part 'iods'");
	refused(VOL MGR "iods: ();\n", 3, "has 0 entries");
	refused(VOL MGR "iods: ( 1 );\n", 3, "entry 0 must be");
	refused(VOL MGR "iods: { };\n", 3, "must be a list in parentheses");
	refused("volume = 1;\n" MGR IODS, 1, "must be a group in braces");
	refused("volume: { " UUID "};\n" MGR IODS, 1, "'volume' has no 'name'");
	refused(VOL MGR "iods: ( { address = \"h:7101\"; } );\n", 3, "'iods' has no 'store'");
}

static void test_syntax(void **state)
{
	refused("volume: {\n name = = 1;\n };\n", 2, "syntax error");
	refused("volume: {\n name = \"v\n };\n", 4, "syntax error");
	refused(VOL "volume: { };\n", 2, "duplicate setting name");
	refused("\x01\x02\xff", 1, "syntax error");
	refused(VOL "@include \"nonexistent\"\n", 2, "");
}

static void test_files(void **state)
{
	char big[96];
	FILE *f;

	assert_int_equal(pvfs_conf_load("/nonexistent/pvfs.conf", &conf, msg, sizeof(msg)),
			 -ENOENT);
	assert_non_null(strstr(msg, "/nonexistent/pvfs.conf: No such file"));
	assert_int_equal(pvfs_conf_load(dir, &conf, msg, sizeof(msg)), -EISDIR);
	snprintf(big, sizeof(big), "%s/big", dir);
	f = fopen(big, "w");
	assert_non_null(f);
	fwrite("a\0b", 1, 3, f);
	fclose(f);
	assert_int_equal(pvfs_conf_load(big, &conf, msg, sizeof(msg)), -EINVAL);
	assert_non_null(strstr(msg, "binary"));
	assert_int_equal(truncate(big, 5 << 20), 0);
	assert_int_equal(pvfs_conf_load(big, &conf, msg, sizeof(msg)), -EINVAL);
	assert_non_null(strstr(msg, "too large"));
	/* an error in an included file names that file */
	f = fopen(big, "w");
	fputs("\nvolume: { nam = 1; };\n", f);
	fclose(f);
	assert_int_equal(load("@include \"big\"\n"), -EINVAL);
	if (!strstr(msg, "big:2: unknown key 'volume.nam' (did you mean 'name'?)"))
		fail_msg("%s", msg);
	unlink(big);
}

static void test_sizes(void **state)
{
	static const struct { const char *text; int err; u64 v; } t[] = {
		{ "0", 0, 0 }, { "1", 0, 1 }, { "64k", 0, 65536 }, { "64K", 0, 65536 },
		{ "4M", 0, 4 << 20 },
		{ "1g", 0, 1 << 30 }, { "2T", 0, 2ull << 40 }, { "64KiB", 0, 65536 },
		{ "", -EINVAL, 0 },
		{ "k", -EINVAL, 0 }, { "-1", -EINVAL, 0 }, { "1.5M", -EINVAL, 0 },
		{ "1kk", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 }, { "1 ", -EINVAL, 0 }, { "18446744073709551615", 0,
							      UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 }, { "16777216T", -ERANGE, 0 },
		{ "0x10", -EINVAL, 0 },
	};
	size_t i;
	u64 v;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		v = 12345;
		if (pvfs_parse_size(t[i].text, &v) != t[i].err || v != (t[i].err ? 12345 : t[i].v))
			fail_msg("'%s'", t[i].text);
	}
}

static int setup(void **state)
{
	strcpy(dir, "/tmp/pvfs-config-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/pvfs.conf", dir);
	return 0;
}

static int teardown(void **state)
{
	pvfs_conf_free(conf);
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_all_set),
		cmocka_unit_test(test_unknown_keys), cmocka_unit_test(test_twice),
		cmocka_unit_test(test_same_key), cmocka_unit_test(test_default_ports),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_whole), cmocka_unit_test(test_missing),
		cmocka_unit_test(test_syntax), cmocka_unit_test(test_files),
		cmocka_unit_test(test_sizes),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("config", tests, setup, teardown);
}
