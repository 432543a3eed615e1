/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What two libraries answer to the same random hints: hints OURS THEIRS SEED COUNT, the first two being files.
 *
 * Prints a line for each kind of difference, with the number of hints that show it and the smallest of them:
 *
 *	tcp/msg rx_attr->caps +FI_MULTI_RECV # 31, e.g. version=1.9 caps=FI_MSG
 *
 * A "+" is a bit that only we answer, a "-" one that only they do; for capabilities "to some" or "to none" says whether
 * the hints ask for any. Values that are no bits are "theirs > ours". Where only one library has an answer, the line
 * says so and ends with the hints that make the difference. Hints shrink before they are printed: a field that can be
 * dropped, or a bit, is dropped.
 *
 * Both libraries are loaded here, neither is linked with. Only members that both have are touched.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define COUNTOF(array)	(sizeof(array) / sizeof(*(array)))
#define KEY_MAX		1024

struct library {
	const char *file;
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	char *(*tostr)(const void *data, enum fi_type type);
};
static struct library ours, theirs;

/* The endpoints that both libraries have, with the name of the provider in each. */
static const struct {
	const char *name, *ours, *theirs;
	enum fi_ep_type type;
} providers[] = {
	{ "tcp/msg", "tcp", "tcp", FI_EP_MSG },
	{ "tcp/rdm", "tcp", "net", FI_EP_RDM },
	{ "rxm/rdm", "tcp;ofi_rxm", "tcp;ofi_rxm", FI_EP_RDM },
	{ "udp/dgram", "udp", "udp", FI_EP_DGRAM },
	{ "sockets/rdm", "sockets", "sockets", FI_EP_RDM },
	{ "sockets/msg", "sockets", "sockets", FI_EP_MSG },
	{ "sockets/dgram", "sockets", "sockets", FI_EP_DGRAM },
};

static const uint32_t versions[] = {
	FI_VERSION(1, 0), FI_VERSION(1, 4), FI_VERSION(1, 5), FI_VERSION(1, 9), FI_VERSION(1, 15), FI_VERSION(1, 17),
};

/* ---- the fields ---- */

enum part { INFO, TX, RX, EP, DOMAIN };

/* How a value for hints is drawn, and how answers are compared. */
enum kind {
	BITS,		/* a subset of one of `values`; compared bit by bit */
	ONE_OF,		/* one of `values`; compared as a whole */
	LIMIT,		/* one of `values`; libraries may have other limits, so answers are not compared */
};

struct field {
	const char *name;
	enum part part;
	size_t offset, size;
	enum kind kind;
	int type;		/* enum fi_type, or -1: a number */
	unsigned often;		/* hints in a hundred that have it */
	uint64_t values[8];	/* up to the first 0 */
};

#define FIELD(part, type, member)	part, offsetof(struct type, member), sizeof(((struct type *) 0)->member)
#define PRIMARY		(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)
#define LOCAL_ACCESS	(FI_SEND | FI_RECV | FI_READ | FI_WRITE)
#define ACCESS		(LOCAL_ACCESS | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define SECONDARY	(FI_MULTI_RECV | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_FENCE | FI_TRIGGER | \
			 FI_RMA_EVENT)
#define LEVELS		(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)
#define ORDERS		(FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_RAR | FI_ORDER_WAW | FI_ORDER_WAS | FI_ORDER_RAW)
#define SHARED		((uint64_t) FI_SHARED_CONTEXT)
#define NEW_MODES	(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT)

#define CAPS	0		/* index of caps in the table */

