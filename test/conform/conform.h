/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The conformance suite: one behaviour a test, against the public API only, on any provider and endpoint type.
 *
 * A test is a function declared with TEST_PROV(). It runs if the provider named on the command line offers the
 * capabilities that it needs with the endpoint type of the run; otherwise a comment says why not. Whatever it
 * opens through this header belongs to the test and is closed when it ends, in reverse order, each close checked. A
 * check that fails leaves the test at once (longjmp), so helpers return nothing but good results.
 *
 * All of it runs in one thread, both ends in this process: a helper that waits for one end drives every end that the
 * test has open, by reading their queues, until a deadline. Nothing sleeps.
 */
#ifndef CONFORM_H
#define CONFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

/* Old names that the headers now mark as deprecated, under names of our own. */
#define MR_BASIC	1
#define MR_SCALABLE	2
#define MR_BASIC_BITS	(FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define LOCAL_MR	(1ULL << 55)

/* Built with AddressSanitizer or ThreadSanitizer, which bring their own malloc, threads and signal handlers. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define BIT(n) (1u << (n))

/* What the command line asked for; constant while tests run. */
struct run {
	const char *prov;		/* exact prov_name */
	enum fi_ep_type type;
	int family;			/* AF_INET or AF_INET6, for providers with socket addresses */
	enum fi_progress progress;	/* UNSPEC: what the provider likes */
	enum fi_threading threading;
	int mr_mode;			/* bits that the application allows */
	uint64_t mode;			/* likewise */
	uint32_t version;
	unsigned int slow;		/* factor on all deadlines: valgrind, sanitizers */
	bool ours;			/* the library under test is this project's (fi_version() says 2.x) */
};
extern struct run run;

struct test;
struct side;
struct undo;

/* One test, or one row of a table of tests. Static, linked into a list before main(). */
struct test_case {
	const char *name;
	const char *file;
	void (*fn)(struct test *t);
	uint64_t caps;			/* needed: the hints of the fixture, and the reason to skip */
	unsigned int types;		/* BIT(enum fi_ep_type) it makes sense for; 0: all */
	uint32_t since;			/* absent with a library that is older than this version of the interface */
	bool alone;			/* does not depend on the provider's endpoints: no capability check before */
	bool keeps;			/* what it opened may stay: warm_up() */
	/* A table: row i is called as t->row == (char *) rows + i * row_size, whose first member is its name. */
	const void *rows;
	size_t row_cnt, row_size;
	struct test_case *next;
};

/* The running test. */
struct test {
	const struct test_case *c;
	const void *row;
	struct side *sides;		/* newest first */
	struct undo *undo;		/* newest first */
	uint64_t key;			/* last memory key given out */
};

void test_add(struct test_case *c);
/* The test GROUP/NAME of this program, whatever its rows. NULL: there is none. */
const struct test_case *test_named(const char *name);

#define TEST_PROV(fn_, caps_, ...)							\
	static void fn_(struct test *t);						\
	static struct test_case fn_##_case = {						\
		.name = #fn_, .file = __FILE__, .fn = fn_, .caps = caps_, __VA_ARGS__	\
	};										\
	__attribute__((constructor)) static void fn_##_add(void) { test_add(&fn_##_case); } \
	static void fn_(__attribute__((unused)) struct test *t)

/* A test a row of @table, an array whose elements start with `const char *name`; the row is ROW(table). */
#define TEST_TABLE(fn_, table_, caps_, ...)						\
	TEST_PROV(fn_, caps_, .rows = table_, .row_cnt = COUNT(table_), .row_size = sizeof((table_)[0]), __VA_ARGS__)
#define ROW(table_) ((const __typeof__((table_)[0]) *) t->row)

/* Endpoint types of a test. */
#define RELIABLE .types = BIT(FI_EP_MSG) | BIT(FI_EP_RDM)
#define CONNECTED .types = BIT(FI_EP_MSG)
#define UNCONNECTED .types = BIT(FI_EP_RDM) | BIT(FI_EP_DGRAM)
#define RDM_ONLY .types = BIT(FI_EP_RDM)

/* ---- checks: leave the test when they fail */

__attribute__((noreturn, format(printf, 3, 4)))
void test_fail(const char *file, int line, const char *fmt, ...);
/* This machine cannot run the test. */
__attribute__((noreturn, format(printf, 1, 2)))
void test_skip(const char *fmt, ...);
/* The test cannot apply to this provider, endpoint type or library. */
__attribute__((noreturn, format(printf, 1, 2)))
void test_absent(const char *fmt, ...);
void check_ret(const char *file, int line, const char *what, long long got, long long want);
void check_eq(const char *file, int line, const char *what, unsigned long long got, unsigned long long want);
void check_mem(const char *file, int line, const char *what, const void *got, const void *want, size_t len);

/* The line of the test that called a helper; a failure inside the helper is reported with it. The helpers' headers wrap
 * their functions so that this happens by itself. */
void test_at(const char *file, int line);
#define AT(expr) (test_at(__FILE__, __LINE__), expr)

#define FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)
#define SKIP(...) test_skip(__VA_ARGS__)
#define ABSENT(...) test_absent(__VA_ARGS__)
#define CHECK(cond) do { if (!(cond)) FAIL("%s does not hold", #cond); } while (0)
/* Return codes are shown with their names. */
#define CHECK_RET(call, want) check_ret(__FILE__, __LINE__, #call, call, want)
#define MUST(call) CHECK_RET(call, 0)
#define CHECK_EQ(got, want) check_eq(__FILE__, __LINE__, #got, got, want)
#define CHECK_MEM(got, want, len) check_mem(__FILE__, __LINE__, #got, got, want, len)
/* What the test is about to try: shown with a failure, until replaced. NULL clears it. */
__attribute__((format(printf, 1, 2))) void note(const char *fmt, ...);

/* ---- time: a deadline that a run can stretch; a wait loop is `struct wait w = wait_begin(); while (!x)
 * wait_more(&w, ..)` */

double now_ms(void);
struct wait {
	double begun, until;
	unsigned int rounds;
};
struct wait wait_begin(void);
/* Drive all sides once; fail with @what if the deadline has passed. In a long wait others get the processor. */
void wait_more(struct test *t, struct wait *w, const char *what);
/* Leave the processor to others for a millisecond, in a loop that waits for something to happen, or not to happen. */
void nap(void);

/* ---- ownership */

/* Close @fid, or call @fn(arg), when the test ends. Returns its argument. */
void own_fid(struct test *t, struct fid *fid);
void own(struct test *t, void (*fn)(void *arg), void *arg);
/* The test closes a fid of its own earlier: it must return 0. */
void close_now(struct test *t, struct fid *fid);
/* The test gives up @fid to nobody: it has been closed already. */
void disown(struct test *t, void *arg);
/* Zeroed memory that lives as long as the test. */
void *mem(struct test *t, size_t len);
/* Memory that lives as long as the test, filled by pattern @seed; and the check that it holds that pattern. */
void *mem_pattern(struct test *t, size_t len, unsigned int seed);
void fill(void *buf, size_t len, unsigned int seed);
void check_fill(const void *buf, size_t len, unsigned int seed);

#endif
