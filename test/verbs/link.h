/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests of verbs through the public interface, over softverbs: two connected ends in one process, and cases,
 * each in a process of its own, since the provider looks at devices and settings once. A case that fails says why
 * and exits.
 */
#ifndef TEST_VERBS_LINK_H
#define TEST_VERBS_LINK_H

#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define LINK_ROOM	8192

struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;		/* of room */
	char room[LINK_ROOM];
};

struct link {
	struct end a, b;		/* a connects, b accepts */
	struct fid_pep *pep;		/* on b's eq */
	struct fid_eq *pep_eq;
};

struct happened {
	uint32_t event;			/* FI_CONNECTED ...; 0: an error */
	int err;			/* positive */
	struct fi_info *info;		/* FI_CONNREQ: the case's */
	size_t data_len;
	char data[256];
};

__attribute__((noreturn, format(printf, 1, 2))) void die(const char *fmt, ...);
/* The call must return 0 or more; must return exactly -err. */
#define MUST(call) do { ssize_t ret_ = (call); if (ret_ < 0) die("%s: %s", #call, fi_strerror((int) -ret_)); } while (0)
#define MUST_FAIL(call, err) do { ssize_t ret_ = (call); if (ret_ != -(err)) \
	die("%s: %zd (%s), not %d", #call, ret_, fi_strerror((int) -ret_), -(err)); } while (0)
#define MUST_BE(cond) do { if (!(cond)) die("%s: not so (line %d)", #cond, __LINE__); } while (0)

/* Set before the first call: hints have FI_HMEM. */
extern bool link_hmem;
/* Hints for verbs and connections, caps FI_MSG | FI_RMA. The caller's. */
struct fi_info *hints_new(void);
/* fi_getinfo() finds nothing for these, which it frees. */
void hints_in_vain(struct fi_info *hints);
/* Fabric, domain, eq, cq, mr; info is taken over. */
void end_open(struct end *end, struct fi_info *info);
/* The endpoint, bound and enabled. 0, or what failed. */
int end_open_ep(struct end *end);
void end_close(struct end *end);
/* A listener on 127.0.0.1, and an end whose info leads there and that has an endpoint. */
void link_listen(struct link *link);
/* What the listener is told next, which is FI_CONNREQ; and the same of a request that a makes, without data. */
struct happened link_await_request(struct link *link);
struct happened link_request(struct link *link);
/* b's endpoint, of that request, whose info is taken over; and accept it, up to both ends being told FI_CONNECTED. */
void link_open_b(struct link *link, struct fi_info *info);
void link_accept(struct link *link, struct fi_info *info);
/* All, from link_listen() to link_accept(). */
void link_open(struct link *link);
void link_close(struct link *link);
/* Wait for the next event, with both ends driven; what fi_eq_strerror says of an error is in the log. Dies after a
 * minute. */
struct happened await_event(struct link *link, struct fid_eq *eq);
/* Wait for a completion of this end: 0, or its error (positive). */
int await_comp(struct link *link, struct end *end, struct fi_cq_err_entry *error);
/* One message of `len` bytes from a to b, from there: its content arrives. */
void link_send(struct link *link, const char *from, void *desc, size_t len);

/* ---- datagrams ---- */

#define DGRAM_NAME_LEN	32		/* the GID is in front, the number of the queue pair behind it */

struct dgram {
	struct end end;
	struct fid_av *av;
	char name[DGRAM_NAME_LEN];
};

/* Hints for verbs and datagrams. The caller's. */
struct fi_info *dgram_hints_new(void);
/* An endpoint of this entry (copied), enabled, at the address that the entry has. */
void dgram_open(struct dgram *dgram, const struct fi_info *info);
void dgram_close(struct dgram *dgram);
/* Send a datagram to the one that has this address, which gets it from us. */
void dgram_send(struct dgram *from, fi_addr_t addr, struct dgram *to);
/* The same, by its name. */
void dgram_talk(struct dgram *from, struct dgram *to);

struct vcase {
	const char *name;
	const char *env;		/* "NAME=value NAME=value", or NULL */
	void (*run)(void);
	const char *says;		/* a regular expression for a line of its log; NULL: nothing is looked for */
};

/* End a case that this machine cannot run; why: a line. */
__attribute__((noreturn)) void case_skip(const char *why);
/* Run them all; what main() returns. */
int run_cases(const struct vcase *cases, size_t cnt);

#endif
