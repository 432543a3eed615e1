/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Discovery: what fi_getinfo() answers to hints, versions and flags. Source: fi_getinfo(3), fi_fabric(3). */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "getinfo.h"

#define PRIMARY (FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_MULTICAST | FI_NAMED_RX_CTX | FI_DIRECTED_RECV | \
		 FI_HMEM | FI_COLLECTIVE)

int getinfo(struct test *t, uint32_t version, const char *node, const char *service, uint64_t flags,
	    const struct fi_info *hints, struct fi_info **list)
{
	int ret;

	*list = NULL;
	ret = fi_getinfo(version, node, service, flags, hints, list);
	CHECK(ret <= 0);
	CHECK((ret == 0) == (*list != NULL));
	if (*list)
		own_info(t, *list);
	return ret;
}

struct fi_info *hints_plain(struct test *t)
{
	return hints_new(t, &(struct opts) { 0 });
}

struct fi_info *first_of_run(struct test *t, struct fi_info *hints)
{
	struct fi_info *info = info_find(t, hints, NULL, NULL, 0);

	if (!info)
		FAIL("no entry for %s", run.prov);
	return info;
}

const char *text_of(struct test *t, const struct fi_info *info)
{
	char *text = mem(t, 16384);

	fi_tostr_r(text, 16384, info, FI_TYPE_INFO);
	return text;
}

/* ---- the list */

bool is_listed(void)
{
	return (run.ours || !strchr(run.prov, ';')) && !(run.ours && !strcmp(run.prov, "sockets"));
}

/* Without hints every entry of every provider comes, each complete. */
TEST_PROV(null_hints_list_everything, 0, .alone = true)
{
	struct fi_info *list, *info;
	bool found = false;

	MUST(getinfo(t, run.version, NULL, NULL, 0, NULL, &list));
	for (info = list; info; info = info->next) {
		CHECK(info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr && info->fabric_attr);
		CHECK(info->caps != 0);
		CHECK(info->ep_attr->type != FI_EP_UNSPEC);
		CHECK(info->fabric_attr->prov_name && info->fabric_attr->prov_name[0]);
		CHECK(info->fabric_attr->name && info->domain_attr->name);
		CHECK(info->fabric_attr->prov_version != 0);
		CHECK_EQ(info->fabric_attr->api_version, run.version);
		CHECK((info->src_addr != NULL) == (info->src_addrlen != 0));
		CHECK((info->dest_addr != NULL) == (info->dest_addrlen != 0));
		CHECK(info->handle == NULL);
		found |= info_is_run(info);
	}
	if (is_listed() || run.ours)
		CHECK_EQ(found, is_listed());
}

/* FI_PROGRESS_CONTROL_UNIFIED says how control calls are made; of data it says nothing. */
TEST_PROV(unified_progress_is_of_control_only, 0)
{
	struct fi_info *hints = hints_plain(t);

	hints->domain_attr->control_progress = FI_PROGRESS_CONTROL_UNIFIED;
	CHECK(info_find(t, hints, NULL, NULL, 0));
	hints->domain_attr->data_progress = FI_PROGRESS_CONTROL_UNIFIED;
	CHECK(!info_find(t, hints, NULL, NULL, 0));
}

/* Zeroed hints are a wildcard except for mode bits, of which they allow none. */
TEST_PROV(zeroed_hints, 0, .alone = true)
{
	struct fi_info *hints = fi_allocinfo(), *list, *info;
	bool found = false;

	own_info(t, hints);
	MUST(getinfo(t, run.version, NULL, NULL, 0, hints, &list));
	for (info = list; info; info = info->next) {
		CHECK_EQ(info->mode, 0);
		found |= info_is_run(info);
	}
	if (is_listed() || run.ours)
		CHECK_EQ(found, is_listed());
}

