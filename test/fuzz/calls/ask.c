/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Steps that ask and set: infos, texts, options, commands, names and connections, vectors and sets, regions.
 */
#include "fuzz/calls/steps.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_profile.h>
#ifdef WEFT_API_2_7
#include <rdma/fi_xpu.h>
#endif

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define ANY_EP		(1U << EP | 1U << SEP | 1U << SRX | 1U << STX | 1U << PEP)

/* ---- infos and texts */

static const char *a_node(void)
{
	static const char *const nodes[] = { "127.0.0.1", "localhost", "::1", "lo", "", "no such node", "1.2.3.4.5",
					     "fi_sockaddr_in://127.0.0.1:0", "127.0.0.1:99999", NULL };

	return nodes[draw(COUNT(nodes))];
}

static const char *a_service(void)
{
	static const char *const services[] = { "0", "1", "65535", "65536", "-1", "http", "no such service", "", NULL };

	return services[draw(COUNT(services))];
}

void step_getinfo(void)
{
	struct fi_info *hints = one_in(8) ? NULL : fi_allocinfo(), *list = NULL, *copy;
	uint64_t flags = FI_NUMERICHOST | (one_in(2) ? FI_SOURCE : 0) | (one_in(8) ? draw_bits(UINT64_MAX) : 0);
	uint32_t version = one_in(8) ? (uint32_t) draw64() : FI_VERSION(1 + draw(2), draw(20));
	const char *node = a_node(), *service = a_service();

	if (hints) {
		if (!one_in(8))
			hints->fabric_attr->prov_name = strdup(world_prov());
		hints->caps = one_in(2) ? draw_bits(UINT64_MAX) : FI_MSG;
		hints->mode = one_in(2) ? draw_bits(UINT64_MAX) : 0;
		hints->addr_format = one_in(4) ? draw(24) : 0;
		hints->ep_attr->type = draw(7);
		hints->ep_attr->protocol = one_in(8) ? draw(50) : 0;
		hints->domain_attr->mr_mode = (int) draw_bits(UINT32_MAX);
		hints->domain_attr->threading = draw(9);
		hints->domain_attr->resource_mgmt = draw(4);
		hints->tx_attr->msg_order = draw_bits(UINT64_MAX);
		hints->tx_attr->inject_size = one_in(8) ? draw_any() : 0;
		hints->rx_attr->size = one_in(8) ? draw_any() : 0;
		hints->domain_attr->mr_key_size = one_in(8) ? draw_any() : 0;
		if (one_in(8))
			hints->domain_attr->name = strdup(one_in(2) ? "lo" : "no such domain");
	}
	if (!CALL(fi_getinfo(version, node, service, flags, hints, &list), "fi_getinfo(%#x, %s, %s, %#llx)", version,
		  node ? node : "NULL", service ? service : "NULL", (unsigned long long) flags)) {
		copy = fi_dupinfo(list);
		fi_freeinfo(list);
		fi_tostr(copy, FI_TYPE_INFO);
		fi_freeinfo(copy);
	}
	fi_freeinfo(hints);
}

static const void *of_type(enum fi_type type, const struct fi_info *info, const uint64_t *value)
{
	static const struct fi_av_attr av;
	static const struct fi_cq_attr cq;
	static const struct fi_mr_attr mr;
	static const struct fi_cntr_attr cntr;
	static const struct fi_cq_err_entry err;

	switch (type) {
	case FI_TYPE_INFO:
		return info;
	case FI_TYPE_TX_ATTR:
		return info->tx_attr;
	case FI_TYPE_RX_ATTR:
		return info->rx_attr;
	case FI_TYPE_EP_ATTR:
		return info->ep_attr;
	case FI_TYPE_DOMAIN_ATTR:
		return info->domain_attr;
	case FI_TYPE_FABRIC_ATTR:
		return info->fabric_attr;
	case FI_TYPE_FID:
		return fid_of(pick(DOMAIN));
	case FI_TYPE_AV_ATTR:
		return &av;
	case FI_TYPE_CQ_ATTR:
		return &cq;
	case FI_TYPE_MR_ATTR:
		return &mr;
	case FI_TYPE_CNTR_ATTR:
		return &cntr;
	case FI_TYPE_CQ_ERR_ENTRY:
		return &err;
	default:
		return value;
	}
}

