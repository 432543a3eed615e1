/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every byte that tcp puts on a stream.
 *
 * The first part is what upstream libfabric's tcp provider speaks, version 3, so that either end may be upstream.
 * The second is ours, used only when both ends announced it in fields of the handshake that upstream leaves at zero
 * and never reads.
 *
 * A stream begins with one CM message each way (connecting side first), then carries data frames both ways until it
 * is shut down. CM fields are big-endian. Data frames are in their sender's byte order; conn_data in the CM header
 * shows which that is, and a receiver of the other order swaps every field (stream/rx.c: one place).
 */
#ifndef TCP_WIRE_H
#define TCP_WIRE_H

#include <stdint.h>

/* ---- handshake ---- */

#define TCP_CM_VERSION		3
#define TCP_CM_DATA_MAX		256	/* bytes of private data behind a CM header */

enum {
	TCP_CM_CONNREQ = 0,
	TCP_CM_CONNRESP = 1,
	TCP_CM_NACK = 6,		/* refused; its data is the reject data */

	/* ours, between CONNREQ and CONNRESP, where the request has TCP_EXT_AUTH; always in this order. ext,
	 * incarnation and what follows is 0 */
	TCP_CM_CHALLENGE = 32,		/* accepting side; struct tcp_challenge */
	TCP_CM_PROOF = 33,		/* connecting side; struct tcp_proof */
	TCP_CM_ADMIT = 34,		/* accepting side; struct tcp_admit */
};

struct tcp_cm_hdr {
	uint8_t version;
	uint8_t type;
	uint16_t seg_size;		/* bytes of data that follow, 0..TCP_CM_DATA_MAX */
	uint32_t ext;			/* ours: TCP_EXT_MAGIC | features; upstream: zero, ignored */
	uint64_t incarnation;		/* ours: random, one an endpoint's life */
	/* ours: largest message sent without asking, bytes of payload. In a NACK with TCP_EXT_AUTH: TCP_REFUSE_*,
	 * whether it is about keys or not */
	uint32_t eager_max;
	/* ours: bytes of unexpected messages kept for this peer (TCP_CREDIT_OVERHEAD each and payload) */
	uint32_t credit;
	uint64_t conn_data;		/* 1 in native order; anything in a NACK */
};

#define TCP_CM_CONN_DATA	1ULL

#define TCP_RDM_FIREWALL 1		/* nobody can connect to the caller */

/* Private data of RDM endpoints: who is calling. Anything longer is ignored by upstream. */
struct tcp_rdm_cm {
	uint8_t version;		/* 0: we do not use upstream's rendezvous */
	uint8_t features;		/* TCP_RDM_FIREWALL, and bits that are ignored */
	/* that the caller listens on; with getpeername()'s address it is its identity */
	uint16_t port;
	uint32_t pid;
};

/* Follows it where the caller is to be known by another address than it comes from (FI_TCP_ADVERTISE). */
struct tcp_rdm_name {
	uint16_t family;		/* 4, 6 */
	uint16_t port;
	uint8_t addr[16];		/* of IPv4 the first 4 */
};

/*
 * Contexts of scalable endpoints. With TCP_EXT_CTX a request asks for a connection from one transmit context to one
 * receive context: messages, remote accesses and the like go from the connecting side to the accepting side only, and
 * there is one for each pair of contexts. This ends its private data, whatever is before it. The answer has TCP_EXT_CTX
 * too, and no more data for it; where it has not, the peer knows no contexts, and there is no connection. A request
 * without it is for receive context 0.
 */
#define TCP_CTX_MAX		256	/* contexts of one kind an endpoint */
#define TCP_CTX_NONE		0xffffu

struct tcp_rdm_ctx {
	uint16_t rx_ctx;		/* wanted, 0..TCP_CTX_MAX - 1; an endpoint that is not scalable has 0 alone */
	uint16_t tx_ctx;		/* of the caller, likewise; TCP_CTX_NONE if it is not scalable */
	uint32_t pad;			/* 0 */
};

/*
 * Authorization keys. mac is HMAC-SHA256 by the key over, in this order and without gaps: 16 bytes of the role, "weft1
 * connect" in a proof, "weft1 accept" in an admission, padded with zeros; the request, header and private data as they
 * were sent; the challenge likewise; the nonce of the proof; and, unless FI_TCP_AUTH_ADDRESS is off, the addresses
 * of the connecting and the accepting side as either sees them: host in 16 bytes (IPv4 in the first 4, zeros
 * behind), port in 2.
 */
#define TCP_NONCE_LEN		32
#define TCP_MAC_LEN		32

struct tcp_challenge {
	uint8_t nonce[TCP_NONCE_LEN];	/* random, new each time; likewise below */
};

struct tcp_proof {
	uint8_t nonce[TCP_NONCE_LEN];
	uint8_t mac[TCP_MAC_LEN];
};

struct tcp_admit {
	uint8_t mac[TCP_MAC_LEN];
};

