/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_mcast: the server joins a multicast group (-M), and takes the datagram that the client sends to it. */
#include "lib/func.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

struct settings {
	const char *group;
};

static const struct util_opt options[] = {
	{ 'M', "multicast", "ADDRESS", "the group (default: 239.255.77.1)" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	(void) key;
	((struct settings *) func->own)->group = arg;
	return 0;
}

/* The group's address, at the port where the server's endpoint is. */
static int group_addr(struct func *func, struct func_ep *ep, struct sockaddr_in *group)
{
	const struct settings *settings = func->own;
	struct sockaddr_in ours, theirs;
	size_t len = sizeof(ours);

	if (func->pp->info->addr_format != FI_SOCKADDR_IN)
		return func_skip(func, "groups of IPv4 addresses are meant");
	FUNC_CALL(func, fi_getname(&ep->ep->fid, &ours, &len));
	FUNC_TRY(func_exchange(func, &ours, &theirs, sizeof(ours), "addresses"));
	*group = func->client ? theirs : ours;
	FUNC_EXPECT(func, inet_pton(AF_INET, settings->group, &group->sin_addr) == 1,
		    "-M is '%s': an IPv4 address is allowed", settings->group);
	return 0;
}

static int join(struct func *func, struct func_ep *ep, struct sockaddr_in *group, uint64_t flags, struct fid_mc **mc)
{
	struct pp_wait wait = { .polls = 0 };
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret;

	FUNC_CALL(func, fi_join(ep->ep, group, flags, mc, mc));
	FUNC_TRY(func_own(func, &(*mc)->fid, "multicast group"));
	while ((ret = fi_eq_read(func->pp->eq, &event, &entry, sizeof(entry), 0)) == -FI_EAGAIN)
		FUNC_TRY(func_tick(func, &wait, "FI_JOIN_COMPLETE"));
	FUNC_EXPECT(func, ret == sizeof(entry) && event == FI_JOIN_COMPLETE, "fi_eq_read gave %zd, event %u", ret,
		    event);
	FUNC_EXPECT(func, entry.context == mc, "FI_JOIN_COMPLETE has another context");
	return 0;
}

static int send_one(struct func *func, struct func_ep *ep, struct fid_mc *mc, uint64_t seq)
{
	size_t len = func_size(func, 0);
	struct iovec iov = { .iov_base = ep->tx.mem, .iov_len = len };
	struct func_op op = { .done = 0 };
	struct fi_msg msg = { .msg_iov = &iov, .desc = &ep->tx.desc, .iov_count = 1, .addr = fi_mc_addr(mc),
			      .context = &op };

	pp_fill(ep->tx.mem, len, seq);
	FUNC_POST(func, fi_sendmsg(ep->ep, &msg, FI_MULTICAST | FI_COMPLETION));
	return func_wait(func, &op, "a message to the group");
}

static int recv_one(struct func *func, struct func_ep *ep, uint64_t seq)
{
	struct func_op op = { .done = 0 };

	FUNC_TRY(func_recv(func, ep, ep->rx.len, &op));
	FUNC_TRY(func_sync(func));
	FUNC_TRY(func_wait(func, &op, "a message of the group"));
	return pp_check(func->pp, ep->rx.mem, func_size(func, 0), seq);
}

static int run(struct func *func)
{
	const struct func_ep_attr attr = { .bind = func_ep_bind_eq };
	struct sockaddr_in group;
	struct fid_mc *mc;
	struct func_ep ep;
	uint32_t i;

	FUNC_TRY(func_ep_open(func, &ep, &attr));
	FUNC_TRY(group_addr(func, &ep, &group));
	FUNC_TRY(func_agree(func, join(func, &ep, &group, func->client ? FI_SEND : FI_RECV, &mc)));
	for (i = 0; i < func->iterations; i++) {
		if (func->client)
			FUNC_TRY(func_sync(func));
		FUNC_TRY(func->client ? send_one(func, &ep, mc, i) : recv_one(func, &ep, i));
		FUNC_TRY(func_sync(func));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct settings settings = { .group = "239.255.77.1" };
	static const struct func_program program = {
		.about = "Send datagrams to a multicast group.",
		.ep_type = FI_EP_DGRAM,
		.caps = FI_MSG | FI_MULTICAST,
		.size = 512,
		.iterations = 3,
		.options = options,
		.take = take,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
