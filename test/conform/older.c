/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The suite is compiled once and runs with every libfabric from 1.9 on. Since then struct fi_domain_attr alone has
 * grown, at its end. The functions that take or return a struct fi_info are called under other names
 * (conform_getinfo() for fi_getinfo(), by macros on the compiler's command line), so that the program asks for no
 * version of their symbols. What an older library allocates is made as long as our headers say, with zeros behind.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>

#undef fi_getinfo
#undef fi_dupinfo
#undef fi_freeinfo

/* The length of struct fi_domain_attr by version of the library, newest first. */
static size_t domain_attr_len(void)
{
	static const struct {
		uint32_t since;
		size_t len;
	} known[] = {
		{ FI_VERSION(2, 5), 224 }, { FI_VERSION(2, 0), 208 }, { FI_VERSION(1, 20), 200 }, { 0, 192 },
	};
	size_t i = 0;

	while (FI_VERSION_LT(fi_version(), known[i].since))
		i++;
	return known[i].len < sizeof(struct fi_domain_attr) ? known[i].len : sizeof(struct fi_domain_attr);
}

static void *in_library(const char *name)
{
	void *fn = dlsym(RTLD_DEFAULT, name);

	if (!fn)
		abort();	/* it is linked */
	return fn;
}

static void widen(struct fi_info *info)
{
	size_t len = domain_attr_len();

	for (; info && len < sizeof(*info->domain_attr); info = info->next) {
		if (!info->domain_attr)
			continue;
		info->domain_attr = realloc(info->domain_attr, sizeof(*info->domain_attr));
		if (!info->domain_attr)
			abort();
		memset((char *) info->domain_attr + len, 0, sizeof(*info->domain_attr) - len);
	}
}

int conform_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		    const struct fi_info *hints, struct fi_info **info)
{
	int (*fn)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **) =
		in_library("fi_getinfo");
	int ret = fn(version, node, service, flags, hints, info);

	if (!ret)
		widen(*info);
	return ret;
}

struct fi_info *conform_dupinfo(const struct fi_info *info)
{
	struct fi_info *(*fn)(const struct fi_info *) = in_library("fi_dupinfo");
	struct fi_info *dup = fn(info);
	size_t len = domain_attr_len();

	widen(dup);
	if (dup && info && info->domain_attr && dup->domain_attr)
		memcpy((char *) dup->domain_attr + len, (const char *) info->domain_attr + len,
		       sizeof(*dup->domain_attr) - len);
	return dup;
}

void conform_freeinfo(struct fi_info *info)
{
	void (*fn)(struct fi_info *) = in_library("fi_freeinfo");

	fn(info);
}
