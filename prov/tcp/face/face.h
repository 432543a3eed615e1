/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider as the core, and the objects as their parents see it: what the files of this room have among themselves.
 */
#ifndef TCP_FACE_H
#define TCP_FACE_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

/* Built in, the registry calls these; as a DSO, fi_prov_ini() is found by name. Each once a process. */
struct fi_provider *fab_tcp_prov_ini(void);
struct fi_provider *fab_sockets_prov_ini(void);
/* Tables and parameters, for whichever of the two comes first. */
void tcp_init(void);

/* Fill the empty slots of fabrics' and domains' tables; once, at initialisation. */
void tcp_domain_fill_ops(void);
/* Slots of the provider's table. 0 or -FI_E*. */
int tcp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int sockets_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

#endif
