/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_rdm_stress: peers that die. A target answers clients, which are killed in the middle of their work and replaced by
 * new ones; at last the target is killed. All processes are children of this one. Whoever lives sees every operation
 * that it has posted end, well or in error, and no wrong data; a client that has not been killed gets all its
 * answers as long as the target lives.
 *
 * With -u there are several runs, one after the other, each with settings of its own.
 *
 *   parent   starts and kills; knows by ticks, bytes in a pipe, how far a client is: nothing depends on time
 *   target   takes messages, sends each back to the client that it names
 *   client   keeps a window of messages under way and checks what comes back
 */
#include "lib/func.h"
#include "lib/json_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_CLIENTS 32
#define MAX_LIVES 4096
#define MAX_KILLS (MAX_LIVES - MAX_CLIENTS)
#define MAX_RUNS 64
#define MAX_NAME 256
#define WINDOW 4
#define RECVS 32

#define NOT_SAID UINT32_MAX

/* One run. */
struct plan {
	char name[64];
	uint32_t clients, kills, seed;
	uint32_t size;                  /* bytes of the longest message; NOT_SAID: those of -S */
};

struct settings {
	struct plan usual;              /* of the command line */
	struct plan plans[MAX_RUNS];    /* of -u; NOT_SAID: as usual */
	size_t plan_cnt;
};

/* How every message begins; a pattern follows. */
struct header {
	uint32_t life;                  /* of the client: each that is started has another one */
	uint32_t name_len;
	uint64_t seq;
	char name[MAX_NAME];
};

/* One buffer, and what is under way with it. */
struct slot {
	struct func_op op;
	struct func_buf buf;
	bool waits;                     /* target: has come, and its answer is not posted yet */
};

/* Of the target. */
struct target {
	struct func_ep ep;
	struct slot in[RECVS];
	struct slot out[RECVS];         /* the answer to in[i] */
	fi_addr_t addr[MAX_LIVES];
	uint64_t answered, failed;
};

/* Of a client. */
struct client {
	struct func_ep ep;
	struct slot in[WINDOW], out[WINDOW];
	struct header header;
	uint64_t sent, answered;
};

/* Of the parent: one child. */
struct child {
	pid_t pid;
	int ticks, stop;                /* we read ticks, and close stop to end it */
};

static const struct util_opt options[] = {
	{ 'n', "number", "NUMBER", "clients at a time (default: 3)" },
	{ 'k', "kills", "NUMBER", "clients that are killed (default: 10)" },
	{ 'r', "seed", "NUMBER", "which, and when, is drawn from this (default: 1)" },
	{ 'u', "file", "FILE", "JSON: an object, or an array of them, each of which is a run; of clients, kills,\n"
	  "seed and size (bytes) it has what differs from -n, -k, -r and -S, and perhaps a name" },
	{ 0, NULL, NULL, NULL },
};

static const struct json_key keys[] = {
	{ "name", offsetof(struct plan, name), sizeof(((struct plan *) NULL)->name), 0, 0 },
	{ "clients", offsetof(struct plan, clients), 0, 1, MAX_CLIENTS },
	{ "kills", offsetof(struct plan, kills), 0, 0, MAX_KILLS },
	{ "seed", offsetof(struct plan, seed), 0, 0, NOT_SAID - 1 },
	{ "size", offsetof(struct plan, size), 0, 1, 1u << 30 },
	{ NULL, 0, 0, 0, 0 },
};

static int take(struct func *func, int key, const char *arg)
{
	static const struct plan nothing_said = {
		.clients = NOT_SAID, .kills = NOT_SAID, .seed = NOT_SAID, .size = NOT_SAID,
	};
	struct settings *settings = func->own;

	switch (key) {
	case 'n':
		return func_number("-n (clients)", arg, 1, MAX_CLIENTS, &settings->usual.clients);
	case 'k':
		return func_number("-k (kills)", arg, 0, MAX_KILLS, &settings->usual.kills);
	case 'r':
		return func_number("-r (a number)", arg, 0, UINT32_MAX, &settings->usual.seed);
	default:
		return json_rows_read(arg, keys, &nothing_said, sizeof(nothing_said), settings->plans, MAX_RUNS,
				      &settings->plan_cnt);
	}
}

enum word { GO_ON, STOP, ORPHAN };

