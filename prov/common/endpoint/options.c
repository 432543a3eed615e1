/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_control, fi_setopt and fi_getopt of endpoints: default flags, aliases, limits.
 */
#include "common/endpoint/ep.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "common/op/op.h"

static const struct fi_provider *option_prov(const struct fab_ep *ep)
{
	return ep->domain->fabric->prov;
}

/* ---- default flags ---- */

/* Check op_flags for one direction, and store them in an endpoint or alias. */
static int set_op_flags(struct fab_ep_fid *held, const char *what, uint64_t flags)
{
	const uint64_t trigger = held->ep->caps & FI_TRIGGER;
	const uint64_t tx_flags = FI_COMPLETION | FI_INJECT | FI_MORE | FI_FENCE | FI_MULTICAST | FI_INJECT_COMPLETE |
				  FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE |
				  (held->ep->caps & FI_RMA_PMEM ? FI_COMMIT_COMPLETE : 0) | trigger;
	const uint64_t rx_flags = FI_COMPLETION | FI_MULTI_RECV | FI_MORE | trigger;
	uint64_t direction = flags & (FI_TRANSMIT | FI_RECV);

	if (flags & ~(direction | (direction == FI_TRANSMIT ? tx_flags : rx_flags)))
		goto wrong;
	if (direction == FI_TRANSMIT)
		held->tx_op_flags = flags & ~direction;
	else
		held->rx_op_flags = flags & ~direction;
	return 0;

wrong:
	FI_WARN(option_prov(held->ep), FI_LOG_EP_CTRL,
		"%s with flags %#" PRIx64 "; allowed are those of fi_endpoint(3), "
		"section OPERATION FLAGS\n", what, flags);
	return -FI_EBADFLAGS;
}

static int one_direction(const struct fab_ep *ep, uint64_t flags)
{
	uint64_t direction = flags & (FI_TRANSMIT | FI_RECV);

	if (direction == FI_TRANSMIT || direction == FI_RECV)
		return 0;
	FI_WARN(option_prov(ep), FI_LOG_EP_CTRL, "an endpoint's operation flags are those of one direction: say "
		"FI_TRANSMIT or FI_RECV, and not both\n");
	return -FI_EINVAL;
}

/* ---- aliases ---- */

/* An alias: another handle of the endpoint, with flags and a close function of its own. */
struct alias {
	struct fab_ep_fid held;
	struct fi_ops ops;
	struct fab_list link;		/* in held.ep->views.aliases */
};

static int alias_close(struct fid *fid)
{
	struct alias *alias = fab_container(fid, struct alias, held.ep_fid.fid);
	struct fab_engine *engine = alias->held.ep->engine;

	fab_engine_lock(engine);
	fab_list_remove(&alias->link);
	fab_engine_unlock(engine);
	free(alias);
	return 0;
}

static int alias_open(const struct fab_ep_fid *held, const struct fi_alias *arg)
{
	uint64_t flags = arg->flags;
	struct alias *alias;
	int ret;

	/* without flags the alias keeps those of its parent */
	ret = flags ? one_direction(held->ep, flags) : 0;
	if (ret)
		return ret;
	alias = malloc(sizeof(*alias));
	if (!alias)
		return -FI_ENOMEM;
	alias->held = *held;
	alias->ops = *held->ep_fid.fid.ops;
	alias->ops.close = alias_close;
	alias->held.ep_fid.fid.ops = &alias->ops;
	ret = flags ? set_op_flags(&alias->held, "fi_ep_alias", flags) : 0;
	if (ret) {
		free(alias);
		return ret;
	}
	fab_engine_lock(held->ep->engine);
	fab_list_add_tail(&held->ep->views.aliases, &alias->link);
	fab_engine_unlock(held->ep->engine);
	*arg->fid = &alias->held.ep_fid.fid;
	return 0;
}

static void set_receives(struct fid_ep *ep_fid, struct fi_ops_msg *msg, struct fi_ops_tagged *tagged)
{
	ep_fid->msg = msg ? msg : ep_fid->msg;
	ep_fid->tagged = tagged ? tagged : ep_fid->tagged;
}

