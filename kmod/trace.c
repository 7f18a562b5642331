// SPDX-License-Identifier: GPL-2.0
/*
 * trace.c - the tracepoints' one home.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