/* What the parent says: it closes its end to stop us, after a byte when the target is dead. */
static enum word ask_parent(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	char byte;

	if (poll(&poll_fd, 1, 0) <= 0)
		return GO_ON;
	return read(fd, &byte, 1) == 1 ? ORPHAN : STOP;
}

static size_t message_len(const struct func *func, uint64_t seq)
{
	size_t room = func->size;

	return sizeof(struct header) + (seq % 5 ? seq * 37 % (room < 512 ? room : 512) : room);
}

static int open_slots(struct func *func, struct slot *slots, size_t cnt)
{
	size_t i;

	for (i = 0; i < cnt; i++)
		FUNC_TRY(func_buf(func, &slots[i].buf, sizeof(struct header) + func->size, FI_SEND | FI_RECV));
	return 0;
}

static int post_recv(struct func *func, struct func_ep *ep, struct slot *slot)
{
	slot->op.done = 0;
	slot->op.err = 0;
	FUNC_POST(func, fi_recv(ep->ep, slot->buf.mem, slot->buf.len, slot->buf.desc, FI_ADDR_UNSPEC, &slot->op));
	return 0;
}

/* Every receive that is still posted is cancelled and comes back. */
static int cancel_recvs(struct func *func, struct func_ep *ep, struct slot *slots, size_t cnt)
{
	size_t i;

	for (i = 0; i < cnt; i++) {
		if (!slots[i].op.done)
			fi_cancel(&ep->ep->fid, &slots[i].op);
	}
	for (i = 0; i < cnt; i++)
		FUNC_WAIT(func, slots[i].op.done, "a cancelled receive");
	return 0;
}

/* ---- the target ---- */

/* The client that a message names: inserted with its first one. */
static int find_client(struct func *func, struct target *target, const struct header *header, fi_addr_t *addr)
{
	fi_addr_t *known = &target->addr[header->life % MAX_LIVES];

	FUNC_EXPECT(func, header->life < MAX_LIVES && header->name_len <= MAX_NAME, "a message of nobody");
	if (*known == FI_ADDR_NOTAVAIL)
		FUNC_EXPECT(func, fi_av_insert(func->av, header->name, 1, known, 0, NULL) == 1,
			    "fi_av_insert of a client");
	*addr = *known;
	return 0;
}

/* Try to answer message i. A client that is known to be dead may be refused at once: then that was the end of it. */
static int answer(struct func *func, struct target *target, size_t i)
{
	struct slot *in = &target->in[i], *out = &target->out[i];
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	ssize_t ret;

	FUNC_TRY(find_client(func, target, (const struct header *) in->buf.mem, &addr));
	memcpy(out->buf.mem, in->buf.mem, in->op.entry.len);
	out->op.done = 0;
	ret = fi_send(target->ep.ep, out->buf.mem, in->op.entry.len, out->buf.desc, addr, &out->op);
	if (ret == -FI_EAGAIN) {
		out->op.done = 1;
		return 0;
	}
	if (ret) {
		out->op.done = 1;
		target->failed++;
	}
	target->answered += !ret;
	in->waits = false;
	return post_recv(func, &target->ep, in);
}

static int target_turn(struct func *func, struct target *target)
{
	size_t i;

	FUNC_TRY(func_progress(func));
	for (i = 0; i < RECVS; i++) {
		struct slot *in = &target->in[i];

		if (in->op.done && !in->waits && in->op.err)
			FUNC_TRY(post_recv(func, &target->ep, in));     /* its sender died on the way */
		else if (in->op.done)
			in->waits = true;
		if (!in->waits || !target->out[i].op.done)
			continue;
		FUNC_EXPECT(func, in->op.entry.len >= sizeof(struct header), "a message of %zu bytes",
			    in->op.entry.len);
		FUNC_TRY(answer(func, target, i));
	}
	return 0;
}

