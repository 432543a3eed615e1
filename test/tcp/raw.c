/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See raw.h. Everything is asserted: a test that uses it fails at the call that fails.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "raw.h"

#define PORTS		256		/* of a process */
#define PORTS_FIRST	16384		/* well-known ones are below */

uint64_t test_added_ns, test_random;

static uint64_t test_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec + test_added_ns;
}

static uint64_t test_random64(void)
{
	return test_random++;
}

void test_clock_start(void)
{
	static const struct fab_clock_ops clock = { .now_ns = test_now_ns, .random64 = test_random64 };

	fab_clock = &clock;
}

/* A socket bound to 127.0.0.1, port 0: any. -1 if the port is taken. */
static int raw_socket(struct sockaddr_in *addr, uint16_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	*addr = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (!bind(fd, (struct sockaddr *) addr, sizeof(*addr)))
		return fd;
	assert_int_equal(errno, EADDRINUSE);
	close(fd);
	return -1;
}

/* The ports from which the kernel takes those of bind() to 0 and of connect(). */
static void kernel_ports(unsigned *low, unsigned *high)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");

	if (!file || fscanf(file, "%u %u", low, high) != 2)
		*low = 32768, *high = 60999;
	if (file)
		fclose(file);
}

/* The first of PORTS ports, outside of the kernel's range, that no other process takes by raw_port(): it has a Unix
 * socket with their name, until it ends. 0: there are none. */
static unsigned ports_reserve(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unsigned low, high;

	assert_true(fd >= 0);
	kernel_ports(&low, &high);
	for (unsigned first = PORTS_FIRST; first + PORTS <= 65536; first += PORTS) {
		if (first <= high && first + PORTS > low)
			continue;
		snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "weft-test-ports-%u", first);
		if (!bind(fd, (struct sockaddr *) &name, sizeof(name)))
			return first;
	}
	close(fd);
	return 0;
}

uint16_t raw_port(void)
{
	static unsigned first, next;
	static pid_t owner;

	if (owner != (pid_t) syscall(SYS_getpid)) {
		owner = (pid_t) syscall(SYS_getpid);
		first = ports_reserve();
	}
	for (unsigned tries = 0; first && tries < PORTS; tries++) {
		struct sockaddr_in addr;
		uint16_t port = first + next++ % PORTS;
		int fd = raw_socket(&addr, port);

		if (fd >= 0) {
			close(fd);
			return port;
		}
	}
	return 0;
}

int raw_listen(struct sockaddr_in *addr, int backlog)
{
	int fd = raw_listen_at(addr, raw_port(), backlog);

	assert_true(fd >= 0);
	return fd;
}

int raw_listen_at(struct sockaddr_in *addr, uint16_t port, int backlog)
{
	socklen_t len = sizeof(*addr);
	int fd = raw_socket(addr, port);

	if (fd < 0 || listen(fd, backlog)) {
		close(fd);
		return -1;
	}
	assert_int_equal(getsockname(fd, (struct sockaddr *) addr, &len), 0);
	return fd;
}

int raw_connect(const struct sockaddr_in *addr)
{
	struct sockaddr_in from;
	int fd = raw_socket(&from, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *) addr, sizeof(*addr)), 0);
	return fd;
}

struct cm_bytes raw_cm(uint8_t type, const void *data, size_t len)
{
	struct cm_bytes msg = {
		.hdr = { .version = TCP_CM_VERSION, .type = type, .seg_size = htobe16(len),
			 .conn_data = TCP_CM_CONN_DATA },
	};

	assert_true(len <= sizeof(msg.data));
	if (len)
		memcpy(msg.data, data, len);
	return msg;
}

size_t raw_len(const struct cm_bytes *msg)
{
	return sizeof(msg->hdr) + be16toh(msg->hdr.seg_size);
}

struct cm_bytes raw_rdm_cm(uint8_t type, uint16_t port, uint32_t pid)
{
	struct tcp_rdm_cm data = { .port = htobe16(port), .pid = htobe32(pid) };

	return raw_cm(type, &data, sizeof(data));
}

void raw_send(int fd, const void *buf, size_t len)
{
	assert_int_equal(send(fd, buf, len, MSG_NOSIGNAL), len);
}

/* Drive until fd is readable. False: it never was. */
static bool await(int fd, raw_drive drive, void *arg)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;

	while (!poll(&pfd, 1, 0)) {
		if (fab_now_ms() > end_ms)
			return false;
		if (drive)
			drive(arg);
	}
	return true;
}

int raw_accept(int fd, raw_drive drive, void *arg)
{
	int conn;

	assert_true(await(fd, drive, arg));
	conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(conn >= 0);
	return conn;
}

void raw_recv(int fd, void *buf, size_t len, raw_drive drive, void *arg)
{
	size_t have = 0;
	ssize_t ret;

	while (have < len) {
		assert_true(await(fd, drive, arg));
		ret = recv(fd, (uint8_t *) buf + have, len - have, 0);
		assert_true(ret > 0);
		have += ret;
	}
}

bool raw_recv_end(int fd, raw_drive drive, void *arg)
{
	uint8_t buf[256];
	ssize_t ret;

	do {
		if (!await(fd, drive, arg))
			return false;
		ret = recv(fd, buf, sizeof(buf), 0);
	} while (ret > 0);
	assert_true(!ret || errno == ECONNRESET);
	return true;
}
