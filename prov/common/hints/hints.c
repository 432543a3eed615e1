/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The matcher: all checks of an offer, the answer to hints that match, and the reports of mismatches. hints_rules.c
 * checks independent attributes. Attributes that depend on each other (capabilities, modes, names and handles, memory
 * registration, contexts) have a function each in this file.
 */
#include "common/hints/hints_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "common/domain/domain.h"
#include "common/net/net.h"

#define TEXT_MAX 512

static void miss(struct fab_hint_match *match, enum fab_why_kind kind, const char *attr, const char *asked,
		 const char *offered)
{
	match->miss_cnt++;
	if (match->listen)
		match->listen(match, kind, attr, asked, offered);
}

/* ---- values as text ---- */

static const char *to_text(char text[TEXT_MAX], uint64_t value, size_t size, int type)
{
	uint32_t small = value;

	if (type == FAB_AS_NUMBER)
		snprintf(text, TEXT_MAX, "%" PRIu64, value);
	else if (type == FAB_AS_HEX)
		snprintf(text, TEXT_MAX, "%#" PRIx64, value);
	else
		fi_tostr_r(text, TEXT_MAX, size == sizeof(small) ? (void *) &small : (void *) &value, type);
	return text;
}

void fab_hints_miss(struct fab_hint_match *match, enum fab_why_kind kind, const char *attr, uint64_t asked,
		    uint64_t offered, size_t size, int type)
{
	char asked_text[TEXT_MAX], offered_text[TEXT_MAX];

	if (match->listen)
		miss(match, kind, attr, to_text(asked_text, asked, size, type),
		     to_text(offered_text, offered, size, type));
	else
		match->miss_cnt++;
}

/* Used in place of NULL hints: every entry matches, and all modes are allowed. */
static const struct fi_info no_hints = { .mode = UINT64_MAX };

/* Report the bits of asked that are not offered. */
static void check_bits(struct fab_hint_match *match, const char *attr, uint64_t asked, uint64_t offered, int type)
{
	if (asked & ~offered)
		fab_hints_miss(match, FAB_WHY_LACKS, attr, asked & ~offered, offered, sizeof(asked), type);
}

/* ---- modes of memory registration ---- */

#define MR_BASIC_BITS (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

/* mr_mode of the hints; 0 if they have none. */
static int hint_mr_mode(const struct fab_hint_match *match)
{
	return match->hints->domain_attr ? match->hints->domain_attr->mr_mode : 0;
}

/* True if the answer includes remote access to memory. Hints without caps ask for all capabilities, but for remote
 * access only if their mr_mode has the bits that the offer needs for it. */
static bool has_remote_access(const struct fab_hint_match *match)
{
	uint64_t caps = match->hints->caps, need = match->offer->mr_mode_need & MR_BASIC_BITS;
	int mode = hint_mr_mode(match);

	if (!(match->offer->info->caps & (FI_RMA | FI_ATOMIC)))
		return false;
	if (caps)
		return caps & (FI_RMA | FI_ATOMIC);
	if (match->hints == &no_hints || mode == FI_MR_BASIC ||
	    (!mode && FI_VERSION_LT(match->version, FI_VERSION(1, 5))))
		return true;
	return !(need & ~(mode == FI_MR_SCALABLE ? 0 : (uint64_t) mode));
}

/* The mr_mode bits that the hints must have. Without remote access, those of keys and addresses are not needed. With
 * FI_HMEM, descriptors tell what is memory of a device. */
static uint64_t needed_mr_mode(const struct fab_hint_match *match)
{
	uint64_t need = match->offer->mr_mode_need |
			(match->hints->caps & match->offer->info->caps & FI_HMEM && !match->opening ? FI_MR_HMEM : 0);

	return has_remote_access(match) ? need : need & ~(uint64_t) MR_BASIC_BITS;
}

/* True if hints with FI_MR_BASIC match the offer. */
static bool allows_basic(const struct fab_offer *offer)
{
	return offer->mr_basic || !(MR_BASIC_BITS & ~offer->mr_mode_need) ||
	       !(offer->info->caps & (FI_RMA | FI_ATOMIC));
}

/* mr_mode of the hints. Below API 1.5 the only values are FI_MR_BASIC and FI_MR_SCALABLE, and 0 allows both: the answer
 * is then FI_MR_BASIC, as upstream's, where the offer allows it. */