/* Attribute pointers of hints may be NULL, each of them and all. */
TEST_PROV(partial_hints, 0, .alone = true)
{
	struct fi_info hints = { 0 }, *full = hints_plain(t), *list;
	unsigned int i;

	MUST(getinfo(t, run.version, NULL, NULL, 0, &hints, &list));
	for (i = 0; i < 32; i++) {
		note("attributes 0x%x", i);
		hints = (struct fi_info) { 0 };
		hints.tx_attr = i & 1 ? full->tx_attr : NULL;
		hints.rx_attr = i & 2 ? full->rx_attr : NULL;
		hints.ep_attr = i & 4 ? full->ep_attr : NULL;
		hints.domain_attr = i & 8 ? full->domain_attr : NULL;
		hints.fabric_attr = i & 16 ? full->fabric_attr : NULL;
		MUST(getinfo(t, run.version, NULL, NULL, 0, &hints, &list));
	}
}

/* Two equal calls give equal lists. */
TEST_PROV(order_is_stable, 0)
{
	struct fi_info *a, *b;

	MUST(getinfo(t, run.version, NULL, NULL, 0, hints_plain(t), &a));
	MUST(getinfo(t, run.version, NULL, NULL, 0, hints_plain(t), &b));
	for (; a && b; a = a->next, b = b->next) {
		const char *x = text_of(t, a), *y = text_of(t, b);

		CHECK(!strcmp(x, y));
	}
	CHECK(!a && !b);
}

/* A result fed back as hints is found again, as it was. */
TEST_PROV(result_as_hints, 0)
{
	struct fi_info *list, *info, *again;
	const char *was, *is;

	MUST(getinfo(t, run.version, NULL, NULL, 0, hints_plain(t), &list));
	for (info = list; info; info = info->next) {
		note("entry %s %s", info->domain_attr->name, info->fabric_attr->name);
		CHECK_RET(getinfo(t, run.version, NULL, NULL, 0, info, &again), 0);
		was = text_of(t, info);
		is = text_of(t, again);
		if (strcmp(was, is))
			FAIL("differs:\n%s\nwas\n%s", is, was);
	}
}

/* fi_dupinfo() copies deeply; fi_dupinfo(NULL) is blank hints. */
TEST_PROV(dupinfo, 0)
{
	struct fi_info *info = first_of_run(t, hints_plain(t)), *copy = fi_dupinfo(info), *blank = fi_dupinfo(NULL);

	CHECK(copy && blank);
	own_info(t, copy);
	own_info(t, blank);
	CHECK(!strcmp(text_of(t, info), text_of(t, copy)));
	CHECK(copy->tx_attr != info->tx_attr && copy->domain_attr->name != info->domain_attr->name);
	CHECK(!info->src_addr || copy->src_addr != info->src_addr);
	CHECK(copy->next == NULL);
	CHECK(blank->tx_attr && blank->rx_attr && blank->ep_attr && blank->domain_attr && blank->fabric_attr);
	CHECK(blank->caps == 0 && blank->ep_attr->type == 0 && blank->domain_attr->name == NULL);
}

/* ---- capabilities */

/* An entry that tells of its hardware tells of all of it, and a copy has its own; the domain is called after it. */
TEST_PROV(nic, 0)
{
	struct fi_info *list, *info, *copy;
	unsigned int found = 0;

	MUST(getinfo(t, run.version, NULL, NULL, 0, hints_plain(t), &list));
	for (info = list; info; info = info->next) {
		if (!info->nic)
			continue;
		found++;
		CHECK(info->nic->device_attr && info->nic->bus_attr && info->nic->link_attr);
		CHECK(!strncmp(info->nic->device_attr->name, info->domain_attr->name,
			       strlen(info->nic->device_attr->name)));
		CHECK(info->nic->link_attr->state != FI_LINK_DOWN);
		copy = fi_dupinfo(info);
		own_info(t, copy);
		CHECK(copy->nic != info->nic && copy->nic->device_attr != info->nic->device_attr);
		CHECK(!strcmp(copy->nic->device_attr->name, info->nic->device_attr->name));
	}
	if (!found)
		SKIP("no interface with hardware below");
}

