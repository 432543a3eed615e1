/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See direct.h.
 */
#include "tcp/local/direct.h"

#include <errno.h>
#include <stdbool.h>
#include "base/sock.h"

int tcp_reader_find(struct tcp_reader *reader, int fd)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	if (fab_sock->getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	reader->pid = cred.pid;
	return 0;
}

/* Read as tcp_reader_read(). Returns the number of bytes with those of the cookie, or -errno; *same: the cookie is the
 * peer's. */
static ssize_t reader_call(const struct tcp_reader *reader, struct iovec *to, size_t to_cnt, struct iovec *from,
			   size_t from_cnt, bool *same)
{
	struct tcp_cookie cookie = { 0 };
	ssize_t n;

	to[to_cnt] = (struct iovec) { &cookie, sizeof(cookie) };
	from[from_cnt] = (struct iovec) { reader->at, sizeof(cookie) };
	n = fab_sock->process_vm_readv(reader->pid, to, to_cnt + 1, from, from_cnt + 1, 0);
	*same = cookie.word[0] == reader->cookie.word[0] && cookie.word[1] == reader->cookie.word[1];
	return n < 0 ? -errno : n;
}

int tcp_reader_probe(const struct tcp_reader *reader)
{
	struct iovec to, from;
	bool same;
	ssize_t n;

	if (!reader->pid)
		return -ESRCH;
	n = reader_call(reader, &to, 0, &from, 0, &same);
	if (n == -EFAULT)
		return -ESRCH;
	if (n < 0)
		return n;
	return n == sizeof(struct tcp_cookie) && same ? 0 : -ESRCH;
}

int tcp_reader_read(const struct tcp_reader *reader, struct iovec *to, size_t to_cnt, struct iovec *from,
		    size_t from_cnt, size_t len)
{
	bool same;
	ssize_t n = reader_call(reader, to, to_cnt, from, from_cnt, &same);
	int ret;

	if (n < 0 && n != -EFAULT)
		return n;
	if (n == (ssize_t) (len + sizeof(struct tcp_cookie)))
		return same ? 0 : -ESRCH;
	/* it has stopped at memory that is not valid: if the cookie can be read, this is a buffer */
	ret = tcp_reader_probe(reader);
	return ret ? ret : -EFAULT;
}
