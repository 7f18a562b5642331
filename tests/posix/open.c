#include "conform.h"
const struct table tables_open[] = { { NULL } };