static const struct field fields[] = {
	{ "caps", FIELD(INFO, fi_info, caps), BITS, FI_TYPE_CAPS, 85,
	  { FI_MSG, FI_MSG | FI_TAGGED, PRIMARY, PRIMARY | ACCESS, FI_MSG | LOCAL_ACCESS, PRIMARY | SECONDARY,
	    PRIMARY | ACCESS | SECONDARY | FI_DIRECTED_RECV | FI_SHARED_AV } },
	{ "mode", FIELD(INFO, fi_info, mode), ONE_OF, FI_TYPE_MODE, 60,
	  { FI_CONTEXT, FI_CONTEXT | FI_CONTEXT2, FI_LOCAL_MR, UINT64_MAX, UINT64_MAX, UINT64_MAX } },
	{ "addr_format", FIELD(INFO, fi_info, addr_format), ONE_OF, FI_TYPE_ADDR_FORMAT, 10,
	  { FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6, FI_SOCKADDR_IB, FI_ADDR_STR } },
	{ "tx_attr->caps", FIELD(TX, fi_tx_attr, caps), BITS, FI_TYPE_CAPS, 15,
	  { FI_MSG, PRIMARY, PRIMARY | LOCAL_ACCESS, PRIMARY | SECONDARY } },
	{ "tx_attr->mode", FIELD(TX, fi_tx_attr, mode), ONE_OF, FI_TYPE_MODE, 10, { FI_CONTEXT, UINT64_MAX } },
	{ "tx_attr->op_flags", FIELD(TX, fi_tx_attr, op_flags), BITS, FI_TYPE_OP_FLAGS, 15,
	  { FI_COMPLETION, FI_COMPLETION | LEVELS, FI_COMPLETION | FI_INJECT | LEVELS } },
	{ "tx_attr->msg_order", FIELD(TX, fi_tx_attr, msg_order), BITS, FI_TYPE_MSG_ORDER, 20,
	  { FI_ORDER_SAS, ORDERS } },
	{ "tx_attr->comp_order", FIELD(TX, fi_tx_attr, comp_order), BITS, FI_TYPE_MSG_ORDER, 8,
	  { FI_ORDER_STRICT, FI_ORDER_DATA } },
	{ "tx_attr->inject_size", FIELD(TX, fi_tx_attr, inject_size), LIMIT, -1, 10, { 8, 64, 128, 1 << 20 } },
	{ "tx_attr->size", FIELD(TX, fi_tx_attr, size), LIMIT, -1, 10, { 1, 64, 256, 1 << 20 } },
	{ "tx_attr->iov_limit", FIELD(TX, fi_tx_attr, iov_limit), LIMIT, -1, 10, { 1, 4, 64 } },
	{ "tx_attr->rma_iov_limit", FIELD(TX, fi_tx_attr, rma_iov_limit), LIMIT, -1, 8, { 1, 4 } },
	{ "rx_attr->caps", FIELD(RX, fi_rx_attr, caps), BITS, FI_TYPE_CAPS, 15,
	  { FI_MSG, PRIMARY, PRIMARY | FI_RECV, PRIMARY | SECONDARY } },
	{ "rx_attr->mode", FIELD(RX, fi_rx_attr, mode), ONE_OF, FI_TYPE_MODE, 10, { FI_CONTEXT, UINT64_MAX } },
	{ "rx_attr->op_flags", FIELD(RX, fi_rx_attr, op_flags), BITS, FI_TYPE_OP_FLAGS, 10,
	  { FI_COMPLETION, FI_COMPLETION | FI_MULTI_RECV } },
	{ "rx_attr->msg_order", FIELD(RX, fi_rx_attr, msg_order), BITS, FI_TYPE_MSG_ORDER, 15,
	  { FI_ORDER_SAS, ORDERS } },
	{ "rx_attr->comp_order", FIELD(RX, fi_rx_attr, comp_order), BITS, FI_TYPE_MSG_ORDER, 8,
	  { FI_ORDER_STRICT, FI_ORDER_DATA } },
	{ "rx_attr->size", FIELD(RX, fi_rx_attr, size), LIMIT, -1, 10, { 1, 64, 256, 1 << 20 } },
	{ "rx_attr->iov_limit", FIELD(RX, fi_rx_attr, iov_limit), LIMIT, -1, 8, { 1, 4, 64 } },
	{ "ep_attr->protocol", FIELD(EP, fi_ep_attr, protocol), LIMIT, FI_TYPE_PROTOCOL, 5,
	  { FI_PROTO_SOCK_TCP, FI_PROTO_UDP, FI_PROTO_RXM } },
	{ "ep_attr->max_msg_size", FIELD(EP, fi_ep_attr, max_msg_size), LIMIT, -1, 8,
	  { 1, 1024, 1 << 20, 1ULL << 40 } },
	{ "ep_attr->mem_tag_format", FIELD(EP, fi_ep_attr, mem_tag_format), LIMIT, -1, 8,
	  { 0xff, 0xffffffff, UINT64_MAX } },
	{ "ep_attr->tx_ctx_cnt", FIELD(EP, fi_ep_attr, tx_ctx_cnt), LIMIT, -1, 8, { 1, 2, SHARED } },
	{ "ep_attr->rx_ctx_cnt", FIELD(EP, fi_ep_attr, rx_ctx_cnt), LIMIT, -1, 8, { 1, 2, SHARED } },
	{ "domain_attr->threading", FIELD(DOMAIN, fi_domain_attr, threading), ONE_OF, FI_TYPE_THREADING, 40,
	  { FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT } },
	{ "domain_attr->control_progress", FIELD(DOMAIN, fi_domain_attr, control_progress), ONE_OF, FI_TYPE_PROGRESS,
	  20, { FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL } },
	{ "domain_attr->data_progress", FIELD(DOMAIN, fi_domain_attr, data_progress), ONE_OF, FI_TYPE_PROGRESS, 25,
	  { FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL } },
	{ "domain_attr->resource_mgmt", FIELD(DOMAIN, fi_domain_attr, resource_mgmt), ONE_OF, -1, 25,
	  { FI_RM_DISABLED, FI_RM_ENABLED } },
	{ "domain_attr->av_type", FIELD(DOMAIN, fi_domain_attr, av_type), ONE_OF, FI_TYPE_AV_TYPE, 25,
	  { FI_AV_MAP, FI_AV_TABLE } },
	{ "domain_attr->mr_mode", FIELD(DOMAIN, fi_domain_attr, mr_mode), ONE_OF, FI_TYPE_MR_MODE, 75,
	  { FI_MR_BASIC, FI_MR_SCALABLE, NEW_MODES, NEW_MODES, FI_MR_LOCAL,
	    FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY, FI_MR_ENDPOINT | FI_MR_RAW } },
	{ "domain_attr->mr_key_size", FIELD(DOMAIN, fi_domain_attr, mr_key_size), LIMIT, -1, 8, { 1, 4, 8 } },
	{ "domain_attr->cq_data_size", FIELD(DOMAIN, fi_domain_attr, cq_data_size), LIMIT, -1, 8, { 4, 8 } },
	{ "domain_attr->cntr_cnt", FIELD(DOMAIN, fi_domain_attr, cntr_cnt), LIMIT, -1, 5, { 1, 100 } },
};
static const struct field domain_caps = {
	"domain_attr->caps", FIELD(DOMAIN, fi_domain_attr, caps), BITS, FI_TYPE_CAPS, 0, { 0 },
};

