/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Public API of libfabric, version 2.6: rdma/providers/fi_prov.h. */
#ifndef FI_PROV_H
#define FI_PROV_H

#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FI_EXT_INI __attribute__((visibility("default"), EXTERNALLY_VISIBLE)) struct fi_provider *fi_prov_ini(void)

#define FI_LIB_EXTENSION "fi"
#define FI_LIB_SUFFIX "fi.so"

struct fi_provider {
	uint32_t version;
	uint32_t fi_version;
	struct fi_context context;
	const char *name;
	int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
	int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	void (*cleanup)(void);
};

int fi_param_define(const struct fi_provider *provider, const char *param_name, enum fi_param_type type, const char *help_string_fmt, ...) FI_FORMAT_PRINTF(4, 5);

int fi_param_get(struct fi_provider *provider, const char *param_name, void *value);

static inline int fi_param_get_str(struct fi_provider *provider, const char *param_name, char **value)
{
	return fi_param_get(provider, param_name, value);
}

static inline int fi_param_get_int(struct fi_provider *provider, const char *param_name, int *value)
{
	return fi_param_get(provider, param_name, value);
}

static inline int fi_param_get_bool(struct fi_provider *provider, const char *param_name, int *value)
{
	return fi_param_get(provider, param_name, value);
}

static inline int fi_param_get_size_t(struct fi_provider *provider, const char *param_name, size_t *value)
{
	return fi_param_get(provider, param_name, value);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_PROV_H */
