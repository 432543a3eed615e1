/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An endpoint of tcp;ofi_rxm, and as its peer a connected endpoint of tcp by which a test says what it likes. One
 * thread drives both. Every wait ends, with a failure after RIG_PATIENCE_MS.
 */
#ifndef TEST_RXM_RIG_H
#define TEST_RXM_RIG_H

#include "base/unit.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include "rxm/wire.h"

#define RIG_PATIENCE_MS	60000
#define RIG_BUFS	64
#define RIG_BUF_LEN	(sizeof(struct rxm_pkt) + 16384)
#define RIG_EVENTS	4096

#define OK(call)	assert_int_equal(call, 0)

struct rig_event {
	void *context;
	int err;			/* 0, or the positive FI_E* that it ended with */
	size_t len;
};

struct rig_buf {
	_Alignas(16) uint8_t bytes[RIG_BUF_LEN];
	size_t len;			/* of what has arrived */
};

struct rig {
	/* ---- the endpoint ---- */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;			/* as its address vector has it */
	struct rig_event done[RIG_EVENTS];	/* what has completed, in order */
	unsigned done_cnt;
	char text[512];			/* of the last of them that was an error */
	/* ---- its peer ---- */
	struct fi_info *raw_info;
	struct fid_fabric *raw_fabric;
	struct fid_domain *raw_domain;
	struct fid_eq *raw_eq;
	struct fid_cq *raw_cq;
	struct fid_ep *raw;
	int name_fd;			/* a bound socket that does not listen: keeps the port it says it listens at */
	uint16_t port;
	bool up, down;			/* it has been connected; its connection has ended */
	struct rxm_cm_rsp answer;	/* to its request */
	int refusals;			/* requests of other endpoints of the peer (rig_raw) that were refused ... */
	struct rxm_cm_rej refusal;	/* ... and the last answer to one */
	struct rig_buf *bufs;
	struct rig_buf *arrived[RIG_BUFS];	/* in order, from `taken` to `arrived_cnt`, which wrap */
	unsigned taken, arrived_cnt;
	void **mem;			/* what is on its way */
	size_t mem_cnt;
	unsigned sent_cnt;		/* of it, what has left */
};

/* The two, connected; the peer knows our additions or not, and has receives or not (rig_post). */
void rig_open(struct rig *rig, bool ext, bool post);
/* The same; the peer's request has these values. */
void rig_open_as(struct rig *rig, uint8_t slot, uint32_t rx_size, bool post);
/* Everything closes. */
void rig_close(struct rig *rig);

/* A further endpoint of the peer, which the caller closes before the rig. */
struct fid_ep *rig_raw(struct rig *rig);
/* Let an endpoint of the peer request a connection with the rig's. */
void rig_request(struct rig *rig, struct fid_ep *raw, uint8_t slot, uint32_t rx_size);

/* One pass over everything. */
void rig_drive(struct rig *rig);
/* Milliseconds of a clock that does not jump. */
uint64_t rig_now_ms(void);

/* What fi_getinfo() has first for endpoints of this type on 127.0.0.1; the caller frees it. */
struct fi_info *rig_find(const char *prov, enum fi_ep_type type);

/* Go on until something is so, by this statement; or by passes over a rig. */
#define rig_wait(cond, pass)							\
	do {									\
		uint64_t end_ = rig_now_ms() + RIG_PATIENCE_MS;			\
		while (!(cond)) {						\
			pass;							\
			if (rig_now_ms() > end_)				\
				fail_msg("in vain waited for %s", #cond);	\
		}								\
	} while (0)
#define rig_until(rig, cond)	rig_wait(cond, rig_drive(rig))

/* The first completion with this context, which there will be; its error or 0. */
int rig_result(struct rig *rig, const void *context);
/* The last error's text names the peer at this port, and says this. */
void rig_text(const struct rig *rig, uint16_t port, const char *said);
/* Is there one yet? */
bool rig_has_result(const struct rig *rig, const void *context);

/* Let the peer receive. */
void rig_post(struct rig *rig);
/* The next packet that the peer gets, but for those that only give credit; valid until the next but RIG_BUFS. */
const struct rxm_pkt *rig_packet(struct rig *rig);
/* A packet with room for len bytes behind its headers, of this type; rig_send() takes it over. */
struct rxm_pkt *rig_make(struct rig *rig, enum rxm_type type, enum rxm_op op, size_t len);
/* 0, or -FI_EAGAIN: the peer's queue is full, and the packet still the caller's. */
int rig_try_send(struct rig *rig, struct rxm_pkt *pkt, size_t len);
void rig_send(struct rig *rig, struct rxm_pkt *pkt, size_t len);

#endif
