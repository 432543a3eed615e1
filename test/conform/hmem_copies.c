/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of a device (FI_HMEM, fi_mr(3)), in a run with CONFORM_HMEM (hmem.h), where every touch by the processor is a
 * fault: how often it is copied, what happens when a copy fails, and the program's own copy functions. All other tests
 * of such a run have such buffers, too.
 */
#include <string.h>

#include "collective.h"
#include "ops.h"

#define CAPS (FI_MSG | FI_HMEM)

static const struct length_row lengths[] = {
	{ "empty", 0 }, { "1", 1 }, { "100", 100 }, { "400", 400 }, { "4KiB", 4096 }, { "40KB", 40000 },
	{ "1MiB", 1 << 20 }, { "5MB", 5000001 },
};

/* Copies of a message of so many bytes, at one end: one for each part that a provider stages, and those made anew where
 * the stream took less. */
static uint64_t most_copies(size_t len)
{
	return len ? 2 + len / 4096 : 0;
}

/* From device to device, from there to the host, and back. */
TEST_TABLE(message, lengths, CAPS, RELIABLE)
{
	size_t len = ROW(lengths)->len;
	struct pair p = pair_open(t);
	uint8_t *a = mem_pattern(t, len, 1), *b = mem(t, len);
	uint64_t before = hmem_copies();

	post_recv(p.b, b, len);
	send_bytes(p.a, a, len);
	expect_tx(p.a);
	expect_recv(p.b, a, len);
	note("%llu copies", (unsigned long long) (hmem_copies() - before));
	CHECK(hmem_copies() - before <= 2 * most_copies(len));
	if (!strcmp(run.prov, "tcp") && len && len <= 400)
		CHECK_EQ(hmem_copies() - before, 2);
}

/* An endpoint with FI_HMEM, and buffers of the host. */
TEST_PROV(host_memory_is_not_copied, CAPS, RELIABLE)
{
	static uint8_t out[100000], in[100000];
	struct pair p = pair_open(t);
	uint64_t before = hmem_copies();
	size_t len;

	fill(out, sizeof(out), 3);
	for (len = 1; len < sizeof(out); len *= 7) {
		MUST((int) fi_recv(p.b->ep, in, len, desc_for(p.b, in, len), FI_ADDR_UNSPEC, in));
		MUST((int) fi_send(p.a->ep, out, len, desc_for(p.a, out, len), p.a->peer, out));
		p.a->tx_posted++;
		expect_tx(p.a);
		expect_rx(p.b);
		CHECK_MEM(in, out, len);
	}
	CHECK_EQ(hmem_copies(), before);
}

/* One vector, with a header of the host and a payload of the device. */
TEST_PROV(host_and_device_in_one_vector, CAPS, RELIABLE)
{
	struct pair p = pair_open(t);
	uint8_t header[32], *payload = mem_pattern(t, 3000, 5), *in = mem(t, 3032);
	struct iovec iov[2] = { { header, sizeof(header) }, { hmem_addr(payload), 3000 } };
	struct iovec whole = { payload, 3000 };
	void *desc[2] = { desc_for(p.a, header, sizeof(header)), NULL };

	if (p.a->info->tx_attr->iov_limit < 2)
		ABSENT("iov_limit is 1");
	desc[1] = device_desc(p.a, &whole, NULL);
	memset(header, 7, sizeof(header));
	post_recv(p.b, in, 3032);
	MUST((int) fi_sendv(p.a->ep, iov, desc, 2, p.a->peer, NULL));
	p.a->tx_posted++;
	expect_tx(p.a);
	expect_rx(p.b);
	CHECK_MEM(in, header, sizeof(header));
	check_fill(in + 32, 3000, 5);
}

/* The receive fails, since its data is lost; the connection does not. */
TEST_TABLE(copy_to_device_fails, lengths, CAPS, RELIABLE)
{
	size_t len = ROW(lengths)->len;
	struct pair p = pair_open(t);
	uint8_t *b = mem(t, len);
	static uint8_t out[5000001];

	if (!len)
		ABSENT("nothing is copied");
	if (!hmem_provider_copies())
		ABSENT("%s does not copy", run.prov);
	check_link(p.a, p.b);
	post_recv(p.b, b, len);
	MUST((int) fi_send(p.a->ep, out, len, desc_for(p.a, out, len), p.a->peer, NULL));
	p.a->tx_posted++;
	hmem_fail(t, 1);
	expect_rx_err(p.b, FI_EIO);
	hmem_fail(t, 0);
	expect_tx_any(p.a);
	check_link(p.a, p.b);
}

