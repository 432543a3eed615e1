/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See share.h. A child of fork(2) does not get the memory: it must not use its parent's connections.
 */
#include "tcp/local/share.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "base/sock.h"

#define SHARE_SEALS	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int share_map(int fd, size_t size, void **mem)
{
	void *at = fab_sock->mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	madvise(at, size, MADV_DONTFORK);
	*mem = at;
	return 0;
}

int tcp_share_make(size_t size, void **mem, int *fd)
{
	int made = fab_sock->memfd_create("libfabric-tcp", MFD_CLOEXEC | MFD_ALLOW_SEALING), ret = 0;

	if (made < 0)
		return -errno;
	if (fab_sock->ftruncate(made, size) || fab_sock->add_seals(made, SHARE_SEALS))
		ret = -errno;
	if (!ret)
		ret = share_map(made, size, mem);
	if (ret)
		fab_sock_close(&made);
	else
		*fd = made;
	return ret;
}

int tcp_share_map(int fd, size_t size, void **mem)
{
	struct stat st;
	int seals = fab_sock->get_seals(fd);

	if (seals < 0 || fab_sock->fstat(fd, &st))
		return -errno;
	if ((seals & SHARE_SEALS) != SHARE_SEALS || st.st_size != (off_t) size)
		return -EPROTO;
	return share_map(fd, size, mem);
}

void tcp_share_unmap(void *mem, size_t size)
{
	if (mem)
		munmap(mem, size);
}
