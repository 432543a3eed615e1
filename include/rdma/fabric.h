/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The core of the libfabric API, version 2.6: discovery (fi_getinfo), the attributes that a program and a provider
 * agree on, and the struct with which every object begins (struct fid). Each other header of this folder adds one kind
 * of object or transfer. Semantics: fi_getinfo(3), fi_fabric(3), fi_domain(3), fi_endpoint(3), fi_nic(3),
 * fi_control(3), fi_provider(3).
 *
 * Rules for all calls, here and in the other headers, unless a comment says otherwise:
 *
 *   - A call returns 0 or a count on success, and a negative error of fi_errno.h on failure; output arguments are then
 *     unchanged. -FI_EAGAIN: nothing was done; drive progress (read the queue or counter) and call again.
 *     -FI_ENOSYS: the provider does not support the call.
 *   - A pointer argument is borrowed for the call, unless its comment says longer. The buffers and the context of a
 *     transfer are borrowed until its completion.
 *   - The opener of an object owns it, and closes it with fi_close(). An object borrows the objects that are bound to
 *     it; they must be closed after it.
 *   - Control calls (open, bind, address vectors, memory regions, connections) may be made from any thread at any time,
 *     except with FI_PROGRESS_CONTROL_UNIFIED. For transfers and completions, enum fi_threading says which calls the
 *     program serialises.
 *   - New releases add members to structs only at the end. The version passed to fi_getinfo() tells which members the
 *     caller has; the member size of a table of functions tells which functions it has.
 *   - Lengths are in bytes. Timeouts are in milliseconds; a negative timeout means no timeout. A count says what it
 *     counts.
 */
#ifndef FABRIC_H
#define FABRIC_H

#include <stdint.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <rdma/fi_errno.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Compiler attributes; empty if the compiler lacks them. */
#if defined(__GNUC__)
#define FI_DEPRECATED_FUNC __attribute__((__deprecated__))
#define FI_DEPRECATED_FIELD __attribute__((__deprecated__))
/* The argument with number `string` is a printf format for the arguments from number `first` on. */
#define FI_FORMAT_PRINTF(string, first) __attribute__((__format__(__printf__, (string), (first))))
#else
#define FI_DEPRECATED_FUNC
#define FI_DEPRECATED_FIELD
#define FI_FORMAT_PRINTF(string, first)
#endif

/* For use inside __attribute__(()): keep a function when the whole program is optimised at once. */
#if defined(__GNUC__) && !defined(__clang__)
#define EXTERNALLY_VISIBLE externally_visible
#else
#define EXTERNALLY_VISIBLE
#endif


/*
 * Version of the API - fi_version(3)
 *
 * A version is one number, with the major version in the upper 16 bits and the minor version in the lower, so that
 * versions can be compared as numbers. A program passes the version it was written for as FI_VERSION() with literal
 * numbers, such as FI_VERSION(1, 18). FI_MAJOR_VERSION and FI_MINOR_VERSION are the version of this header. A program
 * that passes these claims to fill in all members of any later header that it is compiled with.
 */
#define FI_MAJOR_VERSION 2
#define FI_MINOR_VERSION 6
#define FI_REVISION_VERSION 0

#define FI_VERSION(major, minor) (((major) << 16) | (minor))
#define FI_MAJOR(version) ((version) >> 16)
#define FI_MINOR(version) ((version) & 0xffff)
#define FI_VERSION_GE(v1, v2) ((v1) >= (v2))
#define FI_VERSION_LT(v1, v2) ((v1) < (v2))

/* The version of the library that is running, which may be newer or older than this header. */
uint32_t fi_version(void);

/* Bounds and counts. A name in an attribute has at most FI_NAME_MAX bytes, including its NUL. The two LAST constants
 * are the numbers of datatypes and operations in version 1.0. They do not change, because old programs have arrays of
 * that size. */
enum {
	FI_NAME_MAX = 64,
	FI_PATH_MAX = 256,		/* 1.x only */
	FI_VERSION_MAX = 64,		/* 1.x only */
	FI_ATOMIC_OP_LAST = 19,
	FI_DATATYPE_LAST = 14,
};


/*
 * Objects - fi_fabric(3), fi_control(3)
 *
 * Every object begins with a struct fid. The header of an object adds to it: struct fid_ep, for instance, adds tables
 * of functions. Providers put their private data behind these.
 */
struct fid;
struct fid_fabric;
struct fid_domain;
struct fid_av;
struct fid_av_set;
struct fid_wait;
struct fid_poll;
struct fid_eq;
struct fid_cq;
struct fid_cntr;
struct fid_ep;
struct fid_pep;
struct fid_stx;
struct fid_mr;
struct fid_mc;
struct fid_nic;
#ifdef WEFT_API_2_7
struct fid_xpu_ctx;
struct fid_xpu_ep;
struct fid_xpu_cq;
struct fid_xpu_cntr;
#endif /* WEFT_API_2_7 */

typedef struct fid *fid_t;

/* The class of an object, fid::fclass. */
enum {
	FI_CLASS_UNSPEC,
	FI_CLASS_FABRIC,
	FI_CLASS_DOMAIN,
	FI_CLASS_EP,
	FI_CLASS_SEP,			/* scalable endpoint: one address, several contexts */
	FI_CLASS_RX_CTX,
	FI_CLASS_SRX_CTX,		/* receive context that endpoints share */
	FI_CLASS_TX_CTX,
	FI_CLASS_STX_CTX,		/* transmit context that endpoints share */
	FI_CLASS_PEP,			/* passive endpoint: listens */
	FI_CLASS_INTERFACE,
	FI_CLASS_AV,
	FI_CLASS_MR,
	FI_CLASS_EQ,
	FI_CLASS_CQ,
	FI_CLASS_CNTR,
	FI_CLASS_WAIT,
	FI_CLASS_POLL,
	FI_CLASS_CONNREQ,		/* the handle of a connection request */
	FI_CLASS_MC,			/* multicast or collective group that an endpoint has joined */
	FI_CLASS_NIC,
	FI_CLASS_AV_SET,
	FI_CLASS_MR_CACHE,
	FI_CLASS_MEM_MONITOR,
	FI_CLASS_PEER_CQ,		/* this and the other PEER classes: objects shared between providers,
					 * fi_peer.h */
	FI_CLASS_PEER_SRX,
	FI_CLASS_LOG,
	FI_CLASS_PEER_AV,
	FI_CLASS_PEER_AV_SET,
	FI_CLASS_PEER_CNTR,
	FI_CLASS_PROFILE,
#ifdef WEFT_API_2_7
	FI_CLASS_XPU_CTX,		/* a device that communicates by itself, fi_xpu.h */
#endif /* WEFT_API_2_7 */
};

/* The operations of every object. The provider fills in all of them; programs use the inline functions in this
 * folder. */
