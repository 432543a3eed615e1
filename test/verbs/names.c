/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagram endpoints found by node and service: by whom, by whom not, and what becomes of it when processes come and go
 * or say what they like. Runs in a network namespace of its own (names.test).
 */
#include "link.h"

#include <dirent.h>
#include <endian.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "verbs/names_wire.h"

#define PORT		5678
#define ASK_CNT		8		/* questions, so that each of the processes that share the port gets some */
#define SOON_MS		60000

/* ---- endpoints and questions ---- */

static void open_service(struct dgram *dgram, const char *service)
{
	struct fi_info *hints = dgram_hints_new(), *info;

	MUST(fi_getinfo(FI_VERSION(1, 20), NULL, service, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	dgram_open(dgram, info);
	fi_freeinfo(info);
}

/* What fi_getinfo returns; 0: with this name, of DGRAM_NAME_LEN bytes. */
static int look(const char *node, const char *service, char *name)
{
	struct fi_info *hints = dgram_hints_new(), *info;
	int ret = fi_getinfo(FI_VERSION(1, 20), node, service, 0, hints, &info);

	fi_freeinfo(hints);
	if (ret)
		return ret;
	MUST_BE(info->addr_format == FI_ADDR_IB_UD && info->dest_addrlen == DGRAM_NAME_LEN);
	memcpy(name, info->dest_addr, DGRAM_NAME_LEN);
	fi_freeinfo(info);
	return 0;
}

/* A question has an answer in two seconds, or none: where there is no time for the thread that answers, ask again. */
static void must_find(const char *node, const char *service, const char *name)
{
	char found[DGRAM_NAME_LEN];
	int ret, tries = 30;

	while ((ret = look(node, service, found)) && --tries)
		;
	MUST(ret);
	MUST_BE(!memcmp(found, name, sizeof(found)));
}

static void must_not_find(const char *node, const char *service, int err)
{
	char found[DGRAM_NAME_LEN];

	MUST_FAIL(look(node, service, found), err);
}

/* ---- other processes ---- */

struct other {
	pid_t pid;
	int in, out;			/* a byte begins the process, and another one ends it */
	char name[DGRAM_NAME_LEN];
};

/* It does not outlive this one. Before this one has threads, which a sanitizer does not follow. */
static pid_t start(void)
{
	pid_t pid = fork();

	MUST_BE(pid >= 0);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void say(int fd)
{
	MUST_BE(write(fd, "", 1) == 1);
}

static void await(int fd)
{
	char byte;

	MUST_BE(read(fd, &byte, 1) == 1);
}

/* A process that is going to have an endpoint of this service. */
static void other_start(struct other *other, const char *service)
{
	struct dgram dgram = { 0 };
	int there[2], back[2];

	MUST_BE(!pipe(there) && !pipe(back));
	other->pid = start();
	other->in = back[0];
	other->out = there[1];
	close(other->pid ? there[0] : there[1]);
	close(other->pid ? back[1] : back[0]);
	if (other->pid)
		return;
	await(there[0]);
	open_service(&dgram, service);
	MUST_BE(write(back[1], dgram.name, sizeof(dgram.name)) == sizeof(dgram.name));
	await(there[0]);
	dgram_close(&dgram);
	exit(0);
}

static void other_begin(struct other *other)
{
	say(other->out);
	MUST_BE(read(other->in, other->name, sizeof(other->name)) == sizeof(other->name));
}

static void other_kill(struct other *other)
{
	MUST_BE(!kill(other->pid, SIGKILL) && waitpid(other->pid, NULL, 0) == other->pid);
}

static void other_end(struct other *other)
{
	int status;

	say(other->out);
	MUST_BE(waitpid(other->pid, &status, 0) == other->pid && !status);
}

/* ---- what comes over the port itself ---- */

static struct vrb_names_msg question(void)
{
	return (struct vrb_names_msg) {
		.magic = htobe32(VRB_NAMES_MAGIC), .version = VRB_NAMES_VERSION, .code = VRB_NAMES_ASK,
		.service = htobe16(9001), .nonce = 1,
	};
}

static struct sockaddr_in at_port(void)
{
	return (struct sockaddr_in) {
		.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static int udp_socket(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	MUST_BE(fd >= 0);
	return fd;
}

/* The next datagram, of at most len bytes: how many it has. */
static ssize_t hear(int fd, void *msg, size_t len)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	MUST_BE(poll(&pfd, 1, SOON_MS) == 1);
	return recv(fd, msg, len, 0);
}

/* ---- cases ---- */

static void by_node_and_service(void)
{
	struct dgram server = { 0 }, client = { 0 };
	fi_addr_t addr[4];

	open_service(&server, "9001");
	open_service(&client, "9002");
	must_find("127.0.0.1", "9001", server.name);
	must_find("127.0.0.1", "9002", client.name);
	must_find("127.9.8.7", "9001", server.name);	/* the answer comes from another address */
	must_find("fi_sockaddr_in://127.0.0.1:9001", NULL, server.name);
	must_not_find("127.0.0.1", "9003", FI_ENODATA);
	must_not_find("127.0.0.1", NULL, FI_ENODATA);
	must_not_find("127.0.0.1", "no-such-service", FI_ENODATA);
	while (fi_av_insertsvc(client.av, "127.0.0.1", "9001", &addr[0], 0, NULL) != 1)
		;
	dgram_send(&client, addr[0], &server);
	while (fi_av_insertsym(client.av, "127.0.0.1", 2, "9001", 2, addr, 0, NULL) != 4)
		;
	dgram_send(&client, addr[2], &server);
	MUST_BE(!fi_av_insertsvc(client.av, "127.0.0.1", "9003", addr, 0, NULL) && addr[0] == FI_ADDR_NOTAVAIL);
	MUST_BE(!fi_av_insertsym(client.av, "127.0.0.1", 1, "65535", 1, addr, 0, NULL));
	MUST_FAIL(fi_av_insertsym(client.av, "127.0.0.1", 1, "9001", 65536, addr, 0, NULL), FI_EINVAL);
	dgram_close(&server);
	must_not_find("127.0.0.1", "9001", FI_ENODATA);
	dgram_close(&client);
	must_not_find("127.0.0.1", "9002", FI_ENODATA);
}

/* Node and service take the place of one address of the hints, and leave the other. */
static void with_addresses_in_hints(void)
{
	struct fi_info *hints = dgram_hints_new(), *ports, *info;
	struct dgram server = { 0 };
	char src[DGRAM_NAME_LEN];

	MUST(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &ports));
	MUST_BE(ports->next && !ports->next->next);
	memcpy(src, ports->next->src_addr, sizeof(src));
	fi_freeinfo(ports);

	MUST(fi_getinfo(FI_VERSION(1, 20), "fi_sockaddr_in://127.0.0.2:9001", NULL, FI_SOURCE, hints, &info));
	MUST_BE(!info->next);
	dgram_open(&server, info);
	fi_freeinfo(info);
	must_find("127.0.0.1", "9001", server.name);

	hints->src_addr = src;
	hints->src_addrlen = sizeof(src);
	while (fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", "9001", 0, hints, &info))
		;
	MUST_BE(!info->next && !memcmp(info->src_addr, src, sizeof(src)));
	MUST_BE(!memcmp(info->dest_addr, server.name, sizeof(server.name)));
	fi_freeinfo(info);

	hints->dest_addr = server.name;
	hints->dest_addrlen = sizeof(server.name);
	MUST(fi_getinfo(FI_VERSION(1, 20), NULL, "9002", FI_SOURCE, hints, &info));
	MUST_BE(info->next && !memcmp(info->dest_addr, server.name, sizeof(server.name)));
	fi_freeinfo(info);
	hints->src_addr = hints->dest_addr = NULL;
	fi_freeinfo(hints);
	dgram_close(&server);
}

static void by_ipv6(void)
{
	struct dgram server = { 0 };

	open_service(&server, "9001");
	must_find("::1", "9001", server.name);
	dgram_close(&server);
}

/* Whoever gets the question, it comes to the one that has the service, as long as there is one. */
static void processes_come_and_go(void)
{
	struct other one, two, again;

	other_start(&one, "9001");
	other_start(&two, "9002");
	other_start(&again, "9001");
	other_begin(&one);
	other_begin(&two);
	for (int i = 0; i < ASK_CNT; i++) {
		must_find("127.0.0.1", "9001", one.name);
		must_find("127.0.0.1", "9002", two.name);
	}
	other_kill(&one);
	for (int i = 0; i < ASK_CNT; i++)
		must_find("127.0.0.1", "9002", two.name);
	must_not_find("127.0.0.1", "9001", FI_ENODATA);
	other_begin(&again);
	for (int i = 0; i < ASK_CNT; i++)
		must_find("127.0.0.1", "9001", again.name);
	other_end(&two);
	must_not_find("127.0.0.1", "9002", FI_ENODATA);
	other_end(&again);
	must_not_find("127.0.0.1", "9001", FI_ENODATA);
}

static void service_is_taken(void)
{
	struct dgram one = { 0 }, two = { 0 };

	open_service(&one, "9001");
	open_service(&two, "9001");
	must_find("127.0.0.1", "9001", one.name);
	dgram_talk(&one, &two);
	dgram_close(&two);
	must_find("127.0.0.1", "9001", one.name);
	dgram_close(&one);
}

/* The endpoint works; who asks there gets no answer, in two seconds. */
static void port_is_taken(void)
{
	struct sockaddr_in addr = at_port();
	struct dgram one = { 0 }, two = { 0 };
	int fd = udp_socket();

	MUST_BE(!bind(fd, (struct sockaddr *) &addr, sizeof(addr)));
	open_service(&one, "9001");
	open_service(&two, "0");
	dgram_talk(&one, &two);
	must_not_find("127.0.0.1", "9001", FI_ENODATA);
	dgram_close(&two);
	dgram_close(&one);
	close(fd);
}

/* Are there threads of this name? */
static bool has_thread(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	bool found = false;

	MUST_BE(dir);
	while ((entry = readdir(dir))) {
		char path[sizeof("/proc/self/task//comm") + sizeof(entry->d_name)], comm[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (file && fgets(comm, sizeof(comm), file))
			found |= !strncmp(comm, name, strlen(name));
		if (file)
			fclose(file);
	}
	closedir(dir);
	return found;
}

/* One that asked for no service, or where it is switched off: there is neither a thread nor an answer. */
static void nobody_asked(void)
{
	struct dgram one = { 0 };

	open_service(&one, getenv("FI_VERBS_DGRAM_USE_NAME_SERVER") ? "9001" : "0");
	MUST_BE(!has_thread("fi-names"));
	must_not_find("127.0.0.1", "9001", FI_ENODATA);
	dgram_close(&one);
}

/* One thread for all, as long as there is one that can be found. */
static void many(void)
{
	static struct dgram all[8];
	char service[16];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 8; i++) {
			snprintf(service, sizeof(service), "%d", 9001 + i);
			open_service(&all[i], service);
		}
		for (int i = 0; i < 8; i++) {
			snprintf(service, sizeof(service), "%d", 9001 + i);
			must_find("127.0.0.1", service, all[i].name);
			MUST_BE(has_thread("fi-names"));
			dgram_close(&all[i]);
		}
		while (has_thread("fi-names"))	/* it is listed for a moment after its end */
			;
	}
}

/* Of all that comes the one right question is answered. */
static void strange_questions(void)
{
	struct sockaddr_in addr = at_port();
	struct vrb_names_msg msg = question();
	char longer[sizeof(msg) + 1] = "";
	struct dgram one = { 0 };
	int fd = udp_socket();

	open_service(&one, "9001");
	MUST_BE(!connect(fd, (struct sockaddr *) &addr, sizeof(addr)));
	memcpy(longer, &msg, sizeof(msg));
	MUST_BE(send(fd, longer, sizeof(longer), 0) == sizeof(longer));
	for (size_t len = 0; len < sizeof(msg); len++)
		MUST_BE(send(fd, &msg, len, 0) == (ssize_t) len);
	/* every byte but those of the service and the nonce is held against something */
	for (size_t i = 0; i < sizeof(msg); i++) {
		if (i >= offsetof(struct vrb_names_msg, service) && i < offsetof(struct vrb_names_msg, gid))
			continue;
		((uint8_t *) &msg)[i] ^= 0x40;
		MUST_BE(send(fd, &msg, sizeof(msg), 0) == sizeof(msg));
		((uint8_t *) &msg)[i] ^= 0x40;
	}
	for (uint8_t code = VRB_NAMES_FOUND; code <= VRB_NAMES_NONE + 1; code++) {
		msg.code = code;
		MUST_BE(send(fd, &msg, sizeof(msg), 0) == sizeof(msg));
	}
	msg = question();
	msg.service = 0;
	MUST_BE(send(fd, &msg, sizeof(msg), 0) == sizeof(msg));
	msg = question();
	msg.nonce = 4711;
	MUST_BE(send(fd, &msg, sizeof(msg), 0) == sizeof(msg));
	MUST_BE(hear(fd, &msg, sizeof(msg)) == sizeof(msg));
	MUST_BE(msg.code == VRB_NAMES_FOUND && msg.nonce == 4711 && !memcmp(msg.gid, one.name, sizeof(msg.gid)));
	close(fd);
	dgram_close(&one);
}

/* Processes of this node may write to a service's socket: what no process of this user sent is not looked at. There is
 * no other user where the namespace was not made by root. */
static void strange_relays(void)
{
	struct { struct vrb_names_msg msg; struct sockaddr_in6 asker; } relay = { .msg = question() };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len = offsetof(struct sockaddr_un, sun_path) + 1, asker_len = sizeof(relay.asker);
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0), udp = socket(AF_INET6, SOCK_DGRAM, 0), there[2], status;
	struct dgram one = { 0 };
	pid_t pid;

	MUST_BE(udp >= 0 && !bind(udp, (struct sockaddr *) &(struct sockaddr_in6) {
		.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT }, sizeof(struct sockaddr_in6)));
	MUST_BE(!getsockname(udp, (struct sockaddr *) &relay.asker, &asker_len));
	MUST_BE(!pipe(there));
	pid = start();
	if (!pid) {
		await(there[0]);
		_exit(setuid(65534) ? 77 : send(fd, &relay, sizeof(relay), 0) != sizeof(relay));
	}
	open_service(&one, "9001");
	len += sprintf(un.sun_path + 1, "libfabric-verbs-dgram/%d/%d/9001", VRB_NAMES_VERSION, PORT);
	MUST_BE(fd >= 0 && !connect(fd, (struct sockaddr *) &un, len));
	say(there[1]);
	MUST_BE(waitpid(pid, &status, 0) == pid);
	MUST_BE(WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == 77));
	relay.msg.nonce = 2;
	MUST_BE(send(fd, &relay, sizeof(relay) - 1, 0) == sizeof(relay) - 1);
	MUST_BE(send(fd, &relay, 0, 0) == 0);
	relay.msg.service = htobe16(9002);
	MUST_BE(send(fd, &relay, sizeof(relay), 0) == sizeof(relay));
	relay.msg.service = htobe16(9001);
	relay.asker.sin6_family = AF_UNIX;
	MUST_BE(send(fd, &relay, sizeof(relay), 0) == sizeof(relay));
	relay.asker.sin6_family = AF_INET6;
	relay.msg.nonce = 4711;
	MUST_BE(send(fd, &relay, sizeof(relay), 0) == sizeof(relay));
	MUST_BE(hear(udp, &relay.msg, sizeof(relay.msg)) == sizeof(relay.msg));
	MUST_BE(relay.msg.code == VRB_NAMES_FOUND && relay.msg.nonce == 4711);
	close(fd);
	close(udp);
	dgram_close(&one);
}

/* ---- the other way round: who answers may say what he likes ---- */

static void send_answer(int fd, const struct sockaddr_in *to, const struct vrb_names_msg *msg, size_t len)
{
	MUST_BE(sendto(fd, msg, len, 0, (const struct sockaddr *) to, sizeof(*to)) == (ssize_t) len);
}

/* To each question a dozen that are none, and one that is. */
static void answer_strangely(int fd)
{
	struct vrb_names_msg asked, msg, wrong;
	struct sockaddr_in to;
	socklen_t to_len = sizeof(to);

	MUST_BE(recvfrom(fd, &asked, sizeof(asked), 0, (struct sockaddr *) &to, &to_len) == sizeof(asked));
	msg = asked;
	msg.code = VRB_NAMES_FOUND;
	msg.gid[15] = 7;
	msg.qpn = htobe32(77);
	send_answer(fd, &to, &msg, 0);
	send_answer(fd, &to, &msg, sizeof(msg) - 1);
	send_answer(fd, &to, &asked, sizeof(asked));
#define WITH(field, value) (wrong = msg, wrong.field = (value), send_answer(fd, &to, &wrong, sizeof(wrong)))
	WITH(magic, 0);
	WITH(version, 2);
	WITH(service, htobe16(9002));
	WITH(nonce, asked.nonce + 1);
	WITH(gid[0], 0xff);
	WITH(gid[15], 0);
	WITH(qpn, htobe32(1));
	WITH(qpn, htobe32(1 << 24));
	WITH(sl, 16);
	WITH(zero[6], 1);
	WITH(code, VRB_NAMES_NONE);
	send_answer(fd, &to, &msg, sizeof(msg));
}

static void strange_answers(void)
{
	struct { uint8_t gid[16]; uint32_t qpn, lid_pkey, service, rest; } right = { .gid[15] = 7, .qpn = 77 };
	struct sockaddr_in addr = at_port();
	int fd = udp_socket();
	pid_t pid;

	MUST_BE(!bind(fd, (struct sockaddr *) &addr, sizeof(addr)));
	pid = start();
	if (!pid) {
		for (;;)
			answer_strangely(fd);
	}
	close(fd);
	memcpy(&right.service, &(uint16_t) { 9001 }, sizeof(uint16_t));
	_Static_assert(sizeof(right) == DGRAM_NAME_LEN, "as fi_getname gives it");
	must_find("127.0.0.1", "9001", (const char *) &right);
	MUST_BE(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
}

/* Switches are read once a process. */
static const struct vcase cases[] = {
	{ "by node and service", NULL, by_node_and_service, "no endpoint of that node has the service" },
	{ "with addresses in the hints", "SOFTVERBS_DEVICES=soft0=127.0.0.1;127.0.0.2", with_addresses_in_hints, NULL },
	{ "processes come and go", "FI_LOG_LEVEL=info", processes_come_and_go,
	  "no process of that node has an endpoint" },
	{ "a service that is taken", NULL, service_is_taken, "another endpoint of this node has it" },
	{ "a port that is taken, and nobody who answers", NULL, port_is_taken, "set FI_VERBS_DGRAM_NAME_SERVER_PORT" },
	{ "an endpoint without a service", NULL, nobody_asked, NULL },
	{ "switched off", "FI_VERBS_DGRAM_USE_NAME_SERVER=0", nobody_asked, NULL },
	{ "many", NULL, many, NULL },
	{ "strange questions", NULL, strange_questions, NULL },
	{ "strange answers", NULL, strange_answers, NULL },
	/* these want IPv6 */
	{ "by IPv6", NULL, by_ipv6, NULL },
	{ "strange processes of this node", NULL, strange_relays, NULL },
};
#define IPV6_CNT	2

int main(void)
{
	size_t cnt = sizeof(cases) / sizeof(cases[0]);

	if (access("/proc/net/if_inet6", F_OK)) {
		printf("# no IPv6 here: what wants it is left out\n");
		cnt -= IPV6_CNT;
	}
	return run_cases(cases, cnt);
}
