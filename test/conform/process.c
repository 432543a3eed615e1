/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Both halves of a peer in another process; see the header for what they say to each other. */
#define CONFORM_INSIDE
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collective.h"
#include "ops.h"

/* Lines that come in on a descriptor that does not block. */
struct lines {
	int fd;
	size_t len;
	bool end;
	char text[4096];
};

struct process {
	struct test *t;
	pid_t pid;			/* 0: gone */
	int to;
	struct lines from;
	char line[1024];		/* the last answer */
};

/* Take the next whole line, or what fits of it, into @line. */
static bool next_line(struct lines *l, char *line, size_t size)
{
	size_t len;
	char *end;
	ssize_t n;

	n = read(l->fd, l->text + l->len, sizeof(l->text) - l->len);
	if (n > 0)
		l->len += (size_t) n;
	l->end |= n == 0;
	end = memchr(l->text, '\n', l->len);
	if (!end)
		return false;
	len = (size_t) (end - l->text) < size ? (size_t) (end - l->text) : size - 1;
	memcpy(line, l->text, len);
	line[len] = 0;
	l->len -= (size_t) (end + 1 - l->text);
	memmove(l->text, end + 1, l->len);
	return true;
}

static void hex(char *out, const uint8_t *in, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		sprintf(out + 2 * i, "%02x", in[i]);
}

static size_t unhex(uint8_t *out, size_t size, const char *in)
{
	unsigned int byte;
	size_t n = 0;

	while (n < size && sscanf(in + 2 * n, "%2x", &byte) == 1)
		out[n++] = (uint8_t) byte;
	return n;
}

/* ---- the parent's half */

static void process_free(void *arg)
{
	struct process *p = arg;

	if (p->pid) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, NULL, 0);
	}
	close(p->to);
	close(p->from.fd);
	free(p);
}

static void exec_peer(void)
{
	static const char *const types[] = { [FI_EP_MSG] = "msg", [FI_EP_RDM] = "rdm", [FI_EP_DGRAM] = "dgram" };
	static const char *const models[] = { [FI_PROGRESS_UNSPEC] = NULL, [FI_PROGRESS_AUTO] = "auto",
					      [FI_PROGRESS_MANUAL] = "manual" };
	const char *argv[12] = { "conform", "--peer", "-p", run.prov, "-e", types[run.type] };
	int n = 6;

	if (run.family == AF_INET6)
		argv[n++] = "-6";
	if (models[run.progress]) {
		argv[n++] = "-P";
		argv[n++] = models[run.progress];
	}
	if (run.mr_mode) {
		argv[n++] = "-m";
		argv[n++] = run.mr_mode & FI_MR_LOCAL ? "local" : "basic";
	}
	execv("/proc/self/exe", (char **) argv);
	_exit(1);
}

struct process *process_start(struct test *t)
{
	struct process *p = calloc(1, sizeof(*p));
	int in[2], out[2];

	if (!p || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		FAIL("pipe: %s", strerror(errno));
	p->t = t;
	p->to = in[1];
	p->from.fd = out[0];
	fcntl(p->from.fd, F_SETFL, O_NONBLOCK);
	fflush(stdout);
	p->pid = fork();
	if (p->pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		exec_peer();
	}
	close(in[0]);
	close(out[1]);
	own(t, process_free, p);
	process_answer(p, "name");
	return p;
}

struct process *process_new(struct test *t)
{
	if (!has_sockaddr())
		ABSENT("%s has no addresses that another process could use", run.prov);
	return process_start(t);
}

struct side *side_to_opts(struct test *t, struct process *p, const struct opts *o)
{
	struct side *s;