struct fi_ops {
	size_t size;			/* of this table, in the version that the provider has */
	int (*close)(struct fid *fid);
	int (*bind)(struct fid *fid, struct fid *bfid, uint64_t flags);
	int (*control)(struct fid *fid, int command, void *arg);
	int (*ops_open)(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
	/* Since 1.7. Write the object as text, cut off at len bytes including the NUL. */
	int (*tostr)(const struct fid *fid, char *buf, size_t len);
	/* Since 1.11. */
	int (*ops_set)(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);
};

struct fid {
	size_t fclass;			/* FI_CLASS_* */
	void *context;			/* the opener's; reported in events about the object; the provider does not
					 * follow it */
	struct fi_ops *ops;
};

/* True if a table of functions, which may be NULL or older than this header, has this function. */
#define FI_CHECK_OP(ops, opstype, op) ((ops) && (ops)->size > offsetof(opstype, op) && (ops)->op)

/*
 * Close an object and free its memory. -FI_EBUSY: other objects depend on it (opened from it or bound to it), and
 * nothing was done; close these first. Outstanding operations of an endpoint end: some complete with FI_ECANCELED,
 * others do not report. No other thread may be using the object.
 */
static inline int fi_close(struct fid *fid)
{
	return fid->ops->close(fid);
}


/*
 * Handles of peers and groups, and memory keys
 *
 * An fi_addr_t identifies a peer in an address vector. In some calls it identifies a group or an authorization key. Its
 * value has no meaning outside of the vector that returned it; handles of FI_AV_TABLE count up from 0.
 */
typedef uint64_t fi_addr_t;

#define FI_ADDR_UNSPEC UINT64_MAX	/* as a source to receive from: any peer; on a connected endpoint: its peer */
#define FI_ADDR_NOTAVAIL UINT64_MAX	/* as a result: no handle, because of an error or an unknown peer */
#define FI_KEY_NOTAVAIL UINT64_MAX	/* from fi_mr_key(): the key has more than 64 bits, use fi_mr_raw_attr() */

/* Value of tx_ctx_cnt or rx_ctx_cnt of an endpoint that uses a shared context (fi_stx_context, fi_srx_context). */
#define FI_SHARED_CONTEXT SIZE_MAX

/* Value of auth_key_size of a domain whose keys are in address vectors (fi_av_insert_auth_key). */
#define FI_AV_AUTH_KEY SIZE_MAX


/*
 * Flags, 64 bits wide - fi_getinfo(3), fi_endpoint(3), fi_cq(3), fi_av(3)
 *
 * Capabilities (fi_info::caps and the caps of the attributes), flags of operations, flags of completions and arguments
 * of control calls share one number space. A bit with one name below has the same meaning everywhere. From bit 40 on, a
 * bit may have several names, which are used in different places.
 *
 * There are three kinds of capabilities. A provider has a primary capability only if the program asks for it. Modifiers
 * (FI_READ to FI_REMOTE_WRITE) restrict a primary capability; without modifiers it includes all that apply. A secondary
 * capability may be returned although the program did not ask for it, if it costs nothing; if the program asks for it
 * and the provider lacks it, fi_getinfo() fails.
 */

/* Primary: kinds of transfer. In the flags of a completion, the kind of the operation. */
#define FI_MSG (1ULL << 1)		/* send to a posted receive, in order of posting: fi_endpoint.h */
#define FI_RMA (1ULL << 2)		/* read and write a peer's memory: fi_rma.h */
#define FI_TAGGED (1ULL << 3)		/* send to the posted receive whose tag matches: fi_tagged.h */
#define FI_ATOMIC (1ULL << 4)		/* compute on a peer's memory: fi_atomic.h */
#define FI_ATOMICS FI_ATOMIC
#define FI_MULTICAST (1ULL << 5)	/* send to a group; as an operation's flag: the address is a group's */
#define FI_COLLECTIVE (1ULL << 6)	/* fi_collective.h; as a flag of fi_join and fi_mr_reg: for collectives */

/* Modifiers. In the flags of a binding, the operations that the queue or counter is for; in a completion, the
 * operation; in the access flags of a memory region, the operations allowed on it. */
#define FI_READ (1ULL << 8)		/* this side reads remote memory */
#define FI_WRITE (1ULL << 9)		/* this side writes remote memory */
#define FI_RECV (1ULL << 10)
#define FI_SEND (1ULL << 11)
#define FI_TRANSMIT FI_SEND		/* in a binding of a CQ: all outgoing operations, including RMA and atomics */
#define FI_REMOTE_READ (1ULL << 12)	/* peers read this side's memory */
#define FI_REMOTE_WRITE (1ULL << 13)	/* peers write this side's memory */

/* Further flags of operations. Some are also capabilities, and some are also reported in completions. */
#define FI_MULTI_RECV (1ULL << 16)	/* secondary. One buffer takes many messages; in a completion: it is used up */
#define FI_REMOTE_CQ_DATA (1ULL << 17)	/* the peer's completion carries 64 (or fewer) bits of data from this side */
#define FI_MORE (1ULL << 18)		/* the next call follows at once: the provider may combine both */
#define FI_PEEK (1ULL << 19)		/* receive nothing, report the message that would be received: fi_tagged.h */
#define FI_TRIGGER (1ULL << 20)		/* secondary. Start when a condition is met: fi_trigger.h */
#define FI_FENCE (1ULL << 21)		/* secondary. Start this and later operations after all earlier ones to that
					 * peer */

/*
 * Completion levels: when an operation completes - fi_cq(3). op_flags, or the flags of an operation, have the weakest
 * level that the program needs. A stronger level includes the weaker ones, and costs more. Without a level, operations
 * that return data complete when the data is there, and others as with FI_TRANSMIT_COMPLETE.
 */
#define FI_COMPLETION (1ULL << 24)	/* write a CQ entry, on an endpoint whose CQ is bound with
					 * FI_SELECTIVE_COMPLETION */
#define FI_EVENT FI_COMPLETION		/* of fi_av_open(): insertions are asynchronous, reported to an EQ */
#define FI_INJECT (1ULL << 25)		/* the program may reuse the buffer on return; len <= tx_attr::inject_size */
#define FI_INJECT_COMPLETE (1ULL << 26)		/* complete when the buffer may be reused */
#define FI_TRANSMIT_COMPLETE (1ULL << 27)	/* complete when the peer's side has the data; unreliable endpoints: the
						 * network */
#define FI_DELIVERY_COMPLETE (1ULL << 28)	/* complete when the peer can use the data: in its buffer, if one was
						 * posted */
#define FI_AFFINITY (1ULL << 29)	/* in attributes of a CQ or EQ: signaling_vector is set */
#define FI_COMMIT_COMPLETE (1ULL << 30)		/* complete when the data is persistent (FI_RMA_PMEM) */
#define FI_MATCH_COMPLETE (1ULL << 31)		/* complete when the peer has matched the message to a receive */

/* Flags of calls that open objects, insert addresses or query. */
#define FI_RESCAN (1ULL << 35)		/* of fi_getinfo(): drop cached data and read it from the system again */
#define FI_PEER_TRANSFER (1ULL << 36)	/* of fi_endpoint2(), and a mode: carries messages of a peer provider */
#define FI_FIREWALL_ADDR (1ULL << 42)	/* of fi_av_insert(): this peer accepts no connections, it must connect to us */
#define FI_PROV_ATTR_ONLY (1ULL << 54)	/* of fi_getinfo(): one entry a provider, with names and versions only */
#define FI_NUMERICHOST (1ULL << 55)	/* of fi_getinfo(), fi_av_insertsvc(): the node is a numeric address, resolve no
					 * names */

/* More capabilities. */
#define FI_AV_USER_ID (1ULL << 41)	/* primary. Completions contain a number that the program chose for the peer:
					 * fi_domain.h */
#define FI_PEER (1ULL << 43)		/* primary, of a domain: can work with another provider's queues, fi_peer.h */
#ifdef WEFT_API_2_7
#define FI_XPU (1ULL << 44)		/* primary. A device (GPU) starts operations and reads completions: fi_xpu.h. As
					 * a flag: the endpoint, CQ or counter is for the device in xpu_ctx */
#endif /* WEFT_API_2_7 */
#define FI_TAGGED_DIRECTED_RECV (1ULL << 45)	/* primary. FI_DIRECTED_RECV for tagged messages only */
#define FI_TAGGED_MULTI_RECV (1ULL << 46)	/* secondary. FI_MULTI_RECV for tagged messages */
#define FI_HMEM (1ULL << 47)		/* primary. Buffers may be memory of a device (GPU): fi_mr(3) */
#define FI_EXACT_DIRECTED_RECV (1ULL << 48)	/* primary. Directed receives always name a peer */
#define FI_RMA_PMEM (1ULL << 49)	/* secondary. RMA on persistent memory */
#define FI_SOURCE_ERR (1ULL << 50)	/* secondary, with FI_SOURCE. A message from a peer that is not in the address
					 * vector completes with FI_EADDRNOTAVAIL, its raw address in err_data */
#define FI_LOCAL_COMM (1ULL << 51)	/* secondary. Reaches endpoints on the same node */
#define FI_REMOTE_COMM (1ULL << 52)	/* secondary. Reaches other nodes */
#define FI_SHARED_AV (1ULL << 53)	/* secondary. Processes can share an address vector by name */
#define FI_RMA_EVENT (1ULL << 56)	/* secondary. The target counts RMA and atomics that peers do to it */
#define FI_SOURCE (1ULL << 57)		/* secondary. Completions of receives tell the peer. As a flag of fi_getinfo():
					 * node and service are the local address */
#define FI_NAMED_RX_CTX (1ULL << 58)	/* primary. A sender chooses among the peer's receive contexts: fi_rx_addr() */
#define FI_DIRECTED_RECV (1ULL << 59)	/* primary. A receive may name the peer that it is for; otherwise its src_addr
					 * is not looked at */

/* Further names of bits above, for use in other places. */
#define FI_AUTH_KEY (1ULL << 57)	/* of fi_recvmsg(), fi_av_insert(): the fi_addr_t is a handle of an
					 * authorization key */
#define FI_DISCARD (1ULL << 58)		/* of fi_trecvmsg(): drop the message that is peeked at or was claimed */
#define FI_CLAIM (1ULL << 59)		/* of fi_trecvmsg(): with FI_PEEK reserve the message; alone, receive it */
#define FI_SELECTIVE_COMPLETION (1ULL << 59)	/* of fi_ep_bind() with a CQ: success is reported only where the
						 * operation has FI_COMPLETION; failure always */


/*
 * Modes, fi_info::mode - fi_getinfo(3)
 *
 * Requirements of a provider on the program. In hints, the modes that the program accepts (0: none); in a result, the
 * modes that it must follow. Without hints, a result has all modes that the provider could use.
 */
#define FI_CONTEXT (1ULL << 59)		/* the context of each operation points to a struct fi_context of its own */
#define FI_CONTEXT2 (1ULL << 52)	/* the same with struct fi_context2 */
#define FI_MSG_PREFIX (1ULL << 58)	/* each message buffer starts with ep_attr::msg_prefix_size bytes for the
					 * provider; they count in len, not in max_msg_size or inject_size */
#define FI_ASYNC_IOV (1ULL << 57)	/* an iovec with more than one element, and its desc, must stay valid until
					 * completion */
#define FI_RX_CQ_DATA (1ULL << 56)	/* remote CQ data, also of an RMA write, uses up a posted receive at the peer */
#define FI_LOCAL_MR (1ULL << 55)	/* before 1.5, the older form of FI_MR_LOCAL; deprecated */

/* Scratch space of FI_CONTEXT and FI_CONTEXT2. The program allocates it, usually as a part of a larger struct and not
 * on the stack. The provider owns it from the call that starts an operation until the program has read its
 * completion. */
struct fi_context {
	void *internal[4];
};

struct fi_context2 {
	void *internal[8];
};

/* Version 1.x, with FI_BUFFERED_RECV: the op_context of a completion points to this when a message has arrived in a
 * buffer of the provider. The program receives the message with FI_CLAIM, or drops it with FI_DISCARD, and passes this
 * struct as the context. */
struct fi_recv_context {
	struct fid_ep *ep;		/* the endpoint of the message */
	void *context;			/* set by the program before it claims the message: op_context of that
					 * completion */
};


/*
 * Order between the operations of a pair of endpoints, tx_attr::msg_order and rx_attr::msg_order - fi_endpoint(3)
 *
 * FI_ORDER_XAY: an X that is started after a Y does not overtake it. R is an RMA read or a fetching atomic, W is an RMA
 * write or another atomic, S is a message, tagged or not. Names with RMA or ATOMIC apply to this kind only. Sender and
 * receiver need the same bits. The order is the one in which operations are processed. ep_attr::max_order_*_size is the
 * size up to which overlapping data is written in order, too.
 */
#define FI_ORDER_NONE 0ULL		/* deprecated: write 0 */
#define FI_ORDER_RAR (1ULL << 0)
#define FI_ORDER_RAW (1ULL << 1)
#define FI_ORDER_RAS (1ULL << 2)
#define FI_ORDER_WAR (1ULL << 3)
#define FI_ORDER_WAW (1ULL << 4)
#define FI_ORDER_WAS (1ULL << 5)
#define FI_ORDER_SAR (1ULL << 6)
#define FI_ORDER_SAW (1ULL << 7)
#define FI_ORDER_SAS (1ULL << 8)
#define FI_ORDER_RMA_RAR (1ULL << 32)
#define FI_ORDER_RMA_RAW (1ULL << 33)
#define FI_ORDER_RMA_WAR (1ULL << 34)
#define FI_ORDER_RMA_WAW (1ULL << 35)
#define FI_ORDER_ATOMIC_RAR (1ULL << 36)
#define FI_ORDER_ATOMIC_RAW (1ULL << 37)
#define FI_ORDER_ATOMIC_WAR (1ULL << 38)
#define FI_ORDER_ATOMIC_WAW (1ULL << 39)

/* Order of completions, comp_order; deprecated in 2.0. Strict: in the order of posting (transmit) or of matching
 * (receive). Data, for receives: the bytes of an operation, and of ordered operations, are written in order. */
#define FI_ORDER_STRICT 0x1ff
#define FI_ORDER_DATA (1ULL << 16)


/* Format of addresses, fi_info::addr_format - fi_getinfo(3). All formats except strings are binary structs of the
 * system or the vendor, with their length given beside them. */
enum {
	FI_FORMAT_UNSPEC,		/* in hints: the provider chooses */
	FI_SOCKADDR,			/* a struct sockaddr of any family */
	FI_SOCKADDR_IN,
	FI_SOCKADDR_IN6,
	FI_SOCKADDR_IB,			/* struct sockaddr_ib of the Linux kernel */
	FI_ADDR_PSMX,			/* Intel PSM: uint64_t */
	FI_ADDR_GNI,			/* Cray GNI */
	FI_ADDR_BGQ,			/* IBM Blue Gene/Q */
	FI_ADDR_MLX,			/* Mellanox MXM */
	FI_ADDR_STR,			/* text: format[://[node][:[service][/[field]...][?[key=value][&...]]]], such as
					 * fi_sockaddr_in://192.0.2.1:7471 */
	FI_ADDR_PSMX2,			/* Intel PSM2 */
	FI_ADDR_IB_UD,			/* InfiniBand UD: GID, QP number and more */
	FI_ADDR_EFA,			/* Amazon EFA */
	FI_ADDR_PSMX3,			/* Intel PSM3 */
	FI_ADDR_OPX,			/* Cornelis Omni-Path */
	FI_ADDR_CXI,			/* HPE Slingshot */
	FI_ADDR_UCX,
	FI_SOCKADDR_IP,			/* FI_SOCKADDR_IN or FI_SOCKADDR_IN6, by the address's family */
};

/* Type of address vector - fi_av(3). Hints have the type that the program will open. FI_AV_UNSPEC in a result: both
 * types are supported. */
enum fi_av_type {
	FI_AV_UNSPEC,
	FI_AV_MAP,			/* the provider chooses the handles, possibly the address itself; deprecated */
	FI_AV_TABLE,			/* handles are indices in order of insertion, the same in every process that
					 * inserts the same list */
};

/* Mode of memory registration before 1.5, when there were only two; see the macros below. */
enum fi_mr_mode {
	FI_MR_UNSPEC,
	FI_MR_BASIC,
	FI_MR_SCALABLE,
};

/*
 * Memory registration, domain_attr::mr_mode - fi_mr(3), fi_domain(3)
 *
 * Requirements on the program. In hints, the bits that the program accepts; in a result, the bits that it must follow.
 * Without any bit the program chooses the keys, peers address a region by offset from 0, and only memory for RMA and
 * atomics must be registered.
 */
#define FI_MR_LOCAL (1 << 2)		/* register the buffers of all operations, and pass their desc */
#define FI_MR_RAW (1 << 3)		/* keys are longer than 64 bits: fi_mr_raw_attr(), fi_mr_map_raw() */
#define FI_MR_VIRT_ADDR (1 << 4)	/* peers address a region by its virtual address here */
#define FI_MR_ALLOCATED (1 << 5)	/* the memory must be mapped from its registration until the region is closed */
#define FI_MR_PROV_KEY (1 << 6)		/* the provider chooses the keys: tell peers fi_mr_key() */
#define FI_MR_MMU_NOTIFY (1 << 7)	/* call fi_mr_refresh() after the page tables of a region have changed */
#define FI_MR_RMA_EVENT (1 << 8)	/* a region with a counter needs fi_mr_bind(), then fi_mr_enable() */
#define FI_MR_ENDPOINT (1 << 9)		/* regions belong to an endpoint: all need fi_mr_bind(), then fi_mr_enable() */
#define FI_MR_HMEM (1 << 10)		/* register device memory before use, and pass its desc */
#define FI_MR_COLLECTIVE (1 << 11)	/* register buffers of collectives, with flag FI_COLLECTIVE */
#ifdef WEFT_API_2_7
#define FI_MR_XPU_DESC (1 << 12)	/* operations of a device need fi_mr_get_xpu_desc() of their buffers */
#endif /* WEFT_API_2_7 */

/* The modes before 1.5; no other bit of mr_mode is then set. Basic is FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
 * FI_MR_PROV_KEY, scalable is no bit, and unspec allows either. Deprecated. The enum above is for old sources; the
 * macros show that the names exist. */
#define FI_MR_UNSPEC FI_MR_UNSPEC
#define FI_MR_BASIC FI_MR_BASIC
#define FI_MR_SCALABLE FI_MR_SCALABLE

/* Progress of asynchronous operations - fi_domain(3). In hints, UNSPEC leaves the choice to the provider. */
enum fi_progress {
	FI_PROGRESS_UNSPEC,
	FI_PROGRESS_AUTO,		/* by the provider: hardware, or a thread of its own */
	FI_PROGRESS_MANUAL,		/* by the program, which reads or waits on the endpoint's queues and counters
					 * with calls of this API; the target of RMA must do so, too */
	FI_PROGRESS_CONTROL_UNIFIED,	/* for control only: as manual, and the program serialises control calls
					 * together with transfers as the threading level says, so that no lock is
					 * needed */
};

/* The calls for transfers and completions that the program serialises - fi_domain(3). The more it serialises, the fewer
 * locks are needed. A provider may be safer than asked; it returns the level that was asked for. */
enum fi_threading {
	FI_THREAD_UNSPEC,
	FI_THREAD_SAFE,			/* none */
	FI_THREAD_FID,			/* calls on the same object; deprecated */
	FI_THREAD_DOMAIN,		/* calls on objects of the same domain */
	FI_THREAD_COMPLETION,		/* calls on objects that share a queue or counter */
	FI_THREAD_ENDPOINT,		/* as FI_THREAD_FID, with all contexts of an endpoint counting as one object;
					 * deprecated */
};

/*
 * Resource management: what happens when a queue is full - fi_domain(3)
 *
 *			disabled			enabled
 * own queue full	undefined, fatal		-FI_EAGAIN from the call
 * own CQ full		undefined, fatal		-FI_EAGAIN, or held back
 * peer not ready	reliable: transmit error	reliable: retried, unseen
 *			datagram: dropped		datagram: dropped
 *
 * In both cases, a message longer than its buffer is truncated or fails, and RMA outside of a region fails.
 */
enum fi_resource_mgmt {
	FI_RM_UNSPEC,
	FI_RM_DISABLED,
	FI_RM_ENABLED,
};

/* Type of endpoint - fi_endpoint(3). */
enum fi_ep_type {
	FI_EP_UNSPEC,
	FI_EP_MSG,			/* connected to one peer, reliable, in messages */
	FI_EP_DGRAM,			/* no connection, unreliable, messages up to the MTU of the network */
	FI_EP_RDM,			/* no connection that the program sees, reliable, in messages */
	FI_EP_SOCK_DGRAM = 5,		/* 1.x only, no provider has it */
};

/* The wire protocol, ep_attr::protocol. Two endpoints with the same protocol can communicate. Protocols with the top
 * bit set are private to a provider. The names only identify protocols. */
enum {
	FI_PROTO_UNSPEC,
	FI_PROTO_RDMA_CM_IB_RC,		/* InfiniBand or RoCE RC queue pairs, connected by RDMA CM */
	FI_PROTO_IWARP,
	FI_PROTO_IB_UD,			/* InfiniBand or RoCE UD queue pairs */
	FI_PROTO_PSMX,
	FI_PROTO_UDP,			/* one datagram a message, nothing added */
	FI_PROTO_SOCK_TCP,		/* the tcp provider's connections */
	FI_PROTO_MXM,
	FI_PROTO_IWARP_RDM,
	FI_PROTO_IB_RDM,
	FI_PROTO_GNI,
	FI_PROTO_RXM,			/* RDM over MSG endpoints */
	FI_PROTO_RXD,			/* RDM over DGRAM endpoints */
	FI_PROTO_MLX,
	FI_PROTO_NETWORKDIRECT,
	FI_PROTO_PSMX2,
	FI_PROTO_SHM,			/* shared memory of one node */
	FI_PROTO_MRAIL,			/* several endpoints as one */
	FI_PROTO_RSTREAM,
	FI_PROTO_RDMA_CM_IB_XRC,	/* as FI_PROTO_RDMA_CM_IB_RC with XRC queue pairs */
	FI_PROTO_EFA,
	FI_PROTO_PSMX3,
	FI_PROTO_RXM_TCP,
	FI_PROTO_OPX,
	FI_PROTO_CXI,
	FI_PROTO_XNET,			/* the tcp provider's RDM endpoints */
	FI_PROTO_COLL,
	FI_PROTO_UCX,
	FI_PROTO_SM2,
	FI_PROTO_CXI_RNR,
	FI_PROTO_LPP,
	FI_PROTO_LNX,
};

/*
 * The use of tags, ep_attr::mem_tag_format - fi_endpoint(3)
 *
 * A value above FI_TAG_MAX_FORMAT is a pattern. The provider ignores the zero bits at the top. Below these, each run of
 * equal bits is a field, which a mask includes or excludes as a whole (0x30ff: fields of 2, 4 and 8 bits).
 */
enum {
	FI_TAG_BITS,			/* bits without structure */
	FI_TAG_MPI,			/* made by fi_tag_mpi(), with masks of FI_MPI_IGNORE_*: fi_tagged.h */
	FI_TAG_CCL,			/* a tag matches as a whole: no masks */
	FI_TAG_MAX_FORMAT = 1 << 16,
};

/* Traffic class, tx_attr::tclass and domain_attr::tclass - fi_endpoint(3). A label of this list, or a DSCP (RFC 2474)
 * from fi_tc_dscp_set(). For FI_TC_UNSPEC the class of the domain is used, or if that is FI_TC_UNSPEC the
 * provider's. */
enum {
	FI_TC_UNSPEC = 0,
	FI_TC_DSCP = 0x100,
	FI_TC_LABEL = 0x200,
	FI_TC_BEST_EFFORT = FI_TC_LABEL,	/* fair share among many */
	FI_TC_LOW_LATENCY,			/* short messages that others wait for */
	FI_TC_DEDICATED_ACCESS,			/* most of the bandwidth, first in line */
	FI_TC_BULK_DATA,			/* large, sustained I/O */
	FI_TC_SCAVENGER,			/* unused bandwidth */
	FI_TC_NETWORK_CTRL,			/* management of the network itself */
};

/* The traffic class of a DSCP. */
static inline uint32_t fi_tc_dscp_set(uint8_t dscp)
{
	return dscp | FI_TC_DSCP;
}

/* The DSCP of a traffic class; 0 if the class is not a DSCP. */
static inline uint8_t fi_tc_dscp_get(uint32_t tclass)
{
	return tclass & FI_TC_DSCP ? (uint8_t) tclass : 0;
}


/*
 * Attributes - fi_getinfo(3)
 *
 * In hints, a member that is 0 requires nothing, except that mode 0 refuses all modes. Another value is required: flags
 * as a subset, sizes and counts as a minimum, names and types exactly. A result has the agreed values. The program may
 * lower them or clear flags before it opens an object with them. Limits are those of the provider; they do not tell how
 * much the system has left.
 */

/* One piece of a vector of elements, for atomics and collectives. */
struct fi_ioc {
	void *addr;
	size_t count;			/* elements of the operation's datatype */
};

/* Transmit attributes of an endpoint or a transmit context - fi_endpoint(3). */
struct fi_tx_attr {
	uint64_t caps;			/* the part of fi_info::caps for transmitting; 0 in hints: all */
	uint64_t mode;			/* the part of fi_info::mode for transmitting */
	uint64_t op_flags;		/* flags of calls without a flags argument: FI_INJECT, FI_COMPLETION,
					 * FI_*_COMPLETE... */
	uint64_t msg_order;		/* FI_ORDER_* */
	uint64_t comp_order;		/* deprecated */
	size_t inject_size;		/* longest data of FI_INJECT */
	size_t size;			/* operations outstanding at a time, at least */
	size_t iov_limit;		/* elements of an iovec */
	size_t rma_iov_limit;		/* remote pieces of an RMA or atomic operation, as initiator or target */
	uint32_t tclass;		/* since 1.9. FI_TC_* */
};

/* Receive attributes of an endpoint or a receive context - fi_endpoint(3). */
struct fi_rx_attr {
	uint64_t caps;
	uint64_t mode;
	uint64_t op_flags;		/* flags of calls without a flags argument: FI_COMPLETION, FI_MULTI_RECV */
	uint64_t msg_order;
	uint64_t comp_order;		/* deprecated */
	size_t total_buffered_recv;	/* deprecated: bytes of buffer for unexpected messages */
	size_t size;			/* receives posted at a time, at least */
	size_t iov_limit;
};

/* Attributes of an endpoint - fi_endpoint(3). */
struct fi_ep_attr {
	enum fi_ep_type type;
	uint32_t protocol;		/* FI_PROTO_* */
	uint32_t protocol_version;	/* lower versions are supported, too */
	size_t max_msg_size;		/* bytes of one transfer */
	size_t msg_prefix_size;		/* with FI_MSG_PREFIX: a multiple of 8; otherwise 0 */
	/* With FI_ORDER_RAW, WAR or WAW: the length in bytes up to which overlapping data of two operations is in
	 * order. 0: never; SIZE_MAX: always. */
	size_t max_order_raw_size;
	size_t max_order_war_size;
	size_t max_order_waw_size;
	uint64_t mem_tag_format;	/* FI_TAG_* or a pattern */
	size_t tx_ctx_cnt;		/* transmit contexts: 0 is 1, more for a scalable endpoint; or
					 * FI_SHARED_CONTEXT */
	size_t rx_ctx_cnt;		/* receive contexts, likewise */
	/* Since 1.5. Only peers with the same key can communicate. 0 bytes: the domain's key. In hints the caller owns
	 * the key; in a result the fi_info owns it. */
	size_t auth_key_size;
	uint8_t *auth_key;
#ifdef WEFT_API_2_7
	/* Since 2.7. With flag FI_XPU of fi_endpoint2(), the device of the endpoint; borrowed. Otherwise NULL. */
	struct fid_xpu_ctx *xpu_ctx;
#endif /* WEFT_API_2_7 */
};

/* Attributes of a domain, which usually is one port of a NIC or one interface - fi_domain(3). Members with max are
 * limits. Other counts are the number that works well, possibly a guess. */
struct fi_domain_attr {
	struct fid_domain *domain;	/* in hints: this open domain is required; in a result: a matching open domain,
					 * or NULL */
	char *name;
	enum fi_threading threading;
	enum fi_progress control_progress;
	union {
		enum fi_progress data_progress;
		enum fi_progress progress;	/* since 2.0 */
	};
	enum fi_resource_mgmt resource_mgmt;
	enum fi_av_type av_type;
	int mr_mode;			/* FI_MR_* */
	size_t mr_key_size;		/* bytes of a memory key; above 8 only with FI_MR_RAW */
	size_t cq_data_size;		/* bytes of remote CQ data: 0 (none) or at least 4 */
	size_t cq_cnt;
	size_t ep_cnt;
	size_t tx_ctx_cnt;		/* that can run in parallel */
	size_t rx_ctx_cnt;
	size_t max_ep_tx_ctx;		/* of one endpoint */
	size_t max_ep_rx_ctx;
	size_t max_ep_stx_ctx;		/* endpoints on one shared transmit context */
	size_t max_ep_srx_ctx;		/* endpoints on one shared receive context */
	/* Since 1.5. */
	size_t cntr_cnt;
	size_t mr_iov_limit;		/* pieces of one memory region */
	uint64_t caps;			/* FI_LOCAL_COMM, FI_REMOTE_COMM, FI_SHARED_AV, FI_PEER, FI_AV_USER_ID,
					 * FI_DIRECTED_RECV */
	uint64_t mode;
	uint8_t *auth_key;		/* for objects opened without a key of their own; NULL with FI_AV_AUTH_KEY */
	size_t auth_key_size;
	size_t max_err_data;		/* longest err_data of an error entry */
	size_t mr_cnt;
	uint32_t tclass;		/* since 1.9. For endpoints without a class of their own */
	size_t max_ep_auth_key;		/* since 1.20. Keys of one connectionless endpoint */
	uint32_t max_group_id;		/* since 2.0. Largest group for fi_group_addr(); 0: groups are not supported */
	/* Since 2.5. The values after which counters wrap; 0: not known. */
	uint64_t max_cntr_value;
	uint64_t max_err_cntr_value;
#ifdef WEFT_API_2_7
	size_t max_xpu_ctx_cnt;		/* since 2.7, output. Device contexts that the domain can have */
#endif /* WEFT_API_2_7 */
};

/* Attributes of a fabric: all endpoints that can reach one another through one provider - fi_fabric(3). */
struct fi_fabric_attr {
	struct fid_fabric *fabric;	/* in hints: this open fabric is required; in a result: a matching open fabric,
					 * or NULL */
	char *name;
	char *prov_name;		/* "tcp"; for a layered provider "core;layer", in hints also "layer;core" */
	uint32_t prov_version;		/* FI_VERSION(), the provider's own */
	uint32_t api_version;		/* since 1.5. The version passed to fi_getinfo() */
};

/*
 * One way to communicate. fi_getinfo() returns a list of these. A program opens one from the top down: fi_fabric() with
 * fabric_attr, then fi_domain() and fi_endpoint() with the fi_info. The caller of fi_getinfo() owns the list and all
 * that it points to except handle, and frees it with fi_freeinfo(). Hints may lack any of the attribute structs.
 */
struct fi_info {
	struct fi_info *next;
	uint64_t caps;
	uint64_t mode;
	uint32_t addr_format;		/* of both addresses here, and of addresses in calls of fi_cm.h and of address
					 * vectors */
	size_t src_addrlen;		/* > 0 if and only if src_addr is set; likewise dest */
	size_t dest_addrlen;
	void *src_addr;			/* the local address; ignored in hints with FI_SOURCE */
	void *dest_addr;		/* the peer; in hints only used without node and service, or with FI_SOURCE */
	fid_t handle;			/* a connection request (FI_CONNREQ), or a passive endpoint whose address is
					 * taken over */
	struct fi_tx_attr *tx_attr;
	struct fi_rx_attr *rx_attr;
	struct fi_ep_attr *ep_attr;
	struct fi_domain_attr *domain_attr;
	struct fi_fabric_attr *fabric_attr;
	struct fid_nic *nic;		/* since 1.7. The hardware, or NULL; ignored in hints */
};


/*
 * The hardware of an entry - fi_nic(3). Values that are not known are NULL or 0. It belongs to the fi_info, and is
 * freed with it.
 */
struct fi_device_attr {
	char *name;			/* the system's name: "eth0", "mlx5_0", or a path */
	char *device_id;		/* assigned by the vendor */
	char *device_version;
	char *vendor_id;
	char *driver;
	char *firmware;
};

enum fi_bus_type {
	FI_BUS_UNSPEC,
	FI_BUS_UNKNOWN = FI_BUS_UNSPEC,
	FI_BUS_PCI,
};

struct fi_pci_attr {
	uint16_t domain_id;
	uint8_t bus_id;
	uint8_t device_id;
	uint8_t function_id;
};

struct fi_bus_attr {
	enum fi_bus_type bus_type;	/* tells which member of attr is set */
	union {
		struct fi_pci_attr pci;
	} attr;
};

enum fi_link_state {
	FI_LINK_UNKNOWN,
	FI_LINK_DOWN,
	FI_LINK_UP,
};

struct fi_link_attr {
	char *address;			/* of the link layer, as text: a MAC address */
	size_t mtu;			/* bytes */
	size_t speed;			/* bits a second */
	enum fi_link_state state;
	char *network_type;		/* "Ethernet", "InfiniBand" */
};

struct fid_nic {
	struct fid fid;
	struct fi_device_attr *device_attr;
	struct fi_bus_attr *bus_attr;
	struct fi_link_attr *link_attr;
	void *prov_attr;		/* the provider's; fi_tostr() can print it */
};


/*
 * Discovery - fi_getinfo(3). Any thread, at any time.
 */

/*
 * Find the ways to communicate that match the arguments. version: FI_VERSION() of the API that the caller uses; it
 * determines the length of all structs. node and service: name or address and port of the peer, or with FI_SOURCE of
 * this side; each may be NULL, and node may be an FI_ADDR_STR text with service NULL. flags: FI_SOURCE, FI_NUMERICHOST,
 * FI_PROV_ATTR_ONLY, FI_RESCAN. hints: only read; NULL returns all entries.
 *
 * 0: *info is a list, best first, which the caller frees with fi_freeinfo(). Otherwise *info is NULL. -FI_ENODATA:
 * nothing matches (the log has the reasons). -FI_ENOSYS: the library is older than version. -FI_EBADFLAGS: a flag is
 * unknown. -FI_EINVAL: the arguments contradict each other. -FI_ENOMEM.
 */
int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
	       struct fi_info **info);

