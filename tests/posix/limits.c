#include "conform.h"
const struct table tables_limits[] = { { NULL } };
