/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Settings without effect: the table of upstream's core parameters, and the report, which keeps the variable that it
 * looks at.
 */
#include "settings.h"

#include "base/bits.h"
#include "base/core_ops.h"
#include "base/nearest.h"
#include "log.h"
#include "param.h"

#include <rdma/providers/fi_prov.h>

#include <string.h>
#include <unistd.h>

#define NO_LIBRARY	"memory of this interface needs copy functions of the program (fi_domain(3))"

/* Parameters of upstream's core, without the "FI_" of their variables. */
static const struct {
	const char *name;
	enum fi_param_type type;
	const char *why;
} core[] = {
	{ "av_remove_cleanup", FI_PARAM_BOOL, "fi_av_remove() always closes the connection" },
	{ "fork_unsafe", FI_PARAM_BOOL, "no provider needs more at a fork than the kernel does" },
	{ "hmem_cuda_enable_xfer", FI_PARAM_BOOL, "the driver's library copies from and to memory of CUDA devices" },
	{ "hmem_cuda_use_gdrcopy", FI_PARAM_BOOL, "the driver's library copies from and to memory of CUDA devices" },
	{ "hmem_neuron_use_dmabuf", FI_PARAM_BOOL, NO_LIBRARY },
	{ "hmem_synapseai_use_dmabuf", FI_PARAM_BOOL, NO_LIBRARY },
	{ "hmem_ze_use_dmabuf", FI_PARAM_BOOL, NO_LIBRARY },
	{ "mr_cuda_cache_monitor_enabled", FI_PARAM_BOOL, "registrations of device memory are not cached" },
	{ "mr_rocr_cache_monitor_enabled", FI_PARAM_BOOL, "registrations of device memory are not cached" },
	{ "mr_ze_cache_monitor_enabled", FI_PARAM_BOOL, "registrations of device memory are not cached" },
	{ "offload_coll_provider", FI_PARAM_STRING, "the endpoint's own provider executes its collectives" },
	{ "universe_size", FI_PARAM_SIZE_T, "tables of peers grow as needed" },
};

/* Prefixes of the names of variables, by provider. A build may lack some of these providers, and others only upstream
 * or a vendor has. */
static const struct {
	const char *prefix;
	const char *why;
} families[] = {
	{ "FI_NET_", "upstream's provider net is called tcp here: use FI_TCP_" },
	{ "FI_OFI_RXM_", "fi_rxm(7) lists the parameters of ofi_rxm" },
	{ "FI_OFI_RXD_", "there is no provider rxd; use tcp" },
	{ "FI_OFI_MRAIL_", "there is no provider mrail" },
	{ "FI_SHM_", "there is no provider shm; tcp connects processes of one host" },
	{ "FI_SM2_", "there is no provider sm2; tcp connects processes of one host" },
	{ "FI_LNX_", "there is no provider lnx; tcp connects processes of one host" },
	{ "FI_TCP_", "fi_tcp(7) lists the parameters of tcp" },
	{ "FI_UDP_", "fi_udp(7) lists the parameters of udp" },
	{ "FI_SOCKETS_", "fi_sockets(7) lists the parameters of sockets" },
	{ "FI_VERBS_", "fi_verbs(7) lists the parameters of verbs, if that provider is loaded" },
	{ "FI_CXI_", "the provider cxi is not loaded" },
	{ "FI_EFA_", "the provider efa is not loaded" },
	{ "FI_OPX_", "the provider opx is not loaded" },
	{ "FI_PSM2_", "the provider psm2 is not loaded" },
	{ "FI_PSM3_", "the provider psm3 is not loaded" },
	{ "FI_UCX_", "the provider ucx is not loaded" },
	{ "FI_USNIC_", "the provider usnic is not loaded" },
};

void fab_settings_define(void)
{
	for (size_t i = 0; i < fab_countof(core); i++)
		fi_param_define(NULL, core[i].name, (enum fi_param_type) (core[i].type | FAB_PARAM_UNUSED), "%s",
				core[i].why);
}

/* ---- report ---- */

static void report_defined(const char *env_name, const char *why, const char *value)
{
	if (value && why)
		FAB_INFO("%s is set without effect: %s", env_name, why);
}

/* The look at a variable that nobody reads. It is static because fab_param_each() passes no argument; only fab_init()
 * uses it, on one thread. */
static struct {
	struct fab_nearest nearest;
	const char *prefix;		/* of its provider; NULL: none of `families` */
} look;

static void look_at(const char *env_name, const char *why, const char *value)
{
	(void) why;
	(void) value;
	if (look.prefix && strncmp(env_name, look.prefix, strlen(look.prefix)))
		return;
	fab_nearest_try(&look.nearest, env_name);
}

/* A typing error is a warning. A variable of a provider that is not loaded is none: scripts set it for any library. */
static void report_unknown(const char *env_name)
{
	const char *why = "fi_info -e lists all parameters";

	look.prefix = NULL;
	for (size_t i = 0; i < fab_countof(families) && !look.prefix; i++) {
		if (!strncmp(env_name, families[i].prefix, strlen(families[i].prefix))) {
			look.prefix = families[i].prefix;
			why = families[i].why;
		}
	}
	fab_nearest_init(&look.nearest, env_name, strlen(env_name));
	fab_param_each(look_at);
	if (look.nearest.found)
		FAB_WARN("%s is set, but nothing reads it; did you mean %s?", env_name, look.nearest.found);
	else
		FAB_INFO("%s is set, but no provider reads it: %s", env_name, why);
}

void fab_settings_report(void)
{
	if (fi_log_enabled(&fab_core_prov, FI_LOG_INFO, FI_LOG_CORE))
		fab_param_each(report_defined);
	if (fi_log_enabled(&fab_core_prov, FI_LOG_WARN, FI_LOG_CORE))
		fab_param_each_unknown(report_unknown);
}
