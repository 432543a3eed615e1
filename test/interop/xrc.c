/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An RDM endpoint of verbs;ofi_rxm over XRC, on whatever libfabric is found: the same program is either end.
 *
 *   xrc                 prints its address in hex, and answers messages until its standard input ends
 *   xrc [-l] ADDRESS... sends a message to each address, with -l a long one to the first, too; gets them back, prints
 *                       "ok" and stays until its standard input ends
 *
 * Long messages are read by the receiver. A read of Debian's 1.17 names the SRQ of an earlier message on the queue
 * pair, so it fails where the queue pair has several peers and the last message was for another.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define NAME_MAX_LEN	32
#define LONG		200000
#define PATIENCE_S	30
#define ASK		1
#define ANSWER		2

struct message {
	char name[NAME_MAX_LEN];	/* of the sender */
	char text[LONG];
};

static struct fid_ep *ep;
static struct fid_av *av;
static struct fid_cq *cq;
static struct message in, out, back;
static unsigned sent, got;
static size_t got_len;

static void must(ssize_t ret, const char *call)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", call, fi_strerror((int) -ret));
	exit(1);
}

static void open_all(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	size_t len = NAME_MAX_LEN;

	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("verbs;ofi_rxm");
	hints->domain_attr->name = strdup("soft0-xrc");
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->caps = FI_TAGGED;
	must(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", "0", FI_SOURCE, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
	must(fi_getname(&ep->fid, out.name, &len), "fi_getname");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void look(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	ssize_t ret = fi_cq_read(cq, &entry, 1);

	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &err, 0) == 1)
		must(-err.err, "a completion");
	if (ret != 1)
		return;
	if (entry.flags & FI_RECV) {
		got++;
		got_len = entry.len;
	} else {
		sent++;
	}
}

static void await(unsigned *cnt, unsigned want)
{
	time_t end = time(NULL) + PATIENCE_S;

	while (*cnt < want) {
		look();
		if (time(NULL) > end)
			must(-FI_ETIMEDOUT, "a completion");
	}
}

static fi_addr_t insert(const void *name)
{
	fi_addr_t addr;

	must(fi_av_insert(av, name, 1, &addr, 0, NULL) == 1 ? 0 : -FI_EINVAL, "fi_av_insert");
	return addr;
}

static void send_to(fi_addr_t to, const struct message *message, size_t len, uint64_t tag)
{
	ssize_t ret;

	while ((ret = fi_tsend(ep, message, NAME_MAX_LEN + len, NULL, to, tag, NULL)) == -FI_EAGAIN)
		look();
	must(ret, "fi_tsend");
}

static void listen_for(struct message *to, uint64_t tag)
{
	must(fi_trecv(ep, to, sizeof(*to), NULL, FI_ADDR_UNSPEC, tag, 0, NULL), "fi_trecv");
}

static int ended(void)
{
	struct pollfd pfd = { 0, POLLIN, 0 };
	char c;

	return poll(&pfd, 1, 0) == 1 && read(0, &c, 1) <= 0;
}

static void serve(void)
{
	unsigned answered = 0;

	for (int i = 0; i < NAME_MAX_LEN; i++)
		printf("%02x", (unsigned char) out.name[i]);
	printf("\n");
	fflush(stdout);
	listen_for(&in, ASK);
	while (!ended()) {
		look();
		if (got == answered)
			continue;
		memcpy(back.text, in.text, LONG);
		send_to(insert(in.name), &back, got_len - NAME_MAX_LEN, ANSWER);
		await(&sent, ++answered);
		listen_for(&in, ASK);
	}
}

static void talk(const char *hex, unsigned seed, unsigned messages)
{
	char name[NAME_MAX_LEN];
	fi_addr_t to;

	for (int i = 0; i < NAME_MAX_LEN; i++)
		sscanf(hex + 2 * i, "%2hhx", (unsigned char *) &name[i]);
	to = insert(name);
	for (unsigned i = 0; i < messages; i++) {
		unsigned before = got, gone = sent;

		listen_for(&in, ANSWER);
		for (size_t k = 0; k < LONG; k++)
			out.text[k] = (char) (k * 7 + seed + i);
		send_to(to, &out, i ? LONG : 8, ASK);
		await(&got, before + 1);
		await(&sent, gone + 1);
		if (memcmp(in.text, out.text, i ? LONG : 8))
			must(-FI_EIO, "the answer is another");
	}
}

int main(int argc, char **argv)
{
	unsigned messages = 1;
	int first = 1;

	open_all();
	if (argc == 1) {
		serve();
		return 0;
	}
	if (!strcmp(argv[1], "-l"))
		messages = first = 2;
	for (int i = first; i < argc; i++, messages = 1)
		talk(argv[i], (unsigned) i, messages);
	printf("ok\n");
	fflush(stdout);
	while (!ended())
		look();
	return 0;
}
