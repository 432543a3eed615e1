/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints, fi_endpoint(3).
 *
 *   ep       the common part of all endpoints, and the completion of operations
 *   pep      passive endpoints and connection requests, fi_cm(3)
 *   profile  statistics of an endpoint, fi_profile(3)
 *   shared   contexts that endpoints share
 */
#ifndef FAB_ENDPOINT_ROOM_H
#define FAB_ENDPOINT_ROOM_H

#include "common/endpoint/ep.h"
#include "common/endpoint/pep.h"
#include "common/endpoint/profile.h"
#include "common/endpoint/shared.h"

#endif
