/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The page: made with the first fabric, removed at the end of the process. State: the page, under one mutex; the
 * settings, constant after fab_stats_init().
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "stats.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/pagefile.h"
#include "fabric.h"
#include "fid.h"
#include "log.h"
#include "stats_why.h"

#include <rdma/providers/fi_prov.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t page_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fab_pagefile page_file;
static int wanted = 1;			/* FI_STATS */
static int dumps;			/* FI_STATS_DUMP */
static int stuck_after_s;		/* FI_STUCK_AFTER; 0: off */

#define PAGE_LEN	((sizeof(struct fi_stats_page) + 4095) & ~(size_t) 4095)

/* ---- labels ---- */

struct label {
	const char *name;
	enum fi_stats_table_kind table;
	enum fi_stats_label_kind kind;
	size_t offset;
};

#define ENGINE(member, kind)	{ "engine_" #member, FI_STATS_ENGINES, kind, offsetof(struct fi_stats_engine, member) }
#define EP(name, member)	{ name, FI_STATS_EPS, FI_STATS_COUNTER, offsetof(struct fi_stats_ep, member) }
#define PEER(member)		{ #member, FI_STATS_PEERS, FI_STATS_COUNTER, offsetof(struct fi_stats_peer, member) }
#define PEER_OP(name, code)									\
	{ name "_ops", FI_STATS_PEERS, FI_STATS_COUNTER, offsetof(struct fi_stats_peer, op[code].ops) },	\
	{ name "_bytes", FI_STATS_PEERS, FI_STATS_COUNTER, offsetof(struct fi_stats_peer, op[code].bytes) }

static const struct label labels[] = {
	ENGINE(passes, FI_STATS_COUNTER),
	ENGINE(glances, FI_STATS_COUNTER),
	ENGINE(longest_gap, FI_STATS_TICKS),
	ENGINE(pending, FI_STATS_GAUGE),
	EP("receives_posted", posted[0]),
	EP("tagged_receives_posted", posted[1]),
	PEER_OP("send", FI_STATS_SEND),
	PEER_OP("tagged_send", FI_STATS_TSEND),
	PEER_OP("collective_send", FI_STATS_COLL_SEND),
	PEER_OP("write", FI_STATS_WRITE),
	PEER_OP("atomic", FI_STATS_ATOMIC),
	PEER_OP("read", FI_STATS_READ),
	PEER_OP("fetch_atomic", FI_STATS_FETCH_ATOMIC),
	PEER_OP("collective", FI_STATS_COLLECTIVE),
	PEER_OP("receive", FI_STATS_RECV),
	PEER_OP("tagged_receive", FI_STATS_TRECV),
	PEER_OP("collective_receive", FI_STATS_COLL_RECV),
	PEER_OP("remote_write", FI_STATS_REMOTE_WRITE),
	PEER_OP("remote_read", FI_STATS_REMOTE_READ),
	PEER_OP("remote_atomic", FI_STATS_REMOTE_ATOMIC),
	PEER_OP("remote_fetch_atomic", FI_STATS_REMOTE_FETCH_ATOMIC),
	PEER(errors),
	PEER(unexpected),
	PEER(unexpected_bytes),
	PEER(announced),
	PEER(announced_by_peer),
	PEER(credit_waits),
	PEER(full_waits),
	PEER(retries),
	PEER(connects),
	PEER(losses),
	PEER(parks),
	PEER(queued),
	PEER(dequeued),
};
_Static_assert(fab_countof(labels) <= FI_STATS_LABELS, "the header has room for all labels");

/* ---- the header ---- */

static void set_table(struct fi_stats_header *header, enum fi_stats_table_kind kind, size_t offset, size_t size,
		      size_t cnt)
{
	header->table[kind] = (struct fi_stats_table) { offset, (uint32_t) size, (uint32_t) cnt };
}

#define SET_TABLE(header, kind, member)							\
	set_table(header, kind, offsetof(struct fi_stats_page, member),			\
		  sizeof(((struct fi_stats_page *) 0)->member[0]),			\
		  fab_countof(((struct fi_stats_page *) 0)->member))

