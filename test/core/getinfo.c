/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo() above the providers: checks, names, order, what the core fills in, and the reasons when nothing is
 * found.
 */
#include "base/unit.h"

#include "base/bits.h"
#include "base/strbuf.h"
#include "core/child.h"
#include "core/fake.h"
#include "core/heap.h"
#include "log.h"
#include "registry.h"
#include "why.h"

#include <rdma/fi_ext.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const quiet[] = { "FI_LOG_LEVEL=silent", NULL };

/* Ask for providers by name (NULL: any); the list is the caller's. */
static int ask(const char *prov_name, uint64_t flags, struct fi_info **info)
{
	struct fi_fabric_attr attr = { .prov_name = (char *) prov_name };
	struct fi_info hints = { .fabric_attr = &attr };

	*info = (void *) 1;
	return fi_getinfo(FI_VERSION(1, 18), NULL, NULL, flags, prov_name ? &hints : NULL, info);
}

/* Are these the entries, by name, that asking for prov_name gives? */
static void check_names(const char *prov_name, const char *names)
{
	struct fi_info *info;
	int ret = ask(prov_name, 0, &info);

	if (strcmp(fake_names(info), names)) {
		printf("prov_name %s: %s\n", prov_name ? prov_name : "NULL", fake_names(info));
		child_check(0);
	}
	child_check(!prov_name || ret == (*names ? 0 : -FI_ENODATA));
	fi_freeinfo(info);
}

static void run(const char *const env[], void (*body)(void))
{
	free(child_run(env, body));
}

static void check_bad_calls(void)
{
	struct fi_info *info = (void *) 1;

	fakes_register();
	child_check(fi_getinfo(FI_VERSION(2, 7), NULL, NULL, 0, NULL, &info) == -FI_ENOSYS && !info);
	info = (void *) 1;
	child_check(fi_getinfo(FI_VERSION(3, 0), NULL, NULL, 0, NULL, &info) == -FI_ENOSYS && !info);
	child_check(fi_getinfo(FI_VERSION(1, 5), NULL, NULL, FI_MSG, NULL, &info) == -FI_EBADFLAGS && !info);
	child_check(fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 1ULL << 63, NULL, &info) == -FI_EBADFLAGS && !info);
	child_check(fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, NULL, NULL) == -FI_EINVAL);
	child_check(!fake_a.calls);
}

static void bad_calls_are_refused_and_named(void **state)
{
	char *text = child_run(NULL, check_bad_calls);

	(void) state;
	assert_int_equal(count_lines(text, "<error>"), 5);
	assert_non_null(strstr(text, "asks for API 2.7; this library supports up to 2.6"));
	assert_non_null(strstr(text, "flags 0x8000000000000000 are unknown"));
	free(text);
}

static void check_filled_in(void)
{
	struct fi_info *info, *entry;
	int cnt = 0;

	fakes_register();
	child_check(!ask("qa", 0, &info));
	for (entry = info; entry; entry = entry->next, cnt++) {
		child_check(entry->fabric_attr->api_version == FI_VERSION(1, 18));
		child_check(entry->fabric_attr->prov_version == FI_VERSION(3, entry == info ? 1 : 3));
	}
	child_check(cnt == 2 && !strcmp(info->fabric_attr->prov_name, "qa"));
	fi_freeinfo(info);
	child_check(!fi_getinfo(FI_VERSION(1, 18), NULL, NULL, FI_RESCAN, NULL, &info));
	fi_freeinfo(info);
}

static void the_core_fills_in_names_and_versions(void **state)
{
	(void) state;
	run(quiet, check_filled_in);
}

static void check_hinted_names(void)
{
	fakes_register();
	check_names(NULL, "qa qb qa;ofi_q qb;ofi_q");
	check_names("", "qa qb qa;ofi_q qb;ofi_q");
	check_names("qa", "qa qa;ofi_q");
	check_names("QA", "qa qa;ofi_q");
	check_names("qa;ofi_q", "qa;ofi_q");
	check_names("ofi_q;qa", "qa;ofi_q");
	check_names("ofi_q", "qa;ofi_q qb;ofi_q");
	check_names("qx", "");
}

static void hints_choose_providers_by_name(void **state)
{
	(void) state;
	run(quiet, check_hinted_names);
}

