/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For programs that Frama-C's Eva analyses (test/prove/prove). Each includes the source file of a decoder as it is, and
 * calls it with bytes of any value. Eva follows all values at once, and reports each operation that is undefined for
 * one of them. A function that is not in the program has a contract here, or in the program: Eva believes it.
 *
 * Eva joins values of one variable to an interval, and forgets how two variables depend on each other. So a program
 * loops over the lengths on which others depend.
 */
#ifndef PROVE_H
#define PROVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

/* ---- of the C library ---- */

/*@ requires \valid((char *) to + (0 .. n - 1));
  @ requires \valid_read((char *) from + (0 .. n - 1));
  @ assigns ((char *) to)[0 .. n - 1] \from ((char *) from)[0 .. n - 1];
  @ assigns \result \from to;
  @ ensures \result == to;
  @*/
extern void *memcpy(void *to, const void *from, size_t n);
/*@ requires \valid((char *) at + (0 .. n - 1));
  @ assigns ((char *) at)[0 .. n - 1] \from byte;
  @ assigns \result \from at;
  @ ensures \result == at;
  @*/
extern void *memset(void *at, int byte, size_t n);
/*@ requires \valid_read((char *) a + (0 .. n - 1));
  @ requires \valid_read((char *) b + (0 .. n - 1));
  @ assigns \result \from ((char *) a)[0 .. n - 1], ((char *) b)[0 .. n - 1];
  @*/
extern int memcmp(const void *a, const void *b, size_t n);
/*@ requires x != 0;
  @ assigns \result \from x;
  @ ensures 0 <= \result <= 63;
  @*/
extern int __builtin_clzll(unsigned long long x);
/*@ assigns \nothing; */
extern void free(void *at);

/* Any number of low to high. */
/*@ requires low <= high;
  @ assigns \result \from low, high;
  @ ensures low <= \result <= high;
  @*/
uint64_t any_of(uint64_t low, uint64_t high);

/* The byte order is x86's. */
uint16_t ntohs(uint16_t x)
{
	return __builtin_bswap16(x);
}

uint16_t htons(uint16_t x)
{
	return __builtin_bswap16(x);
}

uint32_t ntohl(uint32_t x)
{
	return __builtin_bswap32(x);
}

uint32_t htonl(uint32_t x)
{
	return __builtin_bswap32(x);
}

/* ---- of the log: nothing is proved about the text of a message ---- */

/*@ requires \valid(to + (0 .. size - 1));
  @ assigns to[0 .. size - 1] \from \nothing;
  @ assigns \result \from size;
  @ ensures \initialized(to + (0 .. size - 1));
  @ ensures to[size - 1] == 0;
  @*/
int any_text(char *to, size_t size);
#define snprintf(to, size, ...)	any_text(to, size)
#define vsnprintf(to, size, ...)	((int) any_of(0, INT32_MAX))
#undef FI_LOG
#define FI_LOG(...)	((void) 0)
#undef FI_WARN
#define FI_WARN(...)	((void) 0)
#undef FI_INFO
#define FI_INFO(...)	((void) 0)
#undef FI_DBG
#define FI_DBG(...)	((void) 0)
#undef FI_WARN_ONCE
#define FI_WARN_ONCE(...)	((void) 0)

/* ---- of the programs ---- */

/* Give n bytes at this address any value. */
/*@ requires \valid((char *) at + (0 .. n - 1));
  @ assigns ((char *) at)[0 .. n - 1] \from \nothing;
  @ ensures \initialized((char *) at + (0 .. n - 1));
  @*/
void any_bytes(void *at, size_t n);
/* An error of the analysis unless the condition holds for all values. */
/*@ requires holds: holds != 0;
  @ assigns \nothing;
  @*/
void prove(int holds);
/* An error of the analysis unless n bytes at this address may be read. */
/*@ requires readable: \valid_read((char *) at + (0 .. n - 1));
  @ assigns \nothing;
  @*/
void prove_readable(const void *at, size_t n);
/* The end of main(): an analysis that never comes here has proved nothing. */
/*@ assigns \nothing; */
void reached(void);

#endif
