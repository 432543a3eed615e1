/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Providers in DSOs: found, judged, and chosen among; and what fi_fabric() and fi_open() make of names. Runs $CC.
 */
#include "base/unit.h"

#include "base/bits.h"
#include "core/child.h"
#include "core/fake.h"
#include "registry.h"

#include <rdma/fi_ext.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[] = "/tmp/test-registry-XXXXXX";

static void shell(const char *command)
{
	if (system(command))
		fail_msg("failed: %s", command);
}

/* Compile dso.c as FOLDER/libFILE-fi.so below top. */
static void make_dso(const char *folder, const char *file, const char *defines)
{
	const char *cc = getenv("CC"), *srcdir = getenv("srcdir");
	char command[4096];

	snprintf(command, sizeof(command), "mkdir -p %s/%s && %s -shared -fPIC %s -I%s/include -o %s/%s/lib%s-fi.so "
		 "%s/test/core/dso.c", top, folder, cc ? cc : "cc", defines, srcdir ? srcdir : ".", top, folder, file,
		 srcdir ? srcdir : ".");
	shell(command);
}

static int set_up(void **state)
{
	char command[512];

	(void) state;
	if (!mkdtemp(top))
		return -1;
	make_dso("one", "qone", "-DNAME='\"qone\"' -DVERSION='FI_VERSION(1,1)' -DAPI='FI_VERSION(1,17)'");
	make_dso("two", "qone", "-DNAME='\"qone\"' -DVERSION='FI_VERSION(1,2)' -DAPI='FI_VERSION(2,6)'");
	make_dso("two", "qtwo", "-DNAME='\"qtwo\"' -DVERSION='FI_VERSION(1,0)' -DAPI='FI_VERSION(2,6)'");
	make_dso("two", "ofi_q", "-DNAME='\"ofi_q\"' -DVERSION='FI_VERSION(1,0)' -DAPI='FI_VERSION(2,6)'");
	make_dso("ours", "verbs", "-DNAME='\"verbs\"' -DVERSION='FI_VERSION(1,0)' -DAPI='FI_VERSION(2,6)'");
	make_dso("ours", "rxm", "-DNAME='\"ofi_rxm\"' -DVERSION='FI_VERSION(1,0)' -DAPI='FI_VERSION(2,6)'");
	make_dso("ours", "other", "-DNAME='\"qother\"' -DVERSION='FI_VERSION(1,3)' -DAPI='FI_VERSION(2,6)'");
	make_dso("ill", "qentry", "-DNO_ENTRY");
	make_dso("ill", "qnull", "-DNAME='\"qnull\"' -DNULL_ENTRY -DVERSION=1 -DAPI='FI_VERSION(2,6)'");
	make_dso("ill", "qnew", "-DNAME='\"qnew\"' -DVERSION=1 -DAPI='FI_VERSION(2,7)'");
	make_dso("ill", "qold", "-DNAME='\"qold\"' -DVERSION=1 -DAPI=0");
	make_dso("ill", "qname", "-DNAME='\"\"' -DVERSION=1 -DAPI='FI_VERSION(2,6)'");
	make_dso("ill", "qcalls", "-DNAME='\"qcalls\"' -DNO_CALLS -DVERSION=1 -DAPI='FI_VERSION(2,6)'");
	make_dso("ill", "qzgood", "-DNAME='\"qgood\"' -DVERSION='FI_VERSION(1,7)' -DAPI='FI_VERSION(2,6)'");
	snprintf(command, sizeof(command), "echo rubbish > %s/ill/libqtext-fi.so; mkdir %s/ill/libqfolder-fi.so; "
		 "ln -s /nonexistent %s/ill/libqlink-fi.so; : > %s/ill/libqempty-fi.so; echo x > %s/ill/README; "
		 "mkdir %s/again; ln -s ../one/libqone-fi.so %s/again/libqagain-fi.so", top, top, top, top, top, top,
		 top);
	shell(command);
	return 0;
}