static void check_only_a(void)
{
	fakes_register();
	check_names(NULL, "qa qa;ofi_q");
	check_names("qb", "");
	child_check(!fake_b.calls && fake_b.cleanups == 1);
}

static void check_without_a(void)
{
	fakes_register();
	check_names(NULL, "qb qb;ofi_q");
	child_check(!fake_a.calls);
}

static void check_only_layered(void)
{
	fakes_register();
	fake_util.asks_others = true;
	check_names(NULL, "qa;ofi_q");
	/* by the utility alone, and for itself */
	child_check(fake_a.calls == 1 && !fake_b.calls);
}

static void check_without_util(void)
{
	fakes_register();
	check_names(NULL, "qa qb");
}

static void the_user_chooses_providers_by_name(void **state)
{
	static const char *const only_a[] = { "FI_PROVIDER=qa", "FI_LOG_LEVEL=silent", NULL };
	static const char *const without_a[] = { "FI_PROVIDER=^qa", "FI_LOG_LEVEL=silent", NULL };
	static const char *const layered[] = { "FI_PROVIDER=qa;ofi_q", "FI_LOG_LEVEL=silent", NULL };
	static const char *const without_util[] = { "FI_PROVIDER=^ofi_q", "FI_LOG_LEVEL=silent", NULL };

	(void) state;
	run(only_a, check_only_a);
	run(without_a, check_without_a);
	run(layered, check_only_layered);
	run(without_util, check_without_util);
}

static void check_versions(void)
{
	struct fi_fabric_attr attr = { .prov_name = "qa,qb", .prov_version = FI_VERSION(3, 2) };
	struct fi_info hints = { .fabric_attr = &attr }, *info;

	fakes_register();
	child_check(!fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, &hints, &info));
	child_check(!strcmp(fake_names(info), "qb qa;ofi_q qb;ofi_q"));
	fi_freeinfo(info);
	attr.prov_version = FI_VERSION(3, 4);
	child_check(fi_getinfo(FI_VERSION(1, 18), NULL, NULL, 0, &hints, &info) == -FI_ENODATA);
}

/* prov_version in hints is the least that will do. */
static void hints_choose_providers_by_version(void **state)
{
	static const char *const told[] = { "FI_LOG_LEVEL=info", NULL };
	char *text = child_run(told, check_versions);

	(void) state;
	assert_non_null(strstr(text, "qa (fabric_attr->prov_version 3.4: is newer than its version 3.1)"));
	free(text);
}

static void check_order(void)
{
	fakes_register();
	fake_b.names[0] = "tcp;q";
	fake_b.names[1] = "qb";
	fake_b.names[2] = "qb;ofi_q";
	fake_b.names[3] = "udp;q";
	fake_b.names[4] = "qb;x";
	fake_util.names[0] = "tcp;ofi_q";
	fake_util.names[1] = "qa;ofi_q";
	check_names(NULL, "qa qb qb;ofi_q qb;x qa;ofi_q tcp;q tcp;ofi_q udp;q");
}

/* Software after the rest, layered after plain, and otherwise as the providers gave them. */
static void entries_come_in_order(void **state)
{
	(void) state;
	run(quiet, check_order);
}

static _Atomic unsigned ranked;

unsigned __real_fab_registry_rank(const char *name);
unsigned __wrap_fab_registry_rank(const char *name);
unsigned __wrap_fab_registry_rank(const char *name)
{
	ranked++;
	return __real_fab_registry_rank(name);
}

/* fake_b's entries go before fake_a's one of a higher rank, and none of them is compared with all others. */
static void check_order_costs(void)
{
	struct fi_info *info;

	fakes_register();
	fake_a.names[0] = "qa;x";
	fake_util.names[0] = NULL;
	for (int i = 0; i < FAKE_MAX - 1; i++)
		fake_b.names[i] = "qb";
	ranked = 0;
	child_check(!fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info));
	child_check(!strcmp(fake_names(info), "qb qb qb qb qb qb qb qa;x"));
	for (const struct fi_info *entry = info; entry; entry = entry->next)
		ranked -= 2;
	child_check((int) ranked <= 2);
	fi_freeinfo(info);
}

/* Of other providers there are as many entries as the machine has interfaces. */
static void order_costs_each_entry_the_same(void **state)
{
	const char *const env[] = { "FI_LOG_LEVEL=silent", "FI_PROVIDER=qa,qb,qa;x", NULL };

	(void) state;
	run(env, check_order_costs);
}

