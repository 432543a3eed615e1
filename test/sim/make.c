/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Programs from seeds, and as text. See play.h.
 */
#include "sim/play.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"
#include "seeds/seeds.h"
#include "sim/net.h"
#include "rxm/rxm.h"
#include "tcp/params/params.h"

#define RECV_LEN	100000

#if defined(HAVE_UDP) && !defined(HAVE_UDP_DL)
#define HAVE_DATAGRAMS	true
#else
#define HAVE_DATAGRAMS	false
#endif

static const char *const names[ACT_KINDS] = {
	[ACT_PASS] = "pass", [ACT_TIME] = "time", [ACT_JUMP] = "jump", [ACT_SEND] = "send", [ACT_TSEND] = "tsend",
	[ACT_RECV] = "recv", [ACT_TRECV] = "trecv", [ACT_MRECV] = "mrecv", [ACT_PEEK] = "peek", [ACT_CANCEL] = "cancel",
	[ACT_WRITE] = "write", [ACT_READ] = "read", [ACT_BAD] = "bad", [ACT_ATOMIC] = "atomic", [ACT_COUNT] = "count",
	[ACT_COLL] = "coll", [ACT_JOIN] = "join", [ACT_LINK] = "link", [ACT_KNOW] = "know",
	[ACT_CUT] = "cut", [ACT_RESET] = "reset", [ACT_HALF] = "half", [ACT_SHUTDOWN] = "shutdown",
	[ACT_STOP] = "stop", [ACT_START] = "start",
	[ACT_RESTART] = "restart",
};

/* Random numbers of an action. All are drawn for each, so that the kind of one does not change those that follow. */
struct drawn {
	uint32_t number, eighth;
	bool small;
};

static void recv_make(struct action *action, const struct drawn *drawn)
{
	action->d = (uint8_t) (drawn->number & 4 ? drawn->number % 4 : 0);
	if (action->kind == ACT_PEEK)
		action->d = (uint8_t) (drawn->number % PEEKS);
	else if (action->kind == ACT_MRECV)
		action->c = 1000 << drawn->number % 6;
	else if (drawn->eighth)
		action->c = RECV_LEN;
	else
		action->c = fab_max(action->c, 8U);
}

/* Members that mean something else for some kinds. */
static void action_fit(struct action *action, const struct drawn *drawn)
{
	switch (action->kind) {
	case ACT_TIME:
		action->c = 1U << drawn->number;
		break;
	case ACT_JUMP:
		action->c = 10U << drawn->number % 16;
		break;
	case ACT_CUT:
		action->c = drawn->number & 8;
		break;
	case ACT_RECV:
	case ACT_TRECV:
	case ACT_MRECV:
	case ACT_PEEK:
		recv_make(action, drawn);
		break;
	case ACT_CANCEL:
		action->d &= 1;
		break;
	case ACT_ATOMIC:
		action->d = (uint8_t) (drawn->number % AMOS);
		break;
	}
}

static void action_make(struct action *action, uint64_t *state, unsigned node_cnt, bool faults)
{
	static const uint8_t kinds[] = {
		ACT_PASS, ACT_PASS, ACT_PASS, ACT_PASS, ACT_PASS, ACT_PASS, ACT_PASS, ACT_PASS, ACT_PASS, ACT_PASS,
		ACT_TIME, ACT_TIME, ACT_TIME, ACT_TIME, ACT_SEND, ACT_SEND, ACT_TSEND, ACT_TSEND, ACT_TSEND, ACT_TSEND,
		ACT_RECV, ACT_RECV, ACT_TRECV, ACT_TRECV, ACT_TRECV, ACT_MRECV, ACT_PEEK, ACT_CANCEL, ACT_WRITE,
		ACT_WRITE, ACT_READ, ACT_ATOMIC, ACT_COUNT,
	};
	static const uint8_t fault_kinds[] = {
		ACT_CUT, ACT_CUT, ACT_RESET, ACT_HALF, ACT_SHUTDOWN, ACT_RESTART, ACT_STOP, ACT_START, ACT_START,
	};
	static const uint32_t lens[] = { 4, 8, 40, 128, 129, 1000, 4072, 9999, 30000, 99999 };
	uint32_t rare = seeds_draw(state, 60), range;
	struct drawn drawn;

	action->kind = kinds[seeds_draw(state, sizeof(kinds))];
	action->a = (uint8_t) seeds_draw(state, node_cnt);
	action->b = (uint8_t) seeds_draw(state, node_cnt);
	range = seeds_draw(state, 3) ? 6 : 10;
	action->c = lens[seeds_draw(state, range)];
	action->d = (uint8_t) seeds_draw(state, WAYS);
	action->e = seeds_draw(state, 4);
	range = seeds_draw(state, 4) ? 22 : 32;
	drawn.number = seeds_draw(state, range);
	drawn.eighth = seeds_draw(state, 8);
	if (faults && !rare)
		action->kind = fault_kinds[drawn.number % sizeof(fault_kinds)];
	else if (rare == 1)
		action->kind = drawn.eighth ? ACT_BAD : ACT_JUMP;
	action_fit(action, &drawn);
}

