/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Providers that share objects - fi_peer(3). One provider (the owner) has the program's objects, and another (the peer)
 * puts its results into them. So a program reads one queue although messages come through, for instance, shared memory
 * and a network.
 *
 * For each kind of object the owner makes a struct fid_peer_*. Its fid refers to the owner's object, and the peer calls
 * its owner_ops. The owner opens the peer's object with flag FI_PEER, and passes a struct fi_peer_*_context that points
 * to it in place of the context. A peer that does not support the kind returns -FI_EINVAL. The owner keeps the struct
 * until the peer's object is closed.
 *
 * Owner and peer must be of the same release: nothing here is kept compatible, and the sizes in the structs are only
 * for checking that.
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
	/* Set attr to the current attributes of the vector. */
	int (*query)(struct fid_peer_av *av, struct fi_av_attr *attr);
	/* The fi_addr_t of a local endpoint; FI_ADDR_NOTAVAIL if its address is not in the vector. */
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
	/* Get the members. *count: in the room of addr, out the number of members; -FI_ETOOSMALL: there are more than
	 * room. */
	int (*members)(struct fid_peer_av_set *av, fi_addr_t *addr, size_t *count);
};

struct fid_peer_av_set {
	struct fid fid;
	struct fi_ops_av_set_owner *owner_ops;
};

struct fi_peer_av_set_context {
	size_t size;
	struct fi_peer_av_set *av_set;	/* a struct fid_peer_av_set, under a name without a declaration */
};


/*
 * Completion queues: fi_cq_open(). The owner drives the progress of a peer with manual progress by calling fi_cq_read()
 * of the peer's queue with a count of 0; that queue never has entries. The owner does locking and waking, and handles a
 * full queue. Addresses are those of the peer's address vector.
 */
struct fi_ops_cq_owner {
	size_t size;
	/* Report a success. Values that the format of the queue lacks are ignored. */
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
 * Domains: fi_domain2(); event queues: fi_eq_open(). The peer uses the owner's object itself, for registering memory or
 * reporting events.
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
 * used in order, whichever provider a message comes through.
 *
 *   message arrives at the peer -> get_msg or get_tag
 *	FI_SUCCESS: a receive matches -> the peer puts the message into the entry's iov, reports it, free_entry
 *	-FI_ENOENT: none matches -> the peer keeps the message, notes it in peer_context, queue_msg or queue_tag
 *	    a receive is posted -> the owner fills in the entry and calls start_msg or start_tag; then as above
 *	    the program drops it -> discard_msg or discard_tag; nothing is reported
 *
 * Between get and queue of one message there is no such call for another; ep_fid has the lock of the receiver.
 */

/* A message and its receive. The owner lends the entry to the peer from get, or from start, until free_entry. */
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

/* The values for matching a message. */
struct fi_peer_match_attr {
	fi_addr_t addr;
	size_t msg_size;
	uint64_t tag;
};

struct fi_ops_srx_owner {
	size_t size;
	/* Find the receive of a message. FI_SUCCESS: the entry has the receive. -FI_ENOENT: no receive matches, and the
	 * entry is for queue_*(). */
	int (*get_msg)(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr, struct fi_peer_rx_entry **entry);
	int (*get_tag)(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr, struct fi_peer_rx_entry **entry);
	/* Queue a message until a receive matches. */
	int (*queue_msg)(struct fi_peer_rx_entry *entry);
	int (*queue_tag)(struct fi_peer_rx_entry *entry);
	/* An address was inserted. The owner calls get_addr for each queued message without a sender; it returns the
	 * sender, or FI_ADDR_UNSPEC if it is still unknown. */
	void (*foreach_unspec_addr)(struct fid_peer_srx *srx, fi_addr_t (*get_addr)(struct fi_peer_rx_entry *entry));
	/* Return an entry to the owner. */
	void (*free_entry)(struct fi_peer_rx_entry *entry);
};

/* Functions that the owner calls. The peer sets them before fi_srx_context() returns. */
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
 * Transfers of the peer through the owner: fi_endpoint2() with FI_PEER_TRANSFER. The owner reports their results.
 */

/* Functions of the peer, set before fi_endpoint2() returns. They may start further transfers, and are not called
 * recursively. */
struct fi_ops_transfer_peer {
	size_t size;
	ssize_t (*complete)(struct fid_ep *ep, struct fi_cq_tagged_entry *buf, fi_addr_t src_addr);
	ssize_t (*comperr)(struct fid_ep *ep, struct fi_cq_err_entry *buf);
};

struct fi_peer_transfer_context {
	size_t size;
	struct fi_info *info;		/* the capabilities of the owner's endpoint, or NULL */
	struct fid_ep *ep;		/* the owner's */
	struct fi_ops_transfer_peer *peer_ops;
};

#ifdef __cplusplus
}
#endif

#endif /* FI_PEER_H */
