/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 *   decode [--count N] [--seed N]      so many inputs for each decoder; make check: two million
 *
 * Without sanitizers it plays tens of millions of headers and some millions of requests a second, so 10^9 take minutes:
 * test/fuzz/decode/decode --count 500000000 --seed $(date +%s). The corpora of tcp_stream and tcp_cm are in $srcdir.
 */
#include "fuzz/decode/decode.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CORPUS_MAX	(1 << 20)

static size_t load(uint8_t *to, const char *name)
{
	char path[1000];
	const char *top = getenv("srcdir");
	struct dirent *entry;
	size_t len = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/test/fuzz/corpus/%s", top ? top : ".", name);
	dir = opendir(path);
	if (!dir) {
		printf("Bail out! no corpus in %s: set srcdir to the top of the source tree\n", path);
		exit(1);
	}
	while ((entry = readdir(dir))) {
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/test/fuzz/corpus/%s/%s", top ? top : ".", name, entry->d_name);
		file = fopen(path, "r");
		FUZZ_MUST(file);
		len += fread(to + len, 1, CORPUS_MAX - len, file);
		fclose(file);
	}
	closedir(dir);
	FUZZ_MUST(len > 500);
	return len;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name, *corpus;
		uint64_t (*play)(struct decode *decode, uint64_t cnt);
	} kinds[] = { { "headers", "tcp_stream", decode_frames }, { "requests and answers", "tcp_cm", decode_hellos } };
	static uint8_t corpus[CORPUS_MAX];
	uint64_t cnt = 2000000, seed = 1, valid;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--count"))
			cnt = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--seed"))
			seed = strtoull(argv[i + 1], NULL, 0);
	}
	setenv("FI_LOG_LEVEL", "silent", 0);
	printf("1..2\n");
	for (int i = 0; i < 2; i++) {
		struct decode decode = { .random = fab_mix64(seed), .corpus = corpus };
		double begin = now();

		decode.corpus_len = load(corpus, kinds[i].corpus);
		valid = kinds[i].play(&decode, cnt);
		/* both answers are tried */
		printf("%sok %d - %" PRIu64 " %s from seed %" PRIu64 ", %" PRIu64 " of them valid\n",
		       valid > cnt / 100 && valid < cnt - cnt / 100 ? "" : "not ", i + 1, cnt, kinds[i].name, seed,
		       valid);
		printf("# %.1f million a second\n", (double) cnt / 1e6 / (now() - begin));
		fflush(stdout);
	}
	return 0;
}
