/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The entry of the provider: its tables and parameters, and its struct fi_provider.
 */
#include "config.h"
#include "tcp/face/face.h"

#include "common/endpoint/endpoint.h"
#include "tcp/calls/calls.h"
#include "tcp/capture/capture.h"
#include "tcp/endpoint/endpoint.h"
#include "tcp/offer/offer.h"
#include "tcp/params/params.h"
#include "tcp/sock/sock.h"

void tcp_init(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	tcp_domain_fill_ops();
	fab_pep_fill_ops();
	tcp_ep_fill_ops();
	tcp_data_fill_ops();
	tcp_shared_fill_ops();
	tcp_sep_fill_ops();
	tcp_params_read();
	tcp_advert_init();
	tcp_capture_read();
}

void tcp_cleanup(void)
{
	tcp_capture_close();
	tcp_params_free();
}

struct fi_provider *fab_tcp_prov_ini(void)
{
	tcp_init();
	tcp_prov.getinfo = tcp_getinfo;
	tcp_prov.fabric = tcp_fabric_open;
	tcp_prov.cleanup = tcp_cleanup;
	return &tcp_prov;
}

#ifdef HAVE_TCP_DL
FI_EXT_INI
{
	return fab_tcp_prov_ini();
}
#endif