/* Free an entry and its successors with all that they own. Accepts NULL, and any entry that one of these calls
 * returned. */
void fi_freeinfo(struct fi_info *info);

/* Copy one entry with all that it owns, without its successors; the copy shares handle. With info NULL, make an entry
 * of zeros. NULL: no memory. */
struct fi_info *fi_dupinfo(const struct fi_info *info);

/* Make an entry of zeros with all attribute structs, for hints. NULL: no memory. */
static inline struct fi_info *fi_allocinfo(void)
{
	return fi_dupinfo(NULL);
}


/*
 * Fabrics - fi_fabric(3). Domains, passive endpoints, event queues and wait sets are opened from a fabric.
 */
struct fi_wait_attr;
struct fi_poll_attr;
struct fi_eq_attr;
struct fi_cq_attr;
struct fi_cntr_attr;
struct fi_av_attr;
struct fi_av_set_attr;
struct fi_mr_attr;

/* The calls are inline functions of the same names in fi_domain.h, fi_endpoint.h and fi_eq.h. */
struct fi_ops_fabric {
	size_t size;
	int (*domain)(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **dom, void *context);
	int (*passive_ep)(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context);
	int (*eq_open)(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context);
	int (*wait_open)(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **waitset);
	int (*trywait)(struct fid_fabric *fabric, struct fid **fids, int count);	/* since 1.3 */
	int (*domain2)(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **dom, uint64_t flags,
		       void *context);							/* since 1.17 */
};

