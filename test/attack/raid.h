/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What attackers are made of, and those of tcp;ofi_rxm. Each attack is a loop over plain sockets, which ends only when
 * its process is killed.
 */
#ifndef TEST_ATTACK_RAID_H
#define TEST_ATTACK_RAID_H

#include "attack.h"

#include <stddef.h>
#include "tcp/wire/wire.h"

struct read_frame {
	struct tcp_hdr hdr;
	struct tcp_rma_iov rma;
};

/* ---- raids.c ---- */

uint64_t dice(void);
/* Count a connection, a frame, or a packet. */
void stroke(void);
/* The attack has set up what it needs. */
void ready(void);
/* A port that no honest peer has. */
uint16_t strange_port(void);
/* Begin to connect: a socket that does not block, or -1. */
int dial(void);
/* Connect, send a request, and read the answer, of at most answer_len bytes, which begins with a struct tcp_cm_hdr: the
 * socket, or -1 if the answer is not TCP_CM_CONNRESP. */
int shake_hands(const void *request, size_t len, void *answer, size_t answer_len);
/* It ends with a reset, so that no port stays occupied. *fd becomes -1. */
void hang_up(int *fd);
/* False: it does not come within the time. */
bool await(int fd, short events, int ms);
bool has_ended(int fd);
/* Send what goes. False: the connection has ended. *at: bytes of buf that are sent already; it wraps. */
bool pour(int fd, const void *buf, size_t len, size_t *at);
/* A read of len bytes of the server's region, by tcp's own frames. */
struct read_frame read_of(uint64_t key, uint64_t len);
/* Keep cnt connections, each begun by `begin`, and go on with those that are there by `more` (may be NULL; false: it
 * has ended). */
_Noreturn void keep(unsigned cnt, int (*begin)(void), bool (*more)(int fd, size_t *at));

/* ---- raids_rxm.c ---- */

void rxm_requests(void);
void rxm_claims(void);
void rxm_reopen(void);
void rxm_middle(void);
void rxm_descriptors(void);
void rxm_unexpected(void);
void rxm_unexpected_empty(void);
void rxm_unexpected_many(void);
void rxm_segments(void);
void rxm_announced(void);
void rxm_reads(void);
void rxm_refusals(void);
void rxm_atomics(void);
void rxm_credit(void);
void rxm_rubbish(void);
void rxm_log(void);

#endif
