/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel has a table of each device's XRC domains by inode, and counts references. This file adds the checks that
 * the kernel leaves to the caller, and logs errors with their reasons.
 */
#include "verbs/xrc_domain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "verbs/verbs.h"

#define PATH_ROOM	256		/* of a path in a log message */

bool vrb_has_xrc(const struct ibv_device_attr *attr)
{
	return attr->device_cap_flags & IBV_DEVICE_XRC;
}

static bool flags_ok(int fd, int oflag)
{
	return fd == -1 ? oflag == O_CREAT : !(oflag & ~(O_CREAT | O_EXCL));
}

static int check(struct ibv_context *context, int fd, int oflag)
{
	struct ibv_device_attr attr;
	int ret;

	if (!flags_ok(fd, oflag))
		return EINVAL;
	if (fd != -1 && fcntl(fd, F_GETFD) < 0)
		return EBADF;
	ret = ibv_query_device(context, &attr);
	if (ret)
		return ret;
	return vrb_has_xrc(&attr) ? 0 : EOPNOTSUPP;
}

/* Convert the errno of the kernel, which has unusual ones for a domain that does not exist, and for one that exists but
 * should not. */
static int cause_of(int fd, int oflag, int err)
{
	if (fd == -1)
		return err;
	if (err == EAGAIN && !(oflag & O_CREAT))
		return ENOENT;
	return err == EINVAL && oflag == (O_CREAT | O_EXCL) ? EEXIST : err;
}

static const char *text_of(int err)
{
	switch (err) {
	case EINVAL:
		return "flags are O_CREAT, O_EXCL or both, and O_EXCL is for a file without a domain; without a file "
		       "the flag is O_CREAT";
	case EOPNOTSUPP:
		return "the device has no XRC";
	case ENOENT:
		return "this file has no domain, and O_CREAT is not set";
	case EEXIST:
		return "this file already has a domain, and O_EXCL is set";
	default:
		return strerror(err);
	}
}

/* The current path of an open file. */
static void path_of(int fd, char *path, size_t size)
{
	char link[40];
	ssize_t len = -1;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fd >= 0)
		len = readlink(link, path, size - 1);
	if (len >= 0)
		path[len] = '\0';
	else
		snprintf(path, size, fd == -1 ? "no file" : "an unknown file");
}

struct ibv_xrcd *vrb_open_xrc_domain(struct ibv_context *context, int fd, int oflag)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = oflag,
	};
	struct ibv_xrcd *domain = NULL;
	char path[PATH_ROOM];
	int err = check(context, fd, oflag);

	if (!err) {
		domain = ibv_open_xrcd(context, &attr);
		if (domain)
			return domain;
		err = cause_of(fd, oflag, errno);
	}
	path_of(fd, path, sizeof(path));
	VRB_WARN(FI_LOG_DOMAIN, "XRC domain of %s (descriptor %d) with flags %#x on device %s: %s\n", path, fd, oflag,
		 ibv_get_device_name(context->device), text_of(err));
	errno = err;
	return NULL;
}

int vrb_close_xrc_domain(struct ibv_xrcd *domain)
{
	const char *name = ibv_get_device_name(domain->context->device);
	int ret = ibv_close_xrcd(domain);

	if (ret)
		VRB_WARN(FI_LOG_DOMAIN, "XRC domain of %s is not closed: %s\n", name,
			 ret == EBUSY ? "it has queue pairs or shared receive queues" : strerror(ret));
	return ret;
}
