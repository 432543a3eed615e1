/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_why --prom (util/why_prom.c, util/pages.c) of a page of any bytes: a sample of any label and any index. What is
 * read lies in the copy of the page, and a counter in its record. The page ends with its array; it is of each of some
 * lengths. What is printed is not analysed, nor are the loops over pages, labels and records.
 *
 * eva: -eva-slevel 20 -eva-slevel-function main:0,put_value:0
 */
#include "prove.h"

#undef stdout
extern FILE *stdout;
#define fprintf(...)	((void) 0)
#define fputc(c, out)	((void) (c))
#include "../../util/pages.c"
#undef RECORDS_MAX
#include "../../util/why_prom.c"

#define PAGE	sizeof(struct fi_stats_page)
static _Alignas(128) char mem[PAGE];
static struct page one;
static struct fi_stats_header header;
static struct fi_stats_label label;

/* A page of this length. */
static void prove_page(size_t len)
{
	any_bytes(mem + PAGE - len, len);
	one.source = (struct fi_stats_source) { .page = mem + PAGE - len, .len = len };
	any_bytes(&header, sizeof(header));
	any_bytes(&label, sizeof(label));
	if (!page_header(&one, &header))
		return;
	prove(len >= sizeof(header));
	if (knows(&header, label.table))
		put_sample(NULL, &one, &header, &label, any_of(0, UINT32_MAX));
}

int main(void)
{
	prove_page(0);
	prove_page(sizeof(header) - 1);
	prove_page(sizeof(header));
	prove_page(sizeof(header) + sizeof(struct fi_stats_peer) - 1);
	prove_page(PAGE);
	reached();
	return 0;
}
