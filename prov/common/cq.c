/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_cq(3): reading, sleeping, errors and their texts, open and close.
 */
#include "common/cq.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_peer.h>
#include "base/bits.h"
#include "base/strbuf.h"
#include "common/export.h"
#include "common/ops.h"
#include "common/queue.h"

#define RING_START		64	/* entries */
#define SIZE_MAX_ASKED		(1U << 28)	/* entries; more is taken for a mistake */
#define TEXT_MAX		200	/* bytes, without the end */

struct fab_cq_err {
	struct fab_list link;
	uint32_t pos;			/* stands before this ring position */
	struct fab_comp comp;
	int err;
	int prov_errno;
	size_t olen;
	size_t err_data_len;
	char *text;			/* NULL, or behind err_data */
	uint8_t err_data[];
};

static struct fab_cq *cq_of(struct fid_cq *fid)
{
	return fab_container(fid, struct fab_cq, cq_fid);
}

static const struct fi_provider *prov_of(const struct fab_cq *cq)
{
	return cq->domain->fabric->prov;
}

/* ---- formats: each is the beginning of struct fab_comp, of a certain length ---- */

#define SAME_PLACE(member, field)										\
	_Static_assert(offsetof(struct fi_cq_tagged_entry, member) == offsetof(struct fab_comp, field),		\
		       "formats are copied in one piece")
SAME_PLACE(op_context, context);
SAME_PLACE(flags, flags);
SAME_PLACE(len, len);
SAME_PLACE(buf, buf);
SAME_PLACE(data, data);
SAME_PLACE(tag, tag);

/* size is a constant in every caller. */
static inline __attribute__((always_inline))
void copy_entries(const struct fab_cq *cq, uint32_t pos, uint32_t cnt, void *buf, size_t size)
{
	char *to = buf;

	for (uint32_t i = 0; i < cnt; i++, to += size)
		memcpy(to, &cq->ring[(pos + i) & cq->mask], size);
}

static void copy_context(const struct fab_cq *cq, uint32_t pos, uint32_t cnt, void *buf)
{
	copy_entries(cq, pos, cnt, buf, sizeof(struct fi_cq_entry));
}

static void copy_msg(const struct fab_cq *cq, uint32_t pos, uint32_t cnt, void *buf)
{
	copy_entries(cq, pos, cnt, buf, sizeof(struct fi_cq_msg_entry));
}

static void copy_data(const struct fab_cq *cq, uint32_t pos, uint32_t cnt, void *buf)
{
	copy_entries(cq, pos, cnt, buf, sizeof(struct fi_cq_data_entry));
}

static void copy_tagged(const struct fab_cq *cq, uint32_t pos, uint32_t cnt, void *buf)
{
	copy_entries(cq, pos, cnt, buf, sizeof(struct fi_cq_tagged_entry));
}

/* Who leaves the format to us cannot know how long an entry is: so it is the shortest. */
static void (*const copy_by_format[])(const struct fab_cq *cq, uint32_t pos, uint32_t cnt, void *buf) = {
	[FI_CQ_FORMAT_UNSPEC] = copy_context,
	[FI_CQ_FORMAT_CONTEXT] = copy_context,
	[FI_CQ_FORMAT_MSG] = copy_msg,
	[FI_CQ_FORMAT_DATA] = copy_data,
	[FI_CQ_FORMAT_TAGGED] = copy_tagged,
};

/* ---- the ring ---- */

static bool grow(struct fab_cq *cq)
{
	uint32_t mask = cq->mask * 2 + 1;
	struct fab_comp *ring = malloc(((size_t) mask + 1) * sizeof(*ring));

	if (!ring)
		return false;
	for (uint32_t pos = cq->head; pos != cq->tail; pos++)
		ring[pos & mask] = cq->ring[pos & cq->mask];
	free(cq->ring);
	cq->ring = ring;
	cq->mask = mask;
	return true;
}

static struct fab_cq_err *first_err(const struct fab_cq *cq)
{
	return fab_list_first(&cq->errs, struct fab_cq_err, link);
}

/* Successes that can be read before the first error. */
static uint32_t readable(const struct fab_cq *cq)
{
	const struct fab_cq_err *err = first_err(cq);

	return (err ? err->pos : cq->tail) - cq->head;
}

/* Is there what a sleeper of cnt entries waits for? Errors always are. */
static bool enough(const struct fab_cq *cq, uint32_t cnt)
{
	return cq->tail - cq->head >= cnt || !fab_list_empty(&cq->errs);
}