static void check_attr_only(void)
{
	struct fi_info *info, *entry;

	fakes_register();
	fake_b.names[0] = NULL;
	child_check(!ask(NULL, FI_PROV_ATTR_ONLY, &info));
	child_check(!strcmp(fake_names(info), "qa qb ofi_q"));
	for (entry = info; entry; entry = entry->next)
		child_check(entry->fabric_attr->prov_version && entry->tx_attr && entry->domain_attr && !entry->caps);
	fi_freeinfo(info);
	child_check(!fake_a.calls && !fake_b.calls);
	child_check(!ask("qb", FI_PROV_ATTR_ONLY, &info));
	child_check(!strcmp(fake_names(info), "qb"));
	fi_freeinfo(info);
}

static void providers_can_be_listed_without_being_asked(void **state)
{
	(void) state;
	run(quiet, check_attr_only);
}

static void check_failures(void)
{
	struct fi_info *info;

	fakes_register();
	fake_a.ret = -FI_EIO;
	check_names(NULL, "qb qa;ofi_q qb;ofi_q");
	fake_a.ret = -FI_ENOMEM;
	child_check(ask("qa", 0, &info) == -FI_ENOMEM && !info);
	fake_a.ret = 0;
	fake_a.prov.fi_version = FI_VERSION(1, 17);
	check_names("qa", "qa;ofi_q");
}

/* One that fails costs its own entries; one that ran out of memory costs the call: its answer would lack something. */
static void a_provider_that_fails_does_not_take_the_others_along(void **state)
{
	(void) state;
	run(quiet, check_failures);
}

/* Zeros, whose number the compiler does not know: it would warn. */
static void *old_block(size_t len)
{
	volatile size_t hidden = len;

	return calloc(1, hidden);
}

/* A provider of libfabric 1.4's days: its structures end where they ended then. */
static int old_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info)
{
	(void) version, (void) node, (void) service, (void) flags, (void) hints;
	*info = old_block(112);
	(*info)->caps = FI_MSG;
	(*info)->domain_attr = old_block(120);
	(*info)->domain_attr->name = strdup("old");
	(*info)->ep_attr = old_block(80);
	(*info)->ep_attr->max_msg_size = 5;
	return 0;
}

static void check_old_layout(void)
{
	struct fi_provider old;
	struct fi_info *info, *copy;

	fakes_register();
	old = fake_a.prov;
	old.name = "qold";
	old.fi_version = FI_VERSION(1, 4);
	old.getinfo = old_getinfo;
	child_check(!fab_registry_add(&old, NULL, "a test", false));
	child_check(!fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, NULL, &info));
	child_check(strstr(fake_names(info), "qold"));
	while (strcmp(info->fabric_attr->prov_name, "qold"))
		info = info->next;
	copy = fi_dupinfo(info);
	child_check(!strcmp(copy->domain_attr->name, "old") && copy->ep_attr->max_msg_size == 5);
	child_check(!copy->domain_attr->auth_key && !copy->domain_attr->max_cntr_value && !copy->nic);
	child_check(copy->fabric_attr->prov_name && !copy->tx_attr);
	fi_freeinfo(copy);
}

static void an_old_provider_is_brought_up_to_date(void **state)
{
	(void) state;
	run(quiet, check_old_layout);
}

static void find_nothing(void)
{
	struct fi_info *info;

	fakes_register();
	fake_a.names[0] = fake_b.names[0] = fake_util.names[0] = NULL;
	fake_a.misses = 5;
	fake_b.misses = 2;
	fake_util.misses = 1;
	fake_util.wrong_type = true;
	child_check(ask("qa,qb,ofi_q", 0, &info) == -FI_ENODATA && !info);
	printf("told %u %u %u, calls %u\n", fake_a.told, fake_b.told, fake_util.told, fake_a.calls);
	fab_log_fini();
}

