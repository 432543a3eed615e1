/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bells, see engine.h. The eventfd is read before rung is called, so that a ring during the call leads to another call.
 */
#include "common/engine/engine.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include "base/sock.h"

static void bell_ready(struct fab_source *source, uint32_t events)
{
	struct fab_bell *bell = fab_container(source, struct fab_bell, source);
	uint64_t cnt;

	(void) events;
	(void) !fab_sock->read(source->fd, &cnt, sizeof(cnt));
	bell->rung(bell);
}

int fab_bell_open(struct fab_bell *bell, struct fab_engine *engine, void (*rung)(struct fab_bell *bell))
{
	int ret;

	bell->rung = rung;
	bell->source.ready = bell_ready;
	bell->source.fd = fab_sock->eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (bell->source.fd < 0)
		return -errno;
	ret = fab_source_add(engine, &bell->source, EPOLLIN);
	if (ret)
		fab_sock_close(&bell->source.fd);
	return ret;
}

void fab_bell_close(struct fab_bell *bell)
{
	if (!fab_bell_is_open(bell))
		return;
	fab_source_del(&bell->source);
	fab_sock_close(&bell->source.fd);
}

void fab_bell_ring(struct fab_bell *bell)
{
	const uint64_t one = 1;

	(void) !fab_sock->write(bell->source.fd, &one, sizeof(one));
}
