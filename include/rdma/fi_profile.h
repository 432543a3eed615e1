/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Statistics of a provider - fi_profile(3): variables that can be read, and events with callbacks. Since 2.0, for
 * endpoints and domains of providers that support it. Each struct fid_profile is used by one thread at a time.
 */
#ifndef FI_PROFILE_H
#define FI_PROFILE_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <stdbool.h>
#include <rdma/fi_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fid_profile;

/* Variables common to all providers. A provider may have others, and lack some of these. All are uint64_t except the
 * queue. */
enum {
	FI_VAR_UNEXP_MSG_CNT,		/* unexpected messages */
	FI_VAR_UNEXP_MSG_QUEUE,		/* those messages: an array of struct fi_cq_tagged_entry */
	FI_VAR_MSG_QUEUE_CNT,		/* receives posted */
	FI_VAR_CONNECTION_CNT,		/* connections open */
	FI_VAR_CONN_REQUEST,		/* connection requests received; accepted; refused */
	FI_VAR_CONN_ACCEPT,
	FI_VAR_CONN_REJECT,
	FI_VAR_OFI_MEM,			/* bytes of memory of the provider */
};

/* Events that are the same for all providers. */
enum {
	FI_EVENT_UNEXP_MSG_RECVD,	/* an unexpected message has arrived; data as in the queue */
	FI_EVENT_UNEXP_MSG_MATCHED,	/* a receive was posted that matches it */
};

/* Which member of fi_profile_desc::datatype is set. */
enum fi_profile_type {
	fi_primitive_type,
	fi_defined_type,
};

/* A variable or event. The strings are the provider's, and stay as long as the object. */
struct fi_profile_desc {
	uint32_t id;			/* FI_VAR_*, FI_EVENT_*, or the provider's own */
	enum fi_profile_type datatype_sel;
	union {
		enum fi_datatype primitive;
		enum fi_type defined;
	} datatype;
	uint64_t flags;			/* the provider's */
	size_t size;			/* bytes of its value */
	const char *name;
	const char *desc;		/* a sentence for people */
};

/* The provider's table, one entry for each call below. read_var stores at most *size bytes of a variable, sets *size to
 * its length, and returns the number of bytes stored, or -FI_E*. */
struct fi_profile_ops {
	size_t size;			/* bytes of the table, in the version that the provider has */
	void (*reset)(struct fid_profile *prof_fid, uint64_t flags);
	ssize_t (*query_vars)(struct fid_profile *prof_fid, struct fi_profile_desc *varlist, size_t *count);
	ssize_t (*query_events)(struct fid_profile *prof_fid, struct fi_profile_desc *eventlist, size_t *count);
	ssize_t (*read_var)(struct fid_profile *prof_fid, uint32_t var_id, void *data, size_t *size);
	int (*reg_callback)(struct fid_profile *prof_fid, uint32_t event_id,
			    int (*cb)(struct fid_profile *prof_fid, struct fi_profile_desc *event, void *data,
				      size_t size, void *context),
			    void *context);
	void (*start_reads)(struct fid_profile *prof_fid, uint64_t flags);
	void (*end_reads)(struct fid_profile *prof_fid, uint64_t flags);
};

/* The statistics of one object. Opened by fi_profile_open(); the caller owns it until fi_profile_close(). */
struct fid_profile {
	struct fid fid;
	struct fi_profile_ops *ops;
};

/* Reset all variables that accumulate to 0. flags: 0. */
static inline void fi_profile_reset(struct fid_profile *prof_fid, uint64_t flags)
{
	prof_fid->ops->reset(prof_fid, flags);
}

/* List the variables, or the events. *count: in the room of the list, out the number of all; list may be NULL. Returns
 * the number stored. */
static inline ssize_t fi_profile_query_vars(struct fid_profile *prof_fid, struct fi_profile_desc *varlist,
					    size_t *count)
{
	return prof_fid->ops->query_vars(prof_fid, varlist, count);
}

/* The same for events. */
static inline ssize_t fi_profile_query_events(struct fid_profile *prof_fid, struct fi_profile_desc *eventlist,
					      size_t *count)
{
	return prof_fid->ops->query_events(prof_fid, eventlist, count);
}

/* Read a variable of type uint64_t: 0. Others are read with read_var of the table, which returns the length. */
static inline ssize_t fi_profile_read_u64(struct fid_profile *prof_fid, uint32_t var_id, uint64_t *data)
{
	size_t size = sizeof(*data);
	ssize_t ret;

	ret = prof_fid->ops->read_var(prof_fid, var_id, data, &size);
	return ret > 0 ? 0 : ret;
}

/* Call callback for an event, from inside of a call that drives progress. The callback must be quick, must not call the
 * provider, and returns 0. data is valid until it returns. callback NULL: stop calling. */
static inline int fi_profile_register_callback(struct fid_profile *prof_fid, uint32_t event_id,
					       int (*callback)(struct fid_profile *prof_fid,
							       struct fi_profile_desc *event, void *data, size_t size,
							       void *context),
					       void *context)
{
	return prof_fid->ops->reg_callback(prof_fid, event_id, callback, context);
}

/* Begin and end (fi_profile_end_reads()) reading several variables that belong to the same moment. flags: 0. */
static inline void fi_profile_start_reads(struct fid_profile *prof_fid, uint64_t flags)
{
	prof_fid->ops->start_reads(prof_fid, flags);
}

/* See fi_profile_start_reads(). */
static inline void fi_profile_end_reads(struct fid_profile *prof_fid, uint64_t flags)
{
	prof_fid->ops->end_reads(prof_fid, flags);
}

/* Open the statistics of a domain or an endpoint. They are closed before the object. -FI_ENOSYS or -FI_EINVAL: it has
 * no statistics. */
static inline int fi_profile_open(struct fid *fid, uint64_t flags, struct fid_profile **prof_fid, void *context)
{
	void *ops;
	int ret;

	ret = fi_open_ops(fid, "fi_profile_ops", flags, &ops, context);
	if (!ret)	/* ops is the address of the object's member ops */
		*prof_fid = (struct fid_profile *) (void *) ((char *) ops - offsetof(struct fid_profile, ops));
	return ret;
}

/* Close the statistics; no callback comes afterwards. Returns 0. */
static inline int fi_profile_close(struct fid_profile *prof_fid)
{
	return fi_close(&prof_fid->fid);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_PROFILE_H */