static int run_target(struct func *func, int name_fd, int stop_fd)
{
	struct target *target = func_alloc(func, sizeof(*target));
	struct header header = { .life = 0 };
	size_t i, len = sizeof(header.name);

	if (!target)
		return -FI_ENOMEM;
	for (i = 0; i < MAX_LIVES; i++)
		target->addr[i] = FI_ADDR_NOTAVAIL;
	FUNC_TRY(func_open(func));
	FUNC_TRY(func_ep_create(func, &target->ep, NULL));
	FUNC_TRY(open_slots(func, target->in, RECVS));
	FUNC_TRY(open_slots(func, target->out, RECVS));
	for (i = 0; i < RECVS; i++) {
		target->out[i].op.done = 1;
		FUNC_TRY(post_recv(func, &target->ep, &target->in[i]));
	}
	FUNC_CALL(func, fi_getname(&target->ep.ep->fid, header.name, &len));
	header.name_len = (uint32_t) len;
	if (write(name_fd, &header, sizeof(header)) != sizeof(header))
		return pp_fail(func->pp, -errno, "tell the target's name");
	while (ask_parent(stop_fd) == GO_ON)
		FUNC_TRY(target_turn(func, target));
	for (i = 0; i < RECVS; i++)
		FUNC_WAIT(func, target->out[i].op.done, "an answer to end");
	FUNC_TRY(cancel_recvs(func, &target->ep, target->in, RECVS));
	printf("target: %llu answers, %llu refused\n", (unsigned long long) target->answered,
	       (unsigned long long) target->failed);
	return 0;
}

/* ---- a client ---- */

static int send_next(struct func *func, struct client *client, struct slot *slot)
{
	size_t len = message_len(func, client->sent);

	client->header.seq = client->sent;
	memcpy(slot->buf.mem, &client->header, sizeof(client->header));
	pp_fill(slot->buf.mem + sizeof(client->header), len - sizeof(client->header), client->sent);
	slot->op.done = 0;
	FUNC_POST(func, fi_send(client->ep.ep, slot->buf.mem, len, slot->buf.desc, client->ep.peer, &slot->op));
	client->sent++;
	return 0;
}

static int check_answer(struct func *func, struct client *client, struct slot *slot)
{
	const struct header *header = (const struct header *) slot->buf.mem;

	FUNC_EXPECT(func, slot->op.entry.len >= sizeof(*header) && header->life == client->header.life,
		    "an answer to somebody else");
	FUNC_EXPECT(func, slot->op.entry.len == message_len(func, header->seq), "answer %llu has %zu bytes",
		    (unsigned long long) header->seq, slot->op.entry.len);
	FUNC_TRY(pp_check(func->pp, slot->buf.mem + sizeof(*header), slot->op.entry.len - sizeof(*header),
			  header->seq));
	client->answered++;
	return post_recv(func, &client->ep, slot);
}

/* Take the answers that have come: 1 when an operation has failed, which is the target's death. */
static int client_turn(struct func *func, struct client *client, int ticks)
{
	const char tick = 't';
	size_t i;

	FUNC_TRY(func_progress(func));
	for (i = 0; i < WINDOW; i++) {
		if (client->out[i].op.done && client->out[i].op.err)
			return 1;
		if (!client->in[i].op.done)
			continue;
		if (client->in[i].op.err)
			return 1;
		FUNC_TRY(check_answer(func, client, &client->in[i]));
		if (write(ticks, &tick, 1) != 1 && errno != EAGAIN)
			return pp_fail(func->pp, -errno, "tick");
	}
	return 0;
}

/* Work until told to stop and all is answered, or until the target is dead. */
static int work(struct func *func, struct client *client, int ticks, int stop_fd, enum word *word)
{
	struct pp_wait wait = { .polls = 0 };
	uint64_t seen = 0;
	size_t i;
	int ret;

	for (*word = GO_ON; *word == GO_ON || client->answered < client->sent; ) {
		if (*word == GO_ON)
			*word = ask_parent(stop_fd);
		ret = client_turn(func, client, ticks);
		if (ret)
			*word = ORPHAN;
		if (ret < 0 || *word == ORPHAN)
			return ret < 0 ? ret : 0;
		for (i = 0; i < WINDOW && *word == GO_ON && client->sent - client->answered < WINDOW; i++) {
			if (client->out[i].op.done)
				FUNC_TRY(send_next(func, client, &client->out[i]));
		}
		if (client->answered != seen)
			wait.polls = 0;
		seen = client->answered;
		FUNC_TRY(func_tick_quiet(func, &wait, "an answer"));
	}
	return 0;
}

/* The target is dead: every message under way ends, and one of those that are sent now ends in error, or is refused. */
static int outlive(struct func *func, struct client *client)
{
	struct pp_wait wait = { .polls = 0 };
	struct slot *slot = &client->out[0];
	ssize_t ret = 0;
	size_t i;

	for (i = 0; i < WINDOW; i++)
		FUNC_WAIT(func, client->out[i].op.done, "a message to the dead target to end");
	while (!slot->op.err) {
		slot->op.done = 0;
		ret = fi_send(client->ep.ep, slot->buf.mem, sizeof(struct header), slot->buf.desc, client->ep.peer,
			      &slot->op);
		if (ret && ret != -FI_EAGAIN)
			return 0;
		if (!ret)
			FUNC_WAIT(func, slot->op.done, "a message to the dead target to end");
		FUNC_TRY(func_tick(func, &wait, "an error"));
	}
	return 0;
}

