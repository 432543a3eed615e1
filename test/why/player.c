/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process that gets stuck as it is told. player TYPE: opens an endpoint of tcp (rdm), or a passive one (msg), says
 * "name HEX", and obeys lines on its standard input; it answers each with "ok". It makes no call of the library but
 * those:
 *
 *	peer HEX		insert an address; the first is 0
 *	send PEER TAG LEN FLAG	post a tagged send; FLAG is none, delivery, more
 *	recv PEER TAG LEN	post a tagged receive from a peer (-1: any)
 *	region LEN		register memory, and say "region ADDR KEY"
 *	read|write|fetch PEER LEN ADDR KEY FLAG		FLAG is none, fence, delivery
 *	connect HEX		MSG: connect, without waiting for the answer
 *	look			make progress until the next line
 *	sleep			fi_cq_sread() for ever
 *	count N			fi_cntr_wait() for ever
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#define BUF_LEN	(64u << 20)

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

static void open_endpoint(void)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	MUST(fi_domain(fabric, info, &domain, NULL));
	MUST(fi_endpoint(domain, info, &ep, NULL));
	MUST(fi_cq_open(domain, &cq_attr, &cq, NULL));
	MUST(fi_cntr_open(domain, &cntr_attr, &cntr, NULL));
	MUST(fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV));
	MUST(fi_ep_bind(ep, &cntr->fid, FI_SEND | FI_READ | FI_WRITE));
	if (info->ep_attr->type == FI_EP_MSG) {
		MUST(fi_ep_bind(ep, &eq->fid, 0));
	} else {
		MUST(fi_av_open(domain, &av_attr, &av, NULL));
		MUST(fi_ep_bind(ep, &av->fid, 0));
	}
	MUST(fi_enable(ep));
}

static void open_all(const char *type)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };

	hints->fabric_attr->prov_name = strdup("tcp");
	hints->ep_attr->type = strcmp(type, "msg") ? FI_EP_RDM : FI_EP_MSG;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | (strcmp(type, "msg") ? FI_DIRECTED_RECV : 0);
	hints->mode = FI_CONTEXT;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	MUST(fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_eq_open(fabric, &eq_attr, &eq, NULL));
	buf = calloc(1, BUF_LEN);
	if (!strcmp(type, "msg")) {
		MUST(fi_passive_ep(fabric, info, &pep, NULL));
		MUST(fi_pep_bind(pep, &eq->fid, 0));
		MUST(fi_listen(pep));
		say_name(&pep->fid);
	} else {
		open_endpoint();
		say_name(&ep->fid);
	}
}

static uint64_t flag_of(const char *name)
{
	return !strcmp(name, "delivery") ? FI_DELIVERY_COMPLETE : !strcmp(name, "fence") ? FI_FENCE :
	       !strcmp(name, "more") ? FI_MORE : 0;
}

static void do_send(fi_addr_t peer, uint64_t tag, size_t len, const char *flag)
{
	struct iovec iov = { buf, len };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .addr = peer, .tag = tag };

	MUST(fi_tsendmsg(ep, &msg, flag_of(flag) | FI_COMPLETION));
}

static void do_access(const char *what, fi_addr_t peer, size_t len, uint64_t addr, uint64_t key, const char *flag)
{
	struct iovec iov = { buf, len };
	struct fi_rma_iov rma = { addr, len, key };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .addr = peer, .rma_iov = &rma, .rma_iov_count = 1 };
	uint64_t flags = flag_of(flag) | FI_COMPLETION;

	if (!strcmp(what, "read"))
		MUST(fi_readmsg(ep, &msg, flags));
	else if (!strcmp(what, "write"))
		MUST(fi_writemsg(ep, &msg, flags));
	else
		MUST(fi_fetch_atomic(ep, buf, 1, NULL, buf + 64, NULL, peer, addr, key, FI_UINT64, FI_SUM, NULL));
}

static void do_region(size_t len)
{
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

	while (!poll(&input, 1, 0)) {
		if (eq)
			fi_eq_read(eq, &kind, &event, sizeof(event), 0);
		if (cq && fi_cq_read(cq, &entry, 1) == -FI_EAVAIL)
			fi_cq_readerr(cq, &err, 0);
	}
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
		do_send(strtoull(a, NULL, 0), strtoull(b, NULL, 0), strtoull(c, NULL, 0), d);
	} else if (!strcmp(word, "recv")) {
		MUST(fi_trecv(ep, buf, strtoull(c, NULL, 0), NULL, *a == '-' ? FI_ADDR_UNSPEC : strtoull(a, NULL, 0),
			      strtoull(b, NULL, 0), 0, NULL));
	} else if (!strcmp(word, "region")) {
		do_region(strtoull(a, NULL, 0));
	} else if (!strcmp(word, "read") || !strcmp(word, "write") || !strcmp(word, "fetch")) {
		do_access(word, strtoull(a, NULL, 0), strtoull(b, NULL, 0), strtoull(c, NULL, 0),
			  strtoull(d, NULL, 0), e);
	} else if (!strcmp(word, "connect")) {
		read_hex(a, name, sizeof(name));
		open_endpoint();
		MUST(fi_connect(ep, name, NULL, 0));
	}
	printf("ok\n");
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
