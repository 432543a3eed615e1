/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What Debian's libfabric and the libefa that it is linked with ask of libibverbs and no device of ours has: so that
 * they load. None of these is ever called on a software device, and one that is ends the process.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define DRIVERS_ONLY(name)	void name(void); void name(void) { missing(#name); }

static void missing(const char *name)
{
	fprintf(stderr, "softverbs: %s() is not there\n", name);
	abort();
}

/* A driver announces itself when it is loaded. */
void verbs_register_driver_34(const void *ops);
void verbs_register_driver_34(const void *ops)
{
	(void) ops;
}

/* libefa says that a device is not its own. */
void __verbs_log(void);
void __verbs_log(void)
{
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	(void) qp;
	return NULL;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

DRIVERS_ONLY(_verbs_init_and_alloc_context)
DRIVERS_ONLY(ibv_cmd_alloc_pd)
DRIVERS_ONLY(ibv_cmd_create_ah)
DRIVERS_ONLY(ibv_cmd_create_cq_ex)
DRIVERS_ONLY(ibv_cmd_create_qp_ex)
DRIVERS_ONLY(ibv_cmd_dealloc_pd)
DRIVERS_ONLY(ibv_cmd_dereg_mr)
DRIVERS_ONLY(ibv_cmd_destroy_ah)
DRIVERS_ONLY(ibv_cmd_destroy_cq)
DRIVERS_ONLY(ibv_cmd_destroy_qp)
DRIVERS_ONLY(ibv_cmd_get_context)
DRIVERS_ONLY(ibv_cmd_modify_qp)
DRIVERS_ONLY(ibv_cmd_query_device_any)
DRIVERS_ONLY(ibv_cmd_query_port)
DRIVERS_ONLY(ibv_cmd_query_qp)
DRIVERS_ONLY(ibv_cmd_reg_dmabuf_mr)
DRIVERS_ONLY(ibv_cmd_reg_mr)
DRIVERS_ONLY(verbs_set_ops)
DRIVERS_ONLY(verbs_uninit_context)
