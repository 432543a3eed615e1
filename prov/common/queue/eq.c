/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_eq(3): writing and reading events, sleeping, open and close. eq_engines.c makes progress meanwhile.
 */
#include "common/queue/eq.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "base/strbuf.h"
#include "common/queue/eq_engines.h"
#include "common/domain/domain.h"
#include "common/ops/ops.h"

#define SIZE_MAX_ASKED		(1U << 24)	/* events; a larger size is refused as a mistake */
#define USER_EVENT_MAX		65536		/* most bytes of an event of fi_eq_write() */

/* An event, with data for the reader; or an error, with its entry and data for err_data. */
struct fab_eq_event {
	struct fab_list link;
	struct fid *owner;
	uint32_t event;
	bool is_err;
	struct fi_eq_err_entry entry;
	const char *text;		/* in data, behind len: text for fi_eq_strerror(); NULL: the text of its
					 * errno */
	size_t len;
	uint8_t data[];
};

static struct fab_eq *eq_of(struct fid_eq *fid)
{
	return fab_container(fid, struct fab_eq, eq_fid);
}

static bool eq_has_event(struct fab_wait *wait)
{
	return !fab_list_empty(&fab_container(wait, struct fab_eq, wait)->events);
}

/* ---- writing ---- */

/* Make an event of owner, with the bytes of data followed by those of more. NULL: no memory. */
static struct fab_eq_event *event_alloc(uint32_t event, struct fid *owner, const void *data, size_t len,
					const void *more, size_t more_len)
{
	struct fab_eq_event *entry = calloc(1, sizeof(*entry) + len + more_len);

	if (!entry)
		return NULL;
	fab_list_init(&entry->link);
	entry->event = event;
	entry->owner = owner;
	entry->len = len + more_len;
	if (len)
		memcpy(entry->data, data, len);
	if (more_len)
		memcpy(entry->data + len, more, more_len);
	return entry;
}

static void event_free(struct fab_eq *eq, struct fab_eq_event *event)
{
	if (event != eq->overrun)
		free(event);
}

static bool eq_overrun(const struct fab_eq *eq)
{
	return !fab_list_empty(&eq->overrun->link);
}

/* Append event. NULL: there was no memory for it, and the EQ is overrun. eq->lock held. */
static int queue_locked(struct fab_eq *eq, struct fab_eq_event *event)
{
	int ret = event ? 0 : -FI_ENOMEM;

	if (eq_overrun(eq)) {
		free(event);
		return -FI_EOVERRUN;
	}
	if (ret) {
		FI_WARN(eq->fabric->prov, FI_LOG_EQ, "no memory to queue an event: the EQ is overrun; read the events "
			"before it, then close it\n");
		event = eq->overrun;
	}
	fab_list_add_tail(&eq->events, &event->link);
	fab_wait_signal(&eq->wait);
	return ret;
}

static int queue(struct fab_eq *eq, struct fab_eq_event *event)
{
	int ret;

	pthread_mutex_lock(&eq->lock);
	ret = queue_locked(eq, event);
	pthread_mutex_unlock(&eq->lock);
	return ret;
}

int fab_eq_write(struct fab_eq *eq, uint32_t event, const void *data, size_t len, struct fid *owner)
{
	return queue(eq, event_alloc(event, owner, data, len, NULL, 0));
}

int fab_eq_write_done(struct fab_eq *eq, uint32_t event, struct fid *fid, void *context, uint64_t data)
{
	struct fi_eq_entry entry = { .fid = fid, .context = context, .data = data };

	return fab_eq_write(eq, event, &entry, sizeof(entry), fid);
}

int fab_eq_write_cm(struct fab_eq *eq, uint32_t event, struct fid *fid, struct fi_info *info, const void *data,
		    size_t len)
{
	struct fi_eq_cm_entry entry = { .fid = fid, .info = info };

	return queue(eq, event_alloc(event, fid, &entry, sizeof(entry), data, len));
}

