/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See net.h. A file is a slot of a table; its descriptor is FD_BASE and the index of the slot.
 */
#include "sim/net.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include "base/addr.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "common/net/netif.h"
#include "sim/net_udp.h"

#define FD_BASE		(1 << 16)
#define FILES		4096
#define WAITING		64
#define CONNECT_NS	127000000000ULL	/* the kernel's own limit for a connect without an answer */
#define MERGED		8		/* one in so many segments is several that were merged on their way, ... */
#define MERGED_MAX	64		/* ... so many at most */
#define RETRY_NS	1000000000ULL	/* what a cut held back arrives so long after its end, at most */

enum kind { FREE, SOCKET, DATAGRAMS, EPOLL, EVENT, TIMER, DUPLICATE };
enum state { FRESH, LISTENING, CONNECTING, UP, RESET };
enum sent { DATA, FIN, RST, SYN, SYN_ACK, REFUSED };

/* What is on its way to a socket. Its bytes are in the socket's buffer already, behind those that have arrived. */
struct segment {
	struct segment *next;
	uint64_t due_ns;
	enum sent sent;
	uint32_t len;
};

struct file {
	enum kind kind;
	unsigned node;
	bool dead;			/* of a process that was killed */
	uint32_t conn;			/* the number of its connection; 0: none */
	bool asked;			/* it has asked for it */
	/* in an epoll set: set_of */
	uint32_t events;
	epoll_data_t data;
	/* an eventfd's count; a timer's time, 0: not set; of an epoll set that had nothing: events_at[], + 1 */
	uint64_t value;
	struct net_udp *udp;		/* of DATAGRAMS; owned */
	/* a socket */
	enum state state;
	int error;
	struct sockaddr_in local, remote;
	int other;			/* -1: gone, or not there yet; of a DUPLICATE: the socket */
	int duplicates;			/* of this socket */
	bool closed;			/* only its duplicates are open */
	struct segment *flight, **flight_end;	/* on the way to here, in order */
	uint64_t flight_ns;		/* when the last of them arrives */
	uint32_t flight_len;
	uint8_t *in;			/* arrived, not read: in_len bytes from in_off on; of 2 * attr.room; or NULL */
	uint32_t in_off, in_len;
	bool in_fin;			/* the other end sends no more, once they are read */
	bool out_fin;
	uint64_t sent, acked, taken;	/* bytes */
	uint64_t begin_ns;		/* of a connect */
	int *waiting;			/* a listener's queue, of WAITING */
	uint32_t waiting_cnt;
};

static struct file files[FILES];
static int file_cnt;			/* slots in use are below */
static int16_t set_of[FILES];		/* the epoll set of a file, as its index; -1: none */
static uint64_t members[FILES][FILES / 64];	/* of an epoll set: a bit for each file */
static struct segment *spare;		/* segments that are not used */
static struct net_attr attr;
static unsigned node;
static uint64_t now_ns, hash, moved, chance, lib_chance;
static uint16_t next_port;
static uint32_t no_files, no_memory;
static bool cut[NET_NODES][NET_NODES];
static uint64_t cut_ns;			/* when the last cut began */
static uint64_t next_ns;		/* nothing arrives before, at any socket */
static uint64_t dues[FILES];		/* the same at each file */
/* By node: what came to its descriptors, and calls of net_node(). */
static uint64_t events_at[NET_NODES], named[NET_NODES];
static bool all_tell;			/* only these events make a descriptor ready: no timer and no datagram does */
static uint32_t conn_cnt;
static const struct net_watch *watch;

/* ---- chance and time ---- */

static uint64_t step(uint64_t *state)
{
	return fab_mix64(*state += 0x9e3779b97f4a7c15);
}

uint32_t net_random(uint32_t n)
{
	return (uint32_t) (step(&chance) % n);
}

static bool one_in(uint32_t n)
{
	return n && !net_random(n);
}

static uint64_t sim_random64(void)
{
	return step(&lib_chance);
}

uint64_t net_now_ns(void)
{
	return now_ns;
}

static uint64_t sim_now_ns(void)
{
	return now_ns += 20;
}

uint64_t net_moved(void)
{
	return moved;
}

uint64_t net_hash(void)
{
	return hash;
}

void net_event(uint64_t what)
{
	hash = fab_mix64(hash ^ what) + now_ns;
}

/* Something has happened at this node. */
static void stir(unsigned n)
{
	events_at[n % NET_NODES]++;
}

uint64_t net_stirs(unsigned n)
{
	return events_at[n] + named[n];
}

static void event(enum sent sent, int fd, uint64_t len)
{
	net_event((uint64_t) sent << 56 ^ (uint64_t) fd << 40 ^ len);
}

