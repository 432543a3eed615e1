/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions that peers of this host reach by themselves: the target's side. The initiator's is reach.h.
 *
 * A domain has a table of windows in its private memory. A window describes one region: its key, its memory, its
 * access. Peers read the table with process_vm_readv(2), and the memory with process_vm_readv(2) and
 * process_vm_writev(2). Only what makes such an access safe is in shared memory, next to the rings of each stream:
 *
 *   the target writes the permit: where the table is, and a generation. 0: no access. It changes with each window
 *   that opens or closes
 *   the initiator writes `busy`: the number of the window that it accesses, or 0
 *
 *   initiator                                      target, fi_close() of a region
 *   gen = permit.gen; read the window, or know     erase the window
 *   it from a read with the same gen               permit.gen = another one, of each stream
 *   busy = number                                  full barrier
 *   full barrier                                   wait until no stream is busy with the number
 *   permit.gen == gen? copy : do not
 *   busy = 0
 *
 * So after fi_close() no byte of the region is read or written. A stream that ends has its permit taken back, and its
 * memory stays mapped for as long as the peer is busy. The wait ends when the peer has closed its socket or has ended.
 * It gives up after WAIT_MS (windows.c), where a peer was stopped between its check and the end of its copy.
 *
 * A region has a window if the target has nothing to do with an access: one piece of memory of TCP_WINDOW_MIN bytes or
 * more, no authorization key, no counter. A stream gets a permit if its endpoint has no counter of remote accesses.
 * Windows and permits save the initiator a way, and nothing else: without one, and whenever a check fails, the access
 * is a frame, and the target answers.
 *
 * A hostile initiator can stay busy for as long as it lives: fi_close() of a region fails after WAIT_MS each time, and
 * so does fi_mr_bind() of a counter. So can it keep the memory and the sockets of LINGER_MAX streams. A hostile target
 * can let the initiator write into the target.
 *
 * Any thread; a lock of the domain's windows guards them. An engine's lock may be held, except for the calls of
 * struct fab_mr_watch. In a child of fork(2), which has no shared memory, those and joining do nothing.
 */
#ifndef TCP_WINDOWS_H
#define TCP_WINDOWS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/list.h"
#include "common/regions/regions.h"
#include "tcp/local/direct.h"

#define TCP_WINDOW_MIN		4096		/* bytes of the shortest region with a window, and of the shortest
						 * access (decisions/local-peers.md) */
#define TCP_WINDOW_CNT		4096		/* of a domain; a region that finds no place has none */
#define TCP_WINDOW_PROBE	4		/* a key's window is one of so many, from tcp_window_place() on */

/* A window in the table. */
struct tcp_window {
	uint64_t number;		/* of the region, never used again; 0: free */
	uint64_t key;
	uint64_t base;			/* as struct fab_mr.base */
	uint64_t len;			/* bytes */
	uint64_t at;			/* address of the first one */
	uint64_t access;		/* FI_REMOTE_READ, FI_REMOTE_WRITE */
	uint64_t check;			/* tcp_window_check(), or the window is being changed or closed */
};

/* The table, which peers read. */
struct tcp_window_table {
	struct tcp_cookie cookie;	/* 0 once it is not valid any more */
	struct tcp_window window[TCP_WINDOW_CNT + TCP_WINDOW_PROBE - 1];
};

/* Shared, written by the target. */
struct tcp_permit {
	_Atomic uint64_t gen;
	uint64_t table;			/* address of the struct tcp_window_table; constant once gen is not 0 */
	struct tcp_cookie cookie;	/* likewise: the table's */
};

/* Where the windows for a key begin. */
uint32_t tcp_window_place(uint64_t key);
/* A number that depends on all members but check. */
uint64_t tcp_window_check(const struct tcp_window *window);

struct tcp_windows;

/* A stream whose peer may get a permit. Embedded in its memory; zeroed before. */
struct tcp_visitor {
	struct tcp_windows *windows;	/* borrowed: of the domain; NULL: has not joined */
	struct fab_list link;		/* in it */
	struct tcp_permit *permit;	/* borrowed, shared with the peer */
	_Atomic uint32_t *busy;		/* borrowed, shared with the peer: number of a slot, from 1 */
	pid_t pid;			/* the peer's process */
	int fd;				/* the stream's socket, or -1. Borrowed until it has left, then owned */
	uint64_t gen;			/* of the permit; 0: none was given */
	bool left, lingers;
	/* The peer has stopped to be busy: free the stream's memory, for tcp_windows_release(). */
	void (*free)(struct tcp_visitor *visitor);
};

/* Give the map, of a domain that was just opened, windows for its regions. Without memory it has none. */
void tcp_windows_open(struct fab_mr_map *map);
/* A stream begins: its peer may reach the regions of the map from now on. permit and busy are shared with the peer,
 * and zeros. pid is the peer's process; nothing is done if it is 0, as in another pid namespace. fd is the stream's
 * socket, open until tcp_windows_leave(). */
void tcp_windows_join(struct fab_mr_map *map, struct tcp_visitor *visitor, struct tcp_permit *permit,
		      _Atomic uint32_t *busy, pid_t pid, int fd);
/* The stream ends: its peer must not begin another access. While the peer is busy its socket is needed: then *fd, which
 * no epoll instance has, is taken over and becomes -1. NULL: there is no socket to give. Idempotent. */
void tcp_windows_leave(struct tcp_visitor *visitor, int *fd);
/* After tcp_windows_leave(): true if the peer is busy no more, and the memory may be freed. False: visitor->free will
 * be called later. */
bool tcp_windows_release(struct tcp_visitor *visitor);

#endif
