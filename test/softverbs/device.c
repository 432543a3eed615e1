/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which devices there are, and what they say of themselves. */
#include "sv.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <infiniband/ib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MTU	IBV_MTU_4096

static struct sv_device devices[SV_DEVICES_MAX];
static int device_cnt;

static void gid_of_ip(const struct sockaddr_storage *addr, union ibv_gid *gid)
{
	if (addr->ss_family == AF_INET6) {
		memcpy(gid->raw, &((const struct sockaddr_in6 *) addr)->sin6_addr, 16);
		return;
	}
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, &((const struct sockaddr_in *) addr)->sin_addr, 4);
}

bool sv_gid_of(const struct sockaddr *addr, union ibv_gid *gid)
{
	struct sockaddr_storage copy = { .ss_family = addr->sa_family };

	if (addr->sa_family == AF_IB) {
		memcpy(gid->raw, &((const struct sockaddr_ib *) addr)->sib_addr, 16);
		return true;
	}
	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		return false;
	memcpy(&copy, addr, addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	gid_of_ip(&copy, gid);
	return true;
}

static bool parse_addr(const char *text, struct sockaddr_storage *addr)
{
	struct sockaddr_in *sin = (struct sockaddr_in *) addr;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *) addr;

	memset(addr, 0, sizeof(*addr));
	if (inet_pton(AF_INET, text, &sin->sin_addr) == 1)
		addr->ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &sin6->sin6_addr) == 1)
		addr->ss_family = AF_INET6;
	return addr->ss_family;
}

/* "ib" and "ib/GID" make the device one of InfiniBand; the GID is its first. False: it is neither. */
static bool parse_ib(const char *text, struct sv_device *device)
{
	if (strncmp(text, "ib", 2) || (text[2] && text[2] != '/'))
		return false;
	device->infiniband = true;
	if (text[2])
		inet_pton(AF_INET6, text + 3, device->gids[0].raw);
	return true;
}

const union ibv_gid *sv_gid_at(const struct sv_device *device, uint32_t port, uint32_t index)
{
	if (!port || port > device->port_cnt || !index)
		return index || !port || port > device->port_cnt ? NULL :
		       port == 1 ? &device->gids[0] : &device->other_gid;
	for (int i = 0; i < device->addr_cnt; i++)
		if (device->addr_port[i] == port && !--index)
			return &device->gids[i + 1];
	return NULL;
}

uint8_t sv_gid_port(const struct sv_device *device, const void *gid)
{
	for (uint8_t port = 1; port <= device->port_cnt; port++)
		for (uint32_t i = 0; sv_gid_at(device, port, i); i++)
			if (!memcmp(sv_gid_at(device, port, i), gid, sizeof(union ibv_gid)))
				return port;
	return 0;
}

/* "addr,addr", which this port has. */
static void add_addrs(struct sv_device *device, char *addrs, uint8_t port)
{
	char *save, *one;

	for (one = strtok_r(addrs, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		if (device->addr_cnt == SV_ADDRS_MAX)
			break;
		if (parse_ib(one, device) || !parse_addr(one, &device->addrs[device->addr_cnt]))
			continue;
		gid_of_ip(&device->addrs[device->addr_cnt], &device->gids[device->addr_cnt + 1]);
		device->addr_port[device->addr_cnt++] = port;
	}
}

/* "name=addr,addr", or with a second port "name=addr;addr,addr" */
static void add_device(char *text)
{
	struct sv_device *device = &devices[device_cnt];
	char *addrs = strchr(text, '='), *second;
	const char *sys = getenv("SYSFS_PATH");		/* as libibverbs has it */
	int i = device_cnt;

	if (!addrs || i == SV_DEVICES_MAX)
		return;
	*addrs++ = 0;
	device->dev.node_type = IBV_NODE_CA;
	device->dev.transport_type = sv_limit("iwarp", 0) ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	snprintf(device->dev.name, sizeof(device->dev.name), "%s", text);
	snprintf(device->dev.dev_name, sizeof(device->dev.dev_name), "uverbs%d", i);
	snprintf(device->dev.ibdev_path, sizeof(device->dev.ibdev_path), "%.160s/class/infiniband/%.60s",
		 sys ? sys : "/sys", text);
	device->guid = htobe64(0x0253560000000000u + i);
	device->gids[0].raw[0] = 0xfe;
	device->gids[0].raw[1] = 0x80;
	memcpy(device->gids[0].raw + 8, &device->guid, 8);
	device->other_gid = device->gids[0];
	device->other_gid.raw[8] = 1;
	second = strchr(addrs, ';');
	device->port_cnt = second ? 2 : 1;
	if (second)
		*second++ = 0;
	add_addrs(device, addrs, 1);
	if (second)
		add_addrs(device, second, 2);
	device_cnt++;
}

static void read_devices(void)
{
	const char *env = getenv("SOFTVERBS_DEVICES");
	char *text = strdup(env ? env : "soft0=127.0.0.1,::1"), *save, *one;

	for (one = text ? strtok_r(text, " ", &save) : NULL; one; one = strtok_r(NULL, " ", &save))
		add_device(one);
	free(text);
}

struct sv_device *sv_devices(int *cnt)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_devices);
	*cnt = device_cnt;
	return devices;
}

