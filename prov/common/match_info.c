/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The matcher. Most attributes are rows of a table: how a hint compares with the offer, and whose value the answer has.
 * Those that depend on each other (capabilities, modes, names and handles, memory registration, contexts) have a
 * function each.
 *
 * One struct match goes through all checks of one offer. Without a listener the first mismatch ends it and no text is
 * made; with one, every mismatch is counted and told.
 */
#include "common/match_info.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "common/ep.h"
#include "common/fabric.h"
#include "common/tclass.h"

#define TEXT_MAX 512

struct match {
	const struct fi_provider *prov;
	uint32_t version;		/* of the API, as the caller wants it */
	const struct fi_info *hints;	/* never NULL */
	const struct fab_offer *offer;
	bool opening;			/* the hints are the info that an object is opened with (fab_match_check) */
	unsigned miss_cnt;
	/* Called for each mismatch; NULL: nobody wants to know. */
	void (*listen)(const struct match *match, enum fab_why_kind kind, const char *attr, const char *asked,
		       const char *offered);
};

/* True if the checks of this offer may end: a mismatch was found, and nobody listens. */
static bool done(const struct match *match)
{
	return match->miss_cnt && !match->listen;
}

static void miss(struct match *match, enum fab_why_kind kind, const char *attr, const char *asked, const char *offered)
{
	match->miss_cnt++;
	if (match->listen)
		match->listen(match, kind, attr, asked, offered);
}

/* ---- values as text ---- */

/* What a value is, for its text: an enum fi_type, or one of these. */
enum { AS_NUMBER = -1, AS_HEX = -2 };

static const char *to_text(char text[TEXT_MAX], uint64_t value, size_t size, int type)
{
	uint32_t small = value;

	if (type == AS_NUMBER)
		snprintf(text, TEXT_MAX, "%" PRIu64, value);
	else if (type == AS_HEX)
		snprintf(text, TEXT_MAX, "%#" PRIx64, value);
	else
		fi_tostr_r(text, TEXT_MAX, size == sizeof(small) ? (void *) &small : (void *) &value, type);
	return text;
}

static void miss_value(struct match *match, enum fab_why_kind kind, const char *attr, uint64_t asked, uint64_t offered,
		       size_t size, int type)
{
	char asked_text[TEXT_MAX], offered_text[TEXT_MAX];

	if (match->listen)
		miss(match, kind, attr, to_text(asked_text, asked, size, type),
		     to_text(offered_text, offered, size, type));
	else
		match->miss_cnt++;
}

/* Bits asked that are not offered. */
static void check_bits(struct match *match, const char *attr, uint64_t asked, uint64_t offered, int type)
{
	if (asked & ~offered)
		miss_value(match, FAB_WHY_WHAT, attr, asked & ~offered, offered, sizeof(asked), type);
}

/* ---- attributes that stand alone ---- */

enum part { TX, RX, EP, DOMAIN, FABRIC };

/* A non-zero hint ... */
enum compare {
	AT_MOST,	/* may not be more than the offer */
	SUBSET,		/* may have no bit that the offer lacks */
	EQUAL,		/* must be what is offered */
	EQUAL_OR_OPEN,	/* likewise, unless the offer leaves it open by 0 */
	KNOWN,		/* must be a value that exists, up to `max`: every one can be had */
	TAG_BITS,	/* may not use bits above the highest of the offer */
};

/* What the answer has. */
enum answer {
	OFFER,
	HINT,		/* the hint, or the offer where it is 0 */
	HINT_ONLY,	/* the hint, be it 0: the offer says what could be asked for */
	ORDER,		/* the offer, without those of offer->order_costs that the hint has not */
};

struct rule {
	const char *name;
	enum part part;
	size_t offset, size;		/* in the part, in bytes */
	enum compare compare;
	enum answer answer;
	enum fab_why_kind kind;
	int text;			/* enum fi_type, or AS_* */
	uint32_t max;			/* of KNOWN and EQUAL_OR_OPEN */
};

