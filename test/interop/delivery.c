/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages with FI_DELIVERY_COMPLETE over an RDM provider, between two processes that may have different libraries:
 *
 *   delivery PROVIDER                      receive, and print the endpoint's address for the other end, in hex
 *   delivery PROVIDER ADDRESS LEN TYPE     send a message of LEN bytes, TYPE is msg or tagged, and then an empty one
 *                                          without that level, after which the receiver ends
 *
 * It is linked to the symbols of libfabric 1.17, so it runs on that and on later libraries. Exits with 0 when each
 * message has completed, 1 after an error or after 20 seconds without a completion.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

__asm__(".symver fi_getinfo, fi_getinfo@FABRIC_1.3");
__asm__(".symver fi_dupinfo, fi_dupinfo@FABRIC_1.3");
__asm__(".symver fi_freeinfo, fi_freeinfo@FABRIC_1.3");

#define PATIENCE_S	20
#define LEN_MAX		(1 << 20)
#define TAG		7

/* End the process unless a call has returned 0. */
static void check(const char *what, ssize_t ret)
{
	if (!ret)
		return;
	fprintf(stderr, "%s: %zd (%s)\n", what, ret, fi_strerror((int) -ret));
	exit(EXIT_FAILURE);
}

struct ends {
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

static void open_ep(struct ends *ends, const char *provider)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;

	if (!hints)
		exit(EXIT_FAILURE);
	hints->caps = FI_MSG | FI_TAGGED;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup(provider);
	check("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	check("fi_domain", fi_domain(fabric, info, &domain, NULL));
	check("fi_av_open", fi_av_open(domain, &av_attr, &ends->av, NULL));
	check("fi_cq_open", fi_cq_open(domain, &cq_attr, &ends->cq, NULL));
	check("fi_endpoint", fi_endpoint(domain, info, &ends->ep, NULL));
	check("fi_ep_bind", fi_ep_bind(ends->ep, &ends->av->fid, 0));
	check("fi_ep_bind", fi_ep_bind(ends->ep, &ends->cq->fid, FI_TRANSMIT | FI_RECV));
	check("fi_enable", fi_enable(ends->ep));
	fi_freeinfo(hints);
}

/* Wait for a completion, and return its context. */
static void *completion(struct ends *ends)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	time_t end = time(NULL) + PATIENCE_S;
	ssize_t ret;

	while ((ret = fi_cq_read(ends->cq, &entry, 1)) == -FI_EAGAIN && time(NULL) < end)
		;
	if (ret == 1)
		return entry.op_context;
	if (ret == -FI_EAVAIL && fi_cq_readerr(ends->cq, &err, 0) == 1)
		check("completion", -err.err);
	check("fi_cq_read", ret);
	return NULL;
}

/* Repeat a call while it returns -FI_EAGAIN, with progress. */
#define POST(call) do { \
	ssize_t ret_; \
	while ((ret_ = (call)) == -FI_EAGAIN) \
		fi_cq_read(ends->cq, NULL, 0); \
	check(#call, ret_); \
} while (0)

/* The last message is the one that fits the receive of its own tag. */
static void receive(struct ends *ends)
{
	static char buf[LEN_MAX];
	struct fi_context msg, tagged, last;
	uint8_t addr[128];
	size_t len = sizeof(addr);

	POST(fi_recv(ends->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, &msg));
	POST(fi_trecv(ends->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, TAG, 0, &tagged));
	POST(fi_trecv(ends->ep, NULL, 0, NULL, FI_ADDR_UNSPEC, TAG + 1, 0, &last));
	check("fi_getname", fi_getname(&ends->ep->fid, addr, &len));
	for (size_t i = 0; i < len; i++)
		printf("%02x", addr[i]);
	printf("\n");
	fflush(stdout);
	while (completion(ends) != &last)
		;
}

static void send_to(struct ends *ends, const char *hex, size_t len, const char *type)
{
	static char buf[LEN_MAX];
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct fi_context context, last;
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = &context };
	struct fi_msg_tagged tagged = { .msg_iov = &iov, .iov_count = 1, .tag = TAG, .context = &context };
	uint8_t addr[128] = { 0 };
	fi_addr_t peer;

	for (size_t i = 0; i < sizeof(addr) && hex[2 * i]; i++)
		sscanf(hex + 2 * i, "%2hhx", &addr[i]);
	if (fi_av_insert(ends->av, addr, 1, &peer, 0, NULL) != 1)
		exit(EXIT_FAILURE);
	msg.addr = tagged.addr = peer;
	if (strcmp(type, "tagged"))
		POST(fi_sendmsg(ends->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	else
		POST(fi_tsendmsg(ends->ep, &tagged, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	completion(ends);
	POST(fi_tsend(ends->ep, NULL, 0, NULL, peer, TAG + 1, &last));
	completion(ends);
}

int main(int argc, char **argv)
{
	struct ends ends;

	if (argc != 2 && argc != 5)
		return EXIT_FAILURE;
	open_ep(&ends, argv[1]);
	if (argc == 2)
		receive(&ends);
	else
		send_to(&ends, argv[2], (size_t) atol(argv[3]), argv[4]);
	return EXIT_SUCCESS;
}
