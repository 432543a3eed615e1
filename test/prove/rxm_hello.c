/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The private data of a connection request between two endpoints of rxm, of every length.
 *
 * eva: -eva-slevel 60
 */
#include "prove.h"
#include "base/strbuf.c"
#include "base/addr_ib.c"
#undef SCHEME
#include "base/addr.c"
#include "rxm/conn.c"

/*@ requires \valid(to + (0 .. size - 1));
  @ assigns to[0 .. size - 1], \result \from family;
  @ ensures \initialized(to + (0 .. size - 1));
  @*/
extern const char *inet_ntop(int family, const void *from, char *to, socklen_t size);

static struct rxm_ep ep;
static struct fi_info info;
static union fab_any_addr remote;
static uint8_t data[256];
struct rxm_params rxm_params;

/* The data is the end of the array. */
static void prove_len(size_t len)
{
	union fab_sockaddr from;
	struct rxm_cm_req req;

	any_bytes(data, sizeof(data));
	any_bytes(&remote, sizeof(remote));
	if (read_req(&ep, &info, data + sizeof(data) - len, len, &req, &from)) {
		prove(req.version == RXM_CM_VERSION);
		prove(req.port != 0);
		prove(len >= sizeof(req));
	}
}

int main(void)
{
	any_bytes(&ep.addr, sizeof(ep.addr));
	ep.addr.sa.sa_family = any_of(0, 1) ? FAB_AF_GID : any_of(0, 1) ? AF_INET : AF_INET6;
	info.dest_addr = &remote;
	rxm_params.buffer_size = any_of(0, UINT32_MAX);
	//@ loop unroll 300;
	for (size_t len = 0; len < sizeof(data); len++) {
		info.dest_addrlen = any_of(0, sizeof(remote));
		prove_len(len);
	}
	reached();
	return 0;
}
