/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The "not supported" function of every entry of every operation table. Each table is one macro list of its entries.
 * The list expands both to the functions and to the code that fills empty entries with them, so neither can lack an
 * entry.
 *
 * The tables that are filled are static tables of providers. fill_lock makes it safe to fill a table again from another
 * thread: the second call finds no empty entry.
 */
#include "common/ops/ops.h"

#include <pthread.h>
#include <rdma/fi_errno.h>

/* Nothing in this file looks at an argument. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static pthread_mutex_t fill_lock = PTHREAD_MUTEX_INITIALIZER;

/* PARAMS(type, type, ...): the same types with names, since C11 wants names in a definition. */
#define P1(t) t p1
#define P2(t, ...) t p2, P1(__VA_ARGS__)
#define P3(t, ...) t p3, P2(__VA_ARGS__)
#define P4(t, ...) t p4, P3(__VA_ARGS__)
#define P5(t, ...) t p5, P4(__VA_ARGS__)
#define P6(t, ...) t p6, P5(__VA_ARGS__)
#define P7(t, ...) t p7, P6(__VA_ARGS__)
#define P8(t, ...) t p8, P7(__VA_ARGS__)
#define P9(t, ...) t p9, P8(__VA_ARGS__)
#define P10(t, ...) t p10, P9(__VA_ARGS__)
#define P11(t, ...) t p11, P10(__VA_ARGS__)
#define P12(t, ...) t p12, P11(__VA_ARGS__)
#define P13(t, ...) t p13, P12(__VA_ARGS__)
#define P14(t, ...) t p14, P13(__VA_ARGS__)
#define P15(t, ...) t p15, P14(__VA_ARGS__)
#define P16(t, ...) t p16, P15(__VA_ARGS__)
#define PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, chosen, ...) chosen
#define PARAMS(...) \
	PICK(__VA_ARGS__, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, 0)(__VA_ARGS__)

/* A list calls SLOT(table, type of result, result, slot, types of parameters). */
#define FID_SLOTS(SLOT)												\
	SLOT(fid, int, -FI_ENOSYS, close, struct fid *)								\
	SLOT(fid, int, -FI_ENOSYS, bind, struct fid *, struct fid *, uint64_t)					\
	SLOT(fid, int, -FI_ENOSYS, control, struct fid *, int, void *)						\
	SLOT(fid, int, -FI_ENOSYS, ops_open, struct fid *, const char *, uint64_t, void **, void *)		\
	SLOT(fid, int, -FI_ENOSYS, tostr, const struct fid *, char *, size_t)					\
	SLOT(fid, int, -FI_ENOSYS, ops_set, struct fid *, const char *, uint64_t, void *, void *)

#define FABRIC_SLOTS(SLOT)											\
	SLOT(fabric, int, -FI_ENOSYS, domain, struct fid_fabric *, struct fi_info *, struct fid_domain **,	\
	     void *)												\
	SLOT(fabric, int, -FI_ENOSYS, passive_ep, struct fid_fabric *, struct fi_info *, struct fid_pep **,	\
	     void *)												\
	SLOT(fabric, int, -FI_ENOSYS, eq_open, struct fid_fabric *, struct fi_eq_attr *, struct fid_eq **,	\
	     void *)												\
	SLOT(fabric, int, -FI_ENOSYS, wait_open, struct fid_fabric *, struct fi_wait_attr *,			\
	     struct fid_wait **)										\
	SLOT(fabric, int, -FI_ENOSYS, trywait, struct fid_fabric *, struct fid **, int)				\
	SLOT(fabric, int, -FI_ENOSYS, domain2, struct fid_fabric *, struct fi_info *, struct fid_domain **,	\
	     uint64_t, void *)