void step_text(void)
{
	struct obj *domain = pick(DOMAIN);
	uint64_t value = draw_any();
	enum fi_type type = one_in(16) ? draw_any() : draw(FI_TYPE_WAIT_OBJ + 1);
	const void *data = domain ? of_type(type, domain->info, &value) : NULL;
	size_t len = 1 + draw(200);
	char *text = (char *) mem_registered(len);

	if (data) {
		CALL(fi_tostr(data, type) ? 0 : -1, "fi_tostr(%d)", type);
		CALL(fi_tostr_r(text, len, data, type) == text ? 0 : -1, "fi_tostr_r(%zu, %d)", len, type);
	}
	CALL(fi_strerror((int) value) ? 0 : -1, "fi_strerror(%d)", (int) value);
	mem_unregistered((uint8_t *) text, len);
}

/* ---- options and commands */

/* The value is as long as it is said to be, and of a type that has no pointer. */
void step_option(void)
{
	struct obj *obj = pick_of(one_in(16) ? ANY_EP | 1U << CQ | 1U << AV | 1U << DOMAIN : ANY_EP);
	static const int settable[] = { FI_OPT_MIN_MULTI_RECV, FI_OPT_SHARED_MEMORY_PERMITTED, FI_OPT_FIREWALL_ADDR };
	int level = one_in(16) ? (int) draw_any() : FI_OPT_ENDPOINT;
	int name = one_in(8) ? (int) draw_any() : one_in(3) ? settable[draw(COUNT(settable))] : (int) draw(25);
	bool flag = name == FI_OPT_CUDA_API_PERMITTED || name == FI_OPT_SHARED_MEMORY_PERMITTED ||
		name == FI_OPT_FIREWALL_ADDR;
	size_t len = one_in(8) ? draw(65) : flag ? 1 : !one_in(4) ? sizeof(size_t) :
		sizeof(int), was = len;
	uint8_t *value = mem_registered(len);
	uint64_t number = draw_any();

	if (obj && name != FI_OPT_XPU_TRIGGER && (obj->kind == SRX || obj->kind == EP || obj->kind == PEP ||
						  obj->kind == SEP)) {
		memset(value, 0, len);
		memcpy(value, &number, len < sizeof(number) ? len : sizeof(number));
		if (flag)
			memset(value, (int) draw(2), len ? 1 : 0);
		if (one_in(2))
			CALL(fi_setopt(obj->fid, level, name, value, len), "fi_setopt(%u, %d, %d, %zu bytes, %llu)",
			     obj->id, level,
			     name, len, (unsigned long long) number);
		else
			CALL(fi_getopt(obj->fid, level, name, value, &len), "fi_getopt(%u, %d, %d, %zu bytes)",
			     obj->id, level, name,
			     was);
	}
	mem_unregistered(value, was);
}

union command_arg {
	uint64_t number;
	int fd;
	struct fi_wait_pollfd pollfds;
	struct fi_mutex_cond mutex;
	struct fi_fid_var var;
	uint8_t bytes[256];
};

/* Commands whose argument has no pointer of the program; the others have steps of their own. */
void step_control(void)
{
	static const int commands[] = { FI_GETFIDFLAG, FI_SETFIDFLAG, FI_GETOPSFLAG, FI_SETOPSFLAG, FI_GETWAIT,
				       FI_ENABLE,
					FI_BACKLOG, FI_UNMAP_KEY, FI_FLUSH_WORK, FI_GETWAITOBJ, FI_GET_FD, FI_DUP };
	struct obj *obj = pick_of(UINT32_MAX);
	int command = commands[draw(COUNT(commands))];
	union command_arg arg = { .number = one_in(4) ? draw_any() & ~(FI_TRIGGER | FI_CLAIM) :
				 draw_bits(FI_TRANSMIT | FI_RECV |
		FI_COMPLETION | FI_INJECT | FI_DELIVERY_COMPLETE | FI_MULTI_RECV) };
	struct pollfd fds[4];

	if (!obj || (command == FI_ENABLE && obj->kind == EP))
		return;
	if (command == FI_GETWAIT) {
		memset(&arg, 0, sizeof(arg));
		arg.pollfds.nfds = draw(5);
		arg.pollfds.fd = fds;
	}
	if (command == FI_BACKLOG)
		arg.fd = one_in(4) ? (int) draw_any() : (int) draw(100);
	if (command == FI_SETOPSFLAG)
		obj->odd_flags = true;
	if (command == FI_SETOPSFLAG && obj->base)
		obj->base->odd_flags = true;
	CALL(fi_control(obj->fid, command, command == FI_ENABLE || command == FI_FLUSH_WORK ? NULL : &arg),
	     "fi_control(%u of kind %u, %d, %#llx)", obj->id, obj->kind, command, (unsigned long long) arg.number);
}