static int asked_mr_mode(const struct fab_hint_match *match)
{
	int mode = hint_mr_mode(match);

	if (!mode && FI_VERSION_LT(match->version, FI_VERSION(1, 5)))
		return allows_basic(match->offer) ? FI_MR_BASIC : FI_MR_SCALABLE;
	return mode;
}

static bool is_old_mr_mode(int mode)
{
	return mode == FI_MR_BASIC || mode == FI_MR_SCALABLE;
}

/* The bits that stand for FI_MR_BASIC or FI_MR_SCALABLE. With these, the mode bit FI_LOCAL_MR stands for
 * FI_MR_LOCAL. */
static uint64_t old_mr_bits(const struct fab_hint_match *match, int mode)
{
	return (mode == FI_MR_BASIC ? MR_BASIC_BITS : 0) | (match->hints->mode & FI_LOCAL_MR ? FI_MR_LOCAL : 0);
}

uint64_t fab_caps_full(uint64_t caps)
{
	if ((caps & (FI_MSG | FI_TAGGED)) && !(caps & (FI_SEND | FI_RECV)))
		caps |= FI_SEND | FI_RECV;
	if ((caps & (FI_RMA | FI_ATOMIC)) && !(caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)))
		caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	return caps;
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

#define REMOTE_CAPS										\
	(FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT | FI_RMA_PMEM)

/* Capabilities that API 2.0 or a later one added. Older callers get them only if they ask, since they compare
 * capabilities for equality. */
#define YOUNG_CAPS (FI_TAGGED_MULTI_RECV | FI_TAGGED_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV)

/* The capabilities for hints without caps: all that the offer can have, except FI_SOURCE_ERR, with which messages from
 * unknown senders would become errors, and FI_HMEM, with which each call looks at its descriptors. */
static uint64_t unasked_caps(const struct fab_hint_match *match)
{
	uint64_t young = FI_VERSION_LT(match->version, FI_VERSION(2, 0)) ? YOUNG_CAPS : 0;

	return match->offer->info->caps & ~(FI_SOURCE_ERR | FI_HMEM) & ~young &
	       ~(has_remote_access(match) ? 0 : REMOTE_CAPS);
}

/* The capabilities of the answer: those that the hints ask for, and the secondary ones that belong to them. */
static uint64_t answer_caps(const struct fab_hint_match *match)
{
	const struct fab_offer *offer = match->offer;
	uint64_t caps = fab_caps_full(match->hints->caps), extra = offer->secondary_caps & ~YOUNG_CAPS;

	if (!match->hints->caps)
		return unasked_caps(match);
	/* drop secondary capabilities whose primary capability is missing */
	if (!(caps & (FI_RMA | FI_ATOMIC)))
		extra &= ~FI_RMA_EVENT;
	if (!(caps & FI_RMA))
		extra &= ~FI_RMA_PMEM;
	if (!(caps & FI_RECV))
		extra &= ~(FI_MULTI_RECV | FI_SOURCE | FI_SOURCE_ERR);
	return caps | (extra & offer->info->caps);
}

/* The capabilities of one direction (mask): those of the info that have a use in this direction. If the hints have
 * capabilities for the direction, the answer is restricted to these. It also has the bits of `hint` that have no use
 * there, since many programs copy all their capabilities to both directions. */
static uint64_t answer_part_caps(const struct fab_hint_match *match, uint64_t hint, uint64_t mask)
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

/* Domain capabilities that are primary. */
#define DOMAIN_PRIMARY (FI_DIRECTED_RECV | FI_AV_USER_ID)

/* The capabilities of the domain: primary ones if the hints ask for them, for the whole or for the domain. */
static uint64_t answer_domain_caps(const struct fab_hint_match *match)
{
	const struct fi_domain_attr *domain = match->hints->domain_attr;
	uint64_t asked = answer_caps(match) | (domain ? domain->caps : 0);

	return match->offer->info->domain_attr->caps & (asked | ~DOMAIN_PRIMARY);
}

static void check_caps(struct fab_hint_match *match)
{
	const struct fi_info *hints = match->hints;
	uint64_t limit = match->offer->info->caps;

	if (FI_VERSION_LT(match->version, FI_VERSION(1, 9)))
		limit &= ~FI_HMEM;		/* fi_mr_attr has no iface yet */
	check_bits(match, "caps", fab_caps_full(hints->caps), limit, FI_TYPE_CAPS);
	if (hints->caps && !match->opening)
		limit &= answer_caps(match);
	if (hints->tx_attr)
		check_bits(match, "tx_attr->caps", hints->tx_attr->caps, limit, FI_TYPE_CAPS);
	if (hints->rx_attr)
		check_bits(match, "rx_attr->caps", hints->rx_attr->caps, limit, FI_TYPE_CAPS);
}