static int run_client(struct func *func, const struct header *target, uint32_t life, int ticks, int stop_fd)
{
	struct client *client = func_alloc(func, sizeof(*client));
	size_t i, len = MAX_NAME;
	enum word word;

	if (!client)
		return -FI_ENOMEM;
	FUNC_TRY(func_open(func));
	FUNC_TRY(func_ep_create(func, &client->ep, NULL));
	FUNC_EXPECT(func, fi_av_insert(func->av, target->name, 1, &client->ep.peer, 0, NULL) == 1,
		    "fi_av_insert of the target");
	FUNC_TRY(open_slots(func, client->in, WINDOW));
	FUNC_TRY(open_slots(func, client->out, WINDOW));
	client->header.life = life;
	FUNC_CALL(func, fi_getname(&client->ep.ep->fid, client->header.name, &len));
	client->header.name_len = (uint32_t) len;
	for (i = 0; i < WINDOW; i++) {
		client->out[i].op.done = 1;
		FUNC_TRY(post_recv(func, &client->ep, &client->in[i]));
	}
	FUNC_TRY(work(func, client, ticks, stop_fd, &word));
	if (word == ORPHAN)
		FUNC_TRY(outlive(func, client));
	return cancel_recvs(func, &client->ep, client->in, WINDOW);
}

/* ---- the parent ---- */

/* Start a child: the target when `target` is not known yet. It leaves with what its part comes to. */
static int start(struct func *func, struct child *child, struct child *others, size_t other_cnt,
		 const struct header *target, uint32_t life)
{
	int ticks[2], stop[2], ret;
	size_t i;

	if (pipe2(ticks, O_CLOEXEC) || pipe2(stop, O_CLOEXEC))
		return pp_fail(func->pp, -errno, "pipe2");
	fflush(stdout);
	child->pid = fork();
	if (child->pid < 0)
		return pp_fail(func->pp, -errno, "fork");
	if (child->pid) {
		close(ticks[1]);
		close(stop[0]);
		child->ticks = ticks[0];
		child->stop = stop[1];
		return 0;
	}
	close(ticks[0]);
	close(stop[1]);
	/* Nobody may keep another one from seeing that it is to stop. */
	for (i = 0; i < other_cnt; i++) {
		if (others[i].pid > 0)
			close(others[i].stop);
	}
	fcntl(ticks[1], F_SETFL, O_NONBLOCK);
	ret = target ? run_client(func, target, life, ticks[1], stop[0]) : run_target(func, ticks[1], stop[0]);
	if (!ret)
		ret = func_close_all(func);
	fflush(stdout);
	_exit(util_exit_code(ret));
}

/* Wait until a child has ticked `cnt` times. */
static int wait_ticks(struct func *func, struct child *child, unsigned cnt)
{
	struct pollfd poll_fd = { .fd = child->ticks, .events = POLLIN };
	char tick;

	while (cnt--) {
		if (poll(&poll_fd, 1, func->pp->opts->wait_ms) <= 0)
			return pp_fail(func->pp, -FI_ETIMEDOUT, "wait for a client to be answered (-T sets how long)");
		if (read(child->ticks, &tick, 1) != 1)
			return pp_fail(func->pp, -FI_ECONNRESET, "wait for a client to be answered: it has ended");
	}
	return 0;
}

/* Take the end of a child: killed, or of itself with code 0. */
static int reap(struct func *func, struct child *child, bool killed, const char *what)
{
	int status = 0;

	if (waitpid(child->pid, &status, 0) != child->pid)
		return pp_fail(func->pp, -errno, "wait for a child");
	close(child->ticks);
	child->pid = 0;
	if (killed)
		FUNC_EXPECT(func, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
			    "%s ended before it was killed: status 0x%x", what, status);
	else
		FUNC_EXPECT(func, WIFEXITED(status) && !WEXITSTATUS(status), "%s failed: status 0x%x", what, status);
	return 0;
}

static int kill_child(struct func *func, struct child *child, const char *what)
{
	kill(child->pid, SIGKILL);
	close(child->stop);
	return reap(func, child, true, what);
}

