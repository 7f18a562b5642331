#include "conform.h"
const struct table tables_times[] = { { NULL } };
