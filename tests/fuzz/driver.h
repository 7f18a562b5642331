/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * driver.h - runs a fuzz target without libFuzzer, so that gcc's sanitizers do: seeds from files, a
 * small mutator with a known seed, bounds by time and number. With -DPVFS_LIBFUZZER the target is
 * libFuzzer's and there is no main here.
 *
 *   PROGRAM [--seconds N] [--iterations N] [--seed N] [--save DIR] SEED-FILE...
 *
 * An input is a byte of flags (what they mean is the target's) and a stream of messages. Every seed
 * is first run as it is: a crasher that was saved is reproduced by naming it with --iterations 0.
 * The input that a process dies of is written to DIR (default: here) as crash-SEED-NUMBER.
 */
#ifndef PVFS_FUZZ_DRIVER_H
#define PVFS_FUZZ_DRIVER_H

#include "common/msg.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FUZZ_INPUT_MAX 32768

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
void fuzz_end(void);		/* ends what LLVMFuzzerInitialize() began */

/*
 * Makes the header at @p one that is not refused at first sight: identity and checksum right,
 * lengths within what is there (@left bytes behind it), the body's checksum too if @body. Bits of
 * @p decide about the rest.
 */
static inline void fuzz_mend(u8 *p, size_t left, bool body)
{
	struct pvfs_hdr h;
	u32 body_len, payload_len;

	memcpy(&h, p, sizeof(h));
	h.magic = cpu_to_le32(PVFS_MAGIC);
	h.version = PVFS_HDR_VERSION;
	h.zero = 0;
	h.reserved[0] = h.reserved[1] = 0;
	h.flags &= cpu_to_le32(PVFS_HF_ALL);
	if (!(h.flags & cpu_to_le32(PVFS_HF_REPLY)))
		h.status = 0;
	h.slot = cpu_to_le16(le16_to_cpu(h.slot) % PVFS_SLOTS_MAX);
	h.credits = cpu_to_le16(le16_to_cpu(h.credits) % (PVFS_CREDITS_MAX + 1));
	body_len = min(le32_to_cpu(h.body_len), PVFS_BODY_MAX);
	body_len = min((size_t)body_len, left);
	payload_len = min((size_t)le32_to_cpu(h.payload_len), left - body_len);
	h.body_len = cpu_to_le32(body_len);
	h.payload_len = cpu_to_le32(payload_len);
	if (body) {
		h.body_crc = cpu_to_le32(body_len ? pvfs_crc32c(0, p + sizeof(h), body_len) : 0);
		h.payload_crc = 0;
		if (h.flags & cpu_to_le32(PVFS_HF_PAYLOAD_CRC))
			h.payload_crc = cpu_to_le32(pvfs_crc32c(0, p + sizeof(h) + body_len, payload_len));
	} else if (!(h.flags & cpu_to_le32(PVFS_HF_PAYLOAD_CRC))) {
		h.payload_crc = 0;
	}
	h.hdr_crc = cpu_to_le32(pvfs_crc32c(0, &h, PVFS_HDR_LEN - 4));
	memcpy(p, &h, sizeof(h));
}

#ifndef PVFS_LIBFUZZER

struct fuzz_seed {
	u8 *p;
	size_t len;
};

static struct fuzz_seed *fuzz_seeds;
static unsigned int fuzz_nseeds;
static u64 fuzz_state = 1;
static u8 fuzz_input[FUZZ_INPUT_MAX];
static size_t fuzz_len;
static u64 fuzz_seed_no;
static unsigned long fuzz_iteration;
static const char *fuzz_dir = ".";

void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

static inline u64 fuzz_rnd(u64 below)
{
	fuzz_state ^= fuzz_state << 13;
	fuzz_state ^= fuzz_state >> 7;
	fuzz_state ^= fuzz_state << 17;
	return below ? (fuzz_state >> 11) % below : 0;
}

/* In a dying process: system calls only, but for the name. */
static void fuzz_dying(void)
{
	char name[4096];
	int fd;

	snprintf(name, sizeof(name), "%s/crash-%llu-%lu", fuzz_dir, (unsigned long long)fuzz_seed_no, fuzz_iteration);
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd >= 0 && write(fd, fuzz_input, fuzz_len) == (ssize_t)fuzz_len)
		fprintf(stderr, "input saved as %s\n", name);
}

static void fuzz_signal(int sig)
{
	fuzz_dying();
	signal(sig, SIG_DFL);
	raise(sig);
}

static inline int fuzz_load(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct fuzz_seed s;

	if (!f) {
		perror(path);
		return -1;
	}
	s.p = malloc(FUZZ_INPUT_MAX);
	s.len = s.p ? fread(s.p, 1, FUZZ_INPUT_MAX, f) : 0;
	fclose(f);
	fuzz_seeds = realloc(fuzz_seeds, (fuzz_nseeds + 1) * sizeof(s));
	fuzz_seeds[fuzz_nseeds++] = s;
	return 0;
}