/* ---- memory ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t cnt, size_t size);
void *__real_realloc(void *ptr, size_t size);
char *__real_strdup(const char *str);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t cnt, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
char *__wrap_strdup(const char *str);

static bool no_memory_now(void)
{
	if (!one_in(no_memory))
		return false;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return no_memory_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t cnt, size_t size)
{
	return no_memory_now() ? NULL : __real_calloc(cnt, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
	return no_memory_now() ? NULL : __real_realloc(ptr, size);
}

char *__wrap_strdup(const char *str)
{
	return no_memory_now() ? NULL : __real_strdup(str);
}

void *net_alloc(size_t len)
{
	return __real_malloc(len);
}

/* ---- files ---- */

static int fail(int error)
{
	errno = error;
	return -1;
}

static struct file *file_of(int fd, enum kind kind)
{
	struct file *file = fd >= FD_BASE && fd < FD_BASE + FILES ? &files[fd - FD_BASE] : NULL;

	if (file && file->kind == DUPLICATE)
		file = &files[file->other];
	return file && file->kind == kind ? file : NULL;
}

/* The UDP socket of a descriptor, or NULL. */
static struct net_udp *udp_of(int fd)
{
	const struct file *file = file_of(fd, DATAGRAMS);

	return file ? file->udp : NULL;
}

static int index_of(const struct file *file)
{
	return (int) (file - files);
}

static int fd_of(const struct file *file)
{
	return FD_BASE + index_of(file);
}

/* From now on a file is in this epoll set and in no other; -1: in none. */
static void set_enter(int at, int set)
{
	if (set_of[at] >= 0)
		members[set_of[at]][at / 64] &= ~(1ULL << at % 64);
	set_of[at] = (int16_t) set;
	if (set >= 0)
		members[set][at / 64] |= 1ULL << at % 64;
}

/* The first file from `at` on, below `end`, that is in an epoll set; -1: none. */
static int set_next(int set, int at, int end)
{
	while (at < end) {
		uint64_t word = members[set][at / 64] >> at % 64;

		if (word) {
			at += __builtin_ctzll(word);
			return at < end ? at : -1;
		}
		at = (at / 64 + 1) * 64;
	}
	return -1;
}

static struct file *file_new(enum kind kind, unsigned owner)
{
	for (int i = 0; i < FILES; i++) {
		struct file *file = &files[i];

		if (file->kind != FREE)
			continue;
		*file = (struct file) { .kind = kind, .node = owner, .other = -1 };
		set_enter(i, -1);
		dues[i] = UINT64_MAX;
		file->flight_end = &file->flight;
		if (i >= file_cnt)
			file_cnt = i + 1;
		return file;
	}
	fprintf(stderr, "sim: more than %d files\n", FILES);
	abort();
}

static struct segment *segment_get(void)
{
	struct segment *segment = spare;

	if (!segment)
		return net_alloc(sizeof(*segment));
	spare = segment->next;
	return segment;
}

static void segment_put(struct segment *segment)
{
	segment->next = spare;
	spare = segment;
}

static void file_drop_flight(struct file *file)
{
	struct segment *segment;

	while ((segment = file->flight)) {
		file->flight = segment->next;
		segment_put(segment);
	}
	file->flight_end = &file->flight;
	file->flight_len = 0;
}

static void file_free(struct file *file)
{
	int at = index_of(file);

	for (int i = set_next(at, 0, file_cnt); i >= 0; i = set_next(at, i + 1, file_cnt))
		set_enter(i, -1);
	set_enter(at, -1);
	file_drop_flight(file);
	dues[at] = UINT64_MAX;
	free(file->in);
	free(file->waiting);
	file->in = NULL;
	file->waiting = NULL;
	file->kind = FREE;
	while (file_cnt && files[file_cnt - 1].kind == FREE)
		file_cnt--;
}

#define END_OF(file)	(&(struct net_end) { .conn = (file)->conn, .node = (file)->node, .asked = (file)->asked, \
					    .ours = &(file)->local, .theirs = &(file)->remote })

void net_watch(const struct net_watch *who)
{
	watch = who;
}

/* ---- the machine ---- */

/* One thread needs no barrier between threads: the kernel's takes longer than all else that a lock does. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	return number == SYS_membarrier ? 0 : __real_syscall(number, a, b, c, d, e, f);
}

/* The only interface. To read those of this machine for each node takes a tenth of the time. */
static int sim_getifaddrs(struct ifaddrs **list)
{
	static struct sockaddr_in addr = { .sin_family = AF_INET }, mask = { .sin_family = AF_INET };
	static struct sockaddr_in6 addr6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT },
				   mask6 = { .sin6_family = AF_INET6 };
	static char name[] = "lo";
	static struct ifaddrs ifas[] = {
		{ &ifas[1], name, IFF_UP | IFF_RUNNING | IFF_LOOPBACK, (struct sockaddr *) &addr,
		  (struct sockaddr *) &mask, .ifa_data = NULL },
		{ NULL, name, IFF_UP | IFF_RUNNING | IFF_LOOPBACK, (struct sockaddr *) &addr6,
		  (struct sockaddr *) &mask6, .ifa_data = NULL },
	};

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	mask.sin_addr.s_addr = htonl(0xff000000);
	memset(&mask6.sin6_addr, 0xff, sizeof(mask6.sin6_addr));
	*list = ifas;
	return 0;
}

