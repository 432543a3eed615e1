/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_CAPTURE: the file is valid, has each byte of both directions once and in order over every carrier, and whatever
 * goes wrong with it is no harm to the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "base/bits.h"
#include "node.h"
#include "tcp/capture/capture.h"
#include "tcp/params/params.h"
#include "tcp/wire/wire.h"

#define FLOWS_MAX	8
#define LONG_LEN	300000		/* of a message that is announced */

static char dir[64], path[128];
static struct node a, b;

/* One direction of a stream in a file. */
struct flow {
	uint16_t from, to;
	uint32_t seq;			/* of the next byte */
	uint8_t *bytes;
	size_t len;
	bool ended;
};

static struct flow flows[FLOWS_MAX];
static unsigned flow_cnt, note_cnt;

/* ---- reading a file ---- */

static uint8_t *read_file(const char *name, size_t *len)
{
	struct stat st;
	uint8_t *bytes;
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_return_code(fstat(fd, &st), errno);
	assert_int_equal(st.st_mode & 07777, 0600);
	bytes = malloc(st.st_size + 1);
	assert_int_equal(read(fd, bytes, st.st_size), st.st_size);
	close(fd);
	*len = st.st_size;
	return bytes;
}

static struct flow *flow_of(const struct tcphdr *tcp)
{
	for (unsigned i = 0; i < flow_cnt; i++) {
		if (flows[i].from == tcp->source && flows[i].to == tcp->dest)
			return &flows[i];
	}
	assert_true(flow_cnt < FLOWS_MAX);
	assert_true(tcp->syn);
	flows[flow_cnt] = (struct flow) { .from = tcp->source, .to = tcp->dest };
	return &flows[flow_cnt++];
}

/* A packet, whose bytes must be the next ones of its flow. */
static void take_packet(const uint8_t *packet, size_t len)
{
	const struct iphdr *ip = (const struct iphdr *) packet;
	const struct tcphdr *tcp = (const struct tcphdr *) (ip + 1);
	size_t head = sizeof(*ip) + tcp->doff * 4;
	struct flow *flow = flow_of(tcp);

	assert_int_equal(ip->version, 4);
	assert_int_equal(ntohs(ip->tot_len), len);
	assert_false(flow->ended);
	if (tcp->syn)
		flow->seq = ntohl(tcp->seq) + 1;
	else
		assert_int_equal(ntohl(tcp->seq), flow->seq);
	flow->ended = tcp->fin;
	flow->bytes = realloc(flow->bytes, flow->len + len - head + 1);
	memcpy(flow->bytes + flow->len, packet + head, len - head);
	flow->len += len - head;
	flow->seq += len - head;
}

/* Walk through the blocks. */
static void take_file(const char *name)
{
	size_t len, at = 0;
	uint8_t *bytes = read_file(name, &len);
	uint32_t word[7], size;

	flow_cnt = note_cnt = 0;
	while (at < len) {
		assert_true(len - at >= 12);
		memcpy(word, bytes + at, fab_min(len - at, sizeof(word)));
		size = word[1];
		assert_true(size % 4 == 0 && size >= 12 && size <= len - at);
		assert_memory_equal(bytes + at + size - 4, &size, 4);
		assert_int_equal(word[0], at == 0 ? 0x0a0d0d0a : word[0] == 1 ? 1 : 6);
		if (word[0] == 6) {
			assert_int_equal(word[5], word[6]);
			take_packet(bytes + at + 28, word[5]);
			/* flags are 8 bytes, and the end of options 4 */
			note_cnt += size - 32 - (word[5] + 3) / 4 * 4 > 12;
		}
		at += size;
	}
	free(bytes);
}

static void free_flows(void)
{
	for (unsigned i = 0; i < flow_cnt; i++)
		free(flows[i].bytes);
	flow_cnt = 0;
}

