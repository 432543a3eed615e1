/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_strerror(): texts of error numbers, the C library's below FI_ERRNO_OFFSET, ours from there on. Any thread. The
 * strings are static; the text for a number that the C library does not know is valid until the thread's next call.
 */
#include <rdma/fi_errno.h>

#include "export.h"

#include <stdlib.h>
#include <string.h>

#define ENTRY(code, text) [(code) - FI_ERRNO_OFFSET] = (text)

static const char *const texts[FI_ERRNO_MAX - FI_ERRNO_OFFSET] = {
	ENTRY(FI_EOTHER, "Unspecified error"),
	ENTRY(FI_ETOOSMALL, "Provided buffer is too small"),
	ENTRY(FI_EOPBADSTATE, "Operation not permitted in this state"),
	ENTRY(FI_EAVAIL, "An error entry waits to be read"),
	ENTRY(FI_EBADFLAGS, "Flags are unknown or not supported"),
	ENTRY(FI_ENOEQ, "Event queue is missing or not usable"),
	ENTRY(FI_EDOMAIN, "Object belongs to another domain"),
	ENTRY(FI_ENOCQ, "Completion queue is missing or not usable"),
	ENTRY(FI_ECRC, "Data failed its checksum"),
	ENTRY(FI_ETRUNC, "Message is longer than its buffer"),
	ENTRY(FI_ENOKEY, "Memory key is not known or not available"),
	ENTRY(FI_ENOAV, "Address vector is missing or not usable"),
	ENTRY(FI_EOVERRUN, "Queue has been overrun"),
	ENTRY(FI_ENORX, "Receiver has no buffer posted"),
	ENTRY(FI_ENOMR, "Memory registration limit is reached"),
	ENTRY(FI_EFIREWALLADDR, "Peer is behind a firewall and not connected yet"),
};

FAB_EXPORT const char *fi_strerror(int errnum)
{
	long code = labs((long) errnum);

	if (!code)
		return "Success";	/* musl has another word for it */
	if (code < FI_ERRNO_OFFSET)
		return strerror((int) code);
	return code < FI_ERRNO_MAX ? texts[code - FI_ERRNO_OFFSET] : texts[0];
}
