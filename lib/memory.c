// SPDX-License-Identifier: LGPL-2.1
/*
 * memory.c - the user's memory: many pieces that are one stretch of bytes.
 */
#include "lib.h"
#include <stdlib.h>

int lib_mem_init(struct memory *m, const struct iovec *iov, size_t n, u64 *ret_len)
{
	u64 sum = 0;
	size_t i;

	if (n > INT_MAX)
		return -EINVAL;
	*m = (struct memory){ .iov = iov, .n = n };
	if (n > 1) {
		m->start = malloc(n * sizeof(*m->start));
		if (!m->start)
			return -ENOMEM;
	}
	for (i = 0; i < n; i++) {
		if (m->start)
			m->start[i] = sum;
		sum += iov[i].iov_len;
		if (sum > SSIZE_MAX || iov[i].iov_len > SSIZE_MAX) {
			free(m->start);
			m->start = NULL;
			return -EINVAL;
		}
	}
	*ret_len = sum;
	return 0;
}

void lib_mem_free(struct memory *m)
{
	free(m->start);
}

void lib_mem_zero(const struct iovec *iov, u32 n, u32 got)
{
	u32 i;

	for (i = 0; i < n; i++) {
		if (got < iov[i].iov_len)
			memset((u8 *)iov[i].iov_base + got, 0, iov[i].iov_len - got);
		got -= min((size_t)got, iov[i].iov_len);
	}
}

u32 lib_mem_slice(const struct memory *m, u64 at, u64 len, struct iovec *out, u32 room,
		  u64 *ret_len)
{
	int lo = 0, hi = m->n - 1, mid;
	u64 in = at, n, sum = 0;
	u32 used = 0;

	while (m->start && lo < hi) {
		mid = lo + (hi - lo + 1) / 2;
		if (m->start[mid] <= at)
			lo = mid;
		else
			hi = mid - 1;
	}
	if (m->start)
		in = at - m->start[lo];
	for (; sum < len && used < room && lo < m->n; lo++, in = 0) {
		n = min((u64)m->iov[lo].iov_len - in, len - sum);
		if (!n)
			continue;
		out[used++] = (struct iovec){ .iov_base = (u8 *)m->iov[lo].iov_base + in,
					      .iov_len = n };
		sum += n;
	}
	*ret_len = sum;
	return used;
}