#define FIELD(part, member, type) .name = #part "->" #member, .offset = offsetof(struct fi_##type, member),	\
	.size = sizeof(((struct fi_##type *) 0)->member)
#define TX_FIELD(member)	.part = TX, FIELD(tx_attr, member, tx_attr)
#define RX_FIELD(member)	.part = RX, FIELD(rx_attr, member, rx_attr)
#define EP_FIELD(member)	.part = EP, FIELD(ep_attr, member, ep_attr)
#define DOMAIN_FIELD(member)	.part = DOMAIN, FIELD(domain_attr, member, domain_attr)
#define FABRIC_FIELD(member)	.part = FABRIC, FIELD(fabric_attr, member, fabric_attr)
#define LIMIT			AT_MOST, OFFER, FAB_WHY_WHAT, AS_NUMBER

static const struct rule rules[] = {
	{ EP_FIELD(type), EQUAL, OFFER, FAB_WHY_WHICH, FI_TYPE_EP_TYPE },
	{ EP_FIELD(protocol), EQUAL, OFFER, FAB_WHY_WHICH, FI_TYPE_PROTOCOL },
	{ EP_FIELD(protocol_version), AT_MOST, OFFER, FAB_WHY_WHICH, AS_NUMBER },
	{ EP_FIELD(max_msg_size), LIMIT },
	{ EP_FIELD(msg_prefix_size), LIMIT },
	{ EP_FIELD(max_order_raw_size), LIMIT },
	{ EP_FIELD(max_order_war_size), LIMIT },
	{ EP_FIELD(max_order_waw_size), LIMIT },
	{ EP_FIELD(mem_tag_format), TAG_BITS, HINT, FAB_WHY_WHAT, AS_HEX },

	{ TX_FIELD(op_flags), SUBSET, HINT_ONLY, FAB_WHY_WHAT, FI_TYPE_OP_FLAGS },
	{ TX_FIELD(msg_order), SUBSET, ORDER, FAB_WHY_WHAT, FI_TYPE_MSG_ORDER },
	{ TX_FIELD(comp_order), SUBSET, OFFER, FAB_WHY_WHAT, FI_TYPE_MSG_ORDER },
	{ TX_FIELD(inject_size), LIMIT },
	{ TX_FIELD(size), AT_MOST, HINT, FAB_WHY_WHAT, AS_NUMBER },
	{ TX_FIELD(iov_limit), LIMIT },
	{ TX_FIELD(rma_iov_limit), LIMIT },

	{ RX_FIELD(op_flags), SUBSET, HINT_ONLY, FAB_WHY_WHAT, FI_TYPE_OP_FLAGS },
	{ RX_FIELD(msg_order), SUBSET, ORDER, FAB_WHY_WHAT, FI_TYPE_MSG_ORDER },
	{ RX_FIELD(comp_order), SUBSET, OFFER, FAB_WHY_WHAT, FI_TYPE_MSG_ORDER },
	{ RX_FIELD(size), AT_MOST, HINT, FAB_WHY_WHAT, AS_NUMBER },
	{ RX_FIELD(iov_limit), LIMIT },

	{ DOMAIN_FIELD(threading), KNOWN, HINT, FAB_WHY_WHAT, FI_TYPE_THREADING, .max = FI_THREAD_ENDPOINT },
	{ DOMAIN_FIELD(control_progress), KNOWN, HINT, FAB_WHY_WHAT, FI_TYPE_PROGRESS,
	  .max = FI_PROGRESS_CONTROL_UNIFIED },
	{ DOMAIN_FIELD(data_progress), KNOWN, HINT, FAB_WHY_WHAT, FI_TYPE_PROGRESS,
	  .max = FI_PROGRESS_CONTROL_UNIFIED },
	{ DOMAIN_FIELD(resource_mgmt), AT_MOST, HINT, FAB_WHY_WHAT, AS_NUMBER },
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
	{ DOMAIN_FIELD(max_group_id), AT_MOST, HINT_ONLY, FAB_WHY_WHAT, AS_NUMBER },
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
	case DOMAIN:
		return info->domain_attr;
	default:
		return info->fabric_attr;
	}
}

/* The value of a row in an info; 0 if it has no such part. */
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

/* All bits up to the highest one that is set. */
static uint64_t bits_below(uint64_t value)
{
	return value ? UINT64_MAX >> __builtin_clzll(value) : 0;
}

static bool fits(const struct rule *rule, uint64_t asked, uint64_t offered)
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
	default:
		return !(asked & ~bits_below(offered));
	}
}

