/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process that gets stuck as it is told. player TYPE [PROVIDER]: opens an endpoint (rdm, dgram), or a passive one
 * (msg), says "name HEX", and obeys lines on its standard input; it answers each with "ok". It makes no call of the
 * library but those:
 *
 *	peer HEX		insert an address; the first is 0
 *	send PEER TAG LEN FLAG	post a send, tagged where the provider has tags; FLAG is none, delivery, more
 *	trigger PEER TAG LEN N	the same, triggered when a counter that nothing counts on reaches N
 *	recv PEER TAG LEN	post a receive from a peer (-1: any)
 *	region LEN		register memory, and say "region ADDR KEY"
 *	read|write|fetch|atomic PEER LEN ADDR KEY FLAG		FLAG is none, fence, delivery
 *	join N			begin to join a group of the first N addresses
 *	joined			make progress until the join is complete
 *	barrier			begin a barrier in that group
 *	connect HEX		MSG: connect, without waiting for the answer
 *	request			MSG: make progress until there is a connection request
 *	accept			MSG: accept it
 *	connected		MSG: make progress until the endpoint is connected
 *	fork			make a child that rests, and say "child PID"
 *	exec			become another program, which rests
 *	arrived			make progress until the completion queue has an entry
 *	rest			nothing: it ends a look
 *	look			make progress until the next line
 *	sleep			fi_cq_sread() for ever
 *	count N			fi_cntr_wait() for ever
 *
 * Who waits here sleeps between two progress calls, since other tests want the processor.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>

#define BUF_LEN	(64u << 20)
#define NAP_MS	1		/* between two progress calls */

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_ep *ep;
static struct fid_pep *pep;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_cntr *cntr;
static struct fid_av *av;
static struct fid_mr *mr;
static struct fid_mc *group;
static struct fi_info *asks;	/* of a connection request */
static const char *provider = "tcp";
static void *desc;
static char *buf;

#define MUST(call)									\
	do {										\
		long must = (long) (call);						\
											\
		if (must < 0) {								\
			printf("failed: %s: %s\n", #call, fi_strerror((int) -must));	\
			exit(1);							\
		}									\
	} while (0)

static void say_name(struct fid *fid)
{
	unsigned char name[64];
	size_t len = sizeof(name);

	MUST(fi_getname(fid, name, &len));
	printf("name ");
	for (size_t i = 0; i < len; i++)
		printf("%02x", name[i]);
	printf("\n");
}

static size_t read_hex(const char *hex, unsigned char *to, size_t size)
{
	size_t len = 0;

	while (len < size && sscanf(hex + 2 * len, "%2hhx", &to[len]) == 1)
		len++;
	return len;
}

static void open_endpoint(struct fi_info *from)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	MUST(fi_domain(fabric, from, &domain, NULL));
	MUST(fi_endpoint(domain, from, &ep, NULL));
	MUST(fi_cq_open(domain, &cq_attr, &cq, NULL));
	MUST(fi_cntr_open(domain, &cntr_attr, &cntr, NULL));
	MUST(fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV));
	MUST(fi_ep_bind(ep, &cntr->fid, FI_SEND | (info->caps & FI_RMA ? FI_READ | FI_WRITE : 0)));
	if (info->ep_attr->type == FI_EP_MSG || (info->caps & FI_COLLECTIVE))
		MUST(fi_ep_bind(ep, &eq->fid, 0));
	if (info->ep_attr->type != FI_EP_MSG) {
		MUST(fi_av_open(domain, &av_attr, &av, NULL));
		MUST(fi_ep_bind(ep, &av->fid, 0));
	}
	MUST(fi_enable(ep));
	if (info->domain_attr->mr_mode & FI_MR_LOCAL) {
		MUST(fi_mr_reg(domain, buf, BUF_LEN, FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
			       FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
		desc = fi_mr_desc(mr);
	}
}

/* What a provider has of the abilities that players use. */
static uint64_t caps_of(enum fi_ep_type type)
{
	if (type == FI_EP_DGRAM)
		return FI_MSG;
	if (type == FI_EP_MSG)
		return FI_MSG | FI_RMA | FI_ATOMIC;
	return FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_COLLECTIVE | FI_TRIGGER;
}

static void open_all(const char *type)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };

	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = !strcmp(type, "msg") ? FI_EP_MSG : !strcmp(type, "rdm") ? FI_EP_RDM : FI_EP_DGRAM;
	hints->caps = caps_of(hints->ep_attr->type);
	hints->mode = FI_CONTEXT;
	hints->domain_attr->data_progress = hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL;
	MUST(fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_eq_open(fabric, &eq_attr, &eq, NULL));
	buf = calloc(1, BUF_LEN);
	if (!strcmp(type, "msg")) {
		MUST(fi_passive_ep(fabric, info, &pep, NULL));
		MUST(fi_pep_bind(pep, &eq->fid, 0));
		MUST(fi_listen(pep));
		say_name(&pep->fid);
	} else {
		open_endpoint(info);
		say_name(&ep->fid);
	}
}

