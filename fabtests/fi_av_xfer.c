/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_av_xfer: messages while addresses come and go: the peer is removed from the address vector and inserted again,
 * alone and between others, and can be reached each time.
 */
#include "lib/func.h"

#include <string.h>

#define MAX_NAME 256
#define OTHERS 8

struct names {
	char text[MAX_NAME];
	size_t len;
};

static int insert(struct func *func, const struct names *name, fi_addr_t *addr)
{
	int ret = fi_av_insert(func->av, name->text, 1, addr, 0, NULL);

	return ret == 1 ? 0 : pp_fail(func->pp, ret < 0 ? ret : -FI_EINVAL, "fi_av_insert");
}

/* The peer goes and comes back. */
static int reinsert(struct func *func, struct func_ep *ep, const struct names *peer)
{
	FUNC_CALL(func, fi_av_remove(func->av, &ep->peer, 1, 0));
	ep->peer = FI_ADDR_UNSPEC;
	return insert(func, peer, &ep->peer);
}

/* Other addresses come, the peer goes and comes back, and then they go. */
static int among_others(struct func *func, struct func_ep *ep, const struct names *peer, const struct names *ours)
{
	fi_addr_t other;
	int i;

	for (i = 0; i < OTHERS; i++) {
		FUNC_TRY(insert(func, ours, &other));
		FUNC_TRY(reinsert(func, ep, peer));
		FUNC_EXPECT(func, ep->peer != other, "two addresses have the same number");
		FUNC_TRY(func_greet(func, ep, func_size(func, 0), (uint64_t) i));
		FUNC_CALL(func, fi_av_remove(func->av, &other, 1, 0));
	}
	return 0;
}

static int run(struct func *func)
{
	struct names peer = { .len = MAX_NAME }, ours = { .len = MAX_NAME }, again = { .len = MAX_NAME };
	struct func_ep ep;
	uint32_t i;

	FUNC_TRY(func_ep_open(func, &ep, NULL));
	FUNC_CALL(func, fi_av_lookup(func->av, ep.peer, peer.text, &peer.len));
	FUNC_CALL(func, fi_getname(&ep.ep->fid, ours.text, &ours.len));
	for (i = 0; i < func->iterations; i++) {
		FUNC_TRY(func_greet(func, &ep, func_size(func, 0), i));
		/* Both have all that was under way: nothing is lost with the old entry. */
		FUNC_TRY(func_sync(func));
		FUNC_TRY(reinsert(func, &ep, &peer));
		again.len = MAX_NAME;
		FUNC_CALL(func, fi_av_lookup(func->av, ep.peer, again.text, &again.len));
		FUNC_EXPECT(func, again.len == peer.len && !memcmp(again.text, peer.text, peer.len),
			    "the address is another one after fi_av_insert");
		FUNC_TRY(func_greet(func, &ep, func_size(func, 0), i));
		FUNC_TRY(func_sync(func));
	}
	return among_others(func, &ep, &peer, &ours);
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Exchange messages while addresses come and go.",
		.ep_type = FI_EP_RDM,
		.choose_type = true,
		.dgram = true,
		.caps = FI_MSG,
		.size = 512,
		.iterations = 10,
		.prefix = true,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
