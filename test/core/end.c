/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of the process: what the library still has then, when a destructor of the program looks that runs behind the
 * library's own.
 */
#include "base/unit.h"

#include "core/child.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct fi_provider prov = { .name = "te;st" };
static int at_end = -FI_EOTHER;		/* in a child: what reading the parameter is to answer */

/* Destructors with a number run behind those without, such as the library's. */
static void __attribute__((destructor(101))) look(void)
{
	char *word = NULL;
	int ret;

	if (at_end == -FI_EOTHER)
		return;
	ret = fi_param_get_str(&prov, "word", &word);
	child_check(ret == at_end);
	child_check(ret || !strcmp(word, "a longer word than a pointer is"));
	_exit(0);
}

/* Open a fabric over the loopback interface; NULL: there is none. */
static struct fid_fabric *open_fabric(void)
{
	struct fid_fabric *fabric = NULL;
	struct fi_info *info;

	child_check(!fi_param_define(&prov, "word", FI_PARAM_STRING, "a word"));
	if (fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, NULL, &info))
		return NULL;
	child_check(!fi_fabric(info->fabric_attr, &fabric, NULL));
	fi_freeinfo(info);
	return fabric;
}

static void end_with_a_fabric_open(void)
{
	if (!open_fabric())
		return;
	at_end = 0;
	exit(0);
}

static void end_with_all_closed(void)
{
	struct fid_fabric *fabric = open_fabric();

	if (!fabric)
		return;
	child_check(!fi_close(&fabric->fid));
	at_end = -FI_ENOENT;
	exit(0);
}

/* The objects that the program below leaves open. They stay reachable, so that LeakSanitizer does not report them. */
static struct left {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
} left[16];
static unsigned left_cnt;

/* Open an endpoint with a progress thread and receives, close its parents first, and leave the rest open. */
static void open_and_leave(struct fi_info *info)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	static char in[64];
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;

	child_check(!fi_fabric(info->fabric_attr, &fabric, NULL));
	child_check(!fi_domain(fabric, info, &domain, NULL));
	child_check(!fi_cq_open(domain, &cq_attr, &cq, NULL));
	child_check(!fi_av_open(domain, &av_attr, &av, NULL));
	child_check(!fi_endpoint(domain, info, &ep, NULL));
	child_check(!fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) && !fi_ep_bind(ep, &av->fid, 0));
	child_check(!fi_enable(ep));
	child_check(!fi_recv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
	child_check(fi_close(&fabric->fid) == -FI_EBUSY);
	child_check(fi_close(&domain->fid) == -FI_EBUSY);
	child_check(fi_close(&av->fid) == -FI_EBUSY);
	child_check(fi_close(&cq->fid) == -FI_EBUSY);
	child_check(left_cnt < sizeof(left) / sizeof(*left));
	left[left_cnt++] = (struct left) { info, fabric, domain, ep, cq, av };
}

static void end_with_all_refused(void)
{
	static const enum fi_ep_type type[] = { FI_EP_RDM, FI_EP_DGRAM };
	struct fi_info *hints, *info;
	const char *last = "";

	for (int i = 0; i < 2; i++) {
		hints = fi_allocinfo();
		hints->ep_attr->type = type[i];
		hints->caps = FI_MSG;
		hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
		if (fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info))
			info = NULL;
		/* one entry of each provider */
		for (struct fi_info *entry = info; entry; entry = entry->next) {
			if (strcmp(entry->fabric_attr->prov_name, last))
				open_and_leave(entry);
			last = entry->fabric_attr->prov_name;
		}
		fi_freeinfo(hints);
	}
	exit(0);
}

static const char *const env[] = { "FI_TE_ST_WORD=a longer word than a pointer is", NULL };

/* Threads may still be inside of calls, and read it. */
static void what_threads_read_outlives_open_fabrics(void **state)
{
	(void) state;
	free(child_run(env, end_with_a_fabric_open));
}

static void with_all_closed_nothing_is_left(void **state)
{
	(void) state;
	free(child_run(env, end_with_all_closed));
}

/* A program that closes parents first, ignores the refusals and ends, while threads of the library run. */
static void refused_closes_do_not_trouble_the_end(void **state)
{
	char *text = child_run(NULL, end_with_all_refused);

	(void) state;
	assert_int_equal(count_lines(text, "libfabric:"), count_lines(text, "<warn> fi_close of "));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_threads_read_outlives_open_fabrics),
		cmocka_unit_test(with_all_closed_nothing_is_left),
		cmocka_unit_test(refused_closes_do_not_trouble_the_end),
	};

	return cmocka_run_group_tests_name("core/end", tests, NULL, NULL);
}