static struct fab_eq_event *err_alloc(struct fid *fid, const struct fi_eq_err_entry *entry, const void *err_data,
				      size_t len, const char *text)
{
	struct fab_eq_event *event = event_alloc(0, fid, err_data, len, text, text ? strlen(text) + 1 : 0);

	if (!event)
		return NULL;
	event->is_err = true;
	event->entry = *entry;
	event->text = text ? (const char *) event->data + len : NULL;
	event->len = len;
	return event;
}

int fab_eq_write_err(struct fab_eq *eq, struct fid *fid, void *context, uint64_t data, int err, int prov_errno,
		     const void *err_data, size_t err_data_len)
{
	struct fi_eq_err_entry entry = {
		.fid = fid, .context = context, .data = data, .err = err, .prov_errno = prov_errno,
	};

	return queue(eq, err_alloc(fid, &entry, err_data, err_data_len, NULL));
}

int fab_eq_write_cm_err(struct fab_eq *eq, struct fid *fid, int err, int prov_errno, const void *err_data,
			size_t err_data_len, const char *text)
{
	struct fi_eq_err_entry entry = { .fid = fid, .context = fid->context, .err = err, .prov_errno = prov_errno };

	return queue(eq, err_alloc(fid, &entry, err_data, err_data_len, text));
}

void fab_eq_purge(struct fab_eq *eq, struct fid *owner, void (*drop)(uint32_t event, void *data, size_t len))
{
	struct fab_list gone = FAB_LIST_INIT(gone);
	struct fab_list *link, *tmp;
	struct fab_eq_event *event;

	pthread_mutex_lock(&eq->lock);
	fab_list_for_each_safe(&eq->events, link, tmp) {
		event = fab_container(link, struct fab_eq_event, link);
		if (event->owner != owner || event == eq->overrun)
			continue;
		fab_list_remove(link);
		fab_list_add_tail(&gone, link);
	}
	pthread_mutex_unlock(&eq->lock);

	while ((link = fab_list_pop_front(&gone))) {
		event = fab_container(link, struct fab_eq_event, link);
		if (drop && !event->is_err)
			drop(event->event, event->data, event->len);
		free(event);
	}
}

/* ---- reading ---- */

/* The number of bytes for which the reader must have room. Data of a peer may follow, and is cut off if there is no
 * room for it (fi_eq(3)). */
static size_t least_len(const struct fab_eq_event *event)
{
	switch (event->event) {
	case FI_CONNREQ:
	case FI_CONNECTED:
	case FI_SHUTDOWN:
		return fab_min(event->len, sizeof(struct fi_eq_cm_entry));
	default:
		return event->len;
	}
}

/* Take the first event, or copy it (FI_PEEK). Returns its length, -FI_EAVAIL, -FI_ETOOSMALL or -FI_EAGAIN. eq->lock
 * held. */
static ssize_t eq_take(struct fab_eq *eq, uint32_t *event_code, void *buf, size_t len, uint64_t flags)
{
	struct fab_eq_event *event = fab_list_first(&eq->events, struct fab_eq_event, link);

	if (!event)
		return -FI_EAGAIN;
	if (event->is_err)
		return -FI_EAVAIL;
	if (len < least_len(event))
		return -FI_ETOOSMALL;
	len = fab_min(len, event->len);
	*event_code = event->event;
	if (len)
		memcpy(buf, event->data, len);
	if (!(flags & FI_PEEK)) {
		fab_list_remove(&event->link);
		event_free(eq, event);
	}
	return (ssize_t) len;
}

static int check_read(const uint32_t *event, const void *buf, size_t len, uint64_t flags)
{
	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	return !event || (!buf && len) ? -FI_EINVAL : 0;
}

/* Take an event; if the queue is empty, make progress and try again. eq->lock is held on entry and return, and dropped
 * in between. */
