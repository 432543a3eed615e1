/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_setopt_test: options of endpoints are set, read back, and refused where they make no sense. */
#include "lib/unit.h"

#include <stdbool.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

static int with_ep(struct unit *unit, int (*check)(struct fid *ep))
{
	struct fid_ep *ep;
	int ret = fi_endpoint(unit->domain, unit->info, &ep, NULL), close_ret;

	if (ret)
		return unit_fail(ret, "fi_endpoint");
	ret = check(&ep->fid);
	close_ret = unit_close(&ep->fid, "fi_close of an endpoint");
	return ret ? ret : close_ret;
}

static bool is_refused(int ret)
{
	return ret == -FI_ENOPROTOOPT || ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP;
}

static int check_min_multi_recv(struct fid *ep)
{
	size_t value = 4321, got = 0, len = sizeof(got);
	int ret = fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value));

	if (is_refused(ret))
		return unit_skip("FI_OPT_MIN_MULTI_RECV is not offered");
	if (ret)
		return unit_fail(ret, "fi_setopt of FI_OPT_MIN_MULTI_RECV");
	ret = fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len);
	if (ret)
		return unit_fail(ret, "fi_getopt of FI_OPT_MIN_MULTI_RECV");
	return got == value && len == sizeof(got) ? 0 :
	       unit_fail((int64_t) got, "FI_OPT_MIN_MULTI_RECV, which was set to 4321");
}

static int min_multi_recv(struct unit *unit)
{
	return with_ep(unit, check_min_multi_recv);
}

static int check_short(struct fid *ep)
{
	size_t value = 1, len = 1;
	char byte;
	int ret = fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &byte, &len);

	if (is_refused(ret))
		return unit_skip("FI_OPT_MIN_MULTI_RECV is not offered");
	if (!ret)
		return unit_fail(ret, "fi_getopt into one byte");
	ret = fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, 1);
	return ret ? 0 : unit_fail(ret, "fi_setopt of one byte");
}

static int wrong_length(struct unit *unit)
{
	return with_ep(unit, check_short);
}

static int check_unknown(struct fid *ep)
{
	size_t value = 1, len = sizeof(value);
	int ret = fi_setopt(ep, FI_OPT_ENDPOINT, 0x7fff, &value, sizeof(value));

	if (!is_refused(ret))
		return unit_fail(ret, "fi_setopt of an unknown option");
	ret = fi_getopt(ep, FI_OPT_ENDPOINT, 0x7fff, &value, &len);
	if (!is_refused(ret))
		return unit_fail(ret, "fi_getopt of an unknown option");
	ret = fi_setopt(ep, 0x7fff, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value));
	return is_refused(ret) ? 0 : unit_fail(ret, "fi_setopt of an unknown level");
}

static int unknown(struct unit *unit)
{
	return with_ep(unit, check_unknown);
}

/* An option of newer interfaces. */
#define HAVE_CUDA_OPT (FI_MAJOR_VERSION > 1 || FI_MINOR_VERSION >= 18)

#if HAVE_CUDA_OPT
/* Without FI_HMEM nobody needs a device's interface: to forbid it is granted or refused, but clearly. */
static int check_cuda(struct fid *ep)
{
	bool permitted = false;
	int ret = fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_CUDA_API_PERMITTED, &permitted, sizeof(permitted));

	return !ret || is_refused(ret) || ret == -FI_EINVAL ? 0 :
	       unit_fail(ret, "fi_setopt of FI_OPT_CUDA_API_PERMITTED");
}

static int cuda(struct unit *unit)
{
	return with_ep(unit, check_cuda);
}
#endif

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "FI_OPT_MIN_MULTI_RECV is what it was set to", min_multi_recv },
		{ "values of another length are refused", wrong_length },
		{ "unknown options and levels are refused", unknown },
#if HAVE_CUDA_OPT
		{ "FI_OPT_CUDA_API_PERMITTED", cuda },
#endif
	};
	static const struct unit_program program = {
		.about = "Set options of endpoints.",
		.caps = FI_MSG,
		.tests = tests,
		.test_cnt = sizeof(tests) / sizeof(tests[0]),
	};

	return unit_main(argc, argv, &program);
}
