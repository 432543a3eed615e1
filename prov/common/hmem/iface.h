/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The interfaces to devices, private to this room. Each is a table of functions over one library, which is loaded when
 * a program registers memory of it, and stays.
 */
#ifndef FAB_HMEM_IFACE_H
#define FAB_HMEM_IFACE_H

#include "common/hmem/hmem.h"

struct hmem_iface {
	const char *name;		/* "cuda", as in FI_HMEM */
	const char *lib;		/* "libcuda.so.1" */
	const char *dmabuf_param;	/* parameter that forbids export */
	/* Find the functions in the library, and initialise it. NULL, or the name of what is missing. */
	const char *(*start)(void *lib);
	/* Copy len bytes; one of the addresses is the host's, the other is of the device with this number. 0, or the
	 * library's error. */
	int (*copy)(uint64_t device, void *to, const void *from, size_t len);
	/* 0 or the library's error; NULL: it cannot. */
	int (*export)(const void *addr, size_t len, struct fab_hmem_dmabuf *dmabuf);
};
extern const struct hmem_iface hmem_cuda, hmem_rocr;

/* A function that start() has to find; required unless `optional`. */
struct hmem_call {
	const char *name;
	void **to;
	bool optional;
};

/* Find all of them. NULL, or the name of a missing one. */
const char *hmem_find(void *lib, const struct hmem_call *calls, size_t cnt);

#endif
