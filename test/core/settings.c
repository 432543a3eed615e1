/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Settings that mean nothing here: each is listed with the reason, and costs one line of log when it is set.
 */
#include "base/unit.h"

#include "core/child.h"
#include "core/conf.h"
#include "settings.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEANT(set, meant) "<warn> " set " is set, but nothing reads it; did you mean " meant "?"

static void list_params(void)
{
	struct fi_param *params;
	int cnt;

	child_check(!fi_getparams(&params, &cnt));
	for (int i = 0; i < cnt; i++)
		printf("%s: %s\n", params[i].name, params[i].help_string);
	fi_freeparams(params);
}

/* Upstream's, which users' scripts set, from its manual pages. */
static const char *const upstream[] = {
	"FI_AV_REMOVE_CLEANUP", "FI_FORK_UNSAFE", "FI_HMEM", "FI_HMEM_CUDA_ENABLE_XFER", "FI_HMEM_CUDA_USE_GDRCOPY",
	"FI_HMEM_DISABLE_P2P", "FI_HOOK", "FI_LOG_INTERVAL", "FI_LOG_LEVEL", "FI_LOG_LOCATION",
	"FI_LOG_LOCATION_MODE", "FI_ADDR_FORMAT", "FI_LOG_PROV", "FI_LOG_SUBSYS", "FI_MR_CACHE_MAX_COUNT",
	"FI_MR_CACHE_MAX_SIZE", "FI_MR_CACHE_MONITOR",
	"FI_MR_CUDA_CACHE_MONITOR_ENABLED", "FI_MR_ROCR_CACHE_MONITOR_ENABLED", "FI_MR_ZE_CACHE_MONITOR_ENABLED",
	"FI_OFFLOAD_COLL_PROVIDER", "FI_PERF_CNTR", "FI_PROVIDER", "FI_PROVIDER_PATH", "FI_UNIVERSE_SIZE",
	"FI_WAIT_SPIN",		/* our own */
};

static void every_setting_of_the_core_is_listed(void **state)
{
	char *text = child_run(NULL, list_params);
	char line[80];

	(void) state;
	for (size_t i = 0; i < sizeof(upstream) / sizeof(*upstream); i++) {
		snprintf(line, sizeof(line), "%s: ", upstream[i]);
		if (count_lines(text, line) != 1)
			fail_msg("%s is not listed", upstream[i]);
	}
	free(text);
}

static void what_is_set_without_effect_is_said_once(void **state)
{
	static const char *const env[] = {
		"FI_LOG_LEVEL=info", "FI_FORK_UNSAFE=1", "FI_UNIVERSE_SIZE=8", "FI_OFI_RXD_RETRY=1",
		"FI_TPC_IFACE=eth0", "FI_lower=1", "FI_=1", NULL,
	};
	static const char conf[] = "FI_FROM_FILE = 1\nFI_FROM_FILE = 2\nFI_OFFLOAD_COLL_PROVIDER = x\n"
				   "FI_TPC_IFACE = eth1\n";
	char *text;

	(void) state;
	conf_write(conf, strlen(conf));
	text = child_run(env, list_params);
	assert_int_equal(count_lines(text, "FI_FORK_UNSAFE is set without effect"), 1);
	assert_int_equal(count_lines(text, "FI_UNIVERSE_SIZE is set without effect"), 1);
	assert_int_equal(count_lines(text, "FI_OFFLOAD_COLL_PROVIDER is set without effect"), 1);
	assert_int_equal(count_lines(text, "FI_OFI_RXD_RETRY is set, but no provider reads it"), 1);
	assert_int_equal(count_lines(text, MEANT("FI_TPC_IFACE", "FI_TCP_IFACE")), 1);
	assert_int_equal(count_lines(text, "FI_FROM_FILE is set, but no provider reads it"), 1);
	assert_int_equal(count_lines(text, "is set without effect:"), 3);
	assert_int_equal(count_lines(text, "no provider reads it"), 2);
	free(text);
}

static void define_and_list(void)
{
	child_check(!fi_param_define(NULL, "words", FI_PARAM_INT, "Accepted without effect: says a text alone"));
	list_params();
}

/* A flag says so, and the core adds the words to the help text; a help text that has these words by itself means
 * nothing. */
static void what_has_no_effect_is_known_by_a_flag(void **state)
{
	static const char *const env[] = { "FI_LOG_LEVEL=info", "FI_WORDS=1", "FI_TCP_IO_URING=1", NULL };
	char *text;

	(void) state;
	conf_write("", 0);
	text = child_run(env, define_and_list);
	assert_int_equal(count_lines(text, "FI_TCP_IO_URING is set without effect: io_uring is not used"), 1);
	assert_int_equal(count_lines(text, "FI_TCP_IO_URING: tcp: Accepted without effect: io_uring is not used"), 1);
	assert_int_equal(count_lines(text, "FI_UNIVERSE_SIZE: Accepted without effect: tables of peers grow"), 1);
	assert_int_equal(count_lines(text, "is set without effect:"), 1);
	free(text);
}

/* At the default level only a typing error is said: scripts set variables of providers that are not here. */
static void only_a_typing_error_is_said_where_nobody_asked(void **state)
{
	static const char *const env[] = {
		"FI_HOOK=trace", "FI_TPC_IFACE=eth0", "FI_TCP_IFACES=lo", "FI_PROVIDERS=tcp", "FI_EFA_IFACE=all",
		"FI_PSM3_IFACE=eth0", "FI_SOMETHING_ELSE=1", NULL,
	};
	static const char *const other[] = { "FI_PROVIDER=udp", "FI_TCP_IFACE=lo", "FI_UDP_IFCAE=lo", NULL };
	char *text = child_run(env, list_params);

	(void) state;
	assert_int_equal(count_lines(text, MEANT("FI_TPC_IFACE", "FI_TCP_IFACE")), 1);
	assert_int_equal(count_lines(text, MEANT("FI_TCP_IFACES", "FI_TCP_IFACE")), 1);
	assert_int_equal(count_lines(text, MEANT("FI_PROVIDERS", "FI_PROVIDER")), 1);
	assert_int_equal(count_lines(text, "<warn>"), 3);
	free(text);

	/* tcp is not loaded, so nobody reads the right name either, and FI_UDP_IFACE is not meant */
	text = child_run(other, list_params);
	assert_int_equal(count_lines(text, MEANT("FI_UDP_IFCAE", "FI_UDP_IFACE")), 1);
	assert_int_equal(count_lines(text, "<warn>"), 1);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_setting_of_the_core_is_listed),
		cmocka_unit_test(what_is_set_without_effect_is_said_once),
		cmocka_unit_test(what_has_no_effect_is_known_by_a_flag),
		cmocka_unit_test(only_a_typing_error_is_said_where_nobody_asked),
	};

	return cmocka_run_group_tests_name("core/settings", tests, conf_set_up, conf_tear_down);
}
