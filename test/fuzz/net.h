/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A network of one process, for fuzzing: the library's TCP sockets are ends of socket pairs of which the fuzzer
 * holds the others, its clock stands still but for what a test adds, its random numbers repeat. So an input means
 * the same in each run. One thread.
 *
 * What the library binds to is anything it likes; who calls comes from 127.0.0.1. Sockets that are not of IP, and
 * datagrams, are the kernel's.
 */
#ifndef TEST_FUZZ_NET_H
#define TEST_FUZZ_NET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Time and chance begin anew; connects are refused. The first call puts this network in the place of the kernel's,
 * for the rest of the program: before the library is used. */
void net_reset(void);
/* Let time pass. */
void net_pass_ms(uint64_t ms);

/* Somebody calls the socket that was last to listen, from this port of 127.0.0.1: his end, which the caller closes.
 * -1: nobody listens. */
int net_call(uint16_t port);
/* From now on a connect succeeds, and the other end is net_answer()'s; or it is refused. */
void net_listen(bool on);
/* The other end of the oldest connect that nobody has taken, which the caller closes; -1: there is none. */
int net_answer(void);

/* All of buf, or as much as the other end takes. */
void net_send(int fd, const void *buf, size_t len);
/* Read and forget what the library has sent. False: it has closed its end. */
bool net_drain(int fd);

#endif
