/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Vectors of datagram addresses, which are none of sockets and so not what test/conform makes up. */
#include "link.h"

#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define CNT	200		/* more than a chunk or two */

/* Addresses like that of an endpoint, with numbers of queue pairs from `first` on. */
static void make_names(char (*names)[DGRAM_NAME_LEN], const struct dgram *like, uint32_t first, size_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		memcpy(names[i], like->name, DGRAM_NAME_LEN);
		memcpy(names[i] + 16, &(uint32_t) { first + i }, sizeof(uint32_t));
	}
}

static void open_one(struct dgram *dgram)
{
	struct fi_info *hints = dgram_hints_new(), *info;

	MUST(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	dgram_open(dgram, info);
	fi_freeinfo(info);
}

static void must_be_at(const struct dgram *dgram, fi_addr_t addr, const char *name)
{
	char there[DGRAM_NAME_LEN];
	size_t len = sizeof(there);

	MUST(fi_av_lookup(dgram->av, addr, there, &len));
	MUST_BE(len == sizeof(there) && !memcmp(there, name, sizeof(there)));
}

static void must_be_free(const struct dgram *dgram, fi_addr_t addr)
{
	char there[DGRAM_NAME_LEN];
	size_t len = sizeof(there);

	MUST_FAIL(fi_av_lookup(dgram->av, addr, there, &len), FI_EINVAL);
	MUST_FAIL(fi_send(dgram->end.ep, dgram->end.room, 48, fi_mr_desc(dgram->end.mr), addr, NULL), FI_EINVAL);
}

/* Numbered from 0 on, the lowest free number first; each address once, as often as it was inserted. */
static void numbers(void)
{
	static char names[CNT + 3][DGRAM_NAME_LEN];
	static fi_addr_t addr[CNT], again[CNT];
	fi_addr_t some[] = { 150, 3, 70 }, next[4];
	struct dgram one = { 0 };

	open_one(&one);
	make_names(names, &one, 5000, CNT + 3);
	MUST_BE(fi_av_insert(one.av, names, CNT, addr, 0, NULL) == CNT);
	for (size_t i = 0; i < CNT; i++) {
		MUST_BE(addr[i] == i);
		must_be_at(&one, i, names[i]);
	}
	MUST_BE(fi_av_insert(one.av, names, CNT, again, 0, NULL) == CNT && !memcmp(again, addr, sizeof(addr)));
	MUST(fi_av_remove(one.av, some, 3, 0));
	must_be_at(&one, 3, names[3]);
	MUST(fi_av_remove(one.av, some, 3, 0));
	must_be_free(&one, 3);
	MUST_FAIL(fi_av_remove(one.av, some, 3, 0), FI_EINVAL);
	MUST_BE(fi_av_insert(one.av, names[CNT], 3, next, 0, NULL) == 3);
	MUST_BE(next[0] == 3 && next[1] == 70 && next[2] == 150);
	MUST_BE(fi_av_insert(one.av, names[3], 1, next, 0, NULL) == 1 && next[0] == CNT);
	must_be_free(&one, CNT + 1);
	dgram_close(&one);
}

/* Of three the device refuses the second. */
static void one_is_refused(void)
{
	char names[3][DGRAM_NAME_LEN];
	struct dgram one = { 0 };
	fi_addr_t addr[3];
	int errs[3];

	open_one(&one);
	make_names(names, &one, 5000, 3);
	MUST_BE(fi_av_insert(one.av, names, 3, addr, FI_SYNC_ERR, errs) == 2);
	MUST_BE(addr[0] == 0 && addr[1] == FI_ADDR_NOTAVAIL && addr[2] == 1);
	MUST_BE(!errs[0] && errs[1] == FI_ENOMEM && !errs[2]);
	MUST_BE(fi_av_insert(one.av, names[1], 1, addr, 0, NULL) == 1 && addr[0] == 2);
	dgram_close(&one);
}

static void calls_that_are_wrong(void)
{
	struct dgram one = { 0 };
	fi_addr_t addr;

	open_one(&one);
	MUST_FAIL(fi_av_insert(one.av, NULL, 1, &addr, 0, NULL), FI_EINVAL);
	MUST_FAIL(fi_av_insert(one.av, one.name, 1, &addr, FI_SYNC_ERR, NULL), FI_EINVAL);
	MUST_FAIL(fi_av_insert(one.av, one.name, 1, &addr, FI_PEER, NULL), FI_EBADFLAGS);
	MUST_FAIL(fi_av_insertsvc(one.av, NULL, "1", &addr, 0, NULL), FI_EINVAL);
	MUST_BE(!fi_av_insert(one.av, NULL, 0, NULL, 0, NULL));
	MUST_FAIL(fi_close(&one.av->fid), FI_EBUSY);
	dgram_close(&one);
}

static void results_as_events(void)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = FI_EVENT };
	char names[3][DGRAM_NAME_LEN];
	struct fi_eq_entry entry;
	struct dgram one = { 0 };
	struct fid_av *av;
	fi_addr_t addr[3];
	uint32_t event;

	open_one(&one);
	make_names(names, &one, 5000, 3);
	MUST(fi_av_open(one.end.domain, &attr, &av, NULL));
	MUST_FAIL(fi_av_insert(av, names, 3, addr, 0, NULL), FI_ENOEQ);
	MUST(fi_av_bind(av, &one.end.eq->fid, 0));
	MUST(fi_av_insert(av, names, 3, addr, 0, &one));
	MUST_BE(fi_eq_read(one.end.eq, &event, &entry, sizeof(entry), 0) == sizeof(entry));
	MUST_BE(event == FI_AV_COMPLETE && entry.fid == &av->fid && entry.context == &one && entry.data == 3);
	MUST(fi_close(&av->fid));
	dgram_close(&one);
}

static const struct vcase cases[] = {
	{ "numbers", NULL, numbers, "the address vector has no fi_addr 150" },
	{ "one is refused", "SOFTVERBS_FAIL=ibv_create_ah:3=ENOMEM", one_is_refused, "ibv_create_ah: Cannot allocate" },
	{ "calls that are wrong", NULL, calls_that_are_wrong, "endpoints use it" },
	{ "results as events", NULL, results_as_events, NULL },
};

int main(void)
{
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}
