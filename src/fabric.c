/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Start and end of the library, fi_version(), fi_fabric() and fi_open(). The library starts with the first call that
 * needs it, on any thread, and ends when it is unloaded, if all fabrics have been closed by then.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "fabric.h"

#include "base/bits.h"
#include "explain.h"
#include "export.h"
#include "getinfo.h"
#include "log.h"
#include "monitor.h"
#include "param.h"
#include "registry.h"
#include "settings.h"
#include "stats.h"
#include "tostr.h"

#include <rdma/providers/fi_prov.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/* prov/hook */
void fab_hook_init(void);
void fab_hook_fabric(struct fid_fabric *fabric);

static void fabric_start(void)
{
	Dl_info self = { .dli_fname = NULL };

	fi_log_enabled(&fab_core_prov, FI_LOG_WARN, FI_LOG_CORE);	/* defines the parameters of logging */
	dladdr((void *) fabric_start, &self);
	FAB_INFO("%s, libfabric API %d.%d.%d, in %s", WEFT_VERSION, FI_MAJOR_VERSION, FI_MINOR_VERSION,
		 FI_REVISION_VERSION, self.dli_fname ? self.dli_fname : "this program");
	fab_hook_init();
	fab_param_report();
	fab_explain_init();
	fab_stats_init();
	fab_getinfo_init();
	/* read by the providers, prov/common/wait */
	fi_param_define(NULL, "wait_spin", FI_PARAM_INT,
			"Longest time, in microseconds, for which a blocking read looks again before it sleeps. It "
			"does so only where recent waits were shorter than this time; 0 sleeps at once (default: 100)");
	/* likewise, prov/common/hmem */
	fi_param_define(NULL, "hmem", FI_PARAM_STRING,
			"The interfaces to devices whose memory may be registered: cuda, rocr (default: both)");
	fi_param_define(NULL, "hmem_cuda_use_dmabuf", FI_PARAM_BOOL,
			"Register memory of CUDA devices with an RDMA device as a dma-buf, if the driver exports it "
			"(default: on)");
	fi_param_define(NULL, "hmem_rocr_use_dmabuf", FI_PARAM_BOOL,
			"Register memory of ROCr devices with an RDMA device as a dma-buf, if the runtime exports it "
			"(default: on)");
	fi_param_define(NULL, "hmem_disable_p2p", FI_PARAM_BOOL,
			"No RDMA device accesses memory of another device; verbs then registers none (default: off)");
	fab_monitor_init();
	fab_settings_define();
	fab_registry_init();
	fab_settings_report();
}

void fab_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fabric_start);
}

static _Atomic int open_cnt;		/* fabrics open */

void fab_count_fabric(int change)
{
	atomic_fetch_add(&open_cnt, change);
}

/* Called at the end of the process, or when the library is unloaded. If fabrics are still open, progress threads or the
 * program's own threads may be inside of calls, which log and read parameters. Everything is then left as it is, and
 * the kernel frees it. */
static void __attribute__((destructor)) stop(void)
{
	fab_stats_stop();
	if (atomic_load(&open_cnt) > 0)
		return;
	fab_registry_fini();
	fab_log_fini();
	fab_tostr_fini();
	fab_param_fini();
}

FAB_EXPORT uint32_t fi_version(void)
{
	return FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

FAB_EXPORT int fab_fabric_1_1(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct fi_provider *prov;
	int ret;

	if (!attr || !fabric || !attr->prov_name) {
		FAB_ERROR("fi_fabric: %s is NULL", !attr ? "attr" : !fabric ? "fabric" : "attr->prov_name");
		return -FI_EINVAL;
	}
	fab_init();
	prov = fab_registry_find(attr->prov_name);
	if (!prov) {
		FAB_ERROR("fi_fabric: there is no provider %s%s%s", attr->prov_name,
			  *fab_registry_left_out() ? "; FI_PROVIDER excludes " : "", fab_registry_left_out());
		return -FI_ENODEV;
	}
	ret = prov->fabric(attr, fabric, context);
	if (ret)
		return ret;
	/* the object of a provider from before 1.5 lacks this member */
	if (FI_VERSION_GE(prov->fi_version, FI_VERSION(1, 5)))
		(*fabric)->api_version = attr->api_version;
	fab_hook_fabric(*fabric);
	FAB_INFO("opened fabric %s of provider %s for API %u.%u", attr->name ? attr->name : "(null)", attr->prov_name,
		 FI_MAJOR(attr->api_version), FI_MINOR(attr->api_version));
	return 0;
}
FAB_DEFAULT(fab_fabric_1_1, fi_fabric, "FABRIC_1.1");

#ifdef PIC
/* The attributes of 1.0 end before api_version. */
FAB_EXPORT int fab_fabric_1_0(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct fi_fabric_attr wide = { .api_version = FI_VERSION(1, 0) };

	if (attr)
		memcpy(&wide, attr, offsetof(struct fi_fabric_attr, api_version));
	return fab_fabric_1_1(attr ? &wide : NULL, fabric, context);
}
FAB_COMPAT(fab_fabric_1_0, fi_fabric, "FABRIC_1.0");
#endif

FAB_EXPORT int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric, uint64_t flags, void *context)
{
	if (flags) {
		FAB_ERROR("fi_fabric2: flags 0x%llx: no flag is known", (unsigned long long) flags);
		return -FI_EBADFLAGS;
	}
	return fab_fabric_1_1(info ? info->fabric_attr : NULL, fabric, context);
}

/* The names that fi_open() knows. */
static const struct {
	const char *name;
	int (*open)(struct fid **fid, void *context);
} objects[] = {
	{ "explain", fab_explain_open },
	{ "logging", fab_log_open },
	{ "stats", fab_stats_open },
	{ "mr_cache", fab_monitor_open },
};

FAB_EXPORT int fi_open(uint32_t version, const char *name, void *attr, size_t attr_len, uint64_t flags,
		       struct fid **fid, void *context)
{
	size_t i;

	if (!name || !fid || attr || attr_len) {
		FAB_ERROR("fi_open: name and fid must be given; attr must be NULL and attr_len 0, because no object "
			  "has attributes");
		return -FI_EINVAL;
	}
	if (FI_VERSION_LT(fi_version(), version))
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	for (i = 0; i < fab_countof(objects); i++)
		if (!strcmp(name, objects[i].name))
			return objects[i].open(fid, context);
	FAB_INFO("fi_open: there is no object \"%s\"", name);
	return -FI_ENOSYS;
}
