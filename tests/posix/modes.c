#include "conform.h"
const struct table tables_modes[] = { { NULL } };