static uint64_t flag_of(const char *name)
{
	return !strcmp(name, "delivery") ? FI_DELIVERY_COMPLETE : !strcmp(name, "fence") ? FI_FENCE :
	       !strcmp(name, "more") ? FI_MORE : 0;
}

static void do_send(fi_addr_t peer, uint64_t tag, size_t len, uint64_t flags, void *context)
{
	struct iovec iov = { buf, len };
	struct fi_msg_tagged tagged = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = peer, .tag = tag, .context = context,
	};
	struct fi_msg msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = peer, .context = context };

	if (info->caps & FI_TAGGED)
		MUST(fi_tsendmsg(ep, &tagged, flags | FI_COMPLETION));
	else
		MUST(fi_sendmsg(ep, &msg, flags | FI_COMPLETION));
}

static void do_trigger(fi_addr_t peer, uint64_t tag, size_t len, size_t threshold)
{
	static struct fi_triggered_context context = { .event_type = FI_TRIGGER_THRESHOLD };
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *idle;

	MUST(fi_cntr_open(domain, &attr, &idle, NULL));
	context.trigger.threshold.cntr = idle;
	context.trigger.threshold.threshold = threshold;
	do_send(peer, tag, len, FI_TRIGGER, &context);
}

static void do_recv(fi_addr_t peer, uint64_t tag, size_t len)
{
	if (info->caps & FI_TAGGED)
		MUST(fi_trecv(ep, buf, len, desc, peer, tag, 0, NULL));
	else
		MUST(fi_recv(ep, buf, len, desc, peer, NULL));
}

static void do_access(const char *what, fi_addr_t peer, size_t len, uint64_t addr, uint64_t key, const char *flag)
{
	struct iovec iov = { buf, len };
	struct fi_rma_iov rma = { addr, len, key };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = peer, .rma_iov = &rma, .rma_iov_count = 1,
	};
	uint64_t flags = flag_of(flag) | FI_COMPLETION;

	if (!strcmp(what, "read"))
		MUST(fi_readmsg(ep, &msg, flags));
	else if (!strcmp(what, "write"))
		MUST(fi_writemsg(ep, &msg, flags));
	else if (!strcmp(what, "atomic"))
		MUST(fi_atomic(ep, buf, 1, desc, peer, addr, key, FI_UINT64, FI_SUM, NULL));
	else
		MUST(fi_fetch_atomic(ep, buf, 1, desc, buf + 64, desc, peer, addr, key, FI_UINT64, FI_SUM, NULL));
}

static void do_region(size_t len)
{
	if (!mr)
		MUST(fi_mr_reg(domain, buf, len, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
	printf("region %llu %llu\n", (unsigned long long) (uintptr_t) buf, (unsigned long long) fi_mr_key(mr));
}

/* Make progress until there is another line. */
static void do_look(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	struct fi_eq_cm_entry event;
	uint32_t kind;

	while (!poll(&input, 1, NAP_MS)) {
		if (eq)
			fi_eq_read(eq, &kind, &event, sizeof(event), 0);
		if (cq && fi_cq_read(cq, &entry, 1) == -FI_EAVAIL)
			fi_cq_readerr(cq, &err, 0);
	}
}

/* Make progress until the event queue has an event of this kind. */
static void await(uint32_t kind, struct fi_eq_cm_entry *event)
{
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[256];
	} entry;
	uint32_t found = 0;
	ssize_t ret = 0;

	while (found != kind) {
		ret = fi_eq_read(eq, &found, &entry, sizeof(entry), 0);
		if (ret != -FI_EAGAIN)
			MUST(ret);
		if (cq)
			fi_cq_read(cq, NULL, 0);
		if (found != kind)
			poll(NULL, 0, NAP_MS);
	}
	*event = entry.cm;
}

/* Make progress until the completion queue has an entry. */
static void do_arrived(void)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN)
		poll(NULL, 0, NAP_MS);
	MUST(ret);
}

