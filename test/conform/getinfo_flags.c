/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Discovery beside hints: versions, flags, open objects, FI_PROVIDER. Source: fi_getinfo(3), fi_fabric(3). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "getinfo.h"

/* ---- versions */

struct version_row {
	const char *name;
	uint32_t version;
};

#define V(major, minor) { #major "." #minor, FI_VERSION(major, minor) }
static const struct version_row version_rows[] = {
	V(1, 0), V(1, 1), V(1, 2), V(1, 3), V(1, 4), V(1, 5), V(1, 6), V(1, 7), V(1, 8), V(1, 9), V(1, 10), V(1, 11),
	V(1, 12), V(1, 13), V(1, 14), V(1, 15), V(1, 16), V(1, 17), V(1, 18), V(1, 19), V(1, 20), V(1, 21), V(1, 22),
	V(2, 0), V(2, 1), V(2, 2), V(2, 3), V(2, 4), V(2, 5), V(2, 6),
};

/* Any release up to the library's own is spoken, and the answer says which. */
TEST_TABLE(api_version, version_rows, 0)
{
	uint32_t version = ROW(version_rows)->version;
	struct fi_info *list;
	int ret;

	ret = getinfo(t, version, NULL, NULL, 0, hints_plain(t), &list);
	if (FI_VERSION_GE(version, fi_version()) && version != fi_version()) {
		CHECK_RET(ret, -FI_ENOSYS);
		return;
	}
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)) && ret == -FI_ENODATA && !run.ours)
		ABSENT("%s does not serve mr_mode 0 of %s", run.prov, ROW(version_rows)->name);
	MUST(ret);
	CHECK_EQ(list->fabric_attr->api_version, version);
}

/* A later release than the library's is refused. */
TEST_PROV(api_version_from_the_future, 0, .alone = true)
{
	struct fi_info *list;

	CHECK_RET(getinfo(t, fi_version() + 1, NULL, NULL, 0, NULL, &list), -FI_ENOSYS);
	CHECK_RET(getinfo(t, FI_VERSION(99, 0), NULL, NULL, 0, NULL, &list), -FI_ENOSYS);
}

struct old_mr_row {
	const char *name;
	uint32_t version;
	int mr_mode, answer;
	uint64_t mode;
};

static const struct old_mr_row old_mr_rows[] = {
	{ "1.4_basic", FI_VERSION(1, 4), MR_BASIC, MR_BASIC, 0 },
	{ "1.4_scalable", FI_VERSION(1, 4), MR_SCALABLE, MR_SCALABLE, 0 },
	{ "1.4_basic_local", FI_VERSION(1, 4), MR_BASIC, MR_BASIC, LOCAL_MR },
	{ "1.0_basic", FI_VERSION(1, 0), MR_BASIC, MR_BASIC, 0 },
	{ "1.9_basic", FI_VERSION(1, 9), MR_BASIC, MR_BASIC, 0 },
	{ "1.9_basic_local", FI_VERSION(1, 9), MR_BASIC, MR_BASIC, LOCAL_MR },
};

/* The old memory registration modes are answered in the old way, and FI_LOCAL_MR is not asked of who need not. */
TEST_TABLE(old_mr_mode, old_mr_rows, FI_MSG | FI_RMA)
{
	const struct old_mr_row *row = ROW(old_mr_rows);
	struct fi_info *hints = hints_plain(t), *list, *info;
	int ret;

	hints->domain_attr->mr_mode = row->mr_mode;
	hints->mode = row->mode;
	ret = getinfo(t, row->version, NULL, NULL, 0, hints, &list);
	if (ret == -FI_ENODATA && !run.ours)
		ABSENT("not offered");
	MUST(ret);
	for (info = list; info; info = info->next) {
		CHECK_EQ(info->domain_attr->mr_mode, row->answer);
		CHECK_EQ(info->mode & ~row->mode, 0);
	}
}

/* Before 1.5 an mr_mode of 0 means either, and the answer is one of the two. */
TEST_PROV(old_mr_mode_unspec, FI_MSG | FI_RMA)
{
	struct fi_info *hints = hints_plain(t), *list;
	int ret;

	hints->domain_attr->mr_mode = 0;
	ret = getinfo(t, FI_VERSION(1, 4), NULL, NULL, 0, hints, &list);
	if (ret == -FI_ENODATA && !run.ours)
		ABSENT("not offered");
	MUST(ret);
	CHECK(list->domain_attr->mr_mode == MR_BASIC || list->domain_attr->mr_mode == MR_SCALABLE);
}

/* ---- flags */