static bool is_rxm(void)
{
	return strchr(run.prov, ';');
}

/* True if rxm announces a message of that length, or tcp, so that it is copied when a receive takes it. */
static bool is_announced(size_t len)
{
	return len > (is_rxm() ? 1024 : 65536);
}

/* True if the provider copies a message of that length. */
static bool is_copied(size_t len)
{
	return len && (hmem_provider_copies() || (is_rxm() && !is_announced(len)));
}

/* A send whose copy fails ends with an error, from the call or as a completion. What rxm has announced is copied by the
 * provider below, of which it learns only that the connection has ended. */
static void send_in_vain(struct side *s, uint8_t *buf, size_t len, uint64_t flags)
{
	struct iovec whole = { buf, len }, iov = { hmem_addr(buf), len };
	void *desc = device_desc(s, &whole, NULL);
	struct fi_msg msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = s->peer };
	int ret = (int) fi_sendmsg(s->ep, &msg, flags | FI_COMPLETION);

	if (ret) {
		CHECK_RET(ret, -FI_EIO);
		return;
	}
	s->tx_posted++;
	expect_tx_err(s, is_rxm() && is_announced(len) ? FI_ECONNRESET : FI_EIO);
}

/* The copy of a message fails. The sender hears of it, and the receiver if its receive has taken the message. The
 * connection may be over, as a part of the message may have left; then reliable datagrams go over another. Many fail,
 * so that what each leaves behind would be missed. */
static void copies_fail(struct test *t, size_t len, uint64_t flags)
{
	struct pair p = pair_open(t);
	uint8_t *a = mem_pattern(t, len, 1), *b = mem(t, len);
	bool connected = run.type == FI_EP_MSG;
	size_t cnt = connected ? 1 : p.a->info->tx_attr->size + 1, i;

	check_link(p.a, p.b);
	for (i = 0; i < cnt; i++) {
		if (is_announced(len))
			post_recv(p.b, b, len);
		hmem_fail(t, 1);
		send_in_vain(p.a, a, len, flags);
		if (is_announced(len))
			expect_rx_err(p.b, FI_ECONNRESET);
		hmem_fail(t, 0);
	}
	if (connected && p.a->tx_posted > 1) {
		expect_event(p.a, FI_SHUTDOWN);
		expect_event(p.b, FI_SHUTDOWN);
		return;
	}
	post_recv(p.b, b, len);
	send_bytes(p.a, a, len);
	expect_tx(p.a);
	expect_recv(p.b, a, len);
}

/* The sender's copy fails: the send ends with an error, each time, and then others go through. */
TEST_TABLE(copy_from_device_fails, lengths, CAPS, RELIABLE)
{
	size_t len = ROW(lengths)->len;

	if (!is_copied(len))
		ABSENT("%s does not copy so many bytes", run.prov);
	copies_fail(t, len, 0);
}

/* The same with FI_INJECT, where the call itself copies. */
TEST_PROV(copy_of_an_injected_message_fails, CAPS, RELIABLE)
{
	if (!is_copied(32))
		ABSENT("%s does not copy", run.prov);
	copies_fail(t, 32, FI_INJECT);
}

/* Of remote accesses, the initiator hears of it. */
TEST_PROV(copy_at_a_target_fails, FI_RMA | FI_HMEM, RELIABLE)
{
	struct pair p = pair_open(t, .tx_op_flags = FI_DELIVERY_COMPLETE);
	struct region r = region_open(p.b, NULL, 4096, FI_REMOTE_WRITE);
	static uint8_t out[4096];

	if (!hmem_provider_copies())
		ABSENT("%s does not copy", run.prov);
	MUST((int) fi_write(p.a->ep, out, 8, desc_for(p.a, out, sizeof(out)), p.a->peer, r.addr, r.key, NULL));
	p.a->tx_posted++;
	expect_tx(p.a);
	hmem_fail(t, 1);
	MUST((int) fi_write(p.a->ep, out, 4096, desc_for(p.a, out, sizeof(out)), p.a->peer, r.addr, r.key, NULL));
	p.a->tx_posted++;
	expect_tx_err(p.a, FI_EIO);
	hmem_fail(t, 0);
	MUST((int) fi_write(p.a->ep, out, 4096, desc_for(p.a, out, sizeof(out)), p.a->peer, r.addr, r.key, NULL));
	p.a->tx_posted++;
	expect_tx(p.a);
}