/* Of primary capabilities only what was asked for is given; context capabilities are part of the whole. */
TEST_PROV(primary_caps_only_on_request, FI_MSG)
{
	struct fi_info *info = first_of_run(t, hints_plain(t));

	CHECK_EQ(info->caps & PRIMARY, FI_MSG);
	CHECK_EQ(info->caps & (FI_SEND | FI_RECV), FI_SEND | FI_RECV);
	CHECK_EQ(info->tx_attr->caps & ~info->caps, 0);
	CHECK_EQ(info->rx_attr->caps & ~info->caps, 0);
}

/* A modifier restricts: an endpoint for sending only is not told to receive. */
TEST_PROV(modifiers_restrict, FI_MSG | FI_SEND)
{
	struct fi_info *info = first_of_run(t, hints_plain(t));

	CHECK_EQ(info->caps & (FI_SEND | FI_RECV), FI_SEND);
}

/* Whatever capability bit is asked for: it is in the answer, or there is no answer. */
TEST_PROV(caps_are_given_or_refused, 0)
{
	struct fi_info *hints = hints_plain(t), *list, *info;
	unsigned int bit;
	int ret;

	for (bit = 0; bit < 64; bit++) {
		note("capability bit %u", bit);
		hints->caps = 1ULL << bit;
		ret = getinfo(t, run.version, NULL, NULL, 0, hints, &list);
		CHECK(ret == 0 || ret == -FI_ENODATA || ret == -FI_EBADFLAGS);
		for (info = list; info; info = info->next)
			CHECK_EQ(info->caps & hints->caps, hints->caps);
	}
}

/* The same for tx_attr->caps and rx_attr->caps. */
TEST_PROV(context_caps_are_given_or_refused, FI_MSG)
{
	struct fi_info *hints = hints_plain(t), *list, *info;
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		note("capability bit %u", bit);
		hints->tx_attr->caps = 1ULL << bit;
		hints->rx_attr->caps = 0;
		getinfo(t, run.version, NULL, NULL, 0, hints, &list);
		for (info = list; info; info = info->next)
			CHECK_EQ(info->tx_attr->caps & hints->tx_attr->caps, hints->tx_attr->caps);
		hints->tx_attr->caps = 0;
		hints->rx_attr->caps = 1ULL << bit;
		getinfo(t, run.version, NULL, NULL, 0, hints, &list);
		for (info = list; info; info = info->next)
			CHECK_EQ(info->rx_attr->caps & hints->rx_attr->caps, hints->rx_attr->caps);
	}
}

/* Modes: never one that the application did not offer. */
TEST_PROV(modes_only_on_offer, 0)
{
	struct fi_info *hints = hints_plain(t), *list, *info;
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		hints->mode = 1ULL << bit;
		if (getinfo(t, run.version, NULL, NULL, 0, hints, &list))
			continue;
		for (info = list; info; info = info->next)
			CHECK_EQ(info->mode & ~hints->mode, 0);
	}
}

/* Modes that none of our providers needs are cleared. FI_LOCAL_MR is ignored beside FI_MR_LOCAL. */
TEST_PROV(modes_without_need_are_cleared, FI_MSG)
{
	struct fi_info *hints = hints_plain(t);

	if (!run.ours)
		ABSENT("upstream may need them");
	hints->caps = FI_MSG;
	hints->mode = run.mode | LOCAL_MR | FI_CONTEXT | FI_CONTEXT2 | FI_ASYNC_IOV | FI_NOTIFY_FLAGS_ONLY |
		      FI_RESTRICTED_COMP;
	hints->domain_attr->mr_mode = FI_MR_LOCAL;
	CHECK_EQ(first_of_run(t, hints)->mode & ~run.mode, 0);
}

/* The source of a message is told by unconnected endpoints only. FI_SOURCE_ERR comes together with it. */
TEST_PROV(source_is_of_the_unconnected, FI_MSG)
{
	struct fi_info *hints = hints_plain(t), *list;

	if (!run.ours)
		ABSENT("upstream's sockets offers it for connections");
	hints->caps = FI_MSG | FI_SOURCE;
	if (run.type == FI_EP_MSG)
		CHECK_RET(getinfo(t, run.version, NULL, NULL, 0, hints, &list), -FI_ENODATA);
	hints->caps = FI_MSG | FI_SOURCE_ERR;
	for (getinfo(t, run.version, NULL, NULL, 0, hints, &list); list; list = list->next)
		CHECK_EQ(list->caps & (FI_SOURCE | FI_SOURCE_ERR), FI_SOURCE | FI_SOURCE_ERR);
}

