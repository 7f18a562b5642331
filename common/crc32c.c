// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * crc32c.c - the Castagnoli checksum in user space (the kernel has its own).
 *
 * The SSE 4.2 instruction where the processor has it, chosen once; else a table, made once, of
 * which eight slices are used at a time.
 */
#include "compat.h"
#include <pthread.h>

#define POLY 0x82f63b78u

static u32 table[8][256];
static bool have_insn;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void setup(void)
{
	u32 i, j, c;

	for (i = 0; i < 256; i++) {
		for (c = i, j = 0; j < 8; j++)
			c = c & 1 ? (c >> 1) ^ POLY : c >> 1;
		table[0][i] = c;
	}
	for (i = 0; i < 256; i++)
		for (j = 1; j < 8; j++)
			table[j][i] = table[0][table[j - 1][i] & 0xff] ^ (table[j - 1][i] >> 8);
#ifdef __x86_64__
	have_insn = __builtin_cpu_supports("sse4.2");
#endif
}

#ifdef __x86_64__
__attribute__((target("sse4.2")))
static u32 crc_insn(u32 crc, const u8 *p, size_t n)
{
	u64 c = crc;

	for (; n >= 8; n -= 8, p += 8)
		c = __builtin_ia32_crc32di(c, get_unaligned_le64(p));
	for (; n; n--)
		c = __builtin_ia32_crc32qi(c, *p++);
	return c;
}
#endif

static u32 crc_table(u32 crc, const u8 *p, size_t n)
{
	for (; n >= 8; n -= 8, p += 8) {
		u64 v = get_unaligned_le64(p) ^ crc;

		crc = table[7][v & 0xff] ^ table[6][v >> 8 & 0xff] ^ table[5][v >> 16 & 0xff] ^
		      table[4][v >> 24 & 0xff] ^ table[3][v >> 32 & 0xff] ^
		      table[2][v >> 40 & 0xff] ^ table[1][v >> 48 & 0xff] ^ table[0][v >> 56];
	}
	for (; n; n--)
		crc = table[0][(crc ^ *p++) & 0xff] ^ (crc >> 8);
	return crc;
}

u32 pvfs_crc32c(u32 seed, const void *p, size_t n)
{
	pthread_once(&once, setup);
#ifdef __x86_64__
	if (have_insn)
		return ~crc_insn(~seed, p, n);
#endif
	return ~crc_table(~seed, p, n);
}
