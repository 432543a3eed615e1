/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The interface between providers and the library - fi_provider(3). A provider is built in, or is a shared library
 * lib<name>-fi.so with a function fi_prov_ini(), in $libdir/libfabric or in a folder of FI_PROVIDER_PATH.
 */
#ifndef FI_PROV_H
#define FI_PROV_H

#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The end of the file name of a provider. */
#define FI_LIB_EXTENSION "fi"
#define FI_LIB_SUFFIX FI_LIB_EXTENSION ".so"

/* The head of the only function that the file exports:
 *	FI_EXT_INI { return &my_provider; }
 * It is called once, when the library starts. NULL: the provider cannot be used in this process. */
#define FI_EXT_INI __attribute__((visibility("default"), EXTERNALLY_VISIBLE)) struct fi_provider *fi_prov_ini(void)

/*
 * A provider. The struct must stay valid until cleanup; the library only reads it, except context. Objects that it
 * opens have tables of its own functions, and calls on them do not go through the library.
 */
struct fi_provider {
	uint32_t version;		/* FI_VERSION(), the provider's own: of two with the same name the higher one is
					 * used */
	uint32_t fi_version;		/* API it was written for: programs that ask for a newer one do not get it */
	struct fi_context context;	/* the library's */
	const char *name;		/* "tcp"; of a layer "ofi_rxm" */
	/* The provider's fi_getinfo(). hints, if not NULL, have the newest layout, also for an old program. The library
	 * frees the list. Any thread. */
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	/* Open a fabric. Any thread. */
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	/* Called once, when the library is unloaded or another provider of the same name is preferred. */
	void (*cleanup)(void);
};


/*
 * Parameters - the environment variable FI_<PROVIDER>_<NAME>, in upper case, or FI_<NAME> with provider NULL.
 */

/* Define a parameter, so that it can be read and is listed by fi_getparams(). The text is a printf format, and says the
 * default. Name and text are copied. -FI_EINVAL: one of them is missing. */
int fi_param_define(const struct fi_provider *provider, const char *param_name, enum fi_param_type type,
		    const char *help_string_fmt, ...) FI_FORMAT_PRINTF(4, 5);

/*
 * Read a parameter into a variable of its type (enum fi_param_type). FI_SUCCESS: *value is set; a string belongs to the
 * library. Otherwise *value is unchanged. -FI_ENODATA: the parameter is not set. -FI_ENOENT: it is not defined.
 * -FI_EINVAL: it is set to an invalid value.
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