	if (run.type == FI_EP_MSG) {
		struct side to = { .info = info_find(t, hints_new(t, o), NULL, NULL, 0) };

		to.name_len = process_name(p, to.name, sizeof(to.name));
		s = connector_open(t, &to, o);
		MUST(fi_connect(s->ep, to.name, NULL, 0));
		expect_event(s, FI_CONNECTED);
		return s;
	}
	s = side_open_opts(t, o);
	s->name_len = process_name(p, s->name, sizeof(s->name));
	CHECK_RET(fi_av_insert(s->av, s->name, 1, &s->peer, 0, NULL), 1);
	s->name_len = sizeof(s->name);
	MUST(fi_getname(&s->ep->fid, s->name, &s->name_len));
	process_tell_name(p, s->name, s->name_len);
	return s;
}

/* Has it said a line that begins with @word? */
static bool has_said(struct process *p, const char *word)
{
	while (next_line(&p->from, p->line, sizeof(p->line))) {
		if (!strncmp(p->line, word, strlen(word)))
			return true;
	}
	return false;
}

void process_answer(struct process *p, const char *word)
{
	struct wait w = wait_begin();
	char what[128];

	snprintf(what, sizeof(what), "the other process to say '%s'", word);
	while (!has_said(p, word))
		wait_more(p->t, &w, what);
}

void process_answer_alone(struct process *p, const char *word)
{
	struct pollfd fd = { .fd = p->from.fd, .events = POLLIN };
	struct wait w = wait_begin();

	while (!has_said(p, word)) {
		double left = w.until - now_ms();

		if (p->from.end || left <= 0)
			FAIL("the other process did not say '%s' while no call was made here", word);
		poll(&fd, 1, (int) left + 1);
	}
}

size_t process_name(struct process *p, void *name, size_t size)
{
	return unhex(name, size, p->line + strlen("name "));
}

void process_tell(struct process *p, const char *line)
{
	CHECK(write(p->to, line, strlen(line)) == (ssize_t) strlen(line));
}

void process_tell_name(struct process *p, const void *name, size_t len)
{
	char line[300] = "name ";

	hex(line + 5, name, len);
	strcat(line, "\n");
	process_tell(p, line);
	process_answer(p, "known");
}

void process_region(struct process *p, uint64_t *addr, uint64_t *key)
{
	process_answer(p, "region");
	CHECK(sscanf(p->line, "region %" SCNx64 " %" SCNx64, addr, key) == 2);
}

void process_signal(struct process *p, int sig)
{
	CHECK(p->pid && !kill(p->pid, sig));
	if (sig == SIGSTOP)
		waitpid(p->pid, NULL, WUNTRACED);	/* until it has stopped */
}

void process_kill(struct process *p)
{
	process_signal(p, SIGKILL);
	waitpid(p->pid, NULL, 0);
	p->pid = 0;
}

void process_end(struct process *p)
{
	struct wait w = wait_begin();
	int status;
	pid_t pid;

	close(p->to);
	p->to = -1;
	while ((pid = waitpid(p->pid, &status, WNOHANG)) == 0)
		wait_more(p->t, &w, "the other process to end");
	p->pid = 0;
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- the process' half */

static void say(const char *word)
{
	printf("%s\n", word);
	fflush(stdout);
}

/* Join the group of the first cnt addresses. */
static void join(struct side *s, size_t cnt)
{
	s->mc = coll_join_begin(s, coll_everyone, cnt);
	coll_join_end(s, s->mc);
	say("joined");
}

/* Nothing but a new line ends this. */
static void rest(void)
{
	struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };

	say("resting");
	poll(&fd, 1, -1);
}

static bool is_filled(const uint8_t *mem, size_t len)
{
	return !memchr(mem, 0, len);
}

/* How many writes with data have been told of. */
static size_t written_cnt(const struct side *s)
{
	size_t i, cnt = 0;

	for (i = 0; i < s->rx.cnt; i++)
		cnt += (s->rx.list[i].flags & FI_REMOTE_WRITE) != 0;
	return cnt;
}

/* Wait for what kind says of len bytes, which may have come. */
static void take_all(struct side *s, const struct region *r, const char *kind, size_t len)
{
	uint8_t *buf = mem(s->t, len);
	struct wait w = wait_begin();
	size_t i, want = s->rx.taken + len / 8;

	for (i = 0; i < len; i += 8) {
		if (!strncmp(kind, "message", 7))
			post_recv(s, buf + i, 8);
		else if (!strncmp(kind, "tagged", 6))
			post_trecv(s, buf + i, 8, 7, 0);
	}
	if (!strncmp(kind, "region", 6) || !strncmp(kind, "data", 4)) {
		while (*kind == 'r' ? !is_filled(r->buf, len) : written_cnt(s) < len / 8)
			wait_more(s->t, &w, "all that was written");
	} else {
		while (s->rx.cnt < want)
			wait_more(s->t, &w, "all messages");
		s->rx.taken = want;
	}
	say("taken");
}

static void obey(struct side *s, const char *line)
{
	static struct region r;
	const char *arg = line + strcspn(line, " ");
	unsigned long len = strtoul(arg, NULL, 10);
	uint8_t *buf;

	if (!strncmp(line, "name ", 5)) {
		CHECK(unhex(s->name, sizeof(s->name), line + 5) > 0);
		CHECK_RET(fi_av_insert(s->av, s->name, 1, &s->peer, 0, NULL), 1);
		say("known");
	} else if (!strncmp(line, "recv ", 5)) {
		post_recv(s, mem(s->t, len), len);
		say("posted");
	} else if (!strncmp(line, "send ", 5)) {
		buf = mem(s->t, len);
		memset(buf, 's', len);
		say("sending");
		send_bytes(s, buf, len);
	} else if (!strncmp(line, "join ", 5)) {
		join(s, len);
	} else if (!strncmp(line, "barrier", 7)) {
		MUST(fi_barrier(s->ep, fi_mc_addr(s->mc), NULL));
		s->tx_posted++;
		say("called");
	} else if (!strncmp(line, "region ", 7)) {
		r = region_open(s, NULL, len, FI_REMOTE_READ | FI_REMOTE_WRITE);
		printf("region %" PRIx64 " %" PRIx64 "\n", r.addr, r.key);
		fflush(stdout);
	} else if (!strncmp(line, "rest", 4)) {
		rest();
	} else if (!strncmp(line, "take ", 5)) {
		take_all(s, &r, arg + 1, strtoul(strrchr(line, ' '), NULL, 10));
	}
}

static struct side *peer_side(struct test *t, const struct opts *o)
{
	struct side *l, *s;
	struct event e;
	char name[300];