/* One line a provider, the nearest miss first, and enough in it to know what to change. */
static void the_log_says_why_nothing_was_found(void **state)
{
	char *text = child_run(NULL, find_nothing), *a, *b, *util;

	(void) state;
	assert_int_equal(count_lines(text, "has no match"), 3);
	b = strstr(text, "qb has no match; nearest is qb-entry: tx_attr->size: asked 0, offered 7; "
			 "tx_attr->size: asked 1, offered 7\n");
	a = strstr(text, "qa has no match; nearest is qa-entry: tx_attr->size: asked 0, offered 7; "
			 "tx_attr->size: asked 1, offered 7; tx_attr->size: asked 2, offered 7; and 2 more\n");
	util = strstr(text, "ofi_q has no match; nearest is ofi_q-entry: ep_attr->type: asked 0, offered 7\n");
	assert_true(a && b && util && b < a && a < util);
	assert_non_null(strstr(text, "told 1 1 1, calls 2\n"));
	free(text);

	text = child_run(quiet, find_nothing);
	assert_string_equal(text, "told 0 0 0, calls 1\n");
	free(text);
}

/* The entries of one provider, each with as many misses as its name says: those of the nearest come first. */
static void the_nearest_entry_comes_first(void **state)
{
	static const char *const entries[] = { "3", "1", "2" };
	const struct fi_provider prov = { .name = "qa" };
	struct fab_reasons reasons, *before;

	(void) state;
	fab_reasons_init(&reasons);
	before = fab_reasons_listen(&reasons);
	for (size_t i = 0; i < fab_countof(entries); i++) {
		for (int k = atoi(entries[i]); k; k--)
			fab_reasons_ops.why(&prov, &(struct fab_why) {
					    .kind = FAB_WHY_WHAT, .entry = entries[i], .attr = "a", .asked = "b",
					    .offered = "c" });
	}
	fab_reasons_listen(before);
	fab_reasons_sort(&reasons);
	assert_int_equal(reasons.cnt, 6);
	assert_string_equal(reasons.list[0].entry, "1");
	assert_string_equal(reasons.list[1].entry, "2");
	assert_string_equal(reasons.list[5].entry, "3");
	fab_reasons_fini(&reasons);
}

/* Ask for more than there is, twice, and then for less. */
static void find_less(void)
{
	struct fi_info *info;

	fakes_register();
	fake_a.names[0] = fake_util.names[0] = NULL;
	fake_a.misses = 2;
	child_check(ask("qa", 0, &info) == -FI_ENODATA);
	child_check(ask("nobody", 0, &info) == -FI_ENODATA);
	if (getenv("FI_LESS"))
		child_check(!ask("qb", 0, &info));
	fi_freeinfo(info);
	fab_log_fini();
}

/* A program may ask for what it likes best until it gets something: only the end is news, and at its end. */
static void the_log_is_silent_of_what_was_found_later(void **state)
{
	static const char *const less[] = { "FI_LESS=1", NULL };
	static const char *const info[] = { "FI_LESS=1", "FI_LOG_LEVEL=info", NULL };
	char *text = child_run(less, find_less);

	(void) state;
	assert_string_equal(text, "");
	free(text);
	text = child_run(NULL, find_less);
	assert_int_equal(count_lines(text, "fi_getinfo: "), 1);
	assert_int_equal(count_lines(text, "fabric_attr->prov_name nobody: no provider has this name"), 1);
	free(text);
	text = child_run(info, find_less);
	assert_int_equal(count_lines(text, "fi_getinfo: qa has no match"), 1);
	assert_int_equal(count_lines(text, "fi_getinfo: fabric_attr->prov_name nobody: no provider has this name"), 1);
	free(text);
}

static void find_something(void)
{
	struct fi_info *info;

	fakes_register();
	fake_b.names[0] = NULL;
	fake_b.misses = 2;
	child_check(!ask("qa,qb", 0, &info));
	fi_freeinfo(info);
	printf("told %u, calls %u\n", fake_b.told, fake_b.calls);
}

static void a_call_that_finds_something_pays_nothing_for_reasons(void **state)
{
	static const char *const explain[] = { "FI_EXPLAIN=1", NULL };
	char *text = child_run(NULL, find_something);

	(void) state;
	assert_string_equal(text, "told 0, calls 1\n");
	free(text);
	text = child_run(explain, find_something);
	assert_non_null(strstr(text, "told 1, calls 1\n"));
	assert_non_null(strstr(text, "fi_getinfo(1.18, node (null), service (null), flags [  ]): "));
	assert_non_null(strstr(text, "\n  qb\n    qb-entry\n      tx_attr->size: asked 0, offered 7\n"
				     "      tx_attr->size: asked 1, offered 7\n"));
	free(text);
}