/* ---- names and connections */

void step_cm(void)
{
	struct obj *obj = pick_of(one_in(16) ? UINT32_MAX : 1U << EP | 1U << PEP | 1U << SEP), *pep = pick(PEP),
		*eq = pick(EQ);
	struct sockaddr_in any = { .sin_family = (sa_family_t) (one_in(8) ? draw(12) : AF_INET),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t) draw(3)) };
	size_t len = one_in(2) ? NAME_MAX_LEN : draw(40), was = len;
	uint8_t *name = mem_registered(was), other[NAME_MAX_LEN] = { 0 };
	bool is_ep = obj && (obj->kind == EP || obj->kind == SEP), is_name = is_ep || (obj && obj->kind == PEP);

	switch (is_name ? draw(8) : 8) {
	case 0:
		CALL(fi_getname(obj->fid, was ? name : NULL, &len), "fi_getname(%u, %zu)", obj->id, was);
		break;
	case 1:
		if (is_ep)
			CALL(fi_getpeer(AS(fid_ep, obj), was ? name : NULL, &len), "fi_getpeer(%u, %zu)", obj->id, was);
		break;
	case 2:
		CALL(fi_setname(obj->fid, &any, one_in(4) ? draw(sizeof(any)) : sizeof(any)), "fi_setname(%u)",
		     obj->id);
		break;
	case 3:
		if (is_ep)
			CALL(fi_shutdown(AS(fid_ep, obj), one_in(8) ? draw_any() : 0), "fi_shutdown(%u)", obj->id);
		break;
	case 4:
		if (is_ep && pep && name_of(pep, other))
			CALL(fi_connect(AS(fid_ep, obj), other, name, one_in(4) ? draw((uint32_t) was + 1) : 0),
			     "fi_connect(%u, pep %u)", obj->id, pep->id);
		break;
	case 5:
		if (is_ep)
			CALL(fi_accept(AS(fid_ep, obj), name, draw((uint32_t) was + 1)), "fi_accept(%u)", obj->id);
		break;
	case 6:
		if (is_ep && obj->info && one_in(2))
			CALL(fi_connect(AS(fid_ep, obj), &any, NULL, 0), "fi_connect(%u, nobody)", obj->id);
		break;
	default:
		if (pep && eq && one_in(2))
			CALL(fi_pep_bind(AS(fid_pep, pep), eq->fid, 0), "fi_pep_bind(%u, %u)", pep->id, eq->id);
		else if (pep)
			CALL(fi_listen(AS(fid_pep, pep)), "fi_listen(%u)", pep->id);
	}
	mem_unregistered(name, was);
}

/* ---- vectors and sets */

static void insert_some(struct obj *av)
{
	struct obj *ep = pick_of(1U << EP | 1U << SEP);
	uint8_t names[NAME_MAX_LEN * 2] = { 0 };
	fi_addr_t addrs[2] = { FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL };
	uint64_t flags = one_in(8) ? draw_bits(UINT64_MAX & ~FI_AUTH_KEY) : 0;
	size_t len = ep ? name_of(ep, names) : 0, cnt = one_in(4) ? draw(3) : 1;
	bool sync = flags & FI_SYNC_ERR;

	/* an address of another format would be read beyond its end */
	if (!len || ep->info->addr_format != av->info->addr_format)
		return;
	memcpy(names + len, names, len);
	if (one_in(8))
		names[draw((uint32_t) len)] ^= (uint8_t) (1U << draw(8));
	if (av->info->addr_format == FI_SOCKADDR_IN)
		((struct sockaddr_in *) (void *) names)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	flags &= ~(uint64_t) FI_SYNC_ERR;
	if (CALL(fi_av_insert(AS(fid_av, av), names, cnt, one_in(8) ? NULL : addrs, flags, NULL),
		 "fi_av_insert(%u, ep %u, %zu, %#llx%s)", av->id, ep->id, cnt, (unsigned long long) flags,
		 sync ? ", no FI_SYNC_ERR" : "") > 0 && av->addr_cnt < ADDRS)
		av->addrs[av->addr_cnt++] = addrs[0];
}