enum {
	TCP_REFUSE_KEY_WANTED = 1,	/* the accepting side has a key, the request does not announce one */
	TCP_REFUSE_NO_KEY = 2,		/* the request announces one, the accepting side has none */
	TCP_REFUSE_WRONG_KEY = 3,	/* the proof is wrong */
	TCP_REFUSE_NO_CTX = 4,		/* there is no such receive context, and will be none */
	TCP_REFUSE_NO_EXT = 5,		/* a scalable endpoint, and the request does not announce this extension */
};

/* ---- data frames of upstream ---- */

#define TCP_WIRE_VERSION	3

enum tcp_wire_op {
	/* [cq_data] payload; with op_data TCP_OP_DATA_ACK: acknowledgement, header only */
	TCP_WIRE_MSG = 0,
	TCP_WIRE_TAG = 1,		/* [cq_data] tag, payload */
	TCP_WIRE_READ_REQ = 2,		/* rma_iov[rma_iov_cnt] */
	TCP_WIRE_READ_RSP = 3,		/* payload, in order of requests */
	TCP_WIRE_WRITE = 4,		/* [cq_data] rma_iov[rma_iov_cnt], payload */
	TCP_WIRE_TAG_RTS = 5,		/* upstream's rendezvous: we never negotiate it */
	TCP_WIRE_CTS = 6,
	TCP_WIRE_DATA = 7,

	/* ours, only where announced */
	TCP_WIRE_ACK = 32,		/* struct tcp_ack */
	TCP_WIRE_CREDIT = 33,		/* struct tcp_credit */
	TCP_WIRE_XRTS = 34,		/* [cq_data] struct tcp_rts: a message's announcement; its place in the order */
	TCP_WIRE_XCTS = 35,		/* struct tcp_cts */
	TCP_WIRE_XDATA = 36,		/* struct tcp_xdata, payload */
	TCP_WIRE_READ_ERR = 37,		/* struct tcp_read_err, in place of a READ_RSP */
	TCP_WIRE_XCANCEL = 38,		/* struct tcp_xcancel: forget the announcement, if no receive has taken it */
	/* TCP_EXT_AMO; op_data is enum tcp_amo_kind: rma_iov[rma_iov_cnt], struct tcp_amo, operands. Those that fetch
	 * are answered; the others ask for an acknowledgement, as writes do. */
	TCP_WIRE_AMO_REQ = 39,
	/* struct tcp_amo_rsp, result; in the order of requests, among READ_RSP and READ_ERR */
	TCP_WIRE_AMO_RSP = 40,
	TCP_WIRE_COLL = 41,		/* TCP_EXT_COLL; struct tcp_coll, payload: within a collective, see op_data */
	/* TCP_EXT_PARK; header only. park.c tells who may say what when */
	TCP_WIRE_PARK = 48,		/* I am idle and could do without this connection: you too? */
	TCP_WIRE_PARK_YES = 49,		/* yes: close it, unless you have sent something since */
	TCP_WIRE_PARK_NO = 50,		/* no */
	TCP_WIRE_PARK_STAY = 51,	/* after a yes, in place of anything else to send: let it be */
	TCP_WIRE_OP_END
};

#define TCP_OP_DATA_ACK		2	/* op_data of an upstream acknowledgement */

#define TCP_FLAG_CQ_DATA	1	/* cq_data follows the base header */
#define TCP_FLAG_DELIVERY	4	/* acknowledge once delivered */
#define TCP_FLAG_COMMIT		8	/* of writes and atomics: acknowledge or answer once it is durable */
#define TCP_FLAG_TAGGED		16	/* ours, TCP_EXT_TAMO: an atomic on the buffer of a tagged receive */
#define TCP_FLAG_GROUP		32	/* ours, TCP_EXT_GROUP, of MSG, TAG, XRTS: a struct tcp_group ends the header */
/* Upstream's, of TCP_WIRE_MSG: a tag follows, of a layer above (Debian's tcp;ofi_rxm), and says nothing about which
 * receive. */
#define TCP_FLAG_LAYER_TAG	128
/* those that say of a header that it is longer */
#define TCP_FLAGS_LONGER	(TCP_FLAG_CQ_DATA | TCP_FLAG_GROUP | TCP_FLAG_LAYER_TAG)
#define TCP_FLAG_WANT_ACK	(TCP_FLAG_DELIVERY | TCP_FLAG_COMMIT)

#define TCP_RMA_IOV_BASE	4	/* upstream takes no more */
#define TCP_RMA_IOV_MAX		8	/* of those with TCP_EXT_RIOV */

struct tcp_hdr {
	uint8_t version;
	uint8_t op;			/* enum tcp_wire_op */
	uint16_t flags;
	uint8_t op_data;
	uint8_t rma_iov_cnt;
	uint8_t hdr_size;		/* bytes before the payload, this header included */
	/* counts frames of this direction, wraps; debug builds of upstream insist on it */
	uint8_t id;
	uint64_t size;			/* hdr_size + payload */
};

struct tcp_rma_iov {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
};

/* base header, rma_iov, and cq_data or struct tcp_amo */
#define TCP_HDR_MAX		(16 + 8 + TCP_RMA_IOV_MAX * 24)

