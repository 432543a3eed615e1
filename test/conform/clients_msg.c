/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What clients with connected endpoints do, call by call: HCL, LDMS's zap, JULEA, derecho. One side listens, the other
 * connects.
 * Source: fi_cm(3), fi_msg(3), fi_rma(3).
 */
#include <string.h>

#include "clients.h"
#include "waitobj.h"

/* A key and an address in the first message, then RMA both ways (or the one that it asks for), then a message that ends
 * it. */
static void check_traffic(struct pair *p)
{
	bool writes = p->a->info->caps & FI_WRITE;
	struct region r = region_open(p->b, NULL, 30000, FI_REMOTE_READ | FI_REMOTE_WRITE);
	uint64_t told[2] = { r.addr, r.key }, *heard = mem(p->a->t, sizeof(told));
	uint8_t *out = mem_pattern(p->a->t, 30000, 4), *in = mem(p->a->t, 30000), last[8];

	post_recv(p->a, heard, sizeof(told));
	send_bytes(p->b, told, sizeof(told));
	expect_recv(p->a, told, sizeof(told));
	expect_tx(p->b);
	if (writes) {
		post(p->a, WRITE, .buf = out, .len = 30000, .raddr = heard[0], .key = heard[1]);
		expect_tx(p->a);
	} else {
		memcpy(r.buf, out, 30000);
	}
	post(p->a, READ, .buf = in, .len = 30000, .raddr = heard[0], .key = heard[1]);
	expect_tx(p->a);
	CHECK_MEM(in, out, 30000);
	post_recv(p->b, last, sizeof(last));
	send_bytes(p->a, "all done", 8);
	expect_recv(p->b, "all done", 8);
	expect_tx(p->a);
	CHECK_MEM(r.buf, out, 30000);
}

/* The calls of HCL on connected endpoints. */
TEST_PROV(hcl_sequence, FI_MSG | FI_RMA, CONNECTED)
{
	struct opts o = client_opts("hcl");
	struct pair p;

	if (run.family != AF_INET)
		ABSENT("it knows IPv4 only");
	p = pair_open_opts(t, &o);
	CHECK_EQ(p.a->info->addr_format, FI_SOCKADDR_IN);
	check_traffic(&p);
}

/* It sleeps on the descriptors of event queue and completion queue, and lets go of a connection by fi_shutdown. */
TEST_PROV(ldms_sequence, FI_MSG | FI_RMA, CONNECTED)
{
	struct opts o = client_opts("ldms");
	struct pair p;

	o.eq_wait = o.cq_wait = FI_WAIT_FD;
	p = pair_open_opts(t, &o);
	check_traffic(&p);
	CHECK_RET(trywait(p.b, &p.b->eq->fid), 0);
	CHECK(!fd_readable(wait_fd(&p.b->eq->fid), 0));
	MUST(fi_shutdown(p.a->ep, 0));
	CHECK(fd_readable(wait_fd(&p.b->eq->fid), 30000));
	expect_event(p.b, FI_SHUTDOWN);
	expect_no_event(p.b);
}

/* It measures the name of the listener, and takes FI_MSG_PREFIX where it is wanted: it is not. */
TEST_PROV(julea_sequence, FI_MSG | FI_RMA, CONNECTED)
{
	struct opts o = client_opts("julea");
	struct pair p = pair_open_opts(t, &o);
	size_t len = 0;

	CHECK_RET(fi_getname(&p.listener->pep->fid, NULL, &len), -FI_ETOOSMALL);
	CHECK_EQ(len, p.listener->name_len);
	CHECK(!(p.a->info->mode & FI_MSG_PREFIX));
	check_traffic(&p);
}

/* One listener, and a connection to every other node. */
TEST_PROV(derecho_sequence, FI_MSG | FI_RMA, CONNECTED)
{
	struct opts o = client_opts("derecho");
	struct pair p = pair_open_opts(t, &o), more;
	int i;

	check_traffic(&p);
	for (i = 0; i < 3; i++) {
		more = p;
		more.a = connector_open(t, p.listener, &o);
		more.b = side_connect(more.a, p.listener);
		check_traffic(&more);
	}
	check_traffic(&p);
}
