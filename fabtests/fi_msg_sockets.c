/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_msg_sockets: sockets semantics. A client binds first and connects then: it opens a passive endpoint, which has an
 * address, and turns that into the endpoint that connects, which keeps it; the server sees the request come from there.
 */
#include "lib/func.h"

#include <string.h>

#define MAX_NAME 256

struct name {
	uint32_t len;
	char text[MAX_NAME];
};

static int get_name(struct func *func, struct fid *fid, struct name *name)
{
	size_t len = sizeof(name->text);

	memset(name, 0, sizeof(*name));
	FUNC_CALL(func, fi_getname(fid, name->text, &len));
	name->len = (uint32_t) len;
	return 0;
}

static int expect_same(struct func *func, const struct name *ours, const struct name *theirs, const char *what)
{
	FUNC_EXPECT(func, ours->len == theirs->len && !memcmp(ours->text, theirs->text, ours->len),
		    "%s is another one", what);
	return 0;
}

/* The passive endpoint is the new one's handle: it gives its address away and can only be closed. */
static int client(struct func *func, struct func_ep *ep)
{
	struct fid_pep *pep;
	struct name bound, name, peer;
	size_t len = sizeof(peer.text);

	FUNC_CALL(func, fi_passive_ep(func->pp->fabric, func->pp->info, &pep, NULL));
	FUNC_TRY(func_own(func, &pep->fid, "passive endpoint of the client"));
	FUNC_CALL(func, fi_pep_bind(pep, &func->pp->eq->fid, 0));
	FUNC_TRY(get_name(func, &pep->fid, &bound));
	FUNC_TRY(pp_ctrl_send(func->pp, &bound, sizeof(bound), "the client's address"));
	func->pp->info->handle = &pep->fid;
	FUNC_TRY(func_ep_create(func, ep, NULL));
	func->pp->info->handle = NULL;
	FUNC_TRY(func_ep_connect(func, ep, NULL));
	FUNC_TRY(get_name(func, &ep->ep->fid, &name));
	FUNC_TRY(expect_same(func, &bound, &name, "the address after connecting"));
	FUNC_CALL(func, fi_getpeer(ep->ep, peer.text, &len));
	peer.len = (uint32_t) len;
	memcpy(name.text, func->pp->info->dest_addr, func->pp->info->dest_addrlen);
	name.len = (uint32_t) func->pp->info->dest_addrlen;
	return expect_same(func, &name, &peer, "the peer's address");
}

static int server(struct func *func, struct func_ep *ep)
{
	struct name bound, peer = { .len = 0 };
	size_t len = sizeof(peer.text);

	FUNC_TRY(pp_ctrl_recv(func->pp, &bound, sizeof(bound), "the client's address"));
	FUNC_TRY(func_ep_open(func, ep, NULL));
	FUNC_CALL(func, fi_getpeer(ep->ep, peer.text, &len));
	peer.len = (uint32_t) len;
	FUNC_TRY(expect_same(func, &bound, &peer, "the address that the client comes from"));
	FUNC_EXPECT(func, ep->info->dest_addrlen == bound.len && !memcmp(ep->info->dest_addr, bound.text, bound.len),
		    "the request names another address");
	return 0;
}

static int run(struct func *func)
{
	struct func_ep ep;

	FUNC_TRY(func->client ? client(func, &ep) : server(func, &ep));
	return func_greet(func, &ep, func_size(func, 0), 0);
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Connect from an address that was bound before.",
		.ep_type = FI_EP_MSG,
		.caps = FI_MSG,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