/* True if its d is an enum way. */
static bool takes_way(const struct action *action)
{
	switch (action->kind) {
	case ACT_SEND:
	case ACT_TSEND:
	case ACT_WRITE:
	case ACT_READ:
	case ACT_BAD:
		return true;
	default:
		return false;
	}
}

/* DGRAM endpoints have messages only. */
static void fit_datagrams(const struct program *program, struct action *action, uint32_t eighth)
{
	switch (action->kind) {
	case ACT_TSEND:
	case ACT_WRITE:
		action->kind = ACT_SEND;
		break;
	case ACT_TRECV:
	case ACT_READ:
	case ACT_MRECV:
		action->kind = ACT_RECV;
		break;
	case ACT_PEEK:
	case ACT_COUNT:
		action->kind = ACT_CANCEL;
		action->d = action->e & 1;
		break;
	case ACT_ATOMIC:
	case ACT_BAD:
	case ACT_JUMP:
		action->kind = ACT_PASS;
		break;
	case ACT_RESET:
	case ACT_HALF:
	case ACT_SHUTDOWN:
		action->kind = ACT_RESTART;
		break;
	case ACT_PASS:
		if (program->strangers && eighth == 1)
			action->kind = ACT_KNOW;
		else if (program->group && !eighth)
			action->kind = ACT_JOIN;
		break;
	}
	if (program->group && action->kind == ACT_SEND && eighth > 5)
		action->b = NET_NODES;		/* to the group */
}

/* What fits the kind of the program. rare: of its own numbers. */
static void fit_program(const struct program *program, struct action *action, uint64_t *rare)
{
	uint32_t eighth = seeds_draw(rare, 8), half = seeds_draw(rare, 2);

	if (program->dgram) {
		fit_datagrams(program, action, eighth);
		return;
	}
	if (!program->msg && action->kind == ACT_SHUTDOWN)
		action->kind = ACT_RESET;
	if (program->msg && program->faults && action->kind == ACT_PASS && !eighth)
		action->kind = ACT_LINK;
	/* a jump of the clock may fail a connect */
	if ((program->msg || program->group) && !program->faults && action->kind == ACT_JUMP)
		action->kind = ACT_PASS;
	if (program->rxm && takes_way(action) && action->d == FENCED)
		action->d = PLAIN;	/* it has no FI_FENCE */
	if (!program->group || action->kind >= ACT_CUT || eighth)
		return;
	action->kind = program->faults && half ? ACT_JOIN : ACT_COLL;
}

/* Draw what the program is. */
static void kind_make(struct program *program, uint64_t *state, uint64_t *more)
{
	bool special;

	program->keys = seeds_draw(state, 16) ? 0 : 1 + seeds_draw(state, 2);
	program->group = !program->keys && !seeds_draw(more, 4);
	program->msg = !program->keys && !program->group && !seeds_draw(more, 4);
	program->rxm = !program->keys && !program->msg && !seeds_draw(more, program->group ? 8 : 4) && SIM_HAS_RXM;
	program->ordered &= !program->rxm;
	program->once = program->group && program->faults && fab_mix64(program->seed ^ 0x5eed5) % 2;
	special = program->keys || program->group || program->msg || program->rxm;
	program->dgram = HAVE_DATAGRAMS && !special && !seeds_draw(more, 3);
	if (!special && !program->dgram && !seeds_draw(more, 3))
		program->contexts = 1 + seeds_draw(more, 2);
	if (program->msg && !(fab_mix64(program->seed ^ 0x5eed7) % 3))
		program->contexts = SHARED;
	if (!program->dgram)
		return;
	program->group = seeds_draw(more, 2);
	program->ipv6 = seeds_draw(more, 2);
	program->strangers = !seeds_draw(more, 3);
}