/* ---- modes: requirements on the application ---- */

static void check_mode(struct fab_hint_match *match, const char *attr, uint64_t willing, uint64_t wanted)
{
	if (wanted & ~willing)
		fab_hints_miss(match, FAB_WHY_NEEDS, attr, willing, wanted & ~willing, sizeof(wanted), FI_TYPE_MODE);
}

static void check_modes(struct fab_hint_match *match)
{
	const struct fi_info *hints = match->hints, *info = match->offer->info;
	uint64_t tx = hints->tx_attr ? hints->tx_attr->mode : 0, rx = hints->rx_attr ? hints->rx_attr->mode : 0;

	check_mode(match, "mode", hints->mode, info->mode);
	check_mode(match, "tx_attr->mode", tx ? tx : hints->mode, info->tx_attr->mode);
	check_mode(match, "rx_attr->mode", rx ? rx : hints->mode, info->rx_attr->mode);
	check_mode(match, "domain_attr->mode", hints->domain_attr ? hints->domain_attr->mode : hints->mode,
		   info->domain_attr->mode);
}

/* Set the mode bits of offer->mode_told that the hints have for receives. They are never required. */
static void answer_told(const struct fab_hint_match *match, struct fi_info *info)
{
	const struct fi_info *hints = match->hints;
	uint64_t rx = hints->rx_attr && hints->rx_attr->mode ? hints->rx_attr->mode : hints->mode;

	info->mode |= rx & match->offer->mode_told;
	info->rx_attr->mode |= rx & match->offer->mode_told;
}

/* FI_MSG_PREFIX is answered for a direction only if the hints of that direction have it; hints->mode alone does not
 * count. Each message then has a prefix of msg_prefix_size bytes, which is 0 here. */
static void answer_prefix(const struct fab_hint_match *match, struct fi_info *info)
{
	const struct fi_info *hints = match->hints;
	uint64_t tx = hints->tx_attr ? hints->tx_attr->mode & FI_MSG_PREFIX : 0;
	uint64_t rx = hints->rx_attr ? hints->rx_attr->mode & FI_MSG_PREFIX : 0;

	info->tx_attr->mode |= tx;
	info->rx_attr->mode |= rx;
	info->mode |= tx | rx;
}

/* ---- memory registration ---- */

static void hints_check_mr_mode(struct fab_hint_match *match)
{
	static const char attr[] = "domain_attr->mr_mode";
	int mode = asked_mr_mode(match), want = needed_mr_mode(match);
	uint64_t willing = is_old_mr_mode(mode) ? old_mr_bits(match, mode) : (uint64_t) mode;

	if (match->hints == &no_hints)
		return;
	if (!is_old_mr_mode(mode) && (mode & (FI_MR_BASIC | FI_MR_SCALABLE)))
		miss(match, FAB_WHY_WHAT, attr, "FI_MR_BASIC or FI_MR_SCALABLE with other bits", "each stands alone");
	else if (mode == FI_MR_BASIC && !allows_basic(match->offer))
		miss(match, FAB_WHY_WHAT, attr, "FI_MR_BASIC", "scalable registration only (FI_MR_SCALABLE, or 0)");
	else if (want & ~willing)
		fab_hints_miss(match, FAB_WHY_NEEDS, attr, willing, want & ~willing, sizeof(int), FI_TYPE_MR_MODE);
}

static void answer_mr_mode(const struct fab_hint_match *match, struct fi_info *info)
{
	int mode = asked_mr_mode(match);

	if (!is_old_mr_mode(mode))
		mode = (int) (needed_mr_mode(match) | ((uint64_t) mode & match->offer->mr_mode_told));
	else if (match->offer->mr_mode_need & FI_MR_LOCAL)
		info->mode |= FI_LOCAL_MR;
	info->domain_attr->mr_mode = mode;
}

/* ---- names, handles, addresses ---- */

static void check_addr_format(struct fab_hint_match *match)
{
	uint32_t asked = match->hints->addr_format, offered = match->offer->info->addr_format;
	bool ip = offered == FI_SOCKADDR_IN || offered == FI_SOCKADDR_IN6;

	if (asked == FI_FORMAT_UNSPEC || asked == offered)
		return;
	if ((asked == FI_SOCKADDR && (ip || offered == FI_SOCKADDR_IB)) || (asked == FI_SOCKADDR_IP && ip))
		return;
	fab_hints_miss(match, FAB_WHY_WHICH, "addr_format", asked, offered, sizeof(asked), FI_TYPE_ADDR_FORMAT);
}

