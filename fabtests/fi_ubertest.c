/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_ubertest: every combination of a sweep file, one after the other. The client has the file and tells the server
 * each combination over the control channel; both open everything anew for it, transfer both ways, check, close.
 * What the provider does not offer is skipped; the first failure ends the sweep, which can go on from there (-y).
 */
#include "lib/calls.h"
#include "lib/sweep.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA 0x5a

struct settings {
	const char *file;
	uint32_t first, last;           /* numbers of combinations; last 0: all */
	struct pp_opts opts;            /* of the combination */
	struct sweep_case combination;
	const struct call *call;
	struct func_ep ep;
	struct fid_cntr *tx_cntr, *rx_cntr;
	uint64_t tx_base, rx_base;
	struct func_buf mem, result, target;
	struct func_region remote;
	uint64_t passed, skipped;
	bool verbose;
};

static const struct util_opt options[] = {
	{ 'u', "sweep", "FILE", "client: the combinations, a file or the name of one that is installed:\n"
				"quick, verify, all (default: quick)" },
	{ 'y', "first", "NUMBER", "client: start with this combination" },
	{ 'z', "last", "NUMBER", "client: end with this one" },
	{ 'l', "list-run", NULL, "client: a line for each combination" },
	{ 'x', "exit", NULL, "the server always ends with its client: taken for scripts" },
	{ 'q', "quit-port", "PORT", "taken for scripts: -B and -P are the ports" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	struct settings *settings = func->own;

	switch (key) {
	case 'u':
		settings->file = arg;
		break;
	case 'y':
		return func_number("-y (a combination)", arg, 1, UINT32_MAX, &settings->first);
	case 'z':
		return func_number("-z (a combination)", arg, 1, UINT32_MAX, &settings->last);
	case 'l':
		settings->verbose = true;
		break;
	}
	return 0;
}

static uint64_t value(const struct settings *settings, enum sweep_key key)
{
	return settings->combination.value[key];
}

/* What the combination asks of the provider. */
static void hints(struct func *func, struct fi_info *hints)
{
	const struct settings *settings = func->own;

	hints->caps = settings->call->caps | FI_MSG;
	hints->mode |= FI_RX_CQ_DATA;
	hints->domain_attr->mr_mode = (int) value(settings, SWEEP_MR);
	if (settings->call->data)
		hints->domain_attr->cq_data_size = 1;
	if (settings->call->inject)
		hints->tx_attr->inject_size = value(settings, SWEEP_SIZE);
	hints->tx_attr->iov_limit = settings->call->iov_cnt;
}

static int bind_cntrs(struct func *func, struct func_ep *ep, void *arg)
{
	struct settings *settings = arg;

	if (!value(settings, SWEEP_COMP))
		return 0;
	FUNC_TRY(func_cntr_open(func, &settings->tx_cntr));
	FUNC_TRY(func_cntr_open(func, &settings->rx_cntr));
	FUNC_CALL(func, fi_ep_bind(ep->ep, &settings->tx_cntr->fid, settings->call->cntr));
	FUNC_CALL(func, fi_ep_bind(ep->ep, &settings->rx_cntr->fid, FI_RECV));
	return 0;
}

/* Both ends can do the call, with messages of this size. */
static int agree_limits(struct func *func)
{
	struct settings *settings = func->own;
	const struct call *call = settings->call;
	size_t count = 0;
	bool fits;

	fits = value(settings, SWEEP_SIZE) <= func->pp->info->ep_attr->max_msg_size;
	if (call->valid)
		fits = fits && !call->valid(settings->ep.ep, FI_UINT8, call->op, &count) &&
		       value(settings, SWEEP_SIZE) <= count;
	return func_agree(func, fits ? 0 : -FI_ENODATA);
}

static int open_case(struct func *func)
{
	struct settings *settings = func->own;
	struct func_ep_attr attr = { .format = (enum fi_cq_format) value(settings, SWEEP_FORMAT), .bind = bind_cntrs,
				     .arg = settings, .buf_len = 64 };
	bool counters = value(settings, SWEEP_COMP);
	size_t size = value(settings, SWEEP_SIZE);

	settings->tx_cntr = settings->rx_cntr = NULL;
	settings->tx_base = settings->rx_base = 0;
	/* With counters the queue has errors alone. */
	attr.cq_flags = counters ? FI_SELECTIVE_COMPLETION : 0;
	FUNC_TRY(func_open(func));
	FUNC_TRY(func_ep_open(func, &settings->ep, &attr));
	FUNC_TRY(agree_limits(func));
	FUNC_TRY(func_buf(func, &settings->mem, size, FI_SEND | FI_RECV | FI_READ | FI_WRITE));
	if (settings->call->caps & (FI_MSG | FI_TAGGED))
		return 0;
	FUNC_TRY(func_buf(func, &settings->result, size, FI_READ | FI_WRITE));
	FUNC_TRY(func_buf(func, &settings->target, size, FI_REMOTE_READ | FI_REMOTE_WRITE));
	return func_exchange_regions(func, &settings->target, &settings->remote);
}

/* Until the operation is complete, by what the combination has for that. */
static int wait_for(struct func *func, struct func_op *op, struct fid_cntr *cntr, uint64_t *base, const char *what)
{
	if (!cntr)
		return func_wait(func, op, what);
	return func_wait_cntr(func, cntr, ++*base, what);
}

static int send_one(struct func *func, uint64_t seq)
{
	struct settings *settings = func->own;
	const struct call *call = settings->call;
	struct func_op op = { .done = 0 };
	struct transfer transfer = { .ep = &settings->ep, .mem = settings->mem.mem, .len = settings->mem.len,
				     .desc = settings->mem.desc, .result = settings->result.mem,
				     .result_desc = settings->result.desc, .remote = &settings->remote, .data = DATA,
				     .op = &op, .flags = settings->tx_cntr ? 0 : FI_COMPLETION };

	if (call->fetches)
		memset(transfer.mem, 0, transfer.len);
	else
		pp_fill(transfer.mem, transfer.len, seq);
	FUNC_TRY(call->post(func, call, &transfer));
	if (call->inject)
		memset(transfer.mem, 0xee, transfer.len);
	else
		FUNC_TRY(wait_for(func, &op, settings->tx_cntr, &settings->tx_base, call->name));
	return call->fetches ? pp_check(func->pp, transfer.mem, transfer.len, seq) : 0;
}

static int recv_message(struct func *func, uint64_t seq)
{
	struct settings *settings = func->own;
	struct func_op op = { .done = 0 };
	struct transfer transfer = { .ep = &settings->ep, .mem = settings->mem.mem, .len = settings->mem.len,
				     .desc = settings->mem.desc, .op = &op };

	memset(transfer.mem, 0, transfer.len);
	FUNC_TRY(call_recv(func, settings->call, &transfer));
	FUNC_TRY(func_sync(func));
	FUNC_TRY(wait_for(func, &op, settings->rx_cntr, &settings->rx_base, "a message"));
	if (settings->call->data && !settings->rx_cntr && value(settings, SWEEP_FORMAT) >= FI_CQ_FORMAT_DATA)
		FUNC_EXPECT(func, op.entry.flags & FI_REMOTE_CQ_DATA && op.entry.data == DATA,
			    "data of the completion: 0x%" PRIx64, op.entry.data);
	return pp_check(func->pp, transfer.mem, transfer.len, seq);
}

/* A small message, behind which what was done before is done at the peer. */
static int fence(struct func *func, bool send)
{
	struct settings *settings = func->own;
	struct func_ep *ep = &settings->ep;
	struct func_op op = { .done = 0 };
	struct fid_cntr *cntr = settings->call->cntr == FI_SEND ? settings->tx_cntr : NULL;

	if (send) {
		FUNC_TRY(func_sync(func));
		if (settings->tx_cntr && !cntr)
			FUNC_POST(func, fi_inject(ep->ep, ep->tx.mem, 1, ep->peer));
		else
			FUNC_POST(func, fi_send(ep->ep, ep->tx.mem, 1, ep->tx.desc, ep->peer, &op));
		return settings->tx_cntr && !cntr ? 0 : wait_for(func, &op, cntr, &settings->tx_base, "a fence");
	}
	FUNC_POST(func, fi_recv(ep->ep, ep->rx.mem, ep->rx.len, ep->rx.desc, FI_ADDR_UNSPEC, &op));
	FUNC_TRY(func_sync(func));
	return wait_for(func, &op, settings->rx_cntr, &settings->rx_base, "a fence");
}

/* RMA or an atomic, of which the owner of the memory knows nothing. */
static int remote_one(struct func *func, bool active, uint64_t seq)
{
	struct settings *settings = func->own;
	const struct call *call = settings->call;
	struct func_op stray = { .done = 0 }, consumed = { .done = 0 };
	bool consumes = call->data && (func->pp->info->mode & FI_RX_CQ_DATA ||
				       func->pp->info->rx_attr->mode & FI_RX_CQ_DATA);
	struct func_ep *ep = &settings->ep;

	if (!active) {
		if (call->fetches)
			pp_fill(settings->target.mem, settings->target.len, seq);
		else
			memset(settings->target.mem, 0, settings->target.len);
		func->stray = call->data ? &stray : NULL;
		if (consumes)
			FUNC_POST(func, fi_recv(ep->ep, ep->rx.mem, ep->rx.len, ep->rx.desc, FI_ADDR_UNSPEC,
						&consumed));
	}
	FUNC_TRY(func_sync(func));
	if (active)
		FUNC_TRY(send_one(func, seq));
	if (!active && consumes && settings->rx_cntr)
		settings->rx_base++;
	FUNC_TRY(func_sync(func));
	if (!call->fetches)
		FUNC_TRY(fence(func, active));
	FUNC_TRY(func_sync(func));
	if (active || call->fetches)
		return 0;
	/* The data arrive in the queue whatever counts completions; only that of a receive may stay away from it. */
	if (call->data && !(consumes && settings->rx_cntr))
		FUNC_WAIT(func, stray.done || consumed.done, "a completion with data");
	func->stray = NULL;
	return pp_check(func->pp, settings->target.mem, settings->target.len, seq);
}

static int transfer_both(struct func *func)
{
	struct settings *settings = func->own;
	bool message = settings->call->caps & (FI_MSG | FI_TAGGED);
	unsigned turn;
	bool active;

	for (turn = 0; turn < 2 * func->iterations; turn++) {
		active = func->client == !(turn & 1);
		if (!message) {
			FUNC_TRY(remote_one(func, active, turn));
			continue;
		}
		if (active)
			FUNC_TRY(func_sync(func));
		FUNC_TRY(active ? send_one(func, turn) : recv_message(func, turn));
	}
	return func_sync(func);
}

/* Everything that the combination has opened. */
static int close_case(struct func *func)
{
	struct pp *pp = func->pp;
	int ret = func_close_all(func), fabric_ret;

	fabric_ret = pp_fabric_close(pp);
	pp->hints = pp->info = NULL;
	pp->fabric = NULL;
	pp->eq = NULL;
	pp->pep = NULL;
	func->domain = NULL;
	func->av = NULL;
	return ret ? ret : fabric_ret;
}

/* One combination: 0, -FI_ENODATA or -FI_ENOSYS when the provider cannot do it, or what failed. */
static int run_case(struct func *func)
{
	struct settings *settings = func->own;
	int ret, close_ret;

	settings->call = &calls[value(settings, SWEEP_CALL)];
	settings->opts.ep_type = (enum fi_ep_type) value(settings, SWEEP_EP);
	settings->opts.look = (enum pp_look) value(settings, SWEEP_WAIT);
	settings->opts.av_type = (enum fi_av_type) value(settings, SWEEP_AV);
	settings->opts.progress = (enum fi_progress) value(settings, SWEEP_PROGRESS);
	settings->opts.threading = (enum fi_threading) value(settings, SWEEP_THREADING);
	ret = open_case(func);
	if (!ret)
		ret = transfer_both(func);
	func->stray = NULL;
	close_ret = close_case(func);
	return ret ? ret : close_ret;
}

/* What came from the peer is something that can be tried. */
static int check_case(struct func *func, const struct sweep_case *combination)
{
	FUNC_EXPECT(func, combination->value[SWEEP_CALL] < call_cnt && combination->value[SWEEP_SIZE] &&
		    combination->value[SWEEP_SIZE] <= 1u << 30, "a combination that makes no sense");
	return 0;
}

/* The server is told a combination; one without size is the end. */
static int tell(struct func *func, const struct sweep_case *combination)
{
	struct sweep_case told;
	unsigned i;

	for (i = 0; i < SWEEP_KEYS; i++)
		told.value[i] = htobe64(combination->value[i]);
	return pp_ctrl_send(func->pp, &told, sizeof(told), "a combination");
}

static int server(struct func *func)
{
	struct settings *settings = func->own;
	struct sweep_case told;
	unsigned i;
	int ret;

	for (;;) {
		FUNC_TRY(pp_ctrl_recv(func->pp, &told, sizeof(told), "a combination"));
		for (i = 0; i < SWEEP_KEYS; i++)
			settings->combination.value[i] = be64toh(told.value[i]);
		if (!settings->combination.value[SWEEP_SIZE])
			return 0;
		FUNC_TRY(check_case(func, &settings->combination));
		ret = run_case(func);
		if (ret && ret != -FI_ENODATA && ret != -FI_ENOSYS)
			return ret;
	}
}

static int client_once(struct func *func, uint64_t number, uint64_t cnt)
{
	struct settings *settings = func->own;
	char text[256];
	int ret;

	sweep_text(&settings->combination, text, sizeof(text));
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%" PRIu64 "/%" PRIu64 " ", number, cnt);
	FUNC_TRY(tell(func, &settings->combination));
	ret = run_case(func);
	settings->passed += !ret;
	settings->skipped += ret == -FI_ENODATA || ret == -FI_ENOSYS;
	if (settings->verbose)
		printf("%" PRIu64 ": %s: %s\n", number, text, !ret ? "passed" :
		       ret == -FI_ENODATA || ret == -FI_ENOSYS ? "skipped" : "failed");
	if (!ret || ret == -FI_ENODATA || ret == -FI_ENOSYS)
		return 0;
	printf("combination %" PRIu64 " failed: %s\nit alone: -u %s -y %" PRIu64 " -z %" PRIu64
		       "; those behind it: -y %" PRIu64 "\n",
	       number, text, settings->file, number, number, number + 1);
	return ret;
}

static int client(struct func *func)
{
	const struct sweep_case end = { .value = { 0 } };
	struct settings *settings = func->own;
	uint64_t number, cnt, last;
	struct sweep *sweep;
	int ret;

	FUNC_TRY(sweep_open(settings->file, &sweep));
	cnt = sweep_cnt(sweep);
	last = settings->last && settings->last < cnt ? settings->last : cnt;
	ret = 0;
	for (number = settings->first; number <= last && !ret; number++) {
		sweep_get(sweep, number, &settings->combination);
		ret = client_once(func, number, last);
	}
	sweep_close(sweep);
	printf("%s: %" PRIu64 " combinations: %" PRIu64 " passed, %" PRIu64 " skipped%s\n", settings->file, cnt,
	       settings->passed, settings->skipped, ret ? ", 1 failed" : "");
	FUNC_TRY(ret);
	FUNC_TRY(tell(func, &end));
	return settings->passed ? 0 : func_skip(func, "the provider can do none of these");
}

static int run(struct func *func)
{
	struct settings *settings = func->own;
	const struct pp_opts *opts = func->pp->opts;
	int ret;

	settings->opts = *opts;
	settings->opts.quiet = true;
	func->pp->opts = &settings->opts;
	ret = func->client ? client(func) : server(func);
	func->pp->opts = opts;
	return ret;
}

static int list(const char *name)
{
	struct sweep_case combination;
	struct sweep *sweep;
	uint64_t number;
	char text[256];

	if (sweep_open(name, &sweep))
		return UTIL_EXIT_USAGE;
	for (number = 1; number <= sweep_cnt(sweep); number++) {
		sweep_get(sweep, number, &combination);
		printf("%" PRIu64 ": %s\n", number, sweep_text(&combination, text, sizeof(text)));
	}
	sweep_close(sweep);
	return 0;
}

int main(int argc, char **argv)
{
	static struct settings settings = { .file = "quick", .first = 1 };
	static const struct func_program program = {
		.about = "Try every combination of a sweep file; with --list FILE alone, print them.",
		.ep_type = FI_EP_RDM,
		.caps = FI_MSG,
		.options = options,
		.take = take,
		.hints = hints,
		.no_domain = true,
		.run = run,
	};

	if (argc == 3 && !strcmp(argv[1], "--list")) {
		util_init(argv[0]);
		return list(argv[2]);
	}
	/* What a provider does not offer is skipped; it need not say why each time. */
	setenv("FI_LOG_LEVEL", "error", 0);
	return func_main(argc, argv, &program, &settings);
}
