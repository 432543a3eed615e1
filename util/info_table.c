/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of fi_info. Entries of one provider and domain share a row, with all their endpoint types and addresses. An
 * address is followed by the length of its network's prefix, which is that of the fabric's name.
 */
#include "info_table.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "common.h"

enum { PROVIDER, TYPES, DOMAIN, SPEED, ADDRESSES, COLUMNS };

static const char *const headings[COLUMNS] = { "provider", "types", "interface", "speed", "addresses" };

#define GAP 2
#define BOLD "\033[1m"
#define NAME_COLOUR "\033[1;36m"
#define PLAIN "\033[0m"

/* A row. Cells but the last are text; the addresses are a list, to be cut where the line ends. */
struct row {
	const struct fi_info *info;     /* the first entry of the row, borrowed */
	char *cell[ADDRESSES];          /* owned */
	char **addr;                    /* owned, as are the strings */
	size_t addr_cnt;
};

struct rows {
	struct row *list;
	size_t cnt;
};

bool info_table_colours(FILE *out)
{
	const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");

	return isatty(fileno(out)) && (!no_colour || !*no_colour) && term && strcmp(term, "dumb");
}

static bool shares_row(const struct fi_info *a, const struct fi_info *b)
{
	return !strcmp(a->fabric_attr->prov_name, b->fabric_attr->prov_name) &&
	       !strcmp(a->domain_attr->name, b->domain_attr->name);
}

/* "FI_EP_RDM" as "rdm". Valid until the next call. */
static const char *type_text(const struct fi_info *info)
{
	static char text[32];
	const char *name = util_tostr(&info->ep_attr->type, FI_TYPE_EP_TYPE);
	size_t i;

	name += strncmp(name, "FI_EP_", 6) ? 0 : 6;
	for (i = 0; i < sizeof(text) - 1 && name[i]; i++)
		text[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char) (name[i] - 'A' + 'a') : name[i];
	text[i] = '\0';
	return text;
}

/* "10 Gb/s"; "-" if the speed is not known. */
static char *speed_text(const struct fi_info *info)
{
	size_t speed = info->nic && info->nic->link_attr ? info->nic->link_attr->speed : 0;
	char *text;
	int ret;

	if (!speed)
		return strdup("-");
	ret = speed >= 1000000000 ? asprintf(&text, "%g Gb/s", (double) speed / 1e9) :
				    asprintf(&text, "%g Mb/s", (double) speed / 1e6);
	return ret < 0 ? NULL : text;
}

/* "192.0.2.1/24": the source address without its port, and the length of its network's prefix. */
static char *addr_text(const struct fi_info *info)
{
	const char *text = util_addr_text(info->addr_format, info->src_addr, info->src_addrlen);
	const char *prefix = info->fabric_attr->name ? strchr(info->fabric_attr->name, '/') : NULL;
	bool ip = info->addr_format == FI_SOCKADDR_IN || info->addr_format == FI_SOCKADDR_IN6;
	const char *port = ip ? strrchr(text, ':') : NULL;
	size_t len = port ? (size_t) (port - text) : strlen(text);
	char *copy;

	if (ip && *text == '[') {
		text++;
		len -= 2;
	}
	return asprintf(&copy, "%.*s%s", (int) len, text, ip && prefix ? prefix : "") < 0 ? NULL : copy;
}

/* Append `text` to a cell, behind a comma, unless it is there already. */
static int add_type(char **cell, const char *text)
{
	char *longer;

	if (!*cell) {
		*cell = strdup(text);
		return *cell ? 0 : -FI_ENOMEM;
	}
	if (strstr(*cell, text))
		return 0;
	if (asprintf(&longer, "%s, %s", *cell, text) < 0)
		return -FI_ENOMEM;
	free(*cell);
	*cell = longer;
	return 0;
}

/* Add an address, unless it is there already. Owns `text`, which may be NULL. */
static int add_addr(struct row *row, char *text)
{
	char **list;
	size_t i;

	for (i = 0; text && i < row->addr_cnt; i++) {
		if (!strcmp(row->addr[i], text)) {
			free(text);
			return 0;
		}
	}
	list = text ? realloc(row->addr, (row->addr_cnt + 1) * sizeof(*list)) : NULL;
	if (!list) {
		free(text);
		return -FI_ENOMEM;
	}
	row->addr = list;
	row->addr[row->addr_cnt++] = text;
	return 0;
}

