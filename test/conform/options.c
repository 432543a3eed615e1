/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What can be asked of objects beside their own calls: every option of fi_getopt(3) and fi_setopt, every command of
 * fi_control(3), every name of fi_open(3). Where an object does not have it the answer is the errno that says so.
 */
#include <rdma/fi_ext.h>

#include "ops.h"

/* ---- options of endpoints */

enum kind {
	NOWHERE,			/* -FI_ENOPROTOOPT on every endpoint */
	READABLE,				/* to be read */
	READABLE_MSG,			/* of connected endpoints */
	READABLE_TCP,			/* of tcp */
	SET_TCP,			/* to be set, of tcp */
	SET_MULTI_RECV,			/* to be set, of endpoints that offer FI_MULTI_RECV */
};

struct option_row {
	const char *name;
	int option;
	enum kind kind;
	uint64_t caps;			/* of endpoints that have it */
	size_t size;
};

static const struct option_row option_rows[] = {
	{ "min_multi_recv", FI_OPT_MIN_MULTI_RECV, SET_MULTI_RECV, FI_MULTI_RECV, sizeof(size_t) },
	{ "cm_data_size", FI_OPT_CM_DATA_SIZE, READABLE_MSG, 0, sizeof(size_t) },
	{ "buffered_min", FI_OPT_BUFFERED_MIN, NOWHERE, 0, sizeof(size_t) },
	{ "buffered_limit", FI_OPT_BUFFERED_LIMIT, NOWHERE, 0, sizeof(size_t) },
	{ "send_buf_size", FI_OPT_SEND_BUF_SIZE, NOWHERE, 0, sizeof(size_t) },
	{ "recv_buf_size", FI_OPT_RECV_BUF_SIZE, NOWHERE, 0, sizeof(size_t) },
	{ "tx_size", FI_OPT_TX_SIZE, READABLE, 0, sizeof(size_t) },
	{ "rx_size", FI_OPT_RX_SIZE, READABLE, 0, sizeof(size_t) },
	{ "hmem_p2p", FI_OPT_FI_HMEM_P2P, NOWHERE, 0, sizeof(int) },
	{ "xpu_trigger", FI_OPT_XPU_TRIGGER, NOWHERE, 0, sizeof(size_t) },
	{ "cuda", FI_OPT_CUDA_API_PERMITTED, NOWHERE, 0, sizeof(bool) },
	{ "shared_memory", FI_OPT_SHARED_MEMORY_PERMITTED, SET_TCP, 0, sizeof(bool) },
	{ "max_msg", FI_OPT_MAX_MSG_SIZE, READABLE, FI_MSG, sizeof(size_t) },
	{ "max_tagged", FI_OPT_MAX_TAGGED_SIZE, READABLE, FI_TAGGED, sizeof(size_t) },
	{ "max_rma", FI_OPT_MAX_RMA_SIZE, READABLE, FI_RMA, sizeof(size_t) },
	{ "max_atomic", FI_OPT_MAX_ATOMIC_SIZE, READABLE, FI_ATOMIC, sizeof(size_t) },
	{ "inject_msg", FI_OPT_INJECT_MSG_SIZE, READABLE, FI_MSG, sizeof(size_t) },
	{ "inject_tagged", FI_OPT_INJECT_TAGGED_SIZE, READABLE, FI_TAGGED, sizeof(size_t) },
	{ "inject_rma", FI_OPT_INJECT_RMA_SIZE, READABLE, FI_RMA, sizeof(size_t) },
	{ "inject_atomic", FI_OPT_INJECT_ATOMIC_SIZE, READABLE, FI_ATOMIC, sizeof(size_t) },
	{ "firewall", FI_OPT_FIREWALL_ADDR, READABLE_TCP, 0, sizeof(bool) },
};

static bool has_option(const struct side *s, const struct option_row *row)
{
	bool tcp = !strcmp(run.prov, "tcp") || !strcmp(run.prov, "sockets");

	return row->kind != NOWHERE && (row->kind != READABLE_MSG || run.type == FI_EP_MSG) &&
	       ((row->kind != READABLE_TCP && row->kind != SET_TCP) || tcp) && (row->kind != SET_MULTI_RECV || tcp) &&
	       (s->info->caps & row->caps) == row->caps;
}

