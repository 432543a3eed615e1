/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * XRC: domains, and target queue pairs and receive queues that several processes share.
 *
 * A domain is known by the inode that it hangs on. That one exists for this device somewhere on the machine is a shared
 * lock on a byte of the file, whose place stands for the device; the kernel drops it with the process.
 *
 * A target queue pair's socket is read by one process, its holder, who has bound the queue pair's lock name: first the
 * creator, once the queue pair is in INIT. ibv_open_qp() in another asks the holder for the socket, and from then on
 * tries the name now and then, to be the next. The holder passes requests on to the process that has the SRQ they name,
 * one message after the other: that process answers the initiator, and tells the holder when the answer has left. So
 * the answers are in order, and nothing is carried out behind a message that found no receive.
 */
#include "sv.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_WAIT_MS	2000
#define RETRY_NS	200000ull	/* before a full SRQ socket is tried again */
#define HOLDER_NS	20000000ull	/* between tries to be the holder */

struct sv_xrcd {
	struct ibv_xrcd xrcd;
	uint64_t dev, ino;		/* 0: private */
	int fd;				/* holds the lock; -1: private */
	unsigned ref_cnt;		/* queue pairs and SRQs */
};

/* How far a target queue pair is with the requests of its initiator: memory that all processes which have it share, and
 * that its holder writes. */
struct progress {
	uint32_t msn;			/* the message that comes next, or of which a part has come; */
	uint64_t offset;		/* so many bytes of it */
	bool waiting;			/* all of it has been passed on, and its answer has not left */
	uint32_t srqn;			/* to this queue */
};

/* What an XRC_RECV queue pair has beyond others. */
struct sv_xrc_tgt {
	struct sv_qp *qp;
	struct sv_source lock;		/* bound to the lock name: we are the holder; fd -1: another is */
	struct sv_timer settle;
	int progress_fd;		/* -1: the queue pair is in RESET */
	struct progress *progress;
	/* a packet that its SRQ's process had no room for */
	uint8_t *held;
	struct sv_timer retry;
	struct sv_timer watch;		/* while waiting: is that process there? */
};

static struct sv_xrcd *sv_xrcd(struct ibv_xrcd *xrcd)
{
	return fab_container(xrcd, struct sv_xrcd, xrcd);
}

void sv_xrcd_hold(struct ibv_xrcd *xrcd)
{
	sv_xrcd(xrcd)->ref_cnt++;
}

void sv_xrcd_drop(struct ibv_xrcd *xrcd)
{
	sv_xrcd(xrcd)->ref_cnt--;
}

static struct flock place_of(struct ibv_context *context, short type)
{
	const char *at = context->device->name;
	uint32_t hash = 5381;

	for (; *at; at++)
		hash = hash * 33 + (uint8_t) *at;
	return (struct flock) { .l_type = type, .l_whence = SEEK_SET, .l_start = 0x40000000 + (hash & 0xffffff),
				.l_len = 1 };
}

static bool domain_exists(struct ibv_context *context, int fd)
{
	struct flock place = place_of(context, F_WRLCK);

	return !fcntl(fd, F_OFD_GETLK, &place) && place.l_type != F_UNLCK;
}

/* Open the domain of this inode, or make it. 0 or an errno. */
static int open_inode(struct ibv_context *context, struct sv_xrcd *xrcd, int fd, int oflags)
{
	struct flock place = place_of(context, F_RDLCK);
	char path[40];
	struct stat st;
	bool exists;
	int ret = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st))
		return errno;
	xrcd->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (xrcd->fd < 0)
		return errno;
	flock(xrcd->fd, LOCK_EX);	/* look and take in one step */
	exists = domain_exists(context, xrcd->fd);
	if (!exists && !(oflags & O_CREAT))
		ret = EAGAIN;
	else if (exists && (oflags & O_EXCL))		/* a kernel asks no more */
		ret = EINVAL;
	else if (fcntl(xrcd->fd, F_OFD_SETLK, &place))
		ret = errno;
	flock(xrcd->fd, LOCK_UN);
	xrcd->dev = st.st_dev;
	xrcd->ino = st.st_ino;
	if (ret)
		close(xrcd->fd);
	return ret;
}

