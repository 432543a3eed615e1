/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Errors of completion queues and their texts, fi_cq_readerr() and fi_cq_strerror(); and writing to the owner of a peer
 * CQ.
 */
#include "common/queue/cq_err.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_peer.h>
#include "base/bits.h"
#include "base/strbuf.h"
#include "common/domain/domain.h"

#define TEXT_MAX		319	/* bytes, without NUL */

static struct fab_cq *cq_err_cq(struct fid_cq *fid)
{
	return fab_container(fid, struct fab_cq, cq_fid);
}

static const struct fi_provider *cq_err_prov(const struct fab_cq *cq)
{
	return cq->domain->fabric->prov;
}

/* ---- entries ---- */

struct fab_cq_err *fab_cq_err_alloc(const void *data, size_t data_len, const char *text)
{
	size_t text_len = text ? strnlen(text, TEXT_MAX) : 0;
	struct fab_cq_err *err = calloc(1, sizeof(*err) + data_len + (text ? text_len + 1 : 0));

	if (!err)
		return NULL;
	if (data_len)
		memcpy(err->err_data, data, data_len);
	err->err_data_len = data_len;
	if (text) {
		err->text = (char *) err->err_data + data_len;
		memcpy(err->text, text, text_len);
	}
	return err;
}

void fab_cq_err_free(struct fab_cq *cq, struct fab_cq_err *err)
{
	if (err == cq->spare)
		cq->spare_used = false;
	else if (err != cq->overrun)
		free(err);
}

static void err_queue(struct fab_cq *cq, struct fab_cq_err *err)
{
	err->pos = cq->tail;
	cq->err_cnt++;
	fab_list_add_tail(&cq->errs, &err->link);
	fab_wait_event(&cq->wait);
}

static bool cq_overrun(const struct fab_cq *cq)
{
	return !fab_list_empty(&cq->overrun->link);
}

void fab_cq_set_overrun(struct fab_cq *cq, const struct fab_comp *comp)
{
	if (cq_overrun(cq))
		return;
	FI_WARN(cq_err_prov(cq), FI_LOG_CQ, "no memory to queue a completion (context %p) behind %u others: the CQ is "
		"overrun; read these, then close it\n", comp->context, cq->tail - cq->head);
	cq->overrun->comp = (struct fab_comp) { .src = FI_ADDR_NOTAVAIL };
	err_queue(cq, cq->overrun);
}

/* ---- peer CQs ---- */

static void check_owner(const struct fab_cq *cq, ssize_t ret)
{
	if (ret < 0)
		FI_WARN(cq_err_prov(cq), FI_LOG_CQ, "the owner of a peer CQ refused a completion, which is lost: %s\n",
			fi_strerror((int) -ret));
}

void fab_cq_owner_write(struct fab_cq *cq, const struct fab_comp *comp)
{
	check_owner(cq, cq->peer->owner_ops->write(cq->peer, comp->context, comp->flags, comp->len, comp->buf,
						   comp->data, comp->tag, comp->src));
}

static void owner_write_err(struct fab_cq *cq, const struct fab_comp *comp, const struct fab_cq_fail *fail)
{
	const struct fi_cq_err_entry entry = {
		.op_context = comp->context,
		.flags = comp->flags,
		.len = comp->len,
		.buf = comp->buf,
		.data = comp->data,
		.tag = comp->tag,
		.olen = fail->olen,
		.err = fail->err,
		.prov_errno = fail->prov_errno,
		.err_data = (void *) fail->err_data,
		.err_data_size = fail->err_data_len,
		.src_addr = comp->src,
	};

	check_owner(cq, cq->peer->owner_ops->writeerr(cq->peer, &entry));
}

/* ---- errors ---- */

