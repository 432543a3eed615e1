/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Every field of a struct fi_info as JSON. */
#ifndef UTIL_INFO_JSON_H
#define UTIL_INFO_JSON_H

#include "json.h"

#include <rdma/fabric.h>

/* Add `info` (without its successors) as an object to the open array. Flag words become arrays of names, enumerations a
 * name, addresses text, sizes numbers, a missing attribute structure null. */
void info_json(struct json *json, const struct fi_info *info);

/* "117.0": major and minor of a version, in a static buffer that the next call overwrites. */
const char *info_version(uint32_t version);

#endif /* UTIL_INFO_JSON_H */
