/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two hosts, as two network namespaces that a veth pair joins, each with an endpoint of this one process: what users
 * saw on machines with many interfaces, behind NAT, without a route, and when a cable was pulled. Needs the right to
 * make namespaces, and ip(8).
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "base/clock.h"
#include "common/net/netif.h"
#include "common/net/own.h"
#include "tcp/sock/advert.h"
#include "tcp/stream/ep.h"
#include "tcp/node.h"
#include "tcp/params/params.h"

#define PATIENCE_MS	30000
#define HOSTS		2

struct host {
	int ns;				/* its namespace */
	struct node node;
	fi_addr_t peer;			/* the other one, in node.av */
	bool open;
};

static struct host host[HOSTS];
static struct fab_netif_source source;

/* ---- hosts: number n is 10.77.0.n+1 on eth0 ---- */

static void enter(int n)
{
	if (setns(host[n].ns, CLONE_NEWNET))
		fail_msg("setns");
}

__attribute__((format(printf, 2, 3)))
static bool run(int n, const char *format, ...)
{
	char command[256];
	va_list args;
	int len;

	enter(n);
	va_start(args, format);
	len = vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	snprintf(command + len, sizeof(command) - len, " >/dev/null 2>&1");
	return !system(command);
}

/* A process that does nothing in a namespace of its own, by whose number ip(8) finds that. */
static pid_t hold_namespace(int *ns)
{
	char path[32];
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		byte = unshare(CLONE_NEWNET) ? 'n' : 'y';
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	if (read(ready[0], &byte, 1) != 1)
		byte = 'n';
	close(ready[0]);
	close(ready[1]);
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	*ns = byte == 'y' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	return pid;
}

/* False: this machine does not let us. */
static bool hosts_make(void)
{
	pid_t holder[HOSTS];
	bool made = true;

	for (int n = 0; n < HOSTS; n++) {
		holder[n] = hold_namespace(&host[n].ns);
		made &= host[n].ns >= 0;
	}
	made = made && run(0, "ip link add eth0 type veth peer name eth0 netns %d", holder[1]);
	for (int n = 0; n < HOSTS && made; n++)
		made = run(n, "ip link set lo up && ip link set eth0 up && ip addr add 10.77.0.%d/24 dev eth0 && "
			   "ip route add default via 10.77.0.%d", n + 1, 2 - n);
	for (int n = 0; n < HOSTS; n++) {
		kill(holder[n], SIGKILL);
		waitpid(holder[n], NULL, 0);
	}
	return made;
}

static int setup(void **state)
{
	(void) state;
	/* what /sys shows is the namespace that we came from */
	source = *fab_netif_source;
	source.proc_net = "/proc/thread-self/net";
	source.sys_net = "/nonexistent";
	fab_netif_source = &source;
	memset(host, 0, sizeof(host));
	return hosts_make() ? 0 : 1;
}

static void host_open(int n)
{
	enter(n);
	node_open_best(&host[n].node, FI_MSG | FI_RMA | FI_SOURCE);
	host[n].open = true;
}

/* Both with an endpoint, as a program gets it that does not say which interface it wants. */
static void hosts_open(void)
{
	for (int n = 0; n < HOSTS; n++)
		host_open(n);
	for (int n = 0; n < HOSTS; n++)
		host[n].peer = node_insert(&host[n].node, &host[1 - n].node.addr);
}

static int teardown(void **state)
{
	(void) state;
	for (int n = 0; n < HOSTS; n++) {
		if (host[n].open) {
			enter(n);
			node_close(&host[n].node);
		}
		close(host[n].ns);
	}
	advertise(NULL);
	tcp_params.user_timeout_ms = TCP_USER_TIMEOUT_MS;
	tcp_params.trust_advertised = false;
	return 0;
}

static ssize_t drive(int n, struct fi_cq_data_entry *entry, fi_addr_t *src)
{
	enter(n);
	return fi_cq_readfrom(host[n].node.cq, entry, 1, src);
}

/* A message from one host to the other; who sent it, to the knowledge of that. */
static fi_addr_t exchange(int from, fi_addr_t to)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	struct fi_cq_data_entry entry;
	fi_addr_t src = 0;
	char buf[8];
	int ret;

	enter(1 - from);
	assert_int_equal(fi_recv(host[1 - from].node.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), 0);
	enter(from);
	while ((ret = (int) fi_inject(host[from].node.ep, "hello", 5, to)) == -FI_EAGAIN) {
		assert_true(fab_now_ms() < end_ms);
		drive(1 - from, &entry, NULL);
		enter(from);
	}
	assert_int_equal(ret, 0);
	while (drive(1 - from, &entry, &src) != 1) {
		assert_true(fab_now_ms() < end_ms);
		assert_int_equal(drive(from, &entry, NULL), -FI_EAGAIN);
	}
	return src;
}

