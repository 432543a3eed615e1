/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See tclass.h. The codepoints are those of RFC 4594, and for the scavenger RFC 8622. */
#include "common/net/tclass.h"

#include <netinet/in.h>
#include <string.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "base/sock.h"

#define DSCP_MAX 63

static const uint8_t dscp_of[] = {
	[FI_TC_BEST_EFFORT - FI_TC_LABEL] = 0,		/* DF */
	[FI_TC_LOW_LATENCY - FI_TC_LABEL] = 46,		/* EF */
	[FI_TC_DEDICATED_ACCESS - FI_TC_LABEL] = 40,	/* CS5 */
	[FI_TC_BULK_DATA - FI_TC_LABEL] = 10,		/* AF11 */
	[FI_TC_SCAVENGER - FI_TC_LABEL] = 1,		/* LE */
	[FI_TC_NETWORK_CTRL - FI_TC_LABEL] = 48,	/* CS6 */
};

bool fab_tclass_exists(uint32_t tclass)
{
	if (tclass & FI_TC_DSCP)
		return tclass <= (FI_TC_DSCP | DSCP_MAX);
	return tclass >= FI_TC_LABEL && tclass - FI_TC_LABEL < fab_countof(dscp_of);
}

int fab_tclass_dscp(const struct fi_info *info, uint32_t fallback)
{
	uint32_t tclass = info->tx_attr && info->tx_attr->tclass ? info->tx_attr->tclass : fallback;

	if (!fab_tclass_exists(tclass))
		return -1;
	return tclass & FI_TC_DSCP ? fi_tc_dscp_get(tclass) : dscp_of[tclass - FI_TC_LABEL];
}

void fab_tclass_mark(const struct fi_provider *prov, const struct fi_info *info, uint32_t fallback, int fd)
{
	bool v6 = info->addr_format == FI_SOCKADDR_IN6;
	int dscp = fab_tclass_dscp(info, fallback), ret;

	if (dscp < 0)
		return;
	/* the low two bits are for congestion notification and belong to the kernel */
	ret = fab_sock_set_int(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, dscp << 2);
	if (ret)
		FI_WARN(prov, FI_LOG_EP_CTRL, "the DSCP %d of the traffic class cannot be set: %s; packets are sent "
			"without it\n", dscp, strerror(-ret));
}