struct ibv_xrcd *sv_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	uint32_t need = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct sv_xrcd *xrcd;
	int ret = 0;

	if (sv_fault("ibv_open_xrcd"))
		return NULL;
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	xrcd->xrcd.context = context;
	xrcd->fd = -1;
	if (attr->comp_mask != need || (attr->oflags & ~(O_CREAT | O_EXCL)))
		ret = EINVAL;
	else if (attr->fd >= 0)
		ret = open_inode(context, xrcd, attr->fd, attr->oflags);
	else if (!(attr->oflags & O_CREAT))
		ret = EINVAL;		/* nothing to share, and not asked to make one */
	if (ret) {
		free(xrcd);
		errno = ret;
		return NULL;
	}
	sv_lock();
	sv_context(context)->ref_cnt++;
	sv_unlock();
	return &xrcd->xrcd;
}

int sv_close_xrcd(struct ibv_xrcd *ibv_xrcd)
{
	struct sv_xrcd *xrcd = sv_xrcd(ibv_xrcd);
	bool busy;

	sv_lock();
	busy = xrcd->ref_cnt;
	if (!busy)
		sv_context(ibv_xrcd->context)->ref_cnt--;
	sv_unlock();
	if (busy)
		return EBUSY;
	if (xrcd->fd >= 0)
		close(xrcd->fd);
	free(xrcd);
	return 0;
}

/* ---- receive queues ---- */

static void srq_ready(struct sv_source *src, uint32_t events)
{
	static uint8_t room[sizeof(struct sv_pkt) + SV_PAYLOAD_MAX];
	struct sv_srq *srq = fab_container(src, struct sv_srq, src);
	ssize_t len = recv(src->fd, room, sizeof(room), MSG_DONTWAIT);
	struct sv_pkt pkt;

	(void) events;
	if (len < (ssize_t) sizeof(pkt))
		return;
	memcpy(&pkt, room, sizeof(pkt));
	if (pkt.magic == SV_MAGIC && (pkt.flags & SV_F_FORWARDED) && pkt.len == len - sizeof(pkt))
		sv_resp_xrc(srq, &pkt, room + sizeof(pkt));
}

int sv_xrc_srq_init(struct sv_srq *srq)
{
	int ret;

	do {
		srq->num = 16 + ((uint32_t) sv_now_ns() ^ (uint32_t) rand()) % 0xfffff0;
		srq->src.fd = sv_bind(SOCK_DGRAM, "softverbs/srq/%06x", srq->num);
	} while (srq->src.fd < 0 && errno == EADDRINUSE);
	if (srq->src.fd < 0)
		return errno;
	srq->src.ready = srq_ready;
	ret = sv_source_add(&srq->src, EPOLLIN);
	if (ret) {
		close(srq->src.fd);
		return ret;
	}
	sv_xrcd_hold(srq->xrcd);
	return 0;
}

/* ---- target queue pairs: passing on ---- */

/* Nothing is read from the socket of a busy target queue pair: messages are carried out in the order in which they were
 * sent, whichever SRQs they are for. */
bool sv_xrc_busy(const struct sv_qp *qp)
{
	return qp->tgt->held || qp->tgt->progress->waiting;
}

static void read_on(struct sv_xrc_tgt *tgt)
{
	sv_source_mod(&tgt->qp->src, sv_xrc_busy(tgt->qp) ? 0 : EPOLLIN);
}

/* The answer to this message has left. One that found no receive comes again, with all that is behind it. */
static void answered(struct sv_xrc_tgt *tgt, uint32_t msn, uint8_t nak)
{
	struct progress *progress = tgt->progress;

	if (msn != progress->msn)
		return;
	sv_timer_stop(&tgt->watch);
	progress->waiting = false;
	progress->offset = 0;
	progress->msn += nak != SV_NAK_RNR;
	read_on(tgt);
}

