/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a datagram endpoint is found by node and service: fi_getinfo(3), fi_av_insertsvc(3). doc/decisions/verbs.md.
 *
 * A service is a number of the node's, which an endpoint holds as a Unix socket's name: the kernel gives it to one at a
 * time, and takes it back when the process ends. Each process that has such endpoints has the UDP port of
 * FI_VERBS_DGRAM_NAME_SERVER_PORT, which those of one user share (SO_REUSEPORT): the kernel hands a question to any of
 * them, and that one passes it on to the socket of the service, whose process answers. So nobody is in charge, nobody
 * has to be replaced, and there is no table that could be wrong.
 *
 *   asker --UDP--> some process of the node --Unix socket "service"--> the endpoint's process --UDP--> asker
 */
#ifndef VRB_NAMES_H
#define VRB_NAMES_H

#include "base/list.h"
#include "verbs/names_wire.h"
#include "verbs/ud.h"

#define VRB_NAMES_WHY	256		/* room for a reason */

/* ---- names.c: being found. A thread of its own answers, while there is one that can be ---- */

/* An endpoint that can be found. Its owner looks at nothing in it. */
struct vrb_named {
	struct fab_list link;
	struct vrb_ud_name name;	/* name.service is what it is found by */
	int fd;				/* owned: the Unix socket of the service */
};

/* Let an enabled endpoint be found by name->service, which is not 0. NULL: it cannot be, which is logged with the
 * reason and what to do, and keeps nobody from using it. Ends with vrb_named_close(). Any thread; an engine's lock may
 * be held. */
struct vrb_named *vrb_named_open(const struct vrb_ud_name *name);
/* It is not found any more when this returns; the last one waits for the thread's end. NULL is allowed. */
void vrb_named_close(struct vrb_named *named);
/* The provider goes, whatever is still open: no thread of ours is left. Once. */
void vrb_names_fini(void);

/* ---- names_ask.c: finding others ---- */

/* The number of a service, from its text: that, or a name of /etc/services; NULL and "0" are 0. 0, or -FI_E* as
 * fab_resolve_name() has it, with *service 0 and *why a sentence, constant text. May read files; no lock held. */
int vrb_names_service(const char *text, uint16_t *service, const char **why);
/* Ask the node that comes n places behind the named one (fab_resolve_nth; flags are its) for a service, 0 being the one
 * that an address text names. 0 with *name; -FI_ENODATA: no such node, nobody answers there within two seconds, or has
 * no such endpoint; -FI_EINVAL, -FI_ENOMEM; why, of VRB_NAMES_WHY bytes, is then a sentence for people. Blocks; no lock
 * held. */
int vrb_names_ask(const char *node, uint64_t n, uint64_t flags, uint16_t service, struct vrb_ud_name *name, char *why);

/* ---- names_wire.c: what goes between them ---- */

/* Is it a message of this code, with all that goes with it? len: bytes that came. */
bool vrb_names_valid(const struct vrb_names_msg *msg, size_t len, uint8_t code);
/* The address in a valid message of VRB_NAMES_FOUND, to *name. */
void vrb_names_unpack(const struct vrb_names_msg *msg, struct vrb_ud_name *name);
/* Make a message; name, for VRB_NAMES_FOUND alone, is what was found, else NULL. The nonce goes as it is. */
void vrb_names_pack(struct vrb_names_msg *msg, uint8_t code, uint16_t service, uint64_t nonce,
		    const struct vrb_ud_name *name);

#endif