/* Data of a write may take a receive: those who are willing hear of it where it is so, for the whole and for receiving;
 * who does not say so gets an entry all the same. */
TEST_PROV(rx_cq_data_is_told, FI_MSG)
{
	struct fi_info *hints = hints_plain(t), *plain, *told;

	hints->caps = FI_MSG;
	plain = first_of_run(t, hints);
	hints->mode |= FI_RX_CQ_DATA;
	told = first_of_run(t, hints);
	CHECK(!(plain->mode & FI_RX_CQ_DATA) && !(plain->rx_attr->mode & FI_RX_CQ_DATA));
	CHECK_EQ(told->mode & FI_RX_CQ_DATA, told->rx_attr->mode & FI_RX_CQ_DATA);
	if (run.ours)
		CHECK_EQ(!!(told->mode & FI_RX_CQ_DATA), !strcmp(run.prov, "verbs"));
}

/* Space in front of messages, offered for each direction as "fi_msg_bw -k" does, is taken: none is needed. */
TEST_PROV(prefix_forced, FI_MSG)
{
	struct fi_info *hints = hints_plain(t), *info;

	if (!run.ours)
		ABSENT("upstream refuses what it does not need");
	hints->caps = FI_MSG;
	hints->mode = hints->tx_attr->mode = hints->rx_attr->mode = FI_MSG_PREFIX;
	info = first_of_run(t, hints);
	CHECK_EQ(info->mode, FI_MSG_PREFIX);
	CHECK_EQ(info->tx_attr->mode, FI_MSG_PREFIX);
	CHECK_EQ(info->rx_attr->mode, FI_MSG_PREFIX);
	CHECK_EQ(info->ep_attr->msg_prefix_size, 0);
	hints->tx_attr->mode = hints->rx_attr->mode = 0;
	CHECK_EQ(first_of_run(t, hints)->mode, 0);
}

/* The space in front of messages is a multiple of 8 bytes. */
TEST_PROV(prefix_is_a_multiple_of_8, FI_MSG)
{
	struct fi_info *hints = hints_plain(t), *list;

	hints->caps = FI_MSG;
	hints->mode = hints->tx_attr->mode = hints->rx_attr->mode = FI_MSG_PREFIX;
	for (getinfo(t, run.version, NULL, NULL, 0, hints, &list); list; list = list->next)
		CHECK_EQ(list->ep_attr->msg_prefix_size % 8, 0);
}

/* Memory of devices is offered to those who ask for it, and say what it is: not without the registration mode, and not
 * before API 1.9. */
TEST_PROV(device_memory_on_request, FI_MSG)
{
	struct fi_info *hints = hints_plain(t), *list;
	int ret;

	if (!run.ours)
		ABSENT("upstream may have it");
	hints->caps = FI_MSG | FI_HMEM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | MR_BASIC_BITS;
	CHECK_RET(getinfo(t, run.version, NULL, NULL, 0, hints, &list), -FI_ENODATA);
	hints->domain_attr->mr_mode |= FI_MR_HMEM;
	CHECK_RET(getinfo(t, FI_VERSION(1, 8), NULL, NULL, 0, hints, &list), -FI_ENODATA);
	ret = getinfo(t, run.version, NULL, NULL, 0, hints, &list);
	CHECK(!ret || ret == -FI_ENODATA);
	if (!ret) {
		CHECK_EQ(list->caps & FI_HMEM, FI_HMEM);
		CHECK_EQ(list->domain_attr->mr_mode & FI_MR_HMEM, FI_MR_HMEM);
	}
	hints->caps = 0;
	list = first_of_run(t, hints);
	CHECK_EQ(list->caps & FI_HMEM, 0);
	hints->caps = FI_MSG;
	hints->domain_attr->mr_mode = FI_MR_HMEM | FI_MR_LOCAL;
	/* a program that registers its buffers anyway may be told so */
	list = first_of_run(t, hints);
	CHECK_EQ(list->domain_attr->mr_mode & ~FI_MR_LOCAL, 0);
	CHECK_EQ(list->caps & FI_HMEM, 0);
}