static fi_addr_t addr_in(const struct obj *av)
{
	return av->addr_cnt && !one_in(6) ? av->addrs[draw(av->addr_cnt)] : draw_any();
}

static void look_up(struct obj *av)
{
	size_t len = one_in(2) ? NAME_MAX_LEN : draw(40), was = len, text_len = draw(100), text_was = text_len;
	uint8_t *name = mem_registered(len), *text = mem_registered(text_len), *whole = mem_registered(NAME_MAX_LEN);
	size_t whole_len = NAME_MAX_LEN;
	fi_addr_t addr = addr_in(av);

	CALL(fi_av_lookup(AS(fid_av, av), addr, was ? name : NULL, &len), "fi_av_lookup(%u, %#llx, %zu)", av->id,
	     (unsigned long long) addr, was);
	if (!fi_av_lookup(AS(fid_av, av), addr, whole, &whole_len))
		CALL(fi_av_straddr(AS(fid_av, av), whole, (char *) text, &text_len) ? 0 : -1,
		     "fi_av_straddr(%u, %zu)", av->id,
		     text_was);
	mem_unregistered(name, was);
	mem_unregistered(text, text_was);
	mem_unregistered(whole, NAME_MAX_LEN);
}

void step_av(void)
{
	struct obj *av = pick(AV);
	fi_addr_t addrs[3];
	size_t cnt = draw(3);
	uint8_t key[16] = "key";
	size_t key_len = sizeof(key);

	if (!av)
		return;
	addrs[0] = addr_in(av);
	addrs[1] = addr_in(av);
	switch (draw(9)) {
	case 0:
	case 1:
		look_up(av);
		break;
	case 2:
		CALL(fi_av_remove(AS(fid_av, av), addrs, cnt, one_in(8) ? draw_any() : 0),
		     "fi_av_remove(%u, %#llx, %zu)", av->id,
		     (unsigned long long) addrs[0], cnt);
		break;
	case 3:
		CALL(fi_av_insertsvc(AS(fid_av, av), "127.0.0.1", a_service(), addrs, one_in(8) ? draw_bits(FI_MORE |
				FI_NUMERICHOST) :
				     0, NULL), "fi_av_insertsvc(%u)", av->id);
		break;
	case 4:
		CALL(fi_av_insertsym(AS(fid_av, av), "127.0.0.1", draw(2), a_service(), draw(3), NULL, 0, NULL),
		     "fi_av_insertsym(%u)", av->id);
		break;
	case 5:
		CALL(fi_av_set_user_id(AS(fid_av, av), addrs[0], draw_any(), one_in(4) ? draw_any() : 0),
		     "fi_av_set_user_id(%u)",
		     av->id);
		break;
	case 6:
		CALL(fi_av_insert_auth_key(AS(fid_av, av), key, draw(sizeof(key) + 1), addrs, 0),
		     "fi_av_insert_auth_key(%u)",
		     av->id);
		CALL(fi_av_lookup_auth_key(AS(fid_av, av), addrs[0], key, &key_len), "fi_av_lookup_auth_key(%u)",
		     av->id);
		break;
	default:
		insert_some(av);
	}
}

static void open_set(struct obj *av)
{
	struct obj *obj = obj_new(SET, av);
	struct fi_av_set_attr attr = { .count = one_in(4) ? draw_any() : draw(10), .start_addr = FI_ADDR_NOTAVAIL,
				       .end_addr = FI_ADDR_NOTAVAIL, .flags = one_in(4) ? draw_any() : 0 };
	struct fid_av_set *set = NULL;

	if (!obj)
		return;
	if (!one_in(4)) {
		attr.start_addr = draw(3);
		attr.end_addr = draw(5);
		attr.stride = draw(3);
	}
	obj_opened(obj, CALL(fi_av_set(AS(fid_av, av), one_in(16) ? NULL : &attr, &set, obj),
			     "fi_av_set(%u, %llu to %llu) -> %u", av->id, (unsigned long long) attr.start_addr,
			     (unsigned long long) attr.end_addr, obj->id), set ? &set->fid : NULL);
}

