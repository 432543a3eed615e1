/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What goes wrong at and below the device, and with peers: each ends as an error, with a text that names who is
 * concerned, and nothing waits for ever. Softverbs is told what to break, by its environment and by sv_test_event().
 */
#include "link.h"
#include "../softverbs/stand_in.h"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static void happen(enum ibv_event_type type)
{
	void (*event)(enum ibv_event_type type) = stand_in("sv_test_event");

	event(type);
}

/* The text of an error names device, port and peer. */
static void expect_text(struct end *end, const struct fi_cq_err_entry *error, const char *what)
{
	char text[256];

	fi_cq_strerror(end->cq, error->prov_errno, error->err_data, text, sizeof(text));
	fprintf(stderr, "said: %s\n", text);
	if (!strstr(text, what) || !strstr(text, "soft0, port 1") || !strstr(text, "127.0.0.1"))
		die("\"%s\": should name soft0, port 1, 127.0.0.1 and say \"%s\"", text, what);
}

/* The next completion is this error, with such a text. */
static void expect_failed(struct link *link, struct end *end, int err, void *context, const char *what)
{
	struct fi_cq_err_entry error = { 0 };

	if (await_comp(link, end, &error) != err)
		die("%d (%s), not %d", error.err, fi_strerror(error.err), err);
	MUST_BE(!context || error.op_context == context);
	expect_text(end, &error, what);
}

/* ---- the device ---- */

/* Sends that the device has not reported, and receives: each ends once. */
static void lose(enum ibv_event_type type, int err)
{
	struct link link = { 0 };
	bool seen[4] = { false };
	struct fi_cq_err_entry error;

	link_open(&link);
	for (intptr_t i = 0; i < 3; i++)
		MUST(fi_recv(link.a.ep, link.a.room, 64, fi_mr_desc(link.a.mr), 0, (void *) i));
	/* meets no receive: it is not over */
	MUST(fi_send(link.a.ep, link.a.room, 64, fi_mr_desc(link.a.mr), 0, (void *) 3));
	happen(type);
	for (int i = 0; i < 4; i++) {
		MUST_BE(await_comp(&link, &link.a, &error) == err);
		MUST_BE((intptr_t) error.op_context < 4 && !seen[(intptr_t) error.op_context]);
		seen[(intptr_t) error.op_context] = true;
		MUST_BE(error.err_data == NULL || error.err_data_size);
	}
	MUST_BE(fi_cq_read(link.a.cq, &error, 1) == -FI_EAGAIN);
	MUST_BE(await_event(&link, link.a.eq).event == FI_SHUTDOWN);
	MUST_BE(await_event(&link, link.b.eq).event == FI_SHUTDOWN);
	MUST_FAIL(fi_send(link.a.ep, link.a.room, 64, fi_mr_desc(link.a.mr), 0, NULL), FI_ENOTCONN);
	MUST_FAIL(fi_recv(link.a.ep, link.a.room, 64, fi_mr_desc(link.a.mr), 0, NULL), FI_ENOTCONN);
	link_close(&link);
}

static void device_fails(void)
{
	struct fi_info *hints = hints_new(), *info;

	lose(IBV_EVENT_DEVICE_FATAL, FI_ENODEV);
	MUST_FAIL(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info), FI_ENODATA);
	fi_freeinfo(hints);
}

static void queue_breaks(void)
{
	lose(IBV_EVENT_CQ_ERR, FI_EIO);
}

/* What is outstanding is flushed, as when a connection ends. */
static void queue_pair_fails(void)
{
	lose(IBV_EVENT_QP_FATAL, FI_ECONNRESET);
}

static void xrc_queue_fails(void)
{
	struct link link = { 0 };

	link_open(&link);
	MUST(fi_recv(link.b.ep, link.b.room, 64, fi_mr_desc(link.b.mr), 0, NULL));
	happen(IBV_EVENT_SRQ_ERR);
	MUST_BE(await_comp(&link, &link.b, NULL) == FI_ECONNRESET);
	MUST_BE(await_event(&link, link.b.eq).event == FI_SHUTDOWN);
	MUST_BE(await_event(&link, link.a.eq).event == FI_SHUTDOWN);
	link_close(&link);
}