static bool has_event(struct fab_wait *wait)
{
	const struct fab_cq *cq = fab_container(wait, struct fab_cq, wait);

	return !cq->peer && enough(cq, wait->outside ? 1 : cq->wake_cnt);
}

/* ---- reading ---- */

/* Take up to count entries. The number, -FI_EAVAIL if an error stands first, -FI_EAGAIN if there is nothing. */
static ssize_t take(struct fab_cq *cq, void *buf, size_t count, fi_addr_t *src)
{
	uint32_t cnt = readable(cq);

	if (!cnt)
		return fab_list_empty(&cq->errs) ? -FI_EAGAIN : -FI_EAVAIL;
	if (cnt > count)
		cnt = (uint32_t) count;
	cq->copy(cq, cq->head, cnt, buf);
	if (src) {
		for (uint32_t i = 0; i < cnt; i++)
			src[i] = cq->ring[(cq->head + i) & cq->mask].src;
	}
	cq->head += cnt;
	return cnt;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
	struct fab_cq *cq = cq_of(fid);
	ssize_t ret;

	if (!buf && count)
		return -FI_EINVAL;
	fab_progress_enter(cq->progress);
	if (fab_cq_empty(cq) || !count)
		fab_progress_run(cq->progress);
	else
		fab_progress_attend(cq->progress);
	ret = take(cq, buf, count, src);
	if (ret == -FI_EAGAIN)
		fab_wait_drained(&cq->wait);
	fab_progress_unlock(cq->progress);
	return ret;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

/* Sleep until there are cnt entries, or an error, or the sleep ends. 0, or why it ended. */
static int wait_for(struct fab_cq *cq, uint32_t cnt, int timeout_ms)
{
	struct fab_sleep sleep;
	int ret;

	fab_wait_begin(&cq->wait, &sleep, timeout_ms);
	while (!enough(cq, cnt)) {
		fab_progress_run(cq->progress);
		if (enough(cq, cnt))
			break;
		cq->wake_cnt = cq->wait.sleepers ? fab_min(cq->wake_cnt, cnt) : cnt;
		ret = fab_wait_sleep(&cq->wait, &sleep);
		if (ret)
			return ret;
	}
	return 0;
}

/* cond is the threshold itself. More than count would keep the caller from reading what it has room for. */
static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src, const void *cond,
			    int timeout_ms)
{
	struct fab_cq *cq = cq_of(fid);
	size_t cnt = cq->threshold && cond ? fab_min((size_t) (uintptr_t) cond, count) : 1;
	ssize_t taken;
	int ret;

	if (!fab_wait_can_sleep(&cq->wait))
		return -FI_ENOSYS;
	if (!buf && count)
		return -FI_EINVAL;
	fab_progress_enter(cq->progress);
	ret = wait_for(cq, (uint32_t) fab_max(cnt, (size_t) 1), timeout_ms);
	taken = take(cq, buf, count, src);
	fab_progress_unlock(cq->progress);

	return taken == -FI_EAGAIN ? fab_wait_read_error(ret) : taken;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout_ms)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout_ms);
}