static void do_join(size_t cnt)
{
	struct fi_av_set_attr attr = { .count = cnt, .start_addr = 0, .end_addr = cnt - 1, .stride = 1 };
	struct fid_av_set *set;

	MUST(fi_av_set(av, &attr, &set, NULL));
	MUST(fi_join_collective(ep, FI_ADDR_NOTAVAIL, set, 0, &group, NULL));
}

/* MSG endpoints. False: it is another command. */
static bool connect_as_told(const char *word, const char *hex)
{
	struct fi_eq_cm_entry event;
	unsigned char name[64];

	if (!strcmp(word, "connect")) {
		read_hex(hex, name, sizeof(name));
		open_endpoint(info);
		MUST(fi_connect(ep, name, NULL, 0));
	} else if (!strcmp(word, "request")) {
		await(FI_CONNREQ, &event);
		asks = event.info;
	} else if (!strcmp(word, "accept")) {
		open_endpoint(asks);
		MUST(fi_accept(ep, NULL, 0));
	} else if (!strcmp(word, "connected")) {
		await(FI_CONNECTED, &event);
	} else {
		return false;
	}
	return true;
}

/* Collectives, likewise. */
static bool join_as_told(const char *word, const char *cnt)
{
	struct fi_eq_cm_entry event;

	if (!strcmp(word, "join"))
		do_join(strtoull(cnt, NULL, 0));
	else if (!strcmp(word, "joined"))
		await(FI_JOIN_COMPLETE, &event);
	else if (!strcmp(word, "barrier"))
		MUST(fi_barrier(ep, fi_mc_addr(group), NULL));
	else
		return false;
	return true;
}

static void do_fork(void)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	MUST(child);
	printf("child %d\n", (int) child);
}

static void obey(char *line)
{
	char word[16], a[512], b[32] = "", c[32] = "", d[32] = "", e[32] = "";
	struct fi_cq_tagged_entry entry;
	unsigned char name[64];

	if (sscanf(line, "%15s %511s %31s %31s %31s %31s", word, a, b, c, d, e) < 1)
		return;
	if (!strcmp(word, "peer")) {
		read_hex(a, name, sizeof(name));
		MUST(fi_av_insert(av, name, 1, NULL, 0, NULL));
	} else if (!strcmp(word, "send")) {
		do_send(strtoull(a, NULL, 0), strtoull(b, NULL, 0), strtoull(c, NULL, 0), flag_of(d), NULL);
	} else if (!strcmp(word, "trigger")) {
		do_trigger(strtoull(a, NULL, 0), strtoull(b, NULL, 0), strtoull(c, NULL, 0), strtoull(d, NULL, 0));
	} else if (!strcmp(word, "recv")) {
		do_recv(*a == '-' ? FI_ADDR_UNSPEC : strtoull(a, NULL, 0), strtoull(b, NULL, 0), strtoull(c, NULL, 0));
	} else if (!strcmp(word, "region")) {
		do_region(strtoull(a, NULL, 0));
	} else if (!strcmp(word, "read") || !strcmp(word, "write") || !strcmp(word, "fetch") ||
		   !strcmp(word, "atomic")) {
		do_access(word, strtoull(a, NULL, 0), strtoull(b, NULL, 0), strtoull(c, NULL, 0),
			  strtoull(d, NULL, 0), e);
	} else if (!strcmp(word, "arrived")) {
		do_arrived();
	} else if (!connect_as_told(word, a)) {
		join_as_told(word, a);
	}
	printf("ok\n");
	if (!strcmp(word, "fork"))
		do_fork();
	if (!strcmp(word, "exec"))
		execlp("cat", "cat", NULL);
	if (!strcmp(word, "look"))
		do_look();
	else if (!strcmp(word, "sleep"))
		fi_cq_sread(cq, &entry, 1, NULL, -1);
	else if (!strcmp(word, "count"))
		fi_cntr_wait(cntr, strtoull(a, NULL, 0), -1);
}

int main(int argc, char **argv)
{
	char line[1024];
	size_t len = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2)
		provider = argv[2];
	open_all(argc > 1 ? argv[1] : "rdm");
	/* unbuffered, so that poll() knows whether there is another line */
	while (read(0, &line[len], 1) == 1) {
		if (line[len] == '\n' || len == sizeof(line) - 2) {
			line[len] = 0;
			len = 0;
			obey(line);
		} else {
			len++;
		}
	}
	return 0;
}