struct fid_fabric {
	struct fid fid;
	struct fi_ops_fabric *ops;
	uint32_t api_version;		/* since 1.5. The opener's version; it determines the length of structs of all
					 * objects */
};

/* Open the fabric of an entry of fi_getinfo(). context is stored in fid::context. -FI_ENODEV: no such provider.
 * -FI_ENODATA: the provider has no such fabric; providers whose fabrics may have any name do not check. */
int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

/* The same with the whole entry and flags (0; none is defined yet: -FI_EBADFLAGS). Since 2.0. */
int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric, uint64_t flags, void *context);

/*
 * Open an object of the library by name - fi_provider(3): "mr_cache", "logging", and others, depending on the release.
 * version: as in fi_getinfo(). attr: attr_len bytes, whose meaning depends on the name, or NULL and 0. -FI_ENOSYS: no
 * such object. -FI_EALREADY: it can be opened only once, and is open.
 */
int fi_open(uint32_t version, const char *name, void *attr, size_t attr_len, uint64_t flags, struct fid **fid,
	    void *context);


/*
 * Control - fi_control(3), and the manual page of the object. Each command is followed by the type of its argument:
 */
enum {
	FI_GETFIDFLAG,			/* uint64_t: flags of the object */
	FI_SETFIDFLAG,
	FI_GETOPSFLAG,			/* uint64_t: in FI_TRANSMIT or FI_RECV, out the endpoint's default op_flags */
	FI_SETOPSFLAG,			/* uint64_t: FI_TRANSMIT or FI_RECV, with the new default */
	FI_ALIAS,			/* struct fi_alias */
	FI_GETWAIT,			/* the wait object: int for a file descriptor, struct fi_wait_pollfd, struct
					 * fi_mutex_cond */
	FI_ENABLE,			/* NULL */
	FI_BACKLOG,			/* int: connection requests that may wait at a passive endpoint */
	FI_GET_RAW_MR,			/* struct fi_mr_raw_attr */
	FI_MAP_RAW_MR,			/* struct fi_mr_map_raw */
	FI_UNMAP_KEY,			/* uint64_t: the key */
	FI_QUEUE_WORK,			/* struct fi_deferred_work, of a domain */
	FI_CANCEL_WORK,			/* struct fi_deferred_work */
	FI_FLUSH_WORK,			/* NULL: cancel all deferred work of a domain; or struct fid_cntr: all work that
					 * waits for this counter */
	FI_REFRESH,			/* struct fi_mr_modify */
	FI_DUP,
	FI_GETWAITOBJ,			/* enum fi_wait_obj */
	FI_GET_VAL,			/* struct fi_fid_var */
	FI_SET_VAL,			/* struct fi_fid_var */
	FI_EXPORT_FID,			/* struct fi_fid_export of fi_ext.h */
	FI_GET_FD,			/* int: the socket of a connected endpoint */
#ifdef WEFT_API_2_7
	FI_GET_MR_XPU_DESC,		/* struct fi_mr_xpu_desc */
#endif /* WEFT_API_2_7 */
};
#ifdef WEFT_API_2_7