/* One that nobody else uses: new endpoints have another. */
static void broken_queue_is_not_used_again(void)
{
	struct link link = { 0 }, next = { 0 };

	link_open(&link);
	happen(IBV_EVENT_CQ_ERR);
	MUST_BE(await_event(&link, link.a.eq).event == FI_SHUTDOWN);
	link_open(&next);
	link_send(&next, next.a.room, fi_mr_desc(next.a.mr), 100);
	link_close(&next);
	link_close(&link);
}

/* a's request, which waits for b's answer. */
static struct happened request(struct link *link)
{
	link_listen(link);
	return link_request(link);
}

static void fails_while_connecting(void)
{
	struct link link = { 0 };
	struct happened what = request(&link);

	happen(IBV_EVENT_DEVICE_FATAL);
	fi_freeinfo(what.info);
	what = await_event(&link, link.a.eq);
	MUST_BE(!what.event && what.err == FI_ENODEV);
	link_close(&link);
}

/* Until the provider has said so: its engines ask for such news from time to time. */
static void await_said(struct link *link, const char *text)
{
	static char said[1 << 16];
	struct fi_cq_data_entry entry;
	ssize_t len;

	do {
		MUST_BE(fi_cq_read(link->a.cq, &entry, 1) == -FI_EAGAIN);	/* a case has its time */
		len = pread(2, said, sizeof(said) - 1, 0);
		MUST_BE(len >= 0);
		said[len] = '\0';
	} while (!strstr(said, text));
}

/* The port goes down: what is up stays so, since it may come back. */
static void port_fails(void)
{
	struct link link = { 0 };

	link_open(&link);
	happen(IBV_EVENT_PORT_ERR);
	await_said(&link, "is down");
	link_send(&link, link.a.room, fi_mr_desc(link.a.mr), 100);
	link_close(&link);
}

static void nothing_is_found(void)
{
	hints_in_vain(hints_new());
}

static void no_datagrams(void)
{
	hints_in_vain(dgram_hints_new());
}

