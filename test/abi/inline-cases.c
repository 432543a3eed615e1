/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cases of check-inline for the inline functions that do more than forward a call.  Included into
 * the generated program after the headers, calls, seen[], bad, WANT() and U().
 */

static struct fi_ops ops;
static struct fid obj;
static int result;		/* what the stubs return */
static void *out;		/* what they hand out */
static const char *name;

#define START() do { memset(&ops, 0, sizeof ops); ops.size = sizeof ops; memset(&obj, 0, sizeof obj); \
		     obj.ops = &ops; calls = 0; } while (0)

static int control_alias(struct fid *fid, int command, void *arg)
{
	struct fi_alias *alias = arg;

	seen[0] = U(fid);
	seen[1] = command;
	seen[2] = alias->flags;
	if (!result)
		*alias->fid = out;
	return result;
}

static void case_fi_ep_alias(void)
{
	struct fid_ep ep, other, *got = NULL;

	START();
	memset(&ep, 0, sizeof ep);
	ep.fid = obj;
	ops.control = control_alias;
	out = &other.fid;
	result = 0;
	WANT(fi_ep_alias(&ep, &got, 9) == 0);
	WANT(got == &other);
	WANT(seen[0] == U(&ep.fid) && seen[1] == FI_ALIAS && seen[2] == 9);
	got = NULL;
	result = -5;
	WANT(fi_ep_alias(&ep, &got, 9) == -5);
	WANT(got == NULL);
}

static int cm_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context)
{
	const struct fi_collective_addr *a = addr;

	seen[0] = U(ep);
	seen[1] = U(a->set);
	seen[2] = a->coll_addr;
	seen[3] = flags;
	seen[4] = U(mc);
	seen[5] = U(context);
	return 7;
}

static void case_fi_join_collective(void)
{
	struct fi_ops_cm cm = { .size = sizeof cm, .join = cm_join };
	struct fid_ep ep = { .cm = &cm };

	WANT(fi_join_collective(&ep, 5, (void *)64, 1, (void *)72, (void *)80) == 7);
	WANT(seen[0] == U(&ep) && seen[1] == 64 && seen[2] == 5 && seen[3] == (1 | FI_COLLECTIVE));
	WANT(seen[4] == 72 && seen[5] == 80);
	cm.size = offsetof(struct fi_ops_cm, join);
	WANT(fi_join_collective(&ep, 5, (void *)64, 1, (void *)72, (void *)80) == -FI_ENOSYS);
}

/* fi_open is the one library function whose call these cases look into */
int fi_open(uint32_t version, const char *n, void *attr, size_t attr_len, uint64_t flags,
	    struct fid **fid, void *context)
{
	calls++;
	name = n;
	seen[0] = version;
	seen[1] = U(attr);
	seen[2] = attr_len;
	seen[3] = flags;
	seen[4] = U(context);
	*fid = &obj;
	return result;
}

static int bound;

static int fid_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	calls++;
	seen[5] = U(fid);
	seen[6] = U(bfid);
	seen[7] = flags;
	return bound;
}

static int fid_close(struct fid *fid)
{
	calls++;
	seen[8] = U(fid);
	return -99;
}

static void case_fi_import(void)
{
	START();
	ops.bind = fid_bind;
	ops.close = fid_close;
	result = bound = 0;
	WANT(fi_import(3, "x", (void *)64, 8, 9, (void *)72, (void *)80) == 0);
	WANT(calls == 3 && !strcmp(name, "x"));
	WANT(seen[0] == 3 && seen[1] == 64 && seen[2] == 8 && seen[3] == 9 && seen[4] == 80);
	WANT(seen[5] == U(&obj) && seen[6] == 72 && seen[7] == 9 && seen[8] == U(&obj));
	calls = 0;
	bound = -4;
	WANT(fi_import(3, "x", NULL, 0, 0, NULL, NULL) == -4);
	WANT(calls == 3);
	calls = 0;
	result = -3;
	WANT(fi_import(3, "x", NULL, 0, 0, NULL, NULL) == -3);
	WANT(calls == 1);
}

