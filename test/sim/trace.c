/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Logs of the code for the models of test/model (replay.pml says what an event is):
 *
 *   trace credit|parking|keys FROM COUNT
 *
 * Each seed is one log of two nodes in the simulated network, whose connection nothing disturbs. The frames come from
 * the bytes on the wire (frames.h). What no frame shows, the state of the connection, comes from the library's memory,
 * between two calls.
 */
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "base/bits.h"
#include "sim/frames.h"
#include "sim/net.h"
#include "sim/trace.h"
#include "tcp/params/params.h"
#include "tcp/peer/peers.h"
#include "tcp/stream/stream.h"

#define MESSAGES	16		/* that each node sends; those of credit.pml */
#define LEN		200		/* too long for a debt */
#define UNIT		(LEN + TCP_CREDIT_OVERHEAD)
#define PARKS		3		/* by each node; those of parking.pml */
#define STREAMS		14
#define STEPS		100000
#define ATTACK_STEPS	700

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer, stranger;	/* the third node */
	unsigned sent, posted, done, gone, parks;
	uint8_t order[MESSAGES];	/* of its receives */
	uint8_t out[MESSAGES][LEN], in[MESSAGES][LEN];
	unsigned contexts[2][MESSAGES];	/* of receives and sends: their messages */
};

static struct node nodes[NODES];

#define FRAMES		1024		/* of a connection and direction */

/* By connection and sender: the messages that its frames are about, and, by the ids that it gives, those that it has
 * announced, and for which it has asked. */
static struct {
	uint8_t of_frame[FRAMES], of_rts[256], of_data[256];
} named[FRAME_CONNS][NODES];

static _Noreturn void fail(const char *what, int ret)
{
	fprintf(stderr, "trace: %s: %s\n", what, fi_strerror(-ret));
	exit(2);
}

#define MUST(call) do { int ret_ = (int) (call); if (ret_) fail(#call, ret_); } while (0)

static struct tcp_ep *ep_of(const struct node *node)
{
	return fab_container(node->ep, struct tcp_ep, base.ep_fid);
}

/* The connection to the other node, or NULL. */
static struct tcp_conn *conn_of(const struct node *node)
{
	struct tcp_life *life = fab_list_first(&ep_of(node)->rdm.peers->lives, struct tcp_life, link);

	return life ? &life->conn : NULL;
}

/* ---- what is said ---- */

static const struct scenario *scenario;

void trace_say(const char *word, unsigned node, unsigned count, ...)
{
	va_list args;

	printf("%s %u", word, node);
	va_start(args, count);
	for (unsigned i = 0; i < count; i++)
		printf(" %d", va_arg(args, int));
	va_end(args);
	printf("\n");
}

/* A call of an application, or its result, about a message. */
static void say_call(const char *word, unsigned n, unsigned number)
{
	if (!scenario->meddle)
		trace_say(word, n, 1, (int) number);
}

static void say_frame(const struct frame *frame, unsigned number)
{
	trace_say(frame->got ? "got" : "sent", frame->end.node, 2, frame->type + (frame->cm ? TRACE_CM : 0), number);
}

/* ---- credit and rendezvous ---- */

static unsigned credit_prepare(void)
{
	unsigned limit = 1 + net_random(5);

	tcp_params.credit = limit * UNIT;
	return limit;
}

/* The part of a header behind its base. */
static void part_of(const struct frame *frame, void *part, size_t len)
{
	memcpy(part, frame->head + sizeof(struct tcp_hdr), len);
}

