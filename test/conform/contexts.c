/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Aliases, shared contexts and scalable endpoints. Source: fi_endpoint(3), fi_av(3). */
#include <string.h>

#include "ops.h"

/* ---- aliases */

static struct fid_ep *alias_open(struct side *s, uint64_t flags)
{
	struct fid_ep *alias = NULL;
	int ret;

	ret = fi_ep_alias(s->ep, &alias, flags);
	if (ret && !run.ours)
		SKIP("%s has no fi_ep_alias()", run.prov);
	MUST(ret);
	own_fid(s->t, &alias->fid);
	return alias;
}

/* An alias is the same endpoint with other flags: what goes through it completes by its own. */
TEST_PROV(alias_has_flags_of_its_own, FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t, .tx_bind = FI_SELECTIVE_COMPLETION);
	struct fid_ep *alias = alias_open(p.a, FI_TRANSMIT | FI_COMPLETION);
	uint64_t flags = FI_TRANSMIT;
	char in[3][4];
	int ctx;

	MUST(fi_control(&alias->fid, FI_GETOPSFLAG, &flags));
	CHECK_EQ(flags, FI_COMPLETION);
	flags = FI_TRANSMIT;
	MUST(fi_control(&p.a->ep->fid, FI_GETOPSFLAG, &flags));
	CHECK_EQ(flags & FI_COMPLETION, 0);
	post_recv(p.b, in[0], 4);
	post_recv(p.b, in[1], 4);
	send_bytes(p.a, "1111", 4);
	while (fi_send(alias, "2222", 4, NULL, p.a->peer, &ctx) == -FI_EAGAIN)
		sides_progress(t);
	p.a->tx_posted++;
	CHECK(expect_tx(p.a).ctx == &ctx);
	expect_recv(p.b, "1111", 4);
	expect_recv(p.b, "2222", 4);
	expect_no_completion(p.a);
	/* Flags of the alias can be changed, and the endpoint's stay. */
	flags = FI_TRANSMIT;
	MUST(fi_control(&alias->fid, FI_SETOPSFLAG, &flags));
	post_recv(p.b, in[2], 4);
	while (fi_send(alias, "3333", 4, NULL, p.a->peer, &ctx) == -FI_EAGAIN)
		sides_progress(t);
	expect_recv(p.b, "3333", 4);
	expect_no_completion(p.a);
}

/* An alias receives into the endpoint's queue; name and options are the endpoint's. */
TEST_PROV(alias_is_the_endpoint, FI_MSG | FI_MULTI_RECV, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fid_ep *alias = alias_open(p.b, FI_RECV | FI_MULTI_RECV);
	uint8_t name[128], own_name[128], *in = mem(t, 512);
	size_t len = sizeof(name), own_len = sizeof(own_name), value = 128, got = 0;
	struct comp c;

	MUST(fi_getname(&alias->fid, name, &len));
	MUST(fi_getname(&p.b->ep->fid, own_name, &own_len));
	CHECK_EQ(len, own_len);
	CHECK_MEM(name, own_name, len);
	MUST(fi_setopt(&alias->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value)));
	len = sizeof(got);
	MUST(fi_getopt(&p.b->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len));
	CHECK_EQ(got, value);
	MUST((int) fi_recv(alias, in, 512, NULL, FI_ADDR_UNSPEC, &c));
	send_bytes(p.a, "1111", 4);
	c = expect_rx(p.b);
	CHECK(c.buf == in && c.len == 4 && !(c.flags & FI_MULTI_RECV));
	send_bytes(p.a, "2222", 4);
	c = expect_rx(p.b);
	CHECK(c.buf == in + 4 && c.len == 4);
	MUST((int) fi_cancel(&alias->fid, &c));
}

/* Flags of both directions at once, or such that do not exist for it, make no alias. */
TEST_PROV(alias_of_what, FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fid_ep *alias = NULL;

	if (!run.ours)
		SKIP("upstream does not look");
	CHECK_RET(fi_ep_alias(p.a->ep, &alias, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
	CHECK_RET(fi_ep_alias(p.a->ep, &alias, FI_COMPLETION), -FI_EINVAL);
	CHECK_RET(fi_ep_alias(p.a->ep, &alias, FI_TRANSMIT | FI_MULTI_RECV), -FI_EBADFLAGS);
	CHECK(alias == NULL);
	check_link(p.a, p.b);
}

/* The endpoint stays until its last alias is closed, those of aliases included. */
TEST_PROV(alias_keeps_the_endpoint, FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fid_ep *first = alias_open(p.a, FI_TRANSMIT), *second = NULL;

	MUST(fi_ep_alias(first, &second, FI_TRANSMIT | FI_COMPLETION));
	close_now(t, &first->fid);
	if (run.ours)
		CHECK_RET(fi_close(&p.a->ep->fid), -FI_EBUSY);
	MUST(fi_close(&second->fid));
	check_link(p.a, p.b);
	side_close_ep(p.a);
}
