#include "conform.h"
const struct table tables_rename[] = { { NULL } };
