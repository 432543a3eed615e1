/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Text built up in a buffer of fixed size. What does not fit is cut off, the text always ends with NUL, and len goes on
 * counting, so that the caller can see how large the buffer should have been. No call allocates.
 */
#ifndef FAB_BASE_STRBUF_H
#define FAB_BASE_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct fab_strbuf {
	char *text;	/* borrowed, size bytes */
	size_t size;
	size_t len;	/* bytes that all text so far needs, without the NUL */
};

/* Start an empty text in text[size]. With size 0 nothing is ever written, only counted. */
void fab_strbuf_init(struct fab_strbuf *sb, char *text, size_t size);

/* Append, as printf() would. */
void fab_strbuf_printf(struct fab_strbuf *sb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fab_strbuf_vprintf(struct fab_strbuf *sb, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));

/* Append a string, and one character. */
void fab_strbuf_puts(struct fab_strbuf *sb, const char *str);
void fab_strbuf_putc(struct fab_strbuf *sb, char c);

/* Forget everything beyond the first len bytes (for instance a separator too many); len must not exceed sb->len. */
void fab_strbuf_cut(struct fab_strbuf *sb, size_t len);

/* True if text was cut off. */
static inline bool fab_strbuf_truncated(const struct fab_strbuf *sb)
{
	return sb->len >= sb->size;
}

#endif