static void check_rules(struct match *match)
{
	for (size_t i = 0; i < fab_countof(rules) && !done(match); i++) {
		uint64_t asked = get_value(match->hints, &rules[i]);
		uint64_t offered = get_value(match->offer->info, &rules[i]);

		if (asked && !fits(&rules[i], asked, offered))
			miss_value(match, rules[i].kind, rules[i].name,
				   rules[i].compare == SUBSET ? asked & ~offered : asked, offered, rules[i].size,
				   rules[i].text);
	}
}

static void answer_rules(const struct match *match, struct fi_info *info)
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

/* ---- capabilities ---- */

#define TX_CAPS										\
	(FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_READ | FI_WRITE | FI_SEND | FI_HMEM | FI_TRIGGER |	\
	 FI_FENCE | FI_MULTICAST | FI_RMA_PMEM | FI_NAMED_RX_CTX | FI_COLLECTIVE)
#define RX_CAPS										\
	(FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RECV | FI_HMEM |	\
	 FI_TRIGGER | FI_RMA_PMEM | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT |		\
	 FI_SOURCE_ERR | FI_COLLECTIVE | FI_TAGGED_DIRECTED_RECV | FI_TAGGED_MULTI_RECV |			\
	 FI_EXACT_DIRECTED_RECV)

/* Those of the offer that the answer has: what was asked, and what comes with it. */
static uint64_t answer_caps(const struct match *match)
{
	const struct fab_offer *offer = match->offer;
	uint64_t caps = fab_caps_full(match->hints->caps), extra = offer->secondary_caps;

	/* who did not ask for it takes messages of strangers for errors */
	if (!match->hints->caps)
		return offer->info->caps & ~FI_SOURCE_ERR;
	/* without what it is about, a secondary capability says nothing */
	if (!(caps & (FI_RMA | FI_ATOMIC)))
		extra &= ~(FI_RMA_EVENT | FI_RMA_PMEM);
	if (!(caps & FI_RECV))
		extra &= ~(FI_MULTI_RECV | FI_TAGGED_MULTI_RECV | FI_SOURCE | FI_SOURCE_ERR);
	if (!(caps & FI_TAGGED))
		extra &= ~FI_TAGGED_MULTI_RECV;
	return caps | (extra & offer->info->caps);
}

/* Of one direction: those of the info that have a use there, restricted to the hint's own where it has some. What a hint
 * names beyond that (programs hand all their capabilities down) is in the answer as well. */
static uint64_t answer_part_caps(const struct match *match, uint64_t hint, uint64_t mask)
{
	uint64_t whole = answer_caps(match), caps = whole & mask;

	if (hint)
		caps &= fab_caps_full(hint) | match->offer->secondary_caps;
	if (!(caps & (FI_SEND | FI_RECV)))
		caps &= ~(FI_MSG | FI_TAGGED);
	if (!(caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)))
		caps &= ~(FI_RMA | FI_ATOMIC);
	return caps | (whole & hint);
}

static void check_caps(struct match *match)
{
	const struct fi_info *hints = match->hints;
	uint64_t limit = match->offer->info->caps;

	check_bits(match, "caps", fab_caps_full(hints->caps), limit, FI_TYPE_CAPS);
	if (hints->caps && !match->opening)
		limit &= answer_caps(match);
	if (hints->tx_attr)
		check_bits(match, "tx_attr->caps", hints->tx_attr->caps, limit, FI_TYPE_CAPS);
	if (hints->rx_attr)
		check_bits(match, "rx_attr->caps", hints->rx_attr->caps, limit, FI_TYPE_CAPS);
}

/* ---- modes: what the application must be willing to do ---- */

static void check_mode(struct match *match, const char *attr, uint64_t willing, uint64_t wanted)
{
	if (wanted & ~willing)
		miss_value(match, FAB_WHY_WHAT, attr, willing, wanted, sizeof(wanted), FI_TYPE_MODE);
}

static void check_modes(struct match *match)
{
	const struct fi_info *hints = match->hints, *info = match->offer->info;
	uint64_t tx = hints->tx_attr ? hints->tx_attr->mode : 0, rx = hints->rx_attr ? hints->rx_attr->mode : 0;

	check_mode(match, "mode", hints->mode, info->mode);
	check_mode(match, "tx_attr->mode", tx ? tx : hints->mode, info->tx_attr->mode);
	check_mode(match, "rx_attr->mode", rx ? rx : hints->mode, info->rx_attr->mode);
	check_mode(match, "domain_attr->mode", hints->domain_attr ? hints->domain_attr->mode : hints->mode,
		   info->domain_attr->mode);
}