#define DOMAIN_SLOTS(SLOT)											\
	SLOT(domain, int, -FI_ENOSYS, av_open, struct fid_domain *, struct fi_av_attr *, struct fid_av **,	\
	     void *)												\
	SLOT(domain, int, -FI_ENOSYS, cq_open, struct fid_domain *, struct fi_cq_attr *, struct fid_cq **,	\
	     void *)												\
	SLOT(domain, int, -FI_ENOSYS, endpoint, struct fid_domain *, struct fi_info *, struct fid_ep **,	\
	     void *)												\
	SLOT(domain, int, -FI_ENOSYS, scalable_ep, struct fid_domain *, struct fi_info *, struct fid_ep **,	\
	     void *)												\
	SLOT(domain, int, -FI_ENOSYS, cntr_open, struct fid_domain *, struct fi_cntr_attr *,			\
	     struct fid_cntr **, void *)									\
	SLOT(domain, int, -FI_ENOSYS, poll_open, struct fid_domain *, struct fi_poll_attr *,			\
	     struct fid_poll **)										\
	SLOT(domain, int, -FI_ENOSYS, stx_ctx, struct fid_domain *, struct fi_tx_attr *, struct fid_stx **,	\
	     void *)												\
	SLOT(domain, int, -FI_ENOSYS, srx_ctx, struct fid_domain *, struct fi_rx_attr *, struct fid_ep **,	\
	     void *)												\
	SLOT(domain, int, -FI_ENOSYS, query_atomic, struct fid_domain *, enum fi_datatype, enum fi_op,		\
	     struct fi_atomic_attr *, uint64_t)									\
	SLOT(domain, int, -FI_ENOSYS, query_collective, struct fid_domain *, enum fi_collective_op,		\
	     struct fi_collective_attr *, uint64_t)								\
	SLOT(domain, int, -FI_ENOSYS, endpoint2, struct fid_domain *, struct fi_info *, struct fid_ep **,	\
	     uint64_t, void *)											\
	SLOT(domain, int, -FI_ENOSYS, xpu_ctx, struct fid_domain *, struct fi_xpu_attr *,			\
	     struct fid_xpu_ctx **, void *)

#define MR_SLOTS(SLOT)												\
	SLOT(mr, int, -FI_ENOSYS, reg, struct fid *, const void *, size_t, uint64_t, uint64_t, uint64_t,	\
	     uint64_t, struct fid_mr **, void *)								\
	SLOT(mr, int, -FI_ENOSYS, regv, struct fid *, const struct iovec *, size_t, uint64_t, uint64_t,		\
	     uint64_t, uint64_t, struct fid_mr **, void *)							\
	SLOT(mr, int, -FI_ENOSYS, regattr, struct fid *, const struct fi_mr_attr *, uint64_t,			\
	     struct fid_mr **)

#define AV_SLOTS(SLOT)												\
	SLOT(av, int, -FI_ENOSYS, insert, struct fid_av *, const void *, size_t, fi_addr_t *, uint64_t,		\
	     void *)												\
	SLOT(av, int, -FI_ENOSYS, insertsvc, struct fid_av *, const char *, const char *, fi_addr_t *,		\
	     uint64_t, void *)											\
	SLOT(av, int, -FI_ENOSYS, insertsym, struct fid_av *, const char *, size_t, const char *, size_t,	\
	     fi_addr_t *, uint64_t, void *)									\
	SLOT(av, int, -FI_ENOSYS, remove, struct fid_av *, fi_addr_t *, size_t, uint64_t)			\
	SLOT(av, int, -FI_ENOSYS, lookup, struct fid_av *, fi_addr_t, void *, size_t *)				\
	SLOT(av, const char *, NULL, straddr, struct fid_av *, const void *, char *, size_t *)			\
	SLOT(av, int, -FI_ENOSYS, av_set, struct fid_av *, struct fi_av_set_attr *, struct fid_av_set **,	\
	     void *)												\
	SLOT(av, int, -FI_ENOSYS, insert_auth_key, struct fid_av *, const void *, size_t, fi_addr_t *,		\
	     uint64_t)												\
	SLOT(av, int, -FI_ENOSYS, lookup_auth_key, struct fid_av *, fi_addr_t, void *, size_t *)		\
	SLOT(av, int, -FI_ENOSYS, set_user_id, struct fid_av *, fi_addr_t, fi_addr_t, uint64_t)			\
	SLOT(av, int, -FI_ENOSYS, lookup2, struct fid_av *, fi_addr_t, void *, size_t *, uint64_t,		\
	     struct fid_xpu_ctx *)