void step_set(void)
{
	struct obj *set = pick(SET), *other = pick(SET), *av = pick(AV);
	struct fid_av_set *dst = AS(fid_av_set, set);
	fi_addr_t addr;

	if (av && (!set || one_in(3)))
		open_set(av);
	if (!set)
		return;
	switch (draw(6)) {
	case 0:
		CALL(fi_av_set_union(dst, AS(fid_av_set, other)), "fi_av_set_union(%u, %u)", set->id, other->id);
		break;
	case 1:
		CALL(fi_av_set_intersect(dst, AS(fid_av_set, other)), "fi_av_set_intersect(%u, %u)", set->id,
		     other->id);
		break;
	case 2:
		CALL(fi_av_set_diff(dst, AS(fid_av_set, other)), "fi_av_set_diff(%u, %u)", set->id, other->id);
		break;
	case 3:
		CALL(fi_av_set_insert(dst, addr_in(set->up)), "fi_av_set_insert(%u)", set->id);
		break;
	case 4:
		CALL(fi_av_set_remove(dst, addr_in(set->up)), "fi_av_set_remove(%u)", set->id);
		break;
	default:
		CALL(fi_av_set_addr(dst, &addr), "fi_av_set_addr(%u)", set->id);
	}
}

/* ---- regions, and the rest */

void step_mr(void)
{
	struct obj *mr = pick(MR), *domain = pick(DOMAIN);
	struct fid_mr *fid = AS(fid_mr, mr);
	uint8_t raw[64];
	size_t raw_len = one_in(2) ? sizeof(raw) : draw(sizeof(raw)), was = raw_len;
	uint64_t base, key = draw_any();
	struct iovec iov = { NULL, 0 };

	if (!mr)
		return;
	iov = (struct iovec) { mr->mem, draw((uint32_t) mr->len + 1) };
	switch (draw(5)) {
	case 0:
		if (!CALL(fi_mr_raw_attr(fid, &base, raw, &raw_len, one_in(8) ? draw_any() : 0),
			  "fi_mr_raw_attr(%u, %zu)", mr->id, was))
			CALL(fi_mr_map_raw(AS(fid_domain, domain), base, raw, raw_len, &key, 0), "fi_mr_map_raw(%u)",
			     domain->id);
		break;
	case 1:
		CALL(fi_mr_unmap_key(AS(fid_domain, domain), key), "fi_mr_unmap_key(%u)", domain->id);
		break;
	case 2:
		CALL(fi_mr_refresh(fid, &iov, draw(2), one_in(8) ? draw_any() : 0), "fi_mr_refresh(%u)", mr->id);
		break;
	case 3:
		CALL(fi_mr_enable(fid), "fi_mr_enable(%u)", mr->id);
		break;
	default:
		CALL((long long) (fi_mr_key(fid) ^ (uintptr_t) fi_mr_desc(fid)), "fi_mr_key(%u)", mr->id);
	}
}

static int event(struct fid_profile *profile, struct fi_profile_desc *desc, void *data, size_t size, void *context)
{
	(void) profile, (void) context;
	if (!desc || (size && !data))
		world_wrong("an event of the statistics without its data");
	return 0;
}

static void profile(struct obj *obj)
{
	struct fid_profile *fid = NULL;
	struct fi_profile_desc desc[4];
	uint64_t value;
	size_t cnt = draw(5);

	if (CALL(fi_profile_open(obj->fid, one_in(8) ? draw_any() : 0, &fid, NULL), "fi_profile_open(%u)", obj->id))
		return;
	if (one_in(2))
		CALL(fi_profile_query_vars(fid, cnt ? desc : NULL, &cnt), "fi_profile_query_vars(%u)", obj->id);
	else
		CALL(fi_profile_query_events(fid, cnt ? desc : NULL, &cnt), "fi_profile_query_events(%u)", obj->id);
	if (one_in(4))
		CALL(fi_profile_register_callback(fid, draw(3), one_in(4) ? NULL : event, NULL),
		     "fi_profile_register_callback(%u)", obj->id);
	fi_profile_start_reads(fid, 0);
	CALL(fi_profile_read_u64(fid, (uint32_t) draw_any(), &value), "fi_profile_read_u64(%u)", obj->id);
	fi_profile_end_reads(fid, 0);
	fi_profile_reset(fid, one_in(2) ? 0 : draw_any());
	fi_profile_close(fid);
}

/* Another handle of the object, which is closed at once. */
static void alias(struct obj *obj)
{
	struct fid *fid = NULL;
	uint64_t flags = draw_bits(UINT64_MAX & ~(FI_TRIGGER | FI_CLAIM));

	if (!CALL(fi_alias(obj->fid, &fid, flags), "fi_alias(%u of kind %u)", obj->id, obj->kind) &&
	    CALL(fi_close(fid), "fi_close(the alias of %u)", obj->id))
		world_wrong("the alias of %u cannot be closed", obj->id);
}

