/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Very many peers of one endpoint, and very many receives: what each costs, against how many there are.
 *
 * The hub talks to N endpoints in some other processes, in rounds: a message to each, and an answer from each. Both
 * ends check that every message comes once and in its order. With --connections the hub may have fewer connections than
 * peers, with --descriptors it is the system's limit that it meets; with --incoming the peers begin. Prints TAP, or one
 * line of numbers a measurement with --csv (test/budget/scale-picture draws those).
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define PROCESSES	4
#define ROUNDS		4		/* the first connects */
#define WINDOW		64		/* messages without their answer */
#define PEER_BUDGET	2048		/* bytes; doc/design.md, 7.9 */
#define RECV_BUDGET	256
#define PATIENCE_S	100
#define OTHER_FDS	32		/* that are no connections of the hub */
#define PING_PONGS	20000

#define DIE(...) do { printf("Bail out! " __VA_ARGS__); printf("\n"); fflush(stdout); _exit(1); } while (0)
#define MUST(call) do { long ret_ = (call); if (ret_) DIE("%s: %s", #call, fi_strerror((int) -ret_)); } while (0)

struct message {
	uint32_t peer, round;
};

struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
};

static bool csv, incoming;
static int test_cnt, fail_cnt;
static uint32_t peer_cnt = 1000, connection_cnt, descriptor_cnt, receive_cnt;

__attribute__((format(printf, 2, 3)))
static void result(bool good, const char *format, ...)
{
	va_list args;

	fail_cnt += !good;
	if (csv)
		return;
	printf("%sok %d - ", good ? "" : "not ", ++test_cnt);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static long heap_used(void)
{
	struct mallinfo2 heap = mallinfo2();

	return heap.uordblks + heap.hblkhd;
}

static uint32_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t cnt = 0;

	if (!dir)
		return descriptor_cnt;	/* not even this one is left */
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt - 3;			/* ".", "..", the folder itself */
}

/* ---- one process's side ---- */

/* At the loopback address number host, from 0: where one has very many listeners the kernel searches for free ports for
 * long. */
static void end_open(struct end *end, int host, size_t cq_size, enum fi_wait_obj wait_obj)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .size = cq_size, .wait_obj = wait_obj };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup("tcp");
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	MUST(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE, hints, &end->info));
	((struct sockaddr_in *) end->info->src_addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK + host);
	fi_freeinfo(hints);
	MUST(fi_fabric(end->info->fabric_attr, &end->fabric, NULL));
	MUST(fi_domain(end->fabric, end->info, &end->domain, NULL));
	MUST(fi_av_open(end->domain, &av_attr, &end->av, NULL));
	MUST(fi_cq_open(end->domain, &cq_attr, &end->cq, NULL));
}

static struct fid_ep *endpoint_open(struct end *end, struct sockaddr_in *name)
{
	size_t len = sizeof(*name);
	struct fid_ep *ep;