/* What a receiver is told of, if it is willing: nobody has to be. */
static void answer_told(const struct match *match, struct fi_info *info)
{
	const struct fi_info *hints = match->hints;
	uint64_t rx = hints->rx_attr && hints->rx_attr->mode ? hints->rx_attr->mode : hints->mode;

	info->mode |= rx & match->offer->mode_told;
	info->rx_attr->mode |= rx & match->offer->mode_told;
}

/* Who says so for one direction, and not just "if need be" for the whole, gets FI_MSG_PREFIX: room of msg_prefix_size
 * bytes, here 0, in front of each message. */
static void answer_prefix(const struct match *match, struct fi_info *info)
{
	const struct fi_info *hints = match->hints;
	uint64_t tx = hints->tx_attr ? hints->tx_attr->mode & FI_MSG_PREFIX : 0;
	uint64_t rx = hints->rx_attr ? hints->rx_attr->mode & FI_MSG_PREFIX : 0;

	info->tx_attr->mode |= tx;
	info->rx_attr->mode |= rx;
	info->mode |= tx | rx;
}

/* ---- memory registration ---- */

#define MR_BASIC_BITS (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

/* What registration must be like. Whoever asks for messages alone lets nobody reach its memory, and so has no part in keys
 * and addresses of it; a client that asks for nothing asks for everything. */
static uint64_t needed_mr_mode(const struct match *match)
{
	uint64_t caps = match->hints->caps, need = match->offer->mr_mode_need;

	return !caps || (caps & (FI_RMA | FI_ATOMIC)) ? need : need & ~(uint64_t) MR_BASIC_BITS;
}

/* The hint, with the older names told apart: below API 1.5 there are only those, and 0 stands for either. */
static int asked_mr_mode(const struct match *match)
{
	int mode = match->hints->domain_attr ? match->hints->domain_attr->mr_mode : 0;

	if (!mode && FI_VERSION_LT(match->version, FI_VERSION(1, 5)))
		return needed_mr_mode(match) & ~FI_MR_LOCAL ? FI_MR_BASIC : FI_MR_SCALABLE;
	return mode;
}

static bool is_old_mr_mode(int mode)
{
	return mode == FI_MR_BASIC || mode == FI_MR_SCALABLE;
}

/* FI_MR_LOCAL goes by the mode bit FI_LOCAL_MR where the older names are in use. */
static uint64_t old_mr_bits(const struct match *match, int mode)
{
	return (mode == FI_MR_BASIC ? MR_BASIC_BITS : 0) | (match->hints->mode & FI_LOCAL_MR ? FI_MR_LOCAL : 0);
}

static void check_mr_mode(struct match *match)
{
	static const char attr[] = "domain_attr->mr_mode";
	int mode = asked_mr_mode(match), want = needed_mr_mode(match);
	uint64_t willing = is_old_mr_mode(mode) ? old_mr_bits(match, mode) : (uint64_t) mode;

	if (!is_old_mr_mode(mode) && (mode & (FI_MR_BASIC | FI_MR_SCALABLE)))
		miss(match, FAB_WHY_WHAT, attr, "FI_MR_BASIC or FI_MR_SCALABLE with other bits", "each stands alone");
	else if (mode == FI_MR_BASIC && MR_BASIC_BITS & ~(match->offer->mr_mode_can | match->offer->mr_mode_need))
		miss(match, FAB_WHY_WHAT, attr, "FI_MR_BASIC", "scalable registration only (FI_MR_SCALABLE, or 0)");
	else if (want & ~willing)
		miss_value(match, FAB_WHY_WHAT, attr, willing, want, sizeof(int), FI_TYPE_MR_MODE);
}

static void answer_mr_mode(const struct match *match, struct fi_info *info)
{
	int mode = asked_mr_mode(match);

	if (!is_old_mr_mode(mode))
		mode = needed_mr_mode(match) | (mode & match->offer->mr_mode_can);
	else if (match->offer->mr_mode_need & FI_MR_LOCAL)
		info->mode |= FI_LOCAL_MR;
	info->domain_attr->mr_mode = mode;
}