static void check_name(struct fab_hint_match *match, const char *attr, const char *asked, const char *offered)
{
	char text[TEXT_MAX];

	if (!asked || !strcmp(asked, offered))
		return;
	snprintf(text, sizeof(text), "%.200s", asked);
	miss(match, FAB_WHY_WHICH, attr, text, offered);
}

static void check_names(struct fab_hint_match *match)
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

/* Fill in the open fabric and domain with these names: those given in the hints, or else the oldest ones. */
static void answer_handles(const struct fab_hint_match *match, struct fi_info *info)
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

/* Hints for manual progress of data that leave control open get manual control, too, and so no thread. */
static void answer_progress(const struct fab_hint_match *match, struct fi_info *info)
{
	const struct fi_domain_attr *hints = match->hints->domain_attr;

	if (hints && hints->data_progress == FI_PROGRESS_MANUAL && hints->control_progress == FI_PROGRESS_UNSPEC)
		info->domain_attr->control_progress = FI_PROGRESS_MANUAL;
}

/* Check the number of contexts of an endpoint, or FI_SHARED_CONTEXT. */
static void check_ctx_cnt(struct fab_hint_match *match, const char *attr, size_t asked, size_t max, size_t shared_max)
{
	if (asked == FI_SHARED_CONTEXT) {
		if (!shared_max)
			miss(match, FAB_WHY_WHAT, attr, "FI_SHARED_CONTEXT", "no shared contexts");
	} else if (asked > max) {
		fab_hints_miss(match, FAB_WHY_WHAT, attr, asked, max, sizeof(asked), FAB_AS_NUMBER);
	}
}

static void check_ep(struct fab_hint_match *match)
{
	const struct fi_domain_attr *max = match->offer->info->domain_attr;
	const struct fi_ep_attr *ep = match->hints->ep_attr;

	if (!ep)
		return;
	check_ctx_cnt(match, "ep_attr->tx_ctx_cnt", ep->tx_ctx_cnt, max->max_ep_tx_ctx, max->max_ep_stx_ctx);
	check_ctx_cnt(match, "ep_attr->rx_ctx_cnt", ep->rx_ctx_cnt, max->max_ep_rx_ctx, max->max_ep_srx_ctx);
}

/* Check the length of an authorization key. FI_AV_AUTH_KEY means that the keys are in the address vector; it is allowed
 * if in_av. */
static void check_key_size(struct fab_hint_match *match, const char *attr, size_t size, bool in_av)
{
	if (size == FI_AV_AUTH_KEY ? !in_av : size > match->offer->auth_key_max)
		fab_hints_miss(match, FAB_WHY_WHAT, attr, size, match->offer->auth_key_max, sizeof(size),
			       FAB_AS_NUMBER);
}

/* API 1.5 added authorization keys. The structures of older callers lack the fields. */
static bool has_auth_keys(const struct fab_hint_match *match)
{
	return !FI_VERSION_LT(match->version, FI_VERSION(1, 5));
}

static void check_auth_key(struct fab_hint_match *match)
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

/* Copy a key of the hints to the answer. False: no memory. */
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

static bool answer_keys(const struct fab_hint_match *match, struct fi_info *info)
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

/* The traffic class of the answer. A class never refuses an entry: without a class that the provider can mark, the
 * answer is FI_TC_UNSPEC. Every provider has FI_TC_BEST_EFFORT. */
static uint32_t answer_tclass(const struct fab_hint_match *match, uint32_t asked)
{
	if (asked == FI_TC_BEST_EFFORT || (match->offer->tclasses && fab_tclass_exists(asked)))
		return asked;
	return FI_TC_UNSPEC;
}

/* ---- entry points of the matcher ---- */

/* The checks that reject most offers come first. */
static void (*const checks[])(struct fab_hint_match *match) = {
	check_addr_format, check_names, fab_hints_check_rules, check_caps, check_modes, hints_check_mr_mode, check_ep,
	check_auth_key,
};

static bool is_match(struct fab_hint_match *match)
{
	for (size_t i = 0; i < fab_countof(checks) && !fab_hints_done(match); i++)
		checks[i](match);
	return !match->miss_cnt;
}