static int tear_down(void **state)
{
	char command[64];

	(void) state;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

/* List the providers, then end the registry. */
static void list(void)
{
	struct fi_info *info, *entry;

	if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &info))
		info = NULL;
	for (entry = info; entry; entry = entry->next)
		if (strchr(entry->fabric_attr->prov_name, 'q'))
			printf("have %s %d\n", entry->fabric_attr->prov_name,
			       FI_MINOR(entry->fabric_attr->prov_version));
	fi_freeinfo(info);
	fab_registry_fini();
}

/* The output of list() with this FI_PROVIDER_PATH, in which each % stands for our top folder, and FI_PROVIDER. */
static char *run(const char *path, const char *provider)
{
	char path_env[1024] = "FI_PROVIDER_PATH=", provider_env[256];
	const char *const env[] = { path_env, provider ? provider_env : NULL, NULL };
	size_t len = strlen(path_env);

	for (; *path; path++)
		len += (size_t) snprintf(path_env + len, sizeof(path_env) - len, *path == '%' ? "%s" : "%.1s",
					 *path == '%' ? top : path);
	snprintf(provider_env, sizeof(provider_env), "FI_PROVIDER=%s", provider ? provider : "");
	return child_run(env, list);
}

static void assert_has(const char *path, const char *provider, const char *const *lines, const char *const *lacks)
{
	char *text = run(path, provider);

	for (; *lines; lines++)
		if (!strstr(text, *lines))
			fail_msg("%s, %s: no %s in:\n%s", path, provider, *lines, text);
	for (; *lacks; lacks++)
		if (strstr(text, *lacks))
			fail_msg("%s, %s: %s in:\n%s", path, provider, *lacks, text);
	free(text);
}

#define LINES(...) ((const char *const[]) { __VA_ARGS__ __VA_OPT__(,) NULL })

static void providers_are_loaded_from_a_path(void **state)
{
	(void) state;
	assert_has("%/one", NULL, LINES("have qone 1\n", "cleanup qone 1\n"), LINES("<warn>"));
	assert_has("%/two", NULL, LINES("have qone 2\nhave qtwo 0\nhave ofi_q 0\n"), LINES("<warn>"));
	assert_has("/nonexistent::%/one:", NULL, LINES("have qone 1\n"), LINES("<warn>"));
}

static void the_higher_version_is_taken(void **state)
{
	(void) state;
	assert_has("%/one:%/two", NULL, LINES("have qone 2\n"), LINES("have qone 1\n"));
	assert_has("%/two:%/one", NULL, LINES("have qone 2\n"), LINES("have qone 1\n"));
}

static void an_at_sign_takes_the_first_found(void **state)
{
	(void) state;
	assert_has("@%/one:%/two", NULL, LINES("have qone 1\n", "have qtwo 0\n", "cleanup qone 2\n"),
		   LINES("have qone 2\n"));
	assert_has("@%/two:%/one", NULL, LINES("have qone 2\n"), LINES("have qone 1\n"));
}

static void a_plus_sign_takes_this_one(void **state)
{
	(void) state;
	assert_has("%/two:+%/one/libqone-fi.so", NULL, LINES("have qone 1\n", "have qtwo 0\n"), LINES("have qone 2\n"));
	assert_has("+%/one/libqone-fi.so:%/two", NULL, LINES("have qone 1\n"), LINES("have qone 2\n"));
}

/* One file under two names is one provider: it is not cleaned up while it is in use. */
static void a_file_found_twice_is_used_once(void **state)
{
	char *text = run("%/one:%/again:%/one:+%/again/libqagain-fi.so", NULL);

	(void) state;
	assert_int_equal(count_lines(text, "have qone 1\n"), 1);
	assert_int_equal(count_lines(text, "cleanup qone 1\n"), 1);
	assert_true(strstr(text, "have qone") < strstr(text, "cleanup qone"));
	free(text);
}

