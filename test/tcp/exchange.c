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
	assert_int_equal(fab_engine_init(&x->engine, &(struct fab_engine_attr) { .shared = true }), 0);
	x->cm = tcp_cm_new(&x->engine, &owner, x);
	assert_non_null(x->cm);
}

void exchange_close(struct exchange *x)
{
	fab_engine_lock(&x->engine);
	tcp_cm_free(x->cm);
	fab_engine_run(&x->engine);
	fab_engine_unlock(&x->engine);
	fab_engine_fini(&x->engine);
}

void exchange_accept(struct exchange *x, int listener, const struct sockaddr_in *addr)
{
	int fd = raw_accept(listener, NULL, NULL);

	assert_int_equal(fab_sock->set_nonblock(fd, true), 0);
	fab_engine_lock(&x->engine);
	assert_int_equal(tcp_cm_await(x->cm, &(struct tcp_link) { fd, NULL },
				      &(union fab_sockaddr) { .sa.sa_family = AF_INET },
				      &(union fab_sockaddr) { .sin = *addr }), 0);
	fab_engine_unlock(&x->engine);
}

int exchange_connect(struct exchange *x, const struct sockaddr_in *to, const struct tcp_cm_msg *msg)
{
	int ret;

	fab_engine_lock(&x->engine);
	ret = tcp_cm_connect(x->cm, -1, NULL, &(union fab_sockaddr) { .sin = *to }, msg);
	fab_engine_unlock(&x->engine);
	return ret;
}

void exchange_drive(void *arg)
{
	struct exchange *x = arg;

	fab_engine_lock(&x->engine);
	fab_engine_run(&x->engine);
	fab_engine_unlock(&x->engine);
}

void exchange_finish(struct exchange *x)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;

	while (!x->over && fab_now_ms() < end_ms)
		exchange_drive(x);
	assert_true(x->over);
}