static void find_one_format(void)
{
	struct fi_info *info;

	fakes_register();
	fake_a.addr_format = FI_SOCKADDR_IN6;
	fake_b.addr_format = fake_util.addr_format = FI_SOCKADDR_IN;
	check_names("qa,qb,ofi_q", "qa");
	check_names("qb", "");
	child_check(!ask("qa,qb", FI_PROV_ATTR_ONLY, &info));
	child_check(!strcmp(fake_names(info), "qa qb"));
	fi_freeinfo(info);
}

static void find_any_format(void)
{
	fakes_register();
	fake_a.addr_format = FI_SOCKADDR_IN6;
	fake_b.addr_format = fake_util.addr_format = FI_SOCKADDR_IN;
	check_names(NULL, "qa qb qa;ofi_q qb;ofi_q");
}

/* FI_ADDR_FORMAT: entries of other formats are left out, and the log says so. */
static void one_address_format_alone_is_shown(void **state)
{
	static const char *const in6[] = { "FI_ADDR_FORMAT=fi_sockaddr_in6", "FI_LOG_LEVEL=info", NULL };
	static const char *const any_ip[] = { "FI_ADDR_FORMAT=FI_SOCKADDR_IP", NULL };
	char *text = child_run(in6, find_one_format);

	(void) state;
	assert_true(count_lines(text, "FI_ADDR_FORMAT=fi_sockaddr_in6: leaves out its entries") > 0);
	free(text);
	text = child_run(any_ip, find_any_format);
	assert_int_equal(count_lines(text, "FI_ADDR_FORMAT=FI_SOCKADDR_IP is unknown and not used"), 1);
	free(text);
}

static void find_nobody(void)
{
	struct fi_info *info;

	fakes_register();
	child_check(ask("nobody", 0, &info) == -FI_ENODATA);
	fab_log_fini();
}

static void find_only_left_out(void)
{
	struct fi_info *info;

	fakes_register();
	child_check(ask("qa", 0, &info) == -FI_ENODATA);
	fab_log_fini();
}

/* Where nobody was asked, one line says what is wrong with the name. */
static void the_log_says_who_was_left_out(void **state)
{
	static const char *const filtered[] = { "FI_PROVIDER=qb", NULL };
	char *text = child_run(NULL, find_nobody);

	(void) state;
	assert_int_equal(count_lines(text, "fi_getinfo: "), 1);
	assert_non_null(strstr(text, "fi_getinfo: fabric_attr->prov_name nobody: no provider has this name; there "));
	assert_non_null(strstr(text, "qa, qb"));
	free(text);
	text = child_run(filtered, find_only_left_out);
	assert_int_equal(count_lines(text, "fi_getinfo: "), 1);
	assert_non_null(strstr(text, "fi_getinfo: fabric_attr->prov_name qa: FI_PROVIDER=qb leaves it out\n"));
	free(text);
}

static void find_any(void)
{
	struct fi_info *info;

	child_check(fi_getinfo(fi_version(), NULL, NULL, 0, NULL, &info) == -FI_ENODATA);
}

static void find_names(void)
{
	static const char *const names[] = { "qaa", "net", "qa;qc", "aq", "efa" };
	struct fi_info *info;

	fakes_register();
	for (size_t i = 0; i < fab_countof(names); i++)
		child_check(ask(names[i], 0, &info) == -FI_ENODATA);
}

/* A name that no provider has: the nearest one, or where the provider is. */
static void a_name_of_nobody_gets_advice(void **state)
{
	static const char *const explain[] = { "FI_EXPLAIN=1", NULL };
	static const char *const typo[] = { "FI_PROVIDER=qaq,tpc,nobody", "FI_EXPLAIN=1", NULL };
	char *text = child_run(explain, find_names);

	(void) state;
	assert_int_equal(count_lines(text, "_name net: upstream's provider net is part of tcp here: ask for tcp"), 1);
	assert_int_equal(count_lines(text, "_name qaa: no provider has this name; did you mean qa?"), 1);
	assert_int_equal(count_lines(text, "_name qa;qc: qc: no provider has this name; there are "), 1);
	assert_int_equal(count_lines(text, "_name efa: weft does not have it; FI_PROVIDER_PATH may name"), 1);
	assert_int_equal(count_lines(text, "not asked"), 0);
	assert_int_equal(count_lines(text, "<warn>"), 0);	/* FI_EXPLAIN has said it */
	free(text);
	text = child_run(typo, find_any);
	assert_int_equal(count_lines(text, "  FI_PROVIDER=tpc: no provider has this name; did you mean tcp?"), 1);
	assert_int_equal(count_lines(text, "  FI_PROVIDER=nobody: no provider has this name; there are "), 1);
	free(text);
}

