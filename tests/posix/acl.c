#include "conform.h"
const struct table tables_acl[] = { { NULL } };