/* The arguments of the program, with spaces between them. */
static void read_command(char *to, size_t len)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, to, len - 1);

	if (fd >= 0)
		close(fd);
	while (n > 0 && !to[n - 1])
		n--;
	for (ssize_t i = 0; i < n; i++)
		if ((unsigned char) to[i] < ' ' || to[i] == 127)
			to[i] = ' ';
	to[n > 0 ? n : 0] = 0;
}

/* The rank of this process, as its launcher tells it. */
static void read_rank(char *to, size_t len)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK" };

	for (size_t i = 0; i < fab_countof(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value && strlen(value) < len && strspn(value, "0123456789") == strlen(value)) {
			strcpy(to, value);
			return;
		}
	}
}

static void fill_header(struct fi_stats_page *page)
{
	struct fi_stats_header *header = &page->header;
	struct timespec real;

	header->version = FI_STATS_VERSION;
	header->size = sizeof(*header);
	header->page_size = PAGE_LEN;
	header->pid = (uint32_t) getpid();
	header->uid = geteuid();
	header->start = fab_process_start(header->pid);
	header->clock = FAB_TICKS_ARE_TSC ? FI_STATS_CLOCK_TSC : FI_STATS_CLOCK_MONOTONIC;
	header->open_ns = fab_now_ns();
	header->open_ticks = fab_ticks();
	clock_gettime(CLOCK_REALTIME, &real);
	header->open_real_ns = (uint64_t) real.tv_sec * 1000000000 + (uint64_t) real.tv_nsec;
	snprintf(header->library, sizeof(header->library), "%s", WEFT_VERSION);
	gethostname(header->host, sizeof(header->host) - 1);
	read_command(header->command, sizeof(header->command));
	read_rank(header->rank, sizeof(header->rank));
	SET_TABLE(header, FI_STATS_ENGINES, engine);
	SET_TABLE(header, FI_STATS_EPS, ep);
	SET_TABLE(header, FI_STATS_PEERS, peer);
	SET_TABLE(header, FI_STATS_WAITS, wait);
	SET_TABLE(header, FI_STATS_EVENTS, event);
	SET_TABLE(header, FI_STATS_ERRORS, error);
	SET_TABLE(header, FI_STATS_FIGURES, figure);
	header->table_cnt = FI_STATS_TABLES;
	header->label_cnt = fab_countof(labels);
	for (size_t i = 0; i < fab_countof(labels); i++) {
		struct fi_stats_label *label = &header->label[i];

		snprintf(label->name, sizeof(label->name), "%s", labels[i].name);
		label->table = labels[i].table;
		label->kind = labels[i].kind;
		label->offset = labels[i].offset;
	}
	/* last: a reader takes a page without it for one that is being made */
	__atomic_store_n(&header->magic, FI_STATS_MAGIC, __ATOMIC_RELEASE);
}

/* ---- its life ---- */

/* The child has the counters of objects that it has inherited, and nobody sees them. */
static void page_inherit(void)
{
	pthread_mutex_init(&page_lock, NULL);
	fab_pagefile_inherit(&page_file);
}

struct fi_stats_page *fab_stats_page(void)
{
	static bool watches_forks;
	struct fi_stats_page *page;

	pthread_mutex_lock(&page_lock);
	if (!watches_forks)
		watches_forks = !pthread_atfork(NULL, NULL, page_inherit);
	if (!fab_pagefile_open(&page_file, "weft", PAGE_LEN, wanted && watches_forks)) {
		page = page_file.mem;
		if (!page->header.magic)
			fill_header(page);
	}
	page = page_file.mem;
	pthread_mutex_unlock(&page_lock);
	return page;
}

const struct fi_stats_page *fab_stats_have(void)
{
	return page_file.mem;
}

const char *fab_stats_path(void)
{
	return page_file.has_file ? page_file.path : NULL;
}

void fab_stats_init(void)
{
	fi_param_define(NULL, "stats", FI_PARAM_BOOL,
			"Keep the page of counters and waiting operations, which fi_why(1) reads, in a "
			"file (default: yes). It is in $XDG_RUNTIME_DIR/weft, $TMPDIR/weft-UID or "
			"/dev/shm/weft-UID");
	fi_param_get_bool(NULL, "stats", &wanted);
	fi_param_define(NULL, "stats_dump", FI_PARAM_BOOL,
			"Print on stderr, when the process ends, which operations still wait, as fi_why(1) does "
			"(default: no)");
	fi_param_get_bool(NULL, "stats_dump", &dumps);
	fi_param_define(NULL, "stuck_after", FI_PARAM_INT,
			"Print on stderr which operations wait, as fi_why(1) does, when one has waited for so many "
			"seconds (default: 0, never). A program that makes no progress prints nothing: ask fi_why");
	fi_param_get_int(NULL, "stuck_after", &stuck_after_s);
}

