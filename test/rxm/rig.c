/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See rig.h. */
#include "rxm/rig.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t rig_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

/* ---- passes ---- */

static void note_done(struct rig *rig, void *context, int err, size_t len)
{
	assert_true(rig->done_cnt < RIG_EVENTS);
	rig->done[rig->done_cnt++] = (struct rig_event) { context, err, len };
}

static void drive_ep(struct rig *rig)
{
	struct fi_cq_tagged_entry entry[16];
	struct fi_cq_err_entry err = { 0 };
	ssize_t cnt = fi_cq_read(rig->cq, entry, 16);

	for (ssize_t i = 0; i < cnt; i++)
		note_done(rig, entry[i].op_context, 0, entry[i].len);
	if (cnt == -FI_EAVAIL && fi_cq_readerr(rig->cq, &err, 0) == 1) {
		fi_cq_strerror(rig->cq, err.prov_errno, err.err_data, rig->text, sizeof(rig->text));
		note_done(rig, err.op_context, err.err, err.len);
	}
}

static void post(struct rig *rig, struct rig_buf *buf)
{
	OK(fi_recv(rig->raw, buf->bytes, RIG_BUF_LEN, NULL, 0, buf));
}

static void drive_events(struct rig *rig)
{
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[512];
	} entry;
	struct fi_eq_err_entry err = { 0 };
	uint32_t event;
	ssize_t ret = fi_eq_read(rig->raw_eq, &event, &entry, sizeof(entry), 0);

	if (ret == -FI_EAVAIL) {
		fi_eq_readerr(rig->raw_eq, &err, 0);
		if (err.fid == &rig->raw->fid) {
			rig->down = true;
		} else if (err.err_data_size >= sizeof(rig->refusal)) {
			memcpy(&rig->refusal, err.err_data, sizeof(rig->refusal));
			rig->refusals++;
		}
	} else if (ret > 0 && entry.cm.fid == &rig->raw->fid) {
		rig->up |= event == FI_CONNECTED;
		rig->down |= event == FI_SHUTDOWN;
		if (event == FI_CONNECTED && (size_t) ret >= sizeof(entry.cm) + sizeof(rig->answer))
			memcpy(&rig->answer, entry.cm.data, sizeof(rig->answer));
	}
}

/* Only receives have a context. */
static void drive_raw(struct rig *rig)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	while ((ret = fi_cq_read(rig->raw_cq, &entry, 1)) == 1) {
		struct rig_buf *buf = entry.op_context;

		rig->sent_cnt += !buf;
		if (!buf)
			continue;
		buf->len = entry.len;
		rig->arrived[rig->arrived_cnt++ % RIG_BUFS] = buf;
	}
	if (ret == -FI_EAVAIL)
		fi_cq_readerr(rig->raw_cq, &err, 0);
	drive_events(rig);
}

void rig_drive(struct rig *rig)
{
	drive_ep(rig);
	drive_raw(rig);
}

bool rig_has_result(const struct rig *rig, const void *context)
{
	for (unsigned i = 0; i < rig->done_cnt; i++) {
		if (rig->done[i].context == context)
			return true;
	}
	return false;
}

int rig_result(struct rig *rig, const void *context)
{
	rig_until(rig, rig_has_result(rig, context));
	for (unsigned i = 0; i < rig->done_cnt; i++) {
		if (rig->done[i].context == context)
			return rig->done[i].err;
	}
	return -1;
}

void rig_text(const struct rig *rig, uint16_t port, const char *said)
{
	char addr[64];

	snprintf(addr, sizeof(addr), "fi_sockaddr_in://127.0.0.1:%u: ", port);
	if (strncmp(rig->text, addr, strlen(addr)) || !strstr(rig->text, said))
		fail_msg("the text '%s' does not begin with '%s', or does not say '%s'", rig->text, addr, said);
}

/* ---- packets ---- */

void rig_post(struct rig *rig)
{
	for (unsigned i = 0; i < RIG_BUFS; i++)
		post(rig, &rig->bufs[i]);
}

const struct rxm_pkt *rig_packet(struct rig *rig)
{
	for (;;) {
		struct rig_buf *buf;

		rig_until(rig, rig->taken != rig->arrived_cnt || rig->down);
		if (rig->taken == rig->arrived_cnt)
			fail_msg("the connection has ended in place of a packet");
		buf = rig->arrived[rig->taken++ % RIG_BUFS];
		/* one behind: the one returned before is not needed any more */
		if (rig->taken > 1 && !rig->down)
			post(rig, rig->arrived[(rig->taken - 2) % RIG_BUFS]);
		if (((struct rxm_pkt *) buf->bytes)->ctrl.type != RXM_CREDIT)
			return (struct rxm_pkt *) buf->bytes;
	}
}

struct rxm_pkt *rig_make(struct rig *rig, enum rxm_type type, enum rxm_op op, size_t len)
{
	struct rxm_pkt *pkt = calloc(1, sizeof(*pkt) + len);

	(void) rig;
	assert_non_null(pkt);
	pkt->ctrl.version = RXM_CTRL_VERSION;
	pkt->ctrl.type = type;
	pkt->op.version = RXM_OP_VERSION;
	pkt->op.op = op;
	return pkt;
}

