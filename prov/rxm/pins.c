/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registrations for operations whose buffers have no descriptor. Over a device they come from the domain's cache. Over
 * other providers they cost nothing, so each operation has its own.
 *
 * A call finds cached registrations with the engine's lock held. If one is missing, it makes the registrations without
 * the lock, which may take long, and begins anew (rxm_submit()).
 */
#include "rxm/rxm.h"

#include "base/clock.h"
#include "common/calls/calls.h"
#include "common/hmem/hmem.h"

#define KEY_TRIES	8

static int pin_reg(struct fab_mrc *cache, void *buf, size_t len, uint64_t access, void **region)
{
	struct rxm_domain *domain = fab_container(cache, struct rxm_domain, cache);
	int ret = -FI_ENOKEY;
	struct fid_mr *mr;

	/* if applications choose keys, a key made here must only differ from all of theirs */
	for (int i = 0; i < KEY_TRIES && ret == -FI_ENOKEY; i++)
		ret = fi_mr_reg(domain->below, buf, len, access, 0, fab_random64() | 1ULL << 63, 0, &mr, NULL);
	if (!ret)
		*region = mr;
	return ret;
}

static void pin_dereg(struct fab_mrc *cache, void *region)
{
	struct fid_mr *mr = region;

	(void) cache;
	fi_close(&mr->fid);
}

const struct fab_mrc_ops rxm_pin_ops = { .reg = pin_reg, .dereg = pin_dereg };

static struct fid_mr *give(struct rxm_tx *tx, struct fab_pin *pin)
{
	tx->pin[tx->pin_cnt++] = pin;
	return pin->region;
}

/* What the call has registered for this, or NULL. */
static struct fab_pin *pins_take(struct rxm_pins *pins, const void *buf, uint64_t access)
{
	for (int i = 0; pins && i < RXM_IOV_LIMIT; i++) {
		struct fab_pin *pin = pins->pin[i];

		if (!pin || pin->start != (uintptr_t) buf || (pin->access & access) != access)
			continue;
		pins->pin[i] = NULL;
		return pin;
	}
	return NULL;
}

int rxm_pin_take(struct rxm_ep *ep, struct rxm_tx *tx, const void *buf, size_t len, uint64_t access,
		 struct fid_mr **mr)
{
	struct fab_pin *pin = pins_take(ep->pins, buf, access);

	if (!pin)
		pin = fab_mrc_find(&ep->domain->cache, buf, len, access);
	if (!pin && !ep->domain->mr_local)
		return rxm_pin_make(ep, tx, buf, len, access, mr);
	if (!pin)
		return RXM_UNPINNED;
	*mr = give(tx, pin);
	return 0;
}

int rxm_pin_make(struct rxm_ep *ep, struct rxm_tx *tx, const void *buf, size_t len, uint64_t access,
		 struct fid_mr **mr)
{
	struct fab_pin *pin;
	int ret = fab_mrc_get(&ep->domain->cache, buf, len, access, &pin);

	if (!ret)
		*mr = give(tx, pin);
	return ret;
}

static bool any_device(void *const *desc, size_t cnt)
{
	for (size_t i = 0; i < cnt && desc; i++) {
		const struct rxm_mr *mr = desc[i];

		if (mr && mr->device)
			return true;
	}
	return false;
}

bool rxm_is_device(const struct fab_op *op)
{
	const struct fab_call_atomic *call = op->amo ? op->amo->call : NULL;

	if ((op->flags & FAB_OP_HMEM) || any_device(op->desc, op->iov_cnt))
		return true;
	return call && (any_device(call->operand.desc, call->operand.cnt) ||
			(op->amo->kind == FAB_ATOMIC_COMPARE && any_device(call->compare.desc, call->compare.cnt)));
}

static int mark(void *const *desc, size_t cnt, uint8_t *hmem)
{
	for (size_t i = 0; i < cnt && desc; i++) {
		const struct rxm_mr *mr = desc[i];

		if (mr && mr->device && !mr->hmem)
			return -FI_EOPNOTSUPP;
		if (mr && fab_hmem_join(hmem, mr->hmem))
			return -FI_EINVAL;
	}
	return 0;
}

int rxm_mark_device(const struct fab_op *op, uint64_t *flags)
{
	const struct fab_call_atomic *call = op->amo ? op->amo->call : NULL;
	uint8_t hmem = fab_op_hmem(*flags);
	int ret = mark(op->desc, op->iov_cnt, &hmem);

	if (!ret && call)
		ret = mark(call->operand.desc, call->operand.cnt, &hmem);
	if (!ret && call && op->amo->kind == FAB_ATOMIC_COMPARE)
		ret = mark(call->compare.desc, call->compare.cnt, &hmem);
	*flags |= fab_op_hmem_flags(hmem);
	return ret;
}

int rxm_gather(uint64_t flags, uint8_t *to, const struct iovec *iov, size_t len)
{
	if (flags & FAB_OP_HMEM)
		return fab_hmem_from(fab_op_hmem(flags), to, iov, 0, len);
	fab_iov_gather(to, iov, 0, len);
	return 0;
}

int rxm_pins_get(struct rxm_ep *ep, const struct fab_op *op, struct rxm_pins *pins)
{
	uint64_t access = op->code == FAB_OP_READ ? RXM_PIN_FILL : op->code == FAB_OP_WRITE ? FI_WRITE : RXM_PIN_OFFER;
	uint32_t i;
	int ret;

	*pins = (struct rxm_pins) { { NULL } };
	for (i = 0; i < op->iov_cnt; i++) {
		if (!op->iov[i].iov_len)
			continue;
		if (op->desc && op->desc[i])
			ret = access == RXM_PIN_OFFER ? rxm_mr_offer(ep->domain, op->desc[i]) : 0;
		else
			ret = fab_mrc_get(&ep->domain->cache, op->iov[i].iov_base, op->iov[i].iov_len, access,
					  &pins->pin[i]);
		if (ret) {
			rxm_pins_put(ep, pins);
			return ret;
		}
	}
	return 0;
}

void rxm_pins_put(struct rxm_ep *ep, struct rxm_pins *pins)
{
	for (int i = 0; i < RXM_IOV_LIMIT; i++) {
		if (pins->pin[i])
			fab_mrc_put(&ep->domain->cache, pins->pin[i]);
	}
}

void rxm_tx_unpin(struct rxm_ep *ep, struct rxm_tx *tx)
{
	bool ended = false;

	for (int i = 0; i < tx->pin_cnt; i++)
		ended |= fab_mrc_put(&ep->domain->cache, tx->pin[i]);
	tx->pin_cnt = 0;
	if (tx->fetching)
		fab_list_remove(&tx->turn);
	if (ended && ep->poller)
		rxm_poller_after(ep->poller);
}
