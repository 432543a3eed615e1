/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared memory without a name: a sealed memfd, which cannot shrink under whoever has mapped it. Nothing is left when
 * the processes end. No state, any thread.
 */
#ifndef TCP_SHARE_H
#define TCP_SHARE_H

#include <stddef.h>

/* Make `size` bytes of zeros, mapped at *mem. 0: the caller unmaps them, and closes *fd, which a peer gets. -errno. */
int tcp_share_make(size_t size, void **mem, int *fd);
/* Map memory of a peer. 0: the caller unmaps it. -EPROTO: it is not sealed, or has another size. Another -errno. fd
 * stays the caller's, who may close it. */
int tcp_share_map(int fd, size_t size, void **mem);
/* NULL is allowed. */
void tcp_share_unmap(void *mem, size_t size);

#endif
