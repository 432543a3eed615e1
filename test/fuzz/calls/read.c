/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Steps that read queues and counters, and wait a little.
 */
#include "fuzz/calls/steps.h"

#include <poll.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define ENTRIES		8
#define EVENT_LEN	512
#define TIMEOUT_MS	3

/* ---- completions */

static size_t entry_size(enum fi_cq_format format)
{
	static const size_t sizes[] = { 0, sizeof(struct fi_cq_entry), sizeof(struct fi_cq_msg_entry),
					sizeof(struct fi_cq_data_entry), sizeof(struct fi_cq_tagged_entry) };

	if (format >= COUNT(sizes))
		world_wrong("a queue of format %d", format);
	return sizes[format];
}

static void read_error(struct obj *cq)
{
	struct fi_cq_err_entry entry = { 0 };
	uint8_t data[300];
	char text[100];

	if (one_in(2)) {
		entry.err_data = data;
		entry.err_data_size = draw(sizeof(data));
	}
	if (CALL(fi_cq_readerr(AS(fid_cq, cq), &entry, 0), "fi_cq_readerr(%u)", cq->id) != 1)
		return;
	fi_cq_strerror(AS(fid_cq, cq), entry.prov_errno, entry.err_data, one_in(4) ? NULL : text, draw(sizeof(text)));
	op_completes(entry.op_context, entry.flags, entry.err, true);
}

static void read_cq(struct obj *cq, size_t cnt, uint32_t way)
{
	size_t size = entry_size(cq->format);
	uint8_t *entries = size ? mem_registered(cnt * size) : NULL;
	fi_addr_t *from = size ? (fi_addr_t *) mem_registered(cnt * sizeof(*from)) : NULL;
	struct fid_cq *fid = AS(fid_cq, cq);
	long long ret;

	if (!size)
		return;
	if (cq->owner)	/* its completions are the owner's */
		ret = CALL(fi_cq_read(fid, NULL, 0), "fi_cq_read(%u, NULL, 0)", cq->id);
	else if (!way)
		ret = CALL(fi_cq_read(fid, entries, cnt), "fi_cq_read(%u, %zu)", cq->id, cnt);
	else if (way == 1)
		ret = CALL(fi_cq_readfrom(fid, entries, cnt, from), "fi_cq_readfrom(%u, %zu)", cq->id, cnt);
	else if (way == 2)
		ret = CALL(fi_cq_sread(fid, entries, cnt, (void *) (uintptr_t) draw(3), (int) draw(TIMEOUT_MS)),
			   "fi_cq_sread(%u, %zu)", cq->id, cnt);
	else
		ret = CALL(fi_cq_sreadfrom(fid, entries, cnt, from, NULL, (int) draw(TIMEOUT_MS)),
			   "fi_cq_sreadfrom(%u, %zu)",
			   cq->id, cnt);
	if (ret > (long long) cnt)
		world_wrong("%lld completions, and there is room for %zu", ret, cnt);
	for (long long i = 0; i < ret; i++) {
		struct fi_cq_msg_entry entry = { 0 };

		memcpy(&entry, entries + (size_t) i * size, size < sizeof(entry) ? size : sizeof(entry));
		op_completes(entry.op_context, entry.flags, 0, cq->format != FI_CQ_FORMAT_CONTEXT);
	}
	mem_unregistered(entries, cnt * size);
	mem_unregistered((uint8_t *) from, cnt * sizeof(*from));
	if (ret == -FI_EAVAIL)
		read_error(cq);
}

void step_cq(void)
{
	struct obj *cq = pick(CQ);
	struct fi_cq_err_entry entry = { 0 };

	if (!cq)
		return;
	if (one_in(10))
		CALL(fi_cq_signal(AS(fid_cq, cq)), "fi_cq_signal(%u)", cq->id);
	else if (one_in(10))
		CALL(fi_cq_read(AS(fid_cq, cq), NULL, 0), "fi_cq_read(%u, NULL, 0)", cq->id);
	else if (one_in(20) && CALL(fi_cq_readerr(AS(fid_cq, cq), &entry, 0), "fi_cq_readerr(%u)", cq->id) == 1)
		op_completes(entry.op_context, entry.flags, entry.err, true);
	else
		read_cq(cq, draw(ENTRIES), draw(4));
}

/* ---- events */

static void eq_error(struct obj *eq)
{
	struct fi_eq_err_entry entry = { 0 };
	uint8_t data[64];
	char text[100];

	if (one_in(2)) {
		entry.err_data = data;
		entry.err_data_size = draw(sizeof(data));
	}
	if (CALL(fi_eq_readerr(AS(fid_eq, eq), &entry, one_in(8) ? FI_PEEK : 0), "fi_eq_readerr(%u)", eq->id) > 0)
		fi_eq_strerror(AS(fid_eq, eq), entry.prov_errno, entry.err_data, one_in(4) ? NULL : text,
			       draw(sizeof(text)));
}

static struct obj *pep_of(fid_t fid)
{
	struct obj *pep;
	unsigned at = 0;

	while ((pep = obj_next(PEP, &at))) {
		if (pep->fid == fid)
			return pep;
	}
	return NULL;
}