/* ---- names, handles, addresses ---- */

static void check_addr_format(struct match *match)
{
	uint32_t asked = match->hints->addr_format, offered = match->offer->info->addr_format;
	bool ip = offered == FI_SOCKADDR_IN || offered == FI_SOCKADDR_IN6;

	if (asked == FI_FORMAT_UNSPEC || asked == offered)
		return;
	if ((asked == FI_SOCKADDR && (ip || offered == FI_SOCKADDR_IB)) || (asked == FI_SOCKADDR_IP && ip))
		return;
	miss_value(match, FAB_WHY_WHICH, "addr_format", asked, offered, sizeof(asked), FI_TYPE_ADDR_FORMAT);
}

static void check_name(struct match *match, const char *attr, const char *asked, const char *offered)
{
	char text[TEXT_MAX];

	if (!asked || !strcmp(asked, offered))
		return;
	snprintf(text, sizeof(text), "%.200s", asked);
	miss(match, FAB_WHY_WHICH, attr, text, offered);
}

static void check_names(struct match *match)
{
	const struct fi_fabric_attr *fabric = match->hints->fabric_attr;
	const struct fi_domain_attr *domain = match->hints->domain_attr;
	const struct fi_info *info = match->offer->info;

	if (match->opening)
		return;
	if (fabric) {
		check_name(match, "fabric_attr->name", fabric->name, info->fabric_attr->name);
		if (fabric->fabric &&
		    !fab_fabric_find(match->prov, fabric->fabric, info->fabric_attr->name))
			miss(match, FAB_WHY_WHICH, "fabric_attr->fabric", "an open fabric of another name or provider",
			     info->fabric_attr->name);
	}
	if (domain) {
		check_name(match, "domain_attr->name", domain->name, info->domain_attr->name);
		if (domain->domain &&
		    !fab_domain_find(match->prov, domain->domain, info->fabric_attr->name, info->domain_attr->name))
			miss(match, FAB_WHY_WHICH, "domain_attr->domain", "an open domain of another name or provider",
			     info->domain_attr->name);
	}
}

/* What of this is open already: the one that was asked for, or the oldest. */
static void answer_handles(const struct match *match, struct fi_info *info)
{
	const struct fi_info *hints = match->hints;

	info->fabric_attr->fabric = fab_fabric_find(match->prov, hints->fabric_attr ? hints->fabric_attr->fabric : NULL,
						    info->fabric_attr->name);
	info->domain_attr->domain = fab_domain_find(match->prov, hints->domain_attr ? hints->domain_attr->domain : NULL,
						    info->fabric_attr->name, info->domain_attr->name);
	if (hints->handle && hints->handle->fclass == FI_CLASS_PEP)
		info->handle = hints->handle;
}

/* ---- the rest ---- */

/* An endpoint's contexts: so many, or shared ones. */
static void check_ctx_cnt(struct match *match, const char *attr, size_t asked, size_t max, size_t shared_max)
{
	if (asked == FI_SHARED_CONTEXT) {
		if (!shared_max)
			miss(match, FAB_WHY_WHAT, attr, "FI_SHARED_CONTEXT", "no shared contexts");
	} else if (asked > max) {
		miss_value(match, FAB_WHY_WHAT, attr, asked, max, sizeof(asked), AS_NUMBER);
	}
}

static void check_ep(struct match *match)
{
	const struct fi_domain_attr *max = match->offer->info->domain_attr;
	const struct fi_ep_attr *ep = match->hints->ep_attr;

	if (!ep)
		return;
	check_ctx_cnt(match, "ep_attr->tx_ctx_cnt", ep->tx_ctx_cnt, max->max_ep_tx_ctx, max->max_ep_stx_ctx);
	check_ctx_cnt(match, "ep_attr->rx_ctx_cnt", ep->rx_ctx_cnt, max->max_ep_rx_ctx, max->max_ep_srx_ctx);
}

/* A key's length; FI_AV_AUTH_KEY stands for keys in the address vector, where `in_av` allows that. */
static void check_key_size(struct match *match, const char *attr, size_t size, bool in_av)
{
	if (size == FI_AV_AUTH_KEY ? !in_av : size > match->offer->auth_key_max)
		miss_value(match, FAB_WHY_WHAT, attr, size, match->offer->auth_key_max, sizeof(size), AS_NUMBER);
}