	MUST(fi_endpoint(end->domain, end->info, &ep, NULL));
	MUST(fi_ep_bind(ep, &end->av->fid, 0));
	MUST(fi_ep_bind(ep, &end->cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_enable(ep));
	MUST(fi_getname(&ep->fid, name, &len));
	return ep;
}

/* A completion, or die. False: none now. */
static bool take(struct end *end, struct fi_cq_tagged_entry *entry)
{
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_read(end->cq, entry, 1);

	if (ret == -FI_EAVAIL) {
		fi_cq_readerr(end->cq, &err, 0);
		DIE("an operation failed: %s", fi_cq_strerror(end->cq, err.prov_errno, err.err_data, NULL, 0));
	}
	return ret == 1;
}

/* All of len bytes, or die. */
static void pipe_read(int fd, void *buf, size_t len)
{
	for (size_t have = 0; have < len; ) {
		ssize_t n = read(fd, (char *) buf + have, len - have);

		if (n <= 0)
			DIE("a process of peers has ended");
		have += n;
	}
}

static void pipe_write(int fd, const void *buf, size_t len)
{
	if (write(fd, buf, len) != (ssize_t) len)
		DIE("write to a pipe: %s", strerror(errno));
}

/* ---- peers ---- */

struct peer {
	struct fid_ep *ep;
	uint32_t round;			/* of the next message */
	struct message in, out;
};

static void peer_serve(struct end *end, struct peer *peer, fi_addr_t hub)
{
	if (peer->in.round != peer->round)
		DIE("peer %u got message %u in place of %u", peer->in.peer, peer->in.round, peer->round);
	peer->round++;
	peer->out = peer->in;
	MUST(fi_recv(peer->ep, &peer->in, sizeof(peer->in), NULL, FI_ADDR_UNSPEC, peer));
	while (fi_inject(peer->ep, &peer->out, sizeof(peer->out), hub))
		fi_cq_read(end->cq, NULL, 0);
}

/* Serves until it is killed. */
static void peers_run(uint32_t base, uint32_t cnt, int host, int from, int to)
{
	struct peer *peers = calloc(cnt, sizeof(*peers));
	struct fi_cq_tagged_entry entry;
	struct sockaddr_in name;
	struct end end;
	fi_addr_t hub;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	end_open(&end, host, cnt + 64, FI_WAIT_UNSPEC);
	for (uint32_t i = 0; i < cnt; i++) {
		peers[i].ep = endpoint_open(&end, &name);
		MUST(fi_recv(peers[i].ep, &peers[i].in, sizeof(peers[i].in), NULL, FI_ADDR_UNSPEC, &peers[i]));
		pipe_write(to, &name, sizeof(name));
	}
	pipe_read(from, &name, sizeof(name));
	if (fi_av_insert(end.av, &name, 1, &hub, 0, NULL) != 1)
		DIE("fi_av_insert");
	for (uint32_t i = 0; i < cnt && incoming; i++) {
		peers[i].out.peer = base + i;
		peers[i].round = 1;
		while (fi_inject(peers[i].ep, &peers[i].out, sizeof(peers[i].out), hub))
			fi_cq_read(end.cq, NULL, 0);
	}
	for (;;) {
		while (take(&end, &entry))
			peer_serve(&end, entry.op_context, hub);
		if (fi_cq_sread(end.cq, &entry, 1, NULL, -1) == 1)
			peer_serve(&end, entry.op_context, hub);
	}
}

struct process {
	pid_t pid;
	int from, to;
	uint32_t cnt;
};

/* The peers from number base on. */
static void process_start(struct process *process, uint32_t base, uint32_t cnt, int host)
{
	int up[2], down[2];

	if (pipe(up) || pipe(down))
		DIE("pipe: %s", strerror(errno));
	fflush(stdout);
	process->pid = fork();
	if (!process->pid) {
		/* which connections go is the hub's business */
		unsetenv("FI_TCP_MAX_CONN");
		close(up[0]);
		close(down[1]);
		peers_run(base, cnt, host, down[0], up[1]);
	}
	close(up[1]);
	close(down[0]);
	*process = (struct process) { .pid = process->pid, .from = up[0], .to = down[1], .cnt = cnt };
}

/* ---- the hub ---- */

struct hub {
	struct end end;
	struct fid_ep *ep;
	fi_addr_t *addr;
	uint32_t *round;		/* of the next answer, a peer */
	struct message *in;		/* WINDOW receives */
	uint32_t answers;
	uint32_t fds;			/* the most descriptors that were seen open */
};

static void hub_post(struct hub *hub, struct message *in)
{
	MUST(fi_recv(hub->ep, in, sizeof(*in), NULL, FI_ADDR_UNSPEC, in));
}

static void hub_drive(struct hub *hub)
{
	struct fi_cq_tagged_entry entry;
	struct message *in;

	if (!take(&hub->end, &entry)) {
		sched_yield();		/* to the peers, which may need this processor */
		return;
	}
	in = entry.op_context;
	if (in->peer >= peer_cnt || in->round != hub->round[in->peer])
		DIE("answer %u of peer %u in place of %u", in->round, in->peer, hub->round[in->peer]);
	hub->round[in->peer]++;
	hub->answers++;
	hub_post(hub, in);
}

static uint32_t hub_count_fds(struct hub *hub)
{
	uint32_t fds = open_fds();

	hub->fds = fds > hub->fds ? fds : hub->fds;
	return fds;
}

/* Let connections go that are too many. True: none is. */
static bool hub_settle(struct hub *hub)
{
	double end = now_s() + 20;

	while (hub_count_fds(hub) > connection_cnt + OTHER_FDS && now_s() < end)
		hub_drive(hub);
	return now_s() < end;
}

/* Primes, so that each step meets every peer. */
static const uint32_t steps[ROUNDS] = { 1000003, 1000033, 1000037, 1000039 };

/* A message to each peer, in an order of its own each time. Returns seconds. */
static double hub_round(struct hub *hub, uint32_t round)
{
	double start = now_s();
	uint32_t step = steps[round];

	hub->answers = 0;
	for (uint32_t i = 0; i < peer_cnt && (round || !incoming); i++) {
		struct message out = { .peer = (uint64_t) i * step % peer_cnt, .round = round };

		if (connection_cnt && i % (connection_cnt / 2) == 0)
			hub_count_fds(hub);

		while (i - hub->answers >= WINDOW && now_s() - start < PATIENCE_S)
			hub_drive(hub);
		while (fi_inject(hub->ep, &out, sizeof(out), hub->addr[out.peer]))
			hub_drive(hub);
	}
	while (hub->answers < peer_cnt) {
		hub_drive(hub);
		if (now_s() - start > PATIENCE_S)
			DIE("%u of %u answers within %d s", hub->answers, peer_cnt, PATIENCE_S);
	}
	return now_s() - start;
}

static void hub_open(struct hub *hub, struct process *processes)
{
	struct sockaddr_in name;
	uint32_t known = 0;

	end_open(&hub->end, 0, 4 * WINDOW, FI_WAIT_NONE);
	hub->ep = endpoint_open(&hub->end, &name);
	hub->addr = calloc(peer_cnt, sizeof(*hub->addr));
	hub->round = calloc(peer_cnt, sizeof(*hub->round));
	hub->in = calloc(WINDOW, sizeof(*hub->in));
	for (int i = 0; i < WINDOW; i++)
		hub_post(hub, &hub->in[i]);
	for (int p = 0; p < PROCESSES; p++) {
		struct sockaddr_in peer;

		for (uint32_t i = 0; i < processes[p].cnt; i++) {
			pipe_read(processes[p].from, &peer, sizeof(peer));
			if (fi_av_insert(hub->end.av, &peer, 1, &hub->addr[known++], 0, NULL) != 1)
				DIE("fi_av_insert");
		}
		pipe_write(processes[p].to, &name, sizeof(name));
	}
}

static void hub_close(struct hub *hub)
{
	MUST(fi_close(&hub->ep->fid));
	MUST(fi_close(&hub->end.cq->fid));
	MUST(fi_close(&hub->end.av->fid));
	MUST(fi_close(&hub->end.domain->fid));
	MUST(fi_close(&hub->end.fabric->fid));
	fi_freeinfo(hub->end.info);
	free(hub->addr);
	free(hub->round);
	free(hub->in);
}

/* A quarter of what the system allows is not for connections. */
static void limit_descriptors(void)
{
	struct rlimit limit;

	if (!descriptor_cnt)
		return;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = descriptor_cnt;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		DIE("setrlimit: %s", strerror(errno));
	connection_cnt = descriptor_cnt - descriptor_cnt / 4;
}

static void many_peers(bool count_memory)
{
	struct process processes[PROCESSES];
	struct hub hub = { 0 };
	double first, later = 0;
	long heap;

	for (int p = 0; p < PROCESSES; p++) {
		uint32_t base = peer_cnt * p / PROCESSES;

		process_start(&processes[p], base, peer_cnt * (p + 1) / PROCESSES - base, 1 + p);
	}
	limit_descriptors();
	hub_open(&hub, processes);
	heap = heap_used();
	first = hub_round(&hub, 0);
	for (uint32_t round = 1; round < ROUNDS; round++)
		later += hub_round(&hub, round);
	heap = (heap_used() - heap) / peer_cnt;
	hub_count_fds(&hub);
	if (csv)
		printf("peers %u %u %.2f %.2f %ld %u\n", peer_cnt, connection_cnt, first * 1e6 / peer_cnt,
		       later * 1e6 / peer_cnt / (ROUNDS - 1), heap, hub.fds);
	result(true, "%u peers, %d messages to and from each, once and in order; %.1f us each at first, then %.1f us",
	       peer_cnt, ROUNDS, first * 1e6 / peer_cnt, later * 1e6 / peer_cnt / (ROUNDS - 1));
	if (connection_cnt)
		/* peers that get no processor do not answer; hence not more than this */
		result(hub_settle(&hub) && hub.fds < peer_cnt / 2 + OTHER_FDS, "%u connections allowed: at most %u "
		       "descriptors, and not more in the end", connection_cnt, hub.fds);
	if (count_memory)
		result(heap <= PEER_BUDGET, "%ld bytes a peer, %d allowed", heap, PEER_BUDGET);
	for (int p = 0; p < PROCESSES; p++) {
		kill(processes[p].pid, SIGKILL);
		waitpid(processes[p].pid, NULL, 0);
		close(processes[p].from);
		close(processes[p].to);
	}
	hub_close(&hub);
}

/* ---- receives ---- */

/* Tagged messages of an endpoint to itself, with so many receives for other tags in front. Seconds each. */
static double ping_pong(struct hub *hub, fi_addr_t self, uint64_t tag)
{
	struct fi_cq_tagged_entry entry;
	double start = now_s();
	char buf[8] = "";

	for (int i = 0; i < PING_PONGS; i++) {
		MUST(fi_trecv(hub->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, tag, 0, NULL));
		while (fi_tinject(hub->ep, buf, sizeof(buf), self, tag))
			fi_cq_read(hub->end.cq, NULL, 0);
		while (!take(&hub->end, &entry))
			;
	}
	return (now_s() - start) / PING_PONGS;
}

static void many_receives(bool count_memory)
{
	struct hub hub = { 0 };
	struct sockaddr_in name;
	double alone, among;
	static char buf[8];
	fi_addr_t self;
	long heap;

	end_open(&hub.end, 0, 1024, FI_WAIT_NONE);
	hub.ep = endpoint_open(&hub.end, &name);
	if (fi_av_insert(hub.end.av, &name, 1, &self, 0, NULL) != 1)
		DIE("fi_av_insert");
	ping_pong(&hub, self, UINT64_MAX);
	alone = ping_pong(&hub, self, UINT64_MAX);
	heap = heap_used();
	for (uint32_t i = 0; i < receive_cnt; i++)
		MUST(fi_trecv(hub.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, i, 0, NULL));
	heap = (heap_used() - heap) / receive_cnt;
	among = ping_pong(&hub, self, UINT64_MAX);
	if (csv)
		printf("receives %u %.3f %.3f %ld\n", receive_cnt, alone * 1e6, among * 1e6, heap);
	result(true, "%u receives outstanding: %.2f us a message, %.2f us without them", receive_cnt, among * 1e6,
	       alone * 1e6);
	if (count_memory && receive_cnt >= 1000)
		result(heap <= RECV_BUDGET, "%ld bytes a receive, %d allowed", heap, RECV_BUDGET);
	hub_close(&hub);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "peers", required_argument, NULL, 'p' }, { "connections", required_argument, NULL, 'c' },
		{ "descriptors", required_argument, NULL, 'd' }, { "incoming", no_argument, NULL, 'i' },
		{ "receives", required_argument, NULL, 'r' }, { "csv", no_argument, NULL, 'v' }, { 0 },
	};
	const char *kind = getenv("BUILD_KIND");
	bool count_memory = !kind || (strcmp(kind, "asan") && strcmp(kind, "tsan"));
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'p')
			peer_cnt = atoi(optarg);
		else if (opt == 'c')
			connection_cnt = atoi(optarg);
		else if (opt == 'd')
			descriptor_cnt = atoi(optarg);
		else if (opt == 'i')
			incoming = true;
		else if (opt == 'r')
			receive_cnt = atoi(optarg);
		else if (opt == 'v')
			csv = true;
		else
			return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (connection_cnt) {
		char text[16];

		snprintf(text, sizeof(text), "%u", connection_cnt);
		setenv("FI_TCP_MAX_CONN", text, 1);
	}
	if (peer_cnt)
		many_peers(count_memory);
	if (receive_cnt)
		many_receives(count_memory);
	if (!csv)
		printf("1..%d\n", test_cnt);
	return !!fail_cnt;
}