static void refuse(struct sv_xrc_tgt *tgt, uint32_t msn)
{
	struct sv_qp *qp = tgt->qp;
	struct sv_pkt nak = {
		.magic = SV_MAGIC, .op = SV_NAK, .status = SV_NAK_INVALID, .src_qpn = qp->qp.qp_num,
		.dst_qpn = qp->attr.dest_qp_num, .msn = msn,
	};

	sv_send_to(qp->src.fd, nak.dst_qpn, &nak, NULL, 0);
	answered(tgt, msn, nak.status);
}

static int send_to_srq(int fd, uint32_t srqn, const void *packet, size_t len)
{
	struct sockaddr_un name;
	socklen_t name_len = sv_name(&name, "softverbs/srq/%06x", srqn);

	if (sendto(fd, packet, len, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *) &name, name_len) < 0)
		return errno;
	return 0;
}

/* A packet is passed on. */
static void passed(struct sv_xrc_tgt *tgt, const struct sv_pkt *pkt)
{
	bool whole = (pkt->op != SV_SEND && pkt->op != SV_WRITE) || pkt->offset + pkt->len == pkt->total;

	tgt->progress->offset += pkt->len;
	tgt->progress->srqn = pkt->srqn;
	tgt->progress->waiting = whole;
	if (whole)
		sv_timer_start(&tgt->watch, HOLDER_NS);
	read_on(tgt);
}

static int forward(struct sv_xrc_tgt *tgt, const uint8_t *packet)
{
	const struct sv_pkt *pkt = (const struct sv_pkt *) packet;
	int ret = send_to_srq(tgt->qp->src.fd, pkt->srqn, packet, sizeof(*pkt) + pkt->len);

	if (ret == EAGAIN)
		return ret;
	if (ret)
		refuse(tgt, pkt->msn);	/* no such SRQ on this machine (any more) */
	else
		passed(tgt, pkt);
	return 0;
}

static void hold(struct sv_xrc_tgt *tgt, const struct sv_pkt *pkt, const uint8_t *payload)
{
	tgt->held = malloc(sizeof(*pkt) + pkt->len);
	if (!tgt->held)
		abort();
	memcpy(tgt->held, pkt, sizeof(*pkt));
	memcpy(tgt->held + sizeof(*pkt), payload, pkt->len);
	read_on(tgt);
	sv_timer_start(&tgt->retry, RETRY_NS);
}

static void retry(struct sv_timer *timer)
{
	struct sv_xrc_tgt *tgt = fab_container(timer, struct sv_xrc_tgt, retry);
	uint8_t *held = tgt->held;

	if (forward(tgt, held) == EAGAIN) {
		sv_timer_start(timer, RETRY_NS);
		return;
	}
	tgt->held = NULL;
	free(held);
	read_on(tgt);
}

/* A process that is gone takes its SRQ with it, and what was passed on. */
static void watch(struct sv_timer *timer)
{
	struct sv_xrc_tgt *tgt = fab_container(timer, struct sv_xrc_tgt, watch);
	struct sv_pkt probe = { .magic = SV_MAGIC, .op = SV_PROBE };
	int ret;

	if (!tgt->progress->waiting)
		return;
	ret = send_to_srq(tgt->qp->src.fd, tgt->progress->srqn, &probe, sizeof(probe));
	if (ret && ret != EAGAIN)
		refuse(tgt, tgt->progress->msn);
	else
		sv_timer_start(timer, HOLDER_NS);
}

static void request(struct sv_qp *qp, struct sv_pkt *pkt, uint8_t *payload)
{
	struct sv_srq *srq = sv_srq_find(pkt->srqn);
	struct sv_xrc_tgt *tgt = qp->tgt;

	if (pkt->msn != tgt->progress->msn || pkt->offset != tgt->progress->offset)
		return;			/* behind one that was refused */
	pkt->access = qp->attr.qp_access_flags;
	if (srq) {
		passed(tgt, pkt);
		sv_resp_xrc(srq, pkt, payload);
		return;
	}
	pkt->flags |= SV_F_FORWARDED;
	memcpy(payload - sizeof(*pkt), pkt, sizeof(*pkt));	/* payload stands right behind its header */
	if (forward(tgt, payload - sizeof(*pkt)) == EAGAIN)
		hold(tgt, pkt, payload);
}

