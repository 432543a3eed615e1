/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The end of the process: what the library still has then, when a destructor of the program looks that runs behind the
 * library's own.
 */
#include "base/unit.h"

#include "core/child.h"

#include <rdma/fabric.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_threads_read_outlives_open_fabrics),
		cmocka_unit_test(with_all_closed_nothing_is_left),
	};

	return cmocka_run_group_tests_name("core/end", tests, NULL, NULL);
}
