/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A provider's parameters (fi_provider(3)): a table of them, defined and read in one go at its initialisation.
 */
#ifndef FAB_PARAMS_H
#define FAB_PARAMS_H

#include <stddef.h>
#include <rdma/providers/fi_prov.h>

/* One parameter: where its value goes, and the range that is allowed. */
struct fab_param {
	const char *name;		/* in small letters, without the provider's: "tx_size" */
	enum fi_param_type type;
	/* NULL: accepted without effect. By type a char * (set to memory that the provider frees, or left as it is), an
	 * int, a bool or a size_t, which holds the default before. */
	void *value;
	size_t min, max;		/* of an int or size_t */
	const char *help;		/* with unit and default; of one without effect the reason */
};

/* Define every parameter of the table, and read those that have a place for the value. What cannot be used is a
 * warning, and the default stays. One thread. */
void fab_params_read(struct fi_provider *prov, const struct fab_param *params, size_t cnt);

#endif
