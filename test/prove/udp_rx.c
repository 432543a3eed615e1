/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagrams of any length from any address, into two posted receives: no completion says more than its receive has room
 * for, and what the kernel says is used within its bounds.
 *
 * eva: -eva-slevel 100
 */
#include "prove.h"
#include "base/sock.h"
#include "base/strbuf.c"
#include "base/addr_ib.c"
#undef SCHEME
#include "base/addr.c"
#include "udp/udp.h"

#define fab_ep_complete	completed
#define fab_ep_fail	has_failed
void completed(struct fab_ep *base, enum fab_op_code op, const struct fab_comp *comp, bool wanted);
void has_failed(struct fab_ep *base, enum fab_op_code op, const struct fab_comp *comp, const struct fab_cq_fail *fail);
#include "udp/rx.c"

static struct udp_ep ep;
static struct udp_rx rx[2];
static uint8_t room[2][64];
static struct fab_cq cq;
static struct fi_stats_ep stats;
const struct fab_op_desc fab_op_desc[FAB_OP_MAX];

static int any_errno;
int *__errno_location(void)
{
	return &any_errno;
}

static int any_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags, struct timespec *timeout)
{
	(void) fd;
	(void) flags;
	(void) timeout;
	any_errno = any_of(1, 133);
	prove(cnt <= 2);
	//@ loop unroll 2;
	for (unsigned i = 0; i < cnt; i++) {
		any_bytes(msgs[i].msg_hdr.msg_name, msgs[i].msg_hdr.msg_namelen);
		((union fab_sockaddr *) msgs[i].msg_hdr.msg_name)->sa.sa_family = any_of(0, 1) ? AF_INET : AF_INET6;
		msgs[i].msg_len = any_of(0, UINT32_MAX);
	}
	return (int) any_of(0, cnt + 1ul) - 1;
}

static const struct fab_sock_ops ops = { .recvmmsg = any_recvmmsg };
const struct fab_sock_ops *fab_sock = &ops;

/*@ assigns \result \from av; */
fi_addr_t fab_av_find(struct fab_av *av, const union fab_sockaddr *addr);
/*@ assigns \result \from av; */
fi_addr_t fab_av_find_under(struct fab_av *av, const union fab_sockaddr *addr, const struct fab_auth_key *key);
/*@ assigns \result \from port;
  @ ensures \result == 0 || \result == 1;
  @*/
bool udp_port_errors(struct udp_port *port);
/*@ assigns \nothing; */
void fab_pool_put(struct fab_pool *pool, void *object);
void fab_ep_complete(struct fab_ep *base, enum fab_op_code op, const struct fab_comp *comp, bool wanted)
{
	(void) base;
	(void) op;
	(void) wanted;
	prove(comp->len <= sizeof(room[0]));
	prove_readable(comp->buf, comp->len);
}

void fab_ep_fail(struct fab_ep *base, enum fab_op_code op, const struct fab_comp *comp, const struct fab_cq_fail *fail)
{
	(void) base;
	(void) op;
	prove(comp->len <= sizeof(room[0]));
	if (fail->err_data)
		prove_readable(fail->err_data, fail->err_data_len);
}

struct fi_stats_peer *udp_stats_add(struct udp_ep *of, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	(void) of;
	(void) fi_addr;
	(void) addr;
	return &stats.rest;
}

static void prove_batch(uint32_t batch)
{
	fab_list_init(&ep.posted);
	ep.want_src = any_of(0, 1);
	ep.source_err = any_of(0, 1);
	ep.port.ep = &ep;
	ep.base.stats = &stats;
	ep.last_stats = &stats.rest;
	ep.batch = batch;
	ep.last_fi_addr = any_of(0, UINT64_MAX);
	any_bytes(&ep.last_src, sizeof(ep.last_src));
	//@ loop unroll 2;
	for (int i = 0; i < 2; i++) {
		rx[i].len = sizeof(room[i]);
		rx[i].iov_cnt = 1;
		rx[i].iov[0] = (struct iovec) { room[i], sizeof(room[i]) };
		any_bytes(room[i], sizeof(room[i]));
		fab_list_add_tail(&ep.posted, &rx[i].link);
	}
	udp_rx_run(&ep.port);
}

int main(void)
{
	prove_batch(1);
	prove_batch(2);
	reached();
	return 0;
}