/* Argument of FI_GET_MR_XPU_DESC; fi_mr_get_xpu_desc() fills it in. */
struct fi_mr_xpu_desc {
	void *buf;
	size_t *len;			/* in: the room in buf; out: the length of the descriptor */
	uint64_t flags;			/* FI_XPU */
	struct fid_xpu_ctx *ctx;
};
#endif /* WEFT_API_2_7 */

/* Run one of these commands. On an endpoint, no other call may be running. -FI_ENOSYS: the object does not support the
 * command. */
static inline int fi_control(struct fid *fid, int command, void *arg)
{
	return fid->ops->control(fid, command, arg);
}

struct fi_alias {
	struct fid **fid;		/* out */
	uint64_t flags;
};

/* Open another handle of an object, with other flags. Each handle is closed separately. */
static inline int fi_alias(struct fid *fid, struct fid **alias_fid, uint64_t flags)
{
	struct fi_alias alias;

	alias.fid = alias_fid;
	alias.flags = flags;
	return fi_control(fid, FI_ALIAS, &alias);
}

struct fi_fid_var {
	int name;
	void *val;
};

/* Read or set a variable of the provider. Its header (rdma/fi_ext_*.h) lists the variables and the types of val. */
static inline int fi_get_val(struct fid *fid, int name, void *val)
{
	struct fi_fid_var var;

	var.name = name;
	var.val = val;
	return fi_control(fid, FI_GET_VAL, &var);
}

