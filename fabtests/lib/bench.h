/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The frame of a benchmark: options with the letters that scripts for fabtests use, then the measurement of
 * util/pp.h. Public API only; compiles against any libfabric from 1.17 on.
 *
 * The first process is the server, the one that is given the server's address the client. Addresses, keys and the steps
 * in between go over a TCP connection beside the fabric. Every wait is bounded (-T, -A).
 */
#ifndef FABTESTS_BENCH_H
#define FABTESTS_BENCH_H

#include "../../util/pp.h"

/* What a program is: constant, and the same on both sides. */
struct bench {
	const char *about;              /* for --help */
	enum fi_ep_type ep_type;        /* with rma only the default: -e chooses */
	bool tagged;
	bool windowed;                  /* -W is an option, else one operation is under way at a time */
	bool rma;                       /* -e and -o are options, and -o chooses the test */
	const struct pp_test *test;     /* NULL with rma */
};

/* The main() of a benchmark: read the command line, measure, print. Returns the exit code: 0, 1 when used wrongly, else
 * the positive FI_E* of what went wrong, 61 (FI_ENODATA) and 38 (FI_ENOSYS) meaning that the provider does not have
 * what this needs. */
int bench_main(int argc, char **argv, const struct bench *bench);

/* Messages from client to server, as many under way as the window allows; the clock stops with the server's answer. */
extern const struct pp_test bench_stream;

/* The client writes to, or reads from, the server's memory, in the same way. */
extern const struct pp_test bench_write, bench_read;

/* End a one-way transfer: the client says that it has posted all, the server answers that it has seen that. */
int bench_finish(struct pp *pp, size_t size);

#endif /* FABTESTS_BENCH_H */
