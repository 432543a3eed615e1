/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names and connections, over the control channel and the events of pp->eq. Every wait is bounded, and ends when the
 * peer ends.
 *
 *   server  pp_listen -> pp_wait_request -> an endpoint -> pp_accept
 *   client  pp_get_info_to_server -> an endpoint -> pp_connect
 */
#include "pp.h"

#include <stdlib.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "common.h"

/* A wait on an event queue returns after this time to check whether the peer has ended. */
#define EQ_SLICE_MS 50

int pp_get_info_to_server(struct pp *pp)
{
	int ret;

	ret = pp_ctrl_recv_name(pp, &pp->hints->dest_addr, &pp->hints->dest_addrlen, &pp->hints->addr_format);
	return ret ? ret : pp_get_info(pp);
}

int pp_send_name(struct pp *pp, struct fid *fid)
{
	size_t len = 0;
	void *name;
	int ret;

	ret = fi_getname(fid, NULL, &len);
	if (ret && ret != -FI_ETOOSMALL)
		return pp_fail(pp, ret, "fi_getname");
	name = calloc(1, len ? len : 1);
	if (!name)
		return pp_fail(pp, -FI_ENOMEM, "fi_getname");
	ret = fi_getname(fid, name, &len);
	if (ret) {
		pp_fail(pp, ret, "fi_getname");
	} else {
		pp_debug(pp, "our address is %s", util_addr_text(pp->info->addr_format, name, len));
		ret = pp_ctrl_send_name(pp, name, len, pp->info->addr_format);
	}
	free(name);
	return ret;
}

int pp_insert_peer(struct pp *pp, struct fid_av *av, const void *name, uint32_t addr_format, fi_addr_t *addr)
{
	uint32_t ours = pp->info->addr_format;
	int ret;

	if (addr_format != ours)
		return pp_fail(pp, -FI_EADDRNOTAVAIL, "the peer's address format is %u, ours is %u", addr_format, ours);
	ret = fi_av_insert(av, name, 1, addr, 0, NULL);
	return ret == 1 ? 0 : pp_fail(pp, ret < 0 ? ret : -FI_EINVAL, "fi_av_insert");
}

int pp_recv_peer(struct pp *pp, struct fid_av *av, fi_addr_t *addr)
{
	uint32_t format;
	size_t len;
	void *name;
	int ret;

	ret = pp_ctrl_recv_name(pp, &name, &len, &format);
	if (ret)
		return ret;
	ret = pp_insert_peer(pp, av, name, format, addr);
	free(name);
	return ret;
}

int pp_swap_names(struct pp *pp, struct fid *fid, struct fid_av *av, fi_addr_t *addr)
{
	int ret = pp_send_name(pp, fid);

	return ret ? ret : pp_recv_peer(pp, av, addr);
}

/* Print the error event after -FI_EAVAIL. */
static int eq_error(struct pp *pp, const char *what)
{
	struct fi_eq_err_entry entry = { .err_data_size = 0 };
	const char *detail;
	char buf[256];
	ssize_t ret;

	ret = fi_eq_readerr(pp->eq, &entry, 0);
	if (ret < 0)
		return pp_fail(pp, (int) ret, "fi_eq_readerr");
	detail = fi_eq_strerror(pp->eq, entry.prov_errno, entry.err_data, buf, sizeof(buf));
	return pp_fail(pp, entry.err ? -entry.err : -FI_EOTHER, "%s: provider error %d (%s)", what, entry.prov_errno,
		       detail ? detail : "no text");
}

int pp_wait_event(struct pp *pp, uint32_t wanted, struct fi_eq_cm_entry *entry, const char *what)
{
	struct pp_wait wait = { .start = util_now_ns() };
	uint32_t event;
	ssize_t len;
	int ret;

	for (;;) {
		len = fi_eq_sread(pp->eq, &event, entry, sizeof(*entry), EQ_SLICE_MS, 0);
		if (len == -FI_EAVAIL)
			return eq_error(pp, what);
		if (len < 0 && len != -FI_EAGAIN && len != -FI_EINTR)
			return pp_fail(pp, (int) len, "fi_eq_sread");
		if (len >= 0)
			break;
		wait.polls = PP_POLLS_PER_TICK - 1;
		ret = pp_wait_tick(pp, &wait, what);
		if (ret)
			return ret;
	}
	if (event == wanted)
		return 0;
	return pp_fail(pp, -FI_EOTHER, "%s: event %s came instead", what, util_tostr(&event, FI_TYPE_EQ_EVENT));
}

int pp_listen(struct pp *pp)
{
	int ret;

	ret = fi_passive_ep(pp->fabric, pp->info, &pp->pep, NULL);
	if (ret)
		return pp_fail(pp, ret, "fi_passive_ep");
	ret = fi_pep_bind(pp->pep, &pp->eq->fid, 0);
	if (ret)
		return pp_fail(pp, ret, "fi_pep_bind");
	ret = fi_listen(pp->pep);
	if (ret)
		return pp_fail(pp, ret, "fi_listen");
	return pp_send_name(pp, &pp->pep->fid);
}

int pp_wait_request(struct pp *pp)
{
	struct fi_eq_cm_entry entry;
	int ret;

	ret = pp_wait_event(pp, FI_CONNREQ, &entry, "a connection request");
	if (ret)
		return ret;
	fi_freeinfo(pp->info);
	pp->info = entry.info;
	return 0;
}

int pp_accept(struct pp *pp, struct fid_ep *ep)
{
	struct fi_eq_cm_entry entry;
	int ret;

	ret = fi_accept(ep, NULL, 0);
	return ret ? pp_fail(pp, ret, "fi_accept") : pp_wait_event(pp, FI_CONNECTED, &entry, "the connection");
}

int pp_connect(struct pp *pp, struct fid_ep *ep)
{
	struct fi_eq_cm_entry entry;
	int ret;

	ret = fi_connect(ep, pp->info->dest_addr, NULL, 0);
	return ret ? pp_fail(pp, ret, "fi_connect") : pp_wait_event(pp, FI_CONNECTED, &entry, "the connection");
}
