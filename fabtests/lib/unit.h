/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The frame of a unit program: one process that asks one kind of object what it must answer. Options choose the
 * provider; the results are TAP. Public API only, single-threaded.
 */
#ifndef FABTESTS_UNIT_H
#define FABTESTS_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

/* What a test works with. All is owned by unit_main(), and the same for every test of a program. */
struct unit {
	const char *provider, *fabric_name, *domain_name;       /* as on the command line, or NULL */
	const char *src;                                        /* a source address, never NULL */
	const char *good, *bad;                                 /* -g and -G, or NULL */
	enum fi_ep_type ep_type;                                /* the program's, or -e */
	uint64_t cnt;                                           /* -n */
	struct fi_info *info;           /* of the first interface that fits */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

/* A test returns 0, or the negative value that unit_fail() or unit_skip() gave it, having closed what it opened. */
struct unit_test {
	const char *name;               /* the fact that it shows */
	int (*run)(struct unit *unit);
};

/* A program is constant. */
struct unit_program {
	const char *about;              /* for --help */
	const char *cnt_help;           /* what -n counts; NULL when there is no -n */
	uint64_t cnt;                   /* default of -n */
	uint64_t caps;                  /* that the interface must have */
	enum fi_ep_type ep_type;        /* FI_EP_UNSPEC for any */
	bool addresses;                 /* there are -g, -G and -e */
	const char *service;            /* of the source address, or NULL; nothing is bound to it before a test does */
	const struct unit_test *tests;
	size_t test_cnt;
	const struct unit_test *more_tests;     /* behind them, or NULL */
	size_t more_test_cnt;
};

/* The main() of a unit program. Returns the exit code: 0 when no test failed, 1 when used wrongly or a test failed, 61
 * (FI_ENODATA) when no interface fits, or another positive FI_E* when the domain cannot be opened. */
int unit_main(int argc, char **argv, const struct unit_program *program);

/* What the tests start from: -p, -f, -d, the program's capabilities and endpoint type. To be freed with fi_freeinfo();
 * NULL without memory. */
struct fi_info *unit_hints(const struct unit *unit, uint64_t caps, enum fi_ep_type type);

/* Say why the test that runs has failed; `ret` is what `call` gave, where that is not the point. Returns below 0. */
int unit_fail(int64_t ret, const char *call);

/* Say why it cannot run here. Returns below 0. */
int unit_skip(const char *why);

/* Close: 0, or unit_fail(). */
int unit_close(struct fid *fid, const char *what);

/* Open `cnt` objects at a time, no more than `limit` unless that is 0, and close them in reverse. `open` returns 0, or
 * what unit_fail() or unit_skip() gave it. */
int unit_open_many(struct unit *unit, size_t cnt, size_t limit, int (*open)(struct unit *unit, struct fid **fid));

#endif /* FABTESTS_UNIT_H */
