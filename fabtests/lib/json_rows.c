/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See json_rows.h. Read byte by byte, with one in hand. */
#include "json_rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "func.h"

#define MAX_TEXT 256

struct reader {
	const char *path;
	FILE *file;
	unsigned line;
	int next;                       /* a byte, or EOF */
};

static void advance(struct reader *reader)
{
	reader->line += reader->next == '\n';
	reader->next = getc(reader->file);
}

/* The next byte that is no white space. */
static int look(struct reader *reader)
{
	while (reader->next == ' ' || reader->next == '\t' || reader->next == '\r' || reader->next == '\n')
		advance(reader);
	return reader->next;
}

static bool take(struct reader *reader, char wanted)
{
	bool there = look(reader) == wanted;

	if (there)
		advance(reader);
	return there;
}

/* What is there instead of what was `wanted`. */
static int wrong(const struct reader *reader, const char *wanted)
{
	if (reader->next == EOF)
		util_err("%s, line %u: it ends where there should be %s", reader->path, reader->line, wanted);
	else if (reader->next <= ' ' || reader->next > '~')
		util_err("%s, line %u: byte 0x%02x where there should be %s", reader->path, reader->line,
			 (unsigned) reader->next, wanted);
	else
		util_err("%s, line %u: '%c' where there should be %s", reader->path, reader->line, reader->next,
			 wanted);
	return -FI_EINVAL;
}

static int too_long(const struct reader *reader, size_t len)
{
	util_err("%s, line %u: a text or number of more than %zu bytes", reader->path, reader->line, len - 1);
	return -FI_EINVAL;
}

/* A text, of whose escapes those are known that stand for themselves: \" \\ \/ */
static int read_text(struct reader *reader, char *text, size_t len)
{
	size_t at;

	if (!take(reader, '"'))
		return wrong(reader, "a text in quotes");
	for (at = 0; reader->next != '"'; advance(reader)) {
		if (reader->next == '\\') {
			advance(reader);
			if (reader->next != '"' && reader->next != '\\' && reader->next != '/')
				return wrong(reader, "one of \" \\ / behind a backslash");
		}
		if (reader->next == EOF || (unsigned) reader->next < ' ')
			return wrong(reader, "the quote at a text's end");
		if (at + 1 == len)
			return too_long(reader, len);
		text[at++] = (char) reader->next;
	}
	advance(reader);
	text[at] = '\0';
	return 0;
}

/* The digits of a number; util_parse_number() says what is wrong with one that is not whole, or negative. */
static int read_number(struct reader *reader, char *text, size_t len)
{
	size_t at;

	for (at = 0; reader->next > 0 && strchr("0123456789.eE+-", reader->next); advance(reader)) {
		if (at + 1 == len)
			return too_long(reader, len);
		text[at++] = (char) reader->next;
	}
	text[at] = '\0';
	if (at > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9') {
		util_err("%s, line %u: %s begins with 0", reader->path, reader->line, text);
		return -FI_EINVAL;
	}
	return at ? 0 : wrong(reader, "a number or a text");
}

static int unknown_key(const struct reader *reader, const struct json_key *keys, const char *name)
{
	char list[MAX_TEXT] = "";
	size_t at = 0;

	for (; keys->name && at < sizeof(list); keys++)
		at += (size_t) snprintf(list + at, sizeof(list) - at, " %s", keys->name);
	util_err("%s, line %u: '%s' is no key; there are%s", reader->path, reader->line, name, list);
	return -FI_EINVAL;
}

/* "key": value, into the row. */
static int read_pair(struct reader *reader, const struct json_key *keys, char *row)
{
	char text[MAX_TEXT], where[2 * MAX_TEXT];
	const struct json_key *key = keys;
	uint32_t number;

	FUNC_TRY(read_text(reader, text, sizeof(text)));
	while (key->name && strcmp(key->name, text))
		key++;
	if (!key->name)
		return unknown_key(reader, keys, text);
	if (!take(reader, ':'))
		return wrong(reader, "a colon behind the key");
	if (key->len)
		return read_text(reader, row + key->at, key->len);
	FUNC_TRY(look(reader) == '"' ? read_text(reader, text, sizeof(text)) :
		 read_number(reader, text, sizeof(text)));
	snprintf(where, sizeof(where), "%s, line %u: \"%s\"", reader->path, reader->line, key->name);
	FUNC_TRY(func_number(where, text, key->min, key->max, &number));
	memcpy(row + key->at, &number, sizeof(number));
	return 0;
}

static int read_row(struct reader *reader, const struct json_key *keys, char *row)
{
	if (!take(reader, '{'))
		return wrong(reader, "an object, which begins with {");
	if (take(reader, '}'))
		return 0;
	do
		FUNC_TRY(read_pair(reader, keys, row));
	while (take(reader, ','));
	return take(reader, '}') ? 0 : wrong(reader, "a comma, or the end of the object, }");
}

static int read_all(struct reader *reader, const struct json_key *keys, const void *usual, size_t row_len, char *rows,
		    size_t max, size_t *cnt)
{
	bool is_array = take(reader, '[');

	*cnt = 0;
	do {
		if (*cnt == max) {
			util_err("%s, line %u: more than %zu objects", reader->path, reader->line, max);
			return -FI_EINVAL;
		}
		memcpy(rows + *cnt * row_len, usual, row_len);
		FUNC_TRY(read_row(reader, keys, rows + *cnt * row_len));
		++*cnt;
	} while (is_array && take(reader, ','));
	if (is_array && !take(reader, ']'))
		return wrong(reader, "a comma, or the end of the array, ]");
	return look(reader) == EOF ? 0 : wrong(reader, "the end of the file");
}

int json_rows_read(const char *path, const struct json_key *keys, const void *usual, size_t row_len, void *rows,
		   size_t max, size_t *cnt)
{
	struct reader reader = { .path = path, .file = fopen(path, "r"), .line = 1 };
	int ret;

	if (!reader.file) {
		util_err("%s: %s", path, strerror(errno));
		return -errno;
	}
	advance(&reader);
	ret = read_all(&reader, keys, usual, row_len, rows, max, cnt);
	if (ferror(reader.file)) {
		util_err("%s: it cannot be read to its end", path);
		ret = -FI_EIO;
	}
	fclose(reader.file);
	return ret;
}