static inline int fi_set_val(struct fid *fid, int name, void *val)
{
	struct fi_fid_var var;

	var.name = name;
	var.val = val;
	return fi_control(fid, FI_SET_VAL, &var);
}

/* Get a further table of functions of the object by name. It is valid as long as the object. */
static inline int fi_open_ops(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	return fid->ops->ops_open(fid, name, flags, ops, context);
}

/* Let the provider call functions of the program in place of its own, by name: FI_SET_OPS_HMEM_OVERRIDE. ops must stay
 * valid until the object is closed. -FI_ENOSYS: the name is unknown. */
static inline int fi_set_ops(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	if (!FI_CHECK_OP(fid->ops, struct fi_ops, ops_set))
		return -FI_ENOSYS;
	return fid->ops->ops_set(fid, name, flags, ops, context);
}

/* Arguments of FI_GET_RAW_MR and FI_MAP_RAW_MR, filled in by fi_mr_raw_attr() and fi_mr_map_raw() of fi_domain.h. */
struct fi_mr_raw_attr {
	uint64_t flags;
	uint64_t *base_addr;		/* out */
	uint8_t *raw_key;		/* out, key_size bytes of room */
	size_t *key_size;		/* in: room of raw_key; out: length of the key */
};

struct fi_mr_map_raw {
	uint64_t flags;
	uint64_t base_addr;
	uint8_t *raw_key;
	size_t key_size;
	uint64_t *key;			/* out */
};


