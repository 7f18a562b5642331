// SPDX-License-Identifier: GPL-2.0
/*
 * trace.c - the one home of this half's tracepoints.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
