/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_strerror: prints the text and the name of libfabric's error codes. */
#include "common.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rdma/fi_errno.h>

enum {
	OPT_LIST = 'l',
	OPT_HELP = 'h',
};

static const char about[] = "Print what an error code of libfabric means. CODE is a number of either sign, decimal,\n"
			    "hexadecimal (0x) or octal (0), or a name such as FI_EAGAIN.";

static const char *const usage[] = { "CODE...", "--list", NULL };

static const struct util_opt options[] = {
	{ 0, NULL, NULL, "Options:" },
	{ OPT_LIST, "list", NULL, "print every code: name, number, text" },
	{ OPT_HELP, "help", NULL, "print this help and exit" },
	{ 0, NULL, NULL, NULL },
};

#define CODE(name) { name, #name }

static const struct code {
	int value;
	const char *name;
} codes[] = {
	{ FI_SUCCESS, "FI_SUCCESS" },
	CODE(FI_EPERM), CODE(FI_ENOENT), CODE(FI_EINTR), CODE(FI_EIO), CODE(FI_E2BIG), CODE(FI_EBADF), CODE(FI_EAGAIN),
	CODE(FI_ENOMEM), CODE(FI_EACCES), CODE(FI_EFAULT), CODE(FI_EBUSY), CODE(FI_ENODEV), CODE(FI_EINVAL),
	CODE(FI_EMFILE), CODE(FI_ENOSPC), CODE(FI_ENOSYS), CODE(FI_EWOULDBLOCK), CODE(FI_ENOMSG), CODE(FI_ENODATA),
	CODE(FI_EOVERFLOW), CODE(FI_EMSGSIZE), CODE(FI_ENOPROTOOPT), CODE(FI_EOPNOTSUPP),
	CODE(FI_EADDRINUSE), CODE(FI_EADDRNOTAVAIL), CODE(FI_ENETDOWN), CODE(FI_ENETUNREACH), CODE(FI_ECONNABORTED),
	CODE(FI_ECONNRESET), CODE(FI_ENOBUFS), CODE(FI_EISCONN), CODE(FI_ENOTCONN), CODE(FI_ESHUTDOWN),
	CODE(FI_ETIMEDOUT), CODE(FI_ECONNREFUSED), CODE(FI_EHOSTDOWN), CODE(FI_EHOSTUNREACH), CODE(FI_EALREADY),
	CODE(FI_EINPROGRESS), CODE(FI_EREMOTEIO), CODE(FI_ECANCELED), CODE(FI_EKEYREJECTED), CODE(FI_EOTHER),
	CODE(FI_ETOOSMALL), CODE(FI_EOPBADSTATE), CODE(FI_EAVAIL), CODE(FI_EBADFLAGS), CODE(FI_ENOEQ),
	CODE(FI_EDOMAIN), CODE(FI_ENOCQ), CODE(FI_ECRC), CODE(FI_ETRUNC), CODE(FI_ENOKEY), CODE(FI_ENOAV),
	CODE(FI_EOVERRUN), CODE(FI_ENORX),
#if UTIL_API_VERSION >= FI_VERSION(2, 0)
	CODE(FI_EPROTO), CODE(FI_ENOMR), CODE(FI_EFIREWALLADDR),
#endif
};

#define CODE_CNT (sizeof(codes) / sizeof(codes[0]))

static void print_all(void)
{
	size_t i;

	for (i = 0; i < CODE_CNT; i++)
		printf("%-22s %4d  %s\n", codes[i].name, codes[i].value, fi_strerror(codes[i].value));
}

/* Parse an error code: a number of either sign, or a name with or without FI_. Returns 0 or -FI_EINVAL. */
static int parse_code(const char *text, int *code)
{
	const char *end_of_sign = text + (*text == '-' || *text == '+');
	long value;
	char *end;
	size_t i;

	for (i = 0; i < CODE_CNT; i++) {
		if (!strcasecmp(end_of_sign, codes[i].name) || !strcasecmp(end_of_sign, codes[i].name + 3)) {
			*code = codes[i].value;
			return 0;
		}
	}
	errno = 0;
	value = strtol(text, &end, 0);
	if (errno || end == text || *end || labs(value) > INT32_MAX)
		return -FI_EINVAL;
	*code = (int) labs(value);
	return 0;
}

int main(int argc, char **argv)
{
	int i, code;

	util_init(argv[0]);
	/* Without getopt(), since -11 is a code here. */
	if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		util_help(stdout, usage, about, options);
		return 0;
	}
	if (argc == 2 && (!strcmp(argv[1], "-l") || !strcmp(argv[1], "--list"))) {
		print_all();
		return 0;
	}
	if (argc == 2 && !strncmp(argv[1], "--completion=", 13))
		return util_completion(stdout, argv[1] + 13, options);
	if (argc < 2) {
		util_err("no error code given");
		return util_bad_usage();
	}
	for (i = 1; i < argc; i++) {
		if (parse_code(argv[i], &code)) {
			util_err("'%s' is neither a number nor the name of an error code (--list has them)", argv[i]);
			return util_bad_usage();
		}
		printf("%s\n", fi_strerror(code));
	}
	return 0;
}
