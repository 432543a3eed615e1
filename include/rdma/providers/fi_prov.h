/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a provider and the library are to one another - fi_provider(3). A provider is built in, or is a
 * shared library lib<name>-fi.so, in $libdir/libfabric or in a folder of FI_PROVIDER_PATH, that has fi_prov_ini().
 */
#ifndef FI_PROV_H
#define FI_PROV_H

#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the file of a provider ends. */
#define FI_LIB_EXTENSION "fi"
#define FI_LIB_SUFFIX FI_LIB_EXTENSION ".so"

/* The head of the one function that the file exports:
 *	FI_EXT_INI { return &my_provider; }
 * It is called once, when the library starts. NULL: this provider cannot run here, forget it. */
#define FI_EXT_INI __attribute__((visibility("default"), EXTERNALLY_VISIBLE)) struct fi_provider *fi_prov_ini(void)

/*
 * A provider. It stays where it is until cleanup; the library only reads it, apart from context. Objects that it opens
 * have tables of functions of its own; the library has no part in calls on them.
 */
struct fi_provider {
	uint32_t version;		/* FI_VERSION(), its own: of two with the same name the higher one is taken */
	uint32_t fi_version;		/* API it was written for: programs that ask for a newer one do not see it */
	struct fi_context context;	/* the library's */
	const char *name;		/* "tcp"; of a layer "ofi_rxm" */
	/* What it offers, as fi_getinfo() describes it. hints, if any, is of the newest length, also for an old
	 * program. The library frees the list. Any thread. */
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	/* Open a fabric. Any thread. */
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	/* The end: called once, when the library is unloaded or another provider of the same name is preferred. */
	void (*cleanup)(void);
};


/*
 * Parameters - the environment variable FI_<PROVIDER>_<NAME>, in upper case, or FI_<NAME> with provider NULL.
 */

/* Make a parameter known, so that it can be read, and be listed by fi_getparams(). The text is a format, and says the
 * default; name and text are copied. -FI_EINVAL: one of them is missing. */
int fi_param_define(const struct fi_provider *provider, const char *param_name, enum fi_param_type type,
		    const char *help_string_fmt, ...) FI_FORMAT_PRINTF(4, 5);

/*
 * Read a parameter into what its type says (enum fi_param_type). FI_SUCCESS: *value is set; a string is the library's.
 * Otherwise it is unchanged: -FI_ENODATA: nobody has set it. -FI_ENOENT: it is not defined. -FI_EINVAL: what was set is
 * no value of the type.
 */
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
