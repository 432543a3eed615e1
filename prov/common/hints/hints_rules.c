/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The matcher's table of independent attributes. A row says how a hint is compared with the offer, and which value the
 * answer has. Constant; any thread.
 */
#include "common/hints/hints_rules.h"

#include <string.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "base/bits.h"

enum part { TX, RX, EP, DOMAIN };

/* The condition on a hint that is not 0. */
enum compare {
	AT_MOST,	/* it is at most the offer */
	SUBSET,		/* it has only bits that the offer has */
	EQUAL,		/* it is equal to the offer */
	EQUAL_OR_OPEN,	/* likewise, or the offer is 0, which allows any value */
	KNOWN,		/* it is a value that exists, up to `max`; all of these are supported */
	TAG_BITS,	/* it has no bit above the highest bit of the offer, or the offer is 0 */
	ANY,		/* none: the attribute is only a hint */
};

/* The value in the answer. */
enum answer {
	OFFER,
	HINT,		/* the hint; the offer if the hint is 0 */
	HINT_ONLY,	/* the hint, also if it is 0: the offer is only the limit */
	ORDER,		/* the offer, without bits of offer->order_costs that the hint lacks */
};

struct rule {
	const char *name;
	enum part part;
	size_t offset, size;		/* of the attribute in its structure, in bytes */
	enum compare compare;
	enum answer answer;
	enum fab_why_kind kind;
	int text;			/* enum fi_type, or FAB_AS_* */
	uint32_t max;			/* for KNOWN and EQUAL_OR_OPEN */
};

