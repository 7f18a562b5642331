#include "conform.h"
const struct table tables_rw[] = { { NULL } };
