/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The shared receives of verbs;ofi_rxm, which any peer that connects may fill: whoever breaks the rules takes none of
 * them along, and no crowd makes them more than RXM_SRX_MAX. One process on the stand-in for a device, endpoints a and
 * b, and a peer that speaks over a connected endpoint of verbs.
 */
#include "ends.h"
#include "../softverbs/stand_in.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <rdma/fi_eq.h>
#include "rxm/wire.h"

#define VILLAINS	300		/* connections, one after another */
#define PACKETS		4		/* of each: there are fewer receives for so few connections than villains */
#define CROWD		48
#define UNREAD		30		/* packets of a peer that are under way at a time */
#define SRX_MAX		1024		/* prov/rxm/objects.h */
#define BUF_LEN		(16 << 10)	/* bytes of a receive, without headers */

static uint64_t (*pinned_pages)(void);
static unsigned (*rnr_cnt)(void);

static int setup(void **state)
{
	(void) state;
	ends_open(FI_MSG, 0, 0);
	return 0;
}

/* A message from b arrives at a, at once. */
static void arrives(void)
{
	unsigned sent = b.done + 1, received = a.done + 1, before = rnr_cnt();
	char from[8] = "honest", to[8] = "";

	OK((int) fi_recv(a.ep, to, sizeof(to), NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(b.ep, from, sizeof(from), NULL, b.peer, NULL));
	until(a.done == received && b.done == sent);
	assert_memory_equal(to, from, sizeof(from));
	assert_int_equal(rnr_cnt(), before);
}

/* ---- a peer that breaks the rules ---- */

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_mr *mr;
	struct rxm_pkt pkt[PACKETS];
} raw;

static void raw_open(void)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_eq_attr eq_attr = { 0 };

	hints->fabric_attr->prov_name = strdup("verbs");
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	OK(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE, hints, &raw.info));
	fi_freeinfo(hints);
	OK(fi_fabric(raw.info->fabric_attr, &raw.fabric, NULL));
	OK(fi_domain(raw.fabric, raw.info, &raw.domain, NULL));
	OK(fi_eq_open(raw.fabric, &eq_attr, &raw.eq, NULL));
	OK(fi_cq_open(raw.domain, &cq_attr, &raw.cq, NULL));
	OK(fi_mr_reg(raw.domain, raw.pkt, sizeof(raw.pkt), FI_SEND, 0, 0, 0, &raw.mr, NULL));
}

static void raw_close(void)
{
	OK(fi_close(&raw.mr->fid));
	OK(fi_close(&raw.cq->fid));
	OK(fi_close(&raw.eq->fid));
	OK(fi_close(&raw.domain->fid));
	OK(fi_close(&raw.fabric->fid));
	fi_freeinfo(raw.info);
}

/* Go on until the peer's connection has this event. */
static void raw_await(uint32_t event)
{
	char room[512];
	uint32_t what = 0;
	ssize_t ret;

	until((ret = fi_eq_read(raw.eq, &what, room, sizeof(room), 0)) != -FI_EAGAIN);
	assert_true(ret > 0);
	assert_int_equal(what, event);
}

static struct fid_ep *raw_connect(void)
{
	struct rxm_cm_req req = {
		.version = RXM_CM_VERSION, .endian = RXM_ENDIAN, .ctrl_version = RXM_CTRL_VERSION,
		.op_version = RXM_CM_OP_VERSION, .port = 9, .flow_ctrl = 2, .eager_limit = 16384,
		.rx_size = 64 | RXM_EXT << RXM_EXT_SHIFT, .conn_id = 4711,
	};
	struct sockaddr_in addr;
	size_t len = sizeof(addr);
	struct fid_ep *ep;

