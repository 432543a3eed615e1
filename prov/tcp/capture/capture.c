/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See capture.h. Owns the file, the table of streams by descriptor, and the buffer for one packet; all under one lock.
 * A child of fork(2) does not write to the file of its parent: it opens its own if the name has %p, or is a folder.
 */
#include "config.h"
#include "tcp/capture/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/forks.h"
#include "base/lock.h"
#include "base/strbuf.h"
#include "tcp/params/params.h"

#define PAYLOAD_MAX	61440		/* bytes of a stream in one packet; IP packets have 64 KiB at most */
#define NOTE_MAX	200
#define LOCAL_PORT	49152		/* from here on, ports of connecting ends of this host */

enum { TCP_FIN = 1, TCP_SYN = 2, TCP_PSH = 8, TCP_ACK = 16 };

/* Blocks and options of pcapng, in the byte order of the host. */
enum { BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_PACKET = 6 };
enum { OPT_END = 0, OPT_COMMENT = 1, OPT_PACKET_FLAGS = 2, OPT_IF_NAME = 2, OPT_APPLICATION = 4, OPT_IF_TSRESOL = 9 };
enum { LINKTYPE_RAW = 101 };		/* packets begin with the IP header */
enum { FLAG_INBOUND = 1, FLAG_OUTBOUND = 2 };

struct ipv4 {
	uint8_t version_len, tos;
	uint16_t len, id, fragment;
	uint8_t ttl, protocol;
	uint16_t sum;
	struct in_addr from, to;
};

struct ipv6 {
	uint32_t version;
	uint16_t len;
	uint8_t next, hops;
	struct in6_addr from, to;
};

struct tcphdr_made {
	uint16_t from, to;
	uint32_t seq, ack;
	uint8_t words, flags;
	uint16_t window, sum, urgent;
};

struct capture_stream {
	union fab_sockaddr ours, theirs;
	uint32_t first;			/* sequence number of the SYN of both ends */
	uint32_t seq[2];		/* of the next byte: theirs, ours */
	const char *note;		/* comment of the next packet, or NULL */
	bool mirrored;			/* both ends are in this process, with the same addresses: each writes only what
					 * it sends */
};

atomic_bool tcp_capture_is_on;

static struct {
	struct fab_lock lock;
	struct fab_fork_guard guard;
	uint32_t forks;			/* fab_fork_cnt of the process that has opened the file */
	char *name;			/* owned: FI_CAPTURE */
	int fd;				/* owned; -1: none */
	uint64_t len;			/* of the file */
	struct capture_stream **stream;	/* by descriptor; owned, as the streams are */
	size_t stream_cnt;
	uint32_t begun;			/* streams so far */
	uint8_t *block;			/* room for one block; owned */
	size_t used;
} capture = { .fd = -1 };

/* ---- blocks ---- */

static void block_add(const void *from, size_t len)
{
	if (len)	/* otherwise it may be NULL */
		memcpy(capture.block + capture.used, from, len);
	capture.used += len;
}

static void block_pad(void)
{
	while (capture.used % 4)
		capture.block[capture.used++] = 0;
}

static void block_add_option(uint16_t code, const void *value, uint16_t len)
{
	const uint16_t head[2] = { code, len };

	block_add(head, sizeof(head));
	block_add(value, len);
	block_pad();
}

static void block_begin(uint32_t type)
{
	capture.used = 0;
	block_add((uint32_t [2]) { type, 0 }, 8);
}

/* The file is `len` bytes longer than the limit of the process allows: write(2) would raise SIGXFSZ. */
static bool file_is_over_limit(size_t len)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	       capture.len + len > limit.rlim_cur;
}

/* Write a block. 0 or -errno: a part of it may be in the file. */
static int file_write(const uint8_t *block, size_t len)
{
	if (file_is_over_limit(len))
		return -EFBIG;
	while (len) {
		ssize_t n = write(capture.fd, block, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			block += n;
			len -= n;
		}
	}
	return 0;
}

/* The capture ends. */
static void capture_stop(void)
{
	atomic_store_explicit(&tcp_capture_is_on, false, memory_order_relaxed);
	if (capture.fd >= 0)
		close(capture.fd);
	capture.fd = -1;
	for (size_t i = 0; i < capture.stream_cnt; i++)
		free(capture.stream[i]);
	free(capture.stream);
	capture.stream = NULL;
	capture.stream_cnt = 0;
}

