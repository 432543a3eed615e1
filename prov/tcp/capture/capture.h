/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_CAPTURE: a pcapng file with all bytes of the streams of this process, fi_capture(7). Each stream, over whatever
 * carrier, looks like a TCP connection between the addresses of its two ends. Nothing is captured unless
 * tcp_capture_on() says so: callers ask it when a stream or a handshake begins, never on the data path
 * (stream/io_capture.c).
 *
 * A packet is in the file when the call that captured it returns; nothing is buffered. When the file cannot be written,
 * the capture ends with a warning. Any thread; one lock, which is taken inside of an engine's.
 */
#ifndef TCP_CAPTURE_H
#define TCP_CAPTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>
#include "base/addr.h"

extern atomic_bool tcp_capture_is_on;

/* Read FI_CAPTURE, and open the file that it names. Once, before any stream. */
void tcp_capture_read(void);
/* Open the file of this name, with %p for the process, or one in the folder of this name. Without success a warning
 * says why. Without effect if that was done. */
void tcp_capture_open(const char *name);
/* End the capture: close the file, and forget all streams. */
void tcp_capture_close(void);

static inline bool tcp_capture_on(void)
{
	return __builtin_expect(atomic_load_explicit(&tcp_capture_is_on, memory_order_relaxed), 0);
}

/* A stream between two processes, before its handshake. Between processes of one host many have the same addresses. */
struct tcp_capture_stream {
	union fab_sockaddr ours, theirs;	/* family 0: unknown */
	bool local;				/* not over TCP: the port of the connecting end is made up */
	bool connects;				/* this is the connecting end */
};

/* The stream of descriptor fd begins, unless it has begun before. */
void tcp_capture_begin(int fd, const struct tcp_capture_stream *stream);
/* The first len bytes of iov were sent (out) or received. Without effect if the stream has not begun. */
void tcp_capture_put(int fd, bool out, const struct iovec *iov, size_t len);
/* The next packet has a comment for the reader of the file. The text is constant. */
void tcp_capture_note(int fd, const char *comment);
/* The stream ends, and fd is about to be closed. Without effect on a descriptor that is none of a stream, or -1. */
void tcp_capture_end(int fd);

#endif
