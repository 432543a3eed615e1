/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The frame of a functional program: a server and a client that use one part of the interface and check what comes of
 * it, on ft.h, with as many objects as it needs. Public API only, single-threaded unless a program says otherwise.
 *
 *   func.c          from the command line to the exit code
 *   func_objs.c     what is opened, and closed in reverse
 *   func_ops.c      posting, completions, waiting, data
 *
 * Functions return 0 or -FI_*, and whoever first sees a failure has said what it was; all that is opened through this
 * header is closed by func_main(), so that a program may leave wherever something fails. Every wait is bounded by -T.
 */
#ifndef FABTESTS_FUNC_H
#define FABTESTS_FUNC_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "../../util/common.h"
#include "ft.h"

#define FUNC_MAX_CQS 256

struct func;

/* What a program is. Constant, and the same on both sides. */
struct func_program {
	const char *about;              /* for --help */
	enum fi_ep_type ep_type;        /* with choose_type only the default: -e chooses */
	bool choose_type;
	bool dgram;                     /* -e may be dgram */
	bool prefix;                    /* with -k its messages have room in front; without this it is skipped then */
	uint64_t caps;
	uint32_t iterations;            /* default of -I, 1 if 0 */
	size_t size;                    /* default of -S in bytes, 1024 if 0 */
	const struct util_opt *options; /* beside the common ones, before which they go; or NULL */
	/* Takes one of these: 0, or -FI_EINVAL with a message. */
	int (*take)(struct func *func, int key, const char *arg);
	void (*hints)(struct func *func, struct fi_info *hints);        /* change what is asked for; or NULL */
	bool no_domain;                 /* run() calls func_open() itself, or does without */
	bool alone;                     /* one process, without control channel or peer: what func->alone begins with */
	int (*run)(struct func *func);
};

/* Something that is under way. Its context is what the completion brings back. */
struct func_op {
	struct fi_context2 context;     /* first */
	unsigned done;                  /* completions so far */
	int err;                        /* of the last one: 0 or a positive FI_E* */
	fi_addr_t src;                  /* with FI_SOURCE */
	struct fi_cq_tagged_entry entry;        /* as much of it as the queue's format has */
	struct fi_cq_err_entry error;   /* when err is not 0 */
	/* Called with each completion, when set: 0, or -FI_* to end the wait that saw it. */
	int (*on_completion)(struct func *func, struct func_op *op);
};

/* Memory, registered when the provider wants that or the peer may reach it. */
struct func_buf {
	char *mem;                      /* the data */
	size_t len;                     /* of the data */
	size_t prefix;                  /* bytes before it that a message buffer starts with (FI_MSG_PREFIX), or 0 */
	struct fid_mr *mr;              /* or NULL */
	void *desc;
};

/* Where a peer's memory is. */
struct func_region {
	uint64_t addr, key;
};

struct func_ep {
	struct fid_ep *ep;
	struct fid_cq *cq;              /* of both directions */
	struct fi_info *info;           /* borrowed: that the endpoint was opened with */
	fi_addr_t peer;
	struct func_buf tx, rx;         /* func_ep_attr.buf_len bytes each */
};

/* How an endpoint differs from the usual one; all 0 is that. */
struct func_ep_attr {
	enum fi_cq_format format;       /* default: tagged */
	enum fi_wait_obj wait_obj;      /* default: none */
	struct fid_wait *wait_set;      /* with FI_WAIT_SET */
	size_t cq_size;
	uint64_t cq_flags;              /* more than FI_TRANSMIT | FI_RECV of the binding */
	struct fid_cq *cq;              /* share this one */
	struct fid_av *av;              /* use this one, not func->av */
	struct fid_domain *domain;      /* open it there, not in func->domain */
	size_t buf_len;                 /* of tx and rx; default: the size of -S, at least 64 */
	int (*bind)(struct func *func, struct func_ep *ep, void *arg);  /* before it is enabled; or NULL */
	void *arg;
};

struct func_owned {
	struct fid *fid;                /* or NULL: `free_it` is to be freed */
	void *free_it;
	const char *what;
};