/* Complete the block with its length, and write it. Without success the capture ends. */
static void block_end(void)
{
	uint32_t size = capture.used + 4;
	int ret;

	block_add(&size, sizeof(size));
	memcpy(capture.block + 4, &size, sizeof(size));
	ret = file_write(capture.block, size);
	if (!ret) {
		capture.len += size;
		return;
	}
	/* what is left of the block would make the file invalid */
	if (ftruncate(capture.fd, (off_t) capture.len))
		TCP_WARN(FI_LOG_CORE, "FI_CAPTURE: the last packet of the file is cut off\n");
	TCP_WARN(FI_LOG_CORE, "FI_CAPTURE: the capture ends after %llu bytes: %s\n",
		 (unsigned long long) capture.len, strerror(-ret));
	capture_stop();
}

/* ---- the file ---- */

/* FI_CAPTURE with its %p, or the name of a file in the folder that it names. False: too long. */
static bool file_name(char *path, size_t size)
{
	struct fab_strbuf sb;
	struct stat st;

	fab_strbuf_init(&sb, path, size);
	for (const char *at = capture.name; *at; at++) {
		if (at[0] == '%' && (at[1] == 'p' || at[1] == '%')) {
			at++;
			if (*at == 'p')
				fab_strbuf_printf(&sb, "%d", (int) getpid());
			else
				fab_strbuf_putc(&sb, '%');
		} else {
			fab_strbuf_putc(&sb, *at);
		}
	}
	if (!fab_strbuf_truncated(&sb) && !stat(path, &st) && S_ISDIR(st.st_mode))
		fab_strbuf_printf(&sb, "/weft_%d.pcapng", (int) getpid());
	return !fab_strbuf_truncated(&sb);
}

static void file_begin(void)
{
	static const char application[] = PACKAGE_NAME " " PACKAGE_VERSION;
	const uint32_t order = 0x1a2b3c4d;
	const uint16_t version[2] = { 1, 0 };
	const uint64_t unknown = UINT64_MAX;
	const uint8_t nanoseconds = 9;

	block_begin(BLOCK_SECTION);
	block_add(&order, sizeof(order));
	block_add(version, sizeof(version));
	block_add(&unknown, sizeof(unknown));
	block_add_option(OPT_APPLICATION, application, sizeof(application) - 1);
	block_add_option(OPT_END, NULL, 0);
	block_end();
	if (capture.fd < 0)
		return;
	block_begin(BLOCK_INTERFACE);
	block_add((uint16_t [4]) { LINKTYPE_RAW }, 8);
	block_add_option(OPT_IF_NAME, "tcp", 3);
	block_add_option(OPT_IF_TSRESOL, &nanoseconds, 1);
	block_add_option(OPT_END, NULL, 0);
	block_end();
}

/* Open the file of this process. A file that exists is never written to. 0 or -errno. */
static int file_open(void)
{
	char path[PATH_MAX];

	if (!file_name(path, sizeof(path)))
		return -ENAMETOOLONG;
	capture.forks = fab_fork_cnt;
	capture.len = 0;
	capture.fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (capture.fd < 0)
		return -errno;
	file_begin();
	return 0;
}

static void file_tell(int err)
{
	TCP_WARN(FI_LOG_CORE, "FI_CAPTURE=%.200s: no file can be created there: %s; nothing is captured. A file that "
		 "exists is not replaced; %%p in the name stands for the number of the process\n", capture.name,
		 strerror(err));
}

/* The first call in a child of fork(2). Its streams are those of its parent, which it does not use. */
static void file_leave_parents(void)
{
	int ret;

	capture_stop();
	ret = file_open();
	if (ret)
		file_tell(-ret);
	atomic_store_explicit(&tcp_capture_is_on, capture.fd >= 0, memory_order_relaxed);
}

/* ---- packets ---- */

static void put_address(const union fab_sockaddr *addr, struct in_addr *host)
{
	host->s_addr = addr->sa.sa_family == AF_INET ? addr->sin.sin_addr.s_addr : 0;
}

static void put_ipv4(const union fab_sockaddr *from, const union fab_sockaddr *to, size_t len)
{
	struct ipv4 ip = { .version_len = 0x45, .fragment = htons(0x4000), .ttl = 64, .protocol = IPPROTO_TCP };
	uint16_t word[sizeof(ip) / 2];
	uint32_t sum = 0;

	ip.len = htons((uint16_t) (sizeof(ip) + len));
	put_address(from, &ip.from);
	put_address(to, &ip.to);
	memcpy(word, &ip, sizeof(ip));
	for (size_t i = 0; i < sizeof(ip) / 2; i++)
		sum += word[i];
	sum = (sum & 0xffff) + (sum >> 16);
	ip.sum = (uint16_t) ~((sum & 0xffff) + (sum >> 16));
	block_add(&ip, sizeof(ip));
}

