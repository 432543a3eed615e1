/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A device of two ports: an entry's endpoint is on the port that has the entry's address. */
#include "link.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GRH	40

struct port {
	struct end end;
	struct fid_av *av;
	uint8_t name[32];		/* the GID is in front */
};

static struct fi_info *dgram_hints(void)
{
	struct fi_info *hints = hints_new();

	hints->ep_attr->type = FI_EP_DGRAM;
	hints->caps = FI_MSG;
	hints->mode = FI_MSG_PREFIX;
	return hints;
}

static void port_open(struct port *port, const struct fi_info *info)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	size_t len = sizeof(port->name);

	end_open(&port->end, fi_dupinfo(info));
	MUST(fi_endpoint(port->end.domain, port->end.info, &port->end.ep, NULL));
	MUST(fi_av_open(port->end.domain, &attr, &port->av, NULL));
	MUST(fi_ep_bind(port->end.ep, &port->av->fid, 0));
	MUST(fi_ep_bind(port->end.ep, &port->end.cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_enable(port->end.ep));
	MUST(fi_getname(&port->end.ep->fid, port->name, &len));
	MUST_BE(len == sizeof(port->name) && !memcmp(port->name, info->src_addr, 16));
}

static void port_close(struct port *port)
{
	MUST(fi_close(&port->end.ep->fid));
	port->end.ep = NULL;
	MUST(fi_close(&port->av->fid));
	end_close(&port->end);
}

/* A datagram leaves by the port that it was to leave by. */
static void talk(struct link *link, struct port *from, struct port *to)
{
	fi_addr_t addr;

	MUST_BE(fi_av_insert(from->av, to->name, 1, &addr, 0, NULL) == 1);
	MUST(fi_recv(to->end.ep, to->end.room, GRH + 8, fi_mr_desc(to->end.mr), 0, NULL));
	memcpy(from->end.room + 4096 + GRH, "datagram", 8);
	MUST(fi_send(from->end.ep, from->end.room + 4096, GRH + 8, fi_mr_desc(from->end.mr), addr, NULL));
	MUST_BE(!await_comp(link, &from->end, NULL));
	MUST_BE(!await_comp(link, &to->end, NULL));
	MUST_BE(!memcmp(to->end.room + GRH, "datagram", 8));
	MUST_BE(!memcmp(to->end.room + 8, from->name, 16));	/* the source in the header */
}

static void datagrams(void)
{
	struct fi_info *hints = dgram_hints(), *info;
	struct port one = { 0 }, two = { 0 };
	struct link nobody = { 0 };

	MUST(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	MUST_BE(info->next && !info->next->next && memcmp(info->src_addr, info->next->src_addr, 16));
	MUST_BE(!strcmp(info->domain_attr->name, info->next->domain_attr->name));
	port_open(&one, info);
	port_open(&two, info->next);
	talk(&nobody, &one, &two);
	talk(&nobody, &two, &one);
	port_close(&one);
	port_close(&two);
	fi_freeinfo(info);
}

/* In the domain of one port there is no endpoint of the other. */
static void not_the_others(void)
{
	struct fi_info *hints = dgram_hints(), *info;
	struct end end = { 0 };

	MUST(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	end_open(&end, fi_dupinfo(info));
	MUST_FAIL(fi_endpoint(end.domain, info->next, &end.ep, NULL), FI_EINVAL);
	end.ep = NULL;
	end_close(&end);
	fi_freeinfo(info);
}

/* Nobody listens: the text names the port. */
static void connection(void)
{
	struct fi_info *hints = hints_new(), *info;
	struct link link = { 0 };
	struct happened what;

	MUST(fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", "9", 0, hints, &info));
	fi_freeinfo(hints);
	end_open(&link.a, info);
	MUST(end_open_ep(&link.a));
	MUST(fi_connect(link.a.ep, link.a.info->dest_addr, NULL, 0));
	what = await_event(&link, link.a.eq);
	MUST_BE(!what.event && what.err == FI_ECONNREFUSED);
	end_close(&link.a);
}

#define PORTS "SOFTVERBS_DEVICES=soft0=127.0.0.2;127.0.0.1"

static const struct vcase cases[] = {
	{ "datagrams of two ports", PORTS, datagrams, NULL },
	{ "an endpoint in the domain of the other port", PORTS, not_the_others,
	  "the source address is one of soft0, port [12], " },
	{ "a connection names its port", PORTS, connection, "soft0, port 2: no connection to" },
};

int main(void)
{
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}
