/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the utilities share: one table of options that is both parsed and printed as help, messages, numbers on the
 * command line, names of flags and enumerations. Single-threaded; text that is returned lives in static buffers.
 */
#ifndef UTIL_COMMON_H
#define UTIL_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rdma/fabric.h>

/* The version of the interface that these programs are compiled against, and ask for. */
#define UTIL_API_VERSION FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

/* What a program that was used wrongly returns. */
#define UTIL_EXIT_USAGE 1

/* One option, or, with key 0, a heading above those that follow. A table ends with an entry without help. */
struct util_opt {
	int key;                /* its letter, or a value above 255 when it has only a long name */
	const char *name;       /* long name, or NULL */
	const char *arg;        /* name of its argument, or NULL when it takes none; "[=NAME]": it may be left out */
	const char *help;       /* what it does; '\n' starts another line */
};

/* Remember argv[0] without its folder: it opens each message. Call it before anything else in this header. */
void util_init(const char *argv0);

/* The next option as getopt_long(3) gives it: its key, -1 after the last one, '?' after a bad one (message is out).
 * Arguments are in optarg, what is no option is behind optind. */
int util_getopt(int argc, char **argv, const struct util_opt *opts);

/* Print `usage` (lines without the program's name, one per way of use), `about`, and the table, aligned. */
void util_help(FILE *out, const char *const *usage, const char *about, const struct util_opt *opts);

/* Say on stderr how to learn more. Returns UTIL_EXIT_USAGE. */
int util_bad_usage(void);

/* The exit code for 0 or an error, -FI_E*: that as a positive number, or FI_EIO where it has no room (FI_EOTHER is 256,
 * which would be taken for success). */
int util_exit_code(int ret);

/* Print "PROGRAM: text" and a newline on stderr, after what stdout has buffered. */
void util_err(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Read a whole number, decimal, 0x hexadecimal or 0 octal, from `text`; k, m and g stand for powers of 1024. `what`
 * names it in the message when it is none or lies outside min..max. Returns 0, or -FI_EINVAL (*value untouched). */
int util_parse_number(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* fi_tostr() of `data` in a static buffer, trimmed; valid until the next call. */
const char *util_tostr(const void *data, enum fi_type type);

/* The name of one bit of a flag word, or NULL when libfabric has none for it. Valid until the next util_tostr(). */
const char *util_flag_name(uint64_t bit, enum fi_type type);

/* Names joined by '|' or ',' (capabilities, modes): the bits of all of them in *flags. FI_TAGGED, TAGGED and tagged
 * mean the same. An unknown name is shown on stderr, with the known ones. Returns 0, -FI_EINVAL, or -FI_ENOMEM. */
int util_parse_flags(const char *what, const char *text, enum fi_type type, uint64_t *flags);

/* One name of an enumeration of 32 bits whose values start at 0 (endpoint type, address format). With prefix "FI_EP_",
 * FI_EP_RDM, EP_RDM and rdm mean the same. Returns as util_parse_flags(). */
int util_parse_enum(const char *what, const char *text, enum fi_type type, const char *prefix, uint32_t *value);

/* An address as people write it, in a static buffer: host and port of a socket address, the text of FI_ADDR_STR, else
 * bytes in hexadecimal; "none" for an empty one. Valid until the next call. */
const char *util_addr_text(uint32_t addr_format, const void *addr, size_t len);

/* The host's clock that never steps, in nanoseconds. */
uint64_t util_now_ns(void);

#endif /* UTIL_COMMON_H */