/* Virtual addresses and the provider's keys are nothing to those who let nobody access their memory. */
TEST_PROV(mr_bits_are_for_targets, FI_MSG)
{
	struct fi_info *hints = hints_plain(t), *info;

	hints->caps = FI_MSG;
	hints->mode = run.mode;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED;
	info = first_of_run(t, hints);
	CHECK_EQ(info->caps & (FI_RMA | FI_ATOMIC), 0);
	CHECK_EQ(info->domain_attr->mr_mode & ~(FI_MR_LOCAL | FI_MR_ALLOCATED), 0);
}

/* Capabilities of API 2.0 and later are not in the answer to callers of an older API, nor to hints that do not name
 * them. */
TEST_PROV(young_caps_are_for_those_who_ask, FI_MSG)
{
	const uint64_t young = FI_TAGGED_MULTI_RECV | FI_TAGGED_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV;
	static const uint64_t caps[] = { 0, FI_MSG, FI_TAGGED, FI_MSG | FI_TAGGED };
	static const uint32_t versions[] = { FI_VERSION(1, 9), FI_VERSION(1, 17), FI_VERSION(2, 0) };
	struct fi_info *hints = hints_new(t, &(struct opts) { 0 }), *list;
	size_t i;

	for (i = 0; i < COUNT(caps) * COUNT(versions); i++) {
		uint32_t version = versions[i / COUNT(caps)];

		hints->caps = caps[i % COUNT(caps)];
		if (FI_VERSION_LT(fi_version(), version) || (!hints->caps && version == FI_VERSION(2, 0)) ||
		    getinfo(t, version, NULL, NULL, 0, hints, &list))
			continue;
		for (; list; list = list->next) {
			CHECK_EQ(list->caps & young, 0);
			CHECK_EQ(list->rx_attr->caps & young, 0);
		}
	}
}

static const struct fewest_row {
	const char *name;
	uint64_t caps;
} fewest_rows[] = { { "no_caps", 0 }, { "messages", FI_MSG }, { "remote_access", FI_MSG | FI_RMA } };

/* Who allows every bit of mr_mode gets none but those without which there is no entry, and FI_MR_LOCAL where the
 * registrations of the program save the provider its own. */
TEST_TABLE(mr_mode_is_the_fewest, fewest_rows, FI_MSG)
{
	struct fi_info *hints = hints_plain(t), *info;
	int needed, bit;

	hints->caps = ROW(fewest_rows)->caps;
	hints->mode = run.mode;
	hints->domain_attr->mr_mode = ~(MR_BASIC | MR_SCALABLE);
	info = info_find(t, hints, NULL, NULL, 0);
	if (!info)
		ABSENT("not offered");
	needed = info->domain_attr->mr_mode;
	hints->caps = info->caps;
	for (bit = FI_MR_LOCAL; bit <= FI_MR_COLLECTIVE; bit <<= 1) {
		if (!(needed & bit) || (bit == FI_MR_LOCAL && strstr(run.prov, "ofi_rxm")))
			continue;
		note("mr_mode %#x without %#x", (unsigned int) needed, (unsigned int) bit);
		hints->domain_attr->mr_mode = needed & ~bit;
		CHECK(!info_find(t, hints, NULL, NULL, 0));
	}
}

/* ---- attributes: one value after the other, and what is answered is never less than what was asked */

enum part { TX, RX, EP, DOMAIN };

struct size_attr {
	const char *name;
	enum part part;
	size_t offset;
};

#define TX_ATTR(m) { "tx_" #m, TX, offsetof(struct fi_tx_attr, m) }
#define RX_ATTR(m) { "rx_" #m, RX, offsetof(struct fi_rx_attr, m) }
#define EP_ATTR(m) { "ep_" #m, EP, offsetof(struct fi_ep_attr, m) }
#define DOMAIN_ATTR(m) { "domain_" #m, DOMAIN, offsetof(struct fi_domain_attr, m) }