static void sim_freeifaddrs(struct ifaddrs *list)
{
	(void) list;
}

static const struct fab_netif_source netif_source = { "/none", "/sys/class/net", sim_getifaddrs, sim_freeifaddrs };

/* ---- the wire ---- */

static bool is_cut(const struct file *a, const struct file *b)
{
	return cut[a->node % NET_NODES][b->node % NET_NODES];
}

void net_arrives_at(uint64_t ns)
{
	next_ns = fab_min(next_ns, ns);
}

/* Something arrives at this file at this time. */
static void arrives_at(const struct file *file, uint64_t ns)
{
	dues[index_of(file)] = fab_min(dues[index_of(file)], ns);
	net_arrives_at(ns);
}

/* Send to this socket. Its buffer has the len bytes already. */
static void wire_send(struct file *to, enum sent sent, uint32_t len)
{
	struct segment *segment = segment_get();
	uint64_t due_ns = now_ns + 1 + (attr.delay_ns ? step(&chance) % attr.delay_ns : 0);

	*segment = (struct segment) { .sent = sent, .len = len };
	to->flight_ns = segment->due_ns = fab_max(due_ns, to->flight_ns);
	arrives_at(to, segment->due_ns);
	to->flight_len += len;
	*to->flight_end = segment;
	to->flight_end = &segment->next;
}

/* Where len bytes for this socket go, which is room for all that was sent and not read. */
static uint8_t *room_for(struct file *file, size_t len)
{
	uint32_t used = file->in_len + file->flight_len;

	if (!file->in)
		file->in = net_alloc(2 * (size_t) attr.room);
	if (file->in_off + used + len > 2 * attr.room) {
		memmove(file->in, file->in + file->in_off, used);
		file->in_off = 0;
	}
	return file->in + file->in_off + used;
}

static void socket_fail(struct file *file, int error)
{
	stir(file->node);
	file->state = RESET;
	file->error = error;
	file->other = -1;
	file_drop_flight(file);
}

static struct file *other_of(const struct file *file)
{
	return file->other < 0 ? NULL : &files[file->other];
}

static struct file *listener_at(const struct sockaddr_in *addr)
{
	for (int i = 0; i < file_cnt; i++) {
		if (files[i].kind == SOCKET && files[i].state == LISTENING && !files[i].dead &&
		    files[i].local.sin_port == addr->sin_port)
			return &files[i];
	}
	return NULL;
}

/* A connect has reached the host: there is a connection now, or a refusal goes back. */
static void wire_syn(struct file *client, struct file *listener)
{
	struct file *server;

	if (listener->waiting_cnt == WAITING) {
		wire_send(client, REFUSED, 0);
		return;
	}
	server = file_new(SOCKET, listener->node);
	server->state = UP;
	server->local = listener->local;
	server->remote = client->local;
	server->conn = client->conn;
	server->other = index_of(client);
	client->other = index_of(server);
	listener->waiting[listener->waiting_cnt++] = index_of(server);
	stir(listener->node);
	wire_send(client, SYN_ACK, 0);
}

static void socket_take(struct file *file, const struct segment *segment)
{
	struct file *other = other_of(file);

	file->in_len += segment->len;
	moved += segment->len;
	file->flight_len -= segment->len;
	if (other)
		other->acked += segment->len;
}

static void wire_arrive(struct file *file, const struct segment *segment)
{
	event(segment->sent, fd_of(file), segment->len);
	stir(file->node);
	switch (segment->sent) {
	case DATA:
		socket_take(file, segment);
		break;
	case FIN:
		file->in_fin = true;
		break;
	case RST:
		socket_fail(file, ECONNRESET);
		break;
	case SYN_ACK:
		file->state = UP;
		break;
	case REFUSED:
		socket_fail(file, ECONNREFUSED);
		break;
	case SYN:
		break;
	}
}

/* A connect that has no answer yet. */
static void connect_arrive(struct file *client)
{
	struct file *listener = listener_at(&client->remote);

	if (now_ns - client->begin_ns > CONNECT_NS)
		socket_fail(client, ETIMEDOUT);
	else if (listener && is_cut(client, listener))
		client->value = now_ns + RETRY_NS;
	else if (listener)
		client->value = 0, wire_syn(client, listener);
	else
		client->value = 0, wire_send(client, REFUSED, 0);
}

/* True if what is on its way to this socket does not arrive now. */
static bool is_held(const struct file *file)
{
	const struct file *other = other_of(file);

	return other && is_cut(file, other);
}

