/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packing, checking and unpacking of the messages in names_wire.h. Pure functions.
 */
#include "verbs/names.h"

#include <endian.h>
#include <string.h>

#define QPN_MIN		2		/* lower numbers are reserved for management */
#define QPN_MAX		0xffffff
#define SL_MAX		15
#define GID_MULTICAST	0xff		/* first byte of a multicast GID */

/* True if all bytes from p to the end of the message are zero. */
static bool rest_is_zero(const struct vrb_names_msg *msg, const void *p)
{
	for (const uint8_t *byte = p; byte < (const uint8_t *) (msg + 1); byte++) {
		if (*byte)
			return false;
	}
	return true;
}

bool vrb_names_valid(const struct vrb_names_msg *msg, size_t len, uint8_t code)
{
	static const uint8_t no_gid[sizeof(msg->gid)];
	uint32_t qpn;

	if (len != sizeof(*msg) || be32toh(msg->magic) != VRB_NAMES_MAGIC || msg->version != VRB_NAMES_VERSION ||
	    msg->code != code || !msg->service)
		return false;
	if (code != VRB_NAMES_FOUND)
		return rest_is_zero(msg, msg->gid);
	qpn = be32toh(msg->qpn);
	return qpn >= QPN_MIN && qpn <= QPN_MAX && msg->sl <= SL_MAX && msg->gid[0] != GID_MULTICAST &&
	       memcmp(msg->gid, no_gid, sizeof(no_gid)) && rest_is_zero(msg, msg->zero);
}

void vrb_names_unpack(const struct vrb_names_msg *msg, struct vrb_ud_name *name)
{
	*name = (struct vrb_ud_name) {
		.qpn = be32toh(msg->qpn), .lid = be16toh(msg->lid), .pkey = be16toh(msg->pkey),
		.service = be16toh(msg->service), .sl = msg->sl,
	};
	memcpy(name->gid.raw, msg->gid, sizeof(msg->gid));
}

void vrb_names_pack(struct vrb_names_msg *msg, uint8_t code, uint16_t service, uint64_t nonce,
		    const struct vrb_ud_name *name)
{
	*msg = (struct vrb_names_msg) {
		.magic = htobe32(VRB_NAMES_MAGIC), .version = VRB_NAMES_VERSION, .code = code,
		.service = htobe16(service), .nonce = nonce,
	};
	if (!name)
		return;
	memcpy(msg->gid, name->gid.raw, sizeof(msg->gid));
	msg->qpn = htobe32(name->qpn);
	msg->lid = htobe16(name->lid);
	msg->pkey = htobe16(name->pkey);
	msg->sl = name->sl;
}