static const struct size_attr size_attrs[] = {
	TX_ATTR(inject_size), TX_ATTR(size), TX_ATTR(iov_limit), TX_ATTR(rma_iov_limit),
	RX_ATTR(size), RX_ATTR(iov_limit), RX_ATTR(total_buffered_recv),
	EP_ATTR(max_msg_size), EP_ATTR(max_order_raw_size), EP_ATTR(max_order_war_size), EP_ATTR(max_order_waw_size),
	EP_ATTR(tx_ctx_cnt), EP_ATTR(rx_ctx_cnt),
	DOMAIN_ATTR(mr_key_size), DOMAIN_ATTR(cq_data_size), DOMAIN_ATTR(cq_cnt), DOMAIN_ATTR(ep_cnt),
	DOMAIN_ATTR(tx_ctx_cnt), DOMAIN_ATTR(rx_ctx_cnt), DOMAIN_ATTR(max_ep_tx_ctx), DOMAIN_ATTR(max_ep_rx_ctx),
	DOMAIN_ATTR(max_ep_stx_ctx), DOMAIN_ATTR(max_ep_srx_ctx), DOMAIN_ATTR(cntr_cnt), DOMAIN_ATTR(mr_iov_limit),
	DOMAIN_ATTR(mr_cnt), DOMAIN_ATTR(max_err_data), DOMAIN_ATTR(max_ep_auth_key),
};

static size_t *attr_of(struct fi_info *info, const struct size_attr *a)
{
	void *base = a->part == TX ? (void *) info->tx_attr : a->part == RX ? (void *) info->rx_attr :
		     a->part == EP ? (void *) info->ep_attr : (void *) info->domain_attr;

	return (size_t *) ((char *) base + a->offset);
}

/* A size in the hints is answered with at least that size, or by no entry. */
TEST_TABLE(never_less_than_asked, size_attrs, 0)
{
	const struct size_attr *a = ROW(size_attrs);
	struct fi_info *hints = hints_plain(t), *list, *info;
	size_t offered = *attr_of(first_of_run(t, hints_plain(t)), a), i;
	const size_t asks[] = { 1, offered, offered + 1, 1 << 20, SIZE_MAX / 2, SIZE_MAX - 1, SIZE_MAX };
	int ret;

	for (i = 0; i < COUNT(asks); i++) {
		*attr_of(hints, a) = asks[i];
		note("asked %zu, offered %zu", asks[i], offered);
		ret = getinfo(t, run.version, NULL, NULL, 0, hints, &list);
		CHECK(ret == 0 || ret == -FI_ENODATA);
		if (asks[i] && asks[i] == offered)
			CHECK_RET(ret, 0);
		for (info = list; info; info = info->next) {
			if (*attr_of(info, a) < asks[i] && asks[i] != FI_SHARED_CONTEXT)
				FAIL("answered %zu", *attr_of(info, a));
		}
	}
}

struct set_row {
	const char *name;
	void (*set)(struct fi_info *hints);
	bool (*ok)(const struct fi_info *info);		/* what an answer must look like; NULL: there is none */
	bool reliable;					/* nothing that a datagram endpoint has */
};

#define SET(name_, stmt) static void set_##name_(struct fi_info *h) { stmt; }
#define OK(name_, cond) static bool ok_##name_(__attribute__((unused)) const struct fi_info *i) { return cond; }
#define BOTH(name_, stmt, cond) SET(name_, stmt) OK(name_, cond)

BOTH(thread_domain, h->domain_attr->threading = FI_THREAD_DOMAIN, i->domain_attr->threading == FI_THREAD_DOMAIN)
BOTH(thread_completion, h->domain_attr->threading = FI_THREAD_COMPLETION,
     i->domain_attr->threading == FI_THREAD_COMPLETION)