/* The last in the list is cleaned up first: a utility, which calls others, before them. */
static void they_are_cleaned_up_in_reverse(void **state)
{
	char *text = run("%/two", NULL);
	const char *util = strstr(text, "cleanup ofi_q 0\n"), *two = strstr(text, "cleanup qtwo 0\n");

	(void) state;
	assert_non_null(util);
	assert_non_null(two);
	assert_true(util < two);
	assert_true(two < strstr(text, "cleanup qone 2\n"));
	free(text);
}

/* Whatever is wrong with a file costs one line that names it, and the good one beside it still comes. */
static void an_ill_file_costs_one_line(void **state)
{
	static const char *const ill[] = {
		"qentry", "qnull", "qnew", "qold", "qname", "qcalls", "qtext", "qfolder", "qlink", "qempty",
	};
	char *text = run("%/ill", NULL), file[64];
	size_t i;

	(void) state;
	assert_int_equal(count_lines(text, "have qgood 7\n"), 1);
	assert_int_equal(count_lines(text, "have "), 1);
	assert_int_equal(count_lines(text, "<warn>"), 10);
	for (i = 0; i < 10; i++) {
		snprintf(file, sizeof(file), "lib%s-fi.so", ill[i]);
		if (count_lines(text, file) != 1)
			fail_msg("%s is not named once in:\n%s", file, text);
	}
	assert_non_null(strstr(text, "it was written for API 2.7; this library supports 1.0 to 2.6\n"));
	assert_null(strstr(text, "README"));
	free(text);
}

/* A DSO tells its name only when it is loaded; then it is let go again. */
static void the_user_chooses_among_dsos(void **state)
{
	(void) state;
	assert_has("%/two", "qtwo", LINES("have qtwo 0\n", "cleanup qone 2\n"), LINES("have qone"));
	assert_has("%/two", "^qtwo", LINES("have qone 2\n", "cleanup qtwo 0\n"), LINES("have qtwo"));
	assert_has("%/two", "nobody", LINES("cleanup qone 2\n"), LINES("have q"));
}

/* Of DSOs that are ours the name of the file tells who is in it: what is left out is not even loaded. Others are. */
static void of_ours_what_is_left_out_is_not_loaded(void **state)
{
	static const struct {
		const char *provider;
		bool verbs, rxm;
	} rows[] = {
		{ NULL, true, true }, { "verbs", true, true }, { "tcp", false, true }, { "^verbs", false, true },
		{ "verbs;ofi_rxm", true, true }, { "ofi_rxm", true, true }, { "^ofi_rxm", true, false },
		{ "tcp;ofi_rxm", false, true }, { "qother", false, true }, { "VERBS , tcp", true, true },
	};

	(void) state;
	for (size_t i = 0; i < fab_countof(rows); i++) {
		char *text = run("%/ours", rows[i].provider);

		if (!strstr(text, "load verbs\n") == rows[i].verbs || !strstr(text, "load ofi_rxm\n") == rows[i].rxm ||
		    !strstr(text, "load qother\n"))
			fail_msg("FI_PROVIDER=%s: not what it is to be:\n%s",
				 rows[i].provider ? rows[i].provider : "", text);
		free(text);
	}
	assert_has("%/ours:+%/ours/libverbs-fi.so", "tcp", LINES("load verbs\n"), LINES("have verbs"));
	assert_has("%/ours", "qother", LINES("have qother 3\n"), LINES("load verbs"));
}

static void list_rank(void)
{
	child_check(fab_registry_rank("verbs;ofi_rxm") == 0 && fab_registry_rank("verbs") == 0);
	child_check(fab_registry_rank("tcp") < fab_registry_rank("udp"));
	child_check(fab_registry_rank("tcp;ofi_rxm") == fab_registry_rank("tcp"));
	child_check(fab_registry_rank("shm") < fab_registry_rank("tcp") && fab_registry_rank("shm"));
}

static void software_ranks_last(void **state)
{
	(void) state;
	free(child_run(NULL, list_rank));
}

