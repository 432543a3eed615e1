/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sweep files: read, counted, numbered. Runs before and between the combinations. */
#include "sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

/* Where installed sweep files are: given when compiled. */
#ifndef SWEEP_DIR
#define SWEEP_DIR "."
#endif

#define MAX_BLOCKS 64
#define MAX_VALUES 32
#define MAX_LINE 1024

struct word {
	const char *text;
	uint64_t value;
};

#define BASIC (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

static const struct word eps[] = { { "rdm", FI_EP_RDM }, { "msg", FI_EP_MSG }, { "dgram", FI_EP_DGRAM }, { NULL, 0 } };
static const struct word comps[] = { { "queue", 0 }, { "counter", 1 }, { NULL, 0 } };
static const struct word waits[] = {
	{ "spin", PP_LOOK_SPIN }, { "yield", PP_LOOK_YIELD }, { "sread", PP_LOOK_SREAD }, { "fd", PP_LOOK_FD },
	{ NULL, 0 },
};
static const struct word avs[] = { { "any", FI_AV_UNSPEC }, { "map", FI_AV_MAP }, { "table", FI_AV_TABLE },
				   { NULL, 0 } };
static const struct word mrs[] = {
	{ "basic+local", BASIC | FI_MR_LOCAL }, { "basic", BASIC }, { "scalable", 0 }, { "local", FI_MR_LOCAL },
	{ "virt_addr", FI_MR_VIRT_ADDR }, { "prov_key", FI_MR_PROV_KEY }, { "allocated", FI_MR_ALLOCATED }, { NULL, 0 },
};
static const struct word progresses[] = {
	{ "any", FI_PROGRESS_UNSPEC }, { "auto", FI_PROGRESS_AUTO }, { "manual", FI_PROGRESS_MANUAL }, { NULL, 0 },
};
static const struct word threadings[] = {
	{ "domain", FI_THREAD_DOMAIN }, { "safe", FI_THREAD_SAFE }, { "fid", FI_THREAD_FID },
	{ "completion", FI_THREAD_COMPLETION }, { "endpoint", FI_THREAD_ENDPOINT }, { NULL, 0 },
};
static const struct word formats[] = {
	{ "tagged", FI_CQ_FORMAT_TAGGED }, { "data", FI_CQ_FORMAT_DATA }, { "msg", FI_CQ_FORMAT_MSG },
	{ "context", FI_CQ_FORMAT_CONTEXT }, { NULL, 0 },
};

/* The keys. The first word is what a block without that key has; those without words are read below. */
static const struct {
	const char *name;
	const struct word *words;
	uint64_t usual;
} keys[] = {
	[SWEEP_EP] = { "ep", eps, FI_EP_RDM },
	[SWEEP_CALL] = { "call", NULL, 0 },
	[SWEEP_COMP] = { "comp", comps, 0 },
	[SWEEP_WAIT] = { "wait", waits, PP_LOOK_SPIN },
	[SWEEP_AV] = { "av", avs, FI_AV_UNSPEC },
	[SWEEP_MR] = { "mr", mrs, BASIC | FI_MR_LOCAL },
	[SWEEP_PROGRESS] = { "progress", progresses, FI_PROGRESS_UNSPEC },
	[SWEEP_THREADING] = { "threading", threadings, FI_THREAD_DOMAIN },
	[SWEEP_FORMAT] = { "format", formats, FI_CQ_FORMAT_TAGGED },
	[SWEEP_SIZE] = { "size", NULL, 64 },
};

struct block {
	size_t cnt[SWEEP_KEYS];
	uint64_t value[SWEEP_KEYS][MAX_VALUES];
};

struct sweep {
	size_t block_cnt;
	struct block block[MAX_BLOCKS];
};

static int parse_word(unsigned key, const char *text, uint64_t *value)
{
	const struct word *word = keys[key].words;
	size_t i;

	if (key == SWEEP_SIZE)
		return util_parse_number("size", text, 1, 1u << 30, value);
	for (i = 0; key == SWEEP_CALL && i < call_cnt; i++) {
		if (!strcmp(text, calls[i].name)) {
			*value = i;
			return 0;
		}
	}
	for (; word && word->text; word++) {
		if (!strcmp(text, word->text)) {
			*value = word->value;
			return 0;
		}
	}
	util_err("'%s' is no value of '%s'", text, keys[key].name);
	return -FI_EINVAL;
}

