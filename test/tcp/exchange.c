/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See exchange.h. */
#include "exchange.h"

#include <string.h>
#include "base/clock.h"
#include "base/sock.h"

static void on_done(struct tcp_cm *cm)
{
	((struct exchange *) cm->ctx)->over = true;
}

static void on_fail(struct tcp_cm *cm, int err)
{
	struct exchange *x = cm->ctx;

	x->over = true;
	x->err = err;
	tcp_cm_text(cm, err, x->text, sizeof(x->text));
}

static const struct tcp_cm_owner owner = { .done = on_done, .fail = on_fail };

void exchange_open(struct exchange *x)
{
	memset(x, 0, sizeof(*x));
	assert_int_equal(fab_progress_init(&x->progress, &(struct fab_progress_attr) { .shared = true }), 0);
	x->cm = tcp_cm_new(&x->progress, &owner, x);
	assert_non_null(x->cm);
}

void exchange_close(struct exchange *x)
{
	fab_progress_lock(&x->progress);
	tcp_cm_free(x->cm);
	fab_progress_run(&x->progress);
	fab_progress_unlock(&x->progress);
	fab_progress_fini(&x->progress);
}

void exchange_accept(struct exchange *x, int listener, const struct sockaddr_in *addr)
{
	int fd = raw_accept(listener, NULL, NULL);

	assert_int_equal(fab_sock->set_nonblock(fd, true), 0);
	fab_progress_lock(&x->progress);
	assert_int_equal(tcp_cm_await(x->cm, fd, &(union fab_sockaddr) { .sin = *addr }), 0);
	fab_progress_unlock(&x->progress);
}

int exchange_connect(struct exchange *x, const struct sockaddr_in *to, const struct tcp_cm_msg *msg)
{
	int ret;

	fab_progress_lock(&x->progress);
	ret = tcp_cm_connect(x->cm, -1, NULL, &(union fab_sockaddr) { .sin = *to }, msg);
	fab_progress_unlock(&x->progress);
	return ret;
}

void exchange_drive(void *arg)
{
	struct exchange *x = arg;

	fab_progress_lock(&x->progress);
	fab_progress_run(&x->progress);
	fab_progress_unlock(&x->progress);
}

void exchange_finish(struct exchange *x)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;

	while (!x->over && fab_now_ms() < end_ms)
		exchange_drive(x);
	assert_true(x->over);
}