/* The number of a frame that is being sent. */
static unsigned credit_number(const struct frame *frame)
{
	unsigned me = frame->end.node, other = 1 - me, conn = frame->end.conn;
	struct tcp_credit credit;
	struct tcp_xdata xdata;
	struct tcp_rts rts;
	struct tcp_cts cts;
	uint64_t tag;

	switch (frame->type) {
	case TCP_WIRE_TAG:
		part_of(frame, &tag, sizeof(tag));
		return (unsigned) tag;
	case TCP_WIRE_XRTS:
		part_of(frame, &rts, sizeof(rts));
		named[conn][me].of_rts[rts.id & 255] = (uint8_t) rts.tag;
		return (unsigned) rts.tag;
	case TCP_WIRE_XCTS:
		part_of(frame, &cts, sizeof(cts));
		named[conn][me].of_data[cts.rx_id & 255] = named[conn][other].of_rts[cts.id & 255];
		return named[conn][other].of_rts[cts.id & 255];
	case TCP_WIRE_XDATA:
		part_of(frame, &xdata, sizeof(xdata));
		return named[conn][other].of_data[xdata.rx_id & 255];
	case TCP_WIRE_CREDIT:
		part_of(frame, &credit, sizeof(credit));
		/* a number that the model has not, unless it is of whole messages */
		return credit.len % UNIT ? 255 : (unsigned) (credit.len / UNIT);
	default:
		return 0;	/* the model has no such frame */
	}
}

static uint8_t *number_of(const struct frame *frame)
{
	unsigned sender = frame->got ? 1 - frame->end.node : frame->end.node;

	return &named[frame->end.conn][sender].of_frame[frame->nth % FRAMES];
}

/* A frame has its number from when it begins: ids are used again. */
static void credit_begun(const struct frame *frame)
{
	if (!frame->cm)
		*number_of(frame) = (uint8_t) credit_number(frame);
}

static void credit_frame(const struct frame *frame)
{
	if (!frame->cm)
		say_frame(frame, *number_of(frame));
}

/* The log tells of a frame when all of it was read. */
static bool is_mid_frame(const struct tcp_conn *conn)
{
	return conn->rx.phase != TCP_RX_HDR || conn->rx.hdr_have;
}

static void credit_state(unsigned n)
{
	const struct tcp_conn *conn = conn_of(&nodes[n]);

	if (!conn || conn->state != TCP_CONN_UP || is_mid_frame(conn))
		return;
	trace_say("state", n, 6, (int) (conn->tx.credit % UNIT ? -1 : conn->tx.credit / UNIT), (int) conn->tx.rts.cnt,
	    (int) (conn->msg.unexp_len / UNIT), (int) conn->msg.announced_cnt, (int) conn->msg.rndv.cnt,
	    (int) (conn->owed.credit / UNIT));
}

/* ---- parking and resuming ---- */

#define END_TYPE	255

static struct {
	uint8_t request;		/* its number among those of the node that has asked */
	bool streams;			/* it was accepted */
	uint8_t stream;			/* its number then */
	bool ended[NODES];		/* this end has read the other's end, or closed its own */
} conns[FRAME_CONNS];

static uint8_t request_cnt[NODES], stream_cnt;

static unsigned parking_prepare(void)
{
	memset(conns, 0, sizeof(conns));
	memset(request_cnt, 0, sizeof(request_cnt));
	stream_cnt = 0;
	return 0;
}

static void parking_hello(const struct frame *frame)
{
	uint32_t conn = frame->end.conn;

	if (!frame->got && frame->type == TCP_CM_CONNREQ)
		conns[conn].request = ++request_cnt[frame->end.node];
	if (!frame->got && frame->type == TCP_CM_CONNRESP) {
		conns[conn].streams = true;
		conns[conn].stream = stream_cnt++;
	}
	say_frame(frame, conns[conn].request);
}

static void parking_frame(const struct frame *frame)
{
	uint64_t tag = 0;

	if (frame->cm) {
		parking_hello(frame);
		return;
	}
	if (frame->type == TCP_WIRE_TAG)
		part_of(frame, &tag, sizeof(tag));
	trace_say(frame->got ? "got" : "sent", frame->end.node, 3, frame->type, (int) tag,
	    (int) conns[frame->end.conn].stream);
}

/* The end of a stream, for an end that has not seen it yet. */
static void parking_end(const struct net_end *end, const char *word)
{
	bool *ended = &conns[end->conn].ended[end->node];

	if (conns[end->conn].streams && !*ended)
		trace_say(word, end->node, 3, END_TYPE, 0, (int) conns[end->conn].stream);
	*ended = true;
}

static void parking_closed(const struct net_end *end)
{
	parking_end(end, "sent");
}

static void parking_got_end(const struct net_end *end)
{
	parking_end(end, "got");
}

