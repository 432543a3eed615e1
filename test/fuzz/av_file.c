/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file of a shared address vector, with anything in it: what another process of the same user could write, at
 * any time. An input is bytes for what is done, then what is written: offset (2 bytes, little-endian) and content.
 *
 *   byte 0   1 written before the vector is opened a second time, 2 the file is cut off behind it, 4 the second is for
 *            reading
 */
#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "common/domain/domain.h"

#define OK(call) FUZZ_MUST((call) == 0)

static struct fid_domain *domain;
static char name[32], path[256];

static void domain_open(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_SHARED_AV;
	hints->fabric_attr->prov_name = strdup("tcp");
	OK(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	snprintf(name, sizeof(name), "fuzz%d", (int) getpid());
	/* as av_shared.c makes it of such a name */
	snprintf(path, sizeof(path), "/dev/shm/weft-av.%u.%s.%s", (unsigned) geteuid(), info->domain_attr->name, name);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static struct fid_av *open_av(uint64_t flags)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .name = name, .flags = flags };
	struct fid_av *av;

	return fi_av_open(domain, &attr, &av, NULL) ? NULL : av;
}

static void spoil(uint8_t how, const uint8_t *data, size_t len)
{
	size_t offset = fuzz_byte(&data, &len);
	int fd = open(path, O_RDWR | O_CLOEXEC);

	FUZZ_MUST(fd >= 0);
	offset |= (size_t) fuzz_byte(&data, &len) << 8;
	if (len)
		FUZZ_MUST(pwrite(fd, data, len, (off_t) offset) == (ssize_t) len);
	if (how & 2)
		OK(ftruncate(fd, (off_t) (offset + len)));
	close(fd);
}

static void use(struct fid_av *av)
{
	struct sockaddr_in addrs[2] = {
		{ .sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(0x0a000001) },
		{ .sin_family = AF_INET, .sin_port = htons(2), .sin_addr.s_addr = htonl(0x0a000002) },
	};
	uint8_t room[sizeof(struct sockaddr_storage)];
	fi_addr_t fi_addr[2] = { 0, 1 };
	char text[128];
	size_t len;

	if (!av)
		return;
	fi_av_insert(av, addrs, 2, fi_addr, 0, NULL);
	for (fi_addr_t i = 0; i < 6; i++) {
		len = sizeof(room);
		if (fi_av_lookup(av, i, room, &len))
			continue;
		FUZZ_MUST(len <= sizeof(room));
		len = sizeof(text);
		fi_av_straddr(av, room, text, &len);
	}
	fi_av_remove(av, fi_addr, 1, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t how = fuzz_byte(&data, &len);
	struct fid_av *first, *second;

	if (!domain)
		domain_open();
	first = open_av(0);
	FUZZ_MUST(first);
	use(first);
	if (how & 1)
		spoil(how, data, len);
	second = open_av(how & 4 ? FI_READ : 0);
	use(second);
	if (!(how & 1))
		spoil(how, data, len);
	use(first);
	use(second);
	if (second)
		OK(fi_close(&second->fid));
	OK(fi_close(&first->fid));
	FUZZ_MUST(access(path, F_OK));
	return 0;
}
