// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_turns_test.c - clients that have one file in turns, all at once: by what each of them believes, one that
 * has it alone has it alone, however answers, YIELDs and RECALLs overtake each other, come twice, or get lost.
 */
#include "mgr_wlease_fixture.h"

#define CLIENTS 4u
#define ROUNDS 400u
#define QUEUE 1024u

enum where { OUT, IN, ALONE };

struct message {
	u32 to;
	u64 round;		/* of a YIELD; 0: a RECALL */
	u64 asked;		/* mgr_recalls.born, then */
};

/* A client as its module has it; all is protected by storm.lock but what its thread alone uses. */
struct player {
	struct storm *st;
	struct fx_client c;
	pthread_t thread;
	enum where is;
	u64 news;		/* YIELDs and RECALLs that came: an answer from before is not believed */
	u64 yield;		/* round that is to be answered by REPORT */
	bool recall;
	struct mgr_parked *resumed;
	bool waits, done;
	u32 taken[3], ignored;
};

struct storm {
	struct fx *f;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct player p[CLIENTS];
	struct message queue[QUEUE];
	u32 nqueue, playing;
	struct pvfs_fid fid;
	unsigned int seed;
};

static struct storm storm;

/* cmocka's ways out are for its own thread. */
#define must(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "# %s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
			abort(); \
		} \
	} while (0)

static int player_of(u64 session)
{
	u32 i;

	for (i = 0; i < CLIENTS; i++)
		if (storm.p[i].c.session == session)
			return i;
	return -1;
}

/* Context: any, with storm.lock not held. */
static int post(u64 session, u64 round)
{
	int err = 0, to = player_of(session);

	pthread_mutex_lock(&storm.lock);
	if (storm.nqueue == QUEUE || rand_r(&storm.seed) % 16 == 0)
		err = -ENOTCONN;
	else
		storm.queue[storm.nqueue++] = (struct message){
			.to = to, .round = round, .asked = atomic_load(&storm.f->m->recalls.born),
		};
	pthread_mutex_unlock(&storm.lock);
	return err;
}

static int storm_send(struct mgr *m, u64 session, const u64 *inos, u32 n)
{
	must(n == 1);
	must(inos[0] == storm.fid.ino);
	return post(session, 0);
}

static int storm_yield(struct mgr *m, u64 session, u64 ino, u64 round)
{
	return post(session, round);
}

static int storm_settle(struct mgr *m, u64 session, u64 ino, u64 round)
{
	return post(session, round);
}

static void storm_resume(struct mgr *m, struct pvfs_call *call, struct mgr_parked *parked)
{
	struct player *p = (void *)call;

	pthread_mutex_lock(&storm.lock);
	p->resumed = parked;
	p->done = true;
	pthread_cond_broadcast(&storm.cond);
	pthread_mutex_unlock(&storm.lock);
}

/* ---- the network: in any order ---- */

static void deliver(const struct message *msg)
{
	struct player *p = &storm.p[msg->to];
	u64 ino = storm.fid.ino;
	int err = 0;

	pthread_mutex_lock(&storm.lock);
	p->news++;
	if (p->is == ALONE) {
		if (msg->round)
			p->yield = msg->round;
		else
			p->recall = true;
		err = -EAGAIN;
	} else if (msg->round) {
		p->is = OUT;
	}
	pthread_mutex_unlock(&storm.lock);
	if (rand_r(&storm.seed) % 8 == 0)
		usleep(rand_r(&storm.seed) % 300);
	if (msg->round)
		mgr_round_told(storm.f->m, p->c.session, ino, msg->round, err);
	else
		mgr_recall_answered(storm.f->m, p->c.session, &ino, 1, err, msg->asked);
}

static void *network(void *arg)
{
	struct message msg;
	bool some;
	u32 i, n = 0;

	for (;;) {
		pthread_mutex_lock(&storm.lock);
		some = storm.nqueue;
		if (some) {
			i = rand_r(&storm.seed) % storm.nqueue;
			msg = storm.queue[i];
			storm.queue[i] = storm.queue[--storm.nqueue];
		} else if (!storm.playing) {
			pthread_mutex_unlock(&storm.lock);
			return NULL;
		}
		pthread_mutex_unlock(&storm.lock);
		if (some) {
			deliver(&msg);
			/* It may come twice. */
			if (rand_r(&storm.seed) % 16 == 0)
				deliver(&msg);
		} else {
			usleep(100);
		}
		if (arg && ++n % 16 == 0)
			mgr_recall_tick(storm.f->m, mgr_mono_ms());
	}
}

/* ---- the clients ---- */

/* @seq: of a TURN; 0: an OPEN */
static int ask(struct player *p, u32 flags, u64 seq, struct pvfs_attr *at)
{
	struct pvfs_turn_req rq = { .fid = storm.fid, .flags = flags, .seq = seq };
	struct mgr_parked *was = NULL;
	struct pvfs_turn_rep rp;
	int err;

	for (;;) {
		p->c.parked = was;
		err = seq ? fx_turn(&p->c, &rq, &rp) : do_open(&p->c, storm.fid, flags, &rp.attr);
		p->c.parked = NULL;
		if (err != -EINPROGRESS)
			break;
		must(fx_op.nnoted);
		p->done = false;
		must(mgr_recall_park(storm.f->m, &fx_op, p->c.session, (void *)p) == 0);
		if (was)
			mgr_recall_over(storm.f->m, was);
		pthread_mutex_lock(&storm.lock);
		while (!p->done)
			pthread_cond_wait(&storm.cond, &storm.lock);
		was = p->resumed;
		pthread_mutex_unlock(&storm.lock);
	}
	if (was)
		mgr_recall_over(storm.f->m, was);
	if (!err)
		*at = rp.attr;
	return err;
}

