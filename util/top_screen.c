/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See top_screen.h. Every change redraws the whole screen, of which ncurses sends what differs. Lines for which a
 * terminal has no room are cut off.
 */
#include "top_screen.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "common.h"

#define LINE_LEN	1024
#define ROWS_AT		3		/* below two lines of sums and the titles */
#define DELAY_MIN_MS	100
#define DELAY_MAX_MS	60000

struct screen {
	struct top_watch *watch;
	size_t first;			/* row that stands at the top */
	bool help, paused;
};

static const char *const help[] = {
	"Keys:",
	"  v            a line for each process, endpoint, peer",
	"  < >          sort by another key    r  in reverse order",
	"  up, down     scroll by a line       Page Up, Page Down, Home",
	"  + -          read more often, less often",
	"  space        read now               p  pause",
	"  h ?          this help              q  quit",
	"",
	"OUT, IN        operations and bytes a second that leave and arrive",
	"QUEUE          operations of this process that have not completed",
	"KEPT           messages without a receive",
	"LAST           time since the last progress call",
	"WAITS          what the oldest operation waits for, and how long: fi_why PID",
	"k, M, G        1000, 1000000, 1000000000",
	NULL,
};

/* ---- drawing ---- */

static void draw_text(int line, const char *text)
{
	if (line < LINES)
		mvaddnstr(line, 0, text, COLS);
}

static void draw_sums(const struct screen *screen)
{
	const struct top_watch *watch = screen->watch;
	const struct top_row *sum = &watch->top.sum;
	char line[LINE_LEN], a[16], b[16], c[16], d[16], e[16], f[16], clock[16] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(line, sizeof(line), "%s  %s: %u, endpoints: %u, peers: %u  by %s%s, every %g s%s  h: help", clock,
		 "processes", sum->procs, sum->eps, sum->peers, top_key_names[watch->key],
		 watch->reverse ? " (reverse)" : "", (double) watch->delay_ms / 1000,
		 screen->paused ? ", PAUSED" : "");
	draw_text(0, line);
	snprintf(line, sizeof(line), "out %s/s %sB/s  in %s/s %sB/s  queue %s  kept %s  errors %llu",
		 top_number(a, sizeof(a), sum->out.ops_s), top_number(b, sizeof(b), sum->out.bytes_s),
		 top_number(c, sizeof(c), sum->in.ops_s), top_number(d, sizeof(d), sum->in.bytes_s),
		 top_number(e, sizeof(e), (double) sum->queued), top_number(f, sizeof(f), (double) sum->kept),
		 (unsigned long long) sum->errors);
	if (watch->top.bad)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "  pages that cannot be read: %zu",
			 watch->top.bad);
	else if (watch->now.denied[0] && !watch->cnt)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "  not read, of another user: %s",
			 watch->now.denied);
	draw_text(1, line);
}

static void draw_rows(const struct screen *screen)
{
	const struct top *top = &screen->watch->top;
	struct top_layout layout;
	char line[LINE_LEN];

	top_layout(&layout, top, screen->watch->view, false);
	top_line(line, sizeof(line), &layout, NULL);
	attron(A_REVERSE);
	if (ROWS_AT - 1 < LINES)
		mvprintw(ROWS_AT - 1, 0, "%-*.*s", COLS, COLS, line);
	attroff(A_REVERSE);
	for (size_t i = screen->first; i < top->cnt && ROWS_AT + (int) (i - screen->first) < LINES; i++) {
		top_line(line, sizeof(line), &layout, &top->row[i]);
		draw_text(ROWS_AT + (int) (i - screen->first), line);
	}
	if (!top->cnt)
		draw_text(ROWS_AT, "no process of this user has a page (fi_stats(7))");
}

static void draw(struct screen *screen)
{
	size_t cnt = screen->watch->top.cnt;

	if (screen->first >= cnt)
		screen->first = cnt ? cnt - 1 : 0;
	erase();
	draw_sums(screen);
	if (screen->help) {
		for (int i = 0; help[i]; i++)
			draw_text(ROWS_AT - 1 + i, help[i]);
	} else {
		draw_rows(screen);
	}
	refresh();
}

