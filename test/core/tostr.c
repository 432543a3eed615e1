/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Values, structures and errors as text.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "base/unit.h"

#include "base/bits.h"

#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_log.h>

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Types whose datum has 32 bits. */
static const enum fi_type narrow[] = {
	FI_TYPE_EP_TYPE, FI_TYPE_ADDR_FORMAT, FI_TYPE_THREADING, FI_TYPE_PROGRESS, FI_TYPE_PROTOCOL, FI_TYPE_AV_TYPE,
	FI_TYPE_ATOMIC_TYPE, FI_TYPE_ATOMIC_OP, FI_TYPE_EQ_EVENT, FI_TYPE_MR_MODE, FI_TYPE_OP_TYPE,
	FI_TYPE_COLLECTIVE_OP, FI_TYPE_HMEM_IFACE, FI_TYPE_CQ_FORMAT, FI_TYPE_LOG_LEVEL, FI_TYPE_LOG_SUBSYS,
	FI_TYPE_CQ_WAIT_COND, FI_TYPE_WAIT_OBJ,
};

static bool is_narrow(enum fi_type type)
{
	for (size_t i = 0; i < fab_countof(narrow); i++) {
		if (narrow[i] == type)
			return true;
	}
	return false;
}

static void values_have_their_names(void **state)
{
	static const struct {
		enum fi_type type;
		uint64_t value;
		const char *name;
	} cases[] = {
		{ FI_TYPE_EP_TYPE, FI_EP_RDM, "FI_EP_RDM" },
		{ FI_TYPE_CAPS, 0, "" },
		{ FI_TYPE_CAPS, FI_MSG | FI_HMEM | FI_RMA, "FI_MSG, FI_RMA, FI_HMEM" },
		{ FI_TYPE_CAPS, FI_MSG | 1, "FI_MSG, 0x1" },
		{ FI_TYPE_OP_FLAGS, FI_DELIVERY_COMPLETE | FI_COMPLETION, "FI_COMPLETION, FI_DELIVERY_COMPLETE" },
		{ FI_TYPE_ADDR_FORMAT, FI_SOCKADDR_IP, "FI_SOCKADDR_IP" },
		{ FI_TYPE_THREADING, FI_THREAD_DOMAIN, "FI_THREAD_DOMAIN" },
		{ FI_TYPE_PROGRESS, FI_PROGRESS_CONTROL_UNIFIED, "FI_PROGRESS_CONTROL_UNIFIED" },
		{ FI_TYPE_PROTOCOL, FI_PROTO_XNET, "FI_PROTO_XNET" },
		{ FI_TYPE_PROTOCOL, 0x80000001, "Unknown (2147483649)" },
		{ FI_TYPE_MSG_ORDER, FI_ORDER_SAS | FI_ORDER_ATOMIC_WAW, "FI_ORDER_SAS, FI_ORDER_ATOMIC_WAW" },
		{ FI_TYPE_MODE, FI_CONTEXT | FI_CONTEXT2, "FI_CONTEXT, FI_CONTEXT2" },
		{ FI_TYPE_AV_TYPE, FI_AV_TABLE, "FI_AV_TABLE" },
		{ FI_TYPE_ATOMIC_TYPE, FI_FLOAT8_E5M2, "FI_FLOAT8_E5M2" },
		{ FI_TYPE_ATOMIC_TYPE, FI_VOID, "FI_VOID" },
		{ FI_TYPE_ATOMIC_OP, FI_DIFF, "FI_DIFF" },
		{ FI_TYPE_EQ_EVENT, FI_JOIN_COMPLETE, "FI_JOIN_COMPLETE" },
		{ FI_TYPE_CQ_EVENT_FLAGS, FI_SEND | FI_MSG, "FI_SEND, FI_MSG" },
		{ FI_TYPE_MR_MODE, FI_MR_VIRT_ADDR | FI_MR_COLLECTIVE, "FI_MR_VIRT_ADDR, FI_MR_COLLECTIVE" },
		{ FI_TYPE_MR_MODE, 0, "" },
		{ FI_TYPE_OP_TYPE, FI_OP_CNTR_ADD, "FI_OP_CNTR_ADD" },
		{ FI_TYPE_COLLECTIVE_OP, FI_GATHER, "FI_GATHER" },
		{ FI_TYPE_HMEM_IFACE, FI_HMEM_SYNAPSEAI, "FI_HMEM_SYNAPSEAI" },
		{ FI_TYPE_CQ_FORMAT, FI_CQ_FORMAT_TAGGED, "FI_CQ_FORMAT_TAGGED" },
		{ FI_TYPE_LOG_LEVEL, FI_LOG_DEBUG, "debug" },
		{ FI_TYPE_LOG_SUBSYS, FI_LOG_CNTR, "cntr" },
		{ FI_TYPE_CQ_WAIT_COND, FI_CQ_COND_THRESHOLD, "FI_CQ_COND_THRESHOLD" },
		{ FI_TYPE_WAIT_OBJ, FI_WAIT_POLLFD, "FI_WAIT_POLLFD" },
		{ FI_TYPE_WAIT_OBJ, 99, "Unknown (99)" },
		{ FI_TYPE_VERSION, 0, "2.6.0 (" WEFT_VERSION ")" },
		{ (enum fi_type) 36, 0, "Unknown type" },
		{ (enum fi_type) 64, 0, "Unknown type" },
		{ (enum fi_type) 100000, 0, "Unknown type" },
	};
	char buf[256];
	size_t i;

	(void) state;
	for (i = 0; i < fab_countof(cases); i++) {
		uint32_t low = (uint32_t) cases[i].value;
		const void *datum = is_narrow(cases[i].type) ? (const void *) &low : &cases[i].value;

		assert_ptr_equal(fi_tostr_r(buf, sizeof(buf), datum, cases[i].type), buf);
		if (strcmp(buf, cases[i].name))
			fail_msg("type %d, value 0x%llx: %s, not %s", cases[i].type,
				 (unsigned long long) cases[i].value, buf, cases[i].name);
	}
}

