/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Authorization keys, fi_domain(3), fi_endpoint(3): secrets that restrict which peers may communicate. A process stores
 * each key once, however often it is opened. So two keys are equal if and only if their pointers are equal. The
 * provider proves to peers that it has a key (tcp/handshake/auth.h). All functions: control, any thread; an engine's
 * lock may be held.
 */
#ifndef FAB_AUTH_H
#define FAB_AUTH_H

#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>
#include "base/list.h"

#define FAB_AUTH_KEY_MAX	256	/* most bytes of a key */
#define FAB_AUTH_FILE_MIN	16	/* fewest bytes of one that is in a file */
#define FAB_AUTH_EP_MAX		32	/* domain_attr->max_ep_auth_key */

struct fab_auth_key {
	struct fab_list link;		/* in the list of all keys; the list's lock guards link and ref */
	uint32_t ref;
	uint32_t len;
	uint8_t bytes[];
};

/* Get a key, with a reference that the caller drops with fab_auth_put(). 0. -FI_EINVAL (invalid length), -FI_ENOSYS
 * (this machine has no keyed hash), both logged with `what`, the name of the object or call; -FI_ENOMEM. */
int fab_auth_get(const struct fi_provider *prov, const char *what, const void *bytes, size_t len,
		 struct fab_auth_key **key);
/* Get the key in a file: all its bytes, except a newline at the end. The same; in addition -FI_EACCES: the file belongs
 * to another user, or others than its owner have access to it; -FI_EINVAL: it is not a regular file, or the key has
 * fewer than FAB_AUTH_FILE_MIN bytes; -FI_ENOENT ...: it cannot be read. All are logged with `what` and advice. */
int fab_auth_read(const struct fi_provider *prov, const char *what, const char *path, struct fab_auth_key **key);
/* Take another reference to a key; nothing for NULL. Returns key. */
struct fab_auth_key *fab_auth_share(struct fab_auth_key *key);
/* Drop a reference. The last one wipes the bytes. NULL is allowed. */
void fab_auth_put(struct fab_auth_key *key);

#endif
