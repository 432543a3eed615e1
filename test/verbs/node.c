/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process of a job on several nodes, for tests that count what its connections cost: connects to some, is
 * connected to by some, exchanges messages with each of them, says so, and stays until its standard input ends.
 *
 *   node ADDRESS ROUNDS INCOMING     listens, prints "port N"; then reads a line of ADDRESS:PORT words, to connect to
 *
 * Prints "ready" when ROUNDS messages have gone each way over every connection, "error TEXT" and status 1 otherwise.
 * Each further line is a number of peers that will be gone; then the same again with the others. With NODE_SHARED in
 * the environment, the endpoints receive by a shared context. NODE_BURST is how many messages a peer may be ahead of
 * the other, which has a receive for one; default 1.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#define PEERS_MAX	1024
#define LEN		64
#define SHARED		64		/* receives of the shared context */
#define PATIENCE_S	100		/* for all of it */

struct peer {
	struct fid_ep *ep;
	char *buf;			/* LEN bytes sent, LEN received */
	unsigned got, sent;
	bool up, gone;
};

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_pep *pep;
static struct fid_mr *mr;
static struct fi_info *info;
static struct peer peers[PEERS_MAX];
static char room[(PEERS_MAX * 2 + SHARED) * LEN];
static struct fid_ep *shared;		/* NULL: each endpoint has receives of its own */
static unsigned peer_cnt, rounds, burst = 1;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *fmt, ...)
{
	va_list args;

	char text[300];

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	printf("error %s\n", text);
	fprintf(stderr, "process %d: %s\n", getpid(), text);	/* whoever speaks first has the cause */
	exit(1);
}

#define MUST(call) do { ssize_t ret_ = (call); if (ret_ < 0) die("%s: %s", #call, fi_strerror((int) -ret_)); } while (0)

static void post_recv(struct peer *p)
{
	MUST(fi_recv(p->ep, p->buf + LEN, LEN, fi_mr_desc(mr), 0, p));
}

static void post_shared(char *buf)
{
	MUST(fi_recv(shared, buf, LEN, fi_mr_desc(mr), 0, buf));
}

static void send_next(struct peer *p)
{
	ssize_t ret;

	memset(p->buf, 'a' + p->sent % 26, LEN);
	do {
		ret = burst > 1 ? fi_inject(p->ep, p->buf, LEN, 0) :
				  fi_send(p->ep, p->buf, LEN, fi_mr_desc(mr), 0, p);
		if (ret == -FI_EAGAIN)
			fi_cq_read(cq, NULL, 0);
	} while (ret == -FI_EAGAIN);
	MUST(ret);
	p->sent++;
}

/* One message more than came, or a burst, as far as the rounds go; a message may come before the news that there is a
 * connection. */
static void send_due(struct peer *p)
{
	while (p->up && p->sent < rounds && p->sent < p->got + burst)
		send_next(p);
}

static struct peer *new_peer(struct fi_info *with)
{
	struct peer *p = &peers[peer_cnt];

	if (peer_cnt == PEERS_MAX)
		die("more than %d peers", PEERS_MAX);
	p->buf = room + (size_t) peer_cnt++ * 2 * LEN;
	MUST(fi_endpoint(domain, with, &p->ep, p));
	MUST(fi_ep_bind(p->ep, &eq->fid, 0));
	MUST(fi_ep_bind(p->ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	if (shared)
		MUST(fi_ep_bind(p->ep, &shared->fid, 0));
	MUST(fi_enable(p->ep));
	if (!shared)
		post_recv(p);
	return p;
}

static struct peer *peer_of(struct fid *fid)
{
	return fid->context;
}

static void on_event(uint32_t event, struct fi_eq_cm_entry *entry)
{
	if (event == FI_CONNREQ) {
		struct peer *p = new_peer(entry->info);

		if (fi_accept(p->ep, NULL, 0)) {	/* the other end asks again, or hears of it */
			MUST(fi_close(&p->ep->fid));
			*p = (struct peer) { 0 };
			peer_cnt--;
		}
		fi_freeinfo(entry->info);
	} else if (event == FI_CONNECTED) {
		struct peer *p = peer_of(entry->fid);

		p->up = true;
		send_due(p);
	} else {
		peer_of(entry->fid)->up = false;
		peer_of(entry->fid)->gone = true;
	}
}

/* A message has come; the completion of a shared receive has the endpoint's context in buf. */
static void on_message(const struct fi_cq_data_entry *comp)
{
	struct peer *p = shared ? comp->buf : comp->op_context;
	char *buf = shared ? comp->op_context : p->buf + LEN;

	if (buf[0] != (char) ('a' + p->got % 26) || memcmp(buf, buf + 1, LEN - 1))
		die("message %u is another", p->got);
	p->got++;
	if (shared)
		post_shared(buf);
	else
		post_recv(p);
	send_due(p);
}

/* One look at the queues. */
static void look(void)
{
	struct fi_eq_cm_entry entry;
	struct fi_cq_data_entry comp;
	struct fi_eq_err_entry eq_err = { 0 };
	struct fi_cq_err_entry cq_err = { 0 };
	uint32_t event;
	ssize_t ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);

	if (ret >= 0)
		on_event(event, &entry);
	else if (ret == -FI_EAVAIL && fi_eq_readerr(eq, &eq_err, 0) >= 0)
		die("connection: %s", fi_strerror(eq_err.err));
	ret = fi_cq_read(cq, &comp, 1);
	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &cq_err, 0) >= 0 && cq_err.err != FI_ECANCELED &&
	    !((struct peer *) cq_err.op_context)->gone)
		die("completion: %s: %s", fi_strerror(cq_err.err),
		    fi_cq_strerror(cq, cq_err.prov_errno, cq_err.err_data, NULL, 0));
	if (ret == 1 && (comp.flags & FI_RECV))
		on_message(&comp);
}

