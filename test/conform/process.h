/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer in a process of its own, for tests that end it. It is this program, started again with --peer; it opens a side
 * (MSG: a listener that accepts one connection), says its name, and obeys lines on its standard input:
 *
 *	name HEX	the parent's name (RDM), answer "known"
 *	recv LEN	post a receive, answer "posted", and "received" when it completes
 *	send LEN	answer "sending", and send that many bytes 's'
 *	join COUNT	join the group of all whose names it was told, in that order, answer "joined" once that is done
 *	barrier		call it in that group, answer "called"
 *	region LEN	register memory, answer "region ADDR KEY"
 *	rest		answer "resting", and make no call of libfabric until the next line
 *	take KIND LEN	answer "taken" when it has had the 8-byte messages that LEN bytes are (KIND message or tagged),
 *			as many completions of remote writes (data), or no zero byte in so much of its region (region)
 *
 * The process is killed at the latest when the test ends.
 */
#ifndef CONFORM_PROCESS_H
#define CONFORM_PROCESS_H

#include "fixture.h"

struct process;

struct process *process_start(struct test *t);
/* The same, where providers have addresses that another process can use; else the test is absent. */
struct process *process_new(struct test *t);
/* A side that can reach the process, and which it knows; MSG: connected. */
#define side_to(t, proc, ...) side_to_opts(t, proc, &(struct opts) { __VA_ARGS__ })
struct side *side_to_opts(struct test *t, struct process *p, const struct opts *o);
/* Its address: what fi_getname() said. Returns the length. */
size_t process_name(struct process *p, void *name, size_t size);
void process_tell_name(struct process *p, const void *name, size_t len);
void process_tell(struct process *p, const char *line);
/* Drive our sides until the process has said a line that begins with @word. */
void process_answer(struct process *p, const char *word);
/* The same without any call of libfabric. */
void process_answer_alone(struct process *p, const char *word);
void process_region(struct process *p, uint64_t *addr, uint64_t *key);
void process_signal(struct process *p, int sig);
/* SIGKILL, and wait until it is gone. */
void process_kill(struct process *p);
/* Close its input; it must end by itself, with status 0. */
void process_end(struct process *p);

/* What the process does. */
void process_body(struct test *t);

/* What a process started with --probe NAME does: list all entries. Its exit status is 10, plus 1 if provider @name
 * (or a layer over it) is among them, plus 2 if another one is. */
int process_probe(const char *name);

#endif
