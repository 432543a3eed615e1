/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A writer of JSON (RFC 8259). */
#include "json.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

void json_init(struct json *json, FILE *out)
{
	*json = (struct json) { .out = out };
}

/* The length of the UTF-8 sequence at `text`; 0 if it is invalid (overlong, surrogate, above U+10FFFF, cut off). */
static size_t utf8_len(const unsigned char *text)
{
	/* The bounds of the second byte exclude overlong forms, surrogates, and values above U+10FFFF. */
	static const struct {
		unsigned char first, last, len, low, high;
	} forms[] = {
		{ 0x01, 0x7f, 1, 0x00, 0x00 }, { 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf },
		{ 0xe1, 0xec, 3, 0x80, 0xbf }, { 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf },
		{ 0xf0, 0xf0, 4, 0x90, 0xbf }, { 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f },
	};
	size_t i, n;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (text[0] < forms[i].first || text[0] > forms[i].last)
			continue;
		if (forms[i].len > 1 && (text[1] < forms[i].low || text[1] > forms[i].high))
			return 0;
		for (n = 2; n < forms[i].len; n++) {
			if ((text[n] & 0xc0) != 0x80)
				return 0;
		}
		return forms[i].len;
	}
	return 0;
}

static void put_string(FILE *out, const char *text)
{
	const unsigned char *at = (const unsigned char *) text;
	size_t len;

	fputc('"', out);
	for (; *at; at += len ? len : 1) {
		len = utf8_len(at);
		if (!len)
			fputs("\\ufffd", out);
		else if (*at < 0x20 || *at == 0x7f)
			fprintf(out, "\\u%04x", *at);
		else if (*at == '"' || *at == '\\')
			fprintf(out, "\\%c", *at);
		else
			fwrite(at, 1, len, out);
	}
	fputc('"', out);
}

/* Write the text before a value: comma, newline, indentation, key. */
static void begin_value(struct json *json, const char *key)
{
	if (json->filled[json->depth])
		fputc(',', json->out);
	if (json->depth)
		fprintf(json->out, "\n%*s", json->depth * 2, "");
	json->filled[json->depth] = true;
	if (key) {
		put_string(json->out, key);
		fputs(": ", json->out);
	}
}

void json_open(struct json *json, const char *key, char bracket)
{
	begin_value(json, key);
	fputc(bracket, json->out);
	json->filled[++json->depth] = false;
}

void json_close(struct json *json, char bracket)
{
	bool filled = json->filled[json->depth--];

	if (filled)
		fprintf(json->out, "\n%*s", json->depth * 2, "");
	fputc(bracket, json->out);
	if (!json->depth)
		fputc('\n', json->out);
}

void json_string(struct json *json, const char *key, const char *text)
{
	begin_value(json, key);
	if (text)
		put_string(json->out, text);
	else
		fputs("null", json->out);
}

void json_number(struct json *json, const char *key, uint64_t value)
{
	begin_value(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

void json_real(struct json *json, const char *key, double value)
{
	begin_value(json, key);
	fprintf(json->out, "%.3f", value);
}
