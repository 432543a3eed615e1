/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program of an older libfabric: compiled for each generation with the structs of its release, which declare prints
 * and the compiler takes by -include, and bound to the symbols of its day. Our headers play no part. Whatever it hands
 * to the library ends where an inaccessible page begins, so the library is caught when it reads or writes what came
 * into a struct later.
 *
 * Each case runs in a process of its own and is one line of TAP, without number or plan: generations.test adds those.
 * CALLER_PROV names the provider to use, by default tcp; if it is empty there is none, and most cases are skipped.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What a linker of the day bound, by the name of the symbol and its version. */
int old_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);
struct fi_info *old_dupinfo(const struct fi_info *info);
void old_freeinfo(struct fi_info *info);
int old_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
uint32_t old_version(void);
char *old_tostr(const void *data, enum fi_type datatype);

__asm__(".symver old_getinfo, fi_getinfo@" NODE);
__asm__(".symver old_dupinfo, fi_dupinfo@" NODE);
__asm__(".symver old_freeinfo, fi_freeinfo@" NODE);
__asm__(".symver old_fabric, fi_fabric@" FABRIC_NODE);
__asm__(".symver old_version, fi_version@FABRIC_1.0");
__asm__(".symver old_tostr, fi_tostr@FABRIC_1.0");

#define SINCE(major, minor) (RELEASE_VERSION >= ((major) << 16 | (minor)))
#define PATTERN 0x5a
#define DEADLINE_S 10

static char *provider = "tcp";