/* A read whose copy to the device fails ends with an error, and the connection goes on. */
TEST_PROV(copy_of_a_read_fails, FI_RMA | FI_HMEM, RELIABLE)
{
	static const size_t sizes[] = { 8, 100000 };
	static uint8_t there[100000];
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, there, sizeof(there), FI_REMOTE_READ);
	uint8_t *in = mem(t, sizeof(there));
	struct iovec whole = { in, sizeof(there) };
	void *desc = device_desc(p.a, &whole, NULL);

	if (!hmem_provider_copies())
		ABSENT("%s does not copy", run.prov);
	fill(there, sizeof(there), 6);
	for (int i = 0; i < 4; i++) {
		hmem_fail(t, i % 2 ? 0 : 1);
		MUST((int) fi_read(p.a->ep, hmem_addr(in), sizes[i / 2], desc, p.a->peer, r.addr, r.key, in));
		p.a->tx_posted++;
		if (i % 2)
			expect_tx(p.a);
		else
			expect_tx_err(p.a, FI_EIO);
	}
	CHECK_MEM(in, there, sizeof(there));
}

/* ---- the program's own copy functions */

static int own_from, own_to;

/* The "device" of these is the host, four gigabytes further down: as good a fault. */
#define FAR (UINT64_C(1) << 32)

/* Bytes [at, at + len) of iov there, from or to host. */
static ssize_t copy(bool to, uint8_t *host, const struct iovec *iov, size_t cnt, uint64_t at, size_t len)
{
	size_t i, n, done = 0;

	for (i = 0; i < cnt && done < len; i++) {
		uint8_t *piece = (uint8_t *) iov[i].iov_base + FAR;

		n = at < iov[i].iov_len ? MIN(iov[i].iov_len - at, len - done) : 0;
		if (n)
			memcpy(to ? piece + at : host + done, to ? host + done : piece + at, n);
		done += n;
		at -= MIN(at, iov[i].iov_len);
	}
	return (ssize_t) done;
}

static ssize_t copy_from(void *dest, size_t size, enum fi_hmem_iface iface, uint64_t device, const struct iovec *iov,
			 size_t cnt, uint64_t offset)
{
	own_from++;
	return iface == FI_HMEM_ZE && device == 3 ? copy(false, dest, iov, cnt, offset, size) : -FI_EINVAL;
}

static ssize_t copy_to(enum fi_hmem_iface iface, uint64_t device, const struct iovec *iov, size_t cnt, uint64_t offset,
		       const void *src, size_t size)
{
	own_to++;
	return iface == FI_HMEM_ZE && device == 3 ?
	       copy(true, (uint8_t *) (uintptr_t) src, iov, cnt, offset, size) : -FI_EINVAL;
}

