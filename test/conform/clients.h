/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the files of client tests share: the entry that a client takes. */
#ifndef CONFORM_CLIENTS_H
#define CONFORM_CLIENTS_H

#include "ops.h"

/* The entry that the client with this name in the table of clients.c takes: the first of the run's provider. Belongs to
 * the test, which is absent where the client asks for what is not offered, or for another endpoint type. */
struct fi_info *client_info(struct test *t, const char *name);
/* The same for clients with connected endpoints, whose entry depends on the destination: how to open sides that ask as
 * this client does. Until it is asked for another. */
struct opts client_opts(const char *name);

/* The i-th client of that table, NULL after the last. */
const char *client_name(size_t i);

/* A counter of completions; belongs to the test. */
struct fid_cntr *client_counter(struct side *s, enum fi_wait_obj wait);
/* Drive all sides until @cntr says @cnt; more than that, or an error counted, fails the test. */
void client_counted(struct side *s, struct fid_cntr *cntr, uint64_t cnt);

#endif