/* Make the answer for an offer that matches. NULL: no memory. */
static struct fi_info *make_answer(const struct fab_hint_match *match)
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
	fab_hints_answer_rules(match, info);
	info->caps = answer_caps(match);
	info->domain_attr->caps = answer_domain_caps(match);
	info->tx_attr->caps = answer_part_caps(match, hints->tx_attr ? hints->tx_attr->caps : 0, TX_CAPS);
	info->rx_attr->caps = answer_part_caps(match, hints->rx_attr ? hints->rx_attr->caps : 0, RX_CAPS);
	answer_prefix(match, info);
	answer_told(match, info);
	answer_mr_mode(match, info);
	answer_progress(match, info);
	if (hints->ep_attr && hints->ep_attr->tx_ctx_cnt)
		info->ep_attr->tx_ctx_cnt = hints->ep_attr->tx_ctx_cnt;
	if (hints->ep_attr && hints->ep_attr->rx_ctx_cnt)
		info->ep_attr->rx_ctx_cnt = hints->ep_attr->rx_ctx_cnt;
	info->domain_attr->tclass = answer_tclass(match, hints->domain_attr ? hints->domain_attr->tclass : 0);
	info->tx_attr->tclass = answer_tclass(match, hints->tx_attr ? hints->tx_attr->tclass : 0);
	answer_handles(match, info);
	if (answer_keys(match, info))
		return info;
	fi_freeinfo(info);
	return NULL;
}

/* Text that identifies an entry of the provider: "eth0 FI_EP_RDM FI_SOCKADDR_IN". */
static const char *entry_text(char text[TEXT_MAX], const struct fi_info *info)
{
	char type[TEXT_MAX], format[TEXT_MAX];

	snprintf(text, TEXT_MAX, "%.100s %.100s %.100s %.100s", info->domain_attr->name,
		 to_text(type, info->ep_attr->type, sizeof(uint32_t), FI_TYPE_EP_TYPE),
		 to_text(format, info->addr_format, sizeof(uint32_t), FI_TYPE_ADDR_FORMAT), info->fabric_attr->name);
	return text;
}

static void tell_core(const struct fab_hint_match *match, enum fab_why_kind kind, const char *attr, const char *asked,
		      const char *offered)
{
	char entry[TEXT_MAX];

	fab_why_report(match->prov, kind, entry_text(entry, match->offer->info), attr, asked, offered);
}

int fab_hints_match(const struct fi_provider *prov, uint32_t version, const struct fi_info *hints,
		   const struct fab_offer *offers, size_t cnt, struct fi_info **info)
{
	void (*listen)(const struct fab_hint_match *, enum fab_why_kind, const char *, const char *, const char *) =
		fab_why_wanted(prov) ? tell_core : NULL;
	struct fi_info *list = NULL, **end = &list;

	for (size_t i = 0; i < cnt; i++) {
		struct fab_hint_match match = { .prov = prov, .version = version, .hints = hints ? hints : &no_hints,
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

/* ---- infos that applications pass back ---- */

static void count_only(const struct fab_hint_match *match, enum fab_why_kind kind, const char *attr, const char *asked,
		       const char *offered)
{
	(void) match, (void) kind, (void) attr, (void) asked, (void) offered;
}

static void tell_log(const struct fab_hint_match *match, enum fab_why_kind kind, const char *attr, const char *asked,
		     const char *offered)
{
	(void) kind;
	FI_WARN(match->prov, FI_LOG_CORE, "info->%s is %s, %s offers %s; pass an info as fi_getinfo() returned it, or "
		"ask it for this\n", attr, asked, match->prov->name, offered);
}

/* fab_hints_check() with an info that has all members. */
static int check_whole(const struct fi_provider *prov, uint32_t version, const struct fi_info *info,
		       const struct fab_offer *offers, size_t cnt)
{
	struct fab_hint_match match = { .prov = prov, .version = version, .hints = info, .opening = true };
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

int fab_hints_check(const struct fi_provider *prov, uint32_t version, const struct fi_info *info,
		    const struct fab_offer *offers, size_t cnt)
{
	struct fi_info *whole;
	int ret;

	/* no member later than those of 2.5 is read */
	if (FI_VERSION_GE(version, FI_VERSION(2, 5)))
		return check_whole(prov, version, info, offers, cnt);
	whole = fab_info_copy(prov, version, info);
	if (!whole)
		return -FI_ENOMEM;
	ret = check_whole(prov, version, whole, offers, cnt);
	fi_freeinfo(whole);
	return ret;
}
