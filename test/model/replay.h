/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The logs that replay.pml replays, for the C code that Spin makes of a model. Environment: REPLAY_LOGS, the file.
 *
 * A log is a line "log NAME", a line for each event, and a line "end". An event is a word, the number of a node, and
 * numbers, which the model knows.
 */
#ifndef TEST_MODEL_REPLAY_H
#define TEST_MODEL_REPLAY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLAY_LOGS	2000
#define REPLAY_VALUES	8		/* numbers of an event: its word's, the node's, and six others */

static struct replay_log {
	char name[40];
	int cnt, room;
	int best;			/* so many events were steps of the model */
	int (*events)[REPLAY_VALUES];
} replay_logs[REPLAY_LOGS];
static int replay_cnt;

/* The number of a word; its place here + 1. */
static int replay_word(const char *word)
{
	static const char *const words[] = { "sent", "got", "ask", "post", "done", "gone", "state", "limit", "part",
					     "park" };

	for (int i = 0; i < (int) (sizeof(words) / sizeof(*words)); i++) {
		if (!strcmp(words[i], word))
			return i + 1;
	}
	fprintf(stderr, "replay: no such event: %s\n", word);
	exit(2);
}

static void replay_add(struct replay_log *log, const char *word, const char *rest)
{
	int *event;

	if (log->cnt == log->room) {
		log->room = 2 * log->room + 64;
		log->events = realloc(log->events, (size_t) log->room * sizeof(*log->events));
	}
	event = log->events[log->cnt++];
	memset(event, 0, sizeof(*log->events));
	event[0] = replay_word(word);
	sscanf(rest, "%d %d %d %d %d %d %d", &event[1], &event[2], &event[3], &event[4], &event[5], &event[6],
	       &event[7]);
}

static void replay_report(void)
{
	int bad = 0;

	for (int i = 0; i < replay_cnt; i++) {
		const struct replay_log *log = &replay_logs[i];

		if (log->best == log->cnt)
			continue;
		if (!bad++) {
			printf("replay: log %s: event %d of %d is not a step of the model:", log->name, log->best + 1,
			       log->cnt);
			for (int j = 0; j < REPLAY_VALUES; j++)
				printf(" %d", log->events[log->best][j]);
			printf("\n");
		}
	}
	printf("replay: %d logs, %d are not runs of the model\n", replay_cnt, bad);
}

/* Read the logs, once. */
static void replay_load(void)
{
	const char *path = getenv("REPLAY_LOGS");
	FILE *in = path && !replay_cnt ? fopen(path, "r") : NULL;
	char line[200], word[40];
	int used;

	if (replay_cnt)
		return;
	while (in && fgets(line, sizeof(line), in)) {
		if (sscanf(line, "%39s%n", word, &used) != 1 || word[0] == '#' || !strcmp(word, "end"))
			continue;
		if (!strcmp(word, "log") && replay_cnt < REPLAY_LOGS)
			sscanf(line + used, "%39s", replay_logs[replay_cnt++].name);
		else if (replay_cnt)
			replay_add(&replay_logs[replay_cnt - 1], word, line + used);
	}
	if (!replay_cnt) {
		fprintf(stderr, "replay: no logs\n");
		exit(2);
	}
	fclose(in);
	atexit(replay_report);
}

/* A number of event `at` of a log; 0 behind its end. That the model comes so far is noted. */
static int replay_value(int log, int at, int which)
{
	if (at > replay_logs[log].best)
		replay_logs[log].best = at;
	return at < replay_logs[log].cnt ? replay_logs[log].events[at][which] : 0;
}

#endif
