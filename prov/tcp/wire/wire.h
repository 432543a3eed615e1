/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The format of everything that tcp sends on a stream.
 *
 * The first part is version 3 of the protocol of upstream libfabric's tcp provider, so that either end may be upstream.
 * The second part is our extension. It is used only if both ends announce it, in fields of the handshake that upstream
 * sets to zero and never reads.
 *
 * A stream begins with one CM message in each direction (the connecting side first), and continues with data frames in
 * both directions until it is shut down. CM fields are big-endian. Data frames are in the sender's byte order, which
 * conn_data in the CM header shows; a receiver with the other order swaps every field (in one place, stream/rx.c).
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

	/* ours, between CONNREQ and CONNRESP if the request has TCP_EXT_AUTH; always in this order. ext, incarnation
	 * and the fields after it are 0 */
	TCP_CM_CHALLENGE = 32,		/* accepting side; struct tcp_challenge */
	TCP_CM_PROOF = 33,		/* connecting side; struct tcp_proof */
	TCP_CM_ADMIT = 34,		/* accepting side; struct tcp_admit */
};

struct tcp_cm_hdr {
	uint8_t version;
	uint8_t type;
	uint16_t seg_size;		/* bytes of data that follow, 0..TCP_CM_DATA_MAX */
	uint32_t ext;			/* ours: TCP_EXT_MAGIC | features; upstream: zero, ignored */
	uint64_t incarnation;		/* ours: random, constant during the life of an endpoint */
	/* ours: largest message sent without announcement, bytes of payload. In a NACK with TCP_EXT_AUTH: TCP_REFUSE_*,
	 * for any reason */
	uint32_t eager_max;
	/* ours: bytes of unexpected messages kept for this peer (payload, and TCP_CREDIT_OVERHEAD for each) */
	uint32_t credit;
	uint64_t conn_data;		/* 1 in native order; anything in a NACK */
};

#define TCP_CM_CONN_DATA	1ULL

#define TCP_RDM_FIREWALL 1		/* peers cannot connect to the sender */
/* In the answer to a question (TCP_EXT_WHO): the sender is connecting to who asks; or, where it knows no endpoint at
 * that address, to anybody. */
#define TCP_RDM_CONNECTS 2

/* Private data of RDM endpoints: identifies the sender. Upstream ignores bytes after it. */
struct tcp_rdm_cm {
	uint8_t version;		/* 0: we do not use upstream's rendezvous */
	uint8_t features;		/* TCP_RDM_*, and bits that are ignored */
	/* the sender's listening port; with getpeername()'s address it is the sender's identity */
	uint16_t port;
	uint32_t pid;
};

/* Follows it if the sender's identity is another address than the one it connects from (FI_TCP_ADVERTISE). */
struct tcp_rdm_name {
	uint16_t family;		/* 4, 6 */
	uint16_t port;
	uint8_t addr[16];		/* IPv4: the first 4 bytes */
};

/*
 * Contexts of scalable endpoints. With TCP_EXT_CTX a request asks for a connection from one transmit context to one
 * receive context. Messages, remote accesses and atomics go from the connecting to the accepting side only, and each
 * pair of contexts has one connection. This struct ends the private data of the request. The answer has TCP_EXT_CTX,
 * too, and no data for it; an answer without it comes from a peer that does not support contexts, and there is no
 * connection. A request without TCP_EXT_CTX is for receive context 0.
 */
#define TCP_CTX_MAX		256	/* contexts of one kind in an endpoint */
#define TCP_CTX_NONE		0xffffu

struct tcp_rdm_ctx {
	uint16_t rx_ctx;		/* the receive context, 0..TCP_CTX_MAX - 1; 0 for an endpoint that is not
					 * scalable */
	uint16_t tx_ctx;		/* the sender's transmit context, likewise; TCP_CTX_NONE if it is not
					 * scalable */
	uint32_t pad;			/* 0 */
};

/*
 * Authorization keys. mac is HMAC-SHA256 with the key over the following, in this order and without gaps: 16 bytes for
 * the role, "weft1 connect" in a proof and "weft1 accept" in an admission, padded with zeros; the request, header and
 * private data, as sent; the challenge, as sent; the nonce of the proof; and, unless FI_TCP_AUTH_ADDRESS is off, the
 * addresses of the connecting and the accepting side as each side sees them: the host in 16 bytes (IPv4 in the first 4,
 * then zeros), the port in 2.
 */
#define TCP_NONCE_LEN		32
#define TCP_MAC_LEN		32

struct tcp_challenge {
	uint8_t nonce[TCP_NONCE_LEN];	/* random, new for each message; the same below */
};