/* "key value value ...", into the block. */
static int parse_line(struct block *block, char *line)
{
	char *rest = NULL, *name = strtok_r(line, " \t", &rest), *text;
	unsigned key;

	for (key = 0; key < SWEEP_KEYS && strcmp(name, keys[key].name); key++)
		;
	if (key == SWEEP_KEYS) {
		util_err("'%s' is no key", name);
		return -FI_EINVAL;
	}
	for (block->cnt[key] = 0; (text = strtok_r(NULL, " \t", &rest)); block->cnt[key]++) {
		if (block->cnt[key] == MAX_VALUES) {
			util_err("more than %d values of '%s'", MAX_VALUES, name);
			return -FI_EINVAL;
		}
		if (parse_word(key, text, &block->value[key][block->cnt[key]]))
			return -FI_EINVAL;
	}
	if (!block->cnt[key])
		util_err("'%s' has no value", name);
	return block->cnt[key] ? 0 : -FI_EINVAL;
}

static int start_block(struct sweep *sweep)
{
	struct block *block = &sweep->block[sweep->block_cnt];
	unsigned key;

	if (sweep->block_cnt == MAX_BLOCKS) {
		util_err("more than %d blocks", MAX_BLOCKS);
		return -FI_EINVAL;
	}
	for (key = 0; key < SWEEP_KEYS; key++) {
		block->cnt[key] = 1;
		block->value[key][0] = keys[key].usual;
	}
	sweep->block_cnt++;
	return 0;
}

static int take_line(struct sweep *sweep, char *line)
{
	line[strcspn(line, "#\n")] = '\0';
	line += strspn(line, " \t");
	if (!*line)
		return 0;
	if (*line == '[')
		return start_block(sweep);
	if (!sweep->block_cnt) {
		util_err("a line before the first [block]");
		return -FI_EINVAL;
	}
	return parse_line(&sweep->block[sweep->block_cnt - 1], line);
}

static FILE *open_file(const char *name)
{
	const char *folder = getenv("FI_SWEEP_DIR");
	char path[4096];
	FILE *file = fopen(name, "r");

	if (file || strchr(name, '/'))
		return file;
	snprintf(path, sizeof(path), "%s/%s.sweep", folder ? folder : SWEEP_DIR, name);
	return fopen(path, "r");
}

int sweep_open(const char *name, struct sweep **sweep)
{
	FILE *file = open_file(name);
	unsigned number = 0;
	char line[MAX_LINE];
	int ret = 0;

	if (!file) {
		util_err("%s: %s (without a folder it is looked for here, and in FI_SWEEP_DIR or %s)", name,
			 strerror(errno), SWEEP_DIR);
		return -errno;
	}
	*sweep = calloc(1, sizeof(**sweep));
	if (!*sweep)
		ret = -FI_ENOMEM;
	while (!ret && fgets(line, sizeof(line), file)) {
		number++;
		ret = take_line(*sweep, line);
	}
	fclose(file);
	if (!ret)
		return 0;
	util_err("%s, line %u: %s", name, number, fi_strerror(-ret));
	free(*sweep);
	*sweep = NULL;
	return ret;
}

void sweep_close(struct sweep *sweep)
{
	free(sweep);
}

static uint64_t block_cnt(const struct block *block)
{
	uint64_t cnt = 1;
	unsigned key;

	for (key = 0; key < SWEEP_KEYS; key++)
		cnt *= block->cnt[key];
	return cnt;
}

uint64_t sweep_cnt(const struct sweep *sweep)
{
	uint64_t cnt = 0;
	size_t i;

	for (i = 0; i < sweep->block_cnt; i++)
		cnt += block_cnt(&sweep->block[i]);
	return cnt;
}

void sweep_get(const struct sweep *sweep, uint64_t number, struct sweep_case *combination)
{
	const struct block *block = sweep->block;
	unsigned key = SWEEP_KEYS;

	for (number--; number >= block_cnt(block); block++)
		number -= block_cnt(block);
	while (key--) {
		combination->value[key] = block->value[key][number % block->cnt[key]];
		number /= block->cnt[key];
	}
}

/* The word of a value. */
static const char *word_of(unsigned key, uint64_t value, char *number, size_t len)
{
	const struct word *word = keys[key].words;

	if (key == SWEEP_CALL && value < call_cnt)
		return calls[value].name;
	for (; word && word->text; word++) {
		if (word->value == value)
			return word->text;
	}
	snprintf(number, len, "%" PRIu64, value);
	return number;
}

char *sweep_text(const struct sweep_case *combination, char *buf, size_t len)
{
	char number[24];
	size_t at = 0;
	unsigned key;

	for (key = 0; key < SWEEP_KEYS && at < len; key++)
		at += (size_t) snprintf(buf + at, len - at, "%s%s %s", key ? ", " : "", keys[key].name,
					word_of(key, combination->value[key], number, sizeof(number)));
	return buf;
}
