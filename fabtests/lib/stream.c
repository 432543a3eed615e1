/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One-way messages: the client sends, the server receives. */
#include "ft.h"

/* Bytes of what is said at the end. */
#define END_LEN 1

int ft_finish(struct pp *pp, size_t size)
{
	int ret;

	(void) size;
	ret = pp->opts->server ? pp_flush(pp) : pp_recv(pp, END_LEN);
	if (!ret)
		ret = pp_send(pp, END_LEN);
	if (ret)
		return ret;
	return pp->opts->server ? pp_recv(pp, END_LEN) : pp_flush(pp);
}

static int stream_step(struct pp *pp, size_t size)
{
	return pp->opts->server ? pp_send(pp, size) : pp_recv(pp, size);
}

const struct pp_test ft_stream = {
	.transfers = 1,
	.step = stream_step,
	.end = ft_finish,
};
