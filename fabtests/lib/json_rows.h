/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rows of settings from a file in JSON: an object, or an array of objects, each of which is a row; their values are
 * whole numbers and texts. A number may be a text, too, for the sake of "64k". Of two values with one key the second
 * counts.
 */
#ifndef FABTESTS_JSON_ROWS_H
#define FABTESTS_JSON_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* What a row may have. The last one of a table has no name. */
struct json_key {
	const char *name;
	size_t at;                      /* offset in a row: of a uint32_t, or a char array */
	size_t len;                     /* of the array, with its NUL; 0: a number, within these bounds */
	uint32_t min, max;
};

/* Read at most `max` rows of row_len bytes; each is `usual` where it does not say otherwise. There is at least one. 0
 * or -FI_*, with a message that names the line; then what has been read so far says nothing. */
int json_rows_read(const char *path, const struct json_key *keys, const void *usual, size_t row_len, void *rows,
		   size_t max, size_t *cnt);

#endif /* FABTESTS_JSON_ROWS_H */