/* ---- ours ---- */

#define TCP_EXT_MAGIC		0x57660000u	/* in tcp_cm_hdr.ext; the low 16 bits are features */
#define TCP_EXT_MAGIC_MASK	0xffff0000u
#define TCP_EXT_BASE		0x0001u		/* frames 32 to 38, acknowledged writes, credits */
/* frames 39 and 40; never between machines of different byte order, since elements are in that of their machine */
#define TCP_EXT_AMO		0x0002u
#define TCP_EXT_AUTH		0x0004u		/* CONNREQ: I have a key, challenge me. NACK: TCP_REFUSE_* */
#define TCP_EXT_CTX		0x0008u		/* CONNREQ: struct tcp_rdm_ctx; CONNRESP: taken note of */
#define TCP_EXT_COLL		0x0010u		/* frame 41, and announcements of its messages; with FI_COLLECTIVE */
#define TCP_EXT_PARK		0x0020u		/* frames 48 to 51 */
/* The connection takes the place of one that was parked, whose credits go on: said by both, or it does not. */
#define TCP_EXT_RESUME		0x0040u

/* Atomics may have TCP_FLAG_TAGGED: then each rma_iov has an offset for its address, a tag for its key. */
#define TCP_EXT_TAMO		0x0080u

/* Messages may be of a peer group: this end has receives in groups, too. */
#define TCP_EXT_GROUP		0x0100u

/* TCP_FLAG_COMMIT is meant: without this an end takes it for, and gives it as, TCP_FLAG_DELIVERY. */
#define TCP_EXT_COMMIT		0x0200u

/* Frames may have up to TCP_RMA_IOV_MAX rma_iov. */
#define TCP_EXT_RIOV		0x0400u

#define TCP_CREDIT_OVERHEAD	64		/* what an eager message costs beside its payload */

struct tcp_group {
	uint64_t id;			/* 1..TCP_GROUP_MAX; a message without one is in none */
};

#define TCP_GROUP_MAX		0xffffffu	/* leaves fi_rx_addr() 8 bits of an address for receive contexts */

/* The next `cnt` frames of yours that asked for it have been delivered; if `err` is not 0 the one after those failed
 * with that FI_E*. */
struct tcp_ack {
	uint32_t cnt;
	uint32_t err;
};

struct tcp_credit {
	uint64_t len;			/* bytes that you may send again */
};

struct tcp_rts {
	uint64_t tag;			/* 0 if untagged; op_data is 0 (untagged), 1 (tagged), 2 (in a collective) */
	uint64_t len;			/* of the message */
	uint32_t id;			/* the sender's */
	uint32_t pad;
};

/* op_data of TCP_WIRE_COLL */
#define TCP_COLL_MSG		0	/* a message: matched by its sender and tag with the receives of collectives */
#define TCP_COLL_ABORT		1	/* no payload: the group of the tag has failed; its bits 8 to 23 are an FI_E* */

/*
 * Bits of the tag (prov/common/collective/collective.h):
 *   24..63  group, as agreed when it was joined; while joining, a hash of its members' addresses in their order
 *    8..23  number of the operation in the group, wraps
 *    0..7   round within the operation
 */
struct tcp_coll {
	uint64_t tag;
};

#define TCP_RX_ID_NONE		UINT32_MAX

struct tcp_cts {
	uint32_t id;			/* of the RTS */
	uint32_t rx_id;			/* to put into the data frame; TCP_RX_ID_NONE with len 0: forgotten as asked */
	/* send this much from the start: less than announced if the receive is shorter, 0 if nothing is wanted */
	uint64_t len;
};

struct tcp_xcancel {
	uint32_t id;			/* of the RTS */
	uint32_t pad;
};

struct tcp_xdata {
	uint32_t rx_id;
	uint32_t pad;
};

struct tcp_read_err {
	uint32_t err;			/* positive FI_E* */
	uint32_t pad;
};

enum tcp_amo_kind {
	TCP_AMO_BASE = 0,		/* no answer */
	TCP_AMO_FETCH = 1,		/* answered with what was there before */
	TCP_AMO_COMPARE = 2,		/* likewise */
};

/*
 * An atomic on the n elements that rma_iov describes: their `len` are bytes, each a multiple of the element's. Behind
 * it n elements to compute with, none if op is FI_ATOMIC_READ; behind them, of TCP_AMO_COMPARE, n to compare with.
 */
struct tcp_amo {
	uint32_t op;			/* enum fi_op */
	uint32_t datatype;		/* enum fi_datatype */
};

#define TCP_AMO_MAX		16384	/* bytes of all elements in a request, and in a result */
/* Results that a peer may have requested and not received: bytes, TCP_AMO_OVERHEAD added to each. */
#define TCP_AMO_WINDOW		(256 * 1024)
#define TCP_AMO_OVERHEAD	64

/* The result of a request, of n elements; or why there is none: then nothing follows, and nothing was changed. */
struct tcp_amo_rsp {
	uint32_t err;			/* positive FI_E*, or 0 */
	uint32_t pad;
};

#endif