static int cq_signal(struct fid_cq *fid)
{
	struct fab_cq *cq = cq_of(fid);

	if (cq->wait.obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	fab_wait_wake(&cq->wait);
	return 0;
}

/* ---- errors ---- */

/* Room for an entry; data may be NULL. NULL: no memory. */
static struct fab_cq_err *err_alloc(const void *data, size_t data_len, const char *text)
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

static void err_free(struct fab_cq *cq, struct fab_cq_err *err)
{
	if (err == cq->spare)
		cq->spare_used = false;
	else if (err != cq->overrun)
		free(err);
}

static void err_queue(struct fab_cq *cq, struct fab_cq_err *err)
{
	err->pos = cq->tail;
	fab_list_add_tail(&cq->errs, &err->link);
	fab_wait_event(&cq->wait, &cq->progress->signals);
}

static bool overrun(const struct fab_cq *cq)
{
	return !fab_list_empty(&cq->overrun->link);
}

static void set_overrun(struct fab_cq *cq, const struct fab_comp *comp)
{
	if (overrun(cq))
		return;
	FI_WARN(prov_of(cq), FI_LOG_CQ, "no memory to queue a completion (context %p) behind %u others; the CQ is "
		"overrun, and of no use once these are read\n", comp->context, cq->tail - cq->head);
	cq->overrun->comp = (struct fab_comp) { .src = FI_ADDR_NOTAVAIL };
	err_queue(cq, cq->overrun);
}

/* ---- peer CQs ---- */

static void check_owner(const struct fab_cq *cq, ssize_t ret)
{
	if (ret < 0)
		FI_WARN(prov_of(cq), FI_LOG_CQ, "the owner of a peer CQ does not take a completion: %s\n",
			fi_strerror((int) -ret));
}

static void owner_write(struct fab_cq *cq, const struct fab_comp *comp)
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

bool fab_cq_full(struct fab_cq *cq, const struct fab_comp *comp)
{
	if (cq->peer)
		owner_write(cq, comp);
	else if (grow(cq))
		return false;
	else
		set_overrun(cq, comp);
	return true;
}

void fab_cq_write_err(struct fab_cq *cq, const struct fab_comp *comp, const struct fab_cq_fail *fail)
{
	struct fab_cq_err *err;

	if (cq->peer) {
		owner_write_err(cq, comp, fail);
		return;
	}
	err = err_alloc(fail->err_data, fail->err_data_len, fail->text);
	if (!err) {
		if (cq->spare_used) {
			set_overrun(cq, comp);
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

/* Bytes of struct fi_cq_err_entry that an application of this API version has. */
static size_t err_entry_len(uint32_t api_version)
{
	if (FI_VERSION_LT(api_version, FI_VERSION(1, 5)))
		return offsetof(struct fi_cq_err_entry, err_data_size);
	if (FI_VERSION_LT(api_version, FI_VERSION(1, 20)))
		return offsetof(struct fi_cq_err_entry, src_addr);
	return sizeof(struct fi_cq_err_entry);
}

/* Since 1.5 an application may bring its own buffer for err_data; otherwise it is shown ours. */
static void give_err(struct fab_cq *cq, struct fab_cq_err *err, struct fi_cq_err_entry *out)
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

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct fab_cq *cq = cq_of(fid);
	struct fab_cq_err *err;

	if (!buf || flags)
		return flags ? -FI_EBADFLAGS : -FI_EINVAL;
	fab_progress_enter(cq->progress);
	err = first_err(cq);
	if (!err || err->pos != cq->head) {
		fab_progress_unlock(cq->progress);
		return -FI_EAGAIN;
	}
	give_err(cq, err, buf);
	if (err != cq->overrun)
		fab_list_remove(&err->link);
	if (cq->last_err)
		err_free(cq, cq->last_err);
	cq->last_err = err;
	fab_progress_unlock(cq->progress);
	return 1;
}

/* The text of the error read last, if that is the one asked about. */
static const char *err_text(const struct fab_cq *cq, int prov_errno)
{
	const struct fab_cq_err *err = cq->last_err;

	return err && err->text && err->prov_errno == prov_errno ? err->text : fi_strerror(prov_errno);
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	struct fab_cq *cq = cq_of(fid);
	struct fab_strbuf sb;
	const char *text;

	(void) err_data;
	fab_progress_lock(cq->progress);
	text = err_text(cq, prov_errno);
	if (buf && len) {
		fab_strbuf_init(&sb, buf, len);
		fab_strbuf_puts(&sb, text);
		text = buf;
	}
	fab_progress_unlock(cq->progress);
	return text;
}

/* ---- open and close ---- */

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct fab_cq *cq = fab_container(fid, struct fab_cq, cq_fid.fid);

	return command == FI_EXPORT_FID ? fab_export_cq(cq, arg) : fab_wait_control(&cq->wait, command, arg);
}

static void cq_free(struct fab_cq *cq)
{
	struct fab_list *link;

	if (cq->last_err)
		err_free(cq, cq->last_err);
	while ((link = fab_list_pop_front(&cq->errs)))
		err_free(cq, fab_container(link, struct fab_cq_err, link));
	free(cq->overrun);
	free(cq->spare);
	free(cq->ring);
	free(cq);
}

static int cq_close(struct fid *fid)
{
	struct fab_cq *cq = fab_container(fid, struct fab_cq, cq_fid.fid);
	int ret;

	ret = fab_queue_close(cq->domain, &(struct fab_progress_user) { &cq->progress, &cq->own_progress, &cq->wait },
			      &cq->ref, "a CQ");
	if (!ret)
		cq_free(cq);
	return ret;
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.control = cq_control,
};

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

/* The owner makes progress. */
static ssize_t peer_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct fab_cq *cq = cq_of(fid);

	(void) buf;
	if (count)
		return -FI_ENOSYS;
	fab_progress_lock(cq->progress);
	fab_progress_run(cq->progress);
	fab_wait_drained(&cq->wait);
	fab_progress_unlock(cq->progress);
	return -FI_EAGAIN;
}

static struct fi_ops_cq peer_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = peer_read,
	.strerror = cq_strerror,
};