static unsigned gone_cnt(void)
{
	unsigned i, cnt = 0;

	for (i = 0; i < peer_cnt; i++)
		cnt += peers[i].gone;
	return cnt;
}

static bool all_done(void)
{
	unsigned i, done = 0;

	for (i = 0; i < peer_cnt; i++)
		done += peers[i].gone || (peers[i].up && peers[i].got == rounds && peers[i].sent == rounds);
	return done == peer_cnt;
}

static void run(void)
{
	while (!all_done())
		look();
	printf("ready\n");
}

/* As many rounds again, once it is known that so many peers have gone. */
static void run_more(unsigned gone)
{
	unsigned i;

	while (gone_cnt() < gone)
		look();
	rounds *= 2;
	for (i = 0; i < peer_cnt; i++)
		send_due(&peers[i]);
	run();
}

static void setup(const char *address)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA, .size = 4 * PEERS_MAX };
	struct sockaddr_in name;
	size_t len = sizeof(name);

	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("verbs");
	hints->addr_format = FI_SOCKADDR_IN;
	MUST(fi_getinfo(FI_VERSION(1, 17), address, "0", FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_eq_open(fabric, &(struct fi_eq_attr) { .wait_obj = FI_WAIT_NONE }, &eq, NULL));
	MUST(fi_domain(fabric, info, &domain, NULL));
	MUST(fi_cq_open(domain, &cq_attr, &cq, NULL));
	MUST(fi_mr_reg(domain, room, sizeof(room), FI_SEND | FI_RECV, 0, 0, 0, &mr, NULL));
	if (getenv("NODE_SHARED")) {
		MUST(fi_srx_context(domain, info->rx_attr, &shared, NULL));
		for (int i = 0; i < SHARED; i++)
			post_shared(room + (PEERS_MAX * 2 + i) * LEN);
	}
	MUST(fi_passive_ep(fabric, info, &pep, NULL));
	MUST(fi_pep_bind(pep, &eq->fid, 0));
	MUST(fi_listen(pep));
	MUST(fi_getname(&pep->fid, &name, &len));
	printf("port %u\n", ntohs(name.sin_port));
}

/* One connection after the other, while others connect to us. */
static void connect_to(char *words, unsigned incoming)
{
	char *word, *save;

	for (word = strtok_r(words, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		struct sockaddr_in to = { .sin_family = AF_INET };
		char *colon = strchr(word, ':');
		struct peer *p = new_peer(info);

		if (!colon)
			die("'%s' is no ADDRESS:PORT", word);
		*colon = '\0';
		inet_pton(AF_INET, word, &to.sin_addr);
		to.sin_port = htons((uint16_t) atoi(colon + 1));
		MUST(fi_connect(p->ep, &to, NULL, 0));
		incoming++;
		while (!p->up)
			look();
	}
	while (peer_cnt < incoming)
		look();
}

static void tear_down(void)
{
	unsigned i;

	for (i = 0; i < peer_cnt; i++)
		MUST(fi_close(&peers[i].ep->fid));
	if (shared)
		MUST(fi_close(&shared->fid));
	MUST(fi_close(&pep->fid));
	MUST(fi_close(&mr->fid));
	MUST(fi_close(&cq->fid));
	MUST(fi_close(&domain->fid));
	MUST(fi_close(&eq->fid));
	MUST(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

int main(int argc, char **argv)
{
	static char line[PEERS_MAX * 24];
	unsigned incoming;

	if (argc != 4)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(PATIENCE_S);
	setvbuf(stdout, NULL, _IOLBF, 0);
	rounds = (unsigned) atoi(argv[2]);
	incoming = (unsigned) atoi(argv[3]);
	if (getenv("NODE_BURST"))
		burst = (unsigned) atoi(getenv("NODE_BURST"));
	setup(argv[1]);
	if (!fgets(line, sizeof(line), stdin))
		die("nobody to connect to");
	connect_to(line, incoming);
	run();
	while (fgets(line, sizeof(line), stdin))
		run_more((unsigned) atoi(line));
	tear_down();
	printf("closed\n");
	return 0;
}