static void deliver(struct file *file)
{
	struct segment *segment;

	if (file->state == CONNECTING && file->value && file->value <= now_ns)
		connect_arrive(file);
	while ((segment = file->flight) && segment->due_ns <= now_ns && !is_held(file)) {
		file->flight = segment->next;
		if (!file->flight)
			file->flight_end = &file->flight;
		wire_arrive(file, segment);
		segment_put(segment);
	}
}

/* When the next segment, or the answer to a connect, may arrive at this socket. */
static uint64_t next_of(const struct file *file)
{
	uint64_t ns = file->flight ? file->flight->due_ns : UINT64_MAX;

	return file->state == CONNECTING && file->value ? fab_min(ns, file->value) : ns;
}

static void deliver_all(void)
{
	if (now_ns < next_ns)
		return;
	next_ns = net_udp_deliver();
	/* what is sent meanwhile lowers it, too */
	for (int i = 0; i < file_cnt; i++) {
		if (dues[i] <= now_ns) {
			deliver(&files[i]);
			dues[i] = next_of(&files[i]);
		}
		next_ns = fab_min(next_ns, dues[i]);
	}
}

bool net_is_cut(unsigned a, unsigned b)
{
	return cut[a][b];
}

uint64_t net_next_ns(void)
{
	return next_ns;
}

void net_pass_ns(uint64_t ns)
{
	now_ns += ns;
	deliver_all();
}

/* ---- sockets ---- */

static int sim_socket(int family, int type, int protocol)
{
	struct file *file;

	if (family == AF_UNIX)
		return fail(EAFNOSUPPORT);
	if ((type & 0xf) != SOCK_STREAM && (type & 0xf) != SOCK_DGRAM)
		return fab_sock_libc.socket(family, type, protocol);
	if (one_in(no_files))
		return fail(EMFILE);
	file = file_new((type & 0xf) == SOCK_STREAM ? SOCKET : DATAGRAMS, node);
	if (file->kind == DATAGRAMS)
		file->udp = net_udp_open(node);
	all_tell &= file->kind != DATAGRAMS;
	return fd_of(file);
}

static int sim_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct file *file = file_of(fd, SOCKET);

	if (udp_of(fd))
		return net_udp_bind(udp_of(fd), addr);
	if (!file)
		return fab_sock_libc.bind(fd, addr, len);
	memcpy(&file->local, addr, sizeof(file->local));
	if (!file->local.sin_port)
		file->local.sin_port = htons(next_port++);
	return 0;
}

static int sim_listen(int fd, int backlog)
{
	struct file *file = file_of(fd, SOCKET);

	if (!file)
		return fab_sock_libc.listen(fd, backlog);
	if (file->state == LISTENING)
		return 0;
	if (listener_at(&file->local))
		return fail(EADDRINUSE);
	file->waiting = net_alloc(WAITING * sizeof(*file->waiting));
	file->state = LISTENING;
	return 0;
}

static int sim_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct file *file = file_of(fd, SOCKET);
	int got;

	if (!file)
		return fab_sock_libc.accept4(fd, addr, len, flags);
	if (file->dead)
		return fail(EINVAL);
	if (!file->waiting_cnt)
		return fail(EAGAIN);
	if (one_in(no_files))
		return fail(EMFILE);
	got = file->waiting[0];
	memmove(file->waiting, file->waiting + 1, --file->waiting_cnt * sizeof(*file->waiting));
	memcpy(addr, &files[got].remote, sizeof(struct sockaddr_in));
	*len = sizeof(struct sockaddr_in);
	return FD_BASE + got;
}

static int sim_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct file *file = file_of(fd, SOCKET);

	if (udp_of(fd)) {
		net_udp_connect(udp_of(fd), addr->sa_family);
		return 0;
	}
	if (!file)
		return fab_sock_libc.connect(fd, addr, len);
	memcpy(&file->remote, addr, sizeof(file->remote));
	if (!file->local.sin_port)
		file->local = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htons(next_port++),
						     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	file->state = CONNECTING;
	file->conn = ++conn_cnt;
	file->asked = true;
	file->begin_ns = now_ns;
	file->value = now_ns + 1 + (attr.delay_ns ? step(&chance) % attr.delay_ns : 0);
	arrives_at(file, file->value);
	event(SYN, fd, 0);
	return fail(EINPROGRESS);
}

static int give_name(const struct sockaddr *name, struct sockaddr *addr, socklen_t *len)
{
	if (!name->sa_family)
		return fail(ENOTCONN);
	memcpy(addr, name, fab_min(*len, fab_addr_len(name)));
	*len = fab_addr_len(name);
	return 0;
}

static const struct sockaddr *sa_of(const struct sockaddr_in *addr)
{
	return (const struct sockaddr *) addr;
}

static int sim_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct file *file = file_of(fd, SOCKET);

	if (udp_of(fd))
		return give_name(net_udp_name(udp_of(fd)), addr, len);
	return file ? give_name(sa_of(&file->local), addr, len) : fab_sock_libc.getsockname(fd, addr, len);
}