	if (run.type != FI_EP_MSG) {
		s = side_open_opts(t, o);
		hex(name, s->name, s->name_len);
		printf("name %s\n", name);
		fflush(stdout);
		return s;
	}
	l = listener_open_opts(t, o);
	hex(name, l->name, l->name_len);
	printf("name %s\n", name);
	fflush(stdout);
	e = expect_event(l, FI_CONNREQ);
	s = acceptor_open(l, e.info, o);
	MUST(fi_accept(s->ep, NULL, 0));
	expect_event(s, FI_CONNECTED);
	return s;
}

void process_body(struct test *t)
{
	static const uint64_t more[] = { FI_TAGGED, FI_RMA, FI_ATOMIC };
	struct opts o = { .caps = FI_MSG };
	struct lines in = { .fd = STDIN_FILENO };
	struct side *s;
	char line[1024];

	for (size_t i = 0; i < COUNT(more); i++)
		o.caps |= offered(o.caps | more[i]) ? more[i] : 0;
	if (run.type == FI_EP_RDM && offered(FI_MSG | FI_COLLECTIVE)) {
		o.caps |= FI_COLLECTIVE;
		o.eq = true;
	}
	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	s = peer_side(t, &o);
	while (!in.end) {
		if (next_line(&in, line, sizeof(line)))
			obey(s, line);
		sides_progress(t);
		while (rx_waiting(s)) {
			s->rx.taken++;
			say("received");
		}
	}
}

/* ---- another use of a new process: one with another environment */

int process_probe(const char *name)
{
	bool present = false, others = false;
	size_t len = strlen(name);
	struct fi_info *list = NULL, *info;

	fi_getinfo(run.version, NULL, NULL, 0, NULL, &list);
	for (info = list; info; info = info->next) {
		const char *prov = info->fabric_attr->prov_name;

		if (!strncmp(prov, name, len) && (prov[len] == 0 || prov[len] == ';'))
			present = true;
		else
			others = true;
	}
	fi_freeinfo(list);
	return 10 + present + 2 * others;
}