struct sv_device *sv_device_of(const struct sockaddr *addr)
{
	union ibv_gid gid;
	struct sv_device *all;
	int i, j, cnt;

	if (!sv_gid_of(addr, &gid))
		return NULL;
	all = sv_devices(&cnt);
	for (i = 0; i < cnt; i++)
		for (j = addr->sa_family == AF_IB ? 0 : 1; j <= all[i].addr_cnt; j++)
			if ((addr->sa_family != AF_IB || all[i].infiniband) &&
			    !memcmp(&all[i].gids[j], &gid, sizeof(gid)))
				return &all[i];
	return NULL;
}

/* The header has macros of these names. */
#undef ibv_get_device_list
#undef ibv_query_port

struct ibv_device **ibv_get_device_list(int *num)
{
	struct ibv_device **list;
	struct sv_device *all;
	int i, cnt;

	if (sv_fault("ibv_get_device_list"))
		return NULL;
	all = sv_devices(&cnt);
	list = calloc(cnt + 1, sizeof(*list));
	if (!list)
		return NULL;
	for (i = 0; i < cnt; i++)
		list[i] = &all[i].dev;
	if (num)
		*num = cnt;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return fab_container(device, struct sv_device, dev)->guid;
}

int ibv_get_device_index(struct ibv_device *device)
{
	return (int) (fab_container(device, struct sv_device, dev) - devices);
}

static void fill_device_attr(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct sv_device *device = sv_context(context)->device;

	*attr = (struct ibv_device_attr) {
		.fw_ver = "1.0.softverbs",
		.node_guid = device->guid, .sys_image_guid = device->guid,
		.max_mr_size = sv_limit("max_mr_size", UINT64_MAX),
		.page_size_cap = 4096,
		.vendor_id = 0x5356, .vendor_part_id = 1, .hw_ver = 1,
		.max_qp = sv_limit("max_qp", SV_MANY),
		.max_qp_wr = sv_limit("max_qp_wr", 16384),
		.device_cap_flags = (sv_limit("xrc", 1) ? IBV_DEVICE_XRC : 0) | IBV_DEVICE_RC_RNR_NAK_GEN |
				    IBV_DEVICE_SRQ_RESIZE,
		.max_sge = sv_limit("max_sge", SV_SGE_MAX),
		.max_sge_rd = sv_limit("max_sge_rd", SV_SGE_MAX),
		.max_cq = sv_limit("max_cq", SV_MANY), .max_cqe = sv_limit("max_cqe", 4194303),
		.max_mr = sv_limit("max_mr", 1 << 20), .max_pd = 65536,
		.max_qp_rd_atom = sv_limit("max_qp_rd_atom", 128),
		.max_qp_init_rd_atom = sv_limit("max_qp_init_rd_atom", sv_limit("max_qp_rd_atom", 128)),
		.max_res_rd_atom = 65536,
		.atomic_cap = sv_limit("atomics", 1) ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE,
		.max_ah = 65536,
		.max_srq = sv_limit("max_srq", 65536), .max_srq_wr = sv_limit("max_srq_wr", 32768),
		.max_srq_sge = sv_limit("max_srq_sge", SV_SGE_MAX),
		.max_pkeys = 1, .local_ca_ack_delay = 15,
		.phys_port_cnt = device->port_cnt,
	};
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	if (sv_fault("ibv_query_device"))
		return errno;
	fill_device_attr(context, attr);
	return 0;
}

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t len)
{
	struct ibv_device_attr_ex all = { .comp_mask = 0, .phys_port_cnt_ex = sv_context(context)->device->port_cnt };

	if (input && input->comp_mask)
		return EINVAL;
	if (sv_fault("ibv_query_device_ex"))
		return errno;
	fill_device_attr(context, &all.orig_attr);
	if (sv_limit("odp", 0)) {
		all.odp_caps.general_caps = IBV_ODP_SUPPORT;
		all.odp_caps.per_transport_caps.rc_odp_caps = sv_limit("odp", 0);
		all.xrc_odp_caps = sv_limit("odp", 0);
	}
	memset(attr, 0, len);
	memcpy(attr, &all, len < sizeof(all) ? len : sizeof(all));
	return 0;
}

