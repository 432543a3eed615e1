/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The numbers of devices' memory, and copies. `lock` guards what registration changes. A number is published by its
 * caller, so copies read the entry of a number without it.
 */
#include "common/hmem/iface.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"

#define ENTRY_MAX	255		/* a number has 8 bits; 0 is the host */

struct entry {
	const struct fi_provider *prov;
	const struct hmem_iface *by;	/* NULL: own.copy_*() */
	enum fi_hmem_iface iface;
	uint64_t device;
	struct fi_hmem_override_ops own;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry entries[ENTRY_MAX + 1];
static unsigned entry_cnt = 1;
static atomic_flag failed = ATOMIC_FLAG_INIT;

/* Those that weft copies for by itself. */
static const struct hmem_iface *const ifaces[] = {
	[FI_HMEM_CUDA] = &hmem_cuda,
	[FI_HMEM_ROCR] = &hmem_rocr,
};
static enum { UNTRIED, READY, MISSING } state[fab_countof(ifaces)];

/* ---- libraries ---- */

const char *hmem_find(void *lib, const struct hmem_call *calls, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		*calls[i].to = dlsym(lib, calls[i].name);
		if (!*calls[i].to && !calls[i].optional)
			return calls[i].name;
	}
	return NULL;
}

/* True if the name is in the list of FI_HMEM. Without a list all are. */
static bool is_wanted(const char *name)
{
	char *list;

	return fi_param_get_str(NULL, "hmem", &list) || !list || !*list || strcasestr(list, name);
}

static bool param_allows(const char *name, bool unset)
{
	int value = unset;

	fi_param_get_bool(NULL, name, &value);
	return value;
}

/* Load the library of the interface, once. 0; -FI_ENOSYS, logged. lock held. */
static int iface_load(const struct fi_provider *prov, enum fi_hmem_iface iface)
{
	const struct hmem_iface *by = ifaces[iface];
	const char *missing = NULL;
	void *lib;

	if (!is_wanted(by->name)) {
		FI_WARN(prov, FI_LOG_MR, "memory of %s cannot be registered: FI_HMEM does not list %s\n", by->name,
			by->name);
		return -FI_ENOSYS;
	}
	if (state[iface] == READY)
		return 0;
	lib = dlopen(by->lib, RTLD_NOW | RTLD_LOCAL);
	if (lib)
		missing = by->start(lib);
	state[iface] = lib && !missing ? READY : MISSING;
	if (state[iface] == READY)
		return 0;
	if (lib)
		FI_WARN(prov, FI_LOG_MR, "memory of %s cannot be registered: %s has no %s\n", by->name, by->lib,
			missing);
	else
		FI_WARN(prov, FI_LOG_MR, "memory of %s cannot be registered: %s cannot be loaded: %s\n", by->name,
			by->lib, dlerror());
	return -FI_ENOSYS;
}

/* ---- numbers ---- */

static unsigned entry_find(const struct entry *wanted)
{
	for (unsigned i = 1; i < entry_cnt; i++) {
		const struct entry *entry = &entries[i];

		if (entry->iface == wanted->iface && entry->device == wanted->device && entry->by == wanted->by &&
		    entry->own.copy_from_hmem_iov == wanted->own.copy_from_hmem_iov &&
		    entry->own.copy_to_hmem_iov == wanted->own.copy_to_hmem_iov)
			return i;
	}
	return 0;
}

/* lock held. */
static int entry_open(struct entry *wanted, uint8_t *hmem)
{
	unsigned number;
	int ret;

	if (!wanted->own.size) {
		ret = iface_load(wanted->prov, wanted->iface);
		if (ret)
			return ret;
		wanted->by = ifaces[wanted->iface];
	}
	number = entry_find(wanted);
	if (!number && entry_cnt > ENTRY_MAX) {
		FI_WARN(wanted->prov, FI_LOG_MR, "memory registration: this process already uses memory of %d "
			"devices, which is the maximum\n",
			ENTRY_MAX);
		return -FI_ENOSPC;
	}
	if (!number) {
		number = entry_cnt++;
		entries[number] = *wanted;
	}
	*hmem = (uint8_t) number;
	return 0;
}

