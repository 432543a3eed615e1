/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Groups of processes. The parent is a relay: one round of it takes a message of the same length from every member,
 * swaps them with the parent on the other host, if there is one, and gives all of them to each. It ends when a member
 * has closed its socket.
 */
#include "group.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_NAME 256

/* What a member says begins with its length. */
struct said {
	uint32_t len;
	char bytes[GROUP_MAX_SAID];
};

/* Of the parent. Its members are `mine` of `cnt`, from number `first` on. */
struct relay {
	unsigned cnt, first, mine;
	unsigned half;                  /* how many the server has of two hosts, else 0; the client may have one less */
	int fd[GROUP_MAX];              /* these two by order here, not by number */
	pid_t pid[GROUP_MAX];
	struct said said[GROUP_MAX];    /* by number */
};

/* ---- a member ---- */

/* Read all of len bytes, while the provider works. */
static int read_all(struct func *func, int fd, void *buf, size_t len)
{
	struct pp_wait wait = { .polls = 0 };
	size_t done = 0;
	ssize_t ret;

	while (done < len) {
		ret = recv(fd, (char *) buf + done, len - done, MSG_DONTWAIT);
		if (ret > 0) {
			done += (size_t) ret;
			continue;
		}
		if (!ret || (errno != EAGAIN && errno != EINTR))
			return pp_fail(func->pp, -FI_ECONNRESET, "wait for the group: a member has failed");
		FUNC_TRY(func_tick(func, &wait, "the group"));
	}
	return 0;
}

int group_gather(struct func *func, struct group *group, const void *ours, void *all, size_t len)
{
	struct said said = { .len = (uint32_t) len };
	unsigned i;

	memcpy(said.bytes, ours, len);
	if (send(group->fd, &said, sizeof(said), MSG_NOSIGNAL) != (ssize_t) sizeof(said))
		return pp_fail(func->pp, -FI_ECONNRESET, "tell the group");
	for (i = 0; i < group->cnt; i++) {
		FUNC_TRY(read_all(func, group->fd, &said, sizeof(said)));
		FUNC_EXPECT(func, said.len == len, "member %u is elsewhere: it said %u bytes, not %zu", i, said.len,
			    len);
		memcpy((char *) all + i * len, said.bytes, len);
	}
	return 0;
}

int group_barrier(struct func *func, struct group *group)
{
	char ours = 0, all[GROUP_MAX];

	return group_gather(func, group, &ours, all, sizeof(ours));
}

/* Insert everyone's name, in the order of their numbers. */
static int learn_names(struct func *func, struct group *group)
{
	static char names[GROUP_MAX * MAX_NAME];
	char name[MAX_NAME] = "";
	size_t len = sizeof(name);
	unsigned i;
	int ret;

	FUNC_CALL(func, fi_getname(&group->ep.ep->fid, name, &len));
	FUNC_TRY(group_gather(func, group, name, names, sizeof(name)));
	for (i = 0; i < group->cnt; i++) {
		ret = fi_av_insert(func->av, names + i * MAX_NAME, 1, &group->peers[i], 0, NULL);
		FUNC_EXPECT(func, ret == 1, "fi_av_insert of member %u gave %d", i, ret);
	}
	return 0;
}

static int run_member(struct func *func, struct group *group, const struct func_ep_attr *attr,
		      int (*body)(struct func *func, struct group *group))
{
	int ret = func_open(func), close_ret;

	if (!ret)
		ret = func_ep_create(func, &group->ep, attr);
	if (!ret)
		ret = learn_names(func, group);
	if (!ret)
		ret = body(func, group);
	/* Nobody closes what another may still reach. */
	if (!ret)
		ret = group_barrier(func, group);
	close_ret = func_close_all(func);
	return ret ? ret : close_ret;
}

/* ---- the parent ---- */

/* The next message of a member: 0, or -FI_ECONNRESET when it is gone. */
static int take_said(int fd, struct said *said, int limit_ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	size_t done = 0;
	ssize_t ret;

	while (done < sizeof(*said)) {
		if (poll(&poll_fd, 1, limit_ms) <= 0)
			return -FI_ETIMEDOUT;
		ret = recv(fd, (char *) said + done, sizeof(*said) - done, 0);
		if (ret <= 0)
			return -FI_ECONNRESET;
		done += (size_t) ret;
	}
	return 0;
}

/* What the other parent's members have said, for what ours have: always `half` of them, the last may be nobody's. */
static int swap_said(struct func *func, struct relay *relay)
{
	return !relay->half ? 0 : func_exchange(func, &relay->said[relay->first],
						&relay->said[relay->first ? 0 : relay->half],
						relay->half * sizeof(relay->said[0]), "the members on the other host");
}