static int gid_cnt(const struct sv_device *device, uint32_t port)
{
	int cnt = 0;

	while (sv_gid_at(device, port, cnt))
		cnt++;
	return cnt;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t len)
{
	struct ibv_port_attr all = {
		.state = sv_limit("port_down", 0) ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
		.max_mtu = MTU, .active_mtu = sv_limit("active_mtu", MTU),
		.gid_tbl_len = gid_cnt(sv_context(context)->device, port),
		.max_msg_sz = sv_limit("max_msg_sz", 1u << 31),
		.pkey_tbl_len = 1, .lid = sv_limit("lid", 0), .active_width = sv_limit("active_width", 2),
		.active_speed = sv_limit("active_speed", 32), .phys_state = 5,
		.link_layer = sv_context(context)->device->infiniband ? IBV_LINK_LAYER_INFINIBAND :
			      IBV_LINK_LAYER_ETHERNET,
	};

	if (!port || port > sv_context(context)->device->port_cnt)
		return EINVAL;
	if (sv_fault("ibv_query_port"))
		return errno;
	if (sv_context(context)->dead)
		return EIO;
	memset(attr, 0, len);
	memcpy(attr, &all, len < sizeof(all) ? len : sizeof(all));
	return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	/* What the oldest callers have is the front of today's structure, up to link_layer. */
	return query_port(context, port, (struct ibv_port_attr *) attr, offsetof(struct ibv_port_attr, flags));
}

/* The others of the table are not set. */
static bool has_gid(uint64_t index)
{
	return index < sv_limit("gids", UINT64_MAX);
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	struct sv_device *device = sv_context(context)->device;

	if (sv_fault("ibv_query_gid"))
		return -1;
	if (index < 0 || !sv_gid_at(device, port, index)) {
		errno = EINVAL;
		return -1;
	}
	memset(gid, 0, sizeof(*gid));
	if (has_gid(index))
		*gid = *sv_gid_at(device, port, index);
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
				uint32_t flags, size_t len)
{
	struct sv_device *device = sv_context(context)->device;
	struct ibv_gid_entry all = {
		.gid_index = index, .port_num = port, .gid_type = IBV_GID_TYPE_ROCE_V2, .ndev_ifindex = 1,
	};

	if (flags || !port || port > device->port_cnt)
		return EINVAL;
	if (!sv_gid_at(device, port, index) || !has_gid(index))
		return ENODATA;
	all.gid = *sv_gid_at(device, port, index);
	memcpy(entry, &all, len < sizeof(all) ? len : sizeof(all));
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
				       uint32_t flags, size_t len)
{
	struct sv_device *device = sv_context(context)->device;
	size_t cnt = 0;

	for (uint8_t port = 1; port <= device->port_cnt; port++)
		for (uint32_t i = 0; sv_gid_at(device, port, i) && has_gid(i) && cnt < max; i++, cnt++)
			_ibv_query_gid_ex(context, port, i, (struct ibv_gid_entry *) ((uint8_t *) entries + cnt * len),
					  flags, len);
	return cnt;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	if (!port || port > sv_context(context)->device->port_cnt || index) {
		errno = EINVAL;
		return -1;
	}
	*pkey = 0xffff;
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *ibv_device)
{
	struct sv_context *ctx;

	if (sv_fault("ibv_open_device"))
		return NULL;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return NULL;
	ctx->device = fab_container(ibv_device, struct sv_device, dev);
	ctx->v.query_port = query_port;
	ctx->v.query_device_ex = query_device_ex;
	ctx->v.open_qp = sv_open_qp;
	ctx->v.create_qp_ex = sv_create_qp_ex;
	ctx->v.get_srq_num = sv_get_srq_num;
	ctx->v.create_srq_ex = sv_create_srq_ex;
	ctx->v.open_xrcd = sv_open_xrcd;
	ctx->v.close_xrcd = sv_close_xrcd;
	ctx->v.sz = sizeof(ctx->v);
	ctx->v.context.device = ibv_device;
	ctx->v.context.ops.poll_cq = sv_poll_cq;
	ctx->v.context.ops.req_notify_cq = sv_req_notify_cq;
	ctx->v.context.ops.post_srq_recv = sv_post_srq_recv;
	ctx->v.context.ops.post_send = sv_post_send;
	ctx->v.context.ops.post_recv = sv_post_recv;
	ctx->v.context.cmd_fd = -1;
	ctx->v.context.async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	ctx->v.context.num_comp_vectors = (int) sv_limit("comp_vectors", SV_VECTORS);
	ctx->v.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&ctx->v.context.mutex, NULL);
	if (ctx->v.context.async_fd < 0) {
		free(ctx);
		return NULL;
	}
	sv_context_add(ctx);
	return &ctx->v.context;
}

/* An application that closes a device with objects left has lost them: this stand-in says so, where hardware would
 * not. */
int ibv_close_device(struct ibv_context *context)
{
	struct sv_context *ctx = sv_context(context);

	if (ctx->ref_cnt) {
		fprintf(stderr, "softverbs: ibv_close_device(%s) with %u objects left\n", context->device->name,
			ctx->ref_cnt);
		errno = EBUSY;
		return -1;
	}
	sv_context_del(ctx);
	close(context->async_fd);
	free(ctx);
	return 0;
}

const char *ibv_node_type_str(enum ibv_node_type type)
{
	return type == IBV_NODE_CA ? "channel adapter" : "unknown";
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
	return state == IBV_PORT_ACTIVE ? "active" : state == IBV_PORT_DOWN ? "down" : "unknown";
}

int ibv_fork_init(void)
{
	return 0;
}
