/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rows of fi_top: processes, endpoints or peers, with rates between two readings of their pages (pages.h). No
 * terminal and no clock: what is read comes from the caller. A page may have any contents.
 */
#ifndef UTIL_TOP_H
#define UTIL_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "pages.h"

/* What a row is of. */
enum top_view {
	TOP_PROCESSES,
	TOP_ENDPOINTS,
	TOP_PEERS,
	TOP_SUM,			/* one row of all that was read */
	TOP_VIEWS
};

/* What rows are sorted by: the largest first, pid and peer in ascending order. */
enum top_key {
	TOP_BY_PID,
	TOP_BY_PEER,
	TOP_BY_OPS,			/* operations per second, both directions */
	TOP_BY_BYTES,			/* bytes per second, both directions */
	TOP_BY_QUEUE,
	TOP_BY_KEPT,
	TOP_BY_ERRORS,
	TOP_BY_WAITS,			/* the time for which the oldest operation has waited */
	TOP_KEYS
};

/* Data in one direction: `out` leaves this process, `in` arrives, whichever end has started the operation. */
struct top_flow {
	uint64_t ops, bytes;		/* so far */
	double ops_s, bytes_s;		/* per second, between the readings */
};

/* All texts are printable ASCII. */
struct top_row {
	pid_t pid;
	char state;			/* as in struct fi_stats_source; '-': it has ended; '?': not known */
	char rank[16], command[128];
	char prov[16];
	char addr[FI_STATS_TEXT];	/* of the peer; of an endpoint: its own */
	char link[16];			/* of peers: the carrier of the connection, or its state where it is not up */
	uint32_t ep;			/* index */
	uint32_t procs, eps, peers;	/* that the row stands for */
	bool has_rates;			/* there was an earlier reading */
	struct top_flow out, in;
	uint64_t queued;		/* operations of this process that have not completed */
	uint64_t kept;			/* messages without a receive */
	uint64_t posted;		/* receives posted so far, of endpoints and processes */
	uint64_t errors;		/* operations that completed in error, so far */
	enum fi_stats_state waits;	/* of the oldest operation; FI_STATS_NONE: none waits */
	double waits_s;			/* for so many seconds */
	double progress_s;		/* since the last progress call; negative: unknown */
};

struct top {
	enum top_view view;
	struct top_row *row;		/* owned: cnt of them */
	size_t cnt, space;
	struct top_row sum;
	size_t bad;			/* pages without rows: they are damaged or of another version */
};

/*
 * Make the rows of the first cnt pages of a reading, in place of those that *top had (all zero at first). Rates are
 * differences to `before`, the reading made at the time before_ns (CLOCK_MONOTONIC); NULL: there was none. A process of
 * another pid namespace has no row if it has called no progress for a minute: it may have ended. False: no memory; the
 * rows are incomplete.
 */
bool top_make(struct top *top, enum top_view view, const struct pages *now, size_t cnt, const struct pages *before,
	      uint64_t before_ns);
void top_free(struct top *top);

/* Sort the rows. Equal ones stand in the order of pid, endpoint and peer. */
void top_sort(struct top *top, enum top_key key, bool reverse);

/* The names of keys and of views, as the options -s and -v take them. */
extern const char *const top_key_names[TOP_KEYS];
extern const char *const top_view_names[TOP_VIEWS];

/* ---- text ---- */

enum { TOP_COLUMNS = 25 };

/* How rows are printed. */
struct top_layout {
	enum top_view view;
	bool exact;			/* whole numbers, and what was counted so far; otherwise short numbers */
	bool ranks;			/* with the ranks of processes */
	int width[TOP_COLUMNS];
};

/* The layout in which all rows of *top fit, or for view TOP_SUM its sum. */
void top_layout(struct top_layout *layout, const struct top *top, enum top_view view, bool exact);
/* The line of a row without a newline, or that of the titles (row NULL). Returns its length, as snprintf(). */
size_t top_line(char *buf, size_t len, const struct top_layout *layout, const struct top_row *row);

/* A number in at most 5 characters: 9999, 12.3k, 4.56M. k is 1000. Returns buf. */
const char *top_number(char *buf, size_t len, double value);
/* A duration in at most 5 characters: 0.4s, 41s, 12m, 3h, 9d. Returns buf. */
const char *top_duration(char *buf, size_t len, double seconds);

#endif
