/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The frame of a program with a server and a client: options with the letters that scripts for fabtests use, then a
 * measurement or a body of its own, on the parts of util/pp.h. Public API only; compiles against any libfabric from
 * 1.17 on.
 *
 * The first process is the server, the one that is given the server's address the client. Addresses, keys and the steps
 * in between go over a TCP connection beside the fabric, the control channel, or over an endpoint of the fabric with
 * --in-band (inband.h). Every wait is bounded (-T, -A).
 */
#ifndef FABTESTS_FT_H
#define FABTESTS_FT_H

#include "../../util/pp.h"

/* Bits of ft_program.ep_types. */
#define FT_MSG (1u << FI_EP_MSG)
#define FT_RDM (1u << FI_EP_RDM)
#define FT_DGRAM (1u << FI_EP_DGRAM)

/* What an operation of -o is called, and what it measures. A table ends with a NULL name. */
struct ft_operation {
	const char *name;
	const struct pp_test *test;
	uint64_t caps;                  /* that it needs beside the program's */
};

/* What a program is: constant, and the same on both sides. */
struct ft_program {
	const char *about;              /* for --help */
	enum fi_ep_type ep_type;        /* the only one, or the default of -e */
	unsigned ep_types;              /* what -e allows; 0: there is no -e */
	bool tagged, rma, atomics;      /* what to ask for, see struct pp_opts */
	bool windowed;                  /* -W is an option, else one operation is under way at a time */
	bool counters;                  /* completions are counted even without -t */
	bool bare;                      /* body opens the fabric itself, see pp_call() */
	bool alone;                     /* one process: no control channel, no peer */
	bool json;                      /* a body has results as JSON, too */
	bool once;                      /* there are no -S, -I, -w and -v: the program does one thing */
	uint64_t caps;                  /* to ask for beside those */
	const struct util_opt *options; /* of its own, with letters or keys above PP_OPT_LAST + 15; or NULL */
	/* Take one of them: 0 or -FI_EINVAL, with a message. May change *opts. */
	int (*take)(struct pp_opts *opts, int key, const char *arg);
	/* The last word on the hints; or NULL. */
	int (*hints)(const struct pp_opts *opts, struct fi_info *hints);

	/* One of these three is set. */
	const struct pp_test *test;             /* a measurement */
	const struct ft_operation *operations;  /* -o chooses one; the first is the default */
	int (*body)(struct pp *pp);             /* anything else: 0 or -FI_*, having said what went wrong */
};

/* The main() of a program: read the command line, run, print. Returns the exit code: 0, 1 when used wrongly, else the
 * positive FI_E* of what went wrong, 61 (FI_ENODATA) and 38 (FI_ENOSYS) meaning that the provider does not have what
 * this needs. */
int ft_main(int argc, char **argv, const struct ft_program *program);

/* In a body: there is something that this needs and the provider does not have. Says so; gives -FI_ENOSYS. */
int ft_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* In a body: a fact that the program shows, or does not show; one line on stdout. Gives ret back. */
int ft_result(int ret, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Messages from client to server, as many under way as the window allows; the clock stops with the server's answer. */
extern const struct pp_test ft_stream;

/* End a one-way transfer: the client says that it has posted all, the server answers that it has seen that. */
int ft_finish(struct pp *pp, size_t size);

#endif /* FABTESTS_FT_H */
