/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * restart server HOST PORT LIFE | restart client HOST PORT: a server that is killed and started again at the same
 * address, while the client goes on with the endpoint and the fi_addr_t that it has. One thread each; a script
 * starts, kills, and reads what they print, line by line:
 *
 *   server   ready              messages can come
 *   client   answer LIFE        the server of this life has answered
 *            error TEXT         a message could not be sent
 *
 * A message names its sender, so that a new server can answer. It is sent again and again, one at a time: the next
 * when the answer has come, or soon after the one before has completed, well or not. Runs until it is killed.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#define MAX_NAME 128
#define SLICE_MS 100

/* Both ways; an answer has no name. */
struct message {
	uint32_t life;
	uint32_t name_len;
	char name[MAX_NAME];
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_cq *cq;
static struct fid_av *av;
static struct fid_ep *ep;
static struct message out, in;
static struct fi_context2 out_context, in_context;

static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

static void must(ssize_t ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "%s: %s\n", what, fi_strerror((int) -ret));
	exit(1);
}

static void open_all(const char *host, const char *port, uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	must(hints ? 0 : -FI_ENOMEM, "fi_allocinfo");
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("tcp");
	must(fi_getinfo(FI_VERSION(1, 17), host, port, flags, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind of the address vector");
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind of the queue");
	must(fi_enable(ep), "fi_enable");
	must(fi_recv(ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, &in_context), "fi_recv");
}

/* The next completion: its context, or NULL when none came in time; *err is 0 or a positive FI_E*. */
static void *next(int *err)
{
	struct fi_cq_msg_entry entry;
	struct fi_cq_err_entry error = { .err_data_size = 0 };
	ssize_t ret = fi_cq_sread(cq, &entry, 1, NULL, SLICE_MS);

	*err = 0;
	if (ret == 1)
		return entry.op_context;
	if (ret == -FI_EAGAIN || ret == -FI_EINTR)
		return NULL;
	must(ret == -FI_EAVAIL ? 0 : ret, "fi_cq_sread");
	must(fi_cq_readerr(cq, &error, 0) == 1 ? 0 : -FI_EOTHER, "fi_cq_readerr");
	*err = error.err;
	return error.op_context;
}

/* Post the message; false when it cannot be sent at all. */
static int post(fi_addr_t addr)
{
	ssize_t ret;
	int err;

	while ((ret = fi_send(ep, &out, sizeof(out), NULL, addr, &out_context)) == -FI_EAGAIN)
		must(next(&err) ? -FI_EOTHER : 0, "a completion with nothing under way");
	return (int) -ret;
}

static void serve(uint32_t life)
{
	fi_addr_t addr;
	void *context;
	int err;

	out.life = life;
	say("ready");
	for (;;) {
		while ((context = next(&err)) != &in_context)
			;
		must(-err, "a receive");
		must(in.name_len > MAX_NAME ? -FI_EINVAL : 0, "the name in a message");
		must(fi_av_insert(av, in.name, 1, &addr, 0, NULL) == 1 ? 0 : -FI_EINVAL, "fi_av_insert");
		must(fi_recv(ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, &in_context), "fi_recv");
		must(-post(addr), "fi_send");
		while ((context = next(&err)) != &out_context)
			must(context ? -FI_EOTHER : 0, "a second message before the answer");
		must(-err, "the answer");
	}
}

/* Take an answer. */
static void answered(int err)
{
	must(-err, "a receive");
	say("answer %u", in.life);
	must(fi_recv(ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, &in_context), "fi_recv");
}

static void ask(void)
{
	size_t len = sizeof(out.name);
	fi_addr_t addr;
	void *context;
	int err, got;

	must(fi_getname(&ep->fid, out.name, &len), "fi_getname");
	out.name_len = (uint32_t) len;
	must(fi_av_insert(av, info->dest_addr, 1, &addr, 0, NULL) == 1 ? 0 : -FI_EINVAL, "fi_av_insert");
	for (;;) {
		err = post(addr);
		got = 0;
		for (context = NULL; !err && context != &out_context;) {
			context = next(&err);
			if (context == &in_context) {
				answered(err);
				err = 0;
				got = 1;
			}
		}
		if (err)
			say("error %s", fi_strerror(err));
		/* The answer, unless it is too late for one. */
		if (!got && next(&err) == &in_context)
			answered(err);
	}
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "server")) {
		open_all(argv[2], argv[3], FI_SOURCE);
		serve((uint32_t) atoi(argv[4]));
	} else if (argc == 4 && !strcmp(argv[1], "client")) {
		open_all(argv[2], argv[3], 0);
		ask();
	}
	fprintf(stderr, "usage: restart server HOST PORT LIFE | restart client HOST PORT\n");
	return 2;
}