struct tcp_proof {
	uint8_t nonce[TCP_NONCE_LEN];
	uint8_t mac[TCP_MAC_LEN];
};

struct tcp_admit {
	uint8_t mac[TCP_MAC_LEN];
};

enum {
	TCP_REFUSE_KEY_WANTED = 1,	/* the accepting side has a key, and the request announces none */
	TCP_REFUSE_NO_KEY = 2,		/* the request announces a key, and the accepting side has none */
	TCP_REFUSE_WRONG_KEY = 3,	/* the proof is wrong */
	TCP_REFUSE_NO_CTX = 4,		/* no such receive context, now or later */
	TCP_REFUSE_NO_EXT = 5,		/* the endpoint is scalable, and the request does not announce this extension */
	TCP_REFUSE_RDM_HERE = 6,	/* an RDM endpoint listens, and the request is not one of an RDM endpoint */
	TCP_REFUSE_MSG_HERE = 7,	/* a passive endpoint listens, and the request is one of an RDM endpoint */
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

	/* ours, only if announced */
	TCP_WIRE_ACK = 32,		/* struct tcp_ack */
	TCP_WIRE_CREDIT = 33,		/* struct tcp_credit */
	TCP_WIRE_XRTS = 34,		/* [cq_data] struct tcp_rts: announces a message, at the message's place in the
					 * order */
	TCP_WIRE_XCTS = 35,		/* struct tcp_cts */
	TCP_WIRE_XDATA = 36,		/* struct tcp_xdata, payload */
	TCP_WIRE_READ_ERR = 37,		/* struct tcp_read_err, in place of a READ_RSP */
	TCP_WIRE_XCANCEL = 38,		/* struct tcp_xcancel: forget the announcement, if no receive has taken it */
	/* TCP_EXT_AMO; op_data is enum tcp_amo_kind: rma_iov[rma_iov_cnt], struct tcp_amo, operands. Fetching atomics
	 * are answered; others may ask for an acknowledgement, like writes. */
	TCP_WIRE_AMO_REQ = 39,
	/* struct tcp_amo_rsp, result; in the order of the requests, together with READ_RSP and READ_ERR */
	TCP_WIRE_AMO_RSP = 40,
	TCP_WIRE_COLL = 41,		/* TCP_EXT_COLL; struct tcp_coll, payload: a message of a collective, see
					 * op_data */
	TCP_WIRE_REFUSED = 42,		/* TCP_EXT_NAK; struct tcp_refused; op_data is the type of the refused frame */
	TCP_WIRE_DIRECT = 43,		/* TCP_EXT_DIRECT; struct tcp_direct_ask: may frames be direct? Once a stream
					 * and direction */
	TCP_WIRE_DIRECT_ANSWER = 44,	/* struct tcp_direct_answer */
	TCP_WIRE_XDATA_WIDE = 45,	/* struct tcp_xdata_wide, payload: an XDATA, if its XCTS has TCP_CTS_WIDE */
	/* TCP_EXT_PARK; header only. peer/park.c describes the exchange */
	TCP_WIRE_PARK = 48,		/* the connection is idle here: ask the peer to end it */
	TCP_WIRE_PARK_YES = 49,		/* agree: end it, unless the asking side has sent something since */
	TCP_WIRE_PARK_NO = 50,		/* refuse */
	TCP_WIRE_PARK_STAY = 51,	/* after PARK_YES, before anything else is sent: keep the connection */
	TCP_WIRE_OP_END
};

#define TCP_OP_DATA_ACK		2	/* op_data of an upstream acknowledgement */

#define TCP_FLAG_CQ_DATA	1	/* cq_data follows the base header */
#define TCP_FLAG_DELIVERY	4	/* acknowledge once delivered */
#define TCP_FLAG_COMMIT		8	/* writes and atomics: acknowledge or answer when the data is durable */
#define TCP_FLAG_TAGGED		16	/* ours, TCP_EXT_TAMO: an atomic on the buffer of a tagged receive */
#define TCP_FLAG_GROUP		32	/* ours, TCP_EXT_GROUP, in MSG, TAG, XRTS: a struct tcp_group ends the header */
/* Upstream's, in TCP_WIRE_MSG: a tag of a layer above follows (Debian's tcp;ofi_rxm). It is not used for matching. */
#define TCP_FLAG_LAYER_TAG	128
/* TCP_EXT_DIRECT: the number of pieces, 1..TCP_PIECES_MAX, of a direct frame; 0 in others. */
#define TCP_FLAGS_PIECES	0xf000
#define TCP_PIECES(cnt)		((cnt) << 12)
#define TCP_PIECE_CNT(flags)	((flags) >> 12)
/* flags that make the header longer, or are followed by something else */
#define TCP_FLAGS_LONGER	(TCP_FLAG_CQ_DATA | TCP_FLAG_GROUP | TCP_FLAG_LAYER_TAG | TCP_FLAGS_PIECES)
#define TCP_FLAG_WANT_ACK	(TCP_FLAG_DELIVERY | TCP_FLAG_COMMIT)

