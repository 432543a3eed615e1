/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Settings without effect: the table of upstream's core parameters, and the report. No state.
 */
#include "settings.h"

#include "base/bits.h"
#include "base/core_ops.h"
#include "log.h"
#include "param.h"

#include <rdma/providers/fi_prov.h>

#include <string.h>
#include <unistd.h>

#define NO_DEVICE_MEMORY	"memory of devices (FI_HMEM) is not offered"
#define NO_CACHE		"there is no cache of registrations"

/* Parameters of upstream's core, without the "FI_" of their variables. */
static const struct {
	const char *name;
	enum fi_param_type type;
	const char *why;
} core[] = {
	{ "av_remove_cleanup", FI_PARAM_BOOL, "fi_av_remove() always lets the connection go" },
	{ "fork_unsafe", FI_PARAM_BOOL, "no provider asks for more than what the kernel does when a process forks" },
	{ "hmem", FI_PARAM_STRING, NO_DEVICE_MEMORY },
	{ "hmem_cuda_enable_xfer", FI_PARAM_BOOL, NO_DEVICE_MEMORY },
	{ "hmem_cuda_use_dmabuf", FI_PARAM_BOOL, NO_DEVICE_MEMORY },
	{ "hmem_cuda_use_gdrcopy", FI_PARAM_BOOL, NO_DEVICE_MEMORY },
	{ "hmem_disable_p2p", FI_PARAM_BOOL, NO_DEVICE_MEMORY },
	{ "hmem_neuron_use_dmabuf", FI_PARAM_BOOL, NO_DEVICE_MEMORY },
	{ "hmem_rocr_use_dmabuf", FI_PARAM_BOOL, NO_DEVICE_MEMORY },
	{ "hmem_synapseai_use_dmabuf", FI_PARAM_BOOL, NO_DEVICE_MEMORY },
	{ "hmem_ze_use_dmabuf", FI_PARAM_BOOL, NO_DEVICE_MEMORY },
	{ "hook", FI_PARAM_STRING, "there are no providers that hook into others" },
	{ "log_location", FI_PARAM_BOOL, "each line of log names its function and line" },
	{ "log_location_mode", FI_PARAM_STRING, "each line of log names its function and line" },
	{ "mr_cache_max_count", FI_PARAM_SIZE_T, NO_CACHE },
	{ "mr_cache_max_size", FI_PARAM_SIZE_T, NO_CACHE },
	{ "mr_cache_monitor", FI_PARAM_STRING, NO_CACHE },
	{ "mr_cuda_cache_monitor_enabled", FI_PARAM_BOOL, NO_CACHE },
	{ "mr_rocr_cache_monitor_enabled", FI_PARAM_BOOL, NO_CACHE },
	{ "mr_ze_cache_monitor_enabled", FI_PARAM_BOOL, NO_CACHE },
	{ "offload_coll_provider", FI_PARAM_STRING, "an endpoint's own provider carries out its collectives" },
	{ "perf_cntr", FI_PARAM_STRING, "there is no hook that counts" },
	{ "universe_size", FI_PARAM_SIZE_T, "tables of peers grow as needed" },
};

/* Prefixes of the names of providers that a build may lack or that only upstream has. */
static const struct {
	const char *prefix;
	const char *why;
} families[] = {
	{ "FI_NET_", "upstream's net is tcp here: FI_TCP_" },
	{ "FI_OFI_RXM_", "fi_rxm(7) has those of ofi_rxm" },
	{ "FI_OFI_RXD_", "datagrams made reliable are those of tcp" },
	{ "FI_OFI_MRAIL_", "there is no provider of several rails" },
	{ "FI_SHM_", "peers on one host are reached by tcp" },
	{ "FI_TCP_", "fi_tcp(7) has those of tcp" },
	{ "FI_UDP_", "fi_udp(7) has those of udp" },
	{ "FI_SOCKETS_", "fi_sockets(7) has those of sockets" },
	{ "FI_VERBS_", "fi_verbs(7) has those of verbs, if that is in use" },
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

static void report_unknown(const char *env_name)
{
	for (size_t i = 0; i < fab_countof(families); i++) {
		if (!strncmp(env_name, families[i].prefix, strlen(families[i].prefix))) {
			FAB_INFO("%s is set, and nobody reads it: %s", env_name, families[i].why);
			return;
		}
	}
	FAB_INFO("%s is set, and nobody reads it; fi_info -e lists what is read", env_name);
}

void fab_settings_report(void)
{
	if (!fi_log_enabled(&fab_core_prov, FI_LOG_INFO, FI_LOG_CORE))
		return;
	fab_param_each(report_defined);
	fab_param_each_unknown(report_unknown);
}
