/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * msg_undef.h - ends one expansion of msg.def, so that the next can define its own. No include
 * guard on purpose.
 */
#undef U8
#undef U16
#undef U32
#undef U64
#undef S64
#undef FIX
#undef STR
#undef BLOB
#undef SUB
#undef SUBMSG
#undef MSG