/*
 * Text output - fi_fabric(3). The type of `data` in fi_tostr().
 */
enum fi_type {
	FI_TYPE_INFO,			/* struct fi_info, one entry */
	FI_TYPE_EP_TYPE,		/* enum fi_ep_type */
	FI_TYPE_CAPS,			/* uint64_t, as all flags below except FI_TYPE_MR_MODE */
	FI_TYPE_OP_FLAGS,
	FI_TYPE_ADDR_FORMAT,		/* uint32_t */
	FI_TYPE_TX_ATTR,
	FI_TYPE_RX_ATTR,
	FI_TYPE_EP_ATTR,
	FI_TYPE_DOMAIN_ATTR,
	FI_TYPE_FABRIC_ATTR,
	FI_TYPE_THREADING,
	FI_TYPE_PROGRESS,
	FI_TYPE_PROTOCOL,		/* uint32_t */
	FI_TYPE_MSG_ORDER,
	FI_TYPE_MODE,
	FI_TYPE_AV_TYPE,
	FI_TYPE_ATOMIC_TYPE,		/* enum fi_datatype */
	FI_TYPE_ATOMIC_OP,		/* enum fi_op */
	FI_TYPE_VERSION,		/* data is ignored: the library's version */
	FI_TYPE_EQ_EVENT,		/* uint32_t of fi_eq_read() */
	FI_TYPE_CQ_EVENT_FLAGS,
	FI_TYPE_MR_MODE,		/* int */
	FI_TYPE_OP_TYPE,		/* enum fi_op_type */
	FI_TYPE_FID,			/* struct fid */
	FI_TYPE_COLLECTIVE_OP,		/* enum fi_collective_op */
	FI_TYPE_HMEM_IFACE,
	FI_TYPE_CQ_FORMAT,
	FI_TYPE_LOG_LEVEL,
	FI_TYPE_LOG_SUBSYS,
	FI_TYPE_AV_ATTR,
	FI_TYPE_CQ_ATTR,
	FI_TYPE_MR_ATTR,
	FI_TYPE_CNTR_ATTR,
	FI_TYPE_CQ_ERR_ENTRY,
	FI_TYPE_CQ_WAIT_COND,
	FI_TYPE_WAIT_OBJ,
};

