/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libibverbs and librdmacm, loaded where there is a device (lib.c).
 */
#ifndef VRB_LIB_H
#define VRB_LIB_H

#include <stdbool.h>

/* True if libibverbs and librdmacm can be called. Loads them when the kernel has a device. A library that cannot be
 * loaded is logged once. Any thread. */
bool vrb_lib_ready(void);
/* True if libibverbs has ibv_reg_dmabuf_mr(). Only after vrb_lib_ready() returned true. */
bool vrb_lib_dmabuf(void);
/* True if libibverbs has _ibv_query_gid_table(). Only after vrb_lib_ready() returned true. */
bool vrb_lib_gid_table(void);

#endif
