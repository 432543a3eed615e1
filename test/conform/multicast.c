/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Multicast groups of datagram endpoints: fi_cm(3), on the loopback interface. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ops.h"

#define CAPS (FI_MSG | FI_MULTICAST)

/* A group of our own, of this machine only: the port is one that was free. */
static struct sockaddr_storage group_name(struct test *t)
{
	struct side *s = side_open(t);
	struct sockaddr_storage name = { 0 };

	memcpy(&name, s->name, s->name_len);
	side_close(s);
	if (run.family == AF_INET6)
		inet_pton(AF_INET6, "ff11::7:7", &((struct sockaddr_in6 *) &name)->sin6_addr);
	else
		inet_pton(AF_INET, "239.255.77.7", &((struct sockaddr_in *) &name)->sin_addr);
	return name;
}

/* Join, and take the event that says so. */
static struct fid_mc *join(struct side *s, const void *name, uint64_t flags)
{
	struct fi_eq_entry entry;
	struct fid_mc *mc;
	struct event e;

	MUST(fi_join(s->ep, name, flags, &mc, s));
	own_fid(s->t, &mc->fid);
	e = expect_event(s, FI_JOIN_COMPLETE);
	memcpy(&entry, e.data, sizeof(entry));
	CHECK(e.fid == &mc->fid && mc->fid.context == s);
	CHECK_EQ(mc->fid.fclass, FI_CLASS_MC);
	return mc;
}

static void send_group(struct side *s, struct fid_mc *mc, const char *text)
{
	fi_addr_t addr = fi_mc_addr(mc);
	ssize_t ret = post_ret(s, SENDMSG, .buf = text, .len = strlen(text), .addr = &addr, .flags = FI_MULTICAST);

	if (ret == -FI_ENETUNREACH)
		SKIP("no route for IPv6 multicast on the loopback interface");
	MUST((int) ret);
	CHECK(expect_tx(s).flags & FI_MULTICAST);
}

/* Every member gets it, the sender too where it is one; who only sends does not. Completions say that it was
 * multicast. */
TEST_PROV(all_members, CAPS | FI_SOURCE)
{
	struct sockaddr_storage name = group_name(t);
	struct pair p = pair_open(t, .eq = true);
	struct side *c = side_open(t, .eq = true);
	struct fid_mc *to;
	char in[3][8];

	join(p.a, &name, 0);
	join(p.b, &name, FI_RECV);
	to = join(c, &name, FI_SEND);
	side_insert(p.a, c);
	post_recv(p.a, in[0], 8);
	post_recv(p.b, in[1], 8);
	post_recv(c, in[2], 8);
	send_group(c, to, "to all");
	CHECK(expect_recv(p.a, "to all", 6).flags & FI_MULTICAST);
	CHECK(expect_recv(p.b, "to all", 6).flags & FI_MULTICAST);
	expect_no_completion(c);
}

/* Unicast and two groups on one endpoint; each completion says which it was as far as the interface has words. */
TEST_PROV(two_groups_and_unicast, CAPS)
{
	struct sockaddr_storage first = group_name(t), second = group_name(t);
	struct pair p = pair_open(t, .eq = true);
	struct fid_mc *to[2];
	char in[8];

	join(p.b, &first, 0);
	join(p.b, &second, 0);
	to[0] = join(p.a, &first, FI_SEND);
	to[1] = join(p.a, &second, FI_SEND);
	CHECK(fi_mc_addr(to[0]) != fi_mc_addr(to[1]));
	post_recv(p.b, in, 8);
	send_group(p.a, to[0], "first");
	expect_recv(p.b, "first", 5);
	post_recv(p.b, in, 8);
	send_group(p.a, to[1], "second");
	expect_recv(p.b, "second", 6);
	post_recv(p.b, in, 8);
	send_bytes(p.a, "you", 3);
	CHECK(!(expect_recv(p.b, "you", 3).flags & FI_MULTICAST));
}

/* Who has left gets nothing more, and its number means nobody. */
TEST_PROV(leave, CAPS)
{
	struct sockaddr_storage name = group_name(t);
	struct pair p = pair_open(t, .eq = true);
	struct fid_mc *a = join(p.a, &name, FI_SEND), *b = join(p.b, &name, 0);
	fi_addr_t addr = fi_mc_addr(b);
	char in[8];

	post_recv(p.b, in, 8);
	send_group(p.a, a, "here");
	expect_recv(p.b, "here", 4);
	close_now(t, &b->fid);
	post_recv(p.b, in, 8);
	send_group(p.a, a, "gone");
	expect_no_completion(p.b);
	CHECK_RET(try_op(p.b, SENDMSG, .buf = in, .len = 1, .addr = &addr, .flags = FI_MULTICAST), -FI_EINVAL);
	join(p.b, &name, 0);
	send_group(p.a, a, "again");
	expect_recv(p.b, "again", 5);
}