/* The next thing that happens is that an operation fails; its text goes to text[256]. */
static int failure(int n, char *text)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;
	ssize_t ret;

	do {
		ret = drive(n, &entry, NULL);
	} while (ret == -FI_EAGAIN && fab_now_ms() < end_ms);
	assert_int_equal(ret, -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(host[n].node.cq, &err, 0), 1);
	fi_cq_strerror(host[n].node.cq, err.prov_errno, err.err_data, text, 256);
	return err.err;
}

/* Addresses of another network namespace are those of another host. */
static bool uses_tcp(int n)
{
	const struct tcp_ep *ep = fab_container(host[n].node.ep, struct tcp_ep, base.ep_fid);

	return !ep->rdm.by_addr[host[n].peer]->local;
}

/* How long an idle peer may be silent, as the kernel was told. */
static int keepalive_s(int fd)
{
	int idle = 0, interval = 0, cnt = 0;
	socklen_t len = sizeof(int);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &len), 0);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, &len), 0);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &cnt, &len), 0);
	return idle + interval * cnt;
}

/* ---- what was seen ---- */

/* "CM hangs for ever, FI_TCP_IFACE unset, host with ~20 interfaces (docker0, br-*, veth, virbr0 ...)" - #12480. All
 * that is local has the same addresses on both. */
static void twenty_interfaces_and_none_named(void **state)
{
	static const char *const names[] = { "docker0", "virbr0", "br-0a1b2c3d4e5f", "br-1", "br-2", "br-3", "br-4" };

	(void) state;
	for (int n = 0; n < HOSTS; n++) {
		for (int i = 0; i < 7; i++)
			assert_true(run(n, "ip link add %s type bridge && ip addr add 172.%d.0.1/16 dev %s && "
					   "ip link set %s up", names[i], 17 + i, names[i], names[i]));
		for (int i = 0; i < 5; i++)
			assert_true(run(n, "ip link add veth%da type veth peer name veth%db && ip addr add "
					   "10.99.%d.1/24 dev veth%da && ip link set veth%da up && "
					   "ip link set veth%db up", i, i, i, i, i, i));
	}
	hosts_open();
	for (int n = 0; n < HOSTS; n++)
		assert_string_equal(host[n].node.info->domain_attr->name, "eth0");
	assert_int_equal(exchange(0, host[0].peer), host[1].peer);
	assert_int_equal(exchange(1, host[1].peer), host[0].peer);
	assert_true(uses_tcp(0) && uses_tcp(1));
}

/* "-FI_EAGAIN for ever" - #3007, #7441: a host to which no route leads, and one that is not there. */
static void a_host_that_is_not_there(void **state)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(4711) };
	char text[256];

	(void) state;
	assert_true(run(0, "ip route add unreachable 10.78.0.0/16"));
	host_open(0);
	addr.sin_addr.s_addr = inet_addr("10.78.0.1");
	assert_int_equal(fi_send(host[0].node.ep, "hello", 5, NULL, node_insert(&host[0].node, &addr), NULL), 0);
	assert_int_equal(failure(0, text), FI_EHOSTUNREACH);
	assert_non_null(strstr(text, "10.78.0.1:4711"));
	assert_non_null(strstr(text, "10.77.0.1:"));
}

/* A machine that may take over addresses of others (keepalived, haproxy) lets programs bind to any. An address is its
 * own only while an interface has it; peers elsewhere are not looked for here. */
static void an_address_that_may_be_bound_is_not_an_own_one(void **state)
{
	union fab_sockaddr addr[HOSTS];

	(void) state;
	assert_true(run(0, "(echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind)"));
	enter(0);
	for (int n = 0; n < HOSTS; n++) {
		addr[n] = (union fab_sockaddr) { .sin.sin_family = AF_INET };
		addr[n].sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		assert_true(fab_net_is_own(&addr[n]));
		addr[n].sin.sin_addr.s_addr = inet_addr(n ? "10.77.0.2" : "10.77.0.1");
	}
	assert_true(fab_net_is_own(&addr[0]));
	assert_false(fab_net_is_own(&addr[1]));
}

