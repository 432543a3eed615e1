/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Public API of libfabric, version 2.6: rdma/fi_profile.h. */
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

enum {
	FI_VAR_UNEXP_MSG_CNT = 0,
	FI_VAR_UNEXP_MSG_QUEUE = 1,
	FI_VAR_MSG_QUEUE_CNT = 2,
	FI_VAR_CONNECTION_CNT = 3,
	FI_VAR_CONN_REQUEST = 4,
	FI_VAR_CONN_ACCEPT = 5,
	FI_VAR_CONN_REJECT = 6,
	FI_VAR_OFI_MEM = 7,
};

enum {
	FI_EVENT_UNEXP_MSG_RECVD = 0,
	FI_EVENT_UNEXP_MSG_MATCHED = 1,
};

enum fi_profile_type {
	fi_primitive_type = 0,
	fi_defined_type = 1,
};

struct fi_profile_desc {
	uint32_t id;
	enum fi_profile_type datatype_sel;
	union {
		enum fi_datatype primitive;
		enum fi_type defined;
	} datatype;
	uint64_t flags;
	size_t size;
	const char *name;
	const char *desc;
};

struct fi_profile_ops {
	size_t size;
	void (*reset)(struct fid_profile *, uint64_t);
	ssize_t (*query_vars)(struct fid_profile *, struct fi_profile_desc *, size_t *);
	ssize_t (*query_events)(struct fid_profile *, struct fi_profile_desc *, size_t *);
	ssize_t (*read_var)(struct fid_profile *, uint32_t, void *, size_t *);
	int (*reg_callback)(struct fid_profile *, uint32_t, int (*)(struct fid_profile *, struct fi_profile_desc *, void *, size_t, void *), void *);
	void (*start_reads)(struct fid_profile *, uint64_t);
	void (*end_reads)(struct fid_profile *, uint64_t);
};

struct fid_profile {
	struct fid fid;
	struct fi_profile_ops *ops;
};

static inline void fi_profile_reset(struct fid_profile *prof_fid, uint64_t flags)
{
	prof_fid->ops->reset(prof_fid, flags);
}

static inline ssize_t fi_profile_query_vars(struct fid_profile *prof_fid, struct fi_profile_desc *varlist, size_t *count)
{
	return prof_fid->ops->query_vars(prof_fid, varlist, count);
}

static inline ssize_t fi_profile_query_events(struct fid_profile *prof_fid, struct fi_profile_desc *eventlist, size_t *count)
{
	return prof_fid->ops->query_events(prof_fid, eventlist, count);
}

static inline ssize_t fi_profile_read_u64(struct fid_profile *prof_fid, uint32_t var_id, uint64_t *data)
{
	size_t size = sizeof(*data);
	ssize_t ret = prof_fid->ops->read_var(prof_fid, var_id, data, &size);

	return ret > 0 ? 0 : ret;
}

static inline int fi_profile_register_callback(struct fid_profile *prof_fid, uint32_t event_id, int (*callback)(struct fid_profile *, struct fi_profile_desc *, void *, size_t, void *), void *context)
{
	return prof_fid->ops->reg_callback(prof_fid, event_id, callback, context);
}

static inline void fi_profile_start_reads(struct fid_profile *prof_fid, uint64_t flags)
{
	prof_fid->ops->start_reads(prof_fid, flags);
}

static inline void fi_profile_end_reads(struct fid_profile *prof_fid, uint64_t flags)
{
	prof_fid->ops->end_reads(prof_fid, flags);
}

static inline int fi_profile_open(struct fid *fid, uint64_t flags, struct fid_profile **prof_fid, void *context)
{
	struct fi_profile_ops **ops;
	int ret = fid->ops->ops_open(fid, "fi_profile_ops", flags, (void **) &ops, context);

	if (!ret)
		*prof_fid = (struct fid_profile *) ((char *) ops - offsetof(struct fid_profile, ops));
	return ret;
}

static inline int fi_profile_close(struct fid_profile *prof_fid)
{
	return prof_fid->fid.ops->close(&prof_fid->fid);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_PROFILE_H */
