/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What comes to those who find datagram endpoints of verbs by name, and to those who are found. An input is a datagram
 * behind two bytes:
 *
 *   byte 0   where it comes: 0 the port, 1 the socket of a service, 2 the asker
 *   byte 1   1 nobody has the service that is asked for; 2 it comes by IPv4, 4 from nowhere; 8 from another user of the
 *            node; 16 what both ends have to have in common is put into it
 */
#include "fuzz/fuzz.h"

/* their own functions are what is tried */
#include "../../prov/verbs/names.c"
#include "../../prov/verbs/names_ask.c"

#define SERVICE		9001
#define NONCE		0x0123456789abcdefULL

enum { UDP = 100, UNIX = 101 };		/* descriptors that nobody has */

static const uint8_t *input;
static size_t input_len;
static uint8_t how;
static unsigned sent_cnt;

/* ---- the kernel ---- */

static ssize_t give(void *room, size_t len)
{
	memcpy(room, input, fab_min(len, input_len));
	return (ssize_t) input_len;
}

static void give_sender(struct msghdr *msg)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	struct ucred cred = { .uid = how & 8 ? getuid() + 1 : getuid() };

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = how & 4 ? SCM_RIGHTS : SCM_CREDENTIALS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(cred));
	memcpy(CMSG_DATA(cmsg), &cred, sizeof(cred));
}

static ssize_t fake_recvmsg(int fd, struct msghdr *msg, int flags)
{
	union fab_sockaddr from = { .sa.sa_family = how & 4 ? AF_UNSPEC : how & 2 ? AF_INET : AF_INET6 };

	FUZZ_MUST((fd == UDP || fd == UNIX) && (flags & MSG_TRUNC) && (flags & MSG_DONTWAIT) && msg->msg_iovlen == 1);
	if (msg->msg_name)
		memcpy(msg->msg_name, &from, fab_min((size_t) msg->msg_namelen, sizeof(from)));
	if (msg->msg_control)
		give_sender(msg);
	return give(msg->msg_iov->iov_base, msg->msg_iov->iov_len);
}

static ssize_t fake_recv(int fd, void *buf, size_t len, int flags)
{
	FUZZ_MUST(fd == UDP && (flags & MSG_TRUNC));
	return give(buf, len);
}

/* No more goes out than came, and only what is whole. */
static ssize_t fake_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	const struct vrb_names_msg *out = msg->msg_iov->iov_base;

	FUZZ_MUST(flags & MSG_DONTWAIT);
	FUZZ_MUST(input_len >= sizeof(*out) && msg->msg_namelen);
	sent_cnt++;
	if (fd == UNIX) {
		FUZZ_MUST(vrb_names_valid(out, sizeof(*out), VRB_NAMES_ASK));
		errno = ECONNREFUSED;
		return how & 1 ? -1 : (ssize_t) msg->msg_iov->iov_len;
	}
	FUZZ_MUST(fd == UDP && msg->msg_iov->iov_len == sizeof(*out));
	FUZZ_MUST(vrb_names_valid(out, sizeof(*out), VRB_NAMES_FOUND) ||
		  vrb_names_valid(out, sizeof(*out), VRB_NAMES_NONE));
	return sizeof(*out);
}

static int fake_close(int fd)
{
	return fd != UDP && fd != UNIX ? close(fd) : 0;
}

static void install(void)
{
	static struct fab_sock_ops ops;

	ops = fab_sock_libc;
	ops.recvmsg = fake_recvmsg;
	ops.recv = fake_recv;
	ops.sendmsg = fake_sendmsg;
	ops.close = fake_close;
	fab_sock = &ops;
}

/* ---- where it comes ---- */

static void to_port(void)
{
	take_from(UDP);
	FUZZ_MUST(sent_cnt <= 2);
}

static void to_service(void)
{
	take_from(UNIX);
	FUZZ_MUST(!sent_cnt || (!(how & (4 | 8)) && input_len == sizeof(struct relay)));
}

static void to_asker(void)
{
	struct ask ask = { .host_cnt = 1, .fds = { { .fd = UDP } }, .fd_cnt = 1 };
	struct vrb_ud_name name;
	struct vrb_names_msg again;

	vrb_names_pack(&ask.msg, VRB_NAMES_ASK, SERVICE, NONCE, NULL);
	if (!names_ask_take(&ask, 0, &name))
		return;
	FUZZ_MUST(input_len == sizeof(again) && name.service == SERVICE && name.qpn > 1 && name.qpn <= 0xffffff);
	vrb_names_pack(&again, VRB_NAMES_FOUND, name.service, NONCE, &name);
	FUZZ_MUST(!memcmp(&again, input, sizeof(again)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct vrb_named named = { .name = { .gid.raw[15] = 1, .qpn = 7, .service = SERVICE }, .fd = UNIX };
	static uint8_t copy[4096];
	struct vrb_names_msg *msg = (struct vrb_names_msg *) copy;
	uint8_t where = fuzz_byte(&data, &len) % 3;

	if (fab_list_empty(&here.named)) {
		install();
		here.udp = UDP;
		fab_list_add_tail(&here.named, &named.link);
	}
	how = fuzz_byte(&data, &len);
	input = copy;
	input_len = fab_min(len, sizeof(copy));
	memcpy(copy, data, input_len);
	if (how & 16 && input_len >= sizeof(*msg)) {
		msg->magic = htobe32(VRB_NAMES_MAGIC);
		msg->version = VRB_NAMES_VERSION;
		msg->service = htobe16(SERVICE);
		msg->nonce = NONCE;
	}
	sent_cnt = 0;
	where == 0 ? to_port() : where == 1 ? to_service() : to_asker();
	return 0;
}