int rig_try_send(struct rig *rig, struct rxm_pkt *pkt, size_t len)
{
	ssize_t ret = fi_send(rig->raw, pkt, sizeof(*pkt) + len, NULL, 0, NULL);

	if (ret == -FI_EAGAIN)
		return (int) ret;
	OK((int) ret);
	rig->mem = realloc(rig->mem, (rig->mem_cnt + 1) * sizeof(*rig->mem));
	assert_non_null(rig->mem);
	rig->mem[rig->mem_cnt++] = pkt;
	return 0;
}

void rig_send(struct rig *rig, struct rxm_pkt *pkt, size_t len)
{
	rig_until(rig, !rig_try_send(rig, pkt, len));
}

/* ---- life ---- */

struct fi_info *rig_find(const char *prov, enum fi_ep_type type)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	assert_non_null(hints);
	hints->caps = FI_MSG | FI_RMA | (type == FI_EP_RDM ? FI_TAGGED | FI_ATOMIC : 0);
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = type;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup(prov);
	OK(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE | FI_NUMERICHOST, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static void take_port(struct rig *rig)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);

	rig->name_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	OK(bind(rig->name_fd, (struct sockaddr *) &addr, len));
	OK(getsockname(rig->name_fd, (struct sockaddr *) &addr, &len));
	rig->port = ntohs(addr.sin_port);
	assert_int_equal(fi_av_insert(rig->av, &addr, 1, &rig->peer, 0, NULL), 1);
}

static void open_ep(struct rig *rig)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { 0 };

	rig->info = rig_find("tcp;ofi_rxm", FI_EP_RDM);
	OK(fi_fabric(rig->info->fabric_attr, &rig->fabric, NULL));
	OK(fi_domain(rig->fabric, rig->info, &rig->domain, NULL));
	OK(fi_av_open(rig->domain, &av_attr, &rig->av, NULL));
	OK(fi_cq_open(rig->domain, &cq_attr, &rig->cq, NULL));
	OK(fi_endpoint(rig->domain, rig->info, &rig->ep, NULL));
	OK(fi_ep_bind(rig->ep, &rig->av->fid, 0));
	OK(fi_ep_bind(rig->ep, &rig->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(rig->ep));
}

struct fid_ep *rig_raw(struct rig *rig)
{
	struct fid_ep *raw;

	OK(fi_endpoint(rig->raw_domain, rig->raw_info, &raw, NULL));
	OK(fi_ep_bind(raw, &rig->raw_eq->fid, 0));
	OK(fi_ep_bind(raw, &rig->raw_cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(raw));
	return raw;
}

static void open_raw(struct rig *rig)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_eq_attr eq_attr = { 0 };

	rig->raw_info = rig_find("tcp", FI_EP_MSG);
	OK(fi_fabric(rig->raw_info->fabric_attr, &rig->raw_fabric, NULL));
	OK(fi_domain(rig->raw_fabric, rig->raw_info, &rig->raw_domain, NULL));
	OK(fi_eq_open(rig->raw_fabric, &eq_attr, &rig->raw_eq, NULL));
	OK(fi_cq_open(rig->raw_domain, &cq_attr, &rig->raw_cq, NULL));
	rig->raw = rig_raw(rig);
}

void rig_request(struct rig *rig, struct fid_ep *raw, uint8_t slot, uint32_t rx_size)
{
	const struct rxm_cm_req req = {
		.version = RXM_CM_VERSION, .endian = RXM_ENDIAN, .ctrl_version = RXM_CTRL_VERSION,
		.op_version = RXM_CM_OP_VERSION, .port = rig->port, .flow_ctrl = 2, .slot = slot,
		.eager_limit = 16384, .rx_size = rx_size, .conn_id = 4711,
	};
	struct sockaddr_in addr;
	size_t len = sizeof(addr);

	OK(fi_getname(&rig->ep->fid, &addr, &len));
	OK(fi_connect(raw, &addr, &req, sizeof(req)));
}

void rig_open_as(struct rig *rig, uint8_t slot, uint32_t rx_size, bool with_receives)
{
	memset(rig, 0, sizeof(*rig));
	rig->bufs = calloc(RIG_BUFS, sizeof(*rig->bufs));
	assert_non_null(rig->bufs);
	open_ep(rig);
	open_raw(rig);
	take_port(rig);
	if (with_receives)
		rig_post(rig);
	rig_request(rig, rig->raw, slot, rx_size);
	rig_until(rig, rig->up);
}

void rig_open(struct rig *rig, bool ext, bool with_receives)
{
	rig_open_as(rig, 0, RIG_BUFS | (ext ? RXM_EXT << RXM_EXT_SHIFT : 0), with_receives);
}

void rig_close(struct rig *rig)
{
	OK(fi_close(&rig->raw->fid));
	OK(fi_close(&rig->raw_cq->fid));
	OK(fi_close(&rig->raw_eq->fid));
	OK(fi_close(&rig->raw_domain->fid));
	OK(fi_close(&rig->raw_fabric->fid));
	OK(fi_close(&rig->ep->fid));
	OK(fi_close(&rig->cq->fid));
	OK(fi_close(&rig->av->fid));
	OK(fi_close(&rig->domain->fid));
	OK(fi_close(&rig->fabric->fid));
	fi_freeinfo(rig->raw_info);
	fi_freeinfo(rig->info);
	close(rig->name_fd);
	for (size_t i = 0; i < rig->mem_cnt; i++)
		free(rig->mem[i]);
	free(rig->mem);
	free(rig->bufs);
}
