#include "conform.h"
const struct table tables_names[] = { { NULL } };
