/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MSG endpoints of verbs over XRC, on whatever libfabric is found: the same program is either end. It prints the
 * address that it listens at and its region of memory, then does what its standard input says, a command a line, and
 * prints a line for each thing that happens. N is the number of an endpoint, 0 to 7; texts are single words.
 *
 *   connect N ADDRESS TEXT     with TEXT as connection data: "connected N TEXT", with the peer's data, or
 *                              "refused N ERROR TEXT"
 *   (a request has come)       "request TEXT"
 *   accept N TEXT              the oldest request: "connected N -"
 *   accept-apart N TEXT        the same, with a completion queue of its own: also "failed N accept ERROR"
 *   reject TEXT                the oldest request: "rejected"
 *   send N TEXT LENGTH         a message of LENGTH bytes: "sent N"
 *   (a message has come)       "got TEXT LENGTH", or "got broken bytes"
 *   write N REGION TEXT LENGTH "wrote N"
 *   read N REGION LENGTH       "read N TEXT LENGTH"
 *   look LENGTH                "memory TEXT LENGTH", of its own region
 *   close N                    "closed N"
 *   deaf                       "deaf": it listens no longer
 *   names                      "names": ours has to say from now on which endpoint took a receive, as for ofi_rxm
 *   (the peer has closed)      "shutdown N"
 *   (a request has failed)     "failed N OPERATION ERROR"
 *
 * All endpoints receive from one shared receive context, without which there is no XRC in Debian's 1.17, and report to
 * one completion queue and one event queue. An endpoint that connects has the peer's address in its info, and its
 * process listens: Debian's 1.17 reads it there, and takes the peer's second request at the port of its passive
 * endpoint.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define EPS		8
#define REQUESTS	8
#define RECEIVES	16
#define COMPLETIONS	8192		/* Debian's 1.17 reserves all of an endpoint's queues */
#define TEXT		32
#define NAME_ROOM	64
#define LONGEST		200000
#define ACCESS		(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* A message of less than sizeof(struct bytes): a text, and bytes that follow from it. */
struct bytes {
	char text[TEXT];
	unsigned char rest[LONGEST];
};

static struct {
	struct bytes out[EPS], in[RECEIVES], region;
} *mem;
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_ep *srx, *eps[EPS];
static struct fid_pep *pep;
static struct fid_mr *mr;
static struct fi_info *requests[REQUESTS];
static unsigned request_cnt;
static size_t reading[EPS];			/* the length that is read */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

static void must(ssize_t ret, const char *call)
{
	if (ret >= 0)
		return;
	say("broken %s: %s", call, fi_strerror((int) -ret));
	exit(1);
}

/* ---- bytes ---- */

static unsigned char pattern(const char *text, size_t i)
{
	return (unsigned char) (i * 7 + (unsigned char) text[i % strlen(text)]);
}

static void fill(struct bytes *bytes, const char *text, size_t len)
{
	memset(bytes->text, 0, sizeof(bytes->text));
	snprintf(bytes->text, sizeof(bytes->text), "%s", text);
	for (size_t i = 0; i + TEXT < len; i++)
		bytes->rest[i] = pattern(text, i);
}

static const char *text_of(const struct bytes *bytes, size_t len)
{
	if (!bytes->text[0] || memchr(bytes->text, 0, TEXT) == NULL)
		return "broken";
	for (size_t i = 0; i + TEXT < len; i++)
		if (bytes->rest[i] != pattern(bytes->text, i))
			return "broken";
	return bytes->text;
}

/* ---- objects ---- */

static void listen_for(struct bytes *in)
{
	must(fi_recv(srx, in, sizeof(*in), fi_mr_desc(mr), FI_ADDR_UNSPEC, in), "fi_recv");
}

static struct fid_cq *open_cq(void)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_MSG, .size = COMPLETIONS };
	struct fid_cq *made;

	must(fi_cq_open(domain, &attr, &made, NULL), "fi_cq_open");
	return made;
}

static void open_all(void)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	unsigned char name[NAME_ROOM];
	size_t len = sizeof(name);

	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->ep_attr->protocol = FI_PROTO_RDMA_CM_IB_XRC;
	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->fabric_attr->prov_name = strdup("verbs");
	hints->domain_attr->name = strdup("soft0-xrc");
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	must(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", "0", FI_SOURCE, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_eq_open(fabric, &eq_attr, &eq, NULL), "fi_eq_open");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	cq = open_cq();
	must(fi_srx_context(domain, info->rx_attr, &srx, NULL), "fi_srx_context");
	must(fi_mr_reg(domain, mem, sizeof(*mem), ACCESS, 0, 0, 0, &mr, NULL), "fi_mr_reg");
	for (int i = 0; i < RECEIVES; i++)
		listen_for(&mem->in[i]);
	must(fi_passive_ep(fabric, info, &pep, NULL), "fi_passive_ep");
	must(fi_pep_bind(pep, &eq->fid, 0), "fi_pep_bind");
	must(fi_listen(pep), "fi_listen");
	must(fi_getname(&pep->fid, name, &len), "fi_getname");
	for (size_t i = 0; i < len; i++)
		printf("%02x", name[i]);
	say(" %llx,%llx", (unsigned long long) (uintptr_t) &mem->region, (unsigned long long) fi_mr_key(mr));
	fi_freeinfo(hints);
}