static ssize_t look_and_take(struct fab_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	ssize_t ret = eq_take(eq, event, buf, len, flags);

	if (ret != -FI_EAGAIN)
		return ret;
	pthread_mutex_unlock(&eq->lock);
	fab_eq_run(eq);
	pthread_mutex_lock(&eq->lock);
	return eq_take(eq, event, buf, len, flags);
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct fab_eq *eq = eq_of(fid);
	ssize_t ret = check_read(event, buf, len, flags);

	if (ret)
		return ret;
	pthread_mutex_lock(&eq->lock);
	ret = look_and_take(eq, event, buf, len, flags);
	if (ret == -FI_EAGAIN)
		fab_wait_drained(&eq->wait);
	pthread_mutex_unlock(&eq->lock);
	return ret;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout_ms, uint64_t flags)
{
	struct fab_eq *eq = eq_of(fid);
	struct fab_sleep sleep;
	ssize_t ret = check_read(event, buf, len, flags);
	int slept = 0;

	if (ret)
		return ret;
	if (!fab_wait_can_sleep(&eq->wait))
		return -FI_ENOSYS;
	pthread_mutex_lock(&eq->lock);
	fab_wait_begin(&eq->wait, &sleep, timeout_ms);
	for (;;) {
		ret = look_and_take(eq, event, buf, len, flags);
		if (ret != -FI_EAGAIN || slept)
			break;
		slept = fab_wait_sleep(&eq->wait, &sleep);
	}
	pthread_mutex_unlock(&eq->lock);
	return ret == -FI_EAGAIN ? fab_wait_read_error(slept) : ret;
}

/* Copy err_data into the application's buffer, if its API is 1.5 or later and it has one; otherwise return a pointer to
 * our buffer. */
static void eq_give_err(struct fab_eq *eq, struct fab_eq_event *event, struct fi_eq_err_entry *out)
{
	struct fi_eq_err_entry entry = event->entry;

	entry.err_data = event->len ? event->data : NULL;
	entry.err_data_size = event->len;
	if (FI_VERSION_GE(eq->fabric->fabric_fid.api_version, FI_VERSION(1, 5)) && out->err_data_size) {
		entry.err_data_size = out->err_data ? fab_min(out->err_data_size, event->len) : 0;
		entry.err_data = out->err_data;
		if (entry.err_data_size)
			memcpy(out->err_data, event->data, entry.err_data_size);
	}
	*out = entry;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct fab_eq *eq = eq_of(fid);
	struct fab_eq_event *event;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	if (!buf)
		return -FI_EINVAL;
	pthread_mutex_lock(&eq->lock);
	event = fab_list_first(&eq->events, struct fab_eq_event, link);
	if (!event || !event->is_err) {
		pthread_mutex_unlock(&eq->lock);
		return -FI_EAGAIN;
	}
	eq_give_err(eq, event, buf);
	if (!(flags & FI_PEEK) && event != eq->overrun) {
		fab_list_remove(&event->link);
		free(eq->last_err);
		eq->last_err = event;
	}
	pthread_mutex_unlock(&eq->lock);
	return sizeof(*buf);
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len, uint64_t flags)
{
	struct fab_eq *eq = eq_of(fid);
	int ret;

	if (!(eq->flags & FI_WRITE))
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	if ((!buf && len) || len > USER_EVENT_MAX)
		return -FI_EINVAL;
	ret = fab_eq_write(eq, event, buf, len, NULL);
	return ret ? ret : (ssize_t) len;
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	struct fab_eq *eq = eq_of(fid);
	const char *text = NULL;
	struct fab_strbuf sb;

	(void) err_data;
	pthread_mutex_lock(&eq->lock);
	if (eq->last_err && eq->last_err->entry.prov_errno == prov_errno)
		text = eq->last_err->text;
	if (!text)
		text = fi_strerror(prov_errno);
	if (buf && len) {
		fab_strbuf_init(&sb, buf, len);
		fab_strbuf_puts(&sb, text);
		text = buf;
	}
	pthread_mutex_unlock(&eq->lock);
	return text;
}

/* ---- open and close ---- */

static int eq_control(struct fid *fid, int command, void *arg)
{
	return fab_wait_control(&fab_container(fid, struct fab_eq, eq_fid.fid)->wait, command, arg);
}

static void eq_free(struct fab_eq *eq)
{
	struct fab_list *link;

	while ((link = fab_list_pop_front(&eq->events)))
		event_free(eq, fab_container(link, struct fab_eq_event, link));
	free(eq->last_err);
	free(eq->overrun);
	pthread_cond_destroy(&eq->idle);
	pthread_mutex_destroy(&eq->lock);
	free(eq);
}

