/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Threads of a test, see mt_worker.h. */
#include "mt_worker.h"

void worker_start(struct worker *w)
{
	CHECK(!pthread_create(&w->thread, NULL, w->fn, w));
}

void worker_finish(struct worker *w)
{
	pthread_join(w->thread, NULL);
	if (w->wrong[0])
		FAIL("thread %u: %s", w->id, w->wrong);
}

bool worker_late(double start_ms)
{
	return now_ms() - start_ms > 20000.0 * run.slow;
}

void set_safe(struct fi_info *hints)
{
	hints->domain_attr->threading = FI_THREAD_SAFE;
}

struct pair safe_pair(struct test *t, enum fi_wait_obj wait)
{
	struct pair p = pair_open(t, .hints = set_safe, .cq_wait = wait);

	check_link(p.a, p.b);
	check_link(p.b, p.a);
	return p;
}

void set_endpoint(struct fi_info *hints)
{
	hints->domain_attr->threading = FI_THREAD_ENDPOINT;
}

void set_completion(struct fi_info *hints)
{
	hints->domain_attr->threading = FI_THREAD_COMPLETION;
}

void set_fid(struct fi_info *hints)
{
	hints->domain_attr->threading = FI_THREAD_FID;
}

void set_domain(struct fi_info *hints)
{
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
}
