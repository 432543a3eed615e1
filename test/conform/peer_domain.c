/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See export.h. */
#include "export.h"

void *export(struct test *t, struct fid *fid, size_t class)
{
	struct fid *exported = NULL;
	int ret;

	ret = fi_export_fid(fid, 0, &exported, t);
	if (ret == -FI_ENOSYS && class == FI_CLASS_PEER_SRX)
		ABSENT("%s exports no shared receive contexts", run.prov);
	MUST(ret);
	own_fid(t, exported);
	CHECK_EQ(exported->fclass, class);
	CHECK(exported->context == t);
	return exported;
}

struct side *peer_open(struct test *t, const struct opts *o, const struct owners *owners)
{
	struct fi_peer_cq_context context = { .size = sizeof(context), .cq = owners->cq };
	struct fi_peer_srx_context srx_context = { .size = sizeof(srx_context), .srx = owners->srx };
	struct fi_peer_av_context av_context = { .size = sizeof(av_context), .av = owners->av };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .flags = FI_PEER };
	struct fi_av_attr av_attr = { .flags = FI_PEER };
	struct side *s = domain_side_opts(t, o);
	struct fi_rx_attr rx_attr = *s->info->rx_attr;

	rx_attr.op_flags = FI_PEER;
	MUST(fi_cq_open(s->domain, &attr, &s->tx_cq, &context));
	own_fid(t, &s->tx_cq->fid);
	s->rx_cq = s->tx_cq;
	if (owners->srx) {
		MUST(fi_srx_context(s->domain, &rx_attr, &s->o.srx, &srx_context));
		own_fid(t, &s->o.srx->fid);
	}
	if (owners->av) {
		MUST(fi_av_open(s->domain, &av_attr, &s->av, &av_context));
		own_fid(t, &s->av->fid);
	} else {
		side_open_av(s);
	}
	side_open_ep(s);
	side_bind(s);
	side_enable(s);
	return s;
}

void peer_insert(struct side *a, struct side *b, fi_addr_t number)
{
	CHECK_RET(fi_av_insert(a->av, b->name, 1, &number, FI_AV_USER_ID, NULL), 1);
}
