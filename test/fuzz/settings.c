/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What users write: the configuration file, values of parameters, lists of interfaces and providers, addresses as
 * text. The first byte of an input says which of them the rest is. Nothing of this asks a name server.
 */
#include "fuzz/fuzz.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <unistd.h>
/* its state is its own: here the file is read again and again */
#include "../../src/param.c"
#include "base/addr.h"
#include "common/net/netif.h"
#include "filter.h"

static struct fi_provider prov = {
	.name = "fuzz", .version = FI_VERSION(1, 0), .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
};

/* The configuration file, then parameters of each type that it may have set. */
static void conf(char *text, size_t len)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	static int fd = -1;
	static char path[64];
	typeof(file) real;		/* the library's own */
	struct fab_list defined;
	union {
		int number;
		size_t size;
		char *str;
	} value;

	if (fd < 0) {
		fd = memfd_create("libfabric.conf", MFD_CLOEXEC);
		FUZZ_MUST(fd >= 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		fab_param_path = path;
		fab_param_report();	/* which reads it, once */
	}
	real = file;
	FUZZ_MUST(!ftruncate(fd, 0) && pwrite(fd, text, len, 0) == (ssize_t) len);
	fab_list_init(&defined);
	fab_list_splice_tail(&defined, &params);
	memset(&file, 0, sizeof(file));
	read_file();
	param_report();
	for (unsigned i = 0; i < fab_countof(names); i++) {
		FUZZ_MUST(!fi_param_define(&prov, names[i], (enum fi_param_type) (i % 4), "help"));
		fi_param_get(&prov, names[i], &value);
	}
	while (!fab_list_empty(&params))
		param_free(fab_container(fab_list_pop_front(&params), struct param, link));
	fab_list_splice_tail(&params, &defined);
	free(file.text);
	free(file.lines);
	file = real;
}

static void values(char *text, size_t len)
{
	int number;
	size_t size;

	(void) len;
	parse_bool(text, &number);
	parse_int(text, &number);
	parse_size(text, &size);
	trim(text);
}

static void interfaces(char *text, size_t len)
{
	struct fab_netif *list = NULL;
	size_t cnt;

	(void) len;
	if (!fab_netif_list(&prov, text, &list, &cnt))
		free(list);
}

static void providers(char *text, size_t len)
{
	static const char *const names[] = { "tcp", "tcp;ofi_rxm", "verbs;ofi_rxm;ofi_hook", "" };

	(void) len;
	for (unsigned i = 0; i < fab_countof(names); i++) {
		fab_filter_allows(text, names[i]);
		fab_filter_names(text, names[i]);
		fab_filter_needs(text, names[i]);
		fab_filter_mentions(text, names[i]);
	}
	fab_filter_is_util(text);
}

/* An address as text: what it says can be said again, and means the same. */
static void address(char *text, size_t len)
{
	char again[FAB_ADDR_STRLEN];
	union fab_sockaddr addr, same;

	(void) len;
	if (fab_addr_from_str(text, &addr))
		return;
	fab_addr_to_str(&addr.sa, again, sizeof(again));
	FUZZ_MUST(!fab_addr_from_str(again, &same));
	FUZZ_MUST(fab_addr_equal(&addr.sa, &same.sa));
}

/* Node, and behind a line's end service, as fi_getinfo() takes them. */
static void node_service(char *text, size_t len)
{
	char *service = memchr(text, '\n', len);
	const char *why;
	union fab_sockaddr addr;
	struct fi_info *info;

	if (service)
		*service++ = '\0';
	fab_resolve_name(*text ? text : NULL, service, FI_NUMERICHOST, AF_UNSPEC, &addr, &why);
	fab_resolve_name(*text ? text : NULL, service, FI_NUMERICHOST | FI_SOURCE, AF_INET6, &addr, &why);
	if (!fi_getinfo(FI_VERSION(2, 0), *text ? text : NULL, service, FI_NUMERICHOST, NULL, &info))
		fi_freeinfo(info);
}

/* Hints of which strings are anything. */
static void hints(char *text, size_t len)
{
	struct fi_info *ask = fi_allocinfo(), *info;
	char *rest = text, **slots[] = {
		&ask->fabric_attr->prov_name, &ask->fabric_attr->name, &ask->domain_attr->name,
		(char **) &ask->src_addr, (char **) &ask->dest_addr,
	};

	(void) len;
	for (unsigned i = 0; i < fab_countof(slots) && rest; i++) {
		char *word = strsep(&rest, "\n");

		if (*word)
			*slots[i] = strdup(word);
	}
	ask->addr_format = FI_ADDR_STR;
	if (ask->src_addr)
		ask->src_addrlen = strlen(ask->src_addr) + 1;
	if (ask->dest_addr)
		ask->dest_addrlen = strlen(ask->dest_addr) + 1;
	fi_tostr(ask, FI_TYPE_INFO);
	if (!fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, ask, &info))
		fi_freeinfo(info);
	fi_freeinfo(ask);
}

static void (*const readers[])(char *text, size_t len) = {
	conf, values, interfaces, providers, address, node_service, hints,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t what = fuzz_byte(&data, &len);
	char *text = malloc(len + 1);

	FUZZ_MUST(text);
	if (len)
		memcpy(text, data, len);
	text[len] = '\0';
	readers[what % fab_countof(readers)](text, len);
	free(text);
	return 0;
}
