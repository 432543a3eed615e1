/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Authorization keys, fi_domain(3), fi_endpoint(3): secrets that limit who may talk to whom. A key is kept once in a
 * process, however often it is opened, so that two are the same key if and only if their pointers are equal. What
 * proves that a peer has one is the provider's (tcp/auth.h). All calls: control, any thread; an engine's lock may be
 * held.
 */
#ifndef FAB_AUTH_H
#define FAB_AUTH_H

#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>
#include "base/list.h"

#define FAB_AUTH_KEY_MAX	256	/* bytes of a key */
#define FAB_AUTH_EP_MAX		32	/* domain_attr->max_ep_auth_key */

struct fab_auth_key {
	struct fab_list link;		/* in the list of all; under its lock, as ref */
	uint32_t ref;
	uint32_t len;
	uint8_t bytes[];
};

/* The key with these bytes, and a reference to it for fab_auth_put(). 0; -FI_EINVAL (a length that cannot be),
 * -FI_ENOSYS (no keyed hash on this machine), both logged with `what`, which names whose key it is; -FI_ENOMEM. */
int fab_auth_get(const struct fi_provider *prov, const char *what, const void *bytes, size_t len,
		 struct fab_auth_key **key);
/* One more reference to a key, or none to NULL; returns it. */
struct fab_auth_key *fab_auth_share(struct fab_auth_key *key);
/* Give a reference back; the last one wipes the bytes. NULL is allowed. */
void fab_auth_put(struct fab_auth_key *key);

#endif
