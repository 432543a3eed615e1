/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to this room: fab_lend() for each class of object, with the results of fab_lend().
 */
#ifndef FAB_LENT_OWN_H
#define FAB_LENT_OWN_H

#include "common/lent/lent.h"

/* Make the exported form. *exp->fid belongs to the caller. No lock held. 0 or -FI_E* as fab_lend(). */
int fab_export_cq(struct fab_cq *cq, struct fi_fid_export *exp);
int fab_export_cntr(struct fab_cntr *cntr, struct fi_fid_export *exp);
int fab_export_av(struct fab_av *av, struct fi_fid_export *exp);
int fab_export_av_set(struct fab_av_set *set, struct fi_fid_export *exp);

#endif
