/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every call that a provider makes on a file descriptor, behind one table, so that a test can fail the n-th call,
 * shorten a transfer, or count. An entry behaves, and sets errno, as the libc function of its name. All calls may be
 * made from any thread.
 */
#ifndef FAB_BASE_SOCK_H
#define FAB_BASE_SOCK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

struct fab_sock_ops {
	int (*socket)(int family, int type, int protocol);
	int (*bind)(int fd, const struct sockaddr *addr, socklen_t len);
	int (*listen)(int fd, int backlog);
	int (*accept4)(int fd, struct sockaddr *addr, socklen_t *len, int flags);
	int (*connect)(int fd, const struct sockaddr *addr, socklen_t len);
	int (*getsockname)(int fd, struct sockaddr *addr, socklen_t *len);
	int (*getpeername)(int fd, struct sockaddr *addr, socklen_t *len);
	int (*setsockopt)(int fd, int level, int name, const void *value, socklen_t len);
	int (*getsockopt)(int fd, int level, int name, void *value, socklen_t *len);
	ssize_t (*send)(int fd, const void *buf, size_t len, int flags);
	ssize_t (*sendmsg)(int fd, const struct msghdr *msg, int flags);
	ssize_t (*recv)(int fd, void *buf, size_t len, int flags);
	ssize_t (*recvmsg)(int fd, struct msghdr *msg, int flags);
	int (*sendmmsg)(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags);
	int (*recvmmsg)(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags, struct timespec *timeout);
	int (*shutdown)(int fd, int how);
	int (*close)(int fd);
	int (*epoll_create1)(int flags);
	int (*epoll_ctl)(int epfd, int op, int fd, struct epoll_event *event);
	int (*epoll_wait)(int epfd, struct epoll_event *events, int max, int timeout_ms);
	int (*eventfd)(unsigned int value, int flags);
	int (*timerfd_create)(int clock, int flags);
	int (*timerfd_settime)(int fd, int flags, const struct itimerspec *value, struct itimerspec *old);
	ssize_t (*read)(int fd, void *buf, size_t len);
	ssize_t (*write)(int fd, const void *buf, size_t len);
	int (*poll)(struct pollfd *fds, nfds_t cnt, int timeout_ms);
	int (*unread)(int fd, int *len);	/* ioctl(SIOCOUTQ) */
	int (*memfd_create)(const char *name, unsigned int flags);
	int (*ftruncate)(int fd, off_t len);
	int (*fstat)(int fd, struct stat *st);
	void *(*mmap)(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
	int (*add_seals)(int fd, int seals);	/* fcntl(F_ADD_SEALS) */
	int (*get_seals)(int fd);		/* fcntl(F_GET_SEALS) */
	/* Bytes of the memory of another process. */
	ssize_t (*process_vm_readv)(pid_t pid, const struct iovec *to, unsigned long to_cnt, const struct iovec *from,
				    unsigned long from_cnt, unsigned long flags);
	ssize_t (*process_vm_writev)(pid_t pid, const struct iovec *from, unsigned long from_cnt,
				     const struct iovec *to, unsigned long to_cnt, unsigned long flags);
	int (*pidfd_open)(pid_t pid);		/* of a process; close-on-exec */
	int (*dup)(int fd);			/* fcntl(F_DUPFD_CLOEXEC) */
	/* Set or clear O_NONBLOCK, of a descriptor that we did not open ourselves. Returns as fcntl(2). */
	int (*set_nonblock)(int fd, bool on);
};

/* The table in use: fab_sock_libc, unless a test replaced it. A test does so before it starts a thread that reads
 * it. */
extern const struct fab_sock_ops *fab_sock;
/* The table of libc, for a test to call or to put back. */
extern const struct fab_sock_ops fab_sock_libc;

/* Open a non-blocking, close-on-exec socket. Returns the descriptor, which the caller closes, or -errno. */
int fab_sock_open(int family, int type);

/* Set a socket option whose value is an int. 0 or -errno. */
int fab_sock_set_int(int fd, int level, int name, int value);

/* Fetch and clear the pending error of a socket (SO_ERROR). 0 or a positive errno; an error of getsockopt() itself is
 * returned the same way. */
int fab_sock_error(int fd);

/*
 * recv(2) and send(2) that never wait and never raise SIGPIPE. Bytes; 0 at the end of the stream (recv); -errno. They
 * are those of fab_sock, but where its entry is libc's own function, they ask the kernel directly: libc's are
 * cancellation points, which costs 60 instructions in a process with threads, and a thread that is cancelled there
 * keeps its locks. A library that replaces libc's function (librspreload, VMA, Onload, a sanitizer) gets every call.
 */
ssize_t fab_sock_recv_now(int fd, void *buf, size_t len);
ssize_t fab_sock_send_now(int fd, const void *buf, size_t len);

/* Bytes, with overhead, that the process at the other end of a Unix socket has not read. 0 if that is not known. */
unsigned fab_sock_unread(int fd);

/* The limit on open files of this process (ulimit -n), asked of the kernel at each call. UINT64_MAX: there is none. */
uint64_t fab_file_limit(void);

/* Close *fd and set it to -1; nothing happens if it is -1 already. errno is left as it was. */
void fab_sock_close(int *fd);

#endif