static void no_channel(void)
{
	struct fi_info *hints = hints_new(), *info;
	struct fid_fabric *fabric;
	struct fid_pep *pep;
	struct end end = { 0 };

	MUST(fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	setenv("SOFTVERBS_FAIL", "rdma_create_event_channel:1+=ENODEV", 1);
	MUST_FAIL(fi_passive_ep(fabric, info, &pep, NULL), FI_ENODEV);
	MUST(fi_close(&fabric->fid));
	end_open(&end, info);
	MUST_FAIL(end_open_ep(&end), FI_ENODEV);
	end_close(&end);
	fi_freeinfo(hints);
}

/* What is left of everything when each limit is the least that there can be. */
static void least(void)
{
	struct link link = { 0 };

	link_open(&link);
	MUST_BE(link.a.info->tx_attr->size >= 1 && link.a.info->tx_attr->iov_limit == 1 &&
		!link.a.info->tx_attr->inject_size);
	for (int i = 0; i < 5; i++) {
		link.a.room[0] = (char) i;
		link_send(&link, link.a.room, fi_mr_desc(link.a.mr), 1);
		MUST_BE(link.b.room[0] == (char) i);
	}
	link_close(&link);
}

/* Both ends' queues overflow by the second message that arrived, whenever that is seen. What was posted ends once. */
static void queue_overflows(void)
{
	struct link link = { 0 };
	struct fi_cq_err_entry error;
	bool seen[4] = { false };
	volatile char *last;

	link_open(&link);
	memset(link.a.room, 1, 64);
	last = link.b.room + 4 * 64 - 1;
	for (intptr_t i = 0; i < 4; i++)
		MUST(fi_recv(link.b.ep, link.b.room + i * 64, 64, fi_mr_desc(link.b.mr), 0, (void *) i));
	for (intptr_t i = 0; i < 4; i++)
		MUST(fi_send(link.a.ep, link.a.room, 64, fi_mr_desc(link.a.mr), 0, (void *) i));
	while (!*last)			/* a case has its time */
		;
	for (int i = 0; i < 4; i++) {
		MUST_BE(await_comp(&link, &link.b, &error) == FI_EIO);
		MUST_BE((intptr_t) error.op_context < 4 && !seen[(intptr_t) error.op_context]);
		seen[(intptr_t) error.op_context] = true;
	}
	for (int i = 0; i < 4; i++)
		await_comp(&link, &link.a, NULL);
	MUST_BE(await_event(&link, link.a.eq).event == FI_SHUTDOWN);
	MUST_BE(await_event(&link, link.b.eq).event == FI_SHUTDOWN);
	MUST_BE(fi_cq_read(link.a.cq, &error, 1) == -FI_EAGAIN && fi_cq_read(link.b.cq, &error, 1) == -FI_EAGAIN);
	link_close(&link);
}

/* ---- peers ---- */

/* The port goes down under a; every call asks the environment. */
static void port_down_before_the_request(void)
{
	struct link link = { 0 };
	struct happened what;

	link_listen(&link);
	setenv("SOFTVERBS_LIMITS", "port_down=1", 1);
	happen(IBV_EVENT_PORT_ERR);
	MUST(fi_connect(link.a.ep, link.a.info->dest_addr, NULL, 0));
	what = await_event(&link, link.a.eq);
	MUST_BE(!what.event && what.err == FI_ETIMEDOUT);
	link_close(&link);
}

static void port_down_before_the_answer(void)
{
	struct link link = { 0 };
	struct happened what = request(&link);

	link_open_b(&link, what.info);
	setenv("SOFTVERBS_LIMITS", "port_down=1", 1);
	happen(IBV_EVENT_PORT_ERR);
	MUST(fi_accept(link.b.ep, NULL, 0));
	what = await_event(&link, link.b.eq);
	MUST_BE(!what.event && what.err == FI_ETIMEDOUT);
	MUST(fi_close(&link.b.ep->fid));
	link.b.ep = NULL;
	what = await_event(&link, link.a.eq);
	MUST_BE(!what.event && what.err == FI_ETIMEDOUT);
	link_close(&link);
}

/* b is there and takes nothing: a's messages wait, as many as it has room for, for as long as b lives. */
static void peer_stops_receiving(void)
{
	struct link link = { 0 };
	struct fi_cq_err_entry error;
	struct fi_cq_data_entry entry;
	unsigned (*rnr_cnt)(void);
	intptr_t cnt = 0, done = 0;
	ssize_t ret;

	rnr_cnt = stand_in("sv_test_rnr_cnt");
	link_open(&link);
	while (!(ret = fi_send(link.a.ep, link.a.room, 64, fi_mr_desc(link.a.mr), 0, (void *) cnt)))
		MUST_BE((size_t) ++cnt <= link.a.info->tx_attr->size);
	MUST_BE(ret == -FI_EAGAIN && cnt > 1);
	while (rnr_cnt() < 20)		/* more often than the seven times that a device can count */
		MUST_BE(fi_cq_read(link.a.cq, &entry, 1) == -FI_EAGAIN);
	MUST_FAIL(fi_send(link.a.ep, link.a.room, 64, fi_mr_desc(link.a.mr), 0, NULL), FI_EAGAIN);
	MUST(fi_recv(link.b.ep, link.b.room, 64, fi_mr_desc(link.b.mr), 0, NULL));
	MUST_BE(!await_comp(&link, &link.b, NULL));
	MUST_BE(!await_comp(&link, &link.a, NULL));
	MUST(fi_close(&link.b.ep->fid));
	link.b.ep = NULL;
	for (done = 1; done < cnt; done++) {
		int err = await_comp(&link, &link.a, &error);

		/* the one that is being sent may find nobody there before the CM has said that it ends */
		MUST_BE(err == FI_ECONNRESET || (done == 1 && err == FI_EHOSTUNREACH));
		MUST_BE(error.op_context == (void *) done);
		if (done < 3)
			expect_text(&link.a, &error,
				    err == FI_ECONNRESET ? "the connection has ended" : "does not answer");
	}
	MUST_BE(fi_cq_read(link.a.cq, &entry, 1) == -FI_EAGAIN);
	MUST_BE(await_event(&link, link.a.eq).event == FI_SHUTDOWN);
	link_close(&link);
}

static void wrong_key(void)
{
	struct link link = { 0 };
	struct fi_cq_err_entry error;

	link_open(&link);
	MUST(fi_recv(link.b.ep, link.b.room, 64, fi_mr_desc(link.b.mr), 0, NULL));
	MUST(fi_write(link.a.ep, link.a.room, 8, fi_mr_desc(link.a.mr), 0, (uintptr_t) link.b.room,
		      fi_mr_key(link.b.mr) + 1, &link));
	expect_failed(&link, &link.a, FI_EACCES, &link, "has another key");
	/* the device has put the queue pair into its error state: nothing is sent any more */
	MUST_BE(fi_send(link.a.ep, link.a.room, 64, fi_mr_desc(link.a.mr), 0, NULL) ||
		await_comp(&link, &link.a, &error) > 0);
	link_close(&link);
}

static void peer_rejects(void)
{
	struct link link = { 0 };
	struct happened what = request(&link);

	MUST(fi_reject(link.pep, what.info->handle, "no", 2));
	fi_freeinfo(what.info);
	what = await_event(&link, link.a.eq);
	MUST_BE(!what.event && what.err == FI_ECONNREFUSED && what.data_len == 2 && !memcmp(what.data, "no", 2));
	link_close(&link);
}

static void data_is_too_long(void)
{
	static const char data[300];
	struct link link = { 0 };
	struct happened what;

	link_listen(&link);
	MUST_FAIL(fi_connect(link.a.ep, link.a.info->dest_addr, data, 56), FI_EINVAL);
	MUST(fi_connect(link.a.ep, link.a.info->dest_addr, data, 55));
	what = await_event(&link, link.pep_eq);
	MUST_BE(what.data_len == 55);
	fi_freeinfo(what.info);
	link_close(&link);
}

static void attempt_fails(int err)
{
	struct link link = { 0 };
	struct happened what;

	link_listen(&link);
	MUST(fi_connect(link.a.ep, link.a.info->dest_addr, NULL, 0));
	what = await_event(&link, link.a.eq);
	MUST_BE(!what.event && what.err == err);
	link_close(&link);
}

static void call_fails(void)
{
	attempt_fails(FI_ENODEV);
}

static void nobody_answers(void)
{
	attempt_fails(FI_ETIMEDOUT);
}

static struct fi_info *info_with(const char *node, uint32_t protocol)
{
	struct fi_info *hints = hints_new(), *info;

	hints->ep_attr->protocol = protocol;
	MUST(fi_getinfo(FI_VERSION(1, 20), node, NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static void xrc_file(void)
{
	struct end end = { 0 };

	end_open(&end, info_with("127.0.0.1", FI_PROTO_RDMA_CM_IB_XRC));
	MUST_BE(end_open_ep(&end) < 0);
	end_close(&end);
}

/* Another user has made the default file first, which anyone may read. From then on /tmp is a folder of this process
 * alone. It has no sticky bit, since kernels may refuse such a file in a folder that has (fs.protected_regular). */
static void xrc_file_of_another_user(void)
{
	static const char name[] = "/tmp/verbs_xrcd.0";
	struct end end = { 0 };
	int fd;

	if (geteuid())
		case_skip("root alone can make another user's file");
	unsetenv("FI_VERBS_XRCD_FILENAME");
	end_open(&end, info_with("127.0.0.1", FI_PROTO_RDMA_CM_IB_XRC));
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/tmp", "tmpfs", 0, "mode=777"))
		case_skip("a process cannot have a /tmp of its own here");
	fd = open(name, O_CREAT | O_EXCL | O_RDONLY, 0644);
	MUST_BE(fd >= 0 && !fchown(fd, 12345, 12345) && !close(fd));
	MUST_BE(end_open_ep(&end) == -FI_EACCES);
	end_close(&end);
}

/* A file stands for one domain of each device: another's use of it is nobody's loss. */
static void xrc_file_of_two_devices(void)
{
	struct end first = { 0 }, second = { 0 };

	setenv("SOFTVERBS_DEVICES", "soft0=127.0.0.1 soft1=::1", 1);
	end_open(&first, info_with("127.0.0.1", FI_PROTO_RDMA_CM_IB_XRC));
	MUST(end_open_ep(&first));
	end_open(&second, info_with("::1", FI_PROTO_RDMA_CM_IB_XRC));
	MUST_BE(strcmp(first.info->domain_attr->name, second.info->domain_attr->name));
	MUST(end_open_ep(&second));
	end_close(&first);
	end_close(&second);
}

static void no_domain_named(void)
{
	struct end end = { 0 };

	end_open(&end, info_with("127.0.0.1", FI_PROTO_RDMA_CM_IB_RC));
	free(end.info->domain_attr->name);
	end.info->domain_attr->name = NULL;
	MUST_BE(end_open_ep(&end) == -FI_EINVAL);
	end_close(&end);
}

static void endpoint_of_another_device(void)
{
	struct end end = { 0 };

	setenv("SOFTVERBS_DEVICES", "soft0=127.0.0.1 soft1=::1", 1);
	end_open(&end, info_with("127.0.0.1", FI_PROTO_RDMA_CM_IB_RC));
	fi_freeinfo(end.info);
	end.info = info_with("::1", FI_PROTO_RDMA_CM_IB_RC);
	MUST_BE(end_open_ep(&end) == -FI_EINVAL);
	end_close(&end);
}

static const struct vcase cases[] = {
	{ "the device fails", NULL, device_fails, "device soft0 has failed" },
	{ "a completion queue breaks", NULL, queue_breaks, "soft0" },
	{ "a queue pair fails", NULL, queue_pair_fails, "device soft0: a queue pair has failed" },
	{ "a completion queue breaks, and no event is read", "FI_VERBS_ASYNC_EVENTS=0", queue_breaks,
	  "ibv_poll_cq on soft0" },
	{ "a queue pair fails, and no event is read", "FI_VERBS_ASYNC_EVENTS=0", queue_pair_fails,
	  "ends: a request" },
	{ "the receive queue of XRC fails", "FI_VERBS_PREFER_XRC=1", xrc_queue_fails,
	  "device soft0: a shared receive queue has failed" },
	{ "a broken queue is not used again", NULL, broken_queue_is_not_used_again, "soft0" },
	{ "the device fails while an endpoint connects", NULL, fails_while_connecting, "device soft0 has failed" },
	{ "a port goes down", NULL, port_fails, "device soft0, port 1 is down" },
	{ "a device cannot be opened", "SOFTVERBS_FAIL=ibv_open_device:1+=EIO", nothing_is_found,
	  "device soft0 cannot be opened: Input/output error" },
	{ "a port is down from the start", "SOFTVERBS_LIMITS=port_down=1", nothing_is_found, "soft0, port 1.*down" },
	{ "a GID cannot be read", "SOFTVERBS_FAIL=ibv_query_gid:1+=ENODEV", nothing_is_found,
	  "device soft0, port 1 is not used: ibv_query_gid" },
	{ "FI_VERBS_GID_IDX beyond the port's table", "FI_EXPLAIN=1 FI_VERBS_GID_IDX=77", no_datagrams,
	  "FI_VERBS_GID_IDX: asked 77, offered 0 to 2" },
	{ "librdmacm without its kernel part", NULL, no_channel, "rdma_create_event_channel.*rdma_ucm" },
	{ "ids cannot be made", "SOFTVERBS_FAIL=rdma_create_id:1+=ENODEV", nothing_is_found,
	  "rdma_create_id.*rdma_ucm" },
	{ "every limit is the least", "SOFTVERBS_LIMITS=max_qp_wr=2,max_sge=1,max_inline_data=0,max_qp_rd_atom=1,"
	  "max_srq_wr=1,max_srq_sge=1,max_cqe=5", least, NULL },
	{ "a GID table that is empty", "SOFTVERBS_LIMITS=gids=0 FI_EXPLAIN=1", nothing_is_found,
	  "GID: asked one, offered none: its table is empty" },
	{ "completion queues overflow", "SOFTVERBS_LIMITS=cq_room=1", queue_overflows,
	  "device soft0: a completion queue is broken|ibv_poll_cq on soft0" },
	{ "a port goes down before a request", NULL, port_down_before_the_request,
	  "event said: soft0, port 1: no connection to fi_sockaddr_in://127.0.0.1:[0-9]+: unreachable" },
	{ "a port goes down before an answer", NULL, port_down_before_the_answer,
	  "event said: soft0, port 1: no connection from fi_sockaddr_in://127.0.0.1:[0-9]+: unreachable" },
	{ "the peer stops receiving", NULL, peer_stops_receiving, "said: soft0, port 1" },
	{ "a wrong key", NULL, wrong_key, "said: soft0, port 1" },
	{ "the peer rejects", NULL, peer_rejects,
	  "event said: soft0, port 1: no connection to fi_sockaddr_in://127.0.0.1:[0-9]+: the peer's program "
	  "rejected it" },
	{ "private data too long", NULL, data_is_too_long, "56 bytes of connection data: at most 55" },
	{ "rdma_resolve_route fails", "SOFTVERBS_FAIL=rdma_resolve_route:1=ENODEV", call_fails, NULL },
	{ "an address cannot be had", "SOFTVERBS_FAIL=cm_addr:1=ENODEV", call_fails, NULL },
	{ "a question for an address is never answered", "SOFTVERBS_FAIL=cm_addr:1+=ETIMEDOUT", nobody_answers, NULL },
	{ "a question for a route is never answered", "SOFTVERBS_FAIL=cm_route:1+=ETIMEDOUT", nobody_answers, NULL },
	{ "rdma_connect fails", "SOFTVERBS_FAIL=rdma_connect:1=ENODEV", call_fails, NULL },
	{ "an XRC file that cannot be opened", "FI_VERBS_XRCD_FILENAME=/nonexistent/xrcd", xrc_file,
	  "file of the XRC domain on device soft0, /nonexistent/xrcd: No such file" },
	{ "an XRC file that another device uses", NULL, xrc_file_of_two_devices, NULL },
	{ "an XRC domain that the kernel refuses",
	  "SOFTVERBS_FAIL=ibv_open_xrcd:1=EPERM FI_VERBS_XRCD_FILENAME=/dev/null", xrc_file,
	  "XRC domain of /dev/null \\(descriptor [0-9]+\\) .* on device soft0: Operation not permitted" },
	{ "an XRC file that is a folder", "FI_VERBS_XRCD_FILENAME=/", xrc_file,
	  "file of the XRC domain on device soft0, /: Is a directory" },
	{ "an XRC file of another user", NULL, xrc_file_of_another_user,
	  "/tmp/verbs_xrcd.0: user 12345 made it, and this process is user 0's; set FI_VERBS_XRCD_FILENAME" },
	{ "an info that names no domain", NULL, no_domain_named, "the info names no domain" },
	{ "an info of another device", NULL, endpoint_of_another_device,
	  "fi_endpoint: the address does not belong to device soft0" },
};

int main(void)
{
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}
