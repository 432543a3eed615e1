/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Answers questions for datagram endpoints (names.h): the UDP port, the Unix sockets of services, and a thread. The
 * thread does not call libibverbs, and takes no lock but `lock`, under which it reads one datagram at a time. Each
 * message from the network is checked by vrb_names_valid(), and answered or silently dropped; none makes memory grow.
 *
 * `life` serialises open, close and fini, including start and end of the thread. `lock` guards `here`, and is taken
 * inside of `life`; both may be taken with an engine's lock held. After a fork() the child has no thread, and does not
 * touch the parent's epoll set.
 */
#include "verbs/names.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/sock.h"
#include "common/engine/engine.h"

/* A question that the receiving process passes on to the process that has the service; both run this code. */
struct relay {
	struct vrb_names_msg question;
	union fab_sockaddr asker;
	uint32_t zero;
};
_Static_assert(sizeof(struct relay) == 80, "no holes, which would be the stack's");

static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	struct fab_list named;		/* struct vrb_named.link */
	pid_t pid;			/* process that owns the thread; 0: there is no thread, and nothing is open */
	pthread_t thread;
	bool ends;
	int udp, epfd, bell;		/* owned */
} here = { .named = FAB_LIST_INIT(here.named), .udp = -1, .epfd = -1, .bell = -1 };

/* ---- answers: lock held ---- */

static void names_answer(uint8_t code, const struct vrb_names_msg *question, const struct vrb_ud_name *name,
		   const union fab_sockaddr *asker)
{
	struct vrb_names_msg msg;
	struct iovec iov = { &msg, sizeof(msg) };
	struct msghdr hdr = {
		.msg_name = (void *) asker, .msg_namelen = fab_addr_len(&asker->sa), .msg_iov = &iov, .msg_iovlen = 1,
	};

	vrb_names_pack(&msg, code, be16toh(question->service), question->nonce, name);
	if (hdr.msg_namelen)
		fab_sock->sendmsg(here.udp, &hdr, MSG_DONTWAIT);	/* on failure the asker asks again */
}

static socklen_t service_name(struct sockaddr_un *un, uint16_t service)
{
	int len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "libfabric-verbs-dgram/%d/%d/%u",
			   VRB_NAMES_VERSION, vrb_params.name_server_port, service);

	un->sun_family = AF_UNIX;
	un->sun_path[0] = '\0';
	return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

/* Read a question from the network, and pass it to the process that has the service. If no process has it, answer
 * so. */
static void take_question(void)
{
	struct relay relay = { .asker.sa.sa_family = AF_UNSPEC };
	struct iovec iov = { &relay.question, sizeof(relay.question) };
	struct msghdr hdr = {
		.msg_name = &relay.asker, .msg_namelen = sizeof(relay.asker), .msg_iov = &iov, .msg_iovlen = 1,
	};
	const struct vrb_named *any = fab_container(here.named.next, const struct vrb_named, link);
	ssize_t len = fab_sock->recvmsg(here.udp, &hdr, MSG_DONTWAIT | MSG_TRUNC);
	struct sockaddr_un un;

	if (len < 0 || !vrb_names_valid(&relay.question, (size_t) len, VRB_NAMES_ASK) || fab_list_empty(&here.named))
		return;
	iov = (struct iovec) { &relay, sizeof(relay) };
	hdr = (struct msghdr) { .msg_name = &un, .msg_iov = &iov, .msg_iovlen = 1 };
	hdr.msg_namelen = service_name(&un, be16toh(relay.question.service));
	if (fab_sock->sendmsg(any->fd, &hdr, MSG_DONTWAIT) < 0 && errno == ECONNREFUSED)
		names_answer(VRB_NAMES_NONE, &relay.question, NULL, &relay.asker);
}

/* True if a message was sent by a process of this user or of root. */
static bool is_ours(struct msghdr *hdr)
{
	const struct cmsghdr *cmsg = CMSG_FIRSTHDR(hdr);
	struct ucred cred;

	if (!cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_CREDENTIALS ||
	    cmsg->cmsg_len != CMSG_LEN(sizeof(cred)))
		return false;
	memcpy(&cred, CMSG_DATA(cmsg), sizeof(cred));
	return cred.uid == getuid() || !cred.uid;
}

