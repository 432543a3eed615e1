/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Text in a buffer of fixed size. The only state is the caller's struct fab_strbuf.
 */
#include "base/strbuf.h"

#include <stdio.h>

void fab_strbuf_init(struct fab_strbuf *sb, char *text, size_t size)
{
	sb->text = text;
	sb->size = size;
	sb->len = 0;
	if (size)
		text[0] = '\0';
}

void fab_strbuf_vprintf(struct fab_strbuf *sb, const char *fmt, va_list args)
{
	size_t room = sb->len < sb->size ? sb->size - sb->len : 0;
	int len = vsnprintf(room ? sb->text + sb->len : NULL, room, fmt, args);

	if (len > 0)
		sb->len += (size_t) len;
}

void fab_strbuf_printf(struct fab_strbuf *sb, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fab_strbuf_vprintf(sb, fmt, args);
	va_end(args);
}

void fab_strbuf_puts(struct fab_strbuf *sb, const char *str)
{
	while (*str)
		fab_strbuf_putc(sb, *str++);
}

void fab_strbuf_putc(struct fab_strbuf *sb, char c)
{
	if (sb->len + 1 < sb->size) {
		sb->text[sb->len] = c;
		sb->text[sb->len + 1] = '\0';
	}
	sb->len++;
}

void fab_strbuf_cut(struct fab_strbuf *sb, size_t len)
{
	sb->len = len;
	if (len < sb->size)
		sb->text[len] = '\0';
}