/* The frames of a flow, behind its handshake: all are whole. Returns the kinds as bits. */
static uint64_t kinds_of(const struct flow *flow)
{
	const struct tcp_cm_hdr *cm = (const struct tcp_cm_hdr *) flow->bytes;
	uint64_t kinds = 0;
	struct tcp_hdr hdr;
	size_t at;

	assert_true(flow->len >= sizeof(*cm));
	assert_int_equal(cm->version, TCP_CM_VERSION);
	for (at = sizeof(*cm) + ntohs(cm->seg_size); at < flow->len;) {
		assert_true(flow->len - at >= sizeof(hdr));
		memcpy(&hdr, flow->bytes + at, sizeof(hdr));
		assert_int_equal(hdr.version, TCP_WIRE_VERSION);
		kinds |= FAB_BIT(hdr.op);
		at += TCP_PIECE_CNT(hdr.flags) ? hdr.hdr_size + TCP_PIECE_CNT(hdr.flags) * sizeof(struct iovec) :
						 hdr.size;
	}
	assert_int_equal(at, flow->len);
	return kinds;
}

/* ---- traffic ---- */

static void wait_for(unsigned cnt)
{
	struct fi_cq_data_entry entry;

	while (cnt) {
		ssize_t at_a = fi_cq_read(a.cq, &entry, 1), at_b = fi_cq_read(b.cq, &entry, 1);

		assert_true(at_a == 1 || at_a == -FI_EAGAIN);
		assert_true(at_b == 1 || at_b == -FI_EAGAIN);
		cnt -= at_a == 1;
		cnt -= at_b == 1;
	}
}

