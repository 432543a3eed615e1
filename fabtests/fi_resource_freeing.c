/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_resource_freeing: what is opened is given back: descriptors of the process are as many as before, a parent says
 * -FI_EBUSY as long as it has children, and all can be opened again.
 */
#include "lib/unit.h"

#include <dirent.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#define ROUNDS 50

struct objects {
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
};

/* Descriptors that are open, or below 0. */
static int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int cnt = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

/* Close those that are open; the first failure. */
static int close_objects(struct objects *objects)
{
	struct fid *fids[] = {
		objects->ep ? &objects->ep->fid : NULL, objects->av ? &objects->av->fid : NULL,
		objects->cq ? &objects->cq->fid : NULL, objects->domain ? &objects->domain->fid : NULL,
	};
	int ret = 0, close_ret;
	size_t i;

	for (i = 0; i < sizeof(fids) / sizeof(fids[0]); i++) {
		close_ret = fids[i] ? unit_close(fids[i], "fi_close") : 0;
		ret = ret ? ret : close_ret;
	}
	return ret;
}

static int bind_ep(struct objects *objects)
{
	int ret = fi_ep_bind(objects->ep, &objects->cq->fid, FI_TRANSMIT | FI_RECV);

	if (!ret)
		ret = fi_ep_bind(objects->ep, &objects->av->fid, 0);
	return ret ? ret : fi_enable(objects->ep);
}

static int open_objects(struct unit *unit, struct objects *objects)
{
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_FD };
	struct fi_av_attr av_attr = { .type = unit->info->domain_attr->av_type, .count = 16 };
	int ret;

	*objects = (struct objects) { .domain = NULL };
	ret = fi_domain(unit->fabric, unit->info, &objects->domain, NULL);
	if (!ret)
		ret = fi_cq_open(objects->domain, &cq_attr, &objects->cq, NULL);
	if (!ret)
		ret = fi_av_open(objects->domain, &av_attr, &objects->av, NULL);
	if (!ret)
		ret = fi_endpoint(objects->domain, unit->info, &objects->ep, NULL);
	if (!ret)
		ret = bind_ep(objects);
	if (!ret)
		return 0;
	close_objects(objects);
	return unit_fail(ret, "open a domain, a queue, an address vector and an endpoint");
}

static int again_and_again(struct unit *unit)
{
	struct objects objects;
	int i, ret, before = 0;

	for (i = 0; i < ROUNDS; i++) {
		/* The first round may set up what the process keeps. */
		if (i == 1)
			before = open_fds();
		ret = open_objects(unit, &objects);
		if (!ret)
			ret = close_objects(&objects);
		if (ret)
			return ret;
	}
	ret = open_fds();
	return ret == before ? 0 : unit_fail(ret - before, "descriptors that were not given back");
}

static int busy_parents(struct unit *unit)
{
	struct objects objects;
	int ret = open_objects(unit, &objects), close_ret, domain_ret, cq_ret, av_ret;

	if (ret)
		return ret;
	domain_ret = fi_close(&objects.domain->fid);
	cq_ret = fi_close(&objects.cq->fid);
	av_ret = fi_close(&objects.av->fid);
	if (domain_ret == 0)
		return unit_fail(0, "fi_close of a domain with children");
	/* What is closed in spite of the endpoint cannot be closed again. */
	objects.cq = cq_ret ? objects.cq : NULL;
	objects.av = av_ret ? objects.av : NULL;
	close_ret = close_objects(&objects);
	if (domain_ret != -FI_EBUSY)
		return unit_fail(domain_ret, "fi_close of a domain with children, which must be -FI_EBUSY");
	if (cq_ret != -FI_EBUSY || av_ret != -FI_EBUSY)
		return unit_fail(cq_ret,
				 "fi_close of a queue or a vector that an endpoint uses, which must be -FI_EBUSY");
	return close_ret;
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "what is opened 50 times is given back 50 times", again_and_again },
		{ "a parent is busy as long as it has children", busy_parents },
	};
	static const struct unit_program program = {
		.about = "Open and close; nothing is left.",
		.caps = FI_MSG,
		.ep_type = FI_EP_RDM,
		.tests = tests,
		.test_cnt = sizeof(tests) / sizeof(tests[0]),
	};

	return unit_main(argc, argv, &program);
}