#define TCP_RMA_IOV_BASE	4	/* the limit of upstream */
#define TCP_RMA_IOV_MAX		8	/* the limit with TCP_EXT_RIOV */

struct tcp_hdr {
	uint8_t version;
	uint8_t op;			/* enum tcp_wire_op */
	uint16_t flags;
	uint8_t op_data;
	uint8_t rma_iov_cnt;
	uint8_t hdr_size;		/* bytes before the payload, this header included */
	/* counts frames in this direction; wraps; debug builds of upstream check it */
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
/* frames 39 and 40; like TCP_EXT_TAMO and TCP_EXT_COLL never between machines of different byte order, since elements
 * are in the byte order of their machine */
#define TCP_EXT_AMO		0x0002u
#define TCP_EXT_AUTH		0x0004u		/* CONNREQ: the sender has a key and asks for a challenge. NACK:
						 * TCP_REFUSE_* */
#define TCP_EXT_CTX		0x0008u		/* CONNREQ: struct tcp_rdm_ctx; CONNRESP: supported */
#define TCP_EXT_COLL		0x0010u		/* frame 41, and announcements of its messages; set with
						 * FI_COLLECTIVE */
#define TCP_EXT_PARK		0x0020u		/* frames 48 to 51; every RDM endpoint sets it */
/* The connection resumes a parked one, with its credit. Only if both ends set it. */
#define TCP_EXT_RESUME		0x0040u

/* Atomics may have TCP_FLAG_TAGGED: each rma_iov then has an offset as its address and a tag as its key. */
#define TCP_EXT_TAMO		0x0080u

/* Messages may have a peer group: this end has receives in groups, too. */
#define TCP_EXT_GROUP		0x0100u

/* TCP_FLAG_COMMIT is supported. An end without this treats the flag as TCP_FLAG_DELIVERY, and sets it with that
 * meaning. */
#define TCP_EXT_COMMIT		0x0200u

/* Frames may have up to TCP_RMA_IOV_MAX rma_iov. */
#define TCP_EXT_RIOV		0x0400u

/*
 * Writes and atomics of kind TCP_AMO_BASE need not ask for an acknowledgement. Such a frame is called quiet. If it is
 * refused, the answer is a TCP_WIRE_REFUSED, which is sent before the answers to all frames behind the quiet one. An
 * end without this gets no quiet frames from us, as it would end the connection in place of refusing them.
 */
#define TCP_EXT_NAK		0x2000u

/*
 * Frames with a payload may be direct, between processes of one host. The payload of a direct frame is not in the
 * stream: TCP_PIECE_CNT pieces follow the header, which say where the payload lies in the memory of the sender, and the
 * receiver reads it there. hdr_size and size are those of the same frame with its payload. It has one of
 * TCP_FLAG_WANT_ACK, also if it is a READ_RSP, and the acknowledgement gives the memory back. A TCP_WIRE_ACK with an
 * error says that the memory could not be read. A frame is direct only after a DIRECT_ANSWER without an error.
 */
#define TCP_EXT_DIRECT		0x4000u
#define TCP_PIECES_MAX		8

/*
 * In a CONNREQ: a question. Its sender wants no connection; it wants to know whether a request that names this address
 * comes from the endpoint that listens here (peer/ask.c). The private data is a struct tcp_rdm_cm of zeros, but for
 * pid, which is the port at which the sender listens. The answer is a NACK with the incarnation of the endpoint that
 * listens, and, if that tells the truth about TCP_RDM_CONNECTS, with TCP_EXT_WHO. An end that does not know this bit
 * sends a NACK, too, since the request names no port.
 */
#define TCP_EXT_WHO		0x8000u

/* The sender is a MSG endpoint. Those of our builds before December 2026 do not set it. */
#define TCP_EXT_MSG		0x1000u

#define TCP_CREDIT_OVERHEAD	64		/* cost of an eager message in addition to its payload */

/* Messages of at most TCP_SHORT_LEN bytes may exceed the credit, until TCP_SHORT_DEBT is owed: they take no more memory
 * at the receiver than their announcements would, and are as many. */
#define TCP_EXT_SHORT		0x0800u
#define TCP_SHORT_LEN		128
#define TCP_SHORT_DEBT		(65536 * TCP_CREDIT_OVERHEAD)

struct tcp_group {
	uint64_t id;			/* 1..TCP_GROUP_MAX; a message without a struct tcp_group has no group */
};

#define TCP_GROUP_MAX		0xffffffu	/* leaves fi_rx_addr() 8 bits of an address for receive contexts */

/* The next `cnt` frames that asked for it were delivered; if `err` is not 0, the frame after them failed with this
 * FI_E*. */
struct tcp_ack {
	uint32_t cnt;
	uint32_t err;
};

struct tcp_credit {
	uint64_t len;			/* bytes of credit returned */
};

struct tcp_rts {
	uint64_t tag;			/* 0 if untagged; op_data is 0 (untagged), 1 (tagged), 2 (in a collective) */
	uint64_t len;			/* of the message */
	uint32_t id;			/* the sender's */
	uint32_t pad;
};

/* op_data of TCP_WIRE_COLL */
#define TCP_COLL_MSG		0	/* a message: matches receives of collectives by sender and tag */
#define TCP_COLL_ABORT		1	/* no payload: the group of the tag has failed; bits 8 to 23 of the tag are an
					 * FI_E*; 0: the sender has left it, and the tag is that of its join */

/*
 * Bits of the tag (prov/common/collective/collective.h):
 *
 *   24..63  group, as agreed in the join; during the join, a hash of the members' addresses in their order
 *    8..23  number of the operation in the group; wraps
 *    0..7   round within the operation
 */
struct tcp_coll {
	uint64_t tag;
};

#define TCP_RX_ID_NONE		UINT32_MAX

struct tcp_cts {
	uint32_t id;			/* of the RTS */
	uint32_t rx_id;			/* for the data frame; TCP_RX_ID_NONE with len 0: the announcement was
					 * forgotten, as asked */
	/* bytes to send, from the start of the message: fewer than announced if the receive is shorter, 0 if none are
	 * needed */
	uint64_t len;
};

/* op_data of an XCTS: the receiver takes an XDATA_WIDE, too. It is set where at least TCP_RX_BULK_LEN bytes are asked
 * for, and not over a Unix socket or rings. Ends that do not know it send 0, and ignore it. */
#define TCP_CTS_WIDE		1

struct tcp_xcancel {
	uint32_t id;			/* of the RTS */
	uint32_t pad;
};

struct tcp_xdata {
	uint32_t rx_id;
	uint32_t pad;
};

/* Makes a header of TCP_WIDE_LEN bytes (decisions/tcp-wire.md). */
struct tcp_xdata_wide {
	struct tcp_xdata xdata;
	uint64_t zero[5];
};

#define TCP_WIDE_LEN		64

struct tcp_read_err {
	uint32_t err;			/* positive FI_E* */
	uint32_t pad;
};

struct tcp_refused {
	uint64_t number;		/* of the frame among the quiet ones of this stream and direction, from 1 */
	uint32_t err;			/* positive FI_E* */
	uint32_t pad;
	struct tcp_rma_iov target;	/* the first of its targets */
};

/* A piece is a struct iovec of the host: both ends have the same. */
struct tcp_direct_ask {
	uint64_t addr;			/* of the sender's cookie in its memory (tcp/local/direct.h) */
	uint64_t cookie[2];
	uint64_t piece_size;		/* sizeof(struct iovec) */
};

struct tcp_direct_answer {
	uint32_t err;			/* positive FI_E*: this end cannot read the other's memory; 0: it can */
	uint32_t pad;
};

enum tcp_amo_kind {
	TCP_AMO_BASE = 0,		/* no answer */
	TCP_AMO_FETCH = 1,		/* the answer has the previous values */
	TCP_AMO_COMPARE = 2,		/* likewise */
};

/*
 * An atomic on the n elements described by rma_iov, whose `len` are bytes, each a multiple of the element's size. It is
 * followed by n operand elements, none for FI_ATOMIC_READ, and for TCP_AMO_COMPARE by n elements to compare with.
 */
struct tcp_amo {
	uint32_t op;			/* enum fi_op */
	uint32_t datatype;		/* enum fi_datatype */
};

#define TCP_AMO_MAX		16384	/* most bytes of all elements in a request, and in a result */
/* Most bytes of results that a peer may have requested and not received, with TCP_AMO_OVERHEAD for each. */
#define TCP_AMO_WINDOW		(256 * 1024)
#define TCP_AMO_OVERHEAD	64

/* The result of a request, of n elements. If err is not 0, there is no result, and nothing was changed. */
struct tcp_amo_rsp {
	uint32_t err;			/* positive FI_E*, or 0 */
	uint32_t pad;
};

#endif
