/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What fi_getinfo says of tcp: which entries, in which order, with which addresses.
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "base/addr.h"
#include "base/unit.h"

static struct fi_info *ask(const char *node, const char *service, uint64_t flags, enum fi_ep_type type, uint32_t format)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int ret;

	hints->fabric_attr->prov_name = strdup("tcp");
	hints->ep_attr->type = type;
	hints->addr_format = format;
	ret = fi_getinfo(FI_VERSION(2, 6), node, service, flags, hints, &info);
	assert_int_equal(ret, info ? 0 : -FI_ENODATA);
	fi_freeinfo(hints);
	return info;
}

static const char *text(const void *addr)
{
	static char text[FAB_ADDR_STRLEN];

	fab_addr_to_str(addr, text, sizeof(text));
	return text;
}

/* RDM before MSG, loopback at the end of each, every entry named after its interface and with its address. */
static void entries_are_complete_and_in_order(void **state)
{
	struct fi_info *list = ask(NULL, NULL, 0, FI_EP_UNSPEC, FI_FORMAT_UNSPEC), *info;
	enum fi_ep_type type = FI_EP_RDM;
	bool loopback = false;

	(void) state;
	assert_non_null(list);
	for (info = list; info; info = info->next) {
		bool is_lo = fab_addr_is_loopback(info->src_addr);

		if (info->ep_attr->type != type) {
			assert_int_equal(info->ep_attr->type, FI_EP_MSG);
			type = FI_EP_MSG;
			loopback = false;
		}
		assert_true(is_lo || !loopback);
		loopback = is_lo;
		assert_int_equal(info->ep_attr->protocol, type == FI_EP_RDM ? FI_PROTO_XNET : FI_PROTO_SOCK_TCP);
		assert_int_equal(!(info->caps & FI_REMOTE_COMM), is_lo);
		assert_true(info->caps & FI_LOCAL_COMM);
		assert_int_equal(info->src_addrlen, fab_addr_len(info->src_addr));
		assert_int_equal(fab_addr_port(info->src_addr), 0);
		assert_null(info->dest_addr);
		assert_true(strlen(info->domain_attr->name) > 0);
		assert_int_equal(info->mode, 0);
		assert_int_equal(info->domain_attr->mr_mode, 0);
		assert_true(FI_MAJOR(info->fabric_attr->prov_version) >= 206);
	}
	assert_true(loopback);
	fi_freeinfo(list);
}

/* A destination picks the interface that leads to it. */
static void destination_picks_its_interface(void **state)
{
	struct fi_info *info = ask("127.0.0.1", "5000", 0, FI_EP_RDM, FI_FORMAT_UNSPEC);

	(void) state;
	assert_non_null(info);
	assert_null(info->next);
	assert_string_equal(text(info->dest_addr), "fi_sockaddr_in://127.0.0.1:5000");
	assert_string_equal(text(info->src_addr), "fi_sockaddr_in://127.0.0.1:0");
	fi_freeinfo(info);
}

/* A source must be an address of this machine, and keeps its port. */
static void source_is_an_address_of_ours(void **state)
{
	struct fi_info *info = ask("127.0.0.1", "5000", FI_SOURCE, FI_EP_MSG, FI_FORMAT_UNSPEC);

	(void) state;
	assert_non_null(info);
	assert_null(info->next);
	assert_string_equal(text(info->src_addr), "fi_sockaddr_in://127.0.0.1:5000");
	assert_null(info->dest_addr);
	fi_freeinfo(info);
	assert_null(ask("203.0.113.77", NULL, FI_SOURCE, FI_EP_MSG, FI_FORMAT_UNSPEC));
}

/* A server that names a port alone listens on every address. */
static void port_alone_is_any_address(void **state)
{
	struct fi_info *list = ask(NULL, "5000", FI_SOURCE, FI_EP_MSG, FI_SOCKADDR_IN), *info;

	(void) state;
	assert_non_null(list);
	for (info = list; info; info = info->next)
		assert_string_equal(text(info->src_addr), "fi_sockaddr_in://0.0.0.0:5000");
	fi_freeinfo(list);
}

/* A node of one family and hints of the other contradict each other. */
static void families_are_kept_apart(void **state)
{
	struct fi_info *list, *info;

	(void) state;
	assert_null(ask("127.0.0.1", NULL, 0, FI_EP_RDM, FI_SOCKADDR_IN6));
	list = ask(NULL, NULL, 0, FI_EP_RDM, FI_SOCKADDR_IN);
	assert_non_null(list);
	for (info = list; info; info = info->next)
		assert_int_equal(info->addr_format, FI_SOCKADDR_IN);
	fi_freeinfo(list);
}

/* What was answered is a question with the same answer. */
static void answer_is_a_hint(void **state)
{
	struct fi_info *list = ask(NULL, NULL, 0, FI_EP_UNSPEC, FI_FORMAT_UNSPEC), *info, *again;

	(void) state;
	for (info = list; info; info = info->next) {
		assert_int_equal(fi_getinfo(FI_VERSION(2, 6), NULL, NULL, 0, info, &again), 0);
		assert_string_equal(again->domain_attr->name, info->domain_attr->name);
		assert_int_equal(again->ep_attr->type, info->ep_attr->type);
		assert_int_equal(again->caps, info->caps);
		assert_int_equal(again->tx_attr->size, info->tx_attr->size);
		assert_true(fab_addr_equal(again->src_addr, info->src_addr));
		fi_freeinfo(again);
	}
	fi_freeinfo(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_complete_and_in_order),
		cmocka_unit_test(destination_picks_its_interface),
		cmocka_unit_test(source_is_an_address_of_ours),
		cmocka_unit_test(port_alone_is_any_address),
		cmocka_unit_test(families_are_kept_apart),
		cmocka_unit_test(answer_is_a_hint),
	};

	setenv("FI_PROVIDER", "^ofi_rxm", 1);	/* it answers above tcp to that name, too */
	return cmocka_run_group_tests_name("tcp/info", tests, NULL, NULL);
}