/* The holder, in this process, of a target queue pair; or NULL. */
static struct sv_xrc_tgt *holder_here(uint32_t qpn)
{
	struct sv_qp *qp = sv_qp_find(qpn);

	return qp && qp->tgt && qp->tgt->lock.fd >= 0 ? qp->tgt : NULL;
}

bool sv_xrc_answered(int fd, const struct sv_pkt *answer)
{
	struct sv_xrc_tgt *tgt = holder_here(answer->src_qpn);
	struct sv_pkt pkt = { .magic = SV_MAGIC, .op = SV_ANSWERED, .msn = answer->msn };
	struct sockaddr_un name;
	socklen_t len = sv_name(&name, "softverbs/holder/%06x", answer->src_qpn);

	pkt.status = answer->op == SV_NAK ? answer->status : 0;
	if (!tgt)
		return sendto(fd, &pkt, sizeof(pkt), MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *) &name, len) >= 0;
	answered(tgt, pkt.msn, pkt.status);
	return true;
}

/* Another process says that an answer has left. */
static void lock_ready(struct sv_source *src, uint32_t events)
{
	struct sv_pkt pkt;

	(void) events;
	if (recv(src->fd, &pkt, sizeof(pkt), MSG_DONTWAIT) == sizeof(pkt) && pkt.magic == SV_MAGIC &&
	    pkt.op == SV_ANSWERED)
		answered(fab_container(src, struct sv_xrc_tgt, lock), pkt.msn, pkt.status);
}

/* ---- target queue pairs: sharing ---- */

#define FDS	2			/* the socket of a queue pair, and its progress */

/* Give them to who asked, if it knows the domain. */
static void opened_by(struct sv_qp *qp, const struct sv_pkt *ask)
{
	struct sv_xrcd *xrcd = sv_xrcd(qp->xrcd);
	struct sv_pkt pkt = {
		.magic = SV_MAGIC, .op = SV_OPENED, .src_qpn = qp->qp.qp_num, .dst_qpn = qp->attr.dest_qp_num,
		.status = qp->qp.state, .access = qp->attr.qp_access_flags,
	};
	int fds[FDS] = { qp->src.fd, qp->tgt->progress_fd };
	union { struct cmsghdr align; char room[CMSG_SPACE(sizeof(fds))]; } control = { .room = { 0 } };
	struct iovec iov = { &pkt, sizeof(pkt) };
	struct sockaddr_un name;
	struct msghdr msg = {
		.msg_name = &name, .msg_namelen = sv_name(&name, "softverbs/ask/%06x", ask->src_qpn),
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	if (!xrcd->ino || ask->operand != xrcd->dev || ask->swap != xrcd->ino)
		return;
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(cmsg), fds, sizeof(fds));
	sendmsg(qp->src.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void sv_xrc_arrived(struct sv_qp *qp, struct sv_pkt *pkt, uint8_t *payload)
{
	if (!qp->tgt)
		return;
	if (pkt->op == SV_OPEN)
		opened_by(qp, pkt);
	else
		request(qp, pkt, payload);
}

/* Ask the holder of a queue pair for its descriptors, waiting; the lock is not held. 0 or an errno. */
static int ask_holder(uint32_t qpn, const struct sv_xrcd *xrcd, int fds[FDS], struct sv_pkt *reply)
{
	uint32_t me = ((uint32_t) getpid() << 8 ^ (uint32_t) sv_now_ns()) & 0xffffff;
	struct sv_pkt ask = {
		.magic = SV_MAGIC, .op = SV_OPEN, .src_qpn = me, .operand = xrcd->dev, .swap = xrcd->ino,
	};
	union { struct cmsghdr align; char room[CMSG_SPACE(FDS * sizeof(int))]; } control;
	struct iovec iov = { reply, sizeof(*reply) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control),
	};
	int fd = sv_bind(SOCK_DGRAM, "softverbs/ask/%06x", me);
	int ret = fd < 0 ? errno : sv_send_to(fd, qpn, &ask, NULL, 0);
	struct pollfd pfd = { fd, POLLIN, 0 };

	if (!ret && poll(&pfd, 1, OPEN_WAIT_MS) != 1)
		ret = EINVAL;		/* not a target queue pair of this domain */
	if (!ret && (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != sizeof(*reply) || !CMSG_FIRSTHDR(&msg)))
		ret = EINVAL;
	if (!ret)
		memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), FDS * sizeof(int));
	if (fd >= 0)
		close(fd);
	return ret == ECONNREFUSED ? EINVAL : ret;
}

