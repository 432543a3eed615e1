/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The libc table behind fab_sock, and helpers over it that many callers need.
 */
#include "base/sock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* glibc declares the address argument of these as a transparent union in C, which no function pointer matches. */
static int libc_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return bind(fd, addr, len);
}

static int libc_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	return accept4(fd, addr, len, flags);
}

static int libc_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return connect(fd, addr, len);
}

static int libc_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return getsockname(fd, addr, len);
}

static int libc_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return getpeername(fd, addr, len);
}

/* The flags are int in glibc and unsigned in musl. */
static int libc_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags)
{
	return sendmmsg(fd, msgs, cnt, flags);
}

static int libc_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags, struct timespec *timeout)
{
	return recvmmsg(fd, msgs, cnt, flags, timeout);
}

static int libc_add_seals(int fd, int seals)
{
	return fcntl(fd, F_ADD_SEALS, seals);
}

static int libc_get_seals(int fd)
{
	return fcntl(fd, F_GET_SEALS);
}

static int libc_pidfd_open(pid_t pid)
{
	return syscall(SYS_pidfd_open, pid, 0);
}

static int libc_dup(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static int libc_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return flags;
	return fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

static int libc_unread(int fd, int *len)
{
	return ioctl(fd, SIOCOUTQ, len);
}

const struct fab_sock_ops fab_sock_libc = {
	.socket = socket,
	.bind = libc_bind,
	.listen = listen,
	.accept4 = libc_accept4,
	.connect = libc_connect,
	.getsockname = libc_getsockname,
	.getpeername = libc_getpeername,
	.setsockopt = setsockopt,
	.getsockopt = getsockopt,
	/* by name: accelerators of sockets (librspreload, VMA, Onload) replace these */
	.send = send,
	.sendmsg = sendmsg,
	.recv = recv,
	.recvmsg = recvmsg,
	.sendmmsg = libc_sendmmsg,
	.recvmmsg = libc_recvmmsg,
	.shutdown = shutdown,
	.close = close,
	.epoll_create1 = epoll_create1,
	.epoll_ctl = epoll_ctl,
	.epoll_wait = epoll_wait,
	.eventfd = eventfd,
	.timerfd_create = timerfd_create,
	.timerfd_settime = timerfd_settime,
	.read = read,
	.write = write,
	.poll = poll,
	.unread = libc_unread,
	.memfd_create = memfd_create,
	.ftruncate = ftruncate,
	.fstat = fstat,
	.mmap = mmap,
	.add_seals = libc_add_seals,
	.get_seals = libc_get_seals,
	.process_vm_readv = process_vm_readv,
	.process_vm_writev = process_vm_writev,
	.pidfd_open = libc_pidfd_open,
	.dup = libc_dup,
	.set_nonblock = libc_set_nonblock,
};

const struct fab_sock_ops *fab_sock = &fab_sock_libc;

/* ---- recv and send without libc ---- */

#if defined(SYS_recvfrom) && defined(SYS_sendto) && defined(__LP64__)
#define BY_NUMBER	1
#else
#define BY_NUMBER	0
#define SYS_recvfrom	0
#define SYS_sendto	0
#endif

/* libc's functions, if calls may pass them by; otherwise NULL */
static ssize_t (*plain_recv)(int fd, void *buf, size_t len, int flags);
static ssize_t (*plain_send)(int fd, const void *buf, size_t len, int flags);

/* The object that has an address. NULL: not known. */
static const void *object_of(const void *addr)
{
	Dl_info info;

	return dladdr(addr, &info) ? info.dli_fbase : NULL;
}

/* The linker has found libc's recv and send, and no other ones. pathconf() stands for libc: nobody replaces it. In a
 * static program all are in one object, which tells nothing. */
static __attribute__((constructor)) void find_plain(void)
{
	const void *libc = object_of((const void *) pathconf);

	if (!BY_NUMBER || !libc || libc == object_of(&plain_recv) || object_of((const void *) recv) != libc ||
	    object_of((const void *) send) != libc)
		return;
	plain_recv = recv;
	plain_send = send;
}

/* The system call that recvfrom(2) and sendto(2) are, without an address. Bytes or -errno. */
static inline ssize_t by_number(long number, int fd, const void *buf, size_t len, long flags)
{
#ifdef __x86_64__
	register long r10 __asm__("r10") = flags, r8 __asm__("r8") = 0, r9 __asm__("r9") = 0;
	ssize_t n;

	__asm__ volatile("syscall" : "=a" (n)
			 : "a" (number), "D" ((long) fd), "S" (buf), "d" (len), "r" (r10), "r" (r8), "r" (r9)
			 : "rcx", "r11", "memory");
	return n;
#else
	ssize_t n = syscall(number, (long) fd, buf, len, flags, 0L, 0L);

	return n < 0 ? -errno : n;
#endif
}

ssize_t fab_sock_recv_now(int fd, void *buf, size_t len)
{
	ssize_t n;

	if (__builtin_expect(fab_sock->recv == plain_recv, 1))
		return by_number(SYS_recvfrom, fd, buf, len, MSG_DONTWAIT);
	n = fab_sock->recv(fd, buf, len, MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

ssize_t fab_sock_send_now(int fd, const void *buf, size_t len)
{
	ssize_t n;

	if (__builtin_expect(fab_sock->send == plain_send, 1))
		return by_number(SYS_sendto, fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	n = fab_sock->send(fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

/* ---- helpers ---- */

int fab_sock_open(int family, int type)
{
	int fd = fab_sock->socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

unsigned fab_sock_unread(int fd)
{
	int len;

	return fab_sock->unread(fd, &len) ? 0 : len;
}

int fab_sock_set_int(int fd, int level, int name, int value)
{
	return fab_sock->setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

int fab_sock_error(int fd)
{
	socklen_t len = sizeof(int);
	int error = 0;

	return fab_sock->getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) ? errno : error;
}

uint64_t fab_file_limit(void)
{
	struct rlimit lim;

	return getrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur == RLIM_INFINITY ? UINT64_MAX : lim.rlim_cur;
}

void fab_sock_close(int *fd)
{
	int saved = errno;

	if (*fd < 0)
		return;
	fab_sock->close(*fd);
	*fd = -1;
	errno = saved;
}