void fab_cq_write_err(struct fab_cq *cq, const struct fab_comp *comp, const struct fab_cq_fail *fail)
{
	struct fab_cq_err *err;

	if (cq->peer) {
		owner_write_err(cq, comp, fail);
		return;
	}
	err = fab_cq_err_alloc(fail->err_data, fail->err_data_len, fail->text);
	if (!err) {
		if (cq->spare_used) {
			fab_cq_set_overrun(cq, comp);
			return;
		}
		cq->spare_used = true;
		err = cq->spare;
	}
	err->comp = *comp;
	err->err = fail->err;
	err->prov_errno = fail->prov_errno;
	err->olen = fail->olen;
	err_queue(cq, err);
}

/* The length of struct fi_cq_err_entry in an application of this API version. */
static size_t err_entry_len(uint32_t api_version)
{
	if (FI_VERSION_LT(api_version, FI_VERSION(1, 5)))
		return offsetof(struct fi_cq_err_entry, err_data_size);
	if (FI_VERSION_LT(api_version, FI_VERSION(1, 20)))
		return offsetof(struct fi_cq_err_entry, src_addr);
	return sizeof(struct fi_cq_err_entry);
}

/* Copy an error entry. Since API 1.5 the application may pass a buffer for err_data; otherwise it gets a pointer to
 * ours. */
static void cq_give_err(struct fab_cq *cq, struct fab_cq_err *err, struct fi_cq_err_entry *out)
{
	size_t len = err_entry_len(cq->domain->fabric->fabric_fid.api_version);
	struct fi_cq_err_entry entry = {
		.op_context = err->comp.context,
		.flags = err->comp.flags,
		.len = err->comp.len,
		.buf = err->comp.buf,
		.data = err->comp.data,
		.tag = err->comp.tag,
		.olen = err->olen,
		.err = err->err,
		.prov_errno = err->prov_errno,
		.err_data = err->err_data_len ? err->err_data : NULL,
		.err_data_size = err->err_data_len,
		.src_addr = err->comp.src,
	};

	if (len > offsetof(struct fi_cq_err_entry, err_data_size) && out->err_data_size) {
		entry.err_data_size = out->err_data ? fab_min(out->err_data_size, err->err_data_len) : 0;
		entry.err_data = out->err_data;
		if (entry.err_data_size)
			memcpy(out->err_data, err->err_data, entry.err_data_size);
	}
	memcpy(out, &entry, len);
}

ssize_t fab_cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct fab_cq *cq = cq_err_cq(fid);
	struct fab_engine *engine;
	struct fab_cq_err *err;

	if (!buf || flags)
		return flags ? -FI_EBADFLAGS : -FI_EINVAL;
	engine = fab_engine_enter_of(&cq->wait.engine);
	err = fab_cq_first_err(cq);
	if (!err || err->pos != cq->head || (cq->ahead && atomic_load(&cq->ahead->cnt))) {
		fab_engine_unlock(engine);
		return -FI_EAGAIN;
	}
	cq_give_err(cq, err, buf);
	if (err != cq->overrun) {
		fab_list_remove(&err->link);
		cq->err_cnt--;
	}
	if (cq->last_err)
		fab_cq_err_free(cq, cq->last_err);
	cq->last_err = err;
	fab_engine_unlock(engine);
	return 1;
}

/* The text of the error read last, if it has this prov_errno; otherwise NULL. */
static const char *err_text(const struct fab_cq *cq, int prov_errno)
{
	const struct fab_cq_err *err = cq->last_err;

	return err && err->text && err->prov_errno == prov_errno ? err->text : fi_strerror(prov_errno);
}

const char *fab_cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	struct fab_cq *cq = cq_err_cq(fid);
	struct fab_engine *engine;
	struct fab_strbuf sb;
	const char *text;

	(void) err_data;
	engine = fab_engine_lock_of(&cq->wait.engine);
	text = err_text(cq, prov_errno);
	if (buf && len) {
		fab_strbuf_init(&sb, buf, len);
		fab_strbuf_puts(&sb, text);
		text = buf;
	}
	fab_engine_unlock(engine);
	return text;
}