#define CQ_SLOTS(SLOT)												\
	SLOT(cq, ssize_t, -FI_ENOSYS, read, struct fid_cq *, void *, size_t)					\
	SLOT(cq, ssize_t, -FI_ENOSYS, readfrom, struct fid_cq *, void *, size_t, fi_addr_t *)			\
	SLOT(cq, ssize_t, -FI_ENOSYS, readerr, struct fid_cq *, struct fi_cq_err_entry *, uint64_t)		\
	SLOT(cq, ssize_t, -FI_ENOSYS, sread, struct fid_cq *, void *, size_t, const void *, int)		\
	SLOT(cq, ssize_t, -FI_ENOSYS, sreadfrom, struct fid_cq *, void *, size_t, fi_addr_t *, const void *,	\
	     int)												\
	SLOT(cq, int, -FI_ENOSYS, signal, struct fid_cq *)							\
	SLOT(cq, const char *, NULL, strerror, struct fid_cq *, int, const void *, char *, size_t)		\
	SLOT(cq, int, -FI_ENOSYS, export_xpu, struct fid_cq *, uint64_t, struct fid_xpu_cq *)

#define CNTR_SLOTS(SLOT)											\
	SLOT(cntr, uint64_t, 0, read, struct fid_cntr *)							\
	SLOT(cntr, uint64_t, 0, readerr, struct fid_cntr *)							\
	SLOT(cntr, int, -FI_ENOSYS, add, struct fid_cntr *, uint64_t)						\
	SLOT(cntr, int, -FI_ENOSYS, set, struct fid_cntr *, uint64_t)						\
	SLOT(cntr, int, -FI_ENOSYS, wait, struct fid_cntr *, uint64_t, int)					\
	SLOT(cntr, int, -FI_ENOSYS, adderr, struct fid_cntr *, uint64_t)					\
	SLOT(cntr, int, -FI_ENOSYS, seterr, struct fid_cntr *, uint64_t)					\
	SLOT(cntr, int, -FI_ENOSYS, export_xpu, struct fid_cntr *, uint64_t, struct fid_xpu_cntr *)

#define EQ_SLOTS(SLOT)												\
	SLOT(eq, ssize_t, -FI_ENOSYS, read, struct fid_eq *, uint32_t *, void *, size_t, uint64_t)		\
	SLOT(eq, ssize_t, -FI_ENOSYS, readerr, struct fid_eq *, struct fi_eq_err_entry *, uint64_t)		\
	SLOT(eq, ssize_t, -FI_ENOSYS, write, struct fid_eq *, uint32_t, const void *, size_t, uint64_t)		\
	SLOT(eq, ssize_t, -FI_ENOSYS, sread, struct fid_eq *, uint32_t *, void *, size_t, int, uint64_t)	\
	SLOT(eq, const char *, NULL, strerror, struct fid_eq *, int, const void *, char *, size_t)

#define EP_SLOTS(SLOT)												\
	SLOT(ep, ssize_t, -FI_ENOSYS, cancel, fid_t, void *)							\
	SLOT(ep, int, -FI_ENOPROTOOPT, getopt, fid_t, int, int, void *, size_t *)				\
	SLOT(ep, int, -FI_ENOPROTOOPT, setopt, fid_t, int, int, const void *, size_t)			\
	SLOT(ep, int, -FI_ENOSYS, tx_ctx, struct fid_ep *, int, struct fi_tx_attr *, struct fid_ep **, void *)	\
	SLOT(ep, int, -FI_ENOSYS, rx_ctx, struct fid_ep *, int, struct fi_rx_attr *, struct fid_ep **, void *)	\
	SLOT(ep, ssize_t, -FI_ENOSYS, rx_size_left, struct fid_ep *)						\
	SLOT(ep, ssize_t, -FI_ENOSYS, tx_size_left, struct fid_ep *)						\
	SLOT(ep, int, -FI_ENOSYS, export_xpu, struct fid_ep *, uint64_t, struct fid_xpu_ep *)

#define CM_SLOTS(SLOT)												\
	SLOT(cm, int, -FI_ENOSYS, setname, fid_t, void *, size_t)						\
	SLOT(cm, int, -FI_ENOSYS, getname, fid_t, void *, size_t *)						\
	SLOT(cm, int, -FI_ENOSYS, getpeer, struct fid_ep *, void *, size_t *)					\
	SLOT(cm, int, -FI_ENOSYS, connect, struct fid_ep *, const void *, const void *, size_t)			\
	SLOT(cm, int, -FI_ENOSYS, listen, struct fid_pep *)							\
	SLOT(cm, int, -FI_ENOSYS, accept, struct fid_ep *, const void *, size_t)				\
	SLOT(cm, int, -FI_ENOSYS, reject, struct fid_pep *, fid_t, const void *, size_t)			\
	SLOT(cm, int, -FI_ENOSYS, shutdown, struct fid_ep *, uint64_t)						\
	SLOT(cm, int, -FI_ENOSYS, join, struct fid_ep *, const void *, uint64_t, struct fid_mc **, void *)