/* A child of fork(2) closes the group and the endpoint that it has inherited. The parent stays a member. */
TEST_PROV(child_leaves, CAPS)
{
	struct sockaddr_storage name = group_name(t);
	struct pair p = pair_open(t, .eq = true);
	struct fid_mc *to = join(p.a, &name, FI_SEND), *in_it = join(p.b, &name, 0);
	char in[8];
	int status;
	pid_t pid;

	if (!run.ours)
		ABSENT("fi_runtime(7) of ours allows it");
	pid = fork();
	if (!pid) {
		alarm(60);
		_exit(fi_close(&in_it->fid) || fi_close(&p.b->ep->fid));
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	post_recv(p.b, in, 8);
	send_group(p.a, to, "still");
	expect_recv(p.b, "still", 5);
}

/* An endpoint keeps its groups: it cannot close before them. */
TEST_PROV(endpoint_is_busy, CAPS)
{
	struct sockaddr_storage name = group_name(t);
	struct side *s = side_open(t, .eq = true);
	struct fid_mc *mc = join(s, &name, 0);

	CHECK_RET(fi_close(&s->ep->fid), -FI_EBUSY);
	close_now(t, &mc->fid);
	side_close_ep(s);
}

/* Joins that cannot be. */
TEST_PROV(bad_joins, CAPS)
{
	struct sockaddr_storage name = group_name(t), portless = name;
	struct side *s = side_open(t, .eq = true), *without = side_open(t);
	struct side *later = side_open(t, .eq = true, .unenabled = true);
	struct fid_mc *mc = NULL;

	((struct sockaddr_in *) &portless)->sin_port = 0;	/* the same place in sockaddr_in6 */
	CHECK_RET(fi_join(without->ep, &name, 0, &mc, NULL), -FI_ENOEQ);
	CHECK_RET(fi_join(later->ep, &name, 0, &mc, NULL), -FI_EOPBADSTATE);
	CHECK_RET(fi_join(s->ep, NULL, 0, &mc, NULL), -FI_EINVAL);
	CHECK_RET(fi_join(s->ep, s->name, 0, &mc, NULL), -FI_EINVAL);
	CHECK_RET(fi_join(s->ep, &portless, 0, &mc, NULL), -FI_EINVAL);
	CHECK_RET(fi_join(s->ep, &name, FI_COLLECTIVE, &mc, NULL), -FI_EBADFLAGS);
	CHECK(!mc);
	expect_no_event(s);
}

/* An address of another family than the endpoint's. */
TEST_PROV(other_family, CAPS)
{
	struct side *s = side_open(t, .eq = true);
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct fid_mc *mc = NULL;

	inet_pton(AF_INET6, "ff11::7:7", &six.sin6_addr);
	inet_pton(AF_INET, "239.255.77.7", &four.sin_addr);
	CHECK_RET(fi_join(s->ep, run.family == AF_INET6 ? (void *) &four : (void *) &six, 0, &mc, NULL), -FI_EINVAL);
}

static void no_multicast(struct fi_info *hints)
{
	hints->caps &= ~FI_MULTICAST;
}

/* An endpoint that was not opened for multicast has none. */
TEST_PROV(not_asked_for, CAPS)
{
	struct sockaddr_storage name = group_name(t);
	struct side *s = side_open(t, .eq = true, .hints = no_multicast);
	struct fid_mc *mc;

	CHECK_RET(fi_join(s->ep, &name, 0, &mc, NULL), -FI_ENOSYS);
}

static void receive_only(struct fi_info *hints)
{
	hints->caps |= FI_RECV;
}

/* Nobody joins for a direction that the endpoint does not have. */
TEST_PROV(direction_not_there, CAPS | FI_RECV)
{
	struct sockaddr_storage name = group_name(t);
	struct side *s = side_open(t, .eq = true, .hints = receive_only);
	struct fid_mc *mc;

	CHECK_RET(fi_join(s->ep, &name, FI_SEND, &mc, NULL), -FI_EINVAL);
	join(s, &name, 0);
}