/* What FI_PEER's context brings, or NULL, logged. */
static struct fid_peer_cq *peer_of(const struct fab_domain *domain, const struct fi_peer_cq_context *context)
{
	const struct fi_ops_cq_owner *ops;

	if (context && context->size >= sizeof(*context) && context->cq) {
		ops = context->cq->owner_ops;
		if (ops && FI_CHECK_OP(ops, struct fi_ops_cq_owner, write) &&
		    FI_CHECK_OP(ops, struct fi_ops_cq_owner, writeerr))
			return context->cq;
	}
	FI_WARN(domain->fabric->prov, FI_LOG_CQ, "fi_cq_open with FI_PEER: the context is to be a struct "
		"fi_peer_cq_context, with a cq whose owner_ops have write and writeerr\n");
	return NULL;
}

/* -FI_EINVAL for what no CQ can be, with a line that says which attribute. */
static int check_attr(const struct fab_domain *domain, const struct fi_cq_attr *attr)
{
	const char *what = NULL;
	unsigned long long value = 0;

	if (attr->size > SIZE_MAX_ASKED)
		what = "size", value = attr->size;
	else if (attr->flags & ~(FI_AFFINITY | FI_PEER))
		what = "flags", value = attr->flags;
	else if ((unsigned) attr->format >= fab_countof(copy_by_format))
		what = "format", value = attr->format;
	else if (!fab_wait_exists(attr->wait_obj, attr->wait_set))
		what = "wait_obj", value = attr->wait_obj;
	else if (attr->wait_obj != FI_WAIT_NONE && (unsigned) attr->wait_cond > FI_CQ_COND_THRESHOLD)
		what = "wait_cond", value = attr->wait_cond;
	if (!what)
		return 0;
	FI_WARN(domain->fabric->prov, FI_LOG_CQ, "fi_cq_open: %s is 0x%llx; allowed are a size up to %u, the flag "
		"FI_AFFINITY or FI_PEER, the formats, wait objects and conditions of fi_cq(3), FI_WAIT_SET with a wait_set\n",
		what, value, SIZE_MAX_ASKED);
	return -FI_EINVAL;
}

static struct fab_cq *cq_alloc(const struct fi_cq_attr *attr)
{
	struct fab_cq *cq = calloc(1, sizeof(*cq));

	if (!cq)
		return NULL;
	fab_list_init(&cq->errs);
	cq->ring = malloc(RING_START * sizeof(*cq->ring));
	cq->spare = err_alloc(NULL, 0, NULL);
	cq->overrun = err_alloc(NULL, 0, NULL);
	if (!cq->ring || !cq->spare || !cq->overrun) {
		cq_free(cq);
		return NULL;
	}
	fab_list_init(&cq->overrun->link);
	cq->overrun->err = cq->overrun->prov_errno = FI_EOVERRUN;
	cq->mask = RING_START - 1;
	cq->wake_cnt = 1;
	cq->format = attr->format;
	cq->copy = copy_by_format[attr->format];
	cq->threshold = attr->wait_obj != FI_WAIT_NONE && attr->wait_cond == FI_CQ_COND_THRESHOLD;
	return cq;
}

int fab_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr, struct fid_cq **cq_fid, void *context)
{
	struct fab_domain *domain = fab_container(domain_fid, struct fab_domain, domain_fid);
	struct fi_cq_attr defaults = { 0 };
	struct fid_peer_cq *peer = NULL;
	struct fab_cq *cq;
	int ret;

	if (!attr)
		attr = &defaults;
	ret = check_attr(domain, attr);
	if (ret)
		return ret;
	if (attr->flags & FI_PEER) {
		peer = peer_of(domain, context);
		if (!peer)
			return -FI_EINVAL;
	}
	cq = cq_alloc(attr);
	if (!cq)
		return -FI_ENOMEM;
	if (peer) {
		cq->peer = peer;
		cq->mask = 0;
		cq->tail = 1;
	}
	FAB_OPS_FILL(&cq_fid_ops);
	FAB_OPS_FILL(&peer_ops);
	cq->domain = domain;
	cq->cq_fid.fid = (struct fid) { .fclass = FI_CLASS_CQ, .context = context, .ops = &cq_fid_ops };
	cq->cq_fid.ops = peer ? &peer_ops : &cq_ops;
	ret = fab_queue_init(domain, &(struct fab_progress_user) { &cq->progress, &cq->own_progress, &cq->wait },
			     &(struct fab_wait_attr) { attr->wait_obj, attr->wait_set, .has_event = has_event });
	if (ret) {
		cq_free(cq);
		return ret;
	}
	*cq_fid = &cq->cq_fid;
	return 0;
}
