/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Providers that work as one - fi_peer(3): one (the owner) has the program's objects, another (the peer) puts its
 * results into them, so that a program reads one queue although messages come through shared memory and a network.
 *
 * For each kind of object the owner makes a struct fid_peer_*, whose fid refers to its own object and whose owner_ops
 * the peer calls, and opens the peer's object with flag FI_PEER and, in place of the context, a struct
 * fi_peer_*_context that points to it. A peer that does not know the kind says -FI_EINVAL. The owner keeps the struct
 * until the peer's object is closed.
 *
 * Owner and peer are of the same release: nothing here is kept compatible, and the sizes in the structs only prove it.
 */
#ifndef FI_PEER_H
#define FI_PEER_H

#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_prov.h>
#include <rdma/providers/fi_log.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fid_peer_av;
struct fid_peer_av_set;
struct fid_peer_cq;
struct fid_peer_cntr;
struct fid_peer_srx;

/*
 * Address vectors: fi_av_open()
 */
struct fi_ops_av_owner {
	size_t size;
	/* Fill attr with what the vector is now. */
	int (*query)(struct fid_peer_av *av, struct fi_av_attr *attr);
	/* The handle of a local endpoint; FI_ADDR_NOTAVAIL if its address is not in the vector. */
	fi_addr_t (*ep_addr)(struct fid_peer_av *av, struct fid_ep *ep);
};

struct fid_peer_av {
	struct fid fid;
	struct fi_ops_av_owner *owner_ops;
};

struct fi_peer_av_context {
	size_t size;			/* of this struct, as in all contexts below */
	struct fid_peer_av *av;
};


/*
 * Sets of addresses: fi_av_set()
 */
struct fi_ops_av_set_owner {
	size_t size;
	/* The members. *count: in the room of addr, out how many; -FI_ETOOSMALL: that many. */
	int (*members)(struct fid_peer_av_set *av, fi_addr_t *addr, size_t *count);
};

struct fid_peer_av_set {
	struct fid fid;
	struct fi_ops_av_set_owner *owner_ops;
};

struct fi_peer_av_set_context {
	size_t size;
	struct fi_peer_av_set *av_set;	/* a struct fid_peer_av_set, by a name that has no declaration */
};


/*
 * Completion queues: fi_cq_open(). The owner drives a peer with manual progress by fi_cq_read() of its queue with a
 * count of 0; that queue has nothing to read. Locking, waking and a full queue are the owner's business. Addresses are
 * those of the peer's address vector.
 */
struct fi_ops_cq_owner {
	size_t size;
	/* Report a success; what the queue's format does not have is not looked at. */
	ssize_t (*write)(struct fid_peer_cq *cq, void *context, uint64_t flags, size_t len, void *buf, uint64_t data,
			 uint64_t tag, fi_addr_t src);
	/* Report a failure; the entry is copied. */
	ssize_t (*writeerr)(struct fid_peer_cq *cq, const struct fi_cq_err_entry *err_entry);
};

struct fid_peer_cq {
	struct fid fid;
	struct fi_ops_cq_owner *owner_ops;
};

struct fi_peer_cq_context {
	size_t size;
	struct fid_peer_cq *cq;
};


/*
 * Counters: fi_cntr_open()
 */
struct fi_ops_cntr_owner {
	size_t size;
	/* Count one success, one failure. */
	void (*inc)(struct fid_peer_cntr *cntr);
	void (*incerr)(struct fid_peer_cntr *cntr);
};

struct fid_peer_cntr {
	struct fid fid;
	struct fi_ops_cntr_owner *owner_ops;
};

struct fi_peer_cntr_context {
	size_t size;
	struct fid_peer_cntr *cntr;
};


/*
 * Domains: fi_domain2(); event queues: fi_eq_open(). The peer uses the owner's object itself, to register memory or to
 * report events.
 */
struct fi_peer_domain_context {
	size_t size;
	struct fid_domain *domain;
};

struct fi_peer_eq_context {
	size_t size;
	struct fid_eq *eq;
};


