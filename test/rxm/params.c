/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Variables of ofi_rxm that shape its use of verbs below, on the stand-in for a device: queue pairs as long as they
 * say, and so many completions in a pass. Each setting is for a process of its own, as variables are read once.
 */
#include "ends.h"
#include "../softverbs/stand_in.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#define MESSAGES	28		/* fewer than a peer may have under way at a time */

static char out[8], in[MESSAGES][8];

static void connect_ends(void)
{
	end_open(&a);
	end_open(&b);
	introduce(&a, &b);
	introduce(&b, &a);
	OK((int) fi_recv(b.ep, in[0], 8, NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(a.ep, out, 8, NULL, a.peer, NULL));
	until(a.done == 1 && b.done == 1);
	a.done = b.done = 0;
}

static void connect_both(void)
{
	fabric_open(FI_MSG | FI_TAGGED, 0, 0);
	connect_ends();
}

/* The i-th queue pair of this process, as ibv_query_qp(3) describes it. */
static struct ibv_qp_attr qp_attr_of(unsigned i)
{
	int (*query)(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *);
	struct ibv_qp *(*qp_at)(unsigned);
	struct ibv_qp_init_attr init = { 0 };
	struct ibv_qp_attr attr;

	query = stand_in("ibv_query_qp");
	qp_at = stand_in("sv_test_qp_at");
	assert_non_null(qp_at(i));
	OK(query(qp_at(i), &attr, IBV_QP_CAP | IBV_QP_AV, &init));
	attr.cap = init.cap;
	return attr;
}

/* b's messages have arrived at its device. It reads them: how many does one call get? */
static unsigned read_at_once(void)
{
	struct fi_cq_tagged_entry entry[2 * MESSAGES];
	ssize_t cnt;

	connect_both();
	for (int i = 0; i < MESSAGES; i++)
		OK((int) fi_recv(b.ep, in[i], 8, NULL, FI_ADDR_UNSPEC, NULL));
	for (int i = 0; i < MESSAGES; i++)
		OK((int) fi_send(a.ep, out, 8, NULL, a.peer, NULL));
	while (a.done < MESSAGES)	/* each has been acknowledged by b's device */
		drive(&a);
	cnt = fi_cq_read(b.cq, entry, 2 * MESSAGES);
	assert_true(cnt > 0);
	b.done += (unsigned) cnt;
	until(b.done == MESSAGES);
	return (unsigned) cnt;
}

static unsigned requests(void)
{
	connect_both();
	return qp_attr_of(0).cap.max_send_wr;
}

static unsigned receives(void)
{
	connect_both();
	return qp_attr_of(0).cap.max_recv_wr;
}

/* The IBV_ACCESS_* flags of a region in a domain that was asked for this order. */
static unsigned access_with(uint64_t order)
{
	struct fi_info *hints = fi_allocinfo();
	int (*access_of)(const struct ibv_mr *);
	struct fid_mr *mr, *below;

	hints->fabric_attr->prov_name = strdup("verbs;ofi_rxm");
	hints->caps = FI_MSG | FI_RMA;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = order;
	OK(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &a.domain, NULL));
	OK(fi_mr_reg(a.domain, out, sizeof(out), FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
	/* a descriptor of ofi_rxm begins with the region of the provider below (prov/rxm/objects.h) */
	below = *(struct fid_mr **) fi_mr_desc(mr);
	access_of = stand_in("sv_test_access_of");
	return (unsigned) access_of(fi_mr_desc(below));
}

static unsigned access_unordered(void)
{
	return access_with(FI_ORDER_SAS);
}

static unsigned access_ordered(void)
{
	return access_with(FI_ORDER_SAS | FI_ORDER_RMA_WAW);
}

/* The traffic classes of the queue pairs of both ends, where info has one in these fields. */
static unsigned traffic_class(uint32_t of_domain, uint32_t of_tx)
{
	fabric_open(FI_MSG | FI_TAGGED, 0, 0);
	info->domain_attr->tclass = of_domain;
	info->tx_attr->tclass = of_tx;
	connect_ends();
	return qp_attr_of(0).ah_attr.grh.traffic_class << 8 | qp_attr_of(1).ah_attr.grh.traffic_class;
}

static unsigned class_of_endpoint(void)
{
	return traffic_class(FI_TC_BULK_DATA, FI_TC_LOW_LATENCY);
}

static unsigned class_of_domain(void)
{
	return traffic_class(FI_TC_LOW_LATENCY, FI_TC_UNSPEC);
}

/* What is measured in a process with this setting. */
static unsigned with(const char *name, const char *value, unsigned (*measure)(void))
{
	unsigned result = 0;
	int fd[2];
	pid_t pid;

	OK(pipe(fd));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		OK(name ? setenv(name, value, 1) : 0);
		result = measure();
		_exit(write(fd[1], &result, sizeof(result)) != sizeof(result));
	}
	OK(close(fd[1]));
	assert_int_equal(read(fd[0], &result, sizeof(result)), sizeof(result));
	OK(close(fd[0]));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return result;
}

static void a_queue_pair_has_256_requests_and_no_receives(void **state)
{
	(void) state;
	assert_int_equal(with(NULL, NULL, requests), 256);
	assert_int_equal(with(NULL, NULL, receives), 0);	/* they are shared */
}

static void msg_tx_size_and_the_marker_are_the_length_of_a_queue(void **state)
{
	(void) state;
	assert_int_equal(with("FI_OFI_RXM_MSG_TX_SIZE", "31", requests), 32);
}

static void use_srx_off_gives_each_connection_its_receives(void **state)
{
	(void) state;
	assert_int_equal(with("FI_OFI_RXM_USE_SRX", "0", receives), 64);
}

static void comp_per_progress_bounds_a_pass(void **state)
{
	(void) state;
	assert_int_equal(with(NULL, NULL, read_at_once), MESSAGES);
	assert_int_equal(with("FI_OFI_RXM_COMP_PER_PROGRESS", "1", read_at_once), 16);
}

/* Who asks for an order of remote accesses gets it, in spite of the variable of verbs. */
static void relaxed_ordering_is_for_those_who_ask_for_no_order(void **state)
{
	(void) state;
	assert_false(with(NULL, NULL, access_unordered) & IBV_ACCESS_RELAXED_ORDERING);
	assert_true(with("FI_VERBS_RELAXED_ORDERING", "1", access_unordered) & IBV_ACCESS_RELAXED_ORDERING);
	assert_false(with("FI_VERBS_RELAXED_ORDERING", "1", access_ordered) & IBV_ACCESS_RELAXED_ORDERING);
}

/* Packets in both directions have the class of the endpoint, or else of its domain: low latency is codepoint 46. */
static void packets_have_a_traffic_class(void **state)
{
	(void) state;
	assert_int_equal(with(NULL, NULL, class_of_endpoint), 46 << 2 << 8 | 46 << 2);
	assert_int_equal(with(NULL, NULL, class_of_domain), 46 << 2 << 8 | 46 << 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_pair_has_256_requests_and_no_receives),
		cmocka_unit_test(msg_tx_size_and_the_marker_are_the_length_of_a_queue),
		cmocka_unit_test(use_srx_off_gives_each_connection_its_receives),
		cmocka_unit_test(comp_per_progress_bounds_a_pass),
		cmocka_unit_test(packets_have_a_traffic_class),
		cmocka_unit_test(relaxed_ordering_is_for_those_who_ask_for_no_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