static void case_fi_import_log(void)
{
	struct fi_ops_log log_ops = { 0 };
	struct fid_logging log = { .ops = &log_ops };

	START();
	ops.bind = fid_bind;
	ops.close = fid_close;
	result = bound = 0;
	WANT(fi_import_log(3, 9, &log) == 0);
	WANT(log.fid.fclass == FI_CLASS_LOG && log_ops.size == sizeof log_ops && !strcmp(name, "logging"));
	WANT(seen[0] == 3 && seen[1] == 0 && seen[2] == 0 && seen[3] == 9 && seen[4] == U(&log));
	WANT(seen[6] == U(&log.fid) && seen[7] == 9);
}

static ssize_t cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags)
{
	seen[0] = U(cq);
	seen[1] = U(buf);
	seen[2] = flags;
	seen[3] = buf ? buf->src_addr : 0;
	return 7;
}

static void case_fi_cq_readerr(void)
{
	struct fi_ops_cq cq_ops = { .size = sizeof cq_ops, .readerr = cq_readerr };
	struct fid_cq cq = { .ops = &cq_ops };
	struct fi_cq_err_entry e = { 0 };

	WANT(fi_cq_readerr(&cq, &e, 9) == 7);
	WANT(seen[0] == U(&cq) && seen[1] == U(&e) && seen[2] == 9 && seen[3] == FI_ADDR_NOTAVAIL);
	WANT(fi_cq_readerr(&cq, NULL, 9) == 7);
	WANT(seen[1] == 0);
}

static ssize_t profile_read(struct fid_profile *p, uint32_t id, void *data, size_t *size)
{
	seen[0] = U(p);
	seen[1] = id;
	seen[2] = U(data);
	seen[3] = *size;
	return result;
}

static void case_fi_profile_read_u64(void)
{
	struct fi_profile_ops p_ops = { .size = sizeof p_ops, .read_var = profile_read };
	struct fid_profile p = { .ops = &p_ops };
	uint64_t v;

	result = 8;
	WANT(fi_profile_read_u64(&p, 4, &v) == 0);
	WANT(seen[0] == U(&p) && seen[1] == 4 && seen[2] == U(&v) && seen[3] == 8);
	result = 0;
	WANT(fi_profile_read_u64(&p, 4, &v) == 0);
	result = -6;
	WANT(fi_profile_read_u64(&p, 4, &v) == -6);
}

static int open_ops(struct fid *fid, const char *n, uint64_t flags, void **o, void *context)
{
	name = n;
	seen[0] = U(fid);
	seen[1] = flags;
	seen[2] = U(context);
	*o = out;
	return result;
}

static void case_fi_profile_open(void)
{
	struct fid_profile p, *got = NULL;

	START();
	ops.ops_open = open_ops;
	out = &p.ops;
	result = 0;
	WANT(fi_profile_open(&obj, 9, &got, (void *)80) == 0);
	WANT(got == &p && !strcmp(name, "fi_profile_ops"));
	WANT(seen[0] == U(&obj) && seen[1] == 9 && seen[2] == 80);
	got = NULL;
	result = -2;
	WANT(fi_profile_open(&obj, 9, &got, NULL) == -2);
	WANT(got == NULL);
}

static void case_fi_rx_addr(void)
{
	WANT(fi_rx_addr(5, 3, 8) == 0x0300000000000005);
	WANT(fi_rx_addr(0x10, 1, 1) == 0x8000000000000010);
}

static void case_fi_group_addr(void)
{
	WANT(fi_group_addr(5, 0x80000003) == 0x8000000300000005);
}

static void case_fi_hmem_ze_device(void)
{
	WANT(fi_hmem_ze_device(2, 3) == 0x20003);
}

static void case_fi_tc_dscp_set(void)
{
	WANT(fi_tc_dscp_set(0x2e) == 0x12e);
}

static void case_fi_tc_dscp_get(void)
{
	WANT(fi_tc_dscp_get(0x12e) == 0x2e);
	WANT(fi_tc_dscp_get(0x22e) == 0);
}

static void case_fi_tag_mpi(void)
{
	WANT(fi_tag_mpi(7, 2) == 0x200000007);
	WANT(fi_tag_mpi(-1, 0xff) == 0xffffffffff);
}