void fab_ep_set_receives(struct fab_ep *ep, struct fi_ops_msg *msg, struct fi_ops_tagged *tagged)
{
	struct fab_list *link;

	fab_engine_lock(ep->engine);
	set_receives(&ep->ep_fid, msg, tagged);
	fab_list_for_each(&ep->views.aliases, link)
		set_receives(&fab_container(link, struct alias, link)->held.ep_fid, msg, tagged);
	fab_engine_unlock(ep->engine);
}

int fab_ep_control(struct fid *fid, int command, void *arg)
{
	struct fab_ep_fid *held = fab_container(fid, struct fab_ep_fid, ep_fid.fid);
	uint64_t *flags = arg;
	int ret;

	if (command == FI_ENABLE)
		return held->ep->enable ? held->ep->enable(held->ep) : -FI_ENOSYS;
	if (command == FI_ALIAS)
		return arg ? alias_open(held, arg) : -FI_EINVAL;
	if (command != FI_GETOPSFLAG && command != FI_SETOPSFLAG)
		return -FI_ENOSYS;
	ret = flags ? one_direction(held->ep, *flags) : -FI_EINVAL;
	if (ret)
		return ret;
	if (command == FI_SETOPSFLAG)
		return set_op_flags(held, "FI_SETOPSFLAG", *flags);
	*flags = *flags & FI_TRANSMIT ? held->tx_op_flags : held->rx_op_flags;
	return 0;
}

int fab_srx_control(struct fid *fid, int command, void *arg)
{
	return command == FI_ENABLE ? 0 : fab_ep_control(fid, command, arg);
}

/* ---- options ---- */

static int option_give(const void *value, size_t len, void *optval, size_t *optlen)
{
	if (!optlen || (*optlen && !optval))
		return -FI_EINVAL;
	if (*optlen < len) {
		*optlen = len;
		return -FI_ETOOSMALL;
	}
	memcpy(optval, value, len);
	*optlen = len;
	return 0;
}

int fab_getopt_size(size_t value, void *optval, size_t *optlen)
{
	return option_give(&value, sizeof(value), optval, optlen);
}

int fab_getopt_bool(bool value, void *optval, size_t *optlen)
{
	return option_give(&value, sizeof(value), optval, optlen);
}

/* Copy an option that has len bytes, of this type. 0 or -FI_E*. */
static int option_take(const struct fi_provider *prov, void *value, size_t len, const char *type, const void *optval,
		       size_t optlen)
{
	if (optval && optlen == len) {
		memcpy(value, optval, optlen);
		return 0;
	}
	FI_WARN(prov, FI_LOG_EP_CTRL, "fi_setopt of %zu bytes%s: this option is a %s\n", optlen,
		optval ? "" : " at NULL", type);
	return optval && optlen < len ? -FI_ETOOSMALL : -FI_EINVAL;
}

int fab_setopt_size(const struct fi_provider *prov, size_t *value, const void *optval, size_t optlen)
{
	return option_take(prov, value, sizeof(*value), "size_t", optval, optlen);
}

int fab_setopt_bool(const struct fi_provider *prov, bool *value, const void *optval, size_t optlen)
{
	uint8_t byte = *value;
	int ret = option_take(prov, &byte, sizeof(byte), "bool", optval, optlen);

	*value = byte;
	return ret;
}

/* FI_OPT_FI_HMEM_P2P: the provider reaches memory of a device in one way, so the answer is all. */
static int setopt_p2p(struct fab_ep *ep, const void *optval, size_t optlen)
{
	int p2p, ret;

	ret = option_take(option_prov(ep), &p2p, sizeof(p2p), "int", optval, optlen);
	if (ret)
		return ret;
	if (p2p < FI_HMEM_P2P_ENABLED || p2p > FI_HMEM_P2P_DISABLED) {
		FI_WARN(option_prov(ep), FI_LOG_EP_CTRL, "fi_setopt: FI_OPT_FI_HMEM_P2P is %d, values are 0 to %d\n",
			p2p, FI_HMEM_P2P_DISABLED);
		return -FI_EINVAL;
	}
	if ((p2p == FI_HMEM_P2P_REQUIRED && !ep->domain->hmem_p2p_only) ||
	    (p2p == FI_HMEM_P2P_DISABLED && ep->domain->hmem_p2p))
		return -FI_EOPNOTSUPP;
	ep->hmem_p2p = p2p;
	return 0;
}

