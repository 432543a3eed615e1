/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * By what clients refuse an answer, apart from their own hints (clients.c): how they filter and compare entries, what
 * they ask when the first question fails, which errors they understand. Named after the client.
 * Source: fi_getinfo(3).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clients.h"

static bool is_rxm(void)
{
	const char *layer = strchr(run.prov, ';');

	return layer && !strcmp(layer, ";ofi_rxm");
}

static struct fi_info *ask(struct test *t, struct fi_info *hints, int want)
{
	struct fi_info *list = NULL;
	int ret = fi_getinfo(run.version, NULL, NULL, 0, hints, &list);

	own_info(t, list);
	CHECK_RET(ret, want);
	return list;
}

static struct fi_info *plain_hints(struct test *t)
{
	return hints_new(t, &(struct opts) { 0 });
}

/* Mercury compares names exactly, and the protocol of RDM over MSG; GASNet wants 1.15 of it, or later. */
TEST_PROV(rxm_name_and_protocol, 0, RDM_ONLY)
{
	struct fi_info *hints = plain_hints(t), *info;
	unsigned int found = 0;

	if (!is_rxm())
		ABSENT("about RDM endpoints over connected ones");
	hints->ep_attr->protocol = FI_PROTO_RXM;
	for (info = ask(t, hints, 0); info; info = info->next) {
		CHECK(!strcmp(info->fabric_attr->prov_name, run.prov));
		CHECK_EQ(info->ep_attr->protocol, FI_PROTO_RXM);
		CHECK(FI_VERSION_GE(info->fabric_attr->prov_version, FI_VERSION(1, 15)));
		found++;
	}
	CHECK(found > 0);
}

/* A protocol is no wish: who asks for that of rxm does not get tcp, nor the other way round. */
TEST_PROV(mercury_protocol_of_another, 0, RDM_ONLY)
{
	struct fi_info *hints = plain_hints(t), *list = NULL;
	int ret;

	if (!run.ours || (strcmp(run.prov, "tcp") && !is_rxm()))
		ABSENT("about tcp, and RDM endpoints over connected ones");
	hints->ep_attr->protocol = is_rxm() ? FI_PROTO_XNET : FI_PROTO_RXM;
	ret = fi_getinfo(run.version, NULL, NULL, 0, hints, &list);
	own_info(t, list);
	CHECK(!ret || ret == -FI_ENODATA);
	for (; list; list = list->next)		/* by the name tcp there is tcp;ofi_rxm, too */
		CHECK(!info_is_run(list));
}

/* Mercury takes "tcp" for "tcp;ofi_rxm" when the library says that it is older than this. */
TEST_PROV(mercury_version_of_tcp, 0, .alone = true)
{
	if (!run.ours)
		ABSENT("Debian's is older");
	CHECK(FI_VERSION_GE(fi_version(), FI_VERSION(1, 18)));
}

static bool is_nccl_entry(const struct fi_info *info)
{
	return info_is_run(info) && info->addr_format == FI_SOCKADDR_IN && strcmp(info->domain_attr->name, "lo") &&
	       strncmp(info->domain_attr->name, "docker0", 7);
}

/* Rails are entries that are alike but for the interface; the interfaces left are those that lead out. */
TEST_PROV(nccl_rails_are_alike, FI_MSG | FI_TAGGED, RDM_ONLY)
{
	struct fi_info *info = client_info(t, "nccl_sendrecv"), *first = NULL;

	if (!has_sockaddr())
		ABSENT("%s has no socket addresses", run.prov);
	for (; info; info = info->next) {
		if (!is_nccl_entry(info))
			continue;
		if (!first)
			first = info;
		CHECK_EQ(info->caps, first->caps);
		CHECK_EQ(info->mode, first->mode);
		CHECK_EQ(info->ep_attr->protocol, first->ep_attr->protocol);
		CHECK_EQ(info->ep_attr->protocol_version, first->ep_attr->protocol_version);
		CHECK_EQ(info->domain_attr->mr_mode, first->domain_attr->mr_mode);
	}
	if (!first)
		SKIP("no interface but loopback and docker0");
}