static int sim_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct file *file = file_of(fd, SOCKET);

	return file ? give_name(sa_of(&file->remote), addr, len) : fab_sock_libc.getpeername(fd, addr, len);
}

static int sim_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct file *file = file_of(fd, SOCKET);

	if (udp_of(fd))
		return net_udp_setsockopt(udp_of(fd), level, name, value);
	return file ? 0 : fab_sock_libc.setsockopt(fd, level, name, value, len);
}

/* Bytes that the other end has not taken from its socket yet. */
static uint32_t unread(const struct file *file)
{
	const struct file *other = other_of(file);

	return other ? other->flight_len + other->in_len : 0;
}

static int sim_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct file *file = file_of(fd, SOCKET);
	struct tcp_info info = { 0 };
	int error;

	if (udp_of(fd)) {
		error = net_udp_error(udp_of(fd));
		memcpy(value, &error, sizeof(error));
		return 0;
	}
	if (!file)
		return fab_sock_libc.getsockopt(fd, level, name, value, len);
	if (level == SOL_SOCKET && name == SO_ERROR) {
		memcpy(value, &file->error, sizeof(int));
		file->error = 0;
		return 0;
	}
	if (level != IPPROTO_TCP || name != TCP_INFO)
		return fail(ENOPROTOOPT);
	info.tcpi_bytes_received = file->taken + file->in_len;
	info.tcpi_bytes_acked = file->acked;
	info.tcpi_unacked = file->sent != file->acked;
	if (is_held(file)) {
		info.tcpi_last_ack_recv = (uint32_t) ((now_ns - cut_ns) / 1000000);
		info.tcpi_retransmits = info.tcpi_unacked ? (uint8_t) fab_min(info.tcpi_last_ack_recv / 1000, 15U) : 0;
		info.tcpi_probes = info.tcpi_unacked ? 0 : (uint8_t) fab_min(info.tcpi_last_ack_recv / 10000, 15U);
	}
	memcpy(value, &info, fab_min(*len, (socklen_t) sizeof(info)));
	return 0;
}

/* The length of the next segment of len bytes. */
static uint32_t segment_len(size_t len)
{
	size_t most = (size_t) attr.segment * (net_random(MERGED) ? 1 : MERGED_MAX);

	return 1 + net_random((uint32_t) fab_min(len, most));
}

static ssize_t sim_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct file *file = file_of(fd, SOCKET), *other;
	size_t len = 0, room, done = 0;
	uint8_t *all;

	if (udp_of(fd))
		return net_udp_send(udp_of(fd), msg);
	if (!file)
		return fab_sock_libc.sendmsg(fd, msg, flags);
	if (file->error)
		return fail(file->error);
	if (file->state == CONNECTING)
		return fail(EAGAIN);
	other = other_of(file);
	if (file->state != UP || file->out_fin || !other || file->dead)
		return fail(EPIPE);
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	room = unread(file) >= attr.room ? 0 : attr.room - unread(file);
	if (!room)
		return fail(EAGAIN);
	len = fab_min(len, room);
	if (len > 1 && one_in(attr.short_io))
		len = 1 + net_random((uint32_t) len - 1);
	all = room_for(other, len);
	for (size_t i = 0; done < len; i++) {
		size_t part = fab_min(len - done, msg->msg_iov[i].iov_len);

		memcpy(all + done, msg->msg_iov[i].iov_base, part);
		done += part;
	}
	for (done = 0; done < len;) {
		uint32_t part = segment_len(len - done);

		wire_send(other, DATA, part);
		done += part;
	}
	if (watch)
		watch->sent(END_OF(file), all, len);
	file->sent += len;
	moved += len;
	return (ssize_t) len;
}

static ssize_t sim_send(int fd, const void *buf, size_t len, int flags)
{
	struct iovec iov = { (void *) (uintptr_t) buf, len };
	const struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return file_of(fd, SOCKET) ? sim_sendmsg(fd, &msg, flags) : fab_sock_libc.send(fd, buf, len, flags);
}

/* How many of len bytes a read gives; or -1 and errno. */
static ssize_t can_read(struct file *file, size_t len)
{
	size_t n = fab_min(len, (size_t) file->in_len);

	if (n > 1 && one_in(attr.short_io))
		n = 1 + net_random((uint32_t) n - 1);
	if (n && watch)
		n = watch->may_get(END_OF(file), file->in + file->in_off, n);
	if (n || !len)
		return (ssize_t) n;
	if (file->error) {
		errno = file->error;
		file->error = 0;
		return -1;
	}
	if (file->state == RESET || file->dead || file->in_fin)
		return 0;
	return fail(file->state == UP || file->state == CONNECTING ? EAGAIN : ENOTCONN);
}