static void lack(void)
{
	static const char *const entries[] = { "a", "b", "c", "d", "e" };
	static const struct fi_provider prov = { .name = "qa" }, other = { .name = "qb" };
	struct fab_reasons reasons;
	struct fab_strbuf sb;
	char text[1024];

	fab_reasons_init(&reasons);
	fab_reasons_listen(&reasons);
	for (size_t i = 0; i < fab_countof(entries); i++)
		fab_reasons_ops.why(&prov, &(struct fab_why) {
				    .kind = FAB_WHY_LACKS, .entry = entries[i], .attr = "caps", .asked = "FI_HMEM",
				    .offered = entries[i] });
	fab_reasons_ops.why(&prov, &(struct fab_why) { .kind = FAB_WHY_NEEDS, .entry = "f", .attr = "mode",
			    .asked = "none", .offered = "FI_CONTEXT" });
	fab_reasons_add_skipped(&prov, "version", "9.0", "is too new");
	fab_reasons_add_skipped(&other, "version", "9.0", "is too new");
	fab_reasons_listen(NULL);
	fab_reasons_sort(&reasons);
	fab_strbuf_init(&sb, text, sizeof(text));
	fab_reasons_put(&reasons, &sb);
	fab_reasons_fini(&reasons);
	fputs(text, stdout);
}

/* Entries with the same reasons share a line, which names what they lack and not what they have. */
static void entries_that_lack_the_same_share_a_line(void **state)
{
	char *text = child_run(NULL, lack);

	(void) state;
	assert_string_equal(text, "  qa\n    a; b; c; and 2 more\n      caps: lacks FI_HMEM\n"
			    "    f\n      mode: the hints must allow FI_CONTEXT\n"
			    "  not asked: qa, qb (version 9.0: is too new)\n");
	free(text);
}

static void ask_inside(void)
{
	struct fi_info *info;

	fakes_register();
	fake_a.names[0] = fake_b.names[0] = fake_util.names[0] = NULL;
	fake_a.misses = fake_b.misses = fake_util.misses = 1;
	fake_util.asks_others = true;
	child_check(ask("qa,qb,ofi_q", 0, &info) == -FI_ENODATA);
	printf("told %u, calls %u\n", fake_a.told, fake_a.calls);
	fab_log_fini();
}

/* A provider that asks for others: what those lack is its business, and told neither twice nor as somebody else's. */
static void a_call_inside_a_call_tells_nothing(void **state)
{
	char *text = child_run(NULL, ask_inside);

	(void) state;
	assert_int_equal(count_lines(text, "has no match"), 3);
	assert_non_null(strstr(text, "told 1, calls 4\n"));
	free(text);
}

static void explain_to_program(void)
{
	struct fi_explain_reason reason;
	struct fi_ops_explain *ops = NULL;
	struct fi_info *info;
	struct fid *fid;
	char text[4096];

	child_check(!fi_open(FI_VERSION(2, 6), "explain", NULL, 0, 0, &fid, text));
	child_check(fid->context == text);
	child_check(fi_open_ops(fid, "nonsense", 0, (void **) &ops, NULL) == -FI_EINVAL);
	child_check(!fi_open_ops(fid, FI_EXPLAIN_REASONS, 0, (void **) &ops, NULL));
	child_check(ops->size == sizeof(*ops) && !ops->count(fid));
	find_nothing();
	child_check(ops->count(fid) >= 8);	/* real providers are not asked, and come last */
	child_check(!ops->reason(fid, 0, &reason));
	child_check(!strcmp(reason.prov_name, "qb") && !strcmp(reason.entry, "qb-entry"));
	child_check(!strcmp(reason.attr, "tx_attr->size") && !strcmp(reason.asked, "0"));
	child_check(!strcmp(reason.offered, "7"));
	child_check(!ops->reason(fid, 7, &reason) && !strcmp(reason.prov_name, "ofi_q"));
	child_check(ops->reason(fid, ops->count(fid), &reason) == -FI_EINVAL);
	fi_tostr_r(text, sizeof(text), fid, FI_TYPE_FID);
	child_check(strstr(text, "No data available\n  qb\n    qb-entry\n"));
	child_check(strlen(fi_tostr_r(text, 20, fid, FI_TYPE_FID)) == 19);

	find_something();
	child_check(!ops->reason(fid, 1, &reason) && !strcmp(reason.prov_name, "qb") && !strcmp(reason.asked, "1"));
	child_check(fi_control(fid, 0, NULL) == -FI_ENOSYS && fi_import_fid(fid, fid, 0) == -FI_ENOSYS);
	child_check(!fi_close(fid));
	child_check(ask("nobody", 0, &info) == -FI_ENODATA);
	fab_log_fini();
}

