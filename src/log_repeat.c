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
	unsigned cnt;
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
	lines[line_next++ % LINES] = hash;
	return false;
}

/* Count a line of a place. Returns how many there are within FAB_PLACE_MS, this one included. */
static unsigned place_count(uint64_t hash)
{
	struct place *place = &places[(hash >> 1) % PLACES];
	uint64_t now_ms = fab_now_ms();

	if (place->hash != hash || now_ms - place->since_ms >= FAB_PLACE_MS)
		*place = (struct place) { .hash = hash, .since_ms = now_ms };
	return ++place->cnt;
}

enum fab_repeat fab_log_repeat(const char *func, int line, const char *text)
{
	uint64_t place = hash_text(0xcbf29ce484222325 + (uint64_t) line, func);
	enum fab_repeat ret = FAB_REPEAT_OLD;
	unsigned cnt;

	/* another thread logs at this moment, or did when this process was forked */
	if (pthread_mutex_trylock(&lock))
		return FAB_REPEAT_NEW;
	if (!line_is_known(hash_text(place, text))) {
		cnt = place_count(place);
		ret = cnt < FAB_PLACE_LINES ? FAB_REPEAT_NEW : cnt == FAB_PLACE_LINES ? FAB_REPEAT_LAST :
		      FAB_REPEAT_OLD;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}