static ssize_t sim_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct file *file = file_of(fd, SOCKET);
	ssize_t n, left;
	size_t len = 0;
	uint32_t off;

	if (udp_of(fd))
		return net_udp_recv(udp_of(fd), msg, flags);
	if (!file)
		return fab_sock_libc.recvmsg(fd, msg, flags);
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	n = can_read(file, len);
	if (!n && len && watch && file->conn && !(flags & MSG_PEEK))
		watch->got_end(END_OF(file));
	if (n <= 0)
		return n;
	left = n;
	off = file->in_off;
	for (size_t i = 0; left; i++) {
		size_t part = fab_min((size_t) left, msg->msg_iov[i].iov_len);

		if (!(flags & MSG_TRUNC))
			memcpy(msg->msg_iov[i].iov_base, file->in + off, part);
		off += (uint32_t) part;
		left -= (ssize_t) part;
	}
	if (flags & MSG_PEEK)
		return n;
	if (watch)
		watch->got(END_OF(file), file->in + file->in_off, (size_t) n);
	file->in_off += (uint32_t) n;
	file->in_len -= (uint32_t) n;
	file->taken += (uint64_t) n;
	moved += (uint64_t) n;
	if (file->other >= 0)
		stir(files[file->other].node);	/* there is room again */
	return n;
}

static int sim_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags)
{
	return udp_of(fd) ? net_udp_sendmmsg(udp_of(fd), msgs, cnt) : fab_sock_libc.sendmmsg(fd, msgs, cnt, flags);
}

static int sim_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags, struct timespec *timeout)
{
	return udp_of(fd) ? net_udp_recvmmsg(udp_of(fd), msgs, cnt, flags) :
			    fab_sock_libc.recvmmsg(fd, msgs, cnt, flags, timeout);
}

static ssize_t sim_recv(int fd, void *buf, size_t len, int flags)
{
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return file_of(fd, SOCKET) ? sim_recvmsg(fd, &msg, flags) : fab_sock_libc.recv(fd, buf, len, flags);
}

static void send_end(struct file *file, enum sent sent)
{
	struct file *other = other_of(file);

	if (other && !file->out_fin)
		wire_send(other, sent, 0);
	file->out_fin = true;
	stir(file->node);
}

static int sim_shutdown(int fd, int how)
{
	struct file *file = file_of(fd, SOCKET);

	if (!file)
		return fab_sock_libc.shutdown(fd, how);
	if (file->state != UP)
		return fail(ENOTCONN);
	if (how != SHUT_RD)
		send_end(file, FIN);
	return 0;
}

/* Unread data turns the end into a reset. */
static void socket_leave(struct file *file)
{
	struct file *other = other_of(file);

	for (uint32_t i = 0; i < file->waiting_cnt; i++) {
		socket_leave(&files[file->waiting[i]]);
		file_free(&files[file->waiting[i]]);
	}
	file->waiting_cnt = 0;
	if (watch && file->conn)
		watch->closed(END_OF(file));
	if (!other)
		return;
	if (file->in_len || file->flight_len) {
		file->out_fin = false;
		send_end(file, RST);
	} else {
		send_end(file, FIN);
	}
	other->other = -1;
	file->other = -1;
	stir(other->node);
}

static int sim_close(int fd)
{
	struct file *file;

	if (fd < FD_BASE)
		return fab_sock_libc.close(fd);
	file = &files[fd - FD_BASE];
	if (file->kind == FREE || file->closed) {
		fprintf(stderr, "sim: descriptor %d is closed twice\n", fd);
		abort();
	}
	if (file->kind == DUPLICATE) {
		struct file *of = &files[file->other];

		file_free(file);
		file = of;
		if (--of->duplicates || !of->closed)
			return 0;
	}
	set_enter(index_of(file), -1);
	file->closed = true;
	if (file->duplicates)
		return 0;
	if (file->kind == SOCKET)
		socket_leave(file);
	if (file->kind == DATAGRAMS)
		net_udp_close(file->udp);
	file_free(file);
	return 0;
}

static int sim_dup(int fd)
{
	struct file *file = file_of(fd, SOCKET), *duplicate;

	if (!file)
		return fab_sock_libc.dup(fd);
	if (one_in(no_files))
		return fail(EMFILE);
	duplicate = file_new(DUPLICATE, file->node);
	duplicate->other = index_of(file);
	file->duplicates++;
	return fd_of(duplicate);
}

/* ---- epoll, eventfds, timers ---- */

static int sim_epoll_create1(int flags)
{
	(void) flags;
	return fd_of(file_new(EPOLL, node));
}

static int sim_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	struct file *set = file_of(epfd, EPOLL);
	struct file *file = fd >= FD_BASE && fd < FD_BASE + FILES ? &files[fd - FD_BASE] : NULL;

	if (!set || !file || file->kind == FREE)
		return fail(EBADF);
	if (op != EPOLL_CTL_ADD && set_of[index_of(file)] != index_of(set))
		return fail(ENOENT);
	set_enter(index_of(file), op == EPOLL_CTL_DEL ? -1 : index_of(set));
	stir(set->node);
	if (op != EPOLL_CTL_DEL) {
		file->events = ev->events;
		file->data = ev->data;
	}
	return 0;
}

