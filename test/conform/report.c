/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Results, as TAP or as JSON. Each result is written as it comes, by the process that has it, so nothing is lost with a
 * process. JSON is one object:
 *
 *   { "library": TEXT, "api": "2.6", "provider": NAME,
 *     "tests": [ { "endpoint": "FI_EP_RDM", "name": "msg/size/1", "result": "passed", "reason": TEXT,
 *                  "checks": TEXT, "manual": "fi_msg(3), fi_cq(3)" } ... ],
 *     "fault": TEXT, "passed": N, "failed": N, "skipped": N }
 *
 * A result is "passed", "failed", "skipped" (this machine cannot run the test) or "absent" (it does not apply).
 * "reason" is missing where a test passed. "fault" is a failure that is no test's, or "".
 */
#include "runner.h"

#include <stdio.h>
#include <string.h>

static bool json, explain;

const struct test_text *test_text_of(const char *name)
{
	static const struct test_text none = { "", "", "" };
	const struct test_text *text;
	size_t len;

	for (text = test_texts; text->name; text++) {
		len = strlen(text->name);
		if (!strncmp(name, text->name, len) && (!name[len] || name[len] == '/'))
			return text;
	}
	return &none;
}

static void put_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char) *text < ' ')
			printf("\\u%04x", *text);
		else
			putchar(*text);
	}
	putchar('"');
}

static void put_member(const char *name, const char *text)
{
	printf(", \"%s\": ", name);
	put_string(text);
}

/* The line of TAP that a result is. What a reason says may not look like a part of it. */
static void put_tap(const char *name, enum outcome result, const char *reason)
{
	const char *c;

	if (result == ABSENT)
		printf("# %s: not here: ", name);
	else
		printf("%sok %u - %s%s", result == FAILED ? "not " : "", tally->number, name,
		       result == SKIPPED ? " # SKIP " : result == FAILED ? ": " : "");
	for (c = reason; *c; c++)
		putchar(*c == '\n' || *c == '#' ? ' ' : *c);
	putchar('\n');
	if (result == FAILED && explain)
		printf("# checks: %s\n# manual: %s\n", test_text_of(name)->checks, test_text_of(name)->pages);
}

static void put_json(const char *name, enum outcome result, const char *reason)
{
	static const char *const words[] = { [PASSED] = "passed", [FAILED] = "failed", [SKIPPED] = "skipped",
					     [ABSENT] = "absent" };

	printf("%s\n  { \"endpoint\": \"%s\"", tally->printed++ ? "," : "", fi_tostr(&run.type, FI_TYPE_EP_TYPE));
	put_member("name", name);
	put_member("result", words[result]);
	if (reason[0])
		put_member("reason", reason);
	put_member("checks", test_text_of(name)->checks);
	put_member("manual", test_text_of(name)->pages);
	printf(" }");
}

void report_begin(const struct cmdline *cmdline)
{
	uint32_t version = fi_version();

	json = cmdline->json;
	explain = cmdline->explain;
	if (json) {
		printf("{ \"library\": ");
		put_string(fi_tostr("", FI_TYPE_VERSION));
		printf(", \"api\": \"%u.%u\"", FI_MAJOR(version), FI_MINOR(version));
		put_member("provider", run.prov);
		printf(", \"tests\": [");
	}
	fflush(stdout);
}

void report_type(void)
{
	if (!json)
		printf("# %s, %s\n", run.prov, fi_tostr(&run.type, FI_TYPE_EP_TYPE));
	fflush(stdout);
}

void report_result(const char *name, enum outcome result, const char *reason)
{
	tally->number += result != ABSENT;
	tally->passed += result == PASSED;
	tally->failed += result == FAILED;
	tally->skipped += result == SKIPPED;
	(json ? put_json : put_tap)(name, result, result == PASSED ? "" : reason);
	fflush(stdout);
}

void report_fault(const char *text)
{
	tally->failed++;
	if (json)
		snprintf(tally->fault, sizeof(tally->fault), "%s", text);
	else
		printf("# %s\n", text);
	fflush(stdout);
}

void report_bail_out(void)
{
	char text[256];

	snprintf(text, sizeof(text), "no provider %s with %s", run.prov, fi_tostr(&run.type, FI_TYPE_EP_TYPE));
	if (!json) {
		printf("Bail out! %s\n", text);
		return;
	}
	report_fault(text);
	report_end();
}

void report_end(void)
{
	if (!json) {
		printf("1..%u%s\n", tally->number,
		       tally->number ? "" : " # SKIP none of these tests is for this provider and endpoint type");
		return;
	}
	printf("%s],\n  \"fault\": ", tally->printed ? "\n" : "");
	put_string(tally->fault);
	printf(", \"passed\": %u, \"failed\": %u, \"skipped\": %u }\n", tally->passed, tally->failed, tally->skipped);
}