BOTH(thread_safe, h->domain_attr->threading = FI_THREAD_SAFE, i->domain_attr->threading == FI_THREAD_SAFE)
BOTH(thread_unspec, h->domain_attr->threading = FI_THREAD_UNSPEC,
     run.ours ? i->domain_attr->threading == FI_THREAD_SAFE : i->domain_attr->threading != FI_THREAD_UNSPEC)
BOTH(progress_auto, h->domain_attr->control_progress = h->domain_attr->data_progress = FI_PROGRESS_AUTO,
     i->domain_attr->control_progress == FI_PROGRESS_AUTO && i->domain_attr->data_progress == FI_PROGRESS_AUTO)
BOTH(control_auto_data_manual, h->domain_attr->control_progress = FI_PROGRESS_AUTO;
     h->domain_attr->data_progress = FI_PROGRESS_MANUAL, i->domain_attr->control_progress == FI_PROGRESS_AUTO)
BOTH(control_auto, h->domain_attr->control_progress = FI_PROGRESS_AUTO,
     i->domain_attr->control_progress == FI_PROGRESS_AUTO)
BOTH(data_manual, h->domain_attr->data_progress = FI_PROGRESS_MANUAL,
     i->domain_attr->data_progress == FI_PROGRESS_MANUAL || i->domain_attr->data_progress == FI_PROGRESS_AUTO)
BOTH(rm_enabled, h->domain_attr->resource_mgmt = FI_RM_ENABLED, i->domain_attr->resource_mgmt == FI_RM_ENABLED)
BOTH(rm_disabled, h->domain_attr->resource_mgmt = FI_RM_DISABLED, i->domain_attr->resource_mgmt != FI_RM_UNSPEC)
BOTH(av_table, h->domain_attr->av_type = FI_AV_TABLE, i->domain_attr->av_type == FI_AV_TABLE)
BOTH(order_sas, h->tx_attr->msg_order = h->rx_attr->msg_order = FI_ORDER_SAS,
     i->tx_attr->msg_order & i->rx_attr->msg_order & FI_ORDER_SAS)
BOTH(mr_none, h->domain_attr->mr_mode = 0, i->domain_attr->mr_mode == 0)
BOTH(mr_basic_bits, h->domain_attr->mr_mode = MR_BASIC_BITS, !(i->domain_attr->mr_mode & ~MR_BASIC_BITS))
BOTH(mr_all_bits, h->domain_attr->mr_mode = MR_BASIC_BITS | FI_MR_LOCAL | FI_MR_RAW | FI_MR_MMU_NOTIFY |
     FI_MR_RMA_EVENT | FI_MR_ENDPOINT | FI_MR_HMEM, !(i->domain_attr->mr_mode & (MR_BASIC | MR_SCALABLE)))
BOTH(op_flags_delivery, h->tx_attr->op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION,
     (i->tx_attr->op_flags & FI_DELIVERY_COMPLETE) != 0)
BOTH(total_buffered_recv, h->rx_attr->total_buffered_recv = 1 << 20,
     i->rx_attr->total_buffered_recv >= 1 << 20)
BOTH(version_in_hints, h->fabric_attr->prov_version = FI_VERSION(1, 0), true)

SET(no_provider, free(h->fabric_attr->prov_name); h->fabric_attr->prov_name = strdup("no-such-provider"))
SET(no_domain, h->domain_attr->name = strdup("no-such-domain"))
SET(no_fabric, h->fabric_attr->name = strdup("no-such-fabric"))
SET(no_protocol, h->ep_attr->protocol = 0x7ffffffe)
SET(no_ep_type, h->ep_attr->type = (enum fi_ep_type) 77)
SET(no_threading, h->domain_attr->threading = (enum fi_threading) 77)
SET(no_progress, h->domain_attr->data_progress = (enum fi_progress) 77)
SET(no_resource_mgmt, h->domain_attr->resource_mgmt = (enum fi_resource_mgmt) 77)
SET(no_av_type, h->domain_attr->av_type = (enum fi_av_type) 77)
SET(no_addr_format, h->addr_format = 7777)
SET(no_msg_order, h->tx_attr->msg_order = 1ULL << 62)
SET(no_rx_msg_order, h->rx_attr->msg_order = 1ULL << 62)
SET(psm_addr_format, h->addr_format = FI_ADDR_PSMX2)
SET(ib_protocol, h->ep_attr->protocol = FI_PROTO_IB_UD)