static inline void fuzz_mutate_once(void)
{
	static const u32 nice[] = { 0, 1, 2, 0x7f, 0x80, 0xff, 0x100, 0xfff, 0x1000, 0x3fff, 0x4000, 0x4001, 0x7fff, 0xffff,
				    0x10000, 0x3fffff, 0x400000, 0x400001, 0x7fffffff, 0x80000000, 0xffffffff };
	size_t at = fuzz_rnd(fuzz_len), n, to;
	u32 v;

	switch (fuzz_rnd(9)) {
	case 0:
		fuzz_input[at] ^= 1 << fuzz_rnd(8);
		break;
	case 1:
		fuzz_input[at] = fuzz_rnd(256);
		break;
	case 2:		/* an interesting number, 16 or 32 bits */
		v = cpu_to_le32(nice[fuzz_rnd(ARRAY_SIZE(nice))]);
		n = fuzz_rnd(2) ? 2 : 4;
		if (at + n <= fuzz_len)
			memcpy(fuzz_input + at, &v, n);
		break;
	case 3:		/* cut off */
		fuzz_len = at + 1;
		break;
	case 4:		/* cut out */
		n = 1 + fuzz_rnd(min(fuzz_len - at, 64ul));
		memmove(fuzz_input + at, fuzz_input + at + n, fuzz_len - at - n);
		fuzz_len -= n;
		break;
	case 5:		/* put in */
		n = 1 + fuzz_rnd(32);
		if (fuzz_len + n > FUZZ_INPUT_MAX)
			break;
		memmove(fuzz_input + at + n, fuzz_input + at, fuzz_len - at);
		fuzz_len += n;
		while (n--)
			fuzz_input[at + n] = fuzz_rnd(256);
		break;
	case 6:		/* copy a piece elsewhere */
		to = fuzz_rnd(fuzz_len);
		n = fuzz_len - max(at, to);
		n = fuzz_rnd(min(n, 256ul));
		memmove(fuzz_input + to, fuzz_input + at, n);
		break;
	case 7:		/* add or subtract a little */
		fuzz_input[at] += fuzz_rnd(2) ? 1 : -1;
		break;
	case 8:		/* another operation in the first message's place */
		if (fuzz_len > 8)
			fuzz_input[1 + offsetof(struct pvfs_hdr, op)] = fuzz_rnd(80);
		break;
	}
	if (!fuzz_len)
		fuzz_len = 1;
}

/* One to four seeds in a row, and a few changes. */
static inline void fuzz_compose(void)
{
	unsigned int n = 1 + (fuzz_rnd(3) ? 0 : fuzz_rnd(4)), i;
	struct fuzz_seed *s = &fuzz_seeds[fuzz_rnd(fuzz_nseeds)];

	fuzz_len = 0;
	for (i = 0; i < n; i++) {
		if (!s->len || fuzz_len + s->len > FUZZ_INPUT_MAX)
			break;
		/* The flags of the first only. */
		memcpy(fuzz_input + fuzz_len, s->p + !!i, s->len - !!i);
		fuzz_len += s->len - !!i;
		s = &fuzz_seeds[fuzz_rnd(fuzz_nseeds)];
	}
	if (!fuzz_len)
		fuzz_len = 1;
	if (fuzz_rnd(2))
		fuzz_input[0] = fuzz_rnd(256);
	for (i = fuzz_rnd(6); i; i--)
		fuzz_mutate_once();
}

int main(int argc, char **argv)
{
	unsigned long iterations = ~0ul, seconds = 10;
	unsigned int i;
	time_t end;
	int a;

	fuzz_seed_no = 1;
	if (LLVMFuzzerInitialize(&argc, &argv))
		return 2;
	for (a = 1; a < argc; a++) {
		if (!strcmp(argv[a], "--seconds") && a + 1 < argc) {
			seconds = strtoul(argv[++a], NULL, 10);
		} else if (!strcmp(argv[a], "--iterations") && a + 1 < argc) {
			iterations = strtoul(argv[++a], NULL, 10);
		} else if (!strcmp(argv[a], "--seed") && a + 1 < argc) {
			fuzz_seed_no = strtoull(argv[++a], NULL, 10);
		} else if (!strcmp(argv[a], "--save") && a + 1 < argc) {
			fuzz_dir = argv[++a];
		} else if (argv[a][0] == '-') {
			fprintf(stderr, "usage: %s [--seconds N] [--iterations N] [--seed N] [--save DIR] SEED-FILE...\n",
				argv[0]);
			return 2;
		} else if (fuzz_load(argv[a])) {
			return 2;
		}
	}
	if (!fuzz_nseeds) {
		fprintf(stderr, "%s: no seeds\n", argv[0]);
		return 2;
	}
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(fuzz_dying);
	else
		signal(SIGSEGV, fuzz_signal);
	signal(SIGABRT, fuzz_signal);
	for (i = 0; i < fuzz_nseeds; i++) {
		fuzz_len = fuzz_seeds[i].len;
		memcpy(fuzz_input, fuzz_seeds[i].p, fuzz_len);
		LLVMFuzzerTestOneInput(fuzz_input, fuzz_len);
	}
	fuzz_state = fuzz_seed_no * 0x9e3779b97f4a7c15ull | 1;
	for (i = 0; i < 20; i++)
		fuzz_rnd(2);
	end = time(NULL) + seconds;
	for (fuzz_iteration = 0; fuzz_iteration < iterations; fuzz_iteration++) {
		if (fuzz_iteration % 16 == 0 && time(NULL) >= end)
			break;
		fuzz_compose();
		LLVMFuzzerTestOneInput(fuzz_input, fuzz_len);
	}
	printf("%u seeds, %lu mutations, seed %llu: survived\n", fuzz_nseeds, fuzz_iteration,
	       (unsigned long long)fuzz_seed_no);
	for (i = 0; i < fuzz_nseeds; i++)
		free(fuzz_seeds[i].p);
	free(fuzz_seeds);
	fuzz_end();
	return 0;
}

#endif
#endif