static struct fi_stats_source source_of(const struct fi_stats_page *page)
{
	return (struct fi_stats_source) { page, PAGE_LEN, fab_ticks(), fab_now_ns(), 'R' };
}

/* Print what waits in this process. */
static void dump(const struct fi_stats_page *page, uint64_t after_ns)
{
	const struct fi_stats_source source = source_of(page);
	size_t len = fab_stats_explain(&source, 1, 1, after_ns, FI_STATS_FORM_TEXT, NULL, 0, NULL);
	char *text = malloc(len + 1);

	if (!text)
		return;
	fab_stats_explain(&source, 1, 1, after_ns, FI_STATS_FORM_TEXT, text, len + 1, NULL);
	fputs(text, stderr);
	free(text);
}

/* Each operation is told of once, and there is one text in FI_STUCK_AFTER at most. */
uint64_t fab_stats_tell_stuck(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t told_until;		/* operations that wait since then, or longer, were told of */
	static uint64_t told_ns;
	const uint64_t after_ns = (uint64_t) stuck_after_s * 1000000000;
	const struct fi_stats_page *page = page_file.mem;
	uint64_t since, next_ns, now = fab_now_ns();
	struct fi_stats_source source;

	if (stuck_after_s <= 0 || !page || pthread_mutex_trylock(&lock))
		return 0;
	source = source_of(page);
	since = fab_stats_waiting(&source, after_ns, &next_ns);
	if (since > told_until && told_ns && now - told_ns < after_ns) {
		next_ns = told_ns + after_ns - now;
	} else if (since > told_until) {
		told_until = since;
		told_ns = now;
		dump(page, after_ns);
	}
	pthread_mutex_unlock(&lock);
	return next_ns;
}

void fab_stats_stop(void)
{
	struct fi_stats_page *page = page_file.mem;

	if (page && dumps)
		dump(page, 0);
	if (page)
		page->header.closed = 1;
	fab_pagefile_remove(&page_file);
}

/* ---- fi_open("stats") ---- */

static const struct fi_stats_page *stats_ops_page(struct fid *fid)
{
	(void) fid;
	return fab_stats_page();
}

static const char *stats_ops_path(struct fid *fid)
{
	(void) fid;
	return fab_stats_path();
}

static size_t stats_ops_explain(struct fid *fid, const struct fi_stats_source *source, size_t cnt, size_t about,
				uint64_t after_ns, enum fi_stats_form form, char *buf, size_t len,
				struct fi_stats_verdict *verdict)
{
	(void) fid;
	return fab_stats_explain(source, cnt, about, after_ns, form, buf, len, verdict);
}

static int stats_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	static struct fi_ops_stats stats_ops = {
		.size = sizeof(struct fi_ops_stats),
		.page = stats_ops_page,
		.path = stats_ops_path,
		.explain = stats_ops_explain,
	};

	(void) fid;
	(void) context;
	if (flags)
		return -FI_EBADFLAGS;
	if (!ops || !name || strcmp(name, FI_STATS_OPS_1))
		return -FI_EINVAL;
	*ops = &stats_ops;
	return 0;
}

static int stats_close(struct fid *fid)
{
	free(fid);
	return 0;
}

int fab_stats_open(struct fid **fid, void *context)
{
	static struct fi_ops ops = {
		.size = sizeof(struct fi_ops),
		.close = stats_close,
		.bind = fab_fid_no_bind,
		.control = fab_fid_no_control,
		.ops_open = stats_ops_open,
	};
	struct fid *stats = calloc(1, sizeof(*stats));

	if (!stats)
		return -FI_ENOMEM;
	fab_init();
	*stats = (struct fid) { .fclass = FI_CLASS_UNSPEC, .context = context, .ops = &ops };
	*fid = stats;
	return 0;
}