#define FIELD(part, member, type) .name = #part "->" #member, .offset = offsetof(struct fi_##type, member),	\
	.size = sizeof(((struct fi_##type *) 0)->member)
#define TX_FIELD(member)	.part = TX, FIELD(tx_attr, member, tx_attr)
#define RX_FIELD(member)	.part = RX, FIELD(rx_attr, member, rx_attr)
#define EP_FIELD(member)	.part = EP, FIELD(ep_attr, member, ep_attr)
#define DOMAIN_FIELD(member)	.part = DOMAIN, FIELD(domain_attr, member, domain_attr)
#define LIMIT			AT_MOST, OFFER, FAB_WHY_WHAT, FAB_AS_NUMBER

static const struct rule rules[] = {
	{ EP_FIELD(type), EQUAL, OFFER, FAB_WHY_WHICH, FI_TYPE_EP_TYPE },
	{ EP_FIELD(protocol), EQUAL, OFFER, FAB_WHY_WHICH, FI_TYPE_PROTOCOL },
	{ EP_FIELD(protocol_version), AT_MOST, OFFER, FAB_WHY_WHICH, FAB_AS_NUMBER },
	{ EP_FIELD(max_msg_size), LIMIT },
	{ EP_FIELD(msg_prefix_size), LIMIT },
	{ EP_FIELD(max_order_raw_size), LIMIT },
	{ EP_FIELD(max_order_war_size), LIMIT },
	{ EP_FIELD(max_order_waw_size), LIMIT },
	{ EP_FIELD(mem_tag_format), TAG_BITS, HINT, FAB_WHY_WHAT, FAB_AS_HEX },

	{ TX_FIELD(op_flags), SUBSET, HINT_ONLY, FAB_WHY_WHAT, FI_TYPE_OP_FLAGS },
	{ TX_FIELD(msg_order), SUBSET, ORDER, FAB_WHY_WHAT, FI_TYPE_MSG_ORDER },
	{ TX_FIELD(comp_order), SUBSET, OFFER, FAB_WHY_WHAT, FI_TYPE_MSG_ORDER },
	{ TX_FIELD(inject_size), LIMIT },
	{ TX_FIELD(size), AT_MOST, HINT, FAB_WHY_WHAT, FAB_AS_NUMBER },
	{ TX_FIELD(iov_limit), LIMIT },
	{ TX_FIELD(rma_iov_limit), LIMIT },

	{ RX_FIELD(op_flags), SUBSET, HINT_ONLY, FAB_WHY_WHAT, FI_TYPE_OP_FLAGS },
	{ RX_FIELD(msg_order), SUBSET, ORDER, FAB_WHY_WHAT, FI_TYPE_MSG_ORDER },
	{ RX_FIELD(comp_order), SUBSET, OFFER, FAB_WHY_WHAT, FI_TYPE_MSG_ORDER },
	{ RX_FIELD(size), AT_MOST, HINT, FAB_WHY_WHAT, FAB_AS_NUMBER },
	{ RX_FIELD(iov_limit), LIMIT },
	{ RX_FIELD(total_buffered_recv), ANY, HINT_ONLY, FAB_WHY_WHAT, FAB_AS_NUMBER },

	{ DOMAIN_FIELD(threading), KNOWN, HINT, FAB_WHY_WHAT, FI_TYPE_THREADING, .max = FI_THREAD_ENDPOINT },
	{ DOMAIN_FIELD(control_progress), KNOWN, HINT, FAB_WHY_WHAT, FI_TYPE_PROGRESS,
	  .max = FI_PROGRESS_CONTROL_UNIFIED },
	{ DOMAIN_FIELD(data_progress), KNOWN, HINT, FAB_WHY_WHAT, FI_TYPE_PROGRESS, .max = FI_PROGRESS_MANUAL },
	{ DOMAIN_FIELD(resource_mgmt), AT_MOST, OFFER, FAB_WHY_WHAT, FAB_AS_NUMBER },
	{ DOMAIN_FIELD(av_type), EQUAL_OR_OPEN, HINT, FAB_WHY_WHAT, FI_TYPE_AV_TYPE, .max = FI_AV_TABLE },
	{ DOMAIN_FIELD(mr_key_size), LIMIT },
	{ DOMAIN_FIELD(cq_data_size), LIMIT },
	{ DOMAIN_FIELD(cq_cnt), LIMIT },
	{ DOMAIN_FIELD(ep_cnt), LIMIT },
	{ DOMAIN_FIELD(tx_ctx_cnt), LIMIT },
	{ DOMAIN_FIELD(rx_ctx_cnt), LIMIT },
	{ DOMAIN_FIELD(max_ep_tx_ctx), LIMIT },
	{ DOMAIN_FIELD(max_ep_rx_ctx), LIMIT },
	{ DOMAIN_FIELD(max_ep_stx_ctx), LIMIT },
	{ DOMAIN_FIELD(max_ep_srx_ctx), LIMIT },
	{ DOMAIN_FIELD(cntr_cnt), LIMIT },
	{ DOMAIN_FIELD(mr_iov_limit), LIMIT },
	{ DOMAIN_FIELD(mr_cnt), LIMIT },
	{ DOMAIN_FIELD(caps), SUBSET, OFFER, FAB_WHY_WHAT, FI_TYPE_CAPS },
	{ DOMAIN_FIELD(max_err_data), LIMIT },
	{ DOMAIN_FIELD(max_ep_auth_key), LIMIT },
	{ DOMAIN_FIELD(max_group_id), AT_MOST, HINT_ONLY, FAB_WHY_WHAT, FAB_AS_NUMBER },
	{ DOMAIN_FIELD(max_cntr_value), LIMIT },
	{ DOMAIN_FIELD(max_err_cntr_value), LIMIT },
};

static void *part_of(const struct fi_info *info, enum part part)
{
	switch (part) {
	case TX:
		return info->tx_attr;
	case RX:
		return info->rx_attr;
	case EP:
		return info->ep_attr;
	default:
		return info->domain_attr;
	}
}

/* The value of a row in an info; 0 if the info lacks the structure. */
static uint64_t get_value(const struct fi_info *info, const struct rule *rule)
{
	const uint8_t *part = part_of(info, rule->part);
	uint32_t small;
	uint64_t value;

	if (!part)
		return 0;
	if (rule->size == sizeof(small)) {
		memcpy(&small, part + rule->offset, sizeof(small));
		return small;
	}
	memcpy(&value, part + rule->offset, sizeof(value));
	return value;
}

static void set_value(struct fi_info *info, const struct rule *rule, uint64_t value)
{
	uint8_t *part = part_of(info, rule->part);
	uint32_t small = value;

	memcpy(part + rule->offset, rule->size == sizeof(small) ? (void *) &small : (void *) &value, rule->size);
}

/* A mask of all bits up to the highest bit of value. */
static uint64_t bits_below(uint64_t value)
{
	return value ? UINT64_MAX >> __builtin_clzll(value) : 0;
}

static bool hints_rule_fits(const struct rule *rule, uint64_t asked, uint64_t offered)
{
	switch (rule->compare) {
	case AT_MOST:
		return asked <= offered;
	case SUBSET:
		return !(asked & ~offered);
	case EQUAL:
		return asked == offered;
	case EQUAL_OR_OPEN:
		return offered ? asked == offered : asked <= rule->max;
	case KNOWN:
		return asked <= rule->max;
	case ANY:
		return true;
	default:
		return !offered || !(asked & ~bits_below(offered));
	}
}

void fab_hints_check_rules(struct fab_hint_match *match)
{
	for (size_t i = 0; i < fab_countof(rules) && !fab_hints_done(match); i++) {
		uint64_t asked = get_value(match->hints, &rules[i]);
		uint64_t offered = get_value(match->offer->info, &rules[i]);

		if (asked && !hints_rule_fits(&rules[i], asked, offered))
			fab_hints_miss(match, rules[i].compare == SUBSET ? FAB_WHY_LACKS : rules[i].kind, rules[i].name,
				   rules[i].compare == SUBSET ? asked & ~offered : asked, offered, rules[i].size,
				   rules[i].text);
	}
}

void fab_hints_answer_rules(const struct fab_hint_match *match, struct fi_info *info)
{
	for (size_t i = 0; i < fab_countof(rules); i++) {
		uint64_t asked = get_value(match->hints, &rules[i]);

		if (rules[i].answer == HINT_ONLY || (rules[i].answer == HINT && asked))
			set_value(info, &rules[i], asked);
		else if (rules[i].answer == ORDER)
			set_value(info, &rules[i], get_value(match->offer->info, &rules[i]) &
				  ~(match->offer->order_costs & ~asked));
	}
}