	OK(fi_endpoint(raw.domain, raw.info, &ep, NULL));
	OK(fi_ep_bind(ep, &raw.eq->fid, 0));
	OK(fi_ep_bind(ep, &raw.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
	OK(fi_getname(&a.ep->fid, &addr, &len));
	OK(fi_connect(ep, &addr, &req, sizeof(req)));
	raw_await(FI_CONNECTED);
	return ep;
}

/* The first packet is not valid. a has not looked at any when the last one is in its memory. */
static void villain(void)
{
	struct fid_ep *ep = raw_connect();
	struct fi_cq_entry entry;
	ssize_t ret;

	for (int i = 0; i < PACKETS; i++)
		OK((int) fi_send(ep, &raw.pkt[i], sizeof(raw.pkt[i]), fi_mr_desc(raw.mr), 0, NULL));
	for (int i = 0; i < PACKETS; i += ret == 1) {
		ret = fi_cq_read(raw.cq, &entry, 1);
		assert_true(ret == 1 || ret == -FI_EAGAIN);
	}
	raw_await(FI_SHUTDOWN);
	OK(fi_close(&ep->fid));
}

static void peers_that_break_the_rules_take_no_receives(void **state)
{
	(void) state;
	arrives();
	raw_open();
	memset(raw.pkt, 0, sizeof(raw.pkt));
	for (int i = 0; i < VILLAINS; i++) {
		raw.pkt[0].ctrl.version = i % 2 ? RXM_CTRL_VERSION : RXM_CTRL_VERSION + 1;
		raw.pkt[0].ctrl.type = 99;
		villain();
	}
	arrives();
	raw_close();
}

/* ---- a crowd ---- */

/* Each of these endpoints has sent so many messages when a looks, or some find no receive. */
static void exchange(struct fid_ep **ep, unsigned ep_cnt, unsigned each)
{
	unsigned sent = b.done, received = a.done, before = rnr_cnt(), cnt = ep_cnt * each;
	static char to[CROWD * UNREAD][8];
	char from[8] = { 0 };

	for (unsigned i = 0; i < cnt; i++)
		OK((int) fi_recv(a.ep, to[i], 8, NULL, FI_ADDR_UNSPEC, NULL));
	for (unsigned i = 0; i < cnt; i++)
		OK((int) fi_send(ep[i % ep_cnt], from, 8, NULL, b.peer, NULL));
	while (b.done < sent + cnt && rnr_cnt() == before)
		drive(&b);
	until(a.done == received + cnt && b.done == sent + cnt);
}

static void burst(struct fid_ep **ep)
{
	exchange(ep, CROWD, UNREAD);
}

/* Endpoints of b's domain that are connected with a. */
static void crowd_open(struct fid_ep **ep)
{
	for (int i = 0; i < CROWD; i++)
		ep[i] = peer_add();
}

static void crowd_close(struct fid_ep **ep)
{
	for (int i = 0; i < CROWD; i++)
		OK(fi_close(&ep[i]->fid));
}

static void receives_are_bounded(void **state)
{
	struct fid_ep *ep[CROWD];
	uint64_t before, most;

	(void) state;
	crowd_open(ep);
	before = pinned_pages();
	for (int i = 0; i < 8; i++)
		burst(ep);
	most = pinned_pages();
	/* to their limit, with what the crowd sends from */
	assert_true((most - before) * 4096 > SRX_MAX * BUF_LEN);
	assert_true((most - before) * 4096 < 3 * SRX_MAX / 2 * BUF_LEN);
	for (int i = 0; i < 4; i++)
		burst(ep);
	assert_int_equal(pinned_pages(), most);
	crowd_close(ep);
}

/* What is logged from here on goes to a file, which is returned; log_end() counts the lines there that say this. */
static FILE *log_begin(int *saved)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	*saved = dup(STDERR_FILENO);
	assert_true(*saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
	return file;
}

static unsigned log_end(FILE *file, int saved, const char *said)
{
	char line[512];
	unsigned cnt = 0;

	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	rewind(file);
	while (fgets(line, sizeof(line), file))
		cnt += strstr(line, said) != NULL;
	fclose(file);
	return cnt;
}

/* Memory for more receives is asked for once, and not with each packet. What there is has to do. */
static void receives_that_cannot_grow_are_asked_for_once(void **state)
{
	struct fid_ep *ep[CROWD];
	char limit[64];
	int saved;
	FILE *file;

	(void) state;
	crowd_open(ep);
	/* each has sent what it may, so that it needs no more memory for that */
	for (int i = 0; i < CROWD; i++)
		exchange(&ep[i], 1, UNREAD);
	snprintf(limit, sizeof(limit), "memlock=%llu", (unsigned long long) pinned_pages() * 4096);
	setenv("SOFTVERBS_LIMITS", limit, 1);
	file = log_begin(&saved);
	burst(ep);
	burst(ep);
	unsetenv("SOFTVERBS_LIMITS");
	assert_int_equal(log_end(file, saved, "ibv_reg_mr"), 1);
	crowd_close(ep);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, ends_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(peers_that_break_the_rules_take_no_receives),
		CASE(receives_are_bounded),
		CASE(receives_that_cannot_grow_are_asked_for_once),
	};

	rnr_cnt = stand_in("sv_test_rnr_cnt");
	pinned_pages = stand_in("sv_test_pinned_pages");
	return cmocka_run_group_tests_name("rxm/shared", tests, NULL, NULL);
}