/* A datum of 32 bits at the very end of what can be read: nothing beyond it is touched. */
static void values_are_read_in_their_width(void **state)
{
	size_t page = (size_t) sysconf(_SC_PAGESIZE), i;
	char *memory = mmap(NULL, page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *value = (uint32_t *) (void *) (memory + page - sizeof(*value));
	char buf[64];

	(void) state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_return_code(mprotect(memory + page, page, PROT_NONE), 0);
	*value = 1;
	for (i = 0; i < fab_countof(narrow); i++)
		assert_null(strstr(fi_tostr_r(buf, sizeof(buf), value, narrow[i]), "Unknown"));
	munmap(memory, page * 2);
}

/* An entry with every structure, as a provider with hardware makes it. */
static struct fi_info *make_info(void)
{
	static struct sockaddr_in sin = { .sin_family = AF_INET };
	static struct fi_device_attr device = { .name = "mlx5_0", .vendor_id = "0x15b3" };
	static struct fi_bus_attr bus = { .bus_type = FI_BUS_PCI, .attr.pci = { .bus_id = 6 } };
	static struct fi_link_attr link = { .address = "fe80::1", .mtu = 4096, .state = FI_LINK_UP };
	static struct fid_nic nic = {
		.fid.fclass = FI_CLASS_NIC, .device_attr = &device, .bus_attr = &bus, .link_attr = &link,
	};
	static struct fi_tx_attr tx = { .caps = FI_MSG, .inject_size = 128 };
	static struct fi_rx_attr rx = { .comp_order = FI_ORDER_DATA };
	static struct fi_ep_attr ep = { .type = FI_EP_MSG, .mem_tag_format = 0xaa, .auth_key_size = FI_AV_AUTH_KEY };
	static struct fi_domain_attr domain = { .name = "eth0", .max_err_cntr_value = UINT64_MAX, .mr_mode = -1 };
	static struct fi_fabric_attr fabric = {
		.name = "10.0.0.0/8", .prov_name = "tcp", .prov_version = FI_VERSION(206, 0),
		.api_version = FI_VERSION(1, 18),
	};
	static struct fi_info info = {
		.caps = FI_MSG, .addr_format = FI_SOCKADDR_IN, .src_addr = &sin, .src_addrlen = sizeof(sin),
		.tx_attr = &tx, .rx_attr = &rx, .ep_attr = &ep, .domain_attr = &domain, .fabric_attr = &fabric,
		.nic = &nic,
	};

	return &info;
}

/* Scripts read these lines: name, colon, blank, value, indented by four a level. */
static void info_is_told_a_field_a_line(void **state)
{
	static const char *const lines[] = {
		"fi_info:\n    caps: [ FI_MSG ]\n    mode: [  ]\n    addr_format: FI_SOCKADDR_IN\n"
		"    src_addrlen: 16\n",
		"\n    src_addr: fi_sockaddr_in://0.0.0.0:0\n    dest_addr: (null)\n    handle: (nil)\n"
		"    fi_tx_attr:\n        caps: [ FI_MSG ]\n",
		"\n        comp_order: [ FI_ORDER_NONE ]\n        inject_size: 128\n",
		"\n    fi_rx_attr:\n",
		"\n        comp_order: [ FI_ORDER_DATA ]\n        total_buffered_recv: 0\n",
		"\n    fi_ep_attr:\n        type: FI_EP_MSG\n",
		"\n        mem_tag_format: 0x00000000000000aa\n",
		"\n        auth_key_size: FI_AV_AUTH_KEY\n",
		"\n    fi_domain_attr:\n        domain: 0x0\n        name: eth0\n        threading: FI_THREAD_UNSPEC\n",
		"\n        resource_mgmt: FI_RM_UNSPEC\n", "\n        max_err_cntr_value: 18446744073709551615\n",
		"\n    fi_fabric_attr:\n        name: 10.0.0.0/8\n        prov_name: tcp\n        prov_version: 206.0\n"
		"        api_version: 1.18\n",
		"\n    nic:\n        fi_device_attr:\n            name: mlx5_0\n            device_id: (null)\n",
		"\n        fi_bus_attr:\n            bus_type: FI_BUS_PCI\n            fi_pci_attr:\n"
		"                domain_id: 0\n                bus_id: 6\n",
		"\n            state: FI_LINK_UP\n",
	};
	struct fi_info empty = { .src_addr = NULL };
	const char *text = fi_tostr(make_info(), FI_TYPE_INFO), *at = text;
	size_t i;

	(void) state;
	for (i = 0; i < fab_countof(lines); i++) {
		const char *found = strstr(at, lines[i]);

		if (!found)
			fail_msg("missing or out of order: %s\nin %s", lines[i], text);
		at = found + 1;
	}
	text = fi_tostr(&empty, FI_TYPE_INFO);
	assert_non_null(strstr(text, "    fi_tx_attr: (null)\n    fi_rx_attr: (null)\n"));
	assert_non_null(strstr(text, "    nic: (nil)\n"));
}

/* A member of a structure that has a text. */
struct member {
	enum fi_type type;
	size_t room, offset, size;
	const char *name;
	bool string;
};

#define MEMBER(type, of, member) \
	{ type, sizeof(struct of), offsetof(struct of, member), sizeof(((struct of *) 0)->member), #member, false }
#define STRING(type, of, member) \
	{ type, sizeof(struct of), offsetof(struct of, member), sizeof(char *), #member, true }
#define INFO(member)	MEMBER(FI_TYPE_INFO, fi_info, member)
#define TX(member)	MEMBER(FI_TYPE_TX_ATTR, fi_tx_attr, member)
#define RX(member)	MEMBER(FI_TYPE_RX_ATTR, fi_rx_attr, member)
#define EP(member)	MEMBER(FI_TYPE_EP_ATTR, fi_ep_attr, member)
#define DOMAIN(member)	MEMBER(FI_TYPE_DOMAIN_ATTR, fi_domain_attr, member)
#define FABRIC(member)	MEMBER(FI_TYPE_FABRIC_ATTR, fi_fabric_attr, member)
#define AV(member)	MEMBER(FI_TYPE_AV_ATTR, fi_av_attr, member)
#define CQ(member)	MEMBER(FI_TYPE_CQ_ATTR, fi_cq_attr, member)
#define MR(member)	MEMBER(FI_TYPE_MR_ATTR, fi_mr_attr, member)
#define CNTR(member)	MEMBER(FI_TYPE_CNTR_ATTR, fi_cntr_attr, member)
#define ERR(member)	MEMBER(FI_TYPE_CQ_ERR_ENTRY, fi_cq_err_entry, member)

static const struct member members[] = {
	INFO(caps), INFO(mode), INFO(addr_format), INFO(src_addrlen), INFO(dest_addrlen), INFO(handle),
	TX(caps), TX(mode), TX(op_flags), TX(msg_order), TX(comp_order), TX(inject_size), TX(size), TX(iov_limit),
	TX(rma_iov_limit), TX(tclass),
	RX(caps), RX(mode), RX(op_flags), RX(msg_order), RX(comp_order), RX(total_buffered_recv), RX(size),
	RX(iov_limit),
	EP(type), EP(protocol), EP(protocol_version), EP(max_msg_size), EP(msg_prefix_size), EP(max_order_raw_size),
	EP(max_order_war_size), EP(max_order_waw_size), EP(mem_tag_format), EP(tx_ctx_cnt), EP(rx_ctx_cnt),
	EP(auth_key_size),
	DOMAIN(domain), STRING(FI_TYPE_DOMAIN_ATTR, fi_domain_attr, name), DOMAIN(threading), DOMAIN(control_progress),
	DOMAIN(data_progress), DOMAIN(resource_mgmt), DOMAIN(av_type), DOMAIN(mr_mode), DOMAIN(mr_key_size),
	DOMAIN(cq_data_size), DOMAIN(cq_cnt), DOMAIN(ep_cnt), DOMAIN(tx_ctx_cnt), DOMAIN(rx_ctx_cnt),
	DOMAIN(max_ep_tx_ctx), DOMAIN(max_ep_rx_ctx), DOMAIN(max_ep_stx_ctx), DOMAIN(max_ep_srx_ctx), DOMAIN(cntr_cnt),
	DOMAIN(mr_iov_limit), DOMAIN(caps), DOMAIN(mode), DOMAIN(auth_key_size), DOMAIN(max_err_data), DOMAIN(mr_cnt),
	DOMAIN(tclass), DOMAIN(max_ep_auth_key), DOMAIN(max_group_id), DOMAIN(max_cntr_value),
	DOMAIN(max_err_cntr_value),
	STRING(FI_TYPE_FABRIC_ATTR, fi_fabric_attr, name), STRING(FI_TYPE_FABRIC_ATTR, fi_fabric_attr, prov_name),
	FABRIC(prov_version), FABRIC(api_version),
	AV(type), AV(rx_ctx_bits), AV(count), AV(ep_per_node), STRING(FI_TYPE_AV_ATTR, fi_av_attr, name), AV(map_addr),
	AV(flags),
	CQ(size), CQ(flags), CQ(format), CQ(wait_obj), CQ(signaling_vector), CQ(wait_cond), CQ(wait_set),
	MR(mr_iov), MR(iov_count), MR(access), MR(offset), MR(requested_key), MR(context), MR(auth_key_size), MR(iface),
	CNTR(events), CNTR(wait_obj), CNTR(wait_set), CNTR(flags),
	ERR(op_context), ERR(flags), ERR(len), ERR(buf), ERR(data), ERR(tag), ERR(olen), ERR(prov_errno), ERR(err_data),
	ERR(err_data_size),
};

/* The first line in which two texts differ, of the second one; what follows it must be the same. */
static const char *changed_line(const char *before, const char *after)
{
	const char *line = after, *rest;

	for (; *after && *before == *after; before++, after++) {
		if (*after == '\n')
			line = after + 1;
	}
	rest = strchr(after, '\n');
	before = strchr(before, '\n');
	return rest && before && !strcmp(rest, before) ? line : "";
}

/* Each member has a line of its own, which no other one changes, and which its highest bits change, too. */
static void each_member_is_told(void **state)
{
	char before[8192], after[8192];
	size_t i;

	(void) state;
	for (i = 0; i < fab_countof(members); i++) {
		const struct member *member = &members[i];
		uint64_t words[64] = { 0 };
		char *at = (char *) words + member->offset;
		const char *line, *text = "a name";

		assert_true(member->room <= sizeof(words));
		fi_tostr_r(before, sizeof(before), words, member->type);
		if (member->string)
			memcpy(at, &text, sizeof(text));
		else if (member->size == 8)
			*(uint64_t *) (void *) at = 1ULL << 60;
		else
			*(uint32_t *) (void *) at = 1;
		fi_tostr_r(after, sizeof(after), words, member->type);
		line = changed_line(before, after);
		line += strspn(line, " ");
		if (strncmp(line, member->name, strlen(member->name)) || line[strlen(member->name)] != ':')
			fail_msg("type %d: with %s the line that differs is %.40s", member->type, member->name, line);
	}
}

static void addresses_are_told_within_their_length(void **state)
{
	static const struct {
		uint32_t format;
		const void *addr;
		size_t len;
		const char *text;
	} cases[] = {
		{ FI_ADDR_STR, "abcdef", 3, "src_addr: abc\n" },
		{ FI_SOCKADDR_IN, "\2\0", 2, "src_addr: FI_SOCKADDR_IN://0200\n" },
		{ FI_SOCKADDR, "\377\377aaaaaaaaaaaaaa", 16,
		  "src_addr: FI_SOCKADDR://ffff6161616161616161616161616161\n" },
		{ FI_SOCKADDR_IN6, "\12\0aaaaaaaaaaaaaa", 16,
		  "src_addr: FI_SOCKADDR_IN6://0a006161616161616161616161616161\n" },
		{ FI_ADDR_PSMX2, "\1\2", 2, "src_addr: FI_ADDR_PSMX2://0102\n" },
		{ FI_FORMAT_UNSPEC, "", 0, "src_addr: FI_FORMAT_UNSPEC://\n" },
	};
	size_t i;

	(void) state;
	for (i = 0; i < fab_countof(cases); i++) {
		struct fi_info info = {
			.addr_format = cases[i].format, .src_addr = (void *) cases[i].addr, .src_addrlen = cases[i].len,
		};
		const char *text = fi_tostr(&info, FI_TYPE_INFO);

		if (!strstr(text, cases[i].text))
			fail_msg("no %s in %s", cases[i].text, text);
	}
}

static void names_of_any_length_are_cut_off(void **state)
{
	struct fi_fabric_attr attr = { .prov_name = "tcp" };
	char *name = malloc(65537), buf[100];

	(void) state;
	memset(name, 'n', 65536);
	name[65536] = '\0';
	attr.name = name;
	memset(buf, '#', sizeof(buf));
	assert_ptr_equal(fi_tostr_r(buf, 50, &attr, FI_TYPE_FABRIC_ATTR), buf);
	assert_int_equal(strlen(buf), 49);
	assert_int_equal(buf[50], '#');
	assert_true(strlen(fi_tostr(&attr, FI_TYPE_FABRIC_ATTR)) < 65536);
	free(name);
}

static int tell_all(const struct fid *fid, char *buf, size_t len)
{
	return snprintf(buf, len, "all about %p", (const void *) fid);
}

static void other_structures_are_told(void **state)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE, .count = 64 };
	struct fi_cq_attr cq = { .size = 8, .wait_obj = FI_WAIT_FD };
	struct fi_cntr_attr cntr = { .events = FI_CNTR_EVENTS_BYTES };
	struct fi_mr_attr mr = { .access = FI_READ, .requested_key = 0xab };
	struct fi_cq_err_entry entry = {
		.op_context = (void *) 0x11, .flags = FI_RECV, .len = 12, .buf = (void *) 0x13, .data = 0x14,
		.tag = 0x15, .olen = 16, .err = FI_ETRUNC, .prov_errno = 17,
		.err_data = (void *) 0x18, .err_data_size = 19,
	};
	static const char *const in_entry[] = {
		" op_context: 0x11\n", " len: 12\n", " buf: 0x13\n", " data: 0x14\n", " tag: 0x15\n", " olen: 16\n",
		" err: 265\n    error: ", " prov_errno: 17\n", " err_data: 0x18\n", " err_data_size: 19\n",
	};
	struct fi_ops ops = { .size = sizeof(ops), .tostr = tell_all }, old_ops = { .size = 40, .tostr = tell_all };
	struct fid fid = { .fclass = FI_CLASS_CQ, .ops = &ops }, old = { .fclass = FI_CLASS_CQ, .ops = &old_ops };

	(void) state;
	assert_non_null(strstr(fi_tostr(&av, FI_TYPE_AV_ATTR), "type: FI_AV_TABLE\n"));
	assert_non_null(strstr(fi_tostr(&cq, FI_TYPE_CQ_ATTR), "wait_obj: FI_WAIT_FD\n"));
	assert_non_null(strstr(fi_tostr(&cntr, FI_TYPE_CNTR_ATTR), "events: FI_CNTR_EVENTS_BYTES\n"));
	assert_non_null(strstr(fi_tostr(&mr, FI_TYPE_MR_ATTR), "requested_key: 0xab\n"));
	for (size_t i = 0; i < fab_countof(in_entry); i++)
		assert_non_null(strstr(fi_tostr(&entry, FI_TYPE_CQ_ERR_ENTRY), in_entry[i]));
	assert_int_equal(strncmp(fi_tostr(&fid, FI_TYPE_FID), "all about ", 10), 0);
	assert_non_null(strstr(fi_tostr(&old, FI_TYPE_FID), "fclass: FI_CLASS_CQ\n"));
}

static void nothing_is_told_about_nothing(void **state)
{
	char buf[16];

	(void) state;
	assert_null(fi_tostr(NULL, FI_TYPE_INFO));
	assert_null(fi_tostr_r(NULL, 16, "x", FI_TYPE_CAPS));
	assert_null(fi_tostr_r(buf, 0, "x", FI_TYPE_CAPS));
	assert_string_equal(fi_tostr(NULL, FI_TYPE_VERSION), "2.6.0 (" WEFT_VERSION ")");
}

static void *tell_msg(void *arg)
{
	uint32_t value = FI_EP_MSG;

	*(const char **) arg = strdup(fi_tostr(&value, FI_TYPE_EP_TYPE));
	return NULL;
}

static void threads_do_not_share_the_buffer(void **state)
{
	uint32_t value = FI_EP_RDM;
	const char *mine = fi_tostr(&value, FI_TYPE_EP_TYPE), *theirs = NULL;
	pthread_t other;

	(void) state;
	assert_int_equal(pthread_create(&other, NULL, tell_msg, &theirs), 0);
	pthread_join(other, NULL);
	assert_string_equal(theirs, "FI_EP_MSG");
	assert_string_equal(mine, "FI_EP_RDM");
	free((char *) theirs);
}

static void every_error_has_its_own_words(void **state)
{
	int i, j;

	(void) state;
	for (i = FI_ERRNO_OFFSET; i < FI_ERRNO_MAX; i++) {
		assert_true(strlen(fi_strerror(i)) > 4);
		assert_string_equal(fi_strerror(-i), fi_strerror(i));
		for (j = FI_ERRNO_OFFSET; j < i; j++)
			assert_string_not_equal(fi_strerror(i), fi_strerror(j));
	}
	assert_string_equal(fi_strerror(0), strerror(0));
	assert_string_equal(fi_strerror(FI_ENODATA), strerror(ENODATA));
	assert_string_equal(fi_strerror(-FI_ECONNREFUSED), strerror(ECONNREFUSED));
	assert_non_null(fi_strerror(250));
	assert_string_equal(fi_strerror(FI_ERRNO_MAX), fi_strerror(FI_EOTHER));
	assert_string_equal(fi_strerror(INT32_MIN), fi_strerror(FI_EOTHER));
	assert_string_equal(fi_strerror(INT32_MAX), fi_strerror(FI_EOTHER));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_have_their_names),
		cmocka_unit_test(values_are_read_in_their_width),
		cmocka_unit_test(info_is_told_a_field_a_line),
		cmocka_unit_test(each_member_is_told),
		cmocka_unit_test(addresses_are_told_within_their_length),
		cmocka_unit_test(names_of_any_length_are_cut_off),
		cmocka_unit_test(other_structures_are_told),
		cmocka_unit_test(nothing_is_told_about_nothing),
		cmocka_unit_test(threads_do_not_share_the_buffer),
		cmocka_unit_test(every_error_has_its_own_words),
	};

	return cmocka_run_group_tests_name("core/tostr", tests, NULL, NULL);
}
