/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors, fi_av(3).
 *
 *   vector    address vectors
 *   av_batch  results of one insertion
 *   av_key    authorization keys of addresses
 *   av_set    sets of addresses, fi_av_set(3)
 */
#ifndef FAB_AV_ROOM_H
#define FAB_AV_ROOM_H

#include "common/av/av_batch.h"
#include "common/av/av_key.h"
#include "common/av/av_set.h"
#include "common/av/vector.h"

#endif
