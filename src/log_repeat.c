/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See log_repeat.h. Lines and places are known by hash values. Both tables are of a fixed size: the oldest line is
 * forgotten, and a place makes way for another one of its slot. Both may then write a line too many, never one too few.
 */
#include "log_repeat.h"

#include "base/bits.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LINES = 128,
	PLACES = 64,
};

struct place {
	uint64_t hash;
	uint64_t since_ms;	/* the first of the lines counted */
	unsigned cnt;		/* new lines */
	unsigned long left_out;	/* lines that were not written */
	unsigned long tell_at;	/* number of left_out that is written next */
};

/* All guarded by the lock, which nobody waits for. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t lines[LINES];
static size_t line_next;
static struct place places[PLACES];

/* FNV-1a; never 0, which marks an empty slot. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
	while (*text)
		hash = (hash ^ (uint8_t) *text++) * 0x100000001b3;
	return hash | 1;
}

static bool line_is_known(uint64_t hash)
{
	for (size_t i = 0; i < LINES; i++) {
		if (lines[i] == hash)
			return true;
	}
	return false;
}

/* The place, counted from now on if it is new, or if FAB_PLACE_MS have passed. Then *before is the number of lines that
 * it left out until now, and otherwise 0. */
static struct place *place_find(uint64_t hash, unsigned long *before)
{
	struct place *place = &places[(hash >> 1) % PLACES];
	uint64_t now_ms = fab_now_ms();

	*before = 0;
	if (place->hash == hash && now_ms - place->since_ms < FAB_PLACE_MS)
		return place;
	if (place->hash == hash)
		*before = place->left_out;
	*place = (struct place) { .hash = hash, .since_ms = now_ms, .tell_at = FAB_PLACE_TELL };
	return place;
}

/* A line is not written. True: it is time to tell how many there are. */
static bool place_leaves_out(struct place *place)
{
	if (place->left_out++ < place->tell_at)
		return false;
	place->tell_at *= 10;
	return true;
}

static enum fab_repeat repeat_of(uint64_t hash, bool known, unsigned long *left_out)
{
	struct place *place = place_find(hash, left_out);

	if (*left_out) {
		place->cnt++;
		return FAB_REPEAT_COUNT;
	}
	if (!known && ++place->cnt <= FAB_PLACE_LINES)
		return place->cnt < FAB_PLACE_LINES ? FAB_REPEAT_NEW : FAB_REPEAT_LAST;
	*left_out = place->left_out;
	return place_leaves_out(place) ? FAB_REPEAT_COUNT : FAB_REPEAT_OLD;
}

static uint64_t hash_place(const char *func, int line)
{
	return hash_text(0xcbf29ce484222325 + (uint64_t) line, func);
}

bool fab_log_spent(const char *func, int line)
{
	uint64_t hash = hash_place(func, line);
	struct place *place = &places[(hash >> 1) % PLACES];
	bool spent;

	if (pthread_mutex_trylock(&lock))
		return false;
	spent = place->hash == hash && place->left_out < place->tell_at &&
		(place->cnt >= FAB_PLACE_LINES || place->left_out >= FAB_PLACE_LEAVE) &&
		fab_now_ms() - place->since_ms < FAB_PLACE_MS;
	place->left_out += spent;
	pthread_mutex_unlock(&lock);
	return spent;
}

enum fab_repeat fab_log_repeat(const char *func, int line, const char *text, unsigned long *left_out)
{
	uint64_t place = hash_place(func, line);
	uint64_t hash = hash_text(place, text);
	enum fab_repeat ret;
	bool known;

	/* another thread logs at this moment, or did when this process was forked */
	if (pthread_mutex_trylock(&lock))
		return FAB_REPEAT_NEW;
	known = line_is_known(hash);
	ret = repeat_of(place, known, left_out);
	if (!known && ret != FAB_REPEAT_OLD)
		lines[line_next++ % LINES] = hash;
	pthread_mutex_unlock(&lock);
	return ret;
}
