/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls of the library itself, as a program sees them; the core's own tests know more. fi_fabric(3), fi_errno(3). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/providers/fi_prov.h>

#include "ops.h"

/* The version of the library is at least that of the headers it came with. */
TEST_PROV(version, 0, .alone = true)
{
	CHECK(FI_VERSION_GE(fi_version(), run.ours ? FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) : run.version));
}

/* Every error number has a text of its own. */
TEST_PROV(strerror_of_all, 0, .alone = true)
{
	static const int codes[] = {
		FI_EPERM, FI_ENOENT, FI_EAGAIN, FI_ENOMEM, FI_EBUSY, FI_EINVAL, FI_ENODATA, FI_ENOSYS, FI_ENOMSG,
		FI_ETIMEDOUT, FI_ECANCELED, FI_ECONNREFUSED, FI_EOTHER, FI_ETOOSMALL, FI_EOPBADSTATE, FI_EAVAIL,
		FI_EBADFLAGS, FI_ENOEQ, FI_EDOMAIN, FI_ENOCQ, FI_ECRC, FI_ETRUNC, FI_ENOKEY, FI_ENOAV, FI_EOVERRUN,
	};
	size_t i, j;

	for (i = 0; i < COUNT(codes); i++) {
		const char *text = fi_strerror(codes[i]);

		note("%d", codes[i]);
		CHECK(text && text[0]);
		for (j = 0; j < i; j++)
			CHECK(strcmp(text, fi_strerror(codes[j])));
	}
	CHECK(fi_strerror(123456) != NULL);
	CHECK(fi_strerror(-1) != NULL);
}

struct tostr_row {
	const char *name;
	enum fi_type type;
	uint64_t value;
	const char *has;
};

static const struct tostr_row tostr_rows[] = {
	{ "ep_type", FI_TYPE_EP_TYPE, FI_EP_RDM, "FI_EP_RDM" }, { "caps", FI_TYPE_CAPS, FI_MSG | FI_RMA, "FI_RMA" },
	{ "op_flags", FI_TYPE_OP_FLAGS, FI_DELIVERY_COMPLETE, "FI_DELIVERY_COMPLETE" },
	{ "addr_format", FI_TYPE_ADDR_FORMAT, FI_SOCKADDR_IN6, "FI_SOCKADDR_IN6" },
	{ "threading", FI_TYPE_THREADING, FI_THREAD_COMPLETION, "FI_THREAD_COMPLETION" },
	{ "progress", FI_TYPE_PROGRESS, FI_PROGRESS_MANUAL, "FI_PROGRESS_MANUAL" },
	{ "protocol", FI_TYPE_PROTOCOL, FI_PROTO_XNET, "FI_PROTO_XNET" },
	{ "msg_order", FI_TYPE_MSG_ORDER, FI_ORDER_SAS, "FI_ORDER_SAS" },
	{ "mode", FI_TYPE_MODE, FI_CONTEXT, "FI_CONTEXT" },
	{ "av_type", FI_TYPE_AV_TYPE, FI_AV_TABLE, "FI_AV_TABLE" },
	{ "mr_mode", FI_TYPE_MR_MODE, FI_MR_PROV_KEY, "FI_MR_PROV_KEY" },
	{ "eq_event", FI_TYPE_EQ_EVENT, FI_CONNREQ, "FI_CONNREQ" },
	{ "cq_event_flags", FI_TYPE_CQ_EVENT_FLAGS, FI_REMOTE_WRITE, "FI_REMOTE_WRITE" },
};

/* Values have names; the re-entrant form obeys the room that it is given. */
TEST_TABLE(tostr, tostr_rows, 0, .alone = true)
{
	const struct tostr_row *row = ROW(tostr_rows);
	char buf[256], small[8];
	int value = (int) row->value;
	bool is_long = row->type == FI_TYPE_CAPS || row->type == FI_TYPE_OP_FLAGS || row->type == FI_TYPE_MSG_ORDER ||
		       row->type == FI_TYPE_MODE || row->type == FI_TYPE_CQ_EVENT_FLAGS;
	const void *data = is_long ? (const void *) &row->value : (const void *) &value;

	CHECK(strstr(fi_tostr(data, row->type), row->has));
	CHECK(fi_tostr_r(buf, sizeof(buf), data, row->type) == buf);
	CHECK(strstr(buf, row->has));
	memset(small, 'x', sizeof(small));
	fi_tostr_r(small, 5, data, row->type);
	CHECK(memchr(small, 0, 5) && small[5] == 'x');
}

/* The parameters of the providers are listed, each with a name, and freed in one go. */
TEST_PROV(parameters, 0, .alone = true)
{
	struct fi_param *params = NULL;
	int cnt = 0, i;

	MUST(fi_getparams(&params, &cnt));
	CHECK(cnt > 0);
	for (i = 0; i < cnt; i++)
		CHECK(params[i].name && params[i].name[0] && params[i].help_string);
	fi_freeparams(params);
}