int fab_hmem_open(const struct fi_provider *prov, enum fi_hmem_iface iface, uint64_t device,
		  const struct fi_hmem_override_ops *own, uint8_t *hmem)
{
	struct entry wanted = { .prov = prov, .iface = iface, .device = device };
	int ret;

	*hmem = FAB_HMEM_HOST;
	if (iface == FI_HMEM_SYSTEM)
		return 0;
	if ((unsigned) iface > FI_HMEM_SYNAPSEAI) {
		FI_WARN(prov, FI_LOG_MR, "memory registration: iface is %u, which fi_mr(3) does not list\n",
			(unsigned) iface);
		return -FI_EINVAL;
	}
	if (own && own->size) {
		wanted.own = *own;
	} else if ((size_t) iface >= fab_countof(ifaces)) {
		FI_WARN(prov, FI_LOG_MR, "memory of interface %s cannot be registered: weft copies for CUDA and ROCr; "
			"a program can pass its own copy functions (FI_SET_OPS_HMEM_OVERRIDE)\n",
			fi_tostr(&iface, FI_TYPE_HMEM_IFACE));
		return -FI_ENOSYS;
	}
	pthread_mutex_lock(&lock);
	ret = entry_open(&wanted, hmem);
	pthread_mutex_unlock(&lock);
	return ret;
}

int fab_hmem_join(uint8_t *hmem, uint8_t more)
{
	if (!*hmem)
		*hmem = more;
	return !more || entries[*hmem].iface == entries[more].iface ? 0 : -FI_EINVAL;
}

/* ---- copies ---- */

static int copy_failed(const struct entry *entry, int err)
{
	if (!atomic_flag_test_and_set(&failed))
		FI_WARN(entry->prov, FI_LOG_MR, "a copy from or to memory of device %" PRIu64 " of interface %s fails: "
			"%s says %d\n", entry->device, fi_tostr(&entry->iface, FI_TYPE_HMEM_IFACE),
			entry->by ? entry->by->lib : "the program's copy function", err);
	return entry->by || err >= 0 ? -FI_EIO : err;
}

/* Copy piece by piece: to `host`, or from it if `to` is set. */
static int copy_pieces(const struct entry *entry, bool to, uint8_t *host, const struct iovec *iov, size_t at,
		       size_t len)
{
	for (; len; iov++) {
		uint8_t *piece = (uint8_t *) iov->iov_base + at;
		size_t n;
		int ret;

		if (at >= iov->iov_len) {
			at -= iov->iov_len;
			continue;
		}
		n = fab_min(iov->iov_len - at, len);
		ret = to ? entry->by->copy(entry->device, piece, host, n) :
			   entry->by->copy(entry->device, host, piece, n);
		if (ret)
			return copy_failed(entry, ret);
		host += n;
		len -= n;
		at = 0;
	}
	return 0;
}

/* The number of entries of iov up to its byte `end`. */
static size_t entries_up_to(const struct iovec *iov, size_t end)
{
	size_t cnt = 0;

	for (size_t have = 0; have < end; cnt++)
		have += iov[cnt].iov_len;
	return cnt;
}

int fab_hmem_from(uint8_t hmem, void *to, const struct iovec *iov, size_t at, size_t len)
{
	const struct entry *entry = &entries[hmem];
	ssize_t n;

	if (!len)
		return 0;
	if (entry->by)
		return copy_pieces(entry, false, to, iov, at, len);
	n = entry->own.copy_from_hmem_iov(to, len, entry->iface, entry->device, iov, entries_up_to(iov, at + len), at);
	return n == (ssize_t) len ? 0 : copy_failed(entry, n < 0 ? (int) n : 0);
}

int fab_hmem_to(uint8_t hmem, const struct iovec *iov, size_t at, const void *from, size_t len)
{
	const struct entry *entry = &entries[hmem];
	ssize_t n;

	if (!len)
		return 0;
	if (entry->by)
		return copy_pieces(entry, true, (uint8_t *) (uintptr_t) from, iov, at, len);
	n = entry->own.copy_to_hmem_iov(entry->iface, entry->device, iov, entries_up_to(iov, at + len), at, from, len);
	return n == (ssize_t) len ? 0 : copy_failed(entry, n < 0 ? (int) n : 0);
}

/* ---- access by other devices ---- */

int fab_hmem_export(uint8_t hmem, const void *addr, size_t len, struct fab_hmem_dmabuf *dmabuf)
{
	const struct hmem_iface *by = entries[hmem].by;

	if (!by || !by->export || !param_allows(by->dmabuf_param, true) || by->export(addr, len, dmabuf))
		return -FI_EOPNOTSUPP;
	return 0;
}

bool fab_hmem_p2p(void)
{
	return !param_allows("hmem_disable_p2p", false);
}