/* One set of hints: the version, and the value of each field. */
struct sample {
	unsigned provider;
	uint32_t version;
	uint64_t value[COUNTOF(fields)];
};

static void *place(const struct fi_info *info, const struct field *field)
{
	const void *parts[] = { info, info->tx_attr, info->rx_attr, info->ep_attr, info->domain_attr };

	return (char *) parts[field->part] + field->offset;
}

static uint64_t get(const struct fi_info *info, const struct field *field)
{
	uint64_t value = 0;

	memcpy(&value, place(info, field), field->size);	/* little-endian, as Debian's amd64 is */
	return value;
}

/* ---- random hints ---- */

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	uint64_t x = state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	x ^= x >> 31;
	return below ? x % below : x;
}

static uint64_t draw_value(const struct field *field)
{
	unsigned cnt = 0;
	uint64_t value;

	while (cnt < COUNTOF(field->values) && field->values[cnt])
		cnt++;
	value = field->values[draw(cnt)];
	/* half of all sets are whole, so that hints often match */
	return field->kind == BITS && draw(2) ? value & draw(0) : value;
}

static struct sample draw_sample(void)
{
	struct sample sample = { .provider = draw(COUNTOF(providers)), .version = versions[draw(COUNTOF(versions))] };

	for (unsigned i = 0; i < COUNTOF(fields); i++)
		if (draw(100) < fields[i].often)
			sample.value[i] = draw_value(&fields[i]);
	return sample;
}

