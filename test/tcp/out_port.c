/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ports that connections come from (FI_TCP_OUT_PORT_LOW_RANGE, HIGH_RANGE): with more connections than ports, each
 * destination can have a connection from each of them.
 */
#include "base/unit.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/sock.h"
#include "common/net/net.h"
#include "tcp/params/params.h"
#include "tcp/sock/sock.h"

#define ROUNDS 30

static const union fab_sockaddr loopback = { .sin = { .sin_family = AF_INET,
						      .sin_addr = { __builtin_bswap32(INADDR_LOOPBACK) } } };

static int at_port(uint16_t port, union fab_sockaddr *bound)
{
	union fab_sockaddr at = loopback;
	int fd = fab_sock_open(AF_INET, SOCK_STREAM);

	fab_addr_set_port(&at.sa, port);
	assert_true(fd >= 0);
	if (bind(fd, &at.sa, sizeof(at.sin))) {
		close(fd);
		return -1;
	}
	fab_name_local(fd, bound);
	return fd;
}

/* Two ports side by side that are free. */
static void set_range(void)
{
	union fab_sockaddr low, high;
	int fds[2] = { -1, -1 };

	while (fds[1] < 0) {
		fds[0] = at_port(0, &low);
		if (fab_addr_port(&low.sa) < 65535)
			fds[1] = at_port((uint16_t) (fab_addr_port(&low.sa) + 1), &high);
		close(fds[0]);
	}
	close(fds[1]);
	tcp_params.out_port_low = fab_addr_port(&low.sa);
	tcp_params.out_port_high = fab_addr_port(&low.sa) + 1;
}

static int listener(union fab_sockaddr *at)
{
	int fd = at_port(0, at);

	assert_int_equal(listen(fd, ROUNDS * 4), 0);
	return fd;
}

/* Connect, and wait until that is done. Returns the port that the connection comes from. */
static int dial(const union fab_sockaddr *to, int *fd)
{
	union fab_sockaddr bound;
	int err = -1;

	*fd = tcp_sock_connect(&loopback, to, &err);
	assert_true(*fd >= 0);
	assert_int_equal(err, 0);
	assert_int_equal(poll(&(struct pollfd) { .fd = *fd, .events = POLLOUT }, 1, 10000), 1);
	fab_name_local(*fd, &bound);
	return fab_addr_port(&bound.sa);
}

/* Leave nothing of a connection behind. */
static void hang_up(int fd)
{
	struct linger linger = { 1, 0 };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	close(fd);
}

static void each_destination_has_all_ports(void **state)
{
	union fab_sockaddr x, y;
	int listens[2] = { listener(&x), listener(&y) }, to_x, to_y, more, last, port, err = 0;

	(void) state;
	set_range();
	port = dial(&x, &to_x);
	assert_int_equal(dial(&y, &to_y), port == tcp_params.out_port_low ? port + 1 : port - 1);
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_not_equal(dial(&x, &more), port);
		hang_up(more);
	}
	assert_int_not_equal(dial(&x, &more), port);
	last = tcp_sock_connect(&loopback, &x, &err);
	assert_true(last >= 0);
	assert_int_equal(err, EADDRNOTAVAIL);
	hang_up(last);
	hang_up(more);
	hang_up(to_x);
	hang_up(to_y);
	close(listens[0]);
	close(listens[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_destination_has_all_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