/* An option has one length, and what an endpoint does not have is -FI_ENOPROTOOPT, to read and to set. */
TEST_TABLE(every_option, option_rows, FI_MSG)
{
	const struct option_row *row = ROW(option_rows);
	struct side *s = side_open(t, .caps = FI_MSG | (offered(FI_MSG | row->caps) ? row->caps : 0));
	uint64_t value[2] = { 0 }, again[2] = { 0 };
	fid_t fid = &s->ep->fid;
	size_t len = sizeof(value);

	if (!run.ours)
		ABSENT("providers of upstream differ in what they have");
	if (!has_option(s, row)) {
		if (row->kind != SET_MULTI_RECV)
			CHECK_RET(fi_getopt(fid, FI_OPT_ENDPOINT, row->option, value, &len), -FI_ENOPROTOOPT);
		if (row->kind != SET_MULTI_RECV || run.type == FI_EP_DGRAM)
			CHECK_RET(fi_setopt(fid, FI_OPT_ENDPOINT, row->option, value, row->size), -FI_ENOPROTOOPT);
		return;
	}
	MUST(fi_getopt(fid, FI_OPT_ENDPOINT, row->option, value, &len));
	CHECK_EQ(len, row->size);
	CHECK_RET(fi_getopt(fid, FI_OPT_ENDPOINT, row->option, value, NULL), -FI_EINVAL);
	CHECK_RET(fi_getopt(fid, FI_OPT_ENDPOINT, row->option, NULL, &len), -FI_EINVAL);
	CHECK_RET(fi_getopt(fid, FI_OPT_ENDPOINT + 1, row->option, value, &len), -FI_ENOPROTOOPT);
	len = row->size - 1;
	CHECK_RET(fi_getopt(fid, FI_OPT_ENDPOINT, row->option, again, &len), -FI_ETOOSMALL);
	CHECK_EQ(len, row->size);
	CHECK_EQ(again[0], 0);
	if (row->kind != SET_MULTI_RECV && row->kind != SET_TCP) {
		CHECK_RET(fi_setopt(fid, FI_OPT_ENDPOINT, row->option, value, row->size), -FI_ENOPROTOOPT);
		return;
	}
	CHECK_RET(fi_setopt(fid, FI_OPT_ENDPOINT, row->option, value, row->size - 1), -FI_ETOOSMALL);
	CHECK_RET(fi_setopt(fid, FI_OPT_ENDPOINT, row->option, value, row->size + 1), -FI_EINVAL);
	CHECK_RET(fi_setopt(fid, FI_OPT_ENDPOINT, row->option, NULL, row->size), -FI_EINVAL);
	value[0] = row->kind == SET_TCP ? 0 : 4096;
	MUST(fi_setopt(fid, FI_OPT_ENDPOINT, row->option, value, row->size));
	MUST(fi_getopt(fid, FI_OPT_ENDPOINT, row->option, again, &len));
	CHECK_EQ(again[0], value[0]);
}

/* ---- fi_control */

#define UNKNOWN_COMMAND	9999

/* Every command without its argument, and one that nobody knows. */
static void check_commands(const char *what, struct fid *fid)
{
	int command, ret;

	for (command = FI_GETFIDFLAG; command <= FI_GET_FD; command++) {
		/* the two that may have none */
		if (command == FI_ENABLE || command == FI_FLUSH_WORK)
			continue;
		note("%s, command %d", what, command);
		ret = fi_control(fid, command, NULL);
		CHECK(ret == -FI_ENOSYS || ret == -FI_EINVAL);
	}
	note("%s", what);
	CHECK_RET(fi_control(fid, UNKNOWN_COMMAND, NULL), -FI_ENOSYS);
	note(NULL);
}

/* A command that an object does not have, or that lacks its argument, is an error and no accident. */
TEST_PROV(every_command, FI_MSG)
{
	struct pair p = pair_open(t, .eq = true);

	if (!run.ours)
		ABSENT("upstream follows NULL");
	check_commands("fabric", &p.a->fabric->fid);
	check_commands("domain", &p.a->domain->fid);
	check_commands("completion queue", &p.a->tx_cq->fid);
	check_commands("event queue", &p.a->eq->fid);
	check_commands("endpoint", &p.a->ep->fid);
	if (p.a->av)
		check_commands("address vector", &p.a->av->fid);
	if (p.listener)
		check_commands("passive endpoint", &p.listener->pep->fid);
	check_link(p.a, p.b);
}

/* And of counters, and of memory regions. */
TEST_PROV(every_command_of_a_counter, FI_MSG)
{
	struct side *s;
	struct fid_cntr *cntr;
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };

	if (!run.ours)
		ABSENT("upstream follows NULL");
	s = domain_side(t);
	MUST(fi_cntr_open(s->domain, &attr, &cntr, NULL));
	check_commands("counter", &cntr->fid);
	MUST(fi_close(&cntr->fid));
}

/* Each command of fi_control(3) that a region knows works; the others are refused. */
TEST_PROV(every_command_of_a_region, FI_RMA)
{
	struct side *s;
	struct fid_mr *mr;
	uint8_t buf[64];

	if (!run.ours)
		ABSENT("upstream follows NULL");
	s = domain_side(t);
	MUST(fi_mr_reg(s->domain, buf, sizeof(buf), FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL));
	check_commands("memory region", &mr->fid);
	MUST(fi_close(&mr->fid));
}

/* ---- fi_open */

struct open_row {
	const char *name, *object;
	uint32_t version;
	uint64_t flags;
	size_t attr_len;
	int ret;
};

static const struct open_row open_rows[] = {
	{ "unknown", "no such object", FI_VERSION(1, 13), 0, 0, -FI_ENOSYS },
	{ "mr_cache_flags", "mr_cache", FI_VERSION(1, 13), 1, 0, -FI_EBADFLAGS },
	{ "too_new", "logging", FI_VERSION(99, 0), 0, 0, -FI_ENOSYS },
	{ "flags", "logging", FI_VERSION(1, 14), 1, 0, -FI_EBADFLAGS },
	{ "attr", "logging", FI_VERSION(1, 14), 0, 8, -FI_EINVAL },
	{ "nameless", NULL, FI_VERSION(1, 14), 0, 0, -FI_EINVAL },
};

/* A name that is no object's, and calls in the wrong form. */
TEST_TABLE(open_refused, open_rows, 0, .alone = true)
{
	const struct open_row *row = ROW(open_rows);
	struct fid *fid = NULL;
	uint64_t attr = 0;

	if (!run.ours)
		ABSENT("upstream has other objects");
	CHECK_RET(fi_open(row->version, row->object, row->attr_len ? &attr : NULL, row->attr_len, row->flags,
			  &fid, NULL), row->ret);
	CHECK(!fid);
}
