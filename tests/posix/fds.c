#include "conform.h"
const struct table tables_fds[] = { { NULL } };