static void put_ipv6(const union fab_sockaddr *from, const union fab_sockaddr *to, size_t len)
{
	struct ipv6 ip = { .version = htonl(6u << 28), .len = htons((uint16_t) len), .next = IPPROTO_TCP, .hops = 64,
			   .from = from->sin6.sin6_addr, .to = to->sin6.sin6_addr };

	block_add(&ip, sizeof(ip));
}

static void put_payload(const struct iovec **iov, size_t *skip, size_t len)
{
	while (len) {
		size_t n = (*iov)->iov_len - *skip < len ? (*iov)->iov_len - *skip : len;

		if (n)
			block_add((const uint8_t *) (*iov)->iov_base + *skip, n);
		*skip += n;
		len -= n;
		if (*skip == (*iov)->iov_len) {
			++*iov;
			*skip = 0;
		}
	}
}

/* Write a packet with len bytes from *iov on, after skip bytes of its first entry; both move on. */
static void put_packet(struct capture_stream *stream, bool out, uint8_t flags, const struct iovec **iov, size_t *skip,
		       size_t len)
{
	static const uint8_t scale[4] = { 1, 3, 3, 14 };	/* options of a SYN: windows are times 2^14 */
	const size_t option_len = flags & TCP_SYN ? sizeof(scale) : 0;
	const union fab_sockaddr *from = out ? &stream->ours : &stream->theirs;
	const union fab_sockaddr *to = out ? &stream->theirs : &stream->ours;
	const bool six = from->sa.sa_family == AF_INET6 && to->sa.sa_family == AF_INET6;
	const struct tcphdr_made tcp = {
		.from = htons(fab_addr_port(&from->sa)), .to = htons(fab_addr_port(&to->sa)),
		.seq = htonl(stream->seq[out]), .ack = flags & TCP_ACK ? htonl(stream->seq[!out]) : 0,
		.words = (uint8_t) ((sizeof(tcp) + option_len) / 4 << 4), .flags = flags, .window = 0xffff,
	};
	const uint32_t ip_len = (six ? sizeof(struct ipv6) : sizeof(struct ipv4)) + sizeof(tcp) + option_len + len;
	const uint32_t direction = out ? FLAG_OUTBOUND : FLAG_INBOUND;
	const uint64_t ns = fab_real_ns();

	block_begin(BLOCK_PACKET);
	block_add((uint32_t [5]) { 0, (uint32_t) (ns >> 32), (uint32_t) ns, ip_len, ip_len }, 20);
	(six ? put_ipv6 : put_ipv4)(from, to, sizeof(tcp) + option_len + len);
	block_add(&tcp, sizeof(tcp));
	block_add(scale, option_len);
	if (len)
		put_payload(iov, skip, len);
	block_pad();
	block_add_option(OPT_PACKET_FLAGS, &direction, sizeof(direction));
	if (stream->note)
		block_add_option(OPT_COMMENT, stream->note, (uint16_t) strnlen(stream->note, NOTE_MAX));
	stream->note = NULL;
	block_add_option(OPT_END, NULL, 0);
	stream->seq[out] += (uint32_t) len + !!(flags & (TCP_SYN | TCP_FIN));
	block_end();
}

static void put_empty(struct capture_stream *stream, bool out, uint8_t flags)
{
	put_packet(stream, out, flags, NULL, NULL, 0);
}

/* ---- streams ---- */

/* Take the lock, if something is captured. */
static bool capture_enter(void)
{
	fab_lock_acquire(&capture.lock);
	if (capture.forks != fab_fork_cnt && tcp_capture_on())
		file_leave_parents();
	if (tcp_capture_on())
		return true;
	fab_lock_release(&capture.lock);
	return false;
}

static struct capture_stream *stream_find(int fd)
{
	return fd >= 0 && (size_t) fd < capture.stream_cnt ? capture.stream[fd] : NULL;
}

/* Make room in the table. False: no memory. */
static bool stream_room(int fd)
{
	size_t cnt = capture.stream_cnt ? capture.stream_cnt : 64;
	struct capture_stream **grown;

	if ((size_t) fd < capture.stream_cnt)
		return true;
	while (cnt <= (size_t) fd)
		cnt *= 2;
	grown = realloc(capture.stream, cnt * sizeof(*grown));
	if (!grown)
		return false;
	memset(grown + capture.stream_cnt, 0, (cnt - capture.stream_cnt) * sizeof(*grown));
	capture.stream = grown;
	capture.stream_cnt = cnt;
	return true;
}

