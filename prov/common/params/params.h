/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parameters of a provider (fi_provider(3)): a table that is defined and read when the provider is initialised.
 */
#ifndef FAB_PARAMS_H
#define FAB_PARAMS_H

#include <stddef.h>
#include <rdma/providers/fi_prov.h>

/* A parameter, with the place for its value and the range allowed. */
struct fab_param {
	const char *name;		/* in lower case, without the provider's prefix: "tx_size" */
	enum fi_param_type type;
	/* NULL: the parameter is accepted without effect. Otherwise a char * (set to memory that the provider frees, or
	 * not changed), an int, a bool or a size_t, by type. It holds the default before. */
	void *value;
	size_t min, max;		/* for an int or size_t */
	const char *help;		/* with unit and default; for a parameter without effect, the reason */
};

/* Define every parameter of the table, and read those with a place for the value. An invalid value is logged as a
 * warning, and the default stays. Call from one thread. */
void fab_params_read(struct fi_provider *prov, const struct fab_param *params, size_t cnt);

#endif