/* "dead TCP peer unnoticed" - #11058: the cable is pulled while a read is under way. */
static void a_pulled_cable_is_noticed(void **state)
{
	char text[256], buf[8];
	int err;

	(void) state;
	tcp_params.user_timeout_ms = 1000;
	hosts_open();
	exchange(0, host[0].peer);
	assert_true(run(1, "ip link set eth0 down"));
	enter(0);
	assert_int_equal(fi_read(host[0].node.ep, buf, 8, NULL, host[0].peer, 0, 1, NULL), 0);
	err = failure(0, text);
	/* the second where the kernel gives up its neighbour first, on a slow machine */
	if (err != FI_ETIMEDOUT && err != FI_EHOSTUNREACH)
		fail_msg("%s: %s", fi_strerror(err), text);
	assert_non_null(strstr(text, "10.77.0.2:"));
}

/* The same with nothing under way: keepalive is as short as the timeout says, not a fixed 15 s. */
static void a_pulled_cable_is_noticed_when_idle(void **state)
{
	const struct tcp_ep *ep;
	struct fi_cq_data_entry entry;
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;

	(void) state;
	tcp_params.user_timeout_ms = 2000;
	hosts_open();
	exchange(0, host[0].peer);
	ep = fab_container(host[0].node.ep, struct tcp_ep, base.ep_fid);
	assert_non_null(ep->rdm.by_addr[host[0].peer]);
	assert_int_equal(keepalive_s(ep->rdm.by_addr[host[0].peer]->src.fd), 2);
	assert_true(run(1, "ip link set eth0 down"));
	while (ep->rdm.by_addr[host[0].peer]) {
		assert_int_equal(drive(0, &entry, NULL), -FI_EAGAIN);
		assert_true(fab_now_ms() < end_ms);
	}
}

/* Take one connection in host 0, at the port of listener, to an address in host 1. Never returns. */
static void forward(int listener, const struct sockaddr_in *to)
{
	struct pollfd fd[2] = { { .events = POLLIN }, { .events = POLLIN } };
	char buf[4096];

	fd[0].fd = accept(listener, NULL, NULL);
	fd[1].fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd[1].fd, (const struct sockaddr *) to, sizeof(*to)))
		_exit(1);
	for (;;) {
		poll(fd, 2, -1);
		for (int i = 0; i < 2; i++) {
			ssize_t len = fd[i].revents ? recv(fd[i].fd, buf, sizeof(buf), 0) : -1;

			if (!len || (len > 0 && send(fd[1 - i].fd, buf, len, MSG_NOSIGNAL) != len))
				_exit(0);
		}
	}
}

/* "the peer address is taken from the socket; fails behind NAT" - #9611. Host 1 is reached by a port of host 0 that is
 * forwarded to it, and comes from its own address. */
static void behind_nat(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET }, inside;
	socklen_t len = sizeof(at);
	char text[64];
	int listener;
	pid_t pid;

	(void) state;
	enter(0);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	at.sin_addr.s_addr = inet_addr("10.77.0.1");
	assert_int_equal(bind(listener, (struct sockaddr *) &at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *) &at, &len), 0);
	tcp_params.trust_advertised = true;
	host_open(0);
	host_open(1);
	inside = host[1].node.addr;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		enter(0);
		forward(listener, &inside);
	}
	snprintf(text, sizeof(text), "10.77.0.1:%d", ntohs(at.sin_port));
	advertise(text);
	enter(1);
	len = sizeof(at);
	assert_int_equal(fi_getname(&host[1].node.ep->fid, &at, &(size_t) { sizeof(at) }), 0);
	host[0].peer = node_insert(&host[0].node, &at);
	host[1].peer = node_insert(&host[1].node, &host[0].node.addr);
	/* all of the process would have that name: host 0 does not */
	enter(0);
	advertise(NULL);
	exchange(0, host[0].peer);
	/* and what comes the other way, over the same connection, is its answer */
	assert_int_equal(exchange(1, host[1].peer), host[0].peer);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(listener);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(twenty_interfaces_and_none_named),
		TEST(a_host_that_is_not_there),
		TEST(an_address_that_may_be_bound_is_not_an_own_one),
		TEST(a_pulled_cable_is_noticed),
		TEST(a_pulled_cable_is_noticed_when_idle),
		TEST(behind_nat),
	};
	bool possible = !setup(NULL);

	teardown(NULL);
	if (!possible) {
		printf("1..0 # SKIP no network namespaces here (root, or user namespaces), or no ip(8) with veth\n");
		return 0;
	}
	return cmocka_run_group_tests_name("fault/hosts", tests, NULL, NULL);
}