/* Draw the network and the parameters. */
static void network_make(struct program *program)
{
	static const uint32_t segment[] = { 1 << 20, 1460, 100, 7 }, room[] = { 200000, 5000, 300 };
	static const uint32_t delay[] = { 0, 20000, 1000000, 50000000 };
	static const uint32_t eager[] = { 64, 1000, 10000, TCP_EAGER_MAX }, credit[] = { 4096, 65536, TCP_CREDIT };
	static const uint32_t compute[] = { 0, 0, 100000, 10000000 };
	static const uint32_t buffer[] = { RXM_EAGER_MAX, 4096, 1024 }, sar[] = { RXM_SAR_LIMIT, 5000, 0 };
	uint64_t seed = program->seed, of_rxm = fab_mix64(seed ^ 0x5eed3);

	program->eager = eager[seed % 4];
	program->credit = credit[seed / 4 % 3];
	program->tx_size = seed / 12 % 2 ? 8 : TCP_TX_SIZE;
	program->max_conn = seed / 24 % 4 ? 0 : 2;
	program->segment = segment[seed / 96 % 4];
	program->room = room[seed / 384 % 3];
	program->delay = delay[seed / 1152 % 4];
	program->short_io = seed / 4608 % 2 ? 5 : 0;
	program->no_bufs = seed / 9216 % 2 ? 5 : 0;
	program->rxm_buffer = buffer[of_rxm % 3];
	program->rxm_sar = sar[of_rxm / 3 % 3];
	program->rxm_rx = of_rxm / 9 % 2 ? 16 : RXM_CONN_RX;
	program->rxm_write = of_rxm / 18 % 2;
	program->compute = compute[fab_mix64(seed ^ 0x5eed4) % 4];
}

void play_make(struct program *program, uint64_t seed)
{
	uint64_t state = fab_mix64(seed ^ 0x5eed), more = fab_mix64(seed ^ 0x5eed2);
	uint32_t most = seeds_draw(&state, 8) ? 180 : ACTIONS_MAX - 20, lack = seeds_draw(&state, 8);
	bool faults = seed & 1;

	*program = (struct program) {
		.seed = fab_mix64(seed), .faults = faults,
		.ordered = !seeds_draw(&state, 3), .data = seeds_draw(&state, 2),
		.lack = faults && lack < 2 ? 4 : 0, .lack_memory = faults && lack == 2 ? 100 : 0,
	};
	network_make(program);
	kind_make(program, &state, &more);
	program->nodes = 2 + seeds_draw(&state, 3);
	program->cnt = 20 + seeds_draw(&state, most);
	for (uint32_t i = 0; i < program->cnt; i++) {
		action_make(&program->actions[i], &state, program->nodes, faults);
		fit_program(program, &program->actions[i], &more);
	}
}

/* What a program is, as words behind its seed: those of the first table, and those of the others with their number,
 * which those of the last tables always have; the last one is for rxm. */
struct word {
	const char *name;
	size_t off;
};

static const struct word is[] = {
	{ "faults", offsetof(struct program, faults) }, { "ordered", offsetof(struct program, ordered) },
	{ "data", offsetof(struct program, data) }, { "msg", offsetof(struct program, msg) },
	{ "rxm", offsetof(struct program, rxm) }, { "dgram", offsetof(struct program, dgram) },
	{ "group", offsetof(struct program, group) }, { "once", offsetof(struct program, once) },
	{ "ipv6", offsetof(struct program, ipv6) }, { "strangers", offsetof(struct program, strangers) },
}, has[] = {
	{ "nodes", offsetof(struct program, nodes) }, { "contexts", offsetof(struct program, contexts) },
	{ "keys", offsetof(struct program, keys) }, { "lack", offsetof(struct program, lack) },
	{ "lack_memory", offsetof(struct program, lack_memory) },
}, network[] = {
	{ "segment", offsetof(struct program, segment) }, { "room", offsetof(struct program, room) },
	{ "delay", offsetof(struct program, delay) }, { "short_io", offsetof(struct program, short_io) },
	{ "no_bufs", offsetof(struct program, no_bufs) }, { "eager", offsetof(struct program, eager) },
	{ "credit", offsetof(struct program, credit) }, { "tx_size", offsetof(struct program, tx_size) },
	{ "max_conn", offsetof(struct program, max_conn) }, { "compute", offsetof(struct program, compute) },
}, of_rxm[] = {
	{ "rxm_buffer", offsetof(struct program, rxm_buffer) }, { "rxm_sar", offsetof(struct program, rxm_sar) },
	{ "rxm_rx", offsetof(struct program, rxm_rx) }, { "rxm_write", offsetof(struct program, rxm_write) },
};

static bool *flag_of(struct program *program, const struct word *word)
{
	return (bool *) ((uint8_t *) program + word->off);
}