#define MSG_SLOTS(SLOT)												\
	SLOT(msg, ssize_t, -FI_ENOSYS, recv, struct fid_ep *, void *, size_t, void *, fi_addr_t, void *)	\
	SLOT(msg, ssize_t, -FI_ENOSYS, recvv, struct fid_ep *, const struct iovec *, void **, size_t,		\
	     fi_addr_t, void *)											\
	SLOT(msg, ssize_t, -FI_ENOSYS, recvmsg, struct fid_ep *, const struct fi_msg *, uint64_t)		\
	SLOT(msg, ssize_t, -FI_ENOSYS, send, struct fid_ep *, const void *, size_t, void *, fi_addr_t, void *)	\
	SLOT(msg, ssize_t, -FI_ENOSYS, sendv, struct fid_ep *, const struct iovec *, void **, size_t,		\
	     fi_addr_t, void *)											\
	SLOT(msg, ssize_t, -FI_ENOSYS, sendmsg, struct fid_ep *, const struct fi_msg *, uint64_t)		\
	SLOT(msg, ssize_t, -FI_ENOSYS, inject, struct fid_ep *, const void *, size_t, fi_addr_t)		\
	SLOT(msg, ssize_t, -FI_ENOSYS, senddata, struct fid_ep *, const void *, size_t, void *, uint64_t,	\
	     fi_addr_t, void *)											\
	SLOT(msg, ssize_t, -FI_ENOSYS, injectdata, struct fid_ep *, const void *, size_t, uint64_t, fi_addr_t)

#define TAGGED_SLOTS(SLOT)											\
	SLOT(tagged, ssize_t, -FI_ENOSYS, recv, struct fid_ep *, void *, size_t, void *, fi_addr_t, uint64_t,	\
	     uint64_t, void *)											\
	SLOT(tagged, ssize_t, -FI_ENOSYS, recvv, struct fid_ep *, const struct iovec *, void **, size_t,	\
	     fi_addr_t, uint64_t, uint64_t, void *)								\
	SLOT(tagged, ssize_t, -FI_ENOSYS, recvmsg, struct fid_ep *, const struct fi_msg_tagged *, uint64_t)	\
	SLOT(tagged, ssize_t, -FI_ENOSYS, send, struct fid_ep *, const void *, size_t, void *, fi_addr_t,	\
	     uint64_t, void *)											\
	SLOT(tagged, ssize_t, -FI_ENOSYS, sendv, struct fid_ep *, const struct iovec *, void **, size_t,	\
	     fi_addr_t, uint64_t, void *)									\
	SLOT(tagged, ssize_t, -FI_ENOSYS, sendmsg, struct fid_ep *, const struct fi_msg_tagged *, uint64_t)	\
	SLOT(tagged, ssize_t, -FI_ENOSYS, inject, struct fid_ep *, const void *, size_t, fi_addr_t, uint64_t)	\
	SLOT(tagged, ssize_t, -FI_ENOSYS, senddata, struct fid_ep *, const void *, size_t, void *, uint64_t,	\
	     fi_addr_t, uint64_t, void *)									\
	SLOT(tagged, ssize_t, -FI_ENOSYS, injectdata, struct fid_ep *, const void *, size_t, uint64_t,		\
	     fi_addr_t, uint64_t)

#define RMA_SLOTS(SLOT)												\
	SLOT(rma, ssize_t, -FI_ENOSYS, read, struct fid_ep *, void *, size_t, void *, fi_addr_t, uint64_t,	\
	     uint64_t, void *)											\
	SLOT(rma, ssize_t, -FI_ENOSYS, readv, struct fid_ep *, const struct iovec *, void **, size_t,		\
	     fi_addr_t, uint64_t, uint64_t, void *)								\
	SLOT(rma, ssize_t, -FI_ENOSYS, readmsg, struct fid_ep *, const struct fi_msg_rma *, uint64_t)		\
	SLOT(rma, ssize_t, -FI_ENOSYS, write, struct fid_ep *, const void *, size_t, void *, fi_addr_t,		\
	     uint64_t, uint64_t, void *)									\
	SLOT(rma, ssize_t, -FI_ENOSYS, writev, struct fid_ep *, const struct iovec *, void **, size_t,		\
	     fi_addr_t, uint64_t, uint64_t, void *)								\
	SLOT(rma, ssize_t, -FI_ENOSYS, writemsg, struct fid_ep *, const struct fi_msg_rma *, uint64_t)		\
	SLOT(rma, ssize_t, -FI_ENOSYS, inject, struct fid_ep *, const void *, size_t, fi_addr_t, uint64_t,	\
	     uint64_t)												\
	SLOT(rma, ssize_t, -FI_ENOSYS, writedata, struct fid_ep *, const void *, size_t, void *, uint64_t,	\
	     fi_addr_t, uint64_t, uint64_t, void *)								\
	SLOT(rma, ssize_t, -FI_ENOSYS, injectdata, struct fid_ep *, const void *, size_t, uint64_t, fi_addr_t,	\
	     uint64_t, uint64_t)