/* Variables and functions of a provider; ours have none. */
static void values(struct obj *obj)
{
	union command_arg value = { .number = draw_any() };
	struct fi_hmem_override_ops ops = { .size = sizeof(ops) };
	int name = one_in(2) ? (int) draw(8) : (int) draw_any();

	if (one_in(3))
		CALL(fi_get_val(obj->fid, name, &value), "fi_get_val(%u, %d)", obj->id, name);
	else if (one_in(2))
		CALL(fi_set_val(obj->fid, name, &value), "fi_set_val(%u, %d)", obj->id, name);
	else
		CALL(fi_set_ops(obj->fid, one_in(2) ? FI_SET_OPS_HMEM_OVERRIDE : "no such ops", 0, &ops, NULL),
		     "fi_set_ops(%u)", obj->id);
}

/* A group of a network, not of collectives. */
static void join_group(struct obj *ep)
{
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xe0000042 + draw(3)),
				     .sin_port = htons((uint16_t) (4000 + draw(3))) };
	struct obj *obj = ep && ep->info && ep->info->addr_format == FI_SOCKADDR_IN ? obj_new(MC, ep) : NULL;
	struct fid_mc *mc = NULL;

	if (!obj)
		return;
	obj_opened(obj, CALL(fi_join(AS(fid_ep, ep), &group, one_in(4) ? draw_any() & ~FI_COLLECTIVE : 0, &mc, obj),
			     "fi_join(%u) -> %u", ep->id, obj->id), mc ? &mc->fid : NULL);
}

#ifdef WEFT_API_2_7
/* Devices, of which no provider of ours has any. */
static void device(struct obj *domain)
{
	struct obj *av = pick(AV);
	struct fi_xpu_attr attr = { 0 };
	struct fid_xpu_ctx *ctx = NULL;
	uint8_t buf[NAME_MAX_LEN];
	size_t len = draw(sizeof(buf));

	CALL(fi_xpu_ctx(AS(fid_domain, domain), &attr, &ctx, NULL), "fi_xpu_ctx(%u)", domain->id);
	if (av)
		CALL(fi_av_lookup2(AS(fid_av, av), addr_in(av), buf, &len, 0, NULL), "fi_av_lookup2(%u)", av->id);
}
#endif

void step_other(void)
{
	struct obj *obj = pick_of(UINT32_MAX), *domain = pick(DOMAIN), *ep = pick_of(1U << EP | 1U << SRX);
	struct fi_atomic_attr attr;
	struct fi_collective_attr coll = { .op = draw(FI_ATOMIC_OP_LAST), .datatype = draw(FI_DATATYPE_LAST) };
	struct fi_param *params;
	void *ops;
	int cnt;

	if (!obj || !domain)
		return;
	switch (draw(11)) {
	case 0:
		CALL(fi_query_atomic(AS(fid_domain, domain), draw(FI_DATATYPE_LAST + 2), draw(FI_ATOMIC_OP_LAST + 2),
				     &attr,
				     one_in(2) ? draw_any() : draw_bits(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)),
					"fi_query_atomic(%u)",
		     domain->id);
		break;
	case 1:
		CALL(fi_query_collective(AS(fid_domain, domain), draw(12), &coll, one_in(2) ? draw_any() : 0),
		     "fi_query_collective(%u)", domain->id);
		break;
	case 2:
		if (ep)
			CALL(fi_rx_size_left(AS(fid_ep, ep)) + fi_tx_size_left(AS(fid_ep, ep)), "fi_rx_size_left(%u)",
			     ep->id);
		break;
	case 3:
		CALL(fi_open_ops(obj->fid, "no such ops", 0, &ops, NULL), "fi_open_ops(%u)", obj->id);
		break;
	case 4:
		profile(obj);
		break;
	case 5:
		alias(obj);
		break;
	case 6:
		values(obj);
		break;
	case 7:
		join_group(pick(EP));
		break;
	case 8:
#ifdef WEFT_API_2_7
		device(domain);
#endif
		break;
	default:
		if (!CALL(fi_getparams(&params, &cnt), "fi_getparams()"))
			fi_freeparams(params);
	}
}
