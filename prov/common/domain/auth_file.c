/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Authorization keys in files, see auth.h. A key that others can read or replace keeps nobody out, so such a file is
 * refused; and so is a short one, since the proof of a key lets a peer try all short keys.
 */
#include "common/domain/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

#define TEXT_LEN	160

/* Check the file; on failure write the reason and what to do into text. 0 or -FI_E*. */
static int auth_file_check(int fd, char text[TEXT_LEN])
{
	struct stat st;

	if (fstat(fd, &st)) {
		snprintf(text, TEXT_LEN, "%s", strerror(errno));
		return -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(text, TEXT_LEN, "it is not a regular file");
		return -FI_EINVAL;
	}
	if (st.st_uid != geteuid()) {
		snprintf(text, TEXT_LEN, "it belongs to user %u, and this process runs as user %u: chown it, or copy "
			 "it", st.st_uid, geteuid());
		return -FI_EACCES;
	}
	if (st.st_mode & (S_IRWXG | S_IRWXO)) {
		snprintf(text, TEXT_LEN, "its mode is %04o, so that others than its owner have access to it: chmod 600",
			 st.st_mode & 07777);
		return -FI_EACCES;
	}
	return 0;
}

/* Read the key, without the end of its line, into buf. Its length; -FI_E*: the reason is in text. */
static ssize_t auth_file_read(int fd, uint8_t buf[FAB_AUTH_KEY_MAX + 2], char text[TEXT_LEN])
{
	ssize_t len = auth_file_check(fd, text);

	if (len)
		return len;
	len = read(fd, buf, FAB_AUTH_KEY_MAX + 2);	/* of a regular file all of it */
	if (len < 0) {
		snprintf(text, TEXT_LEN, "%s", strerror(errno));
		return -errno;
	}
	if (len && buf[len - 1] == '\n')
		len--;
	if (len >= FAB_AUTH_FILE_MIN && len <= FAB_AUTH_KEY_MAX)
		return len;
	snprintf(text, TEXT_LEN, "its key has %s%zd bytes; %d to %d are allowed: head -c 32 /dev/urandom | base64",
		 len > FAB_AUTH_KEY_MAX ? "at least " : "", len, FAB_AUTH_FILE_MIN, FAB_AUTH_KEY_MAX);
	return -FI_EINVAL;
}

int fab_auth_read(const struct fi_provider *prov, const char *what, const char *path, struct fab_auth_key **key)
{
	/* a FIFO must not block */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	uint8_t buf[FAB_AUTH_KEY_MAX + 2];
	char text[TEXT_LEN];
	ssize_t len = fd < 0 ? -errno : auth_file_read(fd, buf, text);
	int ret = 0;

	if (fd < 0)
		snprintf(text, sizeof(text), "%s", strerror(-len));
	else
		close(fd);
	if (len < 0)
		FI_WARN(prov, FI_LOG_CORE, "%s: no authorization key from file %s: %s\n", what, path, text);
	else
		ret = fab_auth_get(prov, what, buf, len, key);
	explicit_bzero(buf, sizeof(buf));
	return len < 0 ? (int) len : ret;
}