static void open_ep(unsigned n, struct fi_info *of, struct fid_cq *to)
{
	must(fi_endpoint(domain, of, &eps[n], (void *) (uintptr_t) n), "fi_endpoint");
	must(fi_ep_bind(eps[n], &eq->fid, 0), "fi_ep_bind of the EQ");
	must(fi_ep_bind(eps[n], &to->fid, FI_SEND | FI_RECV), "fi_ep_bind of the CQ");
	must(fi_ep_bind(eps[n], &srx->fid, 0), "fi_ep_bind of the context");
	must(fi_enable(eps[n]), "fi_enable");
}

/* ---- events ---- */

static unsigned number_of(fid_t fid)
{
	for (unsigned n = 0; n < EPS; n++)
		if (eps[n] && &eps[n]->fid == fid)
			return n;
	return EPS;
}

/* Connection data as a word: "-" if there is none. */
static const char *word(const void *data, size_t len)
{
	static char room[256];

	len = len < sizeof(room) ? len : sizeof(room) - 1;
	memcpy(room, data, len);
	room[len] = 0;
	return room[0] ? room : "-";
}

/* False: there was no event. */
static bool look_at_eq(void)
{
	struct {
		struct fi_eq_cm_entry entry;
		char data[256];
	} event;
	struct fi_eq_err_entry err = { 0 };
	char data[256];
	uint32_t type;
	ssize_t len = fi_eq_read(eq, &type, &event, sizeof(event), 0);

	if (len == -FI_EAVAIL) {
		err.err_data = data;
		err.err_data_size = sizeof(data);
		must(fi_eq_readerr(eq, &err, 0), "fi_eq_readerr");
		say("refused %u %s %s", number_of(err.fid), fi_strerror(err.err),
		    word(err.err_data, err.err_data_size));
		return true;
	}
	if (len == -FI_EAGAIN)
		return false;
	must(len, "fi_eq_read");
	len -= (ssize_t) sizeof(event.entry);
	if (type == FI_CONNREQ) {
		say("request %s", word(event.data, (size_t) len));
		must(request_cnt < REQUESTS ? 0 : -FI_ENOMEM, "a request");
		requests[request_cnt++] = event.entry.info;
	} else if (type == FI_CONNECTED) {
		say("connected %u %s", number_of(event.entry.fid), word(event.data, (size_t) len));
	} else if (type == FI_SHUTDOWN) {
		say("shutdown %u", number_of(event.entry.fid));
	}
	return true;
}

static const char *operation(uint64_t flags)
{
	return flags & FI_READ ? "read" : flags & FI_WRITE ? "write" : "send";
}

/* False: there was no completion. The context of a send, write or read is &eps[n]; of a receive its buffer. */
static bool look_at_cq(void)
{
	struct fi_cq_msg_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_read(cq, &entry, 1);
	struct bytes *bytes = entry.op_context;
	unsigned n;

	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &err, 0) == 1) {
		for (n = 0; n < EPS && err.op_context != &eps[n]; n++)
			;
		say("failed %u %s %s", n, n == EPS ? "receive" : operation(err.flags), fi_strerror(err.err));
		return true;
	}
	if (ret != 1)
		return false;
	if (entry.flags & FI_RECV) {
		say("got %s %zu", text_of(bytes, entry.len), entry.len);
		memset(bytes, 0, sizeof(*bytes));
		listen_for(bytes);
		return true;
	}
	n = (unsigned) ((struct fid_ep **) entry.op_context - eps);
	if (entry.flags & FI_READ)
		say("read %u %s %zu", n, text_of(&mem->out[n], reading[n]), reading[n]);
	else
		say("%s %u", entry.flags & FI_WRITE ? "wrote" : "sent", n);
	return true;
}

/* ---- commands ---- */

static struct fi_info *take_request(void)
{
	struct fi_info *first = requests[0];

	must(request_cnt ? 0 : -FI_EAGAIN, "a request to answer");
	memmove(requests, requests + 1, --request_cnt * sizeof(requests[0]));
	return first;
}

static void connect_to(unsigned n, const char *hex, const char *text)
{
	struct fi_info *to = fi_dupinfo(info);
	unsigned char *name = calloc(1, NAME_ROOM);

	must(to && name ? 0 : -FI_ENOMEM, "fi_dupinfo");
	for (size_t i = 0; hex[2 * i] && i < NAME_ROOM; i++, to->dest_addrlen = i)
		sscanf(hex + 2 * i, "%2hhx", &name[i]);
	to->dest_addr = name;
	open_ep(n, to, cq);
	must(fi_connect(eps[n], name, text, strlen(text)), "fi_connect");
	fi_freeinfo(to);
}

