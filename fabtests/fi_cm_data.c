/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_cm_data: the data that goes with a connection request, with its acceptance and with its rejection, at every
 * power of two up to what both ends take.
 */
#include "lib/func.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DATA 4096

union event {
	struct fi_eq_cm_entry cm;
	char room[sizeof(struct fi_eq_cm_entry) + MAX_DATA];
};

/* The smaller of both ends' FI_OPT_CM_DATA_SIZE. */
static int agree_limit(struct func *func, struct fid *fid, size_t *limit)
{
	size_t ours = 0, len = sizeof(ours);
	uint32_t told, theirs;

	FUNC_CALL(func, fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &ours, &len));
	FUNC_EXPECT(func, ours > 0, "FI_OPT_CM_DATA_SIZE is 0");
	told = htonl(ours < MAX_DATA ? (uint32_t) ours : MAX_DATA);
	FUNC_TRY(func_exchange(func, &told, &theirs, sizeof(told), "the limit of connection data"));
	*limit = ntohl(told) < ntohl(theirs) ? ntohl(told) : ntohl(theirs);
	return 0;
}

/* An endpoint that can be connected. */
static int open_ep(struct func *func, struct fi_info *info, struct fid_ep **ep)
{
	const struct func_ep_attr attr = { .cq_size = 0 };
	struct fid_cq *cq;

	FUNC_TRY(func_cq_open(func, &attr, NULL, &cq));
	FUNC_CALL(func, fi_endpoint(func->domain, info, ep, NULL));
	FUNC_TRY(func_own(func, &(*ep)->fid, "endpoint"));
	FUNC_CALL(func, fi_ep_bind(*ep, &func->pp->eq->fid, 0));
	FUNC_CALL(func, fi_ep_bind(*ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	FUNC_CALL(func, fi_enable(*ep));
	return 0;
}

/* What came is what the peer sent; a transport may have filled it up with zeros. */
static int check(struct func *func, const void *data, size_t got, size_t len, uint64_t seq, const char *what)
{
	const char *byte = data;
	size_t i;

	FUNC_EXPECT(func, got >= len, "%s: %zu bytes came, %zu were sent", what, got, len);
	for (i = len; i < got; i++)
		FUNC_EXPECT(func, !byte[i], "%s: byte %zu, behind what was sent, is not 0", what, i);
	return pp_check(func->pp, data, len, seq);
}

static int wait_event(struct func *func, uint32_t wanted, union event *event, size_t *len, const char *what)
{
	ssize_t ret = func_wait_event(func, wanted, event, sizeof(*event), what);

	if (ret < 0)
		return (int) ret;
	*len = (size_t) ret - sizeof(event->cm);
	return 0;
}

static int server_once(struct func *func, size_t len, bool reject)
{
	char data[MAX_DATA];
	union event event;
	struct fid_ep *ep;
	size_t got = 0;
	int ret;

	FUNC_TRY(wait_event(func, FI_CONNREQ, &event, &got, "a connection request"));
	pp_fill(data, len, len + 1);
	ret = check(func, event.cm.data, got, len, len, "data of a request");
	if (!ret && reject)
		ret = fi_reject(func->pp->pep, event.cm.info->handle, data, len);
	else if (!ret)
		ret = open_ep(func, event.cm.info, &ep);
	fi_freeinfo(event.cm.info);
	if (ret || reject)
		return ret ? pp_fail(func->pp, ret, "answer a request") : func_sync(func);
	FUNC_CALL(func, fi_accept(ep, data, len));
	FUNC_TRY(wait_event(func, FI_CONNECTED, &event, &got, "the connection"));
	FUNC_TRY(func_sync(func));
	return func_close(func, &ep->fid);
}

/* The error entry of a connection that was rejected. */
static int wait_rejection(struct func *func, size_t len)
{
	struct fi_eq_err_entry error = { .err_data_size = 0 };
	struct pp_wait wait = { .polls = 0 };
	char data[MAX_DATA];
	uint32_t event;
	ssize_t ret;

	while ((ret = fi_eq_read(func->pp->eq, &event, data, sizeof(data), 0)) == -FI_EAGAIN)
		FUNC_TRY(func_tick(func, &wait, "a rejection"));
	FUNC_EXPECT(func, ret == -FI_EAVAIL, "a rejection: fi_eq_read gave %zd, not -FI_EAVAIL", ret);
	error.err_data = data;
	error.err_data_size = sizeof(data);
	ret = fi_eq_readerr(func->pp->eq, &error, 0);
	FUNC_EXPECT(func, ret > 0, "fi_eq_readerr gave %zd", ret);
	FUNC_EXPECT(func, error.err == FI_ECONNREFUSED, "a rejection: error %d (%s)", error.err,
		    fi_strerror(error.err));
	return check(func, error.err_data, error.err_data_size, len, len + 1, "data of a rejection");
}

static int client_once(struct func *func, size_t len, bool reject)
{
	char data[MAX_DATA];
	union event event;
	struct fid_ep *ep;
	size_t got = 0;

	FUNC_TRY(open_ep(func, func->pp->info, &ep));
	pp_fill(data, len, len);
	FUNC_CALL(func, fi_connect(ep, func->pp->info->dest_addr, data, len));
	if (reject) {
		FUNC_TRY(wait_rejection(func, len));
	} else {
		FUNC_TRY(wait_event(func, FI_CONNECTED, &event, &got, "the connection"));
		FUNC_TRY(check(func, event.cm.data, got, len, len + 1, "data of an acceptance"));
	}
	FUNC_TRY(func_sync(func));
	return func_close(func, &ep->fid);
}

/* What a closed connection leaves behind is not of interest. */
static void drain_eq(struct func *func)
{
	struct fi_eq_err_entry error = { .err_data_size = 0 };
	union event event;
	uint32_t type;
	ssize_t ret;

	while ((ret = fi_eq_read(func->pp->eq, &type, &event, sizeof(event), 0)) > 0 || ret == -FI_EAVAIL) {
		if (ret == -FI_EAVAIL)
			fi_eq_readerr(func->pp->eq, &error, 0);
		else if (type == FI_CONNREQ)
			fi_freeinfo(event.cm.info);
	}
}

static int exchange(struct func *func, size_t len, bool reject)
{
	FUNC_TRY(func->client ? client_once(func, len, reject) : server_once(func, len, reject));
	drain_eq(func);
	return func_sync(func);
}

static int run(struct func *func)
{
	struct fid_ep *ep = NULL;
	size_t limit = 0, len;

	if (func->client)
		FUNC_TRY(open_ep(func, func->pp->info, &ep));
	FUNC_TRY(agree_limit(func, ep ? &ep->fid : &func->pp->pep->fid, &limit));
	for (len = 1; len <= limit; len = len < limit && 2 * len > limit ? limit : 2 * len) {
		FUNC_TRY(exchange(func, len, false));
		FUNC_TRY(exchange(func, len, true));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Send data with a connection request, its acceptance and its rejection.",
		.ep_type = FI_EP_MSG,
		.caps = FI_MSG,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