/* ---- asking ---- */

/* The first entry of the provider itself, not of a layer above it. The caller frees it; NULL: there is none. */
static struct fi_info *ask(const struct library *library, const struct sample *sample)
{
	const char *name = library == &ours ? providers[sample->provider].ours : providers[sample->provider].theirs;
	struct fi_info *hints = library->dupinfo(NULL), *list = NULL, *info, *found;

	hints->fabric_attr->prov_name = strdup(name);
	hints->ep_attr->type = providers[sample->provider].type;
	for (unsigned i = 0; i < COUNTOF(fields); i++)
		memcpy(place(hints, &fields[i]), &sample->value[i], fields[i].size);
	library->getinfo(sample->version, "127.0.0.1", "7471", 0, hints, &list);
	library->freeinfo(hints);
	for (info = list; info && strcmp(info->fabric_attr->prov_name, name); info = info->next)
		;
	found = info ? library->dupinfo(info) : NULL;
	if (list)
		library->freeinfo(list);
	return found;
}

/* ---- differences ---- */

/* The differences of one sample, each a line without provider and example. */
struct diffs {
	unsigned cnt;
	char text[64][KEY_MAX / 2];
};

static const char *text_of(uint64_t value, int type, size_t size)
{
	static char number[32];
	uint32_t small = value;

	if (type >= 0 && value)
		return ours.tostr(size == sizeof(small) ? (void *) &small : (void *) &value, type);
	snprintf(number, sizeof(number), "%" PRIu64, value);
	return number;
}

static void add(struct diffs *diffs, const char *name, const char *sign, const char *what)
{
	if (diffs->cnt < COUNTOF(diffs->text))
		snprintf(diffs->text[diffs->cnt++], sizeof(*diffs->text), "%.60s %.200s%.200s", name, sign, what);
}

static void compare(struct diffs *diffs, const struct sample *sample, const struct field *field, uint64_t our,
		    uint64_t their)
{
	char before[KEY_MAX], bit_text[KEY_MAX];

	for (unsigned bit = 0; field->kind == BITS && bit < 64; bit++) {
		if (!((our ^ their) >> bit & 1))
			continue;
		snprintf(bit_text, sizeof(bit_text), "%s%s", text_of(1ULL << bit, field->type, field->size),
			 field->type != FI_TYPE_CAPS ? "" : sample->value[CAPS] ? " to some" : " to none");
		add(diffs, field->name, our >> bit & 1 ? "+" : "-", bit_text);
	}
	if (field->kind != ONE_OF || our == their)
		return;
	snprintf(before, sizeof(before), "%s > ", text_of(their, field->type, field->size));
	add(diffs, field->name, before, text_of(our, field->type, field->size));
}

static void find_diffs(const struct sample *sample, struct diffs *diffs)
{
	struct fi_info *our = ask(&ours, sample), *their = ask(&theirs, sample);

	diffs->cnt = 0;
	if (!our != !their)
		add(diffs, "answered", "", our ? "only by us" : "only by them");
	if (our && their) {
		for (unsigned i = 0; i < COUNTOF(fields); i++)
			compare(diffs, sample, &fields[i], get(our, &fields[i]), get(their, &fields[i]));
		compare(diffs, sample, &domain_caps, get(our, &domain_caps), get(their, &domain_caps));
	}
	if (our)
		ours.freeinfo(our);
	if (their)
		theirs.freeinfo(their);
}