/* The other end of a TCP connection within this process. */
static struct capture_stream *stream_mirror(const struct capture_stream *stream)
{
	for (size_t i = 0; i < capture.stream_cnt; i++) {
		struct capture_stream *other = capture.stream[i];

		if (other && fab_addr_equal(&other->ours.sa, &stream->theirs.sa) &&
		    fab_addr_equal(&other->theirs.sa, &stream->ours.sa))
			return other;
	}
	return NULL;
}

static void stream_begin(int fd, const struct tcp_capture_stream *what)
{
	struct capture_stream *stream = stream_room(fd) ? calloc(1, sizeof(*stream)) : NULL, *mirror;

	if (!stream)
		return;		/* it is missing in the file, and has no packets later */
	stream->ours = what->ours;
	stream->theirs = what->theirs;
	capture.begun++;
	if (what->local)
		fab_addr_set_port(&(what->connects ? &stream->ours : &stream->theirs)->sa,
				  (uint16_t) (LOCAL_PORT + capture.begun % (65536 - LOCAL_PORT)));
	mirror = what->local || !what->ours.sa.sa_family || !what->theirs.sa.sa_family ? NULL : stream_mirror(stream);
	capture.stream[fd] = stream;
	if (mirror) {
		stream->mirrored = mirror->mirrored = true;
		stream->first = mirror->first;
		stream->seq[0] = stream->seq[1] = stream->first + 1;
		return;
	}
	/* another stream between the same addresses begins elsewhere */
	stream->seq[0] = stream->seq[1] = stream->first = capture.begun << 20;
	put_empty(stream, what->connects, TCP_SYN);
	if (tcp_capture_on())
		put_empty(stream, !what->connects, TCP_SYN | TCP_ACK);
	if (tcp_capture_on())
		put_empty(stream, what->connects, TCP_ACK);
}

void tcp_capture_begin(int fd, const struct tcp_capture_stream *stream)
{
	if (!capture_enter())
		return;
	if (!stream_find(fd))
		stream_begin(fd, stream);
	fab_lock_release(&capture.lock);
}

void tcp_capture_put(int fd, bool out, const struct iovec *iov, size_t len)
{
	struct capture_stream *stream;
	size_t skip = 0;

	if (!capture_enter())
		return;
	stream = stream_find(fd);
	if (stream && stream->mirrored && !out) {
		stream->seq[0] += (uint32_t) len;
		len = 0;
	}
	while (stream && len) {
		size_t part = len < PAYLOAD_MAX ? len : PAYLOAD_MAX;

		put_packet(stream, out, TCP_PSH | TCP_ACK, &iov, &skip, part);
		len -= part;
		stream = stream_find(fd);	/* none, if the capture has ended */
	}
	fab_lock_release(&capture.lock);
}

void tcp_capture_note(int fd, const char *comment)
{
	struct capture_stream *stream;

	if (!capture_enter())
		return;
	stream = stream_find(fd);
	if (stream)
		stream->note = comment;
	fab_lock_release(&capture.lock);
}

void tcp_capture_end(int fd)
{
	struct capture_stream *stream;

	if (!tcp_capture_on() || !capture_enter())
		return;
	stream = stream_find(fd);
	if (stream) {
		capture.stream[fd] = NULL;
		put_empty(stream, true, TCP_FIN | TCP_ACK);
		free(stream);
	}
	fab_lock_release(&capture.lock);
}

/* ---- begin and end ---- */

void tcp_capture_open(const char *name)
{
	int ret;

	if (capture.name)
		return;
	capture.name = strdup(name);
	capture.block = malloc(PAYLOAD_MAX + 1024);
	if (!capture.name || !capture.block)
		return;
	ret = file_open();
	if (ret) {
		file_tell(-ret);
		return;
	}
	fab_lock_init(&capture.lock, FAB_LOCK_MUTEX);
	fab_fork_guard_add(&capture.guard, &capture.lock);
	atomic_store_explicit(&tcp_capture_is_on, capture.fd >= 0, memory_order_relaxed);
}

void tcp_capture_read(void)
{
	char *name = NULL;

	fi_param_define(NULL, "capture", FI_PARAM_STRING,
			"File for all bytes that provider tcp sends and receives, for Wireshark (pcapng), which must "
			"not exist yet; %%p in its name stands for the number of the process. Or a folder, for a file "
			"weft_PID.pcapng in it. See fi_capture(7) (default: none)");
	if (!fi_param_get_str(NULL, "capture", &name) && name && *name)
		tcp_capture_open(name);
}

void tcp_capture_close(void)
{
	fab_fork_guard_remove(&capture.guard);
	capture_stop();
	free(capture.name);
	free(capture.block);
	capture.name = NULL;
	capture.block = NULL;
}
