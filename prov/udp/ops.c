/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The tables of data calls (common/calls/calls_message.h), which end in udp_submit() and udp_post_recv(). There is no
 * remote CQ data: a datagram holds nothing but the message.
 */
#include "common/calls/calls.h"
#include "udp/udp.h"

/* Flags that programs may pass although they add nothing to a call. */
#define ANY_FLAGS	(FI_MSG | FI_SEND | FI_RECV | FI_COMPLETION | FI_MORE)

FAB_CALLS_LOCKED(udp_ops_submit, udp_submit)
FAB_CALLS_LOCKED(udp_ops_post_recv, udp_post_recv)

static const struct fab_calls calls = {
	.prov = &udp_prov,
	.submit = udp_ops_submit,
	.post_recv = udp_ops_post_recv,
	.send_flags = ANY_FLAGS | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_MULTICAST,
	.recv_flags = ANY_FLAGS,
	.iov_limit = UDP_IOV_LIMIT,
};

struct fi_ops_msg udp_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = call_recv,
	.recvv = call_recvv,
	.recvmsg = call_recvmsg,
	.send = call_send,
	.sendv = call_sendv,
	.sendmsg = call_sendmsg,
	.inject = call_inject,
};