/* Become the holder if nobody is. */
static void settle(struct sv_timer *timer)
{
	struct sv_xrc_tgt *tgt = fab_container(timer, struct sv_xrc_tgt, settle);

	tgt->lock.fd = sv_bind(SOCK_DGRAM, "softverbs/holder/%06x", tgt->qp->qp.qp_num);
	tgt->lock.ready = lock_ready;
	if (tgt->lock.fd < 0) {
		sv_timer_start(timer, HOLDER_NS);
		return;
	}
	if (sv_source_add(&tgt->lock, EPOLLIN) || sv_source_add(&tgt->qp->src, EPOLLIN)) {
		sv_qp_error(tgt->qp);
		return;
	}
	if (tgt->progress->waiting)
		sv_timer_start(&tgt->watch, HOLDER_NS);
	read_on(tgt);
}

/* Share the progress of a queue pair, or (-1) be the first. */
static void begin(struct sv_xrc_tgt *tgt, int fd)
{
	tgt->progress_fd = fd >= 0 ? fd : memfd_create("softverbs", MFD_CLOEXEC);
	if (tgt->progress_fd < 0 || (fd < 0 && ftruncate(tgt->progress_fd, sizeof(*tgt->progress))))
		abort();
	tgt->progress = mmap(NULL, sizeof(*tgt->progress), PROT_READ | PROT_WRITE, MAP_SHARED, tgt->progress_fd, 0);
	if (tgt->progress == MAP_FAILED)
		abort();
	settle(&tgt->settle);
}

int sv_xrc_qp_init(struct sv_qp *qp, int progress_fd)
{
	struct sv_xrc_tgt *tgt = calloc(1, sizeof(*tgt));

	if (!tgt)
		return ENOMEM;
	tgt->qp = qp;
	sv_timer_init(&tgt->retry, retry);
	sv_timer_init(&tgt->settle, settle);
	sv_timer_init(&tgt->watch, watch);
	tgt->lock.fd = tgt->progress_fd = -1;
	qp->tgt = tgt;
	sv_xrcd_hold(qp->xrcd);
	if (progress_fd >= 0)
		begin(tgt, progress_fd);
	return 0;
}

void sv_xrc_qp_begin(struct sv_qp *qp)
{
	if (!qp->tgt->progress)
		begin(qp->tgt, -1);
}

void sv_xrc_qp_fini(struct sv_qp *qp)
{
	struct sv_xrc_tgt *tgt = qp->tgt;

	sv_timer_stop(&tgt->retry);
	sv_timer_stop(&tgt->settle);
	sv_timer_stop(&tgt->watch);
	if (tgt->lock.fd >= 0) {
		sv_source_del(&tgt->lock);
		close(tgt->lock.fd);
	}
	if (tgt->progress) {
		munmap(tgt->progress, sizeof(*tgt->progress));
		close(tgt->progress_fd);
	}
	free(tgt->held);
	free(tgt);
	sv_xrcd_drop(qp->xrcd);
}

struct ibv_qp *sv_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	uint32_t need = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct sv_pkt reply;
	int fds[FDS], ret;

	if (sv_fault("ibv_open_qp"))
		return NULL;
	if ((attr->comp_mask & need) != need || attr->qp_type != IBV_QPT_XRC_RECV) {
		errno = EINVAL;
		return NULL;
	}
	ret = ask_holder(attr->qp_num, sv_xrcd(attr->xrcd), fds, &reply);
	if (ret) {
		errno = ret;
		return NULL;
	}
	return sv_qp_share(context, attr, fds[0], fds[1], &reply);
}
