/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Options, help, messages, numbers and names for the utilities. */
#include "common.h"

#include <byteswap.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#define MAX_OPTS 64
#define COMPLETION "--completion="
#define TOSTR_LEN 16384
/* The number of bits of a flag word; also enough for the values of all enumerations in options. */
#define CANDIDATES 64

static const char *program = "?";

void util_init(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');

	program = slash ? slash + 1 : argv0;
	/* libtool puts a wrapper with this prefix in front of programs in the build tree. */
	if (!strncmp(program, "lt-", 3))
		program += 3;
}

const char *util_program(void)
{
	return program;
}

/* The has_arg value of getopt_long(3). It is also the number of colons behind the letter. */
static int has_arg(const struct util_opt *opt)
{
	_Static_assert(required_argument == 1 && optional_argument == 2, "numbers of colons");
	if (!opt->arg)
		return no_argument;
	return *opt->arg == '[' ? optional_argument : required_argument;
}

int util_getopt(int argc, char **argv, const struct util_opt *opts)
{
	struct option longs[MAX_OPTS];
	char shorts[3 * MAX_OPTS + 1];
	size_t long_cnt = 0, short_len = 0;
	int ret;

	if (argc == 2 && !strncmp(argv[1], COMPLETION, strlen(COMPLETION)))
		exit(util_completion(stdout, argv[1] + strlen(COMPLETION), opts));
	for (; opts->help && long_cnt < MAX_OPTS - 1; opts++) {
		if (!opts->key)
			continue;
		if (opts->name)
			longs[long_cnt++] = (struct option) { .name = opts->name, .val = opts->key,
				.has_arg = has_arg(opts) };
		if (opts->key > UINT8_MAX)
			continue;
		shorts[short_len++] = (char) opts->key;
		memset(shorts + short_len, ':', (size_t) has_arg(opts));
		short_len += (size_t) has_arg(opts);
	}
	longs[long_cnt] = (struct option) { .name = NULL };
	shorts[short_len] = '\0';
	ret = getopt_long(argc, argv, shorts, longs, NULL);
	return ret;
}

/* "-p, --provider NAME" of one option, in buf. Returns its length. */
static int opt_text(const struct util_opt *opt, char *buf, size_t len)
{
	const char *name = opt->name ? opt->name : "", *dashes = opt->name ? "--" : "";
	const char *arg = opt->arg ? opt->arg : "", *blank = has_arg(opt) == required_argument ? " " : "";

	if (opt->key > UINT8_MAX)
		return snprintf(buf, len, "    %s%s%s%s", dashes, name, blank, arg);
	return snprintf(buf, len, "-%c%s%s%s%s%s", opt->key, opt->name ? ", " : "", dashes, name, blank, arg);
}

void util_help(FILE *out, const char *const *usage, const char *about, const struct util_opt *opts)
{
	const char *title = "Usage:";
	const struct util_opt *opt;
	const char *line, *end;
	char text[80];
	int width = 0;

	for (; *usage; usage++, title = "      ")
		fprintf(out, "%s %s %s\n", title, program, *usage);
	fprintf(out, "\n%s\n", about);

	for (opt = opts; opt->help; opt++) {
		int len = opt->key ? opt_text(opt, text, sizeof(text)) : 0;

		width = len > width ? len : width;
	}
	for (opt = opts; opt->help; opt++) {
		if (!opt->key) {
			fprintf(out, "\n%s\n", opt->help);
			continue;
		}
		opt_text(opt, text, sizeof(text));
		for (line = opt->help; ; line = end + 1, text[0] = '\0') {
			end = strchrnul(line, '\n');
			fprintf(out, "  %-*s  %.*s\n", width, text, (int) (end - line), line);
			if (!*end)
				break;
		}
	}
}

int util_bad_usage(void)
{
	fprintf(stderr, "Try '%s --help'.\n", program);
	return UTIL_EXIT_USAGE;
}

int util_exit_code(int ret)
{
	return -ret >= 0 && -ret < 256 ? -ret : FI_EIO;
}

void util_err(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "%s: ", program);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* The factor of a suffix; 1 if it is empty, 0 if it is unknown. */
static uint64_t suffix_factor(const char *suffix)
{
	static const char letters[] = "kmg";
	const char *at;

	if (!*suffix)
		return 1;
	at = suffix[1] ? NULL : strchr(letters, tolower((unsigned char) *suffix));
	return at ? 1ULL << (10 * (at - letters + 1)) : 0;
}

int util_parse_number(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	unsigned long long number;
	uint64_t factor;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 0);
	factor = suffix_factor(end);
	if (end == text || !isdigit((unsigned char) *text) || errno || !factor || number > UINT64_MAX / factor ||
	    number * factor < min || number * factor > max) {
		util_err("%s is '%s': a whole number from %llu to %llu is allowed", what, text,
			 (unsigned long long) min, (unsigned long long) max);
		return -FI_EINVAL;
	}
	*value = number * factor;
	return 0;
}