/* Its other protocol needs device memory. Where that is refused when it asks, and not later, it asks for sendrecv. */
TEST_PROV(nccl_asks_for_device_memory, FI_MSG | FI_TAGGED, RDM_ONLY)
{
	struct fi_info *hints = plain_hints(t), *info;

	if (!run.ours)
		ABSENT("upstream may have device memory");
	hints->caps = FI_MSG | FI_RMA | FI_HMEM | FI_LOCAL_COMM | FI_REMOTE_COMM;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_HMEM | MR_BASIC_BITS;
	hints->domain_attr->threading = FI_THREAD_COMPLETION;
	hints->domain_attr->cq_data_size = 4;
	if (fi_getinfo(run.version, NULL, NULL, 0, hints, &info) == -FI_ENODATA) {
		client_info(t, "nccl_sendrecv");
		return;
	}
	own_info(t, info);
	CHECK_EQ(info->caps & hints->caps, hints->caps);
	CHECK_EQ(info->domain_attr->mr_mode & FI_MR_HMEM, FI_MR_HMEM);
}

/* Where the hints that it makes up find nothing, it takes the entry's own orders, then its own mr_mode. */
TEST_PROV(mpich_asks_again_with_the_entrys_own, FI_MSG | FI_TAGGED | FI_RMA, RDM_ONLY)
{
	struct fi_info *entry, *hints = plain_hints(t), *info;

	MUST(fi_getinfo(run.version, NULL, NULL, 0, NULL, &entry));
	own_info(t, entry);
	while (entry && !info_is_run(entry))
		entry = entry->next;
	if (!entry)
		ABSENT("%s answers who asks for it by name", run.prov);
	hints->caps = entry->caps;
	hints->mode = FI_CONTEXT | FI_ASYNC_IOV | FI_RX_CQ_DATA | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->tx_attr->msg_order = entry->tx_attr->msg_order;
	hints->rx_attr->msg_order = entry->rx_attr->msg_order;
	hints->domain_attr->mr_mode = entry->domain_attr->mr_mode;
	info = ask(t, hints, 0);
	CHECK_EQ(info->caps & entry->caps, entry->caps);
	CHECK_EQ(info->domain_attr->threading, FI_THREAD_DOMAIN);
}

/* SOS and Mercury choose by the names of fabric and domain; what they read in one entry finds it again. */
TEST_PROV(sos_names_find_the_entry, 0)
{
	struct fi_info *hints = plain_hints(t), *list = ask(t, plain_hints(t), 0), *info, *again;

	for (info = list; info; info = info->next) {
		CHECK(info->fabric_attr->name && *info->fabric_attr->name);
		CHECK(info->domain_attr->name && *info->domain_attr->name);
		free(hints->fabric_attr->name);
		free(hints->domain_attr->name);
		hints->fabric_attr->name = strdup(info->fabric_attr->name);
		hints->domain_attr->name = strdup(info->domain_attr->name);
		for (again = ask(t, hints, 0); again; again = again->next) {
			CHECK(!strcmp(again->fabric_attr->name, info->fabric_attr->name));
			CHECK(!strcmp(again->domain_attr->name, info->domain_attr->name));
		}
	}
}

static void restore_files(void *limit)
{
	setrlimit(RLIMIT_NOFILE, limit);
}

/* It tells its users to raise the limit on open files when it is told FI_EMFILE. */
TEST_PROV(chapel_understands_emfile, FI_MSG | FI_RMA, RDM_ONLY)
{
	struct fi_info *info = info_find(t, hints_new(t, &(struct opts) { .caps = FI_MSG | FI_RMA }), NULL, NULL, 0);
	struct rlimit limit, none;
	struct fid_domain *domain;
	struct fid_fabric *fabric;
	int ret;

	if (!run.ours || !has_sockaddr())
		ABSENT("about sockets of this library");
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	own_fid(t, &fabric->fid);
	MUST(getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 3;
	own(t, restore_files, &limit);
	MUST(setrlimit(RLIMIT_NOFILE, &none));
	ret = fi_domain(fabric, info, &domain, NULL);
	restore_files(&limit);
	disown(t, &limit);
	CHECK_RET(ret, -FI_EMFILE);
	MUST(fi_domain(fabric, info, &domain, NULL));
	own_fid(t, &domain->fid);
}

/* Two runtimes in one process: one sets FI_PROVIDER when the library runs already. The other goes on undisturbed. */
TEST_PROV(oneccl_sets_the_environment_late, 0)
{
	const char *was = getenv("FI_PROVIDER");
	char *kept = was ? strdup(was) : NULL;
	struct fi_info *list = NULL;
	int ret;

	ask(t, plain_hints(t), 0);
	setenv("FI_PROVIDER", "psm3", 1);
	ret = fi_getinfo(run.version, NULL, NULL, 0, plain_hints(t), &list);
	if (kept)
		setenv("FI_PROVIDER", kept, 1);
	else
		unsetenv("FI_PROVIDER");
	free(kept);
	own_info(t, list);
	MUST(ret);
}