static int eq_close(struct fid *fid)
{
	struct fab_eq *eq = fab_container(fid, struct fab_eq, eq_fid.fid);
	struct fab_fabric *fabric = eq->fabric;
	uint32_t ref;

	pthread_mutex_lock(&eq->lock);
	ref = eq->ref;
	pthread_mutex_unlock(&eq->lock);
	if (ref) {
		FI_WARN(fabric->prov, FI_LOG_EQ, "fi_close of an EQ to which %u objects are bound; close them first\n"
			, ref);
		return -FI_EBUSY;
	}
	assert(fab_list_empty(&eq->engines));
	fab_wait_fini(&eq->wait);
	fab_engine_fini(&eq->engine);
	eq_free(eq);
	atomic_fetch_sub(&fabric->ref, 1);
	return 0;
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.control = eq_control,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

static int eq_check_attr(const struct fab_fabric *fabric, const struct fi_eq_attr *attr)
{
	if (attr->size <= SIZE_MAX_ASKED && !(attr->flags & ~(FI_WRITE | FI_AFFINITY)) &&
	    fab_wait_exists(attr->wait_obj, attr->wait_set))
		return 0;
	FI_WARN(fabric->prov, FI_LOG_EQ, "fi_eq_open: size %zu, flags 0x%llx, wait_obj %d, wait_set %p; allowed are "
		"a size up to %u, the flags FI_WRITE and FI_AFFINITY, the wait objects of fi_eq(3), FI_WAIT_SET with "
		"a wait_set\n", attr->size, (unsigned long long) attr->flags, attr->wait_obj, (void *) attr->wait_set,
		SIZE_MAX_ASKED);
	return -FI_EINVAL;
}

static struct fab_eq *eq_alloc(struct fab_fabric *fabric, const struct fi_eq_attr *attr)
{
	struct fab_eq *eq = calloc(1, sizeof(*eq));

	if (!eq)
		return NULL;
	eq->overrun = event_alloc(0, NULL, NULL, 0, NULL, 0);
	if (!eq->overrun) {
		free(eq);
		return NULL;
	}
	eq->overrun->is_err = true;
	eq->overrun->entry.err = eq->overrun->entry.prov_errno = FI_EOVERRUN;
	eq->overrun->entry.fid = &eq->eq_fid.fid;
	eq->fabric = fabric;
	eq->flags = attr->flags;
	pthread_mutex_init(&eq->lock, NULL);
	pthread_cond_init(&eq->idle, NULL);
	fab_list_init(&eq->events);
	fab_list_init(&eq->engines);
	return eq;
}

int fab_eq_open(struct fid_fabric *fabric_fid, struct fi_eq_attr *attr, struct fid_eq **eq_fid, void *context)
{
	struct fab_fabric *fabric = fab_container(fabric_fid, struct fab_fabric, fabric_fid);
	struct fi_eq_attr defaults = { 0 };
	struct fab_eq *eq;
	int ret;

	if (!attr)
		attr = &defaults;
	ret = eq_check_attr(fabric, attr);
	if (ret)
		return ret;
	eq = eq_alloc(fabric, attr);
	if (!eq)
		return -FI_ENOMEM;
	FAB_OPS_FILL(&eq_fid_ops);
	eq->eq_fid.fid = (struct fid) { .fclass = FI_CLASS_EQ, .context = context, .ops = &eq_fid_ops };
	eq->eq_fid.ops = &eq_ops;
	ret = fab_engine_init(&eq->engine, &(struct fab_engine_attr) { .shared = true, .prov = fabric->prov });
	if (ret)
		goto free_eq;
	ret = fab_wait_init(&eq->wait, &(struct fab_wait_attr) { .obj = attr->wait_obj, .set = attr->wait_set,
			    .engine = &eq->engine, .has_event = eq_has_event, .guard = &fab_eq_guard });
	if (ret)
		goto fini_progress;
	atomic_fetch_add(&fabric->ref, 1);
	*eq_fid = &eq->eq_fid;
	return 0;

fini_progress:
	fab_engine_fini(&eq->engine);
free_eq:
	eq_free(eq);
	return ret;
}