/*
 * What is believed of an answer to a question from when so much was known. Who opens it, and has been told to
 * go out before it was answered, is out.
 */
static void take(struct player *p, u64 news, const struct pvfs_attr *at)
{
	enum where to = granted(at) ? ALONE : IN;
	u32 i;

	pthread_mutex_lock(&storm.lock);
	if (p->news != news) {
		p->ignored++;
	} else {
		for (i = 0; i < CLIENTS; i++) {
			if (&storm.p[i] == p)
				continue;
			must(storm.p[i].is != ALONE);
			must(to != ALONE || storm.p[i].is == OUT);
		}
		p->is = to;
		p->yield = 0;
		p->recall = false;
		p->taken[to]++;
	}
	pthread_mutex_unlock(&storm.lock);
}

/* Gives up what it was told to. Return: something was. */
static bool give_up(struct player *p)
{
	struct pvfs_report_req rq = { .fid = storm.fid };
	struct pvfs_report_rep rp;
	int err;

	pthread_mutex_lock(&storm.lock);
	if (p->is == ALONE && (p->yield || p->recall)) {
		rq.settled = p->yield;
		rq.flags = PVFS_RP_RECALLED;
		p->is = p->yield ? OUT : IN;
	}
	p->yield = 0;
	p->recall = false;
	pthread_mutex_unlock(&storm.lock);
	if (!rq.flags)
		return false;
	err = fx_report(&p->c, &rq, &rp);
	if (err)
		fprintf(stderr, "# REPORT: %d\n", err);
	must(!err);
	return true;
}

static void *play(void *arg)
{
	struct player *p = arg;
	unsigned int seed = p->c.session;
	struct pvfs_attr at = { 0 };
	u64 news, seq = 0;
	u32 i, n;
	int err;

	for (i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&storm.lock);
		/* It goes out first, by itself, or has what it wants. */
		if (p->is == IN)
			p->is = OUT;
		news = p->news;
		n = p->is;
		pthread_mutex_unlock(&storm.lock);
		if (n != ALONE) {
			err = ask(p, rand_r(&seed) % 3 ? PVFS_TN_ALONE : 0, ++seq, &at);
			must(err == 0);
			take(p, news, &at);
		}
		for (n = rand_r(&seed) % 8; n && !give_up(p); n--)
			usleep(rand_r(&seed) % 100);
		if (rand_r(&seed) % 16 == 0) {
			/* Closed, and opened anew; what it had is over then. */
			pthread_mutex_lock(&storm.lock);
			p->is = OUT;
			pthread_mutex_unlock(&storm.lock);
			must(do_close(&p->c, storm.fid, RW, NULL) == 0);
			pthread_mutex_lock(&storm.lock);
			news = p->news;
			pthread_mutex_unlock(&storm.lock);
			must(ask(p, RW, 0, &at) == 0);
			take(p, news, &at);
		}
	}
	/* It goes, whatever it was told. */
	pthread_mutex_lock(&storm.lock);
	p->is = OUT;
	storm.playing--;
	pthread_mutex_unlock(&storm.lock);
	must(do_close(&p->c, storm.fid, RW, NULL) == 0);
	free(fx_op.payload);
	fx_op.payload = NULL;
	return NULL;
}

static void all_at_once(void **state)
{
	struct mgr_recalls *r;
	pthread_t net[2];
	u32 i, taken[3] = { 0 }, ignored = 0;
	struct hf h = { 0 };

	memset(&storm, 0, sizeof(storm));
	pthread_mutex_init(&storm.lock, NULL);
	pthread_cond_init(&storm.cond, NULL);
	storm.f = fx_new();
	r = &storm.f->m->recalls;
	r->send = storm_send;
	r->yield = storm_yield;
	r->settle = storm_settle;
	r->resume = storm_resume;
	for (i = 0; i < CLIENTS; i++) {
		fx_client_open(&storm.p[i].c, storm.f, i + 1, PVFS_SO_LEASES);
		storm.p[i].c.park = true;
		if (!i)
			h = make_striped(&storm.p[i].c, "f", 0);
		else
			assert_int_equal(do_open(&storm.p[i].c, h.at.fid, RW, NULL), 0);
	}
	storm.fid = h.at.fid;
	storm.playing = CLIENTS;
	for (i = 0; i < 2; i++)
		pthread_create(&net[i], NULL, network, i ? NULL : &storm);
	for (i = 0; i < CLIENTS; i++)
		pthread_create(&storm.p[i].thread, NULL, play, &storm.p[i]);
	for (i = 0; i < CLIENTS; i++) {
		pthread_join(storm.p[i].thread, NULL);
		taken[IN] += storm.p[i].taken[IN];
		taken[ALONE] += storm.p[i].taken[ALONE];
		ignored += storm.p[i].ignored;
	}
	for (i = 0; i < 2; i++)
		pthread_join(net[i], NULL);
	fprintf(stderr, "# alone %u times, beside others %u, answers overtaken %u, yielded %llu\n", taken[ALONE],
		taken[IN], ignored, (unsigned long long)atomic_load(&r->yielded));
	assert_true(taken[ALONE] > CLIENTS && taken[IN] > CLIENTS);
	mgr_recall_tick(storm.f->m, mgr_mono_ms());
	assert_int_equal(r->n + atomic_load(&r->yields) + atomic_load(&r->barred), 0);
	assert_int_equal(atomic_load(&storm.f->m->leases.writes), 0);
	fx_free(storm.f);
	free(fx_op.payload);
	fx_op.payload = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all_at_once) };

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