static void open_fabrics(void)
{
	struct fi_fabric_attr attr = { .prov_name = "qa", .api_version = FI_VERSION(1, 9) };
	struct fi_info info = { .fabric_attr = &attr };
	struct fid_fabric *fabric = NULL;

	fakes_register();
	child_check(!fi_fabric(&attr, &fabric, &attr));
	child_check(fabric->api_version == FI_VERSION(1, 9) && fabric->fid.context == &attr);
	child_check(!fi_fabric2(&info, &fabric, 0, NULL) && fabric->api_version == FI_VERSION(1, 9));
	attr.prov_name = "ofi_q;qa";
	child_check(!fi_fabric(&attr, &fabric, NULL));
	child_check(fab_registry_find("qa;ofi_q") == &fake_util.prov && fab_registry_find("QB") == &fake_b.prov);
	attr.prov_name = "qa";
	fake_a.prov.fi_version = FI_VERSION(1, 4);
	child_check(!fi_fabric(&attr, &fabric, NULL) && fabric->api_version == 99);

	child_check(fi_fabric2(&info, &fabric, 1, NULL) == -FI_EBADFLAGS);
	child_check(fi_fabric2(NULL, &fabric, 0, NULL) == -FI_EINVAL);
	child_check(fi_fabric(NULL, &fabric, NULL) == -FI_EINVAL);
	child_check(fi_fabric(&attr, NULL, NULL) == -FI_EINVAL);
	attr.prov_name = "nobody";
	child_check(fi_fabric(&attr, &fabric, NULL) == -FI_ENODEV);
	attr.prov_name = NULL;
	child_check(fi_fabric(&attr, &fabric, NULL) == -FI_EINVAL);
	child_check(fi_version() == FI_VERSION(2, 6));
}

static void fabrics_are_opened_by_the_provider_named(void **state)
{
	static const char *const all[] = { "FI_LOG_LEVEL=info", NULL };
	char *text = child_run(all, open_fabrics);

	(void) state;
	assert_int_equal(count_lines(text, "fi_fabric: there is no provider nobody"), 1);
	assert_int_equal(count_lines(text, "<error>"), 6);
	free(text);
}

static void open_objects(void)
{
	struct fid *fid = NULL;

	child_check(fi_open(FI_VERSION(1, 13), "mr_cache", NULL, 0, 4, &fid, NULL) == -FI_EBADFLAGS);
	child_check(fi_open(FI_VERSION(1, 13), "nonsense", NULL, 0, 0, &fid, NULL) == -FI_ENOSYS);
	child_check(fi_open(FI_VERSION(2, 7), "logging", NULL, 0, 0, &fid, NULL) == -FI_ENOSYS);
	child_check(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 4, &fid, NULL) == -FI_EBADFLAGS);
	child_check(fi_open(FI_VERSION(1, 13), "logging", &fid, 8, 0, &fid, NULL) == -FI_EINVAL);
	child_check(fi_open(FI_VERSION(1, 13), NULL, NULL, 0, 0, &fid, NULL) == -FI_EINVAL);
	child_check(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 0, NULL, NULL) == -FI_EINVAL);
	child_check(!fid);
}

static void unknown_objects_are_refused(void **state)
{
	(void) state;
	free(child_run(NULL, open_objects));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(providers_are_loaded_from_a_path),
		cmocka_unit_test(the_higher_version_is_taken),
		cmocka_unit_test(an_at_sign_takes_the_first_found),
		cmocka_unit_test(a_plus_sign_takes_this_one),
		cmocka_unit_test(a_file_found_twice_is_used_once),
		cmocka_unit_test(they_are_cleaned_up_in_reverse),
		cmocka_unit_test(an_ill_file_costs_one_line),
		cmocka_unit_test(the_user_chooses_among_dsos),
		cmocka_unit_test(of_ours_what_is_left_out_is_not_loaded),
		cmocka_unit_test(software_ranks_last),
		cmocka_unit_test(fabrics_are_opened_by_the_provider_named),
		cmocka_unit_test(unknown_objects_are_refused),
	};

	return cmocka_run_group_tests_name("core/registry", tests, set_up, tear_down);
}
