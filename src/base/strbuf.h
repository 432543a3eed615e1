/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Text that is appended to in a buffer of fixed size. Text that does not fit is cut off, and the buffer always ends
 * with NUL. len counts the text that was cut off, too, so the caller can tell how large the buffer should have been. No
 * call allocates.
 */
#ifndef FAB_BASE_STRBUF_H
#define FAB_BASE_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct fab_strbuf {
	char *text;	/* borrowed, size bytes */
	size_t size;
	size_t len;	/* bytes of all text so far, cut off or not, without the NUL */
};

/* Start an empty text in text[size]. With size 0 nothing is written, only counted. */
void fab_strbuf_init(struct fab_strbuf *sb, char *text, size_t size);

/* Append formatted text, as printf() and vprintf(). */
void fab_strbuf_printf(struct fab_strbuf *sb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fab_strbuf_vprintf(struct fab_strbuf *sb, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));

/* Append a string, without a newline. */
void fab_strbuf_puts(struct fab_strbuf *sb, const char *str);
/* Append one character. */
void fab_strbuf_putc(struct fab_strbuf *sb, char c);

/* Shorten the text to its first len bytes, for instance to drop a last separator. len must not exceed sb->len. */
void fab_strbuf_cut(struct fab_strbuf *sb, size_t len);

/* True if text was cut off. */
static inline bool fab_strbuf_truncated(const struct fab_strbuf *sb)
{
	return sb->len >= sb->size;
}

#endif
