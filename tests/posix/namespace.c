#include "conform.h"
const struct table tables_namespace[] = { { NULL } };
