/* SPDX-License-Identifier: GPL-2.0 */
/*
 * trace.h - tracepoints of a request's life: submit, post, reply, done.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM pvfs

#if !defined(PVFS_NET_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define PVFS_NET_TRACE_H

#include <linux/tracepoint.h>
#include "net.h"

DECLARE_EVENT_CLASS(pvfs_request_class, TP_PROTO(const struct pvfs_request *req), TP_ARGS(req),
		    TP_STRUCT__entry(__field(const void *, req) __array(char, op, 16)
					     __field(u16, slot) __field(u32, tag)
						     __field(u32, slot_seq) __field(u32, payload)
							     __field(int, err)),
		    TP_fast_assign(__entry->req = req;
				   strscpy(__entry->op, pvfs_op_name(req->op), sizeof(__entry->op));
				   __entry->slot = req->slot; __entry->tag = req->tag;
				   __entry->slot_seq = req->slot_seq;
				   __entry->payload = req->bv_len; __entry->err = req->err;),
		    TP_printk("req %p %s tag %u slot %u/%u payload %u err %d", __entry->req,
			      __entry->op, __entry->tag, __entry->slot, __entry->slot_seq,
			      __entry->payload, __entry->err));

#define PVFS_REQUEST_EVENT(name) \
DEFINE_EVENT(pvfs_request_class, name, TP_PROTO(const struct pvfs_request *req), TP_ARGS(req))

PVFS_REQUEST_EVENT(pvfs_submit);
PVFS_REQUEST_EVENT(pvfs_post);
PVFS_REQUEST_EVENT(pvfs_reply);
PVFS_REQUEST_EVENT(pvfs_done);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