/* The row of an entry, which is made if it is the first. NULL: no memory. */
static struct row *find_row(struct rows *rows, const struct fi_info *info)
{
	struct row *list, *row;
	size_t i;

	for (i = 0; i < rows->cnt; i++) {
		if (shares_row(rows->list[i].info, info))
			return &rows->list[i];
	}
	list = realloc(rows->list, (rows->cnt + 1) * sizeof(*list));
	if (!list)
		return NULL;
	rows->list = list;
	row = &list[rows->cnt++];
	*row = (struct row) { .info = info };
	row->cell[PROVIDER] = strdup(info->fabric_attr->prov_name);
	row->cell[DOMAIN] = strdup(info->domain_attr->name);
	row->cell[SPEED] = speed_text(info);
	return row->cell[PROVIDER] && row->cell[DOMAIN] && row->cell[SPEED] ? row : NULL;
}

static int rows_add(struct rows *rows, const struct fi_info *info)
{
	struct row *row = find_row(rows, info);
	int ret = row ? add_type(&row->cell[TYPES], type_text(info)) : -FI_ENOMEM;

	return ret ? ret : add_addr(row, addr_text(info));
}

static void rows_free(struct rows *rows)
{
	size_t i, k;

	for (i = 0; i < rows->cnt; i++) {
		for (k = 0; k < ADDRESSES; k++)
			free(rows->list[i].cell[k]);
		for (k = 0; k < rows->list[i].addr_cnt; k++)
			free(rows->list[i].addr[k]);
		free(rows->list[i].addr);
	}
	free(rows->list);
}

/* Print the addresses of a row that fit `room` characters (0: all), and the number of the others. */
static void print_addrs(FILE *out, const struct row *row, unsigned room)
{
	char more[32];
	size_t used = 0, len, i;

	for (i = 0; i < row->addr_cnt; i++) {
		len = strlen(row->addr[i]) + (i ? 2 : 0);
		snprintf(more, sizeof(more), " and %zu more", row->addr_cnt - i);
		if (i && room && used + len + (i + 1 < row->addr_cnt ? strlen(more) : 0) > room) {
			fputs(more, out);
			return;
		}
		used += (size_t) fprintf(out, "%s%s", i ? ", " : "", row->addr[i]);
	}
}

static void print_rows(FILE *out, const struct rows *rows, unsigned columns, bool colours)
{
	int width[ADDRESSES], used = 0;
	unsigned room;
	size_t i, k;

	for (k = 0; k < ADDRESSES; k++) {
		width[k] = (int) strlen(headings[k]);
		for (i = 0; i < rows->cnt; i++) {
			int len = (int) strlen(rows->list[i].cell[k]);

			width[k] = len > width[k] ? len : width[k];
		}
		used += width[k] + GAP;
	}
	room = !columns ? 0 : columns > (unsigned) used ? columns - (unsigned) used : 1;
	fputs(colours ? BOLD : "", out);
	for (k = 0; k < ADDRESSES; k++)
		fprintf(out, "%-*s", width[k] + GAP, headings[k]);
	fprintf(out, "%s%s\n", headings[ADDRESSES], colours ? PLAIN : "");
	for (i = 0; i < rows->cnt; i++) {
		fputs(colours ? NAME_COLOUR : "", out);
		for (k = 0; k < ADDRESSES; k++) {
			fprintf(out, "%-*s", width[k] + GAP, rows->list[i].cell[k]);
			fputs(colours && k == PROVIDER ? PLAIN : "", out);
		}
		print_addrs(out, &rows->list[i], room);
		fputc('\n', out);
	}
}

int info_table_print(FILE *out, const struct fi_info *list, bool (*wanted)(const void *arg, const struct fi_info *info),
		     const void *arg, unsigned columns, bool colours)
{
	struct rows rows = { .list = NULL };
	const struct fi_info *info;
	int ret = 0;

	for (info = list; info && !ret; info = info->next) {
		if (wanted(arg, info))
			ret = rows_add(&rows, info);
	}
	if (!ret)
		print_rows(out, &rows, columns, colours);
	rows_free(&rows);
	return ret;
}