/* Memory of an interface that weft does not know needs them; with them it is as good as any. */
TEST_PROV(copy_functions_of_the_program, CAPS, RELIABLE)
{
	struct fi_hmem_override_ops ops = {
		.size = sizeof(ops), .copy_from_hmem_iov = copy_from, .copy_to_hmem_iov = copy_to,
	};
	struct pair p = pair_open(t);
	uint8_t *out = mem_pattern(t, 100000, 9), *in = mem(t, 100000);
	struct iovec iov = { out - FAR, 100000 };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = FI_SEND | FI_RECV, .requested_key = 77, .iface = FI_HMEM_ZE,
		.device.ze = 3,
	};
	struct fid_mr *mr[2];

	if (!hmem_provider_copies())
		ABSENT("%s does not copy", run.prov);
	CHECK_RET(fi_mr_regattr(p.a->domain, &attr, 0, &mr[0]), -FI_ENOSYS);
	MUST(fi_set_ops(&p.a->domain->fid, FI_SET_OPS_HMEM_OVERRIDE, 0, &ops, NULL));
	MUST(fi_set_ops(&p.b->domain->fid, FI_SET_OPS_HMEM_OVERRIDE, 0, &ops, NULL));
	MUST(fi_mr_regattr(p.a->domain, &attr, 0, &mr[0]));
	own_fid(t, &mr[0]->fid);
	iov.iov_base = in - FAR;
	attr.requested_key = 78;
	MUST(fi_mr_regattr(p.b->domain, &attr, 0, &mr[1]));
	own_fid(t, &mr[1]->fid);
	own_from = own_to = 0;
	MUST((int) fi_recv(p.b->ep, in - FAR, 100000, fi_mr_desc(mr[1]), FI_ADDR_UNSPEC, in));
	MUST((int) fi_send(p.a->ep, out - FAR, 100000, fi_mr_desc(mr[0]), p.a->peer, out));
	p.a->tx_posted++;
	expect_tx(p.a);
	expect_rx(p.b);
	check_fill(in, 100000, 9);
	CHECK(own_from && own_to);
	/* one piece, of which a part is far enough into it that the offset counts */
	CHECK(own_from >= 100000 / 65536);
}

/* ---- collectives */

/* Their buffers are the host's: with another the call fails, and the group goes on. */
TEST_PROV(collective_on_device, COLL_CAPS | FI_HMEM, RDM_ONLY)
{
	static const fi_addr_t itself[] = { 0 };
	struct side *s = side_open(t, .eq = true);
	uint64_t host[2] = { 5 }, *there = mem(t, sizeof(*there));
	struct iovec whole = { there, sizeof(*there) };
	fi_addr_t group;
	struct fid_mc *mc;
	void *desc;

	CHECK_EQ(side_insert(s, s), 0);
	mc = coll_join_begin(s, itself, 1);
	coll_join_end(s, mc);
	group = fi_mc_addr(mc);
	desc = device_desc(s, &whole, NULL);
	CHECK_RET((int) fi_broadcast(s->ep, hmem_addr(there), 1, desc, group, 0, FI_UINT64, 0, NULL), -FI_EOPNOTSUPP);
	CHECK_RET((int) fi_allreduce(s->ep, host, 1, NULL, hmem_addr(there), desc, group, FI_UINT64, FI_SUM, 0, NULL),
		  -FI_EOPNOTSUPP);
	CHECK_RET((int) fi_allreduce(s->ep, hmem_addr(there), 1, desc, &host[1], NULL, group, FI_UINT64, FI_SUM, 0,
				     NULL), -FI_EOPNOTSUPP);
	MUST((int) fi_allreduce(s->ep, host, 1, NULL, &host[1], NULL, group, FI_UINT64, FI_SUM, 0, NULL));
	s->tx_posted++;
	coll_expect_done(s, NULL);
	CHECK_EQ(host[1], 5);
}

/* ---- options */

/* Copies need the interface of the device, and nothing else reaches it. */
TEST_PROV(options, CAPS, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fid *ep = &p.a->ep->fid;
	bool permitted = false;
	int p2p = FI_HMEM_P2P_REQUIRED;
	size_t len = sizeof(p2p);
	bool copies = hmem_provider_copies() || strchr(run.prov, ';'), reaches = !hmem_provider_copies();

	CHECK_RET(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_CUDA_API_PERMITTED, &permitted, sizeof(permitted)),
		  copies ? -FI_EOPNOTSUPP : 0);
	permitted = true;
	MUST(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_CUDA_API_PERMITTED, &permitted, sizeof(permitted)));
	CHECK_RET(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, sizeof(p2p)), copies ? -FI_EOPNOTSUPP : 0);
	p2p = FI_HMEM_P2P_DISABLED;
	CHECK_RET(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, sizeof(p2p)), reaches ? -FI_EOPNOTSUPP : 0);
	p2p = FI_HMEM_P2P_PREFERRED;
	MUST(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, sizeof(p2p)));
	p2p = 99;
	CHECK_RET(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, sizeof(p2p)), -FI_EINVAL);
	MUST(fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, &len));
	CHECK_EQ((unsigned int) p2p, FI_HMEM_P2P_PREFERRED);
}