/* ---- keys ---- */

enum action { NOTHING, REDRAW, SORT, READ, QUIT };

static void scroll_by(struct screen *screen, int lines)
{
	if (lines < 0)
		screen->first -= screen->first < (size_t) -lines ? screen->first : (size_t) -lines;
	else
		screen->first += (size_t) lines;
}

static enum action take_key(struct screen *screen, int key)
{
	struct top_watch *watch = screen->watch;
	int page = LINES > ROWS_AT ? LINES - ROWS_AT : 1;

	switch (key) {
	case 'q':
	case 'Q':
		return QUIT;
	case 'h':
	case '?':
		screen->help = !screen->help;
		return REDRAW;
	case 'p':
		screen->paused = !screen->paused;
		return REDRAW;
	case ' ':
		return READ;
	case 'v':
		watch->view = (watch->view + 1) % TOP_SUM;
		return SORT;
	case 'r':
		watch->reverse = !watch->reverse;
		return SORT;
	case '<':
		watch->key = (watch->key + TOP_KEYS - 1) % TOP_KEYS;
		return SORT;
	case '>':
		watch->key = (watch->key + 1) % TOP_KEYS;
		return SORT;
	case '+':
		watch->delay_ms = watch->delay_ms / 2 > DELAY_MIN_MS ? watch->delay_ms / 2 : DELAY_MIN_MS;
		return REDRAW;
	case '-':
		watch->delay_ms = watch->delay_ms * 2 < DELAY_MAX_MS ? watch->delay_ms * 2 : DELAY_MAX_MS;
		return REDRAW;
	case KEY_UP:
		scroll_by(screen, -1);
		return REDRAW;
	case KEY_DOWN:
		scroll_by(screen, 1);
		return REDRAW;
	case KEY_PPAGE:
		scroll_by(screen, -page);
		return REDRAW;
	case KEY_NPAGE:
		scroll_by(screen, page);
		return REDRAW;
	case KEY_HOME:
		screen->first = 0;
		return REDRAW;
	case KEY_RESIZE:
		return REDRAW;
	default:
		return NOTHING;
	}
}

/* Wait for a key until `until`. Returns it; ERR: the time is over; 'q': the terminal has gone. */
static int wait_key(uint64_t until)
{
	struct pollfd terminal = { .fd = STDIN_FILENO, .events = POLLIN };
	uint64_t now = util_now_ns();
	int key = getch(), ret;

	while (key == ERR && now < until) {
		ret = poll(&terminal, 1, (int) ((until - now + 999999) / 1000000));
		key = getch();
		if (key == ERR && ret > 0)
			return 'q';
		now = util_now_ns();
	}
	return key;
}

/* Until the user ends it, or all readings were shown. False: no memory. */
static bool show(struct screen *screen)
{
	struct top_watch *watch = screen->watch;
	uint64_t shown = 0, next = watch->now_ns + watch->delay_ms * 1000000;
	bool ok = true;

	while (ok) {
		enum action action;

		draw(screen);
		if (watch->readings && shown >= watch->readings)
			break;
		action = take_key(screen, wait_key(next));
		if (action == QUIT)
			break;
		if (action == SORT)
			ok = top_watch_again(watch);
		if (action != READ && util_now_ns() < next)
			continue;
		next = util_now_ns() + watch->delay_ms * 1000000;
		if (screen->paused && action != READ)
			continue;
		ok = ok && top_watch_read(watch);
		shown++;
	}
	return ok;
}

int top_screen(struct top_watch *watch)
{
	struct screen screen = { .watch = watch };
	const char *term = getenv("TERM");
	SCREEN *terminal = newterm(NULL, stdout, stdin);
	bool ok;

	if (!terminal) {
		util_err("TERM is '%s', a terminal that ncurses does not know; use --batch, or set TERM",
			 term ? term : "");
		return -1;
	}
	cbreak();
	noecho();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	curs_set(0);
	ok = show(&screen);
	endwin();
	delscreen(terminal);
	if (!ok)
		util_err("no memory");
	return ok ? 0 : -1;
}