/* Ends the case as failed unless ok, with a reason. */
__attribute__((format(printf, 2, 3)))
static void require(int ok, const char *fmt, ...)
{
	va_list args;

	if (ok)
		return;
	printf("# ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	exit(EXIT_FAILURE);
}

/* len bytes, filled with a pattern, directly before a page that nobody may touch. Never freed. len: a multiple of 8. */
static void *guarded(size_t len)
{
	size_t page = (size_t) sysconf(_SC_PAGESIZE);
	size_t span = (len + page - 1) / page * page;
	char *map = mmap(NULL, span + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(map != MAP_FAILED && !mprotect(map + span, page, PROT_NONE), "no memory for a guarded buffer");
	memset(map, PATTERN, span);
	return map + span - len;
}

static void *guarded_zero(size_t len)
{
	return memset(guarded(len), 0, len);
}

/* Blank hints, as a program makes them that does not use fi_allocinfo. */
static struct fi_info *own_hints(void)
{
	struct fi_info *hints = guarded_zero(sizeof(*hints));

	hints->tx_attr = guarded_zero(sizeof(*hints->tx_attr));
	hints->rx_attr = guarded_zero(sizeof(*hints->rx_attr));
	hints->ep_attr = guarded_zero(sizeof(*hints->ep_attr));
	hints->domain_attr = guarded_zero(sizeof(*hints->domain_attr));
	hints->fabric_attr = guarded_zero(sizeof(*hints->fabric_attr));
	return hints;
}

/* Hints for a reliable, unconnected endpoint of one provider. */
static struct fi_info *rdm_hints(void)
{
	struct fi_info *hints = own_hints();

	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_LOCAL_MR | FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	if (SINCE(1, 5))
		hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = provider;
	return hints;
}

/* Every member that the release knows can be read and makes sense. */
static void check_info(const struct fi_info *info)
{
	require(info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr && info->fabric_attr,
		"an entry lacks an attribute struct");
	require(info->fabric_attr->prov_name && *info->fabric_attr->prov_name, "an entry has no provider name");
	require(info->domain_attr->name && *info->domain_attr->name, "an entry has no domain name");
	require(info->ep_attr->type >= FI_EP_MSG && info->ep_attr->type <= FI_EP_RDM, "endpoint type %d",
		(int) info->ep_attr->type);
	require(!info->src_addr == !info->src_addrlen, "a source address of %zu bytes at %p", info->src_addrlen,
		info->src_addr);
	require(info->domain_attr->threading <= FI_THREAD_ENDPOINT && info->domain_attr->av_type <= FI_AV_TABLE,
		"threading %d, av_type %d", (int) info->domain_attr->threading, (int) info->domain_attr->av_type);
#if SINCE(1, 5)
	require(info->fabric_attr->api_version == API_VERSION, "api_version %#x, asked for %#x",
		info->fabric_attr->api_version, API_VERSION);
#else
	require(info->domain_attr->mr_mode == FI_MR_BASIC || info->domain_attr->mr_mode == FI_MR_SCALABLE,
		"mr_mode %#x, before 1.5 it is FI_MR_BASIC or FI_MR_SCALABLE", info->domain_attr->mr_mode);
#endif
#if SINCE(1, 7)
	require(!info->nic || info->nic->fid.fclass == FI_CLASS_NIC, "nic is not an object of class FI_CLASS_NIC");
#endif
}

/* fi_getinfo that has to find something: the entries are checked, and their number is stored. */
static struct fi_info *find(const struct fi_info *hints, int *cnt)
{
	struct fi_info *info = NULL, *entry;
	int ret = old_getinfo(API_VERSION, NULL, NULL, 0, hints, &info);

	require(!ret && info, "fi_getinfo returned %d", ret);
	for (entry = info, *cnt = 0; entry; entry = entry->next, ++*cnt)
		check_info(entry);
	return info;
}

/* The same entry in structs of this program's own, without its addresses. */
static struct fi_info *own_copy(const struct fi_info *info)
{
	struct fi_info *copy = own_hints();

	*copy->tx_attr = *info->tx_attr;
	*copy->rx_attr = *info->rx_attr;
	*copy->ep_attr = *info->ep_attr;
	*copy->domain_attr = *info->domain_attr;
	*copy->fabric_attr = *info->fabric_attr;
	copy->caps = info->caps;
	copy->mode = info->mode;
	copy->addr_format = info->addr_format;
	return copy;
}

static void null_hints(void)
{
	int cnt;

	old_freeinfo(find(NULL, &cnt));
}

static void zeroed_hints(void)
{
	int cnt;

	old_freeinfo(find(own_hints(), &cnt));
}

static void set_hints(void)
{
	struct fi_info *hints = rdm_hints(), *info, *entry;
	int cnt;

	info = find(hints, &cnt);
	for (entry = info; entry; entry = entry->next)
		require(entry->ep_attr->type == FI_EP_RDM && (entry->caps & FI_MSG) &&
			strstr(entry->fabric_attr->prov_name, hints->fabric_attr->prov_name),
			"an entry of %s, type %d, caps %#llx does not fit the hints", entry->fabric_attr->prov_name,
			(int) entry->ep_attr->type, (unsigned long long) entry->caps);
	old_freeinfo(info);
}

/* Hints may be without any of the attribute structs. */
static void bare_hints(void)
{
	int cnt;

	old_freeinfo(find(guarded_zero(sizeof(struct fi_info)), &cnt));
}

static void refused(void)
{
	struct fi_info *hints = own_hints(), *info = NULL;
	int ret;

	hints->fabric_attr->prov_name = "no_such_provider";
	ret = old_getinfo(API_VERSION, NULL, NULL, 0, hints, &info);
	require(ret == -FI_ENODATA && !info, "fi_getinfo for an unknown provider returned %d", ret);
	ret = old_getinfo(99 << 16, NULL, NULL, 0, NULL, &info);
	require(ret == -FI_ENOSYS && !info, "fi_getinfo for version 99.0 returned %d", ret);
}

/* An entry of the result, copied to where the caller's structs end, finds itself when it is the hints. */
static void result_as_hints(void)
{
	struct fi_info *info, *again, *hints = own_hints();
	int cnt;

	info = find(rdm_hints(), &cnt);
	hints = own_copy(info);
	again = find(hints, &cnt);
	require(!strcmp(again->fabric_attr->prov_name, info->fabric_attr->prov_name) &&
		!strcmp(again->domain_attr->name, info->domain_attr->name) && again->caps == info->caps,
		"found %s %s caps %#llx, not %s %s caps %#llx", again->fabric_attr->prov_name, again->domain_attr->name,
		(unsigned long long) again->caps, info->fabric_attr->prov_name, info->domain_attr->name,
		(unsigned long long) info->caps);
	old_freeinfo(again);
	old_freeinfo(info);
}

static void alloc(void)
{
	struct fi_info *info = old_dupinfo(NULL);

	require(info && info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr && info->fabric_attr,
		"fi_allocinfo (fi_dupinfo of NULL) left something out");
	require(!info->caps && !info->ep_attr->type && !info->domain_attr->name && !info->next,
		"blank hints are not blank");
	old_freeinfo(info);
}

/* Strings, addresses and keys are copied, not shared; the last member of each struct arrives as well. */
static void duplicate(void)
{
	struct fi_info *info = rdm_hints(), *copy;
	char address[16] = "an address";
	uint8_t key[4] = { 1, 2, 3, 4 };

	info->src_addr = memcpy(guarded(sizeof(address)), address, sizeof(address));
	info->src_addrlen = sizeof(address);
	info->tx_attr->rma_iov_limit = 3;
	info->rx_attr->iov_limit = 4;
	info->domain_attr->name = "a domain";
	info->domain_attr->max_ep_srx_ctx = 5;
#if SINCE(1, 5)
	info->ep_attr->auth_key = key;
	info->ep_attr->auth_key_size = sizeof(key);
	info->domain_attr->mr_cnt = 6;
	info->fabric_attr->api_version = API_VERSION;
#endif
#if SINCE(1, 9)
	info->tx_attr->tclass = FI_TC_BULK_DATA;
	info->domain_attr->tclass = FI_TC_LOW_LATENCY;
#endif
#if SINCE(1, 20)
	info->domain_attr->max_ep_auth_key = 7;
#endif
#if SINCE(2, 0)
	info->domain_attr->max_group_id = 8;
#endif
	copy = old_dupinfo(info);
	require(copy != NULL, "fi_dupinfo returned NULL");
	require(copy->src_addr != info->src_addr && !memcmp(copy->src_addr, address, sizeof(address)),
		"source address");
	require(copy->domain_attr->name != info->domain_attr->name && !strcmp(copy->domain_attr->name, "a domain"),
		"name");
	require(copy->tx_attr->rma_iov_limit == 3 && copy->rx_attr->iov_limit == 4, "tx_attr or rx_attr");
	require(copy->domain_attr->max_ep_srx_ctx == 5 && copy->ep_attr->type == FI_EP_RDM, "domain_attr or ep_attr");
#if SINCE(1, 5)
	require(copy->ep_attr->auth_key != key && !memcmp(copy->ep_attr->auth_key, key, sizeof(key)), "auth_key");
	require(copy->domain_attr->mr_cnt == 6 && copy->fabric_attr->api_version == API_VERSION, "of release 1.5");
#else
	(void) key;
#endif
#if SINCE(1, 9)
	require(copy->tx_attr->tclass == FI_TC_BULK_DATA && copy->domain_attr->tclass == FI_TC_LOW_LATENCY, "tclass");
#endif
#if SINCE(1, 20)
	require(copy->domain_attr->max_ep_auth_key == 7, "max_ep_auth_key");
#endif
#if SINCE(2, 0)
	require(copy->domain_attr->max_group_id == 8, "max_group_id");
#endif
	old_freeinfo(copy);
}

/* An open endpoint and all that it needs. */
struct objects {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
};

static void close_fid(struct fid *fid)
{
	size_t fclass = fid->fclass;
	int ret = fid->ops->close(fid);

	require(!ret, "close of an object of class %zu returned %d", fclass, ret);
}

static void open_fabric(struct objects *o)
{
	struct fi_fabric_attr *attr = guarded(sizeof(*attr));
	int ret, cnt;

	o->info = find(rdm_hints(), &cnt);
	/* Member by member: what is padding in the first layout keeps its pattern, and is not to be taken for a
	 * version. */
	attr->fabric = NULL;
	attr->name = o->info->fabric_attr->name;
	attr->prov_name = o->info->fabric_attr->prov_name;
	attr->prov_version = o->info->fabric_attr->prov_version;
#if SINCE(1, 5)
	attr->api_version = o->info->fabric_attr->api_version;
#endif
	ret = old_fabric(attr, &o->fabric, NULL);
	require(!ret, "fi_fabric returned %d", ret);
}

static void close_fabric(struct objects *o)
{
	close_fid(&o->fabric->fid);
	old_freeinfo(o->info);
}

/* The fabric remembers which release it serves. Its member for that, at 32, came with release 1.5. */
static void fabric_version(void)
{
	uint32_t want = SINCE(1, 5) ? API_VERSION : 1 << 16, have;
	struct objects o;

	open_fabric(&o);
	memcpy(&have, (char *) o.fabric + 32, sizeof(have));
	require(have == want, "the fabric has api_version %#x, want %#x", have, want);
	close_fabric(&o);
}

static void open_domain(struct objects *o)
{
	int ret;

	open_fabric(o);
	ret = o->fabric->ops->domain(o->fabric, o->info, &o->domain, NULL);
	require(!ret, "fi_domain returned %d", ret);
}

static void close_domain(struct objects *o)
{
	close_fid(&o->domain->fid);
	close_fabric(o);
}

static void open_ep(struct objects *o)
{
	struct fi_cq_attr *cq_attr = guarded_zero(sizeof(*cq_attr));
	struct fi_av_attr *av_attr = guarded_zero(sizeof(*av_attr));
	int ret;

	open_domain(o);
	cq_attr->format = FI_CQ_FORMAT_CONTEXT;
	ret = o->domain->ops->cq_open(o->domain, cq_attr, &o->cq, NULL);
	require(!ret, "fi_cq_open returned %d", ret);
	av_attr->type = o->info->domain_attr->av_type;
	ret = o->domain->ops->av_open(o->domain, av_attr, &o->av, NULL);
	require(!ret, "fi_av_open returned %d", ret);
	ret = o->domain->ops->endpoint(o->domain, o->info, &o->ep, NULL);
	require(!ret, "fi_endpoint returned %d", ret);
	ret = o->ep->fid.ops->bind(&o->ep->fid, &o->cq->fid, FI_TRANSMIT | FI_RECV);
	require(!ret, "fi_ep_bind of the cq returned %d", ret);
	ret = o->ep->fid.ops->bind(&o->ep->fid, &o->av->fid, 0);
	require(!ret, "fi_ep_bind of the av returned %d", ret);
	ret = o->ep->fid.ops->control(&o->ep->fid, FI_ENABLE, NULL);
	require(!ret, "fi_enable returned %d", ret);
}

static void close_ep(struct objects *o)
{
	close_fid(&o->ep->fid);
	close_fid(&o->av->fid);
	close_fid(&o->cq->fid);
	close_domain(o);
}

/* A receive that is cancelled: its error entry, and no more, is written to the caller's shorter struct. */
static void cq_error(void)
{
	struct fi_cq_err_entry *err = guarded_zero(sizeof(*err));
	struct fi_cq_entry entry;
	struct fi_context2 context;
	time_t end = time(NULL) + DEADLINE_S;
	struct objects o;
	char buf[64];
	ssize_t ret;

	open_ep(&o);
	ret = o.ep->msg->recv(o.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, &context);
	require(!ret, "fi_recv returned %zd", ret);
	ret = o.ep->ops->cancel(&o.ep->fid, &context);
	require(!ret, "fi_cancel returned %zd", ret);
	do
		ret = o.cq->ops->read(o.cq, &entry, 1);
	while (ret == -FI_EAGAIN && time(NULL) < end);
	require(ret == -FI_EAVAIL, "fi_cq_read after a cancel returned %zd", ret);
#if SINCE(1, 5)
	err->err_data = guarded(8);
	err->err_data_size = 8;
#endif
	ret = o.cq->ops->readerr(o.cq, err, 0);
	require(ret == 1, "fi_cq_readerr returned %zd", ret);
	require(err->err == FI_ECANCELED && err->op_context == &context, "the entry has err %d, context %p", err->err,
		err->op_context);
#if SINCE(1, 5)
	require(err->err_data_size <= 8, "%zu bytes of error data in a buffer of 8", err->err_data_size);
#endif
	close_ep(&o);
}

/* Memory registered with attributes of the caller's length. */
static void mr_attributes(void)
{
	struct fi_mr_attr *attr = guarded_zero(sizeof(*attr));
	static char buf[4096];
	struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };
	struct objects o;
	struct fid_mr *mr;
	int ret;

	open_domain(&o);
	attr->mr_iov = &iov;
	attr->iov_count = 1;
	attr->access = FI_SEND | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
	attr->requested_key = 9;
	attr->context = &o;
	ret = o.domain->mr->regattr(&o.domain->fid, attr, 0, &mr);
	require(!ret, "fi_mr_regattr returned %d", ret);
	require(mr->fid.context == &o, "the region has context %p, not the caller's", mr->fid.context);
	close_fid(&mr->fid);
	close_domain(&o);
}

/* An info need not be of fi_getinfo(): no more of its structs is read than the release has. */
static void own_infos(void)
{
	struct fi_info *own;
	struct objects o;
	int ret;

	open_fabric(&o);
	own = own_copy(o.info);
	ret = o.fabric->ops->domain(o.fabric, own, &o.domain, NULL);
	require(!ret, "fi_domain returned %d", ret);
	ret = o.domain->ops->endpoint(o.domain, own, &o.ep, NULL);
	require(!ret, "fi_endpoint returned %d", ret);
	close_fid(&o.ep->fid);
	close_domain(&o);
}

/* Nor is more read of the attributes of queues and counters, whose callers nothing tells apart. */
static void queue_attributes(void)
{
	struct fi_cntr_attr *cntr_attr = guarded_zero(sizeof(*cntr_attr));
	struct fi_cq_attr *cq_attr = guarded_zero(sizeof(*cq_attr));
	struct fid_cntr *cntr;
	struct objects o;
	int ret;

	require(old_tostr(cq_attr, FI_TYPE_CQ_ATTR) && old_tostr(cntr_attr, FI_TYPE_CNTR_ATTR), "fi_tostr");
	open_domain(&o);
	ret = o.domain->ops->cq_open(o.domain, cq_attr, &o.cq, NULL);
	require(!ret, "fi_cq_open returned %d", ret);
	ret = o.domain->ops->cntr_open(o.domain, cntr_attr, &cntr, NULL);
	require(!ret, "fi_cntr_open returned %d", ret);
#if SINCE(2, 7)
	require(cntr->ops->size >= sizeof(*cntr->ops) && o.cq->ops->size >= sizeof(*o.cq->ops), "size of the tables");
	require(cntr->ops->export_xpu(cntr, 0, NULL) == -FI_ENOSYS, "fi_cntr_export_xpu");
	require(o.cq->ops->export_xpu(o.cq, 0, NULL) == -FI_ENOSYS, "fi_cq_export_xpu");
#endif
	close_fid(&cntr->fid);
	close_fid(&o.cq->fid);
	close_domain(&o);
}

#if SINCE(2, 7)
/* What devices do is not implemented, and says so; the other look-up of addresses is. */
static void devices(void)
{
	struct fi_cq_attr *cq_attr = guarded_zero(sizeof(*cq_attr));
	struct fi_cntr_attr *cntr_attr = guarded_zero(sizeof(*cntr_attr));
	struct fi_mr_xpu_desc mr_desc = { .flags = FI_XPU };
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	struct objects o;
	struct { uint16_t family, port; uint32_t ip; uint64_t zero; } addr = { 2, 0x3930, 0x0100007f, 0 }, got;
	size_t len = sizeof(got);
	fi_addr_t fi_addr;
	int ret;

	open_ep(&o);
	require(!o.info->domain_attr->max_xpu_ctx_cnt && !o.info->ep_attr->xpu_ctx, "members of 2.7 are not 0");
	require(!(o.info->caps & FI_XPU), "FI_XPU was offered unasked");
	require(o.domain->ops->xpu_ctx(o.domain, NULL, NULL, NULL) == -FI_ENOSYS, "fi_xpu_ctx");
	require(o.ep->ops->export_xpu(o.ep, 0, NULL) == -FI_ENOSYS, "fi_ep_export_xpu");
	cq_attr->flags = cntr_attr->flags = FI_XPU;
	require(o.domain->ops->cq_open(o.domain, cq_attr, &cq, NULL) == -FI_ENOSYS, "fi_cq_open with FI_XPU");
	require(o.domain->ops->cntr_open(o.domain, cntr_attr, &cntr, NULL) == -FI_ENOSYS, "fi_cntr_open with FI_XPU");
	require(o.av->ops->insert(o.av, &addr, 1, &fi_addr, 0, NULL) == 1, "fi_av_insert");
	require(!o.av->ops->lookup2(o.av, fi_addr, &got, &len, 0, NULL) && len == sizeof(got) &&
		got.port == addr.port && got.ip == addr.ip, "fi_av_lookup2 of an address");
	require(o.av->ops->lookup2(o.av, fi_addr, &got, &len, FI_XPU, NULL) == -FI_ENOSYS, "fi_av_lookup2 with FI_XPU");
	mr_desc.len = &len;
	ret = o.domain->mr->reg(&o.domain->fid, &got, sizeof(got), FI_SEND, 0, 1, 0, &mr, NULL);
	require(!ret, "fi_mr_reg returned %d", ret);
	require(mr->fid.ops->control(&mr->fid, FI_GET_MR_XPU_DESC, &mr_desc) == -FI_ENOSYS, "fi_mr_get_xpu_desc");
	close_fid(&mr->fid);
	ret = o.domain->ops->endpoint2(o.domain, o.info, &ep, FI_XPU, NULL);
	require(ret == -FI_ENOSYS, "fi_endpoint2 with FI_XPU returned %d", ret);
	close_ep(&o);
}
#endif

static const struct test_case {
	const char *name;
	void (*run)(void);
	int needs_provider;
} cases[] = {
	{ "fi_getinfo without hints", null_hints, 1 },
	{ "fi_getinfo with an fi_info alone as hints", bare_hints, 1 },
	{ "fi_getinfo with zeroed hints", zeroed_hints, 1 },
	{ "fi_getinfo with hints that ask", set_hints, 1 },
	{ "fi_getinfo finds nothing, or is too old", refused, 0 },
	{ "fi_getinfo with its result as hints", result_as_hints, 1 },
	{ "fi_allocinfo", alloc, 0 },
	{ "fi_dupinfo", duplicate, 0 },
	{ "fi_fabric keeps the release", fabric_version, 1 },
	{ "fi_cq_readerr writes no more than the caller has", cq_error, 1 },
	{ "fi_mr_regattr reads no more than the caller has", mr_attributes, 1 },
	{ "fi_domain and fi_endpoint read no more than the caller has", own_infos, 1 },
	{ "fi_cq_open and fi_cntr_open read no more than the caller has", queue_attributes, 1 },
#if SINCE(2, 7)
	{ "operations of 2.7 return -FI_ENOSYS, fi_av_lookup2 works", devices, 1 },
#endif
};

static void run(const struct test_case *test)
{
	int status = 0;
	pid_t pid;

	if (test->needs_provider && !*provider) {
		printf("ok - %s (%s): %s # SKIP no provider in this build\n", RELEASE, NODE, test->name);
		return;
	}
	fflush(stdout);
	pid = fork();
	if (!pid) {
		test->run();
		exit(EXIT_SUCCESS);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = -1;
	if (status > 0 && WIFSIGNALED(status))
		printf("# ended by signal %d; 11 is an access behind the end of a struct of %s\n", WTERMSIG(status),
		       RELEASE);
	printf("%sok - %s (%s): %s\n", status ? "not " : "", RELEASE, NODE, test->name);
}

/* Exits with 77 where the library is older than this caller. */
int main(void)
{
	size_t i;

	if (old_version() < API_VERSION)
		return 77;
	if (getenv("CALLER_PROV"))
		provider = getenv("CALLER_PROV");
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		run(&cases[i]);
	return 0;
}
