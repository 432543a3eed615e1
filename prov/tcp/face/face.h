/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to this room: the provider's entry functions, fabrics and domains.
 */
#ifndef TCP_FACE_H
#define TCP_FACE_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

/* Entry functions. The registry calls them if the provider is built in; in a DSO fi_prov_ini() does. Each is called
 * once in a process. */
struct fi_provider *fab_tcp_prov_ini(void);
struct fi_provider *fab_sockets_prov_ini(void);
/* Initialise tables and parameters; called by each entry function, effective once. */
void tcp_init(void);

/* Fill the empty entries of the tables of fabrics and domains. Called once, when the provider is loaded. */
void tcp_domain_fill_ops(void);
/* The provider's cleanup, for both names; idempotent. */
void tcp_cleanup(void);

/* Slots of the provider's table. 0 or -FI_E*. */
int tcp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int sockets_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

#endif