struct func {
	struct pp *pp;                  /* control channel, hints, info, fabric, eq and pep: closed behind us */
	uint32_t iterations;            /* of -I */
	size_t size;                    /* of -S, bytes */
	const struct func_program *program;
	void *own;                      /* what func_main() was given */
	bool alone;                     /* an option may change it, before anything is opened */
	bool client;
	bool delivery;                  /* operations can have FI_DELIVERY_COMPLETE */
	struct fid_domain *domain;
	struct fid_av *av;              /* RDM and DGRAM only */
	uint64_t next_key;
	struct {
		struct fid_cq *fid;
		enum fi_cq_format format;
	} cqs[FUNC_MAX_CQS];            /* that func_progress() reads */
	size_t cq_cnt;
	struct func_owned *owned;
	size_t owned_cnt, owned_max;
	struct fi_info *infos[FUNC_MAX_CQS];    /* of connection requests */
	size_t info_cnt;
	uint64_t completions, errors;   /* seen so far */
	struct func_op *stray;          /* takes completions without context; NULL: they are a failure */
};

/* Leave with what the expression gives, unless that is 0. */
#define FUNC_TRY(expr)					\
	do {						\
		int try_ret = (int) (expr);		\
							\
		if (try_ret)				\
			return try_ret;			\
	} while (0)