/* Authorization keys came with API 1.5; before, the fields are not the caller's. */
static bool has_auth_keys(const struct match *match)
{
	return !FI_VERSION_LT(match->version, FI_VERSION(1, 5));
}

static void check_auth_key(struct match *match)
{
	const struct fi_domain_attr *domain = match->hints->domain_attr;
	const struct fi_ep_attr *ep = match->hints->ep_attr;

	if (!has_auth_keys(match))
		return;
	if (domain)
		check_key_size(match, "domain_attr->auth_key_size", domain->auth_key_size,
			       match->offer->info->domain_attr->max_ep_auth_key);
	if (ep)
		check_key_size(match, "ep_attr->auth_key_size", ep->auth_key_size,
			       domain && domain->auth_key_size == FI_AV_AUTH_KEY);
}

/* Echo a key of the hints. False: no memory. */
static bool answer_key(uint8_t **to, size_t *to_size, const uint8_t *key, size_t size)
{
	if (size == FI_AV_AUTH_KEY) {
		*to_size = size;
	} else if (key && size) {
		*to = malloc(size);
		if (!*to)
			return false;
		memcpy(*to, key, size);
		*to_size = size;
	}
	return true;
}

static bool answer_keys(const struct match *match, struct fi_info *info)
{
	const struct fi_domain_attr *domain = match->hints->domain_attr;
	const struct fi_ep_attr *ep = match->hints->ep_attr;

	if (!has_auth_keys(match))
		return true;
	return (!domain || answer_key(&info->domain_attr->auth_key, &info->domain_attr->auth_key_size,
				      domain->auth_key, domain->auth_key_size)) &&
	       (!ep || answer_key(&info->ep_attr->auth_key, &info->ep_attr->auth_key_size, ep->auth_key,
				  ep->auth_key_size));
}

/* FI_TC_BEST_EFFORT is what there is without any doing. */
static void check_tclass(struct match *match, const char *attr, uint32_t asked, uint32_t offered)
{
	if (asked != FI_TC_UNSPEC && asked != FI_TC_BEST_EFFORT && asked != offered &&
	    !(match->offer->tclasses && fab_tclass_exists(asked)))
		miss_value(match, FAB_WHY_WHAT, attr, asked, offered ? offered : FI_TC_BEST_EFFORT, sizeof(asked),
			   AS_HEX);
}

static void check_tclasses(struct match *match)
{
	const struct fi_info *hints = match->hints, *info = match->offer->info;

	if (hints->domain_attr)
		check_tclass(match, "domain_attr->tclass", hints->domain_attr->tclass, info->domain_attr->tclass);
	if (hints->tx_attr)
		check_tclass(match, "tx_attr->tclass", hints->tx_attr->tclass, info->tx_attr->tclass);
}

/* ---- all of it ---- */

/* What picks among entries comes first: most offers end there. */
static void (*const checks[])(struct match *match) = {
	check_addr_format, check_names, check_rules, check_caps, check_modes, check_mr_mode, check_ep, check_auth_key,
	check_tclasses,
};

static bool is_match(struct match *match)
{
	for (size_t i = 0; i < fab_countof(checks) && !done(match); i++)
		checks[i](match);
	return !match->miss_cnt;
}

/* The entry that is returned for an offer that matches. NULL: no memory. */
static struct fi_info *make_answer(const struct match *match)
{
	const struct fi_info *hints = match->hints;
	const struct fab_offer *offer = match->offer;
	struct fi_info *info = fi_dupinfo(offer->info);