static int setopt_cuda(struct fab_ep *ep, const void *optval, size_t optlen)
{
	bool permitted = true;
	int ret = fab_setopt_bool(option_prov(ep), &permitted, optval, optlen);

	return ret || permitted || ep->domain->hmem_p2p_only ? ret : -FI_EOPNOTSUPP;
}

int fab_ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	struct fab_ep *ep = fab_ep_of(fid);

	if (level == FI_OPT_ENDPOINT && (ep->caps & FI_HMEM) && optname == FI_OPT_FI_HMEM_P2P)
		return setopt_p2p(ep, optval, optlen);
	if (level == FI_OPT_ENDPOINT && (ep->caps & FI_HMEM) && optname == FI_OPT_CUDA_API_PERMITTED)
		return setopt_cuda(ep, optval, optlen);
	FI_INFO(option_prov(ep), FI_LOG_EP_CTRL, "fi_setopt: option %d of level %d cannot be set here\n", optname,
		level);
	return -FI_ENOPROTOOPT;
}

/* The most bytes of an atomic that the endpoint supports, as fi_atomicvalid() and the functions for other kinds return
 * it; 0: no atomics. */
static size_t max_atomic_size(struct fid_ep *fid)
{
	int (*const valid[])(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count) = {
		fid->atomic->writevalid, fid->atomic->readwritevalid, fid->atomic->compwritevalid,
	};
	const unsigned numbers = 32;	/* above all datatypes and operations; unused numbers are not valid */
	size_t max = 0, count;

	for (unsigned i = 0; i < fab_countof(valid) * numbers * numbers; i++) {
		enum fi_datatype datatype = i / numbers % numbers;

		if (!valid[i / numbers / numbers](fid, datatype, i % numbers, &count))
			max = fab_max(max, count * fab_atomic_size(datatype));
	}
	return max;
}

/* The kinds of operations with limits, in the order of FI_OPT_MAX_*_SIZE and FI_OPT_INJECT_*_SIZE. */
static const uint64_t limited[] = { FI_MSG, FI_TAGGED, FI_RMA, FI_ATOMIC };

/* Return the limit of an option: max bytes, or for atomics less if an atomic has a lower limit. */
static int get_limit(struct fid_ep *fid, uint64_t kind, size_t max, void *optval, size_t *optlen)
{
	return fab_getopt_size(kind == FI_ATOMIC ? fab_min(max, max_atomic_size(fid)) : max, optval, optlen);
}

int fab_ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	struct fid_ep *ep_fid = fab_container(fid, struct fid_ep, fid);
	const struct fab_ep *ep = fab_ep_of(fid);
	/* places in `limited`, if they are that small */
	unsigned inject = (unsigned) optname - FI_OPT_INJECT_MSG_SIZE, max = (unsigned) optname - FI_OPT_MAX_MSG_SIZE;

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	if (optname == FI_OPT_TX_SIZE)
		return fab_getopt_size(ep->info->tx_attr->size, optval, optlen);
	if (optname == FI_OPT_RX_SIZE)
		return fab_getopt_size(ep->info->rx_attr->size, optval, optlen);
	if (optname == FI_OPT_FI_HMEM_P2P && (ep->caps & FI_HMEM))
		return option_give(&ep->hmem_p2p, sizeof(ep->hmem_p2p), optval, optlen);
	if (max < fab_countof(limited) && (ep->caps & limited[max]))
		return get_limit(ep_fid, limited[max], ep->info->ep_attr->max_msg_size, optval, optlen);
	if (inject < fab_countof(limited) && (ep->caps & limited[inject]))
		return get_limit(ep_fid, limited[inject], ep->info->tx_attr->inject_size, optval, optlen);
	return -FI_ENOPROTOOPT;
}
