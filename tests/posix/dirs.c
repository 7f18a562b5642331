#include "conform.h"
const struct table tables_dirs[] = { { NULL } };
