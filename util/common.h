/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by the utilities: a table of options that is both parsed and printed as help, messages, numbers on the command
 * line, names of flags and enumerations. Single-threaded; text that is returned is in static buffers.
 */
#ifndef UTIL_COMMON_H
#define UTIL_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rdma/fabric.h>

/* The API version with which these programs are compiled, and which they ask for. */
#define UTIL_API_VERSION FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

/* The exit code after wrong usage. */
#define UTIL_EXIT_USAGE 1

/* One option; with key 0 a heading above the options that follow. A table ends with an entry without help. */
struct util_opt {
	int key;                /* its letter, or a value above 255 if it has only a long name */
	const char *name;       /* long name, or NULL */
	const char *arg;        /* name of its argument, NULL if it takes none; "[=NAME]": optional */
	const char *help;       /* its effect; '\n' starts another line */
};

/* Store argv[0] without its folder, as the beginning of each message. Call this before anything else in this header. */
void util_init(const char *argv0);

/* The name of the program, as it is installed. */
const char *util_program(void);

/* The next option, as getopt_long(3): its key, -1 after the last one, '?' after an invalid one (reported). Arguments
 * are in optarg; the first argument that is not an option has index optind. */
int util_getopt(int argc, char **argv, const struct util_opt *opts);

/* Print a script for a shell, bash, zsh or fish, that completes command lines of this program. Returns the exit code.
 * util_getopt() does so, and ends the program, if the only argument is --completion=SHELL. */
int util_completion(FILE *out, const char *shell, const struct util_opt *opts);

/* Print `usage` (lines without the program's name, one for each form), `about`, and the table, aligned. */
void util_help(FILE *out, const char *const *usage, const char *about, const struct util_opt *opts);

/* Print on stderr how to get help. Returns UTIL_EXIT_USAGE. */
int util_bad_usage(void);

/* The exit code for 0 or an error -FI_E*: the error as a positive number, or FI_EIO if that exceeds 255 (FI_EOTHER is
 * 256, which would be taken for success). */
int util_exit_code(int ret);

/* Print "PROGRAM: text" and a newline on stderr, after flushing stdout. */
void util_err(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Parse a whole number (decimal, 0x hexadecimal or 0 octal) from `text`; the suffixes k, m and g are powers of 1024.
 * Returns 0; -FI_EINVAL: it is not a number or outside of min..max, *value is unchanged, and the error, with the name
 * `what`, was printed. */
int util_parse_number(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* fi_tostr() of `data` in a static buffer, trimmed; valid until the next call. */
const char *util_tostr(const void *data, enum fi_type type);

/* The name of one bit of a flag word, or NULL if libfabric has no name for it. Valid until the next util_tostr(). */
const char *util_flag_name(uint64_t bit, enum fi_type type);

/* Parse names joined by '|' or ',' (capabilities, modes) to the bits *flags. FI_TAGGED, TAGGED and tagged are the same.
 * An unknown name is reported on stderr with the known ones. Returns 0, -FI_EINVAL, or -FI_ENOMEM. */
int util_parse_flags(const char *what, const char *text, enum fi_type type, uint64_t *flags);

/* Parse one name of a 32-bit enumeration whose values start at 0 (endpoint type, address format). With prefix "FI_EP_",
 * FI_EP_RDM, EP_RDM and rdm are the same. Returns as util_parse_flags(). */
int util_parse_enum(const char *what, const char *text, enum fi_type type, const char *prefix, uint32_t *value);

/* An address as text for people, in a static buffer: host and port of a socket address, the text of FI_ADDR_STR,
 * otherwise bytes in hexadecimal; "none" if len is 0. Valid until the next call. */
const char *util_addr_text(uint32_t addr_format, const void *addr, size_t len);

/* Bring an address from a machine of the other byte order into the order of this one: of a socket address, the family
 * and the scope. All else is in network order, or text, and stays. Addresses of this byte order stay as they are. */
void util_addr_to_host(uint32_t addr_format, void *addr, size_t len);

/* The host's monotonic clock, in nanoseconds. */
uint64_t util_now_ns(void);

#endif /* UTIL_COMMON_H */