/* FI_PROV_ATTR_ONLY: each provider once, with name and version, and blank apart from that. */
TEST_PROV(provider_list, 0, .alone = true)
{
	struct fi_info *list, *info, *other, *blank = fi_allocinfo();

	MUST(getinfo(t, run.version, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &list));
	for (info = list; info; info = info->next) {
		CHECK(info->fabric_attr && info->fabric_attr->prov_name && info->fabric_attr->prov_version);
		for (other = info->next; other; other = other->next)
			CHECK(strcmp(info->fabric_attr->prov_name, other->fabric_attr->prov_name));
	}
	own_info(t, blank);
	for (info = list; info && run.ours; info = info->next) {
		struct fi_info *rest = fi_dupinfo(info);

		own_info(t, rest);
		free(rest->fabric_attr->prov_name);
		memset(rest->fabric_attr, 0, sizeof(*rest->fabric_attr));
		CHECK(!strcmp(text_of(t, rest), text_of(t, blank)));
	}
}

/* Flags that do not exist are refused. */
TEST_PROV(unknown_flags, 0, .alone = true)
{
	struct fi_info *list;
	int ret;

	if (!run.ours)
		ABSENT("upstream ignores them");
	ret = getinfo(t, run.version, NULL, NULL, 1ULL << 3, NULL, &list);
	CHECK(ret == -FI_EBADFLAGS || ret == -FI_EINVAL);
}

/* ---- open objects in hints */

/* A fabric in hints restricts the answer to it. */
TEST_PROV(fabric_in_hints, 0)
{
	struct side *s = domain_side(t);
	struct fi_info *hints = hints_plain(t), *list, *info;

	hints->fabric_attr->fabric = s->fabric;
	MUST(getinfo(t, run.version, NULL, NULL, 0, hints, &list));
	for (info = list; info; info = info->next) {
		CHECK(!strcmp(info->fabric_attr->name, s->info->fabric_attr->name));
		CHECK(info->fabric_attr->fabric == s->fabric);
	}
}

/* So does a domain; together with another name nothing is found. */
TEST_PROV(domain_in_hints, 0)
{
	struct side *s = domain_side(t);
	struct fi_info *hints = hints_plain(t), *list, *info;

	hints->domain_attr->domain = s->domain;
	MUST(getinfo(t, run.version, NULL, NULL, 0, hints, &list));
	for (info = list; info; info = info->next) {
		CHECK(!strcmp(info->domain_attr->name, s->info->domain_attr->name));
		CHECK(info->domain_attr->domain == s->domain);
	}
	hints->domain_attr->name = strdup("no-such-domain");
	CHECK_RET(getinfo(t, run.version, NULL, NULL, 0, hints, &list), -FI_ENODATA);
}

/* An open domain is named by later answers, and no longer after it is closed. */
TEST_PROV(open_domain_is_told, 0)
{
	struct side *s = domain_side(t);
	struct fi_info *hints = hints_plain(t), *list;

	hints->domain_attr->name = strdup(s->info->domain_attr->name);
	hints->fabric_attr->name = strdup(s->info->fabric_attr->name);
	MUST(getinfo(t, run.version, NULL, NULL, 0, hints, &list));
	CHECK(list->fabric_attr->fabric == s->fabric);
	CHECK(list->domain_attr->domain == s->domain);
	side_close(s);
	MUST(getinfo(t, run.version, NULL, NULL, 0, hints, &list));
	CHECK(list->domain_attr->domain == NULL);
}

/* ---- FI_PROVIDER */

struct filter_row {
	const char *name;
	const char *value;
	bool append;			/* the run's provider, without layers */
	int present;			/* is the run's provider listed? */
	int others;			/* may others be? */
};

static const struct filter_row filter_rows[] = {
	{ "only", "", true, 1, 0 }, { "not", "^", true, 0, 1 }, { "nothing", "no-such-provider", false, 0, 0 },
	{ "list", "no-such-provider,", true, 1, 0 }, { "not_list", "^no-such-provider,", true, 0, 1 },
	{ "not_nothing", "^no-such-provider", false, 1, 1 },
};

/* FI_PROVIDER names who may be found, or with ^ who may not; a core provider's name stands for its layers, too. */
TEST_TABLE(provider_filter, filter_rows, 0)
{
	const struct filter_row *row = ROW(filter_rows);
	char core[64], value[256];
	int status = 0;
	pid_t pid;

	snprintf(core, sizeof(core), "%.*s", (int) strcspn(run.prov, ";"), run.prov);
	snprintf(value, sizeof(value), "%s%s", row->value, row->append ? core : "");
	pid = fork();
	if (pid == 0) {
		setenv("FI_PROVIDER", value, 1);
		execl("/proc/self/exe", "conform", "--probe", core, (char *) NULL);	/* process_probe() */
		_exit(1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) >= 10);
	status = WEXITSTATUS(status) - 10;
	CHECK_EQ(status & 1, row->present && (is_listed() || row->append || strchr(run.prov, ';')));
	if (!row->others)
		CHECK_EQ(status & 2, 0);
}
