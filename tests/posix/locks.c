#include "conform.h"
const struct table tables_locks[] = { { NULL } };
