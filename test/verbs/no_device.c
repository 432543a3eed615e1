/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For no_device.test: verbs is asked for twice where there is no device, with the system calls of each between marks
 * that a tracer sees. All providers have been loaded before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

static int ask(struct fi_info *hints, const char *name)
{
	struct fi_info *info = NULL;
	int ret;

	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup(name);
	ret = fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info);
	fi_freeinfo(info);
	return ret;
}

static void mark(const char *name)
{
	(void) !access(name, F_OK);
}

int main(void)
{
	struct fi_info *hints = fi_allocinfo();
	int first, second;

	if (!hints)
		return 1;
	hints->domain_attr->mr_mode = ~0;
	hints->mode = ~0ULL;
	ask(hints, "nobody");
	mark("/mark/first");
	first = ask(hints, "verbs");
	mark("/mark/second");
	second = ask(hints, "verbs");
	mark("/mark/end");
	fi_freeinfo(hints);
	printf("%s, %s\n", fi_strerror(-first), fi_strerror(-second));
	return first != -FI_ENODATA || second != -FI_ENODATA;
}
