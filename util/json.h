/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A JSON writer. Values are written in the order in which they are added, with indentation, commas and escapes. The key
 * is a name inside an object, and NULL inside an array or for the outermost value. Allocates no memory.
 */
#ifndef UTIL_JSON_H
#define UTIL_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_MAX_DEPTH 16

struct json {
	FILE *out;              /* borrowed; the caller checks for write errors with ferror() */
	int depth;
	bool filled[JSON_MAX_DEPTH];    /* this depth has a value: the next one needs a comma */
};

void json_init(struct json *json, FILE *out);

/* Open and close an object or an array; at most JSON_MAX_DEPTH - 1 are open at a time. The last close ends the line. */
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);

/* `text` may have any bytes: invalid UTF-8 becomes U+FFFD. NULL becomes null. */
void json_string(struct json *json, const char *key, const char *text);
/* Written with all digits. A reader that keeps numbers as doubles rounds numbers above 2^53. */
void json_number(struct json *json, const char *key, uint64_t value);
/* Three digits after the point. `value` is finite. */
void json_real(struct json *json, const char *key, double value);

#endif /* UTIL_JSON_H */
