/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The command line of the runner: what it says of the run goes to struct run, the rest to struct cmdline; and the tests
 * that it takes out by name (--except).
 */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "runner.h"

/* ---- what a provider cannot do by its nature */

/* Lines of a file: a glob, blanks, and why tests of such a name are skipped. */
struct except {
	struct except *next;
	char *glob, *why;
};
static struct except *excepts;

static void read_excepts(const char *path)
{
	FILE *file = fopen(path, "r");
	struct except *e;
	char line[512], *why;
	size_t len;

	if (!file) {
		fprintf(stderr, "conform: %s: %s\n", path, strerror(errno));
		exit(2);
	}
	while (fgets(line, sizeof(line), file)) {
		len = strcspn(line, " \t\n");
		if (!len || line[0] == '#')
			continue;
		e = calloc(1, sizeof(*e));
		if (!e)
			abort();
		e->glob = strndup(line, len);
		why = line + len + strspn(line + len, " \t");
		e->why = strndup(why, strcspn(why, "\n"));
		e->next = excepts;
		excepts = e;
	}
	fclose(file);
}

const char *excepted(const char *name)
{
	struct except *e;

	for (e = excepts; e; e = e->next) {
		if (!fnmatch(e->glob, name, 0))
			return e->why;
	}
	return NULL;
}

const char *excepts_unmatched(bool (*matches)(const char *glob))
{
	struct except *e;

	for (e = excepts; e; e = e->next) {
		if (!matches(e->glob))
			return e->glob;
	}
	return NULL;
}

/* ---- options */

static const char usage[] =
	"fi_conform [-p PROVIDER] [-e msg|rdm|dgram] [OPTION...] [PATTERN...]\n"
	"  -p, --provider NAME       exact name, as in fabric_attr->prov_name (default: tcp)\n"
	"  -e, --endpoint TYPE       msg, rdm or dgram (default: all that the provider has)\n"
	"  -j, --json                results as JSON in place of TAP\n"
	"  -E, --explain             of each test that fails, or that is listed: what it checks, and the manual page\n"
	"  -6, --ipv6                addresses of the other family\n"
	"  -P, --progress MODEL      auto or manual\n"
	"  -T, --threading LEVEL     safe, fid, endpoint, completion or domain\n"
	"      --mode MODE           also: prefix (FI_MSG_PREFIX) or rx-cq-data (FI_RX_CQ_DATA); repeat for both\n"
	"  -m, --mr-mode MODE        basic (virtual addresses, provider's keys), local (registered buffers) or none\n"
	"  -V, --api MAJOR.MINOR     version given to fi_getinfo()\n"
	"  -s, --slow N              stretch all deadlines N times\n"
	"  -f, --fork                each test in a process of its own; else they share one until a test ends it\n"
	"  -x, --except FILE         leave out the tests that it names: lines of a glob and a reason\n"
	"      --excepted            run only these, each of which must fail\n"
	"  -l, --list                list the tests\n"
	"A PATTERN is a part of GROUP/NAME, or a glob for all of it.\n";

static const struct option options[] = {
	{ "provider", required_argument, NULL, 'p' },
	{ "endpoint", required_argument, NULL, 'e' },
	{ "ipv6", no_argument, NULL, '6' },
	{ "progress", required_argument, NULL, 'P' },
	{ "threading", required_argument, NULL, 'T' },
	{ "mr-mode", required_argument, NULL, 'm' },
	{ "mode", required_argument, NULL, 'M' },
	{ "api", required_argument, NULL, 'V' },
	{ "slow", required_argument, NULL, 's' },
	{ "fork", no_argument, NULL, 'f' },
	{ "except", required_argument, NULL, 'x' },
	{ "excepted", no_argument, NULL, 'X' },
	{ "list", no_argument, NULL, 'l' },
	{ "json", no_argument, NULL, 'j' },
	{ "explain", no_argument, NULL, 'E' },
	{ "peer", no_argument, NULL, 'r' },		/* used by process.c */
	{ "probe", required_argument, NULL, 'q' },	/* used by getinfo_flags.c */
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 }
};

enum { MODE_PREFIX, MODE_RX_CQ_DATA };

struct word {
	int opt;
	const char *word;
	int value;
};

static const struct word words[] = {
	{ 'e', "msg", FI_EP_MSG }, { 'e', "rdm", FI_EP_RDM }, { 'e', "dgram", FI_EP_DGRAM },
	{ 'P', "auto", FI_PROGRESS_AUTO }, { 'P', "manual", FI_PROGRESS_MANUAL },
	{ 'T', "safe", FI_THREAD_SAFE }, { 'T', "completion", FI_THREAD_COMPLETION },
	{ 'T', "domain", FI_THREAD_DOMAIN }, { 'T', "fid", FI_THREAD_FID }, { 'T', "endpoint", FI_THREAD_ENDPOINT },
	{ 'M', "prefix", MODE_PREFIX }, { 'M', "rx-cq-data", MODE_RX_CQ_DATA },
	{ 'm', "basic", MR_BASIC_BITS }, { 'm', "none", 0 }, { 'm', "local", MR_BASIC_BITS | FI_MR_LOCAL },
};

static int word_value(int opt, const char *word)
{
	size_t i;

	for (i = 0; i < COUNT(words); i++) {
		if (words[i].opt == opt && !strcmp(words[i].word, word))
			return words[i].value;
	}
	fprintf(stderr, "conform: -%c does not know '%s'\n%s", opt, word, usage);
	exit(2);
}

static uint32_t version_value(const char *text)
{
	unsigned int major, minor;

	if (sscanf(text, "%u.%u", &major, &minor) != 2) {
		fprintf(stderr, "conform: '%s' is not MAJOR.MINOR\n", text);
		exit(2);
	}
	return FI_VERSION(major, minor);
}

struct cmdline cmdline_read(int argc, char **argv)
{
	struct cmdline cmdline = { .every_type = true };
	int opt;

	while ((opt = getopt_long(argc, argv, "p:e:6P:T:m:V:s:fljEhx:", options, NULL)) >= 0) {
		switch (opt) {
		case 'p':
			run.prov = optarg;
			break;
		case 'e':
			run.type = (enum fi_ep_type) word_value(opt, optarg);
			cmdline.every_type = false;
			break;
		case '6':
			run.family = AF_INET6;
			break;
		case 'P':
			run.progress = (enum fi_progress) word_value(opt, optarg);
			break;
		case 'T':
			run.threading = (enum fi_threading) word_value(opt, optarg);
			break;
		case 'm':
			run.mr_mode = word_value(opt, optarg);
			break;
		case 'M':
			run.mode |= word_value(opt, optarg) == MODE_PREFIX ? FI_MSG_PREFIX : FI_RX_CQ_DATA;
			break;
		case 'V':
			run.version = version_value(optarg);
			break;
		case 's':
			run.slow *= (unsigned int) atoi(optarg) ? : 1;
			break;
		case 'f':
			cmdline.fork_each = true;
			break;
		case 'x':
			read_excepts(optarg);
			break;
		case 'X':
			cmdline.excepted = true;
			break;
		case 'j':
			cmdline.json = true;
			break;
		case 'E':
			cmdline.explain = true;
			break;
		case 'l':
			cmdline.list = true;
			break;
		case 'r':
			cmdline.be_peer = true;
			break;
		case 'q':
			exit(process_probe(optarg));
		default:
			fputs(usage, opt == 'h' ? stdout : stderr);
			exit(opt == 'h' ? 0 : 2);
		}
	}
	cmdline.patterns = argv + optind;
	return cmdline;
}
