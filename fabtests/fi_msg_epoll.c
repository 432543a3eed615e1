/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_msg_epoll: completions that are waited for with fi_trywait() and epoll on the queue's descriptor, and nothing
 * else. */
#include "lib/func.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Sleep in epoll, where fi_trywait() allows it, until the operation is done: nothing else reads the queue meanwhile. */
static int sleep_until(struct func *func, struct func_ep *ep, int epoll_fd, const struct func_op *op)
{
	struct fid *fids[] = { &ep->cq->fid };
	struct epoll_event event;
	int ret;

	while (!op->done) {
		ret = fi_trywait(func->pp->fabric, fids, 1);
		if (ret && ret != -FI_EAGAIN)
			return pp_fail(func->pp, ret, "fi_trywait");
		if (!ret) {
			ret = epoll_wait(epoll_fd, &event, 1, func->pp->opts->wait_ms);
			if (ret < 0 && errno != EINTR)
				return pp_fail(func->pp, -errno, "epoll_wait");
			FUNC_EXPECT(func, ret, "the descriptor said nothing for %d ms", func->pp->opts->wait_ms);
		}
		FUNC_TRY(func_progress(func));
	}
	return op->err ? pp_fail(func->pp, -op->err, "an operation failed") : 0;
}

static int send_one(struct func *func, struct func_ep *ep, int epoll_fd, uint64_t seq)
{
	size_t len = func_size(func, 0);
	struct func_op op = { .done = 0 };

	pp_fill(ep->tx.mem, len, seq);
	FUNC_TRY(func_send(func, ep, len, &op));
	return sleep_until(func, ep, epoll_fd, &op);
}

static int exchange(struct func *func, struct func_ep *ep, int epoll_fd, uint64_t seq)
{
	struct func_op op = { .done = 0 };

	FUNC_TRY(func_recv(func, ep, ep->rx.len, &op));
	FUNC_TRY(func_sync(func));
	if (func->client)
		FUNC_TRY(send_one(func, ep, epoll_fd, seq));
	FUNC_TRY(sleep_until(func, ep, epoll_fd, &op));
	FUNC_TRY(pp_check(func->pp, ep->rx.mem, func_size(func, 0), func->client ? seq + 1 : seq));
	return func->client ? 0 : send_one(func, ep, epoll_fd, seq + 1);
}

static int with_epoll(struct func *func, struct func_ep *ep, int epoll_fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	uint32_t i;
	int fd;

	FUNC_CALL(func, fi_control(&ep->cq->fid, FI_GETWAIT, &fd));
	FUNC_CALL(func, epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0);
	for (i = 0; i < func->iterations; i++)
		FUNC_TRY(exchange(func, ep, epoll_fd, i));
	return 0;
}

static int run(struct func *func)
{
	const struct func_ep_attr attr = { .wait_obj = FI_WAIT_FD };
	struct func_ep ep;
	int ret, epoll_fd;

	FUNC_TRY(func_ep_open(func, &ep, &attr));
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		return pp_fail(func->pp, -errno, "epoll_create1");
	ret = with_epoll(func, &ep, epoll_fd);
	close(epoll_fd);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Wait for completions with fi_trywait() and epoll.",
		.ep_type = FI_EP_MSG,
		.choose_type = true,
		.caps = FI_MSG,
		.iterations = 10,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
