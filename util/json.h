/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * JSON as it is written: values go out in the order in which they are added, indented, with commas and escapes where
 * they belong. A key is given inside an object and NULL inside an array (or for the outermost value). No memory is
 * allocated.
 */
#ifndef UTIL_JSON_H
#define UTIL_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_MAX_DEPTH 16

struct json {
	FILE *out;              /* borrowed; errors of writing are for the caller to ask for with ferror() */
	int depth;
	bool filled[JSON_MAX_DEPTH];    /* a value stands at this depth: the next one needs a comma */
};

void json_init(struct json *json, FILE *out);

/* Open and close an object or an array; at most JSON_MAX_DEPTH - 1 are open at a time. The last close ends the line. */
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);

/* `text` may hold any bytes: what is no UTF-8 becomes U+FFFD. NULL becomes null. */
void json_string(struct json *json, const char *key, const char *text);
/* Written in full; a reader that keeps numbers as doubles rounds those above 2^53. */
void json_number(struct json *json, const char *key, uint64_t value);
/* Three digits after the point. `value` is finite. */
void json_real(struct json *json, const char *key, double value);

#endif /* UTIL_JSON_H */