char *long_name(void)
{
	char *name = malloc(65537);

	memset(name, 'n', 65536);
	name[65536] = 0;
	return name;
}

SET(long_provider, free(h->fabric_attr->prov_name); h->fabric_attr->prov_name = long_name())
SET(long_domain, h->domain_attr->name = long_name())
SET(long_fabric, h->fabric_attr->name = long_name())

#define ROW_OK(name) { #name, set_##name, ok_##name, false }
#define ROW_RELIABLE(name) { #name, set_##name, ok_##name, true }
#define ROW_NONE(name) { #name, set_##name, NULL, false }

static const struct set_row set_rows[] = {
	ROW_OK(thread_domain), ROW_OK(thread_completion), ROW_OK(thread_safe), ROW_OK(thread_unspec),
	ROW_OK(progress_auto), ROW_OK(control_auto_data_manual), ROW_OK(control_auto), ROW_OK(data_manual),
	ROW_OK(rm_enabled), ROW_OK(rm_disabled), ROW_OK(av_table), ROW_RELIABLE(order_sas), ROW_OK(mr_none),
	ROW_OK(mr_basic_bits), ROW_OK(mr_all_bits), ROW_RELIABLE(op_flags_delivery), ROW_OK(total_buffered_recv),
	ROW_OK(version_in_hints),
	ROW_NONE(no_provider), ROW_NONE(no_domain), ROW_NONE(no_fabric), ROW_NONE(no_protocol), ROW_NONE(no_ep_type),
	ROW_NONE(no_threading), ROW_NONE(no_progress), ROW_NONE(no_resource_mgmt), ROW_NONE(no_av_type),
	ROW_NONE(no_addr_format), ROW_NONE(no_msg_order), ROW_NONE(no_rx_msg_order), ROW_NONE(psm_addr_format),
	ROW_NONE(ib_protocol), ROW_NONE(long_provider), ROW_NONE(long_domain), ROW_NONE(long_fabric),
};

/* One wish at a time: what is answered honours it; what nobody has is -FI_ENODATA. */
TEST_TABLE(one_wish, set_rows, 0)
{
	const struct set_row *row = ROW(set_rows);
	struct fi_info *hints = hints_plain(t), *list, *info;
	int ret;

	if (row->reliable && run.type == FI_EP_DGRAM)
		ABSENT("reliable endpoints only");
	row->set(hints);
	ret = getinfo(t, run.version, NULL, NULL, 0, hints, &list);
	if (!row->ok) {
		CHECK_RET(ret, -FI_ENODATA);
		return;
	}
	if (ret == -FI_ENODATA && !run.ours)
		ABSENT("%s does not offer it", run.prov);
	MUST(ret);
	for (info = list; info; info = info->next)
		CHECK(row->ok(info));
}

/* Names of the answer are names to ask by. */
TEST_PROV(by_name, 0)
{
	struct fi_info *all, *info, *hints, *list, *one;

	MUST(getinfo(t, run.version, NULL, NULL, 0, hints_plain(t), &all));
	for (info = all; info; info = info->next) {
		hints = hints_plain(t);
		hints->domain_attr->name = strdup(info->domain_attr->name);
		hints->fabric_attr->name = strdup(info->fabric_attr->name);
		hints->ep_attr->protocol = info->ep_attr->protocol;
		hints->addr_format = info->addr_format;
		MUST(getinfo(t, run.version, NULL, NULL, 0, hints, &list));
		for (one = list; one; one = one->next) {
			CHECK(!strcmp(one->domain_attr->name, info->domain_attr->name));
			CHECK(!strcmp(one->fabric_attr->name, info->fabric_attr->name));
			CHECK_EQ(one->ep_attr->protocol, info->ep_attr->protocol);
			CHECK_EQ(one->addr_format, info->addr_format);
		}
	}
}