/* Tell a child to end, or that the target is dead, and take it. */
static int stop_child(struct func *func, struct child *child, enum word word, const char *what)
{
	/* One that has noticed by itself may have ended. */
	if (word == ORPHAN && write(child->stop, "o", 1) != 1 && errno != EPIPE)
		pp_fail(func->pp, -errno, "tell %s", what);
	close(child->stop);
	return reap(func, child, false, what);
}

/* children[0] is the target, the others are clients. */
static int direct(struct func *func, struct plan *plan, struct child *children)
{
	struct pollfd poll_fd = { .events = POLLIN };
	uint32_t i, life = 0, cnt = plan->clients + 1;
	struct header target;

	FUNC_TRY(start(func, &children[0], children, 0, NULL, 0));
	poll_fd.fd = children[0].ticks;
	if (poll(&poll_fd, 1, func->pp->opts->wait_ms) <= 0 ||
	    read(children[0].ticks, &target, sizeof(target)) != sizeof(target))
		return pp_fail(func->pp, -FI_ENOSYS, "the target could not start");
	for (i = 1; i < cnt; i++)
		FUNC_TRY(start(func, &children[i], children, cnt, &target, life++));
	for (i = 0; i < plan->kills; i++) {
		struct child *victim = &children[1 + (uint32_t) rand_r(&plan->seed) % plan->clients];

		FUNC_TRY(wait_ticks(func, victim, 1 + (unsigned) rand_r(&plan->seed) % 40));
		FUNC_TRY(kill_child(func, victim, "a client"));
		FUNC_TRY(start(func, victim, children, cnt, &target, life++));
	}
	/* All that are left still get their answers. */
	for (i = 1; i < cnt; i++)
		FUNC_TRY(wait_ticks(func, &children[i], 10));
	if (cnt > 2)
		FUNC_TRY(stop_child(func, &children[1], STOP, "a client at work"));
	FUNC_TRY(kill_child(func, &children[0], "the target"));
	for (i = cnt > 2 ? 2 : 1; i < cnt; i++)
		FUNC_TRY(stop_child(func, &children[i], ORPHAN, "a client without target"));
	return 0;
}

static int run_plan(struct func *func, struct plan *plan)
{
	struct child *children = func_alloc(func, (MAX_CLIENTS + 1) * sizeof(*children));
	size_t i;
	int ret;

	if (!children)
		return -FI_ENOMEM;
	ret = direct(func, plan, children);
	for (i = 0; i <= MAX_CLIENTS; i++) {
		if (children[i].pid <= 0)
			continue;
		kill(children[i].pid, SIGKILL);
		waitpid(children[i].pid, NULL, 0);
	}
	return ret;
}

static uint32_t said(uint32_t value, uint32_t usual)
{
	return value == NOT_SAID ? usual : value;
}

/* Of a file: with what it leaves to the command line. */
static int run_row(struct func *func, struct plan plan, size_t number)
{
	const struct settings *settings = func->own;
	size_t usual_size = func->size;
	int ret;

	plan.clients = said(plan.clients, settings->usual.clients);
	plan.kills = said(plan.kills, settings->usual.kills);
	plan.seed = said(plan.seed, settings->usual.seed);
	if (plan.size != NOT_SAID)
		func->size = plan.size;
	printf("run %zu of %zu%s%s: %u clients, %u kills, seed %u, size %zu\n", number, settings->plan_cnt,
	       *plan.name ? ", " : "", plan.name, plan.clients, plan.kills, plan.seed, func->size);
	ret = run_plan(func, &plan);
	func->size = usual_size;
	return ret;
}

static int run(struct func *func)
{
	struct settings *settings = func->own;
	size_t i;

	signal(SIGPIPE, SIG_IGN);
	if (!settings->plan_cnt)
		return run_plan(func, &settings->usual);
	for (i = 0; i < settings->plan_cnt; i++)
		FUNC_TRY(run_row(func, settings->plans[i], i + 1));
	return 0;
}

int main(int argc, char **argv)
{
	static struct settings settings = { .usual = { .clients = 3, .kills = 10, .seed = 1 } };
	static const struct func_program program = {
		.about = "Peers that die.",
		.ep_type = FI_EP_RDM,
		.caps = FI_MSG,
		.size = 65536,
		.options = options,
		.take = take,
		.alone = true,
		.no_domain = true,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
