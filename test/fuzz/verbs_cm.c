/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private data of requests, answers and refusals of verbs, as the connection manager hands it over: the
 * application's part, and what XRC says behind it. An input is the data; its first byte says whether there is any.
 */
#include "fuzz/fuzz.h"

/* its parser is its own */
#include "../../prov/verbs/xrc_cm.c"

/* What the application gets: within what came, and no more than it may be. */
static void application(const uint8_t *data, uint8_t len)
{
	size_t cnt = SIZE_MAX;
	const uint8_t *part = vrb_cm_unpack(data, len, &cnt);

	FUZZ_MUST(cnt <= VRB_CM_DATA_MAX);
	FUZZ_MUST(!cnt || (data && part > data && part + cnt <= data + len));
	for (size_t i = 0; i < cnt; i++)
		FUZZ_MUST(part[i] == data[1 + i]);
	part = vrb_xrc_unpack(data, len, &cnt);
	FUZZ_MUST(cnt <= VRB_CM_DATA_MAX);
	FUZZ_MUST(!cnt || (data && part > data && part + cnt <= data + len));
}

/* Whatever the request is, its refusal brings the application's data. */
static void refusal(const uint8_t *data, size_t len)
{
	uint8_t req[VRB_CM_DATA_MAX + 1] = { 0 }, rej[VRB_CM_DATA_MAX + 1] = { 0 };
	uint8_t rej_len = VRB_XRC_DATA_MAX;
	const uint8_t *part;
	size_t cnt;

	memcpy(req, data, len < sizeof(req) ? len : sizeof(req));
	vrb_cm_pack(rej, req, rej_len);
	rej_len = vrb_xrc_refusal(req, rej);
	FUZZ_MUST(rej_len <= sizeof(rej));
	part = vrb_xrc_unpack(rej, rej_len, &cnt);
	FUZZ_MUST(part && cnt == VRB_XRC_DATA_MAX && !memcmp(part, req, cnt));
}

/* What is given is taken as it was. */
static void again(struct vrb_xrc_wire wire)
{
	uint8_t data[VRB_CM_DATA_MAX + 1] = { 0 };
	struct vrb_xrc_wire same;

	xrc_cm_give(data, wire);
	FUZZ_MUST(xrc_cm_take(data, sizeof(data), &same));
	FUZZ_MUST(same.srqn == wire.srqn && same.pair == wire.pair && same.tgt == wire.tgt && same.tag == wire.tag);
	FUZZ_MUST(same.flags == wire.flags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	bool any = fuzz_byte(&data, &len) & 1;
	struct vrb_xrc_wire wire;

	len = len < UINT8_MAX ? len : UINT8_MAX;
	application(any ? data : NULL, any ? (uint8_t) len : 0);
	refusal(data, len);
	if (xrc_cm_take(any ? data : NULL, any ? len : 0, &wire)) {
		FUZZ_MUST(len >= VRB_XRC_AT + sizeof(wire));
		again(wire);
	}
	return 0;
}