static uint32_t *number_of(struct program *program, const struct word *word)
{
	return (uint32_t *) (void *) ((uint8_t *) program + word->off);
}

static const struct word *find(const struct word *words, size_t cnt, const char *name, size_t len)
{
	for (size_t i = 0; i < cnt; i++) {
		if (strlen(words[i].name) == len && !memcmp(words[i].name, name, len))
			return &words[i];
	}
	return NULL;
}

/* The flag of the program that this word names, or NULL. */
static bool *find_flag(struct program *program, const char *name)
{
	const struct word *word = find(is, fab_countof(is), name, strlen(name));

	return word ? flag_of(program, word) : NULL;
}

/* The number of the program that this word names, up to its =, or NULL. */
static uint32_t *find_number(struct program *program, const char *name)
{
	size_t len = strcspn(name, "=");
	const struct word *word = find(has, fab_countof(has), name, len);

	if (!word)
		word = find(network, fab_countof(network), name, len);
	if (!word)
		word = find(of_rxm, fab_countof(of_rxm), name, len);
	return word ? number_of(program, word) : NULL;
}

bool play_is(struct program *program, const char *word)
{
	const bool *flag = find_flag(program, word);
	const uint32_t *number = find_number(program, word);
	const char *is_so = strchr(word, '=');

	if (number)
		return is_so ? *number == strtoul(is_so + 1, NULL, 0) : *number;
	return flag && *flag;
}

void play_print(struct program *program, FILE *out)
{
	fprintf(out, "program %" PRIu64, program->seed);
	for (unsigned i = 0; i < fab_countof(is); i++) {
		if (*flag_of(program, &is[i]))
			fprintf(out, " %s", is[i].name);
	}
	for (unsigned i = 0; i < fab_countof(has); i++) {
		if (*number_of(program, &has[i]))
			fprintf(out, " %s=%" PRIu32, has[i].name, *number_of(program, &has[i]));
	}
	for (unsigned i = 0; i < fab_countof(network); i++)
		fprintf(out, " %s=%" PRIu32, network[i].name, *number_of(program, &network[i]));
	for (unsigned i = 0; program->rxm && i < fab_countof(of_rxm); i++)
		fprintf(out, " %s=%" PRIu32, of_rxm[i].name, *number_of(program, &of_rxm[i]));
	fprintf(out, "\n");
	for (uint32_t i = 0; i < program->cnt; i++) {
		const struct action *action = &program->actions[i];

		fprintf(out, "%s %u %u %u %u %u\n", names[action->kind], action->a, action->b, action->c, action->d,
			action->e);
	}
	fprintf(out, "end\n");
}

#define LINE_LEN	400

/* Read a line that says something. False: there is none. */
static bool next_line(char line[LINE_LEN], FILE *in)
{
	while (fgets(line, LINE_LEN, in)) {
		if (line[0] != '#' && line[0] != '\n')
			return true;
	}
	return false;
}

static bool read_action(struct action *action, const char *line)
{
	unsigned a, b, d;
	char name[16];

	if (sscanf(line, "%15s %u %u %" SCNu32 " %u %" SCNu32, name, &a, &b, &action->c, &d, &action->e) != 6)
		return false;
	action->a = (uint8_t) a;
	action->b = (uint8_t) b;
	action->d = (uint8_t) d;
	for (action->kind = 0; action->kind < ACT_KINDS; action->kind++) {
		if (!strcmp(names[action->kind], name))
			return true;
	}
	return false;
}

/* False: there is no such word. */
static bool read_word(struct program *program, const char *word)
{
	const char *number = strchr(word, '=');
	uint32_t *to = find_number(program, word);
	bool *flag = find_flag(program, word);

	if (flag)
		*flag = true;
	else if (to && number)
		*to = (uint32_t) strtoul(number + 1, NULL, 0);
	else
		return false;
	return true;
}

bool play_read(struct program *program, FILE *in)
{
	char line[LINE_LEN], *word, *rest;

	*program = (struct program) { 0 };
	if (!next_line(line, in) || sscanf(line, "program %" SCNu64, &program->seed) != 1)
		return false;
	network_make(program);
	strtok_r(line, " \n", &rest);
	strtok_r(NULL, " \n", &rest);
	while ((word = strtok_r(NULL, " \n", &rest))) {
		if (!read_word(program, word))
			return false;
	}
	while (next_line(line, in) && program->cnt < ACTIONS_MAX && read_action(&program->actions[program->cnt], line))
		program->cnt++;
	return true;
}