static void read_eq(struct obj *eq, size_t len, uint64_t flags, bool waits)
{
	uint8_t *buf = mem_registered(len);
	uint32_t event = 0;
	struct fi_eq_cm_entry entry;
	long long ret = waits ? CALL(fi_eq_sread(AS(fid_eq, eq), &event, buf, len, (int) draw(TIMEOUT_MS), flags),
				     "fi_eq_sread(%u, %zu)", eq->id, len) :
		CALL(fi_eq_read(AS(fid_eq, eq), &event, buf, len, flags), "fi_eq_read(%u, %zu)", eq->id, len);

	if (ret > (long long) len)
		world_wrong("an event of %lld bytes in a buffer of %zu", ret, len);
	if (ret >= (long long) sizeof(entry) && event == FI_CONNREQ && !(flags & FI_PEEK)) {
		memcpy(&entry, buf, sizeof(entry));
		if (entry.fid)	/* otherwise one that the program wrote */
			answer_request(pep_of(entry.fid), entry.info);
	}
	mem_unregistered(buf, len);
	if (ret == -FI_EAVAIL)
		eq_error(eq);
}

void step_eq(void)
{
	struct obj *eq = pick(EQ);
	size_t len = one_in(3) ? draw(EVENT_LEN) : EVENT_LEN;
	uint8_t *data;

	if (!eq)
		return;
	if (one_in(8)) {
		data = mem_new(len);
		memset(data, 0, len);
		CALL(fi_eq_write(AS(fid_eq, eq), one_in(2) ? draw(16) : (uint32_t) draw_any(), data, len,
				 one_in(8) ? draw_any() : 0), "fi_eq_write(%u, %zu)", eq->id, len);
	} else {
		read_eq(eq, len, one_in(8) ? FI_PEEK : 0, one_in(6));
	}
}

void passes(unsigned cnt)
{
	struct obj *obj;

	for (unsigned i = 0; i < cnt; i++) {
		for (unsigned at = 0; (obj = obj_next(EQ, &at));)
			read_eq(obj, EVENT_LEN, 0, false);
		for (unsigned at = 0; (obj = obj_next(CQ, &at));)
			read_cq(obj, ENTRIES, 0);
		for (unsigned at = 0; (obj = obj_next(CNTR, &at));)
			fi_cntr_read(AS(fid_cntr, obj));
		if (i % 8 == 7)
			poll(NULL, 0, 1);
	}
}

void step_pass(void)
{
	passes(1 + draw(6));
}

/* ---- counters, sets */

void step_cntr(void)
{
	struct obj *obj = pick(CNTR);
	struct fid_cntr *cntr = AS(fid_cntr, obj);
	uint64_t value = one_in(8) ? draw_any() : draw(5);

	if (!obj)
		return;
	switch (draw(6)) {
	case 0:
		CALL(fi_cntr_add(cntr, value), "fi_cntr_add(%u, %llu)", obj->id, (unsigned long long) value);
		break;
	case 1:
		CALL(fi_cntr_adderr(cntr, value), "fi_cntr_adderr(%u, %llu)", obj->id, (unsigned long long) value);
		break;
	case 2:
		CALL(fi_cntr_set(cntr, value), "fi_cntr_set(%u, %llu)", obj->id, (unsigned long long) value);
		break;
	case 3:
		CALL(fi_cntr_seterr(cntr, value), "fi_cntr_seterr(%u, %llu)", obj->id, (unsigned long long) value);
		break;
	case 4:
		CALL(fi_cntr_wait(cntr, value, (int) draw(TIMEOUT_MS)), "fi_cntr_wait(%u, %llu)", obj->id,
		     (unsigned long long) value);
		break;
	default:
		CALL((long long) (fi_cntr_read(cntr) + fi_cntr_readerr(cntr)), "fi_cntr_read(%u)", obj->id);
	}
}

void step_wait(void)
{
	struct obj *poll_obj = pick(POLL), *wait = pick(WAIT), *fabric = pick(FABRIC);
	struct obj *member = pick_of(one_in(16) ? UINT32_MAX : 1U << CQ | 1U << CNTR | 1U << EQ | 1U << WAIT);
	struct fid *fids[3] = { fid_of(member), fid_of(pick(CQ)), fid_of(pick(CQ)) };
	void *contexts[4];

	if (poll_obj && member && one_in(2))
		CALL(fi_poll_add(AS(fid_poll, poll_obj), member->fid, one_in(8) ? draw_any() : 0),
		     "fi_poll_add(%u, %u)",
		     poll_obj->id, member->id);
	else if (poll_obj && member && one_in(4))
		CALL(fi_poll_del(AS(fid_poll, poll_obj), member->fid, one_in(8) ? draw_any() : 0),
		     "fi_poll_del(%u, %u)",
		     poll_obj->id, member->id);
	else if (poll_obj && one_in(2))
		CALL(fi_poll(AS(fid_poll, poll_obj), contexts, (int) draw(5)), "fi_poll(%u)", poll_obj->id);
	else if (wait && one_in(2))
		CALL(fi_wait(AS(fid_wait, wait), (int) draw(TIMEOUT_MS)), "fi_wait(%u)", wait->id);
	else if (fabric && fids[0])
		CALL(fi_trywait(AS(fid_fabric, fabric), fids, (int) (fids[1] ? draw(4) : draw(2))),
		     "fi_trywait(%u, %u)",
		     fabric->id, member->id);
}