/* The same for a call of libfabric: says which one failed. */
#define FUNC_CALL(func, expr)							\
	do {									\
		int call_ret = (int) (expr);					\
										\
		if (call_ret)							\
			return pp_fail((func)->pp, call_ret < 0 ? call_ret : -FI_EOTHER, "%s", #expr);	\
	} while (0)

/* Leave with -FI_EIO, and these words, unless the condition holds. */
#define FUNC_EXPECT(func, condition, ...)					\
	do {									\
		if (!(condition))						\
			return pp_fail((func)->pp, -FI_EIO, __VA_ARGS__);	\
	} while (0)

/* Make a call that posts something until it no longer says -FI_EAGAIN. */
#define FUNC_POST(func, call)							\
	do {									\
		struct pp_wait post_wait = { .polls = 0 };			\
		int post_ret;							\
										\
		while ((post_ret = func_again((func), &post_wait, (call), #call)) > 0)	\
			;							\
		if (post_ret)							\
			return post_ret;					\
	} while (0)

/* Go on when the condition holds, which completions or other events bring about. */
#define FUNC_WAIT(func, condition, what)					\
	do {									\
		struct pp_wait until_wait = { .polls = 0 };			\
										\
		while (!(condition))						\
			FUNC_TRY(func_tick((func), &until_wait, (what)));	\
	} while (0)

/* func.c */

/* The main() of a program. Returns the exit code: 0, 1 when used wrongly, else the positive FI_E* of what went
 * wrong; 61 (FI_ENODATA) and 38 (FI_ENOSYS) mean that the provider does not have what this needs. */
int func_main(int argc, char **argv, const struct func_program *program, void *own);

/* Takes options that mean nothing here but that scripts give: 0. */
int func_take_nothing(struct func *func, int key, const char *arg);

/* Say that the provider cannot do this, on a line that runfabtests knows: -FI_ENOSYS. Both ends must come to it. */
int func_skip(struct func *func, const char *why);

/* Tell the peer how it went here. Returns `ret`, or what the peer told if that is 0. */
int func_agree(struct func *func, int ret);

/* The size that -S asks for, at most what the endpoint type and the limit (0: none) allow. */
size_t func_size(const struct func *func, size_t limit);

/* FI_DELIVERY_COMPLETE, where RMA and atomics of this endpoint can have it; else FI_TRANSMIT_COMPLETE, after which a
 * message behind the operation shows that it was done. */
uint64_t func_delivery(const struct func *func);

/* Run fn in a child, and wait for its end, which comes after -T at the latest. *status is as waitpid(2) has it; the
 * child leaves with 0 if fn returns that, else with 1. */
int func_in_child(struct func *func, int (*fn)(struct func *func, void *arg), void *arg, int *status);

/* func_objs.c */

/* What everything is opened from, as the command line and the program ask: info, fabric, domain, and an address vector,
 * or an event queue and, on the server, a listener. In step with the peer. */
int func_open(struct func *func);

/* Close `fid` at the end, or with func_close(); `what` names it and must live on. Returns -FI_ENOMEM after closing
 * it. */
int func_own(struct func *func, struct fid *fid, const char *what);
/* Close it now. */
int func_close(struct func *func, struct fid *fid);
/* Close and free all. The first failure, or 0. */
int func_close_all(struct func *func);

/* Where the buffer of a message begins, and how long it is for `len` bytes of data. */
static inline char *func_msg(const struct func_buf *buf)
{
	return buf->mem - buf->prefix;
}

static inline size_t func_msg_len(const struct func_buf *buf, size_t len)
{
	return len + buf->prefix;
}

/* Memory that is freed at the end, zeroed and aligned to pages; NULL, with a message, without memory. */
void *func_alloc(struct func *func, size_t len);
/* The same, registered for `access` (FI_SEND, FI_REMOTE_WRITE ...) where that is needed. */
int func_buf(struct func *func, struct func_buf *buf, size_t len, uint64_t access);
int func_mr_reg(struct func *func, struct fid_domain *domain, void *mem, size_t len, uint64_t access,
		struct fid_mr **mr);
void func_buf_close(struct func *func, struct func_buf *buf);

int func_cq_open(struct func *func, const struct func_ep_attr *attr, struct fid_domain *domain, struct fid_cq **cq);
int func_cntr_open(struct func *func, struct fid_cntr **cntr);
int func_av_open(struct func *func, struct fid_domain *domain, const struct fi_av_attr *attr, struct fid_av **av);

/* An endpoint that is connected to its counterpart: both ends call this in the same order. `attr` may be NULL. */
int func_ep_open(struct func *func, struct func_ep *ep, const struct func_ep_attr *attr);
/* Its two parts, for programs that do more in between: open and enable (MSG server: with a connection request's
 * info), and exchange addresses, or connect. */
int func_ep_create(struct func *func, struct func_ep *ep, const struct func_ep_attr *attr);
int func_ep_connect(struct func *func, struct func_ep *ep, struct fid_av *av);
/* An RDM endpoint whose peer is itself. */
int func_ep_to_self(struct func *func, struct func_ep *ep, const struct func_ep_attr *attr);
/* For func_ep_attr.bind: an event queue, func->pp->eq, for what joins a group. */
int func_ep_bind_eq(struct func *func, struct func_ep *ep, void *arg);
/* Close the endpoint alone. */
int func_ep_close(struct func *func, struct func_ep *ep);

/* Exchange what both ends know the length of. */
int func_exchange(struct func *func, const void *ours, void *theirs, size_t len, const char *what);
/* Send the address of `fid`, and put the peer's into `av`. */
int func_exchange_names(struct func *func, struct fid *fid, struct fid_av *av, fi_addr_t *peer);
int func_exchange_regions(struct func *func, const struct func_buf *ours, struct func_region *theirs);

/* func_ops.c */

/* Read all queues once; completions are noted in their operations. */
int func_progress(struct func *func);
/* One turn of a wait that has not found what it is for. */
int func_tick(struct func *func, struct pp_wait *wait, const char *what);
/* The same without reading queues. */
int func_tick_quiet(struct func *func, struct pp_wait *wait, const char *what);
/* After a posting call: 0 when it is done, 1 when it has to be made again, or what went wrong. */
int func_again(struct func *func, struct pp_wait *wait, ssize_t posted, const char *call);

/* Wait for the first completion of an operation, which must be good; or which must be an error. */
int func_wait(struct func *func, struct func_op *op, const char *what);
int func_wait_err(struct func *func, struct func_op *op, int err, const char *what);
/* Wait until an event of pp.eq comes, with what may stand behind it: its length in bytes, or -FI_*. Any other than
 * `wanted` is a failure. */
ssize_t func_wait_event(struct func *func, uint32_t wanted, void *entry, size_t len, const char *what);
/* Wait until a counter has at least `value`; an error that it counts ends the wait. */
int func_wait_cntr(struct func *func, struct fid_cntr *cntr, uint64_t value, const char *what);
/* Return when both ends have come here. */
int func_sync(struct func *func);

/* Post a message, or a receive, of `len` bytes of ep->tx, or ep->rx; plain or tagged as the program's capabilities
 * are. */
int func_send(struct func *func, struct func_ep *ep, size_t len, struct func_op *op);
int func_recv(struct func *func, struct func_ep *ep, size_t len, struct func_op *op);
/* A message of the first size each way on each of `cnt` endpoints, all under way at once; that of endpoint i has the
 * bytes of pp_fill() for seq + i. Both ends call it. tx and rx are the operations, one an endpoint, free again
 * afterwards. */
int func_exchange_on_all(struct func *func, struct func_ep *eps, struct func_op *tx, struct func_op *rx, uint32_t cnt,
			 uint64_t seq);

/* One message of `len` bytes from the client to the server and one back, with the patterns `seq` and `seq` + 1
 * checked. */
int func_greet(struct func *func, struct func_ep *ep, size_t len, uint64_t seq);
/* An endpoint on each side, and that as often as -I says: a whole program. */
int func_greet_each(struct func *func);

/* An unsigned number of an option, within min..max. */
int func_number(const char *what, const char *arg, uint64_t min, uint64_t max, uint32_t *value);

#endif /* FABTESTS_FUNC_H */
