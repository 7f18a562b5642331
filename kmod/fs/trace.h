/* SPDX-License-Identifier: GPL-2.0 */
/*
 * trace.h - tracepoints of a lease's life: it was taken, recalled or settled, and what a draft, or a WRITE
 * lease, had kept back was told after that.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM pvfs

#if !defined(PVFS_FS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define PVFS_FS_TRACE_H

#include <linux/tracepoint.h>

/* A lease that there was not before; not that one lasts longer. */
TRACE_EVENT(pvfs_lease, TP_PROTO(dev_t dev, u64 ino, umode_t mode, u32 ms), TP_ARGS(dev, ino, mode, ms),
	    TP_STRUCT__entry(__field(dev_t, dev) __field(u64, ino) __field(umode_t, mode) __field(u32, ms)),
	    TP_fast_assign(__entry->dev = dev; __entry->ino = ino; __entry->mode = mode; __entry->ms = ms;),
	    TP_printk("dev %d:%d ino %llu %s ms %u", MAJOR(__entry->dev), MINOR(__entry->dev),
		      __entry->ino, S_ISREG(__entry->mode) ? "file" :
		      S_ISDIR(__entry->mode) ? "directory" : "other", __entry->ms));

/* Answer: 0, or -EAGAIN for a draft, or a WRITE lease. */
TRACE_EVENT(pvfs_recall, TP_PROTO(dev_t dev, u64 ino, int answer), TP_ARGS(dev, ino, answer),
	    TP_STRUCT__entry(__field(dev_t, dev) __field(u64, ino) __field(int, answer)),
	    TP_fast_assign(__entry->dev = dev; __entry->ino = ino; __entry->answer = answer;),
	    TP_printk("dev %d:%d ino %llu answer %d", MAJOR(__entry->dev), MINOR(__entry->dev),
		      __entry->ino, __entry->answer));

/* Answer: 0, or -EAGAIN: something is to be written before. */
TRACE_EVENT(pvfs_settle, TP_PROTO(dev_t dev, u64 ino, int answer), TP_ARGS(dev, ino, answer),
	    TP_STRUCT__entry(__field(dev_t, dev) __field(u64, ino) __field(int, answer)),
	    TP_fast_assign(__entry->dev = dev; __entry->ino = ino; __entry->answer = answer;),
	    TP_printk("dev %d:%d ino %llu answer %d", MAJOR(__entry->dev), MINOR(__entry->dev),
		      __entry->ino, __entry->answer));

/* Answer: 0: out; or -EAGAIN: not yet. */
TRACE_EVENT(pvfs_yield, TP_PROTO(dev_t dev, u64 ino, int answer), TP_ARGS(dev, ino, answer),
	    TP_STRUCT__entry(__field(dev_t, dev) __field(u64, ino) __field(int, answer)),
	    TP_fast_assign(__entry->dev = dev; __entry->ino = ino; __entry->answer = answer;),
	    TP_printk("dev %d:%d ino %llu answer %d", MAJOR(__entry->dev), MINOR(__entry->dev),
		      __entry->ino, __entry->answer));

/* @flags: of the attributes that came, if the answer counts. */
TRACE_EVENT(pvfs_turn, TP_PROTO(dev_t dev, u64 ino, u32 want, u32 flags, int err),
	    TP_ARGS(dev, ino, want, flags, err),
	    TP_STRUCT__entry(__field(dev_t, dev) __field(u64, ino) __field(u32, want) __field(u32, flags)
			     __field(int, err)),
	    TP_fast_assign(__entry->dev = dev; __entry->ino = ino; __entry->want = want;
			   __entry->flags = flags; __entry->err = err;),
	    TP_printk("dev %d:%d ino %llu%s flags %#x err %d", MAJOR(__entry->dev), MINOR(__entry->dev),
		      __entry->ino, __entry->want & 1 ? " alone" : __entry->want ? " read" : "",
		      __entry->flags, __entry->err));

/* Since its first RECALL. */
TRACE_EVENT(pvfs_draft_told, TP_PROTO(dev_t dev, u64 ino, u32 bytes, u64 us), TP_ARGS(dev, ino, bytes, us),
	    TP_STRUCT__entry(__field(dev_t, dev) __field(u64, ino) __field(u32, bytes) __field(u64, us)),
	    TP_fast_assign(__entry->dev = dev; __entry->ino = ino; __entry->bytes = bytes; __entry->us = us;),
	    TP_printk("dev %d:%d ino %llu bytes %u us %llu", MAJOR(__entry->dev), MINOR(__entry->dev),
		      __entry->ino, __entry->bytes, __entry->us));

/* A WRITE lease that there was not before. */
TRACE_EVENT(pvfs_wlease, TP_PROTO(dev_t dev, u64 ino, unsigned long token), TP_ARGS(dev, ino, token),
	    TP_STRUCT__entry(__field(dev_t, dev) __field(u64, ino) __field(unsigned long, token)),
	    TP_fast_assign(__entry->dev = dev; __entry->ino = ino; __entry->token = token;),
	    TP_printk("dev %d:%d ino %llu number %lu", MAJOR(__entry->dev), MINOR(__entry->dev),
		      __entry->ino, __entry->token));

/* All that was written is with the iods, or could not be: @failed. Since it was recalled first; 0: it was not. */
TRACE_EVENT(pvfs_wlease_given, TP_PROTO(dev_t dev, u64 ino, u64 us, bool failed), TP_ARGS(dev, ino, us, failed),
	    TP_STRUCT__entry(__field(dev_t, dev) __field(u64, ino) __field(u64, us) __field(bool, failed)),
	    TP_fast_assign(__entry->dev = dev; __entry->ino = ino; __entry->us = us; __entry->failed = failed;),
	    TP_printk("dev %d:%d ino %llu us %llu%s", MAJOR(__entry->dev), MINOR(__entry->dev), __entry->ino,
		      __entry->us, __entry->failed ? " failed" : ""));

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