	if (!info)
		return NULL;
	if (offer->tx_size)
		info->tx_attr->size = fab_min(offer->tx_size, info->tx_attr->size);
	if (offer->rx_size)
		info->rx_attr->size = fab_min(offer->rx_size, info->rx_attr->size);
	answer_rules(match, info);
	info->caps = answer_caps(match);
	info->tx_attr->caps = answer_part_caps(match, hints->tx_attr ? hints->tx_attr->caps : 0, TX_CAPS);
	info->rx_attr->caps = answer_part_caps(match, hints->rx_attr ? hints->rx_attr->caps : 0, RX_CAPS);
	answer_prefix(match, info);
	answer_told(match, info);
	answer_mr_mode(match, info);
	if (hints->ep_attr && hints->ep_attr->tx_ctx_cnt)
		info->ep_attr->tx_ctx_cnt = hints->ep_attr->tx_ctx_cnt;
	if (hints->ep_attr && hints->ep_attr->rx_ctx_cnt)
		info->ep_attr->rx_ctx_cnt = hints->ep_attr->rx_ctx_cnt;
	if (hints->domain_attr && hints->domain_attr->tclass)
		info->domain_attr->tclass = hints->domain_attr->tclass;
	if (hints->tx_attr && hints->tx_attr->tclass)
		info->tx_attr->tclass = hints->tx_attr->tclass;
	answer_handles(match, info);
	if (answer_keys(match, info))
		return info;
	fi_freeinfo(info);
	return NULL;
}

/* "eth0 FI_EP_RDM FI_SOCKADDR_IN", which tells an entry from the provider's others. */
static const char *entry_text(char text[TEXT_MAX], const struct fi_info *info)
{
	char type[TEXT_MAX], format[TEXT_MAX];

	snprintf(text, TEXT_MAX, "%.100s %.100s %.100s %.100s", info->domain_attr->name,
		 to_text(type, info->ep_attr->type, sizeof(uint32_t), FI_TYPE_EP_TYPE),
		 to_text(format, info->addr_format, sizeof(uint32_t), FI_TYPE_ADDR_FORMAT), info->fabric_attr->name);
	return text;
}

static void tell_core(const struct match *match, enum fab_why_kind kind, const char *attr, const char *asked,
		      const char *offered)
{
	char entry[TEXT_MAX];

	fab_why_report(match->prov, kind, entry_text(entry, match->offer->info), attr, asked, offered);
}

/* NULL hints: every entry, and the application is taken to be willing to do whatever it is told. */
static const struct fi_info no_hints = { .mode = UINT64_MAX };

int fab_match_info(const struct fi_provider *prov, uint32_t version, const struct fi_info *hints,
		   const struct fab_offer *offers, size_t cnt, struct fi_info **info)
{
	void (*listen)(const struct match *, enum fab_why_kind, const char *, const char *, const char *) =
		fab_why_wanted(prov) ? tell_core : NULL;
	struct fi_info *list = NULL, **end = &list;

	for (size_t i = 0; i < cnt; i++) {
		struct match match = { .prov = prov, .version = version, .hints = hints ? hints : &no_hints,
				       .offer = &offers[i], .listen = listen };

		if (!is_match(&match))
			continue;
		*end = make_answer(&match);
		if (!*end) {
			fi_freeinfo(list);
			return -FI_ENOMEM;
		}
		end = &(*end)->next;
	}
	*info = list;
	return list ? 0 : -FI_ENODATA;
}

/* ---- an info that comes back ---- */

static void count_only(const struct match *match, enum fab_why_kind kind, const char *attr, const char *asked,
		       const char *offered)
{
	(void) match, (void) kind, (void) attr, (void) asked, (void) offered;
}

static void tell_log(const struct match *match, enum fab_why_kind kind, const char *attr, const char *asked,
		     const char *offered)
{
	(void) kind;
	FI_WARN(match->prov, FI_LOG_CORE, "info->%s is %s, %s offers %s; pass an info as fi_getinfo() returned it, or "
		"ask it for this\n", attr, asked, match->prov->name, offered);
}

int fab_match_check(const struct fi_provider *prov, uint32_t version, const struct fi_info *info,
		    const struct fab_offer *offers, size_t cnt)
{
	struct match match = { .prov = prov, .version = version, .hints = info, .opening = true };
	unsigned fewest = UINT32_MAX;
	size_t nearest = 0;

	for (size_t i = 0; i < cnt; i++) {
		match.offer = &offers[i];
		match.miss_cnt = 0;
		match.listen = count_only;
		if (is_match(&match))
			return 0;
		if (match.miss_cnt < fewest) {
			fewest = match.miss_cnt;
			nearest = i;
		}
	}
	if (cnt) {
		match.offer = &offers[nearest];
		match.miss_cnt = 0;
		match.listen = tell_log;
		is_match(&match);
	}
	return -FI_EINVAL;
}