static void give_all(const struct relay *relay)
{
	unsigned i;

	for (i = 0; i < relay->mine; i++)
		send(relay->fd[i], relay->said, relay->cnt * sizeof(relay->said[0]), MSG_NOSIGNAL);
}

/* Rounds, until a member is gone: done, or failed, which its exit code tells. A member that says nothing for longer
 * than any wait of its own has its limits in hand. 0, or -FI_* when it is the other parent who is gone. */
static int relay_rounds(struct func *func, struct relay *relay)
{
	unsigned i;

	for (;;) {
		for (i = 0; i < relay->mine; i++) {
			if (take_said(relay->fd[i], &relay->said[relay->first + i], 4 * func->pp->opts->wait_ms))
				return 0;
		}
		FUNC_TRY(swap_said(func, relay));
		give_all(relay);
	}
}

/* A member has no control channel, and none of the relay's sockets but its end of its own. */
static void become_member(struct func *func, const struct relay *relay, unsigned started)
{
	static struct pp_opts opts;
	unsigned i;

	for (i = 0; i <= started; i++)
		close(relay->fd[i]);
	pp_ctrl_close(func->pp);
	opts = *func->pp->opts;
	opts.alone = func->alone = true;
	func->pp->opts = &opts;
}

static int start_member(struct func *func, struct relay *relay, unsigned which, const struct func_ep_attr *attr,
			int (*body)(struct func *func, struct group *group))
{
	struct group *group;
	int fds[2], ret;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return pp_fail(func->pp, -errno, "socketpair");
	fflush(stdout);
	relay->pid[which] = fork();
	if (relay->pid[which] < 0) {
		ret = -errno;
		close(fds[0]);
		close(fds[1]);
		return pp_fail(func->pp, ret, "fork");
	}
	relay->fd[which] = fds[0];
	if (relay->pid[which]) {
		close(fds[1]);
		return 0;
	}
	become_member(func, relay, which);
	group = calloc(1, sizeof(*group));
	if (!group)
		_exit(FI_ENOMEM);
	group->cnt = relay->cnt;
	group->self = relay->first + which;
	group->fd = fds[1];
	_exit(util_exit_code(run_member(func, group, attr, body)));
}

/* The end of every member that was started; -FI_* of the most telling failure. */
static int take_codes(struct func *func, struct relay *relay, unsigned started)
{
	int status, code, ret = 0;
	unsigned i;

	for (i = 0; i < started; i++)
		close(relay->fd[i]);
	for (i = 0; i < started; i++) {
		if (waitpid(relay->pid[i], &status, 0) != relay->pid[i])
			continue;
		code = WIFEXITED(status) ? WEXITSTATUS(status) : FI_EOTHER;
		if (!WIFEXITED(status))
			pp_fail(func->pp, -FI_EOTHER, "member %u ended by signal %d", relay->first + i,
				WTERMSIG(status));
		/* The others only see that one is missing. */
		if (code && (!ret || ret == -FI_ECONNRESET))
			ret = -code;
	}
	return ret;
}

int group_take(struct func *func)
{
	func->alone = false;
	return 0;
}

/* Which members are this parent's. */
static int divide(struct func *func, struct relay *relay, unsigned cnt)
{
	relay->cnt = relay->mine = cnt;
	if (func->alone)
		return func->client ? pp_fail(func->pp, -FI_EINVAL, "a server address, without -H") : 0;
	if (func->pp->opts->carrier)
		return pp_fail(func->pp, -FI_EINVAL, "--in-band with -H: processes are started behind it");
	if (cnt < 2)
		return pp_fail(func->pp, -FI_EINVAL, "-H with a single process");
	relay->half = (cnt + 1) / 2;
	relay->first = func->client ? relay->half : 0;
	relay->mine = func->client ? cnt - relay->half : relay->half;
	return 0;
}

int group_run(struct func *func, unsigned cnt, const struct func_ep_attr *attr,
	      int (*body)(struct func *func, struct group *group))
{
	struct relay *relay = calloc(1, sizeof(*relay));
	unsigned started = 0;
	int ret = relay ? divide(func, relay, cnt) : -FI_ENOMEM, codes;

	if (!relay)
		return ret;
	while (started < relay->mine && !ret) {
		ret = start_member(func, relay, started, attr, body);
		started += !ret;
	}
	if (!ret)
		ret = relay_rounds(func, relay);
	codes = take_codes(func, relay, started);
	free(relay);
	return codes ? codes : ret;
}