static void a_program_can_ask_why(void **state)
{
	(void) state;
	run(quiet, explain_to_program);
}

static void *ask_often(void *arg)
{
	struct fi_info *info;
	struct fid *fid;
	int i;

	child_check(!fi_open(FI_VERSION(2, 6), "explain", NULL, 0, 0, &fid, NULL));
	for (i = 0; i < 50; i++) {
		child_check(!ask("qa", 0, &info));
		fi_freeinfo(info);
		child_check(ask("nobody", 0, &info) == -FI_ENODATA);
	}
	fi_close(fid);
	return arg;
}

static void ask_from_threads(void)
{
	pthread_t threads[4];
	struct fi_info *info;
	int i;

	/* the first call of all is made by several at once, too */
	for (i = 0; i < 4; i++)
		child_check(!pthread_create(&threads[i], NULL, (void *(*)(void *)) (void *) fi_version, NULL));
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	fakes_register();
	for (i = 0; i < 4; i++)
		child_check(!pthread_create(&threads[i], NULL, ask_often, NULL));
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	child_check(!ask("qa", 0, &info));
	fi_freeinfo(info);
}

static void threads_may_ask_at_the_same_time(void **state)
{
	(void) state;
	run(quiet, ask_from_threads);
}

static void run_out_of_memory(void)
{
	struct fi_info *info;
	size_t blocks;
	long n;
	int ret;

	fakes_register();
	fake_a.misses = 2;
	child_check(!ask("qa", 0, &info));
	fi_freeinfo(info);
	for (n = 0; n < 1000; n++) {
		blocks = heap_blocks();
		heap_fail(n);
		ret = ask("qa", 0, &info);
		if (!heap_failed())
			break;
		heap_fail(-1);
		child_check(ret == 0 || (ret == -FI_ENOMEM && !info));
		fi_freeinfo(info);
		child_check(heap_blocks() == blocks);
	}
	child_check(n > 10 && n < 200);
	fi_freeinfo(info);
}

static void lack_of_memory_ends_the_call_and_nothing_else(void **state)
{
	(void) state;
	if (!heap_can_fail())
		unit_skip("a sanitizer has a heap of its own");
	run(quiet, run_out_of_memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_calls_are_refused_and_named),
		cmocka_unit_test(the_core_fills_in_names_and_versions),
		cmocka_unit_test(hints_choose_providers_by_name),
		cmocka_unit_test(hints_choose_providers_by_version),
		cmocka_unit_test(the_user_chooses_providers_by_name),
		cmocka_unit_test(entries_come_in_order),
		cmocka_unit_test(order_costs_each_entry_the_same),
		cmocka_unit_test(providers_can_be_listed_without_being_asked),
		cmocka_unit_test(a_provider_that_fails_does_not_take_the_others_along),
		cmocka_unit_test(an_old_provider_is_brought_up_to_date),
		cmocka_unit_test(the_log_says_why_nothing_was_found),
		cmocka_unit_test(the_nearest_entry_comes_first),
		cmocka_unit_test(the_log_is_silent_of_what_was_found_later),
		cmocka_unit_test(a_call_that_finds_something_pays_nothing_for_reasons),
		cmocka_unit_test(one_address_format_alone_is_shown),
		cmocka_unit_test(the_log_says_who_was_left_out),
		cmocka_unit_test(a_call_inside_a_call_tells_nothing),
		cmocka_unit_test(a_name_of_nobody_gets_advice),
		cmocka_unit_test(entries_that_lack_the_same_share_a_line),
		cmocka_unit_test(a_program_can_ask_why),
		cmocka_unit_test(threads_may_ask_at_the_same_time),
		cmocka_unit_test(lack_of_memory_ends_the_call_and_nothing_else),
	};

	return cmocka_run_group_tests_name("core/getinfo", tests, NULL, NULL);
}