static void parking_part(const struct net_end *end)
{
	if (conns[end->conn].streams)
		trace_say("part", end->node, 1, (int) conns[end->conn].stream);
}

static void parking_state(unsigned n)
{
	const struct tcp_conn *conn = conn_of(&nodes[n]);

	if (conn && !conn->tx.blocked && !is_mid_frame(conn))
		trace_say("state", n, 2, (int) conn->state, (int) conn->park.asked);
}

/* ---- two nodes ---- */

static struct sockaddr_in address_of(unsigned n)
{
	return (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htons((uint16_t) (PORT + n)),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static void node_open(unsigned n)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *hints = fi_allocinfo();
	struct sockaddr_in other = address_of(1 - n), stranger = address_of(NODES);
	struct node *node = &nodes[n];
	char service[8];

	net_node(n);
	snprintf(service, sizeof(service), "%u", PORT + n);
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->caps = FI_TAGGED;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup("tcp");
	if (scenario->key) {
		hints->ep_attr->auth_key = (uint8_t *) strdup(scenario->key);
		hints->ep_attr->auth_key_size = strlen(scenario->key);
	}
	MUST(fi_getinfo(FI_VERSION(2, 6), "127.0.0.1", service, FI_SOURCE, hints, &node->info));
	fi_freeinfo(hints);
	MUST(fi_fabric(node->info->fabric_attr, &node->fabric, NULL));
	MUST(fi_domain(node->fabric, node->info, &node->domain, NULL));
	MUST(fi_cq_open(node->domain, &cq_attr, &node->cq, NULL));
	MUST(fi_av_open(node->domain, &av_attr, &node->av, NULL));
	MUST(fi_endpoint(node->domain, node->info, &node->ep, NULL));
	MUST(fi_ep_bind(node->ep, &node->av->fid, 0));
	MUST(fi_ep_bind(node->ep, &node->cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_enable(node->ep));
	MUST(fi_av_insert(node->av, &other, 1, &node->peer, 0, NULL) - 1);
	MUST(fi_av_insert(node->av, &stranger, 1, &node->stranger, 0, NULL) - 1);
}

static void node_close(unsigned n)
{
	struct node *node = &nodes[n];

	net_node(n);
	MUST(fi_close(&node->ep->fid));
	MUST(fi_close(&node->cq->fid));
	MUST(fi_close(&node->av->fid));
	MUST(fi_close(&node->domain->fid));
	MUST(fi_close(&node->fabric->fid));
	fi_freeinfo(node->info);
}

/* The order of a node's receives: one of them. */
static void choose_order(struct node *node)
{
	for (uint8_t i = 0; i < MESSAGES; i++) {
		uint8_t at = scenario->any_order ? (uint8_t) net_random(i + 1U) : i;

		node->order[i] = node->order[at];
		node->order[at] = i;
		node->contexts[0][i] = node->contexts[1][i] = i;
	}
}

static void send_next(unsigned n)
{
	struct node *node = &nodes[n];
	unsigned number = node->sent++;

	say_call("ask", n, number);
	memset(node->out[number], (int) number, LEN);
	MUST(fi_tsend(node->ep, node->out[number], LEN, NULL, node->peer, number, &node->contexts[1][number]));
}

/* A message to the third node, which never gets it. */
static void send_stranger(struct node *node)
{
	static unsigned none;

	fi_tsend(node->ep, node->out[0], LEN, NULL, node->stranger, MESSAGES, &none);
}

static void post_next(unsigned n)
{
	struct node *node = &nodes[n];
	unsigned number = node->order[node->posted++];

	say_call("post", n, number);
	MUST(fi_trecv(node->ep, node->in[number], LEN, NULL, node->peer, number, 0, &node->contexts[0][number]));
}

static void read_completions(unsigned n)
{
	struct node *node = &nodes[n];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = { 0 };
	ssize_t ret;

	while ((ret = fi_cq_read(node->cq, &entry, 1)) == 1) {
		const unsigned *number = entry.op_context;
		bool receives = entry.flags & FI_RECV;

		say_call(receives ? "done" : "gone", n, *number);
		*(receives ? &node->done : &node->gone) += 1;
	}
	if (ret == -FI_EAVAIL && scenario->meddle)
		fi_cq_readerr(node->cq, &error, 0);
	else if (ret != -FI_EAGAIN)
		fail("fi_cq_read", (int) ret);
}

/* Ask the other end to park, where the code may. */
static void park(unsigned n)
{
	struct tcp_conn *conn = conn_of(&nodes[n]);

	if (!conn || conn->state != TCP_CONN_UP || conn->park.asked || !tcp_conn_idle(conn))
		return;
	nodes[n].parks++;
	trace_say("park", n, 0);
	tcp_park_ask(conn);
}

static void step(unsigned n)
{
	struct node *node = &nodes[n];
	uint32_t what = net_random(10);

	net_node(n);
	if (what < 2 && node->sent < MESSAGES)
		send_next(n);
	else if (what < 4 && node->posted < MESSAGES)
		post_next(n);
	else if (what == 4 && scenario->meddle && !net_random(8))
		send_stranger(node);
	else if (what == 4 && scenario->parks && node->parks < PARKS)
		park(n);
	else
		read_completions(n);
	if (scenario->state)
		scenario->state(n);
}

static bool is_over(unsigned steps)
{
	if (scenario->meddle)
		return steps == ATTACK_STEPS;
	for (unsigned n = 0; n < NODES; n++) {
		if (nodes[n].done < MESSAGES || nodes[n].gone < MESSAGES)
			return false;
	}
	return true;
}

static void play(uint64_t seed)
{
	static const struct net_attr attrs[] = {
		{ .segment = 1 << 20, .room = 100000 },
		{ .segment = 1 << 20, .room = 100000, .delay_ns = 200000 },
		{ .segment = 100, .room = 5000, .delay_ns = 20000, .short_io = 5 },
		{ .segment = 1460, .room = 700, .delay_ns = 1000000, .short_io = 3 },
	};
	unsigned limit, steps = 0;

	net_begin(fab_mix64(seed), &attrs[seed % fab_countof(attrs)]);
	memset(nodes, 0, sizeof(nodes));
	memset(named, 0, sizeof(named));
	printf("log %s-%llu\n", scenario->name, (unsigned long long) seed);
	frames_watch(&scenario->watch);
	limit = scenario->prepare();
	if (limit)
		trace_say("limit", 0, 1, (int) limit);
	for (unsigned n = 0; n < NODES; n++) {
		node_open(n);
		choose_order(&nodes[n]);
		while (!scenario->any_order && nodes[n].posted < MESSAGES)
			post_next(n);
	}
	while (!is_over(steps)) {
		if (scenario->meddle)
			scenario->meddle();
		step(net_random(NODES));
		net_pass_ns(1U << net_random(22));
		if (++steps == STEPS) {
			fprintf(stderr, "trace: seed %llu does not end\n", (unsigned long long) seed);
			break;
		}
	}
	printf("end\n");
	net_watch(NULL);
	for (unsigned n = 0; n < NODES; n++)
		node_close(n);
	net_end();
}

static const struct scenario credit = {
	.name = "credit", .prepare = credit_prepare, .watch = { .begun = credit_begun, .frame = credit_frame },
	.state = credit_state, .any_order = true,
};
static const struct scenario parking = {
	.name = "parking", .prepare = parking_prepare, .state = parking_state, .parks = true,
	.watch = { .frame = parking_frame, .got_part = parking_part, .closed = parking_closed,
		   .got_end = parking_got_end },
};

int main(int argc, char **argv)
{
	static const struct scenario *const all[] = { &credit, &parking, &trace_keys };

	tcp_params.local = false;
	for (size_t i = 0; i < fab_countof(all) && argc == 4; i++) {
		uint64_t from = strtoull(argv[2], NULL, 0), cnt = strtoull(argv[3], NULL, 0);

		if (strcmp(argv[1], all[i]->name))
			continue;
		scenario = all[i];
		for (uint64_t seed = from; seed < from + cnt; seed++)
			play(seed);
		return 0;
	}
	fprintf(stderr, "usage: trace credit|parking|keys FROM COUNT\n");
	return 2;
}
