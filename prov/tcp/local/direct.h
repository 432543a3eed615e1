/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading the memory of a peer of this host, process_vm_readv(2).
 *
 * The peer has random bytes, its cookie, in its memory, and has told where. Each read ends with the cookie, in the same
 * system call. If it is there, the bytes before it were read while the peer kept its promise to leave them: it clears
 * the cookie before it gives buffers back without our answer. A process that has got the number of a dead peer has
 * another cookie, or none.
 *
 * No state, any thread.
 */
#ifndef TCP_DIRECT_H
#define TCP_DIRECT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct tcp_cookie {
	uint64_t word[2];
};

struct tcp_reader {
	pid_t pid;			/* the peer's process; 0: it is in another pid namespace */
	struct tcp_cookie *at;		/* in the peer's memory */
	struct tcp_cookie cookie;
};

/* Fill reader->pid from a connected Unix socket. 0 or -errno. */
int tcp_reader_find(struct tcp_reader *reader, int fd);
/* Read the cookie only. 0: the peer's memory can be read. -ESRCH: there is no such process, or it has no such cookie.
 * Another -errno (-EPERM, -ENOSYS): this process may not read it. */
int tcp_reader_probe(const struct tcp_reader *reader);
/*
 * Read len bytes from the peer's memory `from` to `to`. Both arrays have exactly len bytes in cnt entries, and room for
 * one entry more, which is used. 0: they were read. -EFAULT: memory of one of both ends is not valid; the peer is
 * there. Another -errno as of tcp_reader_probe(). After an error some of the bytes may have been stored.
 */
int tcp_reader_read(const struct tcp_reader *reader, struct iovec *to, size_t to_cnt, struct iovec *from,
		    size_t from_cnt, size_t len);

#endif
