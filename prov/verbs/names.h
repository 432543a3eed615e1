/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a datagram endpoint is found by node and service: fi_getinfo(3), fi_av_insertsvc(3). doc/decisions/verbs.md.
 *
 * A service is a number that one endpoint of a node can have at a time. The endpoint holds it as the name of a Unix
 * socket, which the kernel frees when the process ends. Each process with such endpoints binds the UDP port of
 * FI_VERBS_DGRAM_NAME_SERVER_PORT; processes of one user share it (SO_REUSEPORT). The kernel gives a question to any of
 * them, which passes it to the Unix socket of the service, and the process of that socket answers. So there is no
 * server that could fail, and no table that could be out of date.
 *
 *   asker --UDP--> some process of the node --Unix socket "service"--> the endpoint's process --UDP--> asker
 */
#ifndef VRB_NAMES_H
#define VRB_NAMES_H

#include "base/list.h"
#include "verbs/names_wire.h"
#include "verbs/ud.h"

#define VRB_NAMES_WHY	256		/* room for a reason */

/* ---- names.c: answers questions, by a thread that runs while there is an endpoint that can be found ---- */

/* An endpoint that can be found. Only names.c uses the fields. */
struct vrb_named {
	struct fab_list link;
	struct vrb_ud_name name;	/* found by name.service */
	int fd;				/* owned: the Unix socket of the service */
};

/* Make an enabled endpoint known by name->service, which is not 0. The caller calls vrb_named_close() later. NULL: it
 * cannot be found, which is logged with the reason and the remedy; the endpoint works otherwise. Any thread; an
 * engine's lock may be held. */
struct vrb_named *vrb_named_open(const struct vrb_ud_name *name);
/* The endpoint is not found any more when this returns. The last one ends the thread, and waits for that. NULL is
 * allowed. */
void vrb_named_close(struct vrb_named *named);
/* The provider is unloaded: end the thread, even if endpoints are still open. Called once. */
void vrb_names_fini(void);

/* ---- names_ask.c: asks questions ---- */

/* Parse a service: a number, or a name of /etc/services; NULL and "0" mean 0. 0; or -FI_E* as fab_resolve_name(), with
 * *service 0 and *why a sentence in static memory. May read files; no lock held. */
int vrb_names_service(const char *text, uint16_t *service, const char **why);
/* Ask a node for the endpoint of a service (0: the one that the text of node names). node, n and flags are as of
 * fab_resolve_nth(): the node n places behind the named one. 0 with *name. -FI_ENODATA: there is no such node, or it
 * does not answer within two seconds, or has no such endpoint. -FI_EINVAL, -FI_ENOMEM. On errors why, of VRB_NAMES_WHY
 * bytes, is a sentence for people. Blocks; no lock held. */
int vrb_names_ask(const char *node, uint64_t n, uint64_t flags, uint16_t service, struct vrb_ud_name *name, char *why);

/* ---- names_wire.c: the messages ---- */

/* True if the len bytes that arrived are a valid message of this code. */
bool vrb_names_valid(const struct vrb_names_msg *msg, size_t len, uint8_t code);
/* Copy the address of a valid VRB_NAMES_FOUND to *name. */
void vrb_names_unpack(const struct vrb_names_msg *msg, struct vrb_ud_name *name);
/* Fill a message. name is the address for VRB_NAMES_FOUND, else NULL. The nonce is stored as it is, in the byte order
 * of the message. */
void vrb_names_pack(struct vrb_names_msg *msg, uint8_t code, uint16_t service, uint64_t nonce,
		    const struct vrb_ud_name *name);

#endif
