/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What compare measures: two processes on this machine, one endpoint each, spinning unless the way says otherwise.
 * Public API only, so that the same sources are built against any libfabric; the floors use no libfabric at all.
 * Single-threaded. A failure ends the process with a message and exit code 1, and the other one with it: their socket
 * pair closes.
 *
 *   bench.c         command line, two processes, how often, the clock
 *   bench_fabric.c  an endpoint and its peer's; messages and RMA
 *   bench_floor.c   a TCP connection, a ring in shared memory, process_vm_readv(), without libfabric
 *   bench_memory.c  what a posted receive and a connected peer take
 */
#ifndef COMPARE_BENCH_H
#define COMPARE_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#define WINDOW_MAX 1024

/* What both processes know. */
struct bench {
	const char *provider, *address;
	enum fi_ep_type ep_type;
	bool parent;
	int peer_fd;                    /* a stream socket to the other process; closed by the end of the process */
	size_t size;                    /* bytes of a message */
	long window;                    /* messages of a stream under way; 0: ping-pong */
	long count;                     /* how often, or how many at a time for memory */
	bool sleeps;                    /* wait in fi_cq_sread() */
};

/* A way to move messages. run() moves `count` of them, from the parent, or there and back when window is 0; when it
 * returns in the parent, all of them have arrived. */
struct way {
	const char *name;
	long transfers;                 /* messages of a ping-pong */
	void (*open)(struct bench *b);
	void (*run)(struct bench *b, long count);
	void (*close)(struct bench *b);
};

/* bench_fabric.c: tagged messages, the same with sleeping ends, messages, RMA writes and reads. */
extern const struct way fabric_ways[6];
/* bench_floor.c: tcp, shm, and copy. The shared memory is made before there are two processes. */
extern const struct way floor_ways[3];
void floor_prepare(void);

/* bench_memory.c: print bytes a receive, or a peer, and how many there were. Called in both processes. */
void memory_of_receives(struct bench *b);
void memory_of_peers(struct bench *b);

/* bench.c: end the process unless ret is at least 0. */
void bench_check(long ret, const char *what);

/* Give len bytes to the other process, and take as many from it. */
void bench_swap(struct bench *b, const void *mine, void *theirs, size_t len);

/* bench_fabric.c: parts for others. */
struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct fid_ep *ep;
	fi_addr_t peer;
	long sent, received;            /* completions so far */
	bool sleeps;                    /* node_poll() waits in fi_cq_sread() */
};

/* Open all but the connection; caps is FI_TAGGED, FI_MSG or FI_RMA | FI_MSG. rx_size 0 is the provider's own. */
void node_open(struct bench *b, struct node *node, uint64_t caps, size_t rx_size);
/* Another endpoint of an RDM node's domain, enabled. */
struct fid_ep *node_ep(struct node *node);
/* The name of an endpoint, in 64 bytes. */
void node_name(struct fid_ep *ep, char *name);
fi_addr_t node_insert(struct node *node, const char *name);
/* Connect the two nodes, or learn the peer's name. */
void node_join(struct bench *b, struct node *node);
void node_close(struct node *node);
/* Read the queue once. */
void node_poll(struct node *node);
/* A context for the next operation. */
void *node_ctx(void);

#endif /* COMPARE_BENCH_H */
