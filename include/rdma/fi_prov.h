/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where rdma/providers/fi_prov.h was until libfabric 1.3, for sources of that time. Write the other name in new ones.
 */
#include <rdma/providers/fi_prov.h>
