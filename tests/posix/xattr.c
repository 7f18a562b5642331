#include "conform.h"
const struct table tables_xattr[] = { { NULL } };