static uint32_t readiness(const struct file *file);

/* True if a file in this epoll set, which may be in another one itself, is ready. */
static bool has_ready(const struct file *set)
{
	int at = index_of(set);

	for (int i = set_next(at, 0, file_cnt); i >= 0 && !set->dead; i = set_next(at, i + 1, file_cnt)) {
		if (readiness(&files[i]) & (files[i].events | EPOLLERR | EPOLLHUP))
			return true;
	}
	return false;
}

static uint32_t readiness(const struct file *file)
{
	uint32_t events = 0;

	switch (file->kind) {
	case EPOLL:
		return has_ready(file) ? EPOLLIN : 0;
	case DUPLICATE:
		return readiness(&files[file->other]);
	case EVENT:
		return file->value ? EPOLLIN : 0;
	case TIMER:
		return file->value && file->value <= now_ns ? EPOLLIN : 0;
	case DATAGRAMS:
		return net_udp_ready(file->udp);
	case SOCKET:
		break;
	default:
		return 0;
	}
	if (file->state == RESET)
		return EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDHUP;
	if (file->in_len || file->in_fin || file->waiting_cnt)
		events |= EPOLLIN;
	if (file->in_fin)
		events |= EPOLLRDHUP;
	if (file->in_fin && file->out_fin)
		events |= EPOLLHUP;
	if (file->state == UP && unread(file) < attr.room)
		events |= EPOLLOUT;
	return events;
}

/* Report members of a set from `at` on, below `end`; cnt were reported before. Returns the number of all. */
static int report_ready(const struct file *set, struct epoll_event *events, int cnt, int max, int at, int end)
{
	for (int i = set_next(index_of(set), at, end); i >= 0 && cnt < max; i = set_next(index_of(set), i + 1, end)) {
		const struct file *file = &files[i];
		uint32_t ready = readiness(file) & (file->events | EPOLLERR | EPOLLHUP);

		if (ready)
			events[cnt++] = (struct epoll_event) { .events = ready, .data = file->data };
	}
	return cnt;
}

static int sim_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
	struct file *set = file_of(epfd, EPOLL);
	uint64_t before;
	int start, cnt;

	(void) timeout_ms;
	if (!set)
		return fail(EBADF);
	deliver_all();
	before = events_at[set->node % NET_NODES] + 1;
	if (set->dead || (all_tell && set->value == before))
		return 0;
	start = (int) net_random((uint32_t) file_cnt);
	cnt = report_ready(set, events, 0, max, start, file_cnt);
	cnt = report_ready(set, events, cnt, max, 0, start);
	set->value = cnt ? 0 : before;
	return cnt;
}

static int sim_eventfd(unsigned int value, int flags)
{
	struct file *file = file_new(EVENT, node);

	(void) flags;
	file->value = value;
	return fd_of(file);
}

static int sim_timerfd_create(int clock, int flags)
{
	(void) clock, (void) flags;
	return fd_of(file_new(TIMER, node));
}

static int sim_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
	struct file *file = file_of(fd, TIMER);
	uint64_t ns = (uint64_t) value->it_value.tv_sec * 1000000000 + (uint64_t) value->it_value.tv_nsec;

	(void) old;
	if (!file)
		return fail(EBADF);
	all_tell &= !ns;
	file->value = !ns || flags & TFD_TIMER_ABSTIME ? ns : now_ns + ns;
	return 0;
}

static ssize_t sim_read(int fd, void *buf, size_t len)
{
	struct file *file = fd >= FD_BASE ? &files[fd - FD_BASE] : NULL;
	uint64_t value;

	if (!file)
		return fab_sock_libc.read(fd, buf, len);
	if (file->kind == SOCKET)
		return sim_recv(fd, buf, len, 0);
	value = file->kind == TIMER ? file->value && file->value <= now_ns : file->value;
	if (!value)
		return fail(EAGAIN);
	memcpy(buf, &value, sizeof(value));
	file->value = 0;
	return sizeof(value);
}

static ssize_t sim_write(int fd, const void *buf, size_t len)
{
	struct file *file = file_of(fd, EVENT);
	uint64_t value;

	if (!file)
		return fd >= FD_BASE ? sim_send(fd, buf, len, 0) : fab_sock_libc.write(fd, buf, len);
	memcpy(&value, buf, sizeof(value));
	file->value += value;
	stir(file->node);
	return sizeof(value);
}

/* Time passes until one of them is ready, or it is over. Other processes do not run meanwhile. */
static int sim_poll(struct pollfd *fds, nfds_t cnt, int timeout_ms)
{
	(void) fds, (void) cnt;
	net_pass_ns(timeout_ms > 0 ? (uint64_t) timeout_ms * 1000000 : 1000000);
	return 0;
}