static bool has_diff(const struct sample *sample, const char *key)
{
	static struct diffs diffs;

	find_diffs(sample, &diffs);
	for (unsigned i = 0; i < diffs.cnt; i++)
		if (!strcmp(diffs.text[i], key))
			return true;
	return false;
}

/* Drop each field, and each bit, without which the difference stays. */
static void shrink(struct sample *sample, const char *key)
{
	for (unsigned i = 0; i < COUNTOF(fields); i++) {
		uint64_t value = sample->value[i];

		if (!value)
			continue;
		sample->value[i] = 0;
		if (has_diff(sample, key))
			continue;
		sample->value[i] = value;
		for (unsigned bit = 0; fields[i].kind == BITS && bit < 64; bit++) {
			if (!(value >> bit & 1))
				continue;
			sample->value[i] &= ~(1ULL << bit);
			if (!has_diff(sample, key))
				sample->value[i] |= 1ULL << bit;
		}
	}
}

static void put_sample(char *text, size_t len, const struct sample *sample)
{
	size_t used = snprintf(text, len, "version=%u.%u", FI_MAJOR(sample->version), FI_MINOR(sample->version));

	for (unsigned i = 0; i < COUNTOF(fields) && used < len; i++)
		if (sample->value[i])
			used += snprintf(text + used, len - used, " %s=%s", fields[i].name,
					 sample->value[i] == UINT64_MAX ? "all" :
					 text_of(sample->value[i], fields[i].type, fields[i].size));
}

/* ---- the report ---- */

static struct line {
	char key[KEY_MAX], example[KEY_MAX];
	unsigned cnt;
} lines[2000];
static unsigned line_cnt;

static void report(const struct sample *sample, const char *diff)
{
	struct sample small = *sample;
	char key[2 * KEY_MAX], example[KEY_MAX];
	bool answered = !strncmp(diff, "answered", 8);

	snprintf(key, sizeof(key), "%s %s", providers[sample->provider].name, diff);
	if (answered) {		/* the hints are what tells such differences apart */
		shrink(&small, diff);
		put_sample(example, sizeof(example), &small);
		snprintf(key + strlen(key), KEY_MAX, ":%s", strchr(example, ' ') ? strchr(example, ' ') : "");
	}
	for (unsigned i = 0; i < line_cnt; i++) {
		if (!strcmp(lines[i].key, key)) {
			lines[i].cnt++;
			return;
		}
	}
	if (line_cnt == COUNTOF(lines))
		return;
	if (!answered) {
		shrink(&small, diff);
		put_sample(example, sizeof(example), &small);
	}
	snprintf(lines[line_cnt].key, KEY_MAX, "%.*s", KEY_MAX - 1, key);
	snprintf(lines[line_cnt].example, KEY_MAX, "%s", example);
	lines[line_cnt++].cnt = 1;
}

static int open_library(struct library *library, const char *file)
{
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		return -1;
	}
	*(void **) &library->getinfo = dlsym(handle, "fi_getinfo");
	*(void **) &library->freeinfo = dlsym(handle, "fi_freeinfo");
	*(void **) &library->dupinfo = dlsym(handle, "fi_dupinfo");
	*(void **) &library->tostr = dlsym(handle, "fi_tostr");
	return library->getinfo && library->freeinfo && library->dupinfo && library->tostr ? 0 : -1;
}

int main(int argc, char **argv)
{
	static struct diffs diffs;

	if (argc != 5 || open_library(&ours, argv[1]) || open_library(&theirs, argv[2])) {
		fprintf(stderr, "usage: %s OURS THEIRS SEED COUNT\n", argv[0]);
		return 2;
	}
	state = strtoull(argv[3], NULL, 0);
	for (long i = strtol(argv[4], NULL, 0); i; i--) {
		struct sample sample = draw_sample();

		find_diffs(&sample, &diffs);
		for (unsigned k = 0; k < diffs.cnt; k++)
			report(&sample, diffs.text[k]);
	}
	for (unsigned i = 0; i < line_cnt; i++)
		printf("%s # %u, e.g. %s\n", lines[i].key, lines[i].cnt, lines[i].example);
	return 0;
}