/*
 * Receives: fi_srx_context(). The owner has the posted buffers and does the matching, so that a program's receives are
 * used in order whichever provider a message comes through.
 *
 *   message arrives at the peer -> get_msg or get_tag
 *	FI_SUCCESS: a receive was there -> the peer puts the message into the entry's iov, reports it, free_entry
 *	-FI_ENOENT: none -> the peer keeps the message, notes it in peer_context, queue_msg or queue_tag
 *	    a receive is posted -> the owner fills the entry and calls start_msg or start_tag; as above from there
 *	    the program drops it -> discard_msg or discard_tag; nothing is reported
 * get and queue of one message are not interrupted by those of another; ep_fid has the lock of the receiver.
 */

/* A message and its receive. The owner's, lent to the peer from get, or from start, until free_entry. */
struct fi_peer_rx_entry {
	struct fid_peer_srx *srx;
	fi_addr_t addr;			/* the sender, or FI_ADDR_NOTAVAIL */
	size_t msg_size;
	uint64_t tag;
	uint64_t cq_data;
	uint64_t flags;			/* of the completion */
	void *context;			/* of the receive */
	size_t count;			/* elements of iov and desc */
	void **desc;
	void *peer_context;		/* the peer's own */
	void *owner_context;		/* the owner's own */
	struct iovec *iov;
};

/* What a message is matched by. */
struct fi_peer_match_attr {
	fi_addr_t addr;
	size_t msg_size;
	uint64_t tag;
};

struct fi_ops_srx_owner {
	size_t size;
	/* Find the receive of a message. FI_SUCCESS: the entry has it. -FI_ENOENT: an entry to queue. */
	int (*get_msg)(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr, struct fi_peer_rx_entry **entry);
	int (*get_tag)(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr, struct fi_peer_rx_entry **entry);
	/* Have a message wait for a receive. */
	int (*queue_msg)(struct fi_peer_rx_entry *entry);
	int (*queue_tag)(struct fi_peer_rx_entry *entry);
	/* An address has been inserted: get_addr tells the sender of each message that waits without one, or
	 * FI_ADDR_UNSPEC if it is still not known. */
	void (*foreach_unspec_addr)(struct fid_peer_srx *srx, fi_addr_t (*get_addr)(struct fi_peer_rx_entry *entry));
	/* Give an entry back. */
	void (*free_entry)(struct fi_peer_rx_entry *entry);
};

/* What the owner calls; the peer sets them before fi_srx_context() returns. */
struct fi_ops_srx_peer {
	size_t size;
	int (*start_msg)(struct fi_peer_rx_entry *entry);
	int (*start_tag)(struct fi_peer_rx_entry *entry);
	int (*discard_msg)(struct fi_peer_rx_entry *entry);
	int (*discard_tag)(struct fi_peer_rx_entry *entry);
};

struct fid_peer_srx {
	struct fid_ep ep_fid;
	struct fi_ops_srx_owner *owner_ops;
	struct fi_ops_srx_peer *peer_ops;
};

struct fi_peer_srx_context {
	size_t size;
	struct fid_peer_srx *srx;
};


/*
 * Transfers of the peer through the owner: fi_endpoint2() with FI_PEER_TRANSFER. The owner reports how they end.
 */

/* The peer's; set before fi_endpoint2() returns. They may start further transfers, and are not called from inside one
 * another. */
struct fi_ops_transfer_peer {
	size_t size;
	ssize_t (*complete)(struct fid_ep *ep, struct fi_cq_tagged_entry *buf, fi_addr_t src_addr);
	ssize_t (*comperr)(struct fid_ep *ep, struct fi_cq_err_entry *buf);
};

struct fi_peer_transfer_context {
	size_t size;
	struct fi_info *info;		/* what the owner's endpoint can do, or NULL */
	struct fid_ep *ep;		/* the owner's */
	struct fi_ops_transfer_peer *peer_ops;
};

#ifdef __cplusplus
}
#endif

#endif /* FI_PEER_H */