static int sim_unread(int fd, int *len)
{
	struct file *file = file_of(fd, SOCKET);

	if (!file)
		return fail(ENOTTY);
	*len = (int) unread(file);
	return 0;
}

/* ---- begin, end, faults ---- */

static void install(void)
{
	static const struct fab_clock_ops clock = { .now_ns = sim_now_ns, .random64 = sim_random64 };
	static struct fab_sock_ops ops;

	ops = fab_sock_libc;
	ops.socket = sim_socket;
	ops.bind = sim_bind;
	ops.listen = sim_listen;
	ops.accept4 = sim_accept4;
	ops.connect = sim_connect;
	ops.getsockname = sim_getsockname;
	ops.getpeername = sim_getpeername;
	ops.setsockopt = sim_setsockopt;
	ops.getsockopt = sim_getsockopt;
	ops.send = sim_send;
	ops.sendmsg = sim_sendmsg;
	ops.recv = sim_recv;
	ops.recvmsg = sim_recvmsg;
	ops.sendmmsg = sim_sendmmsg;
	ops.recvmmsg = sim_recvmmsg;
	ops.shutdown = sim_shutdown;
	ops.close = sim_close;
	ops.epoll_create1 = sim_epoll_create1;
	ops.epoll_ctl = sim_epoll_ctl;
	ops.epoll_wait = sim_epoll_wait;
	ops.eventfd = sim_eventfd;
	ops.timerfd_create = sim_timerfd_create;
	ops.timerfd_settime = sim_timerfd_settime;
	ops.read = sim_read;
	ops.write = sim_write;
	ops.poll = sim_poll;
	ops.unread = sim_unread;
	ops.dup = sim_dup;
	fab_sock = &ops;
	fab_clock = &clock;
	fab_netif_source = &netif_source;
}

void net_begin(uint64_t seed, const struct net_attr *how)
{
	install();
	attr = *how;
	now_ns = 1000000000000;
	next_ns = UINT64_MAX;
	hash = 0;
	chance = seed;
	lib_chance = ~seed;
	next_port = 40000;
	conn_cnt = 0;
	watch = NULL;
	all_tell = true;
	memset(events_at, 0, sizeof(events_at));
	memset(named, 0, sizeof(named));
	net_udp_begin(&attr);
	net_heal();
}

unsigned net_end(void)
{
	unsigned cnt = 0;

	for (int i = file_cnt - 1; i >= 0; i--) {
		if (files[i].kind == FREE || files[i].closed)
			continue;
		cnt++;
		sim_close(FD_BASE + i);
	}
	return cnt;
}

void net_node(unsigned n)
{
	node = n;
	named[n]++;
}

void net_cut(unsigned a, unsigned b, bool on)
{
	cut[a][b] = cut[b][a] = on;
	if (on)
		cut_ns = now_ns;
}

/* The socket of a in a connection with b, or NULL. */
static struct file *socket_between(unsigned a, unsigned b)
{
	for (int i = 0; i < file_cnt; i++) {
		struct file *file = &files[i], *other = file->kind == SOCKET ? other_of(file) : NULL;

		if (other && file->node == a && other->node == b && file->state == UP)
			return file;
	}
	return NULL;
}

bool net_reset(unsigned a, unsigned b)
{
	struct file *file = socket_between(a, b);

	if (!file)
		return false;
	event(RST, fd_of(file), 0);
	socket_fail(other_of(file), ECONNRESET);
	socket_fail(file, ECONNRESET);
	return true;
}

bool net_half(unsigned a, unsigned b)
{
	struct file *file = socket_between(a, b);

	if (!file)
		return false;
	event(FIN, fd_of(file), 0);
	send_end(file, FIN);
	return true;
}

void net_jump_ns(uint64_t ns)
{
	now_ns += ns;
	cut_ns += ns;
	next_ns = 0;
	for (int i = 0; i < file_cnt; i++) {
		struct file *file = &files[i];

		if (file->kind != SOCKET)
			continue;
		dues[i] = 0;
		file->flight_ns += ns;
		file->begin_ns += ns;
		if (file->value)
			file->value += ns;
		for (struct segment *segment = file->flight; segment; segment = segment->next)
			segment->due_ns += ns;
	}
}

void net_kill(unsigned n)
{
	for (int i = 0; i < file_cnt; i++) {
		if (files[i].kind == FREE || files[i].node != n || files[i].dead)
			continue;
		if (files[i].kind == SOCKET)
			socket_leave(&files[i]);
		if (files[i].kind == DATAGRAMS)
			net_udp_kill(files[i].udp);
		files[i].dead = true;
	}
}

void net_lack_files(uint32_t n)
{
	no_files = n;
}

void net_lack_memory(uint32_t n)
{
	no_memory = n;
}

void net_heal(void)
{
	no_files = no_memory = 0;
	memset(cut, 0, sizeof(cut));
}