const char *util_tostr(const void *data, enum fi_type type)
{
	static char buf[TOSTR_LEN];
	char *text = buf;
	size_t len;

	buf[0] = '\0';
	fi_tostr_r(buf, sizeof(buf), data, type);
	while (isspace((unsigned char) *text))
		text++;
	for (len = strlen(text); len && isspace((unsigned char) text[len - 1]); )
		text[--len] = '\0';
	return text;
}

const char *util_flag_name(uint64_t bit, enum fi_type type)
{
	const char *name = util_tostr(&bit, type);

	return strncmp(name, "FI_", 3) ? NULL : name;
}

/* The name of candidate i: bit i of a flag word, or value i of an enumeration. NULL if libfabric has no name for it. */
static const char *candidate_name(int i, bool flags, enum fi_type type)
{
	const char *name;
	uint32_t value = i;

	if (flags)
		return util_flag_name(1ULL << i, type);
	name = util_tostr(&value, type);
	return strncmp(name, "FI_", 3) ? NULL : name;
}

/* True if `text` is `name`, in full, without FI_, or without `prefix`; in upper or lower case. */
static bool name_matches(const char *name, const char *text, const char *prefix)
{
	size_t len = strlen(prefix);

	return !strcasecmp(name, text) || !strcasecmp(name + 3, text) ||
	       (!strncmp(name, prefix, len) && !strcasecmp(name + len, text));
}

/* The index of the candidate with name `text`. -1: there is no such candidate; this was printed, with the names that
 * exist. */
static int find_candidate(const char *what, const char *text, bool flags, enum fi_type type, const char *prefix)
{
	const char *name;
	int i;

	for (i = 0; i < CANDIDATES; i++) {
		name = candidate_name(i, flags, type);
		if (name && name_matches(name, text, prefix))
			return i;
	}
	util_err("unrecognized %s: '%s'", what, text);
	fprintf(stderr, "known:");
	for (i = 0; i < CANDIDATES; i++) {
		name = candidate_name(i, flags, type);
		if (name)
			fprintf(stderr, " %s", name);
	}
	fputc('\n', stderr);
	return -1;
}

int util_parse_flags(const char *what, const char *text, enum fi_type type, uint64_t *flags)
{
	char *copy, *rest, *name;
	uint64_t all = 0;
	int bit = 0;

	copy = strdup(text);
	if (!copy)
		return -FI_ENOMEM;
	for (rest = copy; bit >= 0 && (name = strsep(&rest, "|,")); ) {
		name += strspn(name, " \t");
		name[strcspn(name, " \t")] = '\0';
		bit = find_candidate(what, name, true, type, "FI_");
		if (bit >= 0)
			all |= 1ULL << bit;
	}
	free(copy);
	if (bit < 0)
		return -FI_EINVAL;
	*flags = all;
	return 0;
}

int util_parse_enum(const char *what, const char *text, enum fi_type type, const char *prefix, uint32_t *value)
{
	int i = find_candidate(what, text, false, type, prefix);

	if (i < 0)
		return -FI_EINVAL;
	*value = i;
	return 0;
}

const char *util_addr_text(uint32_t addr_format, const void *addr, size_t len)
{
	static char text[NI_MAXHOST + NI_MAXSERV + 4];
	char host[NI_MAXHOST], port[NI_MAXSERV];
	size_t i, used = 0;

	if (!addr || !len)
		return "none";
	if (addr_format == FI_ADDR_STR) {
		snprintf(text, sizeof(text), "%.*s", (int) strnlen(addr, len), (const char *) addr);
		return text;
	}
	if (addr_format <= FI_SOCKADDR_IN6 && len >= sizeof(sa_family_t) &&
	    !getnameinfo(addr, (socklen_t) len, host, sizeof(host), port, sizeof(port),
			 NI_NUMERICHOST | NI_NUMERICSERV)) {
		snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
		return text;
	}
	for (i = 0; i < len && used + 3 < sizeof(text); i++)
		used += (size_t) snprintf(text + used, sizeof(text) - used, "%02x", ((const uint8_t *) addr)[i]);
	return text;
}

void util_addr_to_host(uint32_t addr_format, void *addr, size_t len)
{
	struct sockaddr_in6 in6 = { 0 };

	if (addr_format > FI_SOCKADDR_IN6 || len < sizeof(struct sockaddr_in) || len > sizeof(in6))
		return;
	memcpy(&in6, addr, len);
	if (in6.sin6_family != bswap_16(AF_INET) && in6.sin6_family != bswap_16(AF_INET6))
		return;
	in6.sin6_family = bswap_16(in6.sin6_family);
	if (in6.sin6_family == AF_INET6)
		in6.sin6_scope_id = bswap_32(in6.sin6_scope_id);
	memcpy(addr, &in6, len);
}

uint64_t util_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}
