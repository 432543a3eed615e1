/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The control channel in band: nothing goes beside the fabric. */
#ifndef FABTESTS_INBAND_H
#define FABTESTS_INBAND_H

#include "../../util/pp.h"

/* A carrier for pp_opts.carrier: a pair of endpoints of the type, provider and addresses of the options. The server's
 * is at -B in the provider's own port space, the client finds it with fi_getinfo() by HOST and -P, and tells its own
 * address in its first message. */
extern const struct pp_carrier ft_inband;

#endif /* FABTESTS_INBAND_H */