/* Read a relayed question. The sender is a process of this node, which need not use this library. */
static void take_relay(const struct vrb_named *named)
{
	union {
		char room[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct relay relay;
	struct iovec iov = { &relay, sizeof(relay) };
	struct msghdr hdr = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t len = fab_sock->recvmsg(named->fd, &hdr, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);

	if (len == sizeof(relay) && is_ours(&hdr) &&
	    vrb_names_valid(&relay.question, sizeof(relay.question), VRB_NAMES_ASK) &&
	    be16toh(relay.question.service) == named->name.service)
		names_answer(VRB_NAMES_FOUND, &relay.question, &named->name, &relay.asker);
}

/* Read from a descriptor. It may have been closed meanwhile, or be another socket by now; then there is nothing to
 * read. */
static void take_from(int fd)
{
	struct fab_list *link;

	if (fd == here.udp)
		take_question();
	fab_list_for_each(&here.named, link) {
		const struct vrb_named *named = fab_container(link, const struct vrb_named, link);

		if (named->fd == fd)
			take_relay(named);
	}
}

static void *names_thread_main(void *arg)
{
	struct epoll_event event;
	bool ends = false;
	int cnt;

	while (!ends) {
		cnt = fab_sock->epoll_wait(here.epfd, &event, 1, -1);
		if (cnt < 0 && errno != EINTR) {
			VRB_WARN(FI_LOG_EP_CTRL, "datagram endpoints can no longer be found by service: epoll_wait: "
				 "%s\n",
				 strerror(errno));
			break;
		}
		pthread_mutex_lock(&lock);
		ends = here.ends;
		if (cnt > 0 && !ends)
			take_from(event.data.fd);
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

/* ---- the port and the thread: life held ---- */

static int listen_to(int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return fab_sock->epoll_ctl(here.epfd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* Open the socket for questions by IPv4 and, if the machine has it, IPv6. Returns the descriptor, or -errno. */
static int udp_open(void)
{
	union fab_sockaddr any = { .sin6.sin6_family = AF_INET6 };
	int fd = fab_sock_open(AF_INET6, SOCK_DGRAM), ret = 0;

	if (fd == -EAFNOSUPPORT) {
		any.sa.sa_family = AF_INET;
		fd = fab_sock_open(AF_INET, SOCK_DGRAM);
	}
	if (fd < 0)
		return fd;
	if (any.sa.sa_family == AF_INET6)
		ret = fab_sock_set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (!ret)
		ret = fab_sock_set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	fab_addr_set_port(&any.sa, (uint16_t) vrb_params.name_server_port);
	if (!ret && fab_sock->bind(fd, &any.sa, fab_addr_len(&any.sa)))
		ret = -errno;
	if (!ret)
		return fd;
	fab_sock_close(&fd);
	return ret;
}

static void close_all(void)
{
	fab_sock_close(&here.bell);
	fab_sock_close(&here.epfd);
	fab_sock_close(&here.udp);
}

static void names_stop(void)
{
	if (!here.pid)
		return;
	if (here.pid == getpid()) {
		pthread_mutex_lock(&lock);
		here.ends = true;
		pthread_mutex_unlock(&lock);
		fab_sock->write(here.bell, &(uint64_t) { 1 }, sizeof(uint64_t));
		pthread_join(here.thread, NULL);
	}
	here.pid = 0;
	close_all();
}

/* Open the port and start the thread. 0, or -errno with the name of the failed part in *what. */
static int names_start(const char **what)
{
	int ret;

	if (here.pid == getpid())
		return 0;
	names_stop();
	*what = "the port";
	here.udp = udp_open();
	if (here.udp < 0)
		return here.udp;
	*what = "the thread that answers";
	here.ends = false;
	here.epfd = fab_sock->epoll_create1(EPOLL_CLOEXEC);
	here.bell = here.epfd < 0 ? -1 : fab_sock->eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = here.epfd < 0 || here.bell < 0 ? -errno : listen_to(here.udp);
	if (!ret)
		ret = listen_to(here.bell);
	if (!ret)
		ret = fab_thread_start(&here.thread, names_thread_main, NULL, "fi-names");
	if (!ret) {
		here.pid = getpid();
		return 0;
	}
	close_all();
	return ret;
}

/* ---- endpoints ---- */

static int service_open(uint16_t service)
{
	struct sockaddr_un un;
	socklen_t len = service_name(&un, service);
	int fd = fab_sock_open(AF_UNIX, SOCK_DGRAM), ret;

	if (fd < 0)
		return fd;
	ret = fab_sock_set_int(fd, SOL_SOCKET, SO_PASSCRED, 1);
	if (!ret && fab_sock->bind(fd, (const struct sockaddr *) &un, len))
		ret = -errno;
	if (!ret)
		return fd;
	fab_sock_close(&fd);
	return ret;
}

static int names_join(struct vrb_named *named, const char **what)
{
	int ret;

	*what = "the service";
	named->fd = service_open(named->name.service);
	if (named->fd < 0)
		return named->fd;
	ret = names_start(what);
	if (ret)
		return ret;
	pthread_mutex_lock(&lock);
	ret = listen_to(named->fd);
	if (!ret)
		fab_list_add_tail(&here.named, &named->link);
	pthread_mutex_unlock(&lock);
	if (ret && fab_list_empty(&here.named))
		names_stop();
	return ret;
}

static const char *advice(const char *what, int err)
{
	if (err != EADDRINUSE)
		return "";
	return !strcmp(what, "the port") ?
	       "; another program or user has it: set FI_VERBS_DGRAM_NAME_SERVER_PORT to a free one, at both ends" :
	       "; another endpoint of this node has it: ask for another one (FI_SOURCE)";
}

struct vrb_named *vrb_named_open(const struct vrb_ud_name *name)
{
	struct vrb_named *named = calloc(1, sizeof(*named));
	const char *what = "memory";
	int ret = -ENOMEM;

	if (named) {
		named->name = *name;
		fab_list_init(&named->link);
		pthread_mutex_lock(&life);
		ret = names_join(named, &what);
		pthread_mutex_unlock(&life);
	}
	if (!ret)
		return named;
	VRB_WARN(FI_LOG_EP_CTRL, "the datagram endpoint of queue pair %u cannot be found by service %u at UDP port %d: "
		 "%s: %s%s\n", name->qpn, name->service, vrb_params.name_server_port, what, strerror(-ret),
		 advice(what, -ret));
	if (named)
		fab_sock_close(&named->fd);
	free(named);
	return NULL;
}

void vrb_named_close(struct vrb_named *named)
{
	if (!named)
		return;
	pthread_mutex_lock(&life);
	pthread_mutex_lock(&lock);
	fab_list_remove(&named->link);
	if (here.pid == getpid())
		fab_sock->epoll_ctl(here.epfd, EPOLL_CTL_DEL, named->fd, NULL);
	fab_sock_close(&named->fd);
	pthread_mutex_unlock(&lock);
	if (fab_list_empty(&here.named))
		names_stop();
	pthread_mutex_unlock(&life);
	free(named);
}

void vrb_names_fini(void)
{
	pthread_mutex_lock(&life);
	names_stop();
	pthread_mutex_unlock(&life);
}