/* A short message from a to b and one back, a long one, and a write. */
static void talk(void)
{
	static char out[LONG_LEN], in[LONG_LEN], target[64];
	fi_addr_t to_b = node_insert(&a, &b.addr), to_a = node_insert(&b, &a.addr);
	struct fid_mr *mr;

	memset(out, 'l', sizeof(out));
	memcpy(out, "short message", 13);
	assert_int_equal(fi_recv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_send(a.ep, out, 13, NULL, to_b, NULL), 0);
	wait_for(2);
	assert_int_equal(fi_recv(a.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_send(b.ep, out, 13, NULL, to_a, NULL), 0);
	wait_for(2);
	assert_int_equal(fi_recv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_send(a.ep, out, sizeof(out), NULL, to_b, NULL), 0);
	wait_for(2);
	assert_memory_equal(out, in, sizeof(in));
	assert_int_equal(fi_mr_reg(b.domain, target, sizeof(target), FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL), 0);
	assert_int_equal(fi_write(a.ep, "written", 8, NULL, to_b, 0, 7, NULL), 0);
	wait_for(1);
	assert_string_equal(target, "written");
	fi_close(&mr->fid);
}

static void begin(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	tcp_capture_open(path);
	node_open(&a, FI_MSG | FI_RMA, FI_THREAD_UNSPEC);
	node_open(&b, FI_MSG | FI_RMA, FI_THREAD_UNSPEC);
}

static void end(void)
{
	node_close(&a);
	node_close(&b);
	tcp_capture_close();
}

static int setup(void **state)
{
	(void) state;
	snprintf(dir, sizeof(dir), "/tmp/capture.XXXXXX");
	assert_non_null(mkdtemp(dir));
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	(void) state;
	snprintf(command, sizeof(command), "rm -r '%s'", dir);
	assert_int_equal(system(command), 0);
	tcp_params.local = tcp_params.shared_memory = true;
	free_flows();
	return 0;
}

/* ---- tests ---- */

/* What a has sent to b is there, with the kinds of frames that talk() makes. */
static void check_flows(unsigned cnt, unsigned notes)
{
	const uint64_t talked = FAB_BIT(TCP_WIRE_MSG) | FAB_BIT(TCP_WIRE_XRTS) | FAB_BIT(TCP_WIRE_XCTS) |
				FAB_BIT(TCP_WIRE_WRITE);
	uint64_t kinds = 0;
	unsigned shorts = 0;

	take_file(path);
	assert_int_equal(flow_cnt, cnt);
	assert_int_equal(note_cnt, notes);
	for (unsigned i = 0; i < flow_cnt; i++) {
		kinds |= kinds_of(&flows[i]);
		shorts += memmem(flows[i].bytes, flows[i].len, "short message", 13) != NULL;
	}
	assert_int_equal(kinds & talked, talked);
	assert_int_equal(shorts, cnt);
}

/* Both ends are in this process: a connection has two directions, and each byte is there once. */
static void a_stream_over_tcp_is_whole(void **state)
{
	(void) state;
	tcp_params.local = false;
	begin("tcp");
	talk();
	end();
	check_flows(2, 0);
}

/* Here each end writes all of it: that of the connecting end, and that of the accepting one. */
static void a_stream_over_a_unix_socket_is_whole(void **state)
{
	(void) state;
	tcp_params.shared_memory = false;
	begin("unix");
	talk();
	end();
	check_flows(4, 0);
}

static void a_stream_over_rings_is_whole(void **state)
{
	(void) state;
	begin("rings");
	talk();
	end();
	check_flows(4, 2);
}

static void percent_p_is_the_process(void **state)
{
	(void) state;
	begin("of-%p-100%%.pcapng");
	end();
	snprintf(path, sizeof(path), "%s/of-%d-100%%.pcapng", dir, (int) getpid());
	take_file(path);
}

static void a_folder_gets_a_file(void **state)
{
	(void) state;
	begin("");
	end();
	snprintf(path, sizeof(path), "%s/weft_%d.pcapng", dir, (int) getpid());
	take_file(path);
}

/* Neither a file nor a link: nothing is captured, and the program runs. */
static void what_exists_is_not_written_to(void **state)
{
	char link_path[160];
	struct stat st;
	int fd;

	(void) state;
	snprintf(path, sizeof(path), "%s/there", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
	begin("there");
	assert_false(tcp_capture_on());
	talk();
	end();
	assert_return_code(stat(path, &st), errno);
	assert_int_equal(st.st_size, 0);
	snprintf(link_path, sizeof(link_path), "%s/link", dir);
	snprintf(path, sizeof(path), "%s/nowhere", dir);
	assert_return_code(symlink(path, link_path), errno);
	begin("link");
	assert_false(tcp_capture_on());
	end();
	snprintf(path, sizeof(path), "%s/nowhere", dir);
	assert_int_equal(access(path, F_OK), -1);
}

/* The limit on the size of files stands for a full disk. Beyond it, a write would raise SIGXFSZ, which ends a
 * program. */
static void a_file_that_cannot_grow_ends_the_capture(void **state)
{
	struct rlimit was, limit;

	(void) state;
	assert_return_code(getrlimit(RLIMIT_FSIZE, &was), errno);
	limit = was;
	limit.rlim_cur = 100000;
	tcp_params.local = false;
	begin("full");
	assert_return_code(setrlimit(RLIMIT_FSIZE, &limit), errno);
	talk();
	assert_false(tcp_capture_on());
	assert_return_code(setrlimit(RLIMIT_FSIZE, &was), errno);
	talk();
	end();
	take_file(path);
}

/* In a child of fork(): capture of a stream that it opens itself. Returns to the parent whether it did. */
static bool child_captures(const char *name)
{
	struct tcp_capture_stream stream = {
		.ours.sin = { .sin_family = AF_INET, .sin_port = htons(1) },
		.theirs.sin = { .sin_family = AF_INET, .sin_port = htons(2) },
	};
	int status;
	pid_t pid;

	begin(name);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		tcp_capture_begin(1000, &stream);
		tcp_capture_put(1000, true, &(struct iovec) { "child", 5 }, 5);
		_exit(tcp_capture_on());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	talk();
	end();
	snprintf(path, sizeof(path), "%s/child-%d", dir, (int) pid);
	return WEXITSTATUS(status);
}

static void a_child_has_a_file_of_its_own(void **state)
{
	(void) state;
	assert_true(child_captures("child-%p"));
	take_file(path);
	assert_int_equal(flow_cnt, 2);
	free_flows();
	snprintf(path, sizeof(path), "%s/child-%d", dir, (int) getpid());
	check_flows(4, 2);
}

static void a_child_leaves_the_file_of_its_parent_alone(void **state)
{
	(void) state;
	assert_false(child_captures("parent"));
	snprintf(path, sizeof(path), "%s/parent", dir);
	check_flows(4, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_stream_over_tcp_is_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stream_over_a_unix_socket_is_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stream_over_rings_is_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(percent_p_is_the_process, setup, teardown),
		cmocka_unit_test_setup_teardown(a_folder_gets_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(what_exists_is_not_written_to, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_cannot_grow_ends_the_capture, setup, teardown),
		cmocka_unit_test_setup_teardown(a_child_has_a_file_of_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(a_child_leaves_the_file_of_its_parent_alone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
