/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * transport_witness.h - an ordinary client that is served all the while, whatever others do; and what
 * the server's log and statistics say of them. Included by one C file of a program, instead of
 * transport_fixture.h.
 */
#ifndef PVFS_TRANSPORT_WITNESS_H
#define PVFS_TRANSPORT_WITNESS_H

#include "transport_fixture.h"

#define WITNESS_SESSION 4242

static struct pvfs_peer *witness;
static char log_path[] = "/tmp/pvfs-transport-test.XXXXXX";

static inline struct pvfs_peer *witness_new(void)
{
	struct pvfs_peer *w = fx_peer(NULL);

	pvfs_peer_set_session(w, WITNESS_SESSION, NULL);
	assert_int_equal(fx_ping(w), 0);
	return w;
}

/* A member of the server's statistics. */
static inline unsigned int stat_of(struct pvfs_peer *w, const char *name)
{
	static char text[65536], key[64];
	struct iovec in = { text, sizeof(text) - 1 };
	struct fx_rpc r;
	char *s;

	fx_make_ping(&r, NULL);
	r.rpc.op = PVFS_OP_STATS;
	r.rpc.in = &in;
	r.rpc.nin = 1;
	assert_int_equal(pvfs_peer_call(w, &r.rpc), 0);
	text[r.rpc.in_len] = '\0';
	snprintf(key, sizeof(key), "\"%s\":", name);
	s = strstr(text, key);
	assert_non_null(s);
	return atoi(s + strlen(key));
}

static inline int setup(const char *transport, const struct pvfs_server_params *p)
{
	fx_up(transport, p, 2);
	witness = witness_new();
	return truncate(log_path, 0);
}

static inline int setup_tcp(void **state)
{
	return setup("tcp", NULL);
}

static inline int setup_loop(void **state)
{
	return setup("loop", NULL);
}

static inline int setup_impatient(void **state)
{
	struct pvfs_server_params p = fx_params;

	p.auth_ms = 200;
	return setup("tcp", &p);
}

static inline int teardown(void **state)
{
	struct pvfs_peer_counts *c = malloc(sizeof(*c));

	/* Unharmed: still the same connection. */
	assert_int_equal(fx_call_write(witness, 99, 100000), 0);
	assert_int_equal(fx_call_read(witness, 1, 99, 100000), 0);
	pvfs_peer_counts(witness, c);
	assert_int_equal(c->connects, 1);
	free(c);
	pvfs_peer_free(witness);
	fx_down();
	return 0;
}

/* How many lines of the log have @part in them. */
static inline int logged_now(const char *part)
{
	static char text[1 << 16];
	size_t len;
	int n = 0;
	char *s;
	FILE *f;

	f = fopen(log_path, "r");
	assert_non_null(f);
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[len] = '\0';
	for (s = text; (s = strstr(s, part)); s++)
		n++;
	return n;
}

/*
 * They come a little later than what they are about. Ten lines from one place in the code pass in
 * five seconds: the tests that ask for them come first, the others go by the counter.
 */
static inline void expect_logged(const char *part, int want)
{
	int n = logged_now(part), tries;

	for (tries = 0; n < want && tries < 1000; tries++) {
		fx_sleep_ms(5);
		n = logged_now(part);
	}
	assert_int_equal(n, want);
}

/* How many connections were closed for breaking the rules: waits until it is @want. */
static inline void expect_closed(unsigned int want)
{
	unsigned int n = 0, tries;

	for (tries = 0; n < want && tries < 500; tries++) {
		n = stat_of(witness, "protocol_errors");
		fx_sleep_ms(1);
	}
	assert_int_equal(n, want);
}

/* A program's main(): the log is what logged_now() looks at. */
static inline int witness_main(const char *name, const struct CMUnitTest *tests, size_t n)
{
	int fd = mkstemp(log_path), rc;

	if (fd < 0 || pvfs_log_init("test", PVFS_LOG_WARNING, log_path))
		return 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	rc = _cmocka_run_group_tests(name, tests, n, NULL, NULL);
	close(fd);
	unlink(log_path);
	return rc;
}

#define T(test, how) cmocka_unit_test_setup_teardown(test, setup_##how, teardown)

#endif
