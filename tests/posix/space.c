#include "conform.h"
const struct table tables_space[] = { { NULL } };
