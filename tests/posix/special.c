#include "conform.h"
const struct table tables_special[] = { { NULL } };
