/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See params.h. No state.
 */
#include "common/params/params.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "base/core_ops.h"

static bool param_in_range(const struct fi_provider *prov, const struct fab_param *param, long long value)
{
	if (value >= (long long) param->min && (unsigned long long) value <= param->max)
		return true;
	FI_WARN(prov, FI_LOG_CORE, "parameter %s is %lld, but must be from %zu to %zu; the default is used\n",
		param->name,
		value, param->min, param->max);
	return false;
}

static void get_string(struct fi_provider *prov, const struct fab_param *param)
{
	char *value, **to = param->value;

	if (!fi_param_get_str(prov, param->name, &value) && value && *value)
		*to = strdup(value);
}

static void get_int(struct fi_provider *prov, const struct fab_param *param)
{
	int value;

	if (!fi_param_get_int(prov, param->name, &value) && param_in_range(prov, param, value))
		*(int *) param->value = value;
}

static void get_bool(struct fi_provider *prov, const struct fab_param *param)
{
	int value;

	if (!fi_param_get_bool(prov, param->name, &value))
		*(bool *) param->value = value;
}

static void get_size(struct fi_provider *prov, const struct fab_param *param)
{
	size_t value;

	if (!fi_param_get_size_t(prov, param->name, &value) &&
	    param_in_range(prov, param, fab_min(value, (size_t) INT64_MAX)))
		*(size_t *) param->value = value;
}

static void (*const getters[])(struct fi_provider *prov, const struct fab_param *param) = {
	[FI_PARAM_STRING] = get_string,
	[FI_PARAM_INT] = get_int,
	[FI_PARAM_BOOL] = get_bool,
	[FI_PARAM_SIZE_T] = get_size,
};

void fab_params_read(struct fi_provider *prov, const struct fab_param *params, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		unsigned type = params[i].type | (params[i].value ? 0 : FAB_PARAM_UNUSED);

		fi_param_define(prov, params[i].name, (enum fi_param_type) type, "%s", params[i].help);
		if (params[i].value)
			getters[params[i].type](prov, &params[i]);
	}
}