#define ATOMIC_SLOTS(SLOT)											\
	SLOT(atomic, ssize_t, -FI_ENOSYS, write, struct fid_ep *, const void *, size_t, void *, fi_addr_t,	\
	     uint64_t, uint64_t, enum fi_datatype, enum fi_op, void *)						\
	SLOT(atomic, ssize_t, -FI_ENOSYS, writev, struct fid_ep *, const struct fi_ioc *, void **, size_t,	\
	     fi_addr_t, uint64_t, uint64_t, enum fi_datatype, enum fi_op, void *)				\
	SLOT(atomic, ssize_t, -FI_ENOSYS, writemsg, struct fid_ep *, const struct fi_msg_atomic *, uint64_t)	\
	SLOT(atomic, ssize_t, -FI_ENOSYS, inject, struct fid_ep *, const void *, size_t, fi_addr_t, uint64_t,	\
	     uint64_t, enum fi_datatype, enum fi_op)								\
	SLOT(atomic, ssize_t, -FI_ENOSYS, readwrite, struct fid_ep *, const void *, size_t, void *, void *,	\
	     void *, fi_addr_t, uint64_t, uint64_t, enum fi_datatype, enum fi_op, void *)			\
	SLOT(atomic, ssize_t, -FI_ENOSYS, readwritev, struct fid_ep *, const struct fi_ioc *, void **, size_t,	\
	     struct fi_ioc *, void **, size_t, fi_addr_t, uint64_t, uint64_t, enum fi_datatype, enum fi_op,	\
	     void *)												\
	SLOT(atomic, ssize_t, -FI_ENOSYS, readwritemsg, struct fid_ep *, const struct fi_msg_atomic *,		\
	     struct fi_ioc *, void **, size_t, uint64_t)							\
	SLOT(atomic, ssize_t, -FI_ENOSYS, compwrite, struct fid_ep *, const void *, size_t, void *,		\
	     const void *, void *, void *, void *, fi_addr_t, uint64_t, uint64_t, enum fi_datatype,		\
	     enum fi_op, void *)										\
	SLOT(atomic, ssize_t, -FI_ENOSYS, compwritev, struct fid_ep *, const struct fi_ioc *, void **, size_t,	\
	     const struct fi_ioc *, void **, size_t, struct fi_ioc *, void **, size_t, fi_addr_t, uint64_t,	\
	     uint64_t, enum fi_datatype, enum fi_op, void *)							\
	SLOT(atomic, ssize_t, -FI_ENOSYS, compwritemsg, struct fid_ep *, const struct fi_msg_atomic *,		\
	     const struct fi_ioc *, void **, size_t, struct fi_ioc *, void **, size_t, uint64_t)		\
	SLOT(atomic, int, -FI_ENOSYS, writevalid, struct fid_ep *, enum fi_datatype, enum fi_op, size_t *)	\
	SLOT(atomic, int, -FI_ENOSYS, readwritevalid, struct fid_ep *, enum fi_datatype, enum fi_op, size_t *)	\
	SLOT(atomic, int, -FI_ENOSYS, compwritevalid, struct fid_ep *, enum fi_datatype, enum fi_op, size_t *)