static void accept_next(unsigned n, const char *text, struct fid_cq *to)
{
	struct fi_info *request = take_request();
	int ret;

	open_ep(n, request, to);
	ret = fi_accept(eps[n], text, strlen(text));
	if (ret)
		say("failed %u accept %s", n, fi_strerror(-ret));
	fi_freeinfo(request);
}

static void reject_next(const char *text)
{
	struct fi_info *request = take_request();

	must(fi_reject(pep, request->handle, text, strlen(text)), "fi_reject");
	fi_freeinfo(request);
	say("rejected");
}

static void close_ep(unsigned n)
{
	struct fid_ep *ep = eps[n];

	eps[n] = NULL;
	must(fi_close(&ep->fid), "fi_close");
	say("closed %u", n);
}

static void close_pep(void)
{
	must(fi_close(&pep->fid), "fi_close of the passive endpoint");
	say("deaf");
}

/* The option is ours: prov/common/endpoint/shared.h. */
static void ask_for_names(void)
{
	size_t len = sizeof(bool);
	bool names;

	must(fi_getopt(&srx->fid, FI_OPT_ENDPOINT, (int) (FI_PROV_SPECIFIC | 0x77656674), &names, &len), "fi_getopt");
	say("names");
}

/* Send, write or read, as the command says; region and text where it has them. */
static void transfer(unsigned n, const char *command, const char *region, const char *text, size_t len)
{
	struct bytes *out = &mem->out[n];
	unsigned long long addr = 0, key = 0;
	void *desc = fi_mr_desc(mr);
	ssize_t ret;

	must(eps[n] && len >= TEXT && len <= sizeof(*out) ? 0 : -FI_EINVAL, command);
	must(!region || sscanf(region, "%llx,%llx", &addr, &key) == 2 ? 0 : -FI_EINVAL, region);
	if (text)
		fill(out, text, len);
	else
		memset(out, 0, sizeof(*out));
	reading[n] = len;
	do {
		if (!region)
			ret = fi_send(eps[n], out, len, desc, 0, &eps[n]);
		else if (text)
			ret = fi_write(eps[n], out, len, desc, 0, addr, key, &eps[n]);
		else
			ret = fi_read(eps[n], out, len, desc, 0, addr, key, &eps[n]);
	} while (ret == -FI_EAGAIN && (look_at_cq() || look_at_eq()));
	if (ret)
		say("failed %u %s %s", n, command, fi_strerror((int) -ret));
}

static void obey(const char *line)
{
	char a[160], b[160];
	unsigned n = 0;
	size_t len;

	if (sscanf(line, "connect %1u %159s %159s", &n, a, b) == 3 && n < EPS)
		connect_to(n, a, b);
	else if (sscanf(line, "accept %1u %159s", &n, a) == 2 && n < EPS)
		accept_next(n, a, cq);
	else if (sscanf(line, "accept-apart %1u %159s", &n, a) == 2 && n < EPS)
		accept_next(n, a, open_cq());
	else if (sscanf(line, "reject %159s", a) == 1)
		reject_next(a);
	else if (sscanf(line, "send %1u %31s %zu", &n, a, &len) == 3 && n < EPS)
		transfer(n, "send", NULL, a, len);
	else if (sscanf(line, "write %1u %159s %31s %zu", &n, b, a, &len) == 4 && n < EPS)
		transfer(n, "write", b, a, len);
	else if (sscanf(line, "read %1u %159s %zu", &n, b, &len) == 3 && n < EPS)
		transfer(n, "read", b, NULL, len);
	else if (sscanf(line, "look %zu", &len) == 1 && len <= sizeof(struct bytes))
		say("memory %s %zu", text_of(&mem->region, len), len);
	else if (sscanf(line, "close %1u", &n) == 1 && n < EPS && eps[n])
		close_ep(n);
	else if (!strcmp(line, "deaf"))
		close_pep();
	else if (!strcmp(line, "names"))
		ask_for_names();
	else
		must(-FI_EINVAL, line);
}

/* Wait ms for input. False at its end. A command may come in pieces. */
static bool look_at_input(int ms)
{
	static char line[512];
	static size_t len;
	struct pollfd pfd = { 0, POLLIN, 0 };
	char c;

	for (; poll(&pfd, 1, ms) == 1; ms = 0) {
		if (read(0, &c, 1) != 1)
			return false;
		line[len] = c == '\n' ? 0 : c;
		len = c == '\n' ? 0 : len + 1;
		must(len < sizeof(line) ? 0 : -FI_EINVAL, "the length of a line");
		if (!len)
			obey(line);
	}
	return true;
}

int main(void)
{
	int idle = 0;

	mem = calloc(1, sizeof(*mem));
	must(mem ? 0 : -FI_ENOMEM, "memory");
	open_all();
	while (look_at_input(idle))
		idle = !look_at_eq() && !look_at_cq();
	return 0;
}