/* Write data as text into a buffer of the calling thread, which its next call overwrites. NULL: the type is unknown. */
char *fi_tostr(const void *data, enum fi_type datatype);

/* The same into the caller's buf, cut off at len bytes including the NUL. Returns buf. Any thread. Since 1.12. */
char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype);


/*
 * Parameters: values that the environment or the configuration file may set - fi_provider(3). Providers define them
 * with fi_param_define() of providers/fi_prov.h.
 */
enum fi_param_type {
	FI_PARAM_STRING,		/* char * */
	FI_PARAM_INT,			/* int */
	FI_PARAM_BOOL,			/* int, 0 or 1 */
	FI_PARAM_SIZE_T,		/* size_t */
};

struct fi_param {
	const char *name;		/* of the environment variable, "FI_TCP_IFACE" */
	enum fi_param_type type;
	const char *help_string;
	const char *value;		/* the value as set, or NULL */
};

/* List all parameters. The caller frees the array with fi_freeparams(). Any thread. */
int fi_getparams(struct fi_param **params, int *count);
void fi_freeparams(struct fi_param *params);


/*
 * Names of 1.x that 2.x dropped, for old sources. If the bits are still free, the names keep their values; names that
 * lost their meaning are 0.
 */
#define FI_PROV_SPECIFIC (1U << 31)	/* top bit of a provider's own protocol, command or option */
#define FI_PRIORITY (1ULL << 22)
#define FI_XPU_TRIGGER (1ULL << 44)
#define FI_BUFFERED_RECV (1ULL << 51)
#define FI_VARIABLE_MSG 0ULL
#define FI_NOTIFY_FLAGS_ONLY 0ULL
#define FI_RESTRICTED_COMP 0ULL
#define FI_EP_SOCK_STREAM FI_EP_UNSPEC

/* Flags of fi_mr_regattr(), described in fi_domain.h; a 1.x program finds them here. */
#define FI_HMEM_DEVICE_ONLY (1ULL << 46)
#define FI_HMEM_HOST_ALLOC (1ULL << 45)
#define FI_MR_DMABUF (1ULL << 40)

#ifdef __cplusplus
}
#endif

#endif /* FABRIC_H */