#define COLLECTIVE_SLOTS(SLOT)											\
	SLOT(collective, ssize_t, -FI_ENOSYS, barrier, struct fid_ep *, fi_addr_t, void *)			\
	SLOT(collective, ssize_t, -FI_ENOSYS, broadcast, struct fid_ep *, void *, size_t, void *, fi_addr_t,	\
	     fi_addr_t, enum fi_datatype, uint64_t, void *)							\
	SLOT(collective, ssize_t, -FI_ENOSYS, alltoall, struct fid_ep *, const void *, size_t, void *, void *,	\
	     void *, fi_addr_t, enum fi_datatype, uint64_t, void *)						\
	SLOT(collective, ssize_t, -FI_ENOSYS, allreduce, struct fid_ep *, const void *, size_t, void *,		\
	     void *, void *, fi_addr_t, enum fi_datatype, enum fi_op, uint64_t, void *)				\
	SLOT(collective, ssize_t, -FI_ENOSYS, allgather, struct fid_ep *, const void *, size_t, void *,		\
	     void *, void *, fi_addr_t, enum fi_datatype, uint64_t, void *)					\
	SLOT(collective, ssize_t, -FI_ENOSYS, reduce_scatter, struct fid_ep *, const void *, size_t, void *,	\
	     void *, void *, fi_addr_t, enum fi_datatype, enum fi_op, uint64_t, void *)				\
	SLOT(collective, ssize_t, -FI_ENOSYS, reduce, struct fid_ep *, const void *, size_t, void *, void *,	\
	     void *, fi_addr_t, fi_addr_t, enum fi_datatype, enum fi_op, uint64_t, void *)			\
	SLOT(collective, ssize_t, -FI_ENOSYS, scatter, struct fid_ep *, const void *, size_t, void *, void *,	\
	     void *, fi_addr_t, fi_addr_t, enum fi_datatype, uint64_t, void *)					\
	SLOT(collective, ssize_t, -FI_ENOSYS, gather, struct fid_ep *, const void *, size_t, void *, void *,	\
	     void *, fi_addr_t, fi_addr_t, enum fi_datatype, uint64_t, void *)					\
	SLOT(collective, ssize_t, -FI_ENOSYS, msg, struct fid_ep *, const struct fi_msg_collective *,		\
	     struct fi_ioc *, void **, size_t, uint64_t)							\
	SLOT(collective, ssize_t, -FI_ENOSYS, barrier2, struct fid_ep *, fi_addr_t, uint64_t, void *)

#define DEFINE(table, type, result, slot, ...) static type table##_##slot(PARAMS(__VA_ARGS__)) { return result; }
#define FILL(table, type, result, slot, ...) if (!ops->slot) ops->slot = table##_##slot;

#define TABLE(table, ops_type, SLOTS)			\
	SLOTS(DEFINE)					\
	void fab_ops_fill_##table(ops_type *ops)	\
	{						\
		pthread_mutex_lock(&fill_lock);		\
		if (!ops->size)				\
			ops->size = sizeof(*ops);	\
		SLOTS(FILL)				\
		pthread_mutex_unlock(&fill_lock);	\
	}

/* The initialisers, and a table in which all entries are "not supported". */
#define INIT(table, type, result, slot, ...) .slot = table##_##slot,
#define TABLE_AND_NONE(table, ops_type, SLOTS)						\
	TABLE(table, ops_type, SLOTS)							\
	ops_type fab_no_##table = { .size = sizeof(ops_type), SLOTS(INIT) };

TABLE(fid, struct fi_ops, FID_SLOTS)
TABLE(fabric, struct fi_ops_fabric, FABRIC_SLOTS)
TABLE(domain, struct fi_ops_domain, DOMAIN_SLOTS)
TABLE(mr, struct fi_ops_mr, MR_SLOTS)
TABLE(av, struct fi_ops_av, AV_SLOTS)
TABLE(cq, struct fi_ops_cq, CQ_SLOTS)
TABLE(cntr, struct fi_ops_cntr, CNTR_SLOTS)
TABLE(eq, struct fi_ops_eq, EQ_SLOTS)
TABLE(ep, struct fi_ops_ep, EP_SLOTS)
TABLE_AND_NONE(cm, struct fi_ops_cm, CM_SLOTS)
TABLE_AND_NONE(msg, struct fi_ops_msg, MSG_SLOTS)
TABLE_AND_NONE(tagged, struct fi_ops_tagged, TAGGED_SLOTS)
TABLE_AND_NONE(rma, struct fi_ops_rma, RMA_SLOTS)
TABLE_AND_NONE(atomic, struct fi_ops_atomic, ATOMIC_SLOTS)
TABLE_AND_NONE(collective, struct fi_ops_collective, COLLECTIVE_SLOTS)
