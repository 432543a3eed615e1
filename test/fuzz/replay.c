/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs a target without a fuzzer: each file of its corpus, then inputs made of them by changes that are the same in
 * every run, for up to two seconds.
 *
 *   target [--for SECONDS] [FILE ...]     with files: only those
 *
 * What the target did not survive is in fuzz-NAME.crash of the current folder then, to be given as FILE.
 */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INPUT_MAX	4096
#define FILES_MAX	256

static struct input {
	uint8_t *data;
	size_t len;
	char name[256];
} corpus[FILES_MAX];
static size_t corpus_cnt;

static uint8_t current[INPUT_MAX];
static size_t current_len;
static char crash_path[300];

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

/* ---- what it died of ---- */

static void keep_input(void)
{
	int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (fd >= 0) {
		(void) !write(fd, current, current_len);
		close(fd);
	}
}

static void died(int sig)
{
	keep_input();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* of the sanitizers, where there are any */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static void watch(const char *name)
{
	static const int sigs[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM };

	snprintf(crash_path, sizeof(crash_path), "fuzz-%s.crash", name);
	for (size_t i = 0; i < sizeof(sigs) / sizeof(*sigs); i++)
		signal(sigs[i], died);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(keep_input);
}

/* On memory of exactly its length, so that a read beyond it is seen. */
static void run(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	FUZZ_MUST(copy);
	memcpy(copy, data, len);
	if (data != current)
		memcpy(current, data, len);
	current_len = len;
	alarm(60);		/* one that hangs */
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

/* ---- inputs ---- */

static bool load(const char *path, const char *name)
{
	struct input *input = &corpus[corpus_cnt];
	FILE *file = fopen(path, "rb");

	if (!file) {
		printf("Bail out! %s: %s\n", path, strerror(errno));
		return false;
	}
	FUZZ_MUST(corpus_cnt < FILES_MAX);
	input->data = malloc(INPUT_MAX);
	FUZZ_MUST(input->data);
	input->len = fread(input->data, 1, INPUT_MAX, file);
	snprintf(input->name, sizeof(input->name), "%s", name);
	corpus_cnt++;
	fclose(file);
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct input *) a)->name, ((const struct input *) b)->name);
}

static bool load_folder(const char *name)
{
	const char *srcdir = getenv("srcdir");
	char folder[4096], path[4096 + 300];
	struct dirent *entry;
	bool ok = true;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/test/fuzz/corpus/%s", srcdir ? srcdir : ".", name);
	dir = opendir(folder);
	if (!dir) {
		printf("Bail out! %s: %s\n", folder, strerror(errno));
		return false;
	}
	while (ok && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		ok = load(path, entry->d_name);
	}
	closedir(dir);
	qsort(corpus, corpus_cnt, sizeof(*corpus), by_name);
	return ok;
}

static uint64_t dice(uint64_t sides)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % sides;
}

/* One change to the current input. */
static void change(void)
{
	static const uint8_t edges[] = { 0, 1, 2, 3, 4, 7, 8, 16, 24, 32, 64, 127, 128, 255 };
	const struct input *other = &corpus[dice(corpus_cnt)];
	size_t at = dice(current_len + 1), n = dice(32) + 1, from;

	switch (dice(7)) {
	case 0:
		if (at < current_len)
			current[at] ^= 1 << dice(8);
		break;
	case 1:
		if (at < current_len)
			current[at] = edges[dice(sizeof(edges))];
		break;
	case 2:
		if (at < current_len)
			current[at] = dice(256);
		break;
	case 3:			/* take something out */
		if (n > current_len - at)
			n = current_len - at;
		memmove(current + at, current + at + n, current_len - at - n);
		current_len -= n;
		break;
	case 4:			/* cut it off */
		current_len = at;
		break;
	case 5:			/* say something twice */
		if (n > current_len - at)
			n = current_len - at;
		if (current_len + n > INPUT_MAX)
			break;
		memmove(current + at + n, current + at, current_len - at);
		current_len += n;
		break;
	default:		/* go on as another does */
		from = dice(other->len + 1);
		n = other->len - from;
		if (n > INPUT_MAX - at)
			n = INPUT_MAX - at;
		memcpy(current + at, other->data + from, n);
		current_len = at + n;
	}
}

static void mutate(void)
{
	const struct input *input = &corpus[dice(corpus_cnt)];

	memcpy(current, input->data, input->len);
	current_len = input->len;
	for (uint64_t n = dice(4) + 1; n; n--)
		change();
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	uint64_t cnt = 0, end, for_ms = 2000;
	int arg = 1;

	name = name ? name + 1 : argv[0];
	if (!strncmp(name, "lt-", 3))
		name += 3;
	setvbuf(stdout, NULL, _IOLBF, 0);
	setenv("FI_LOG_LEVEL", "silent", 0);
	watch(name);
	if (arg + 1 < argc && !strcmp(argv[arg], "--for")) {
		for_ms = strtoull(argv[arg + 1], NULL, 10) * 1000;
		arg += 2;
	}
	for (int i = arg; i < argc; i++)
		if (!load(argv[i], argv[i]))
			return 1;
	if (arg == argc && !load_folder(name))
		return 1;
	for (size_t i = 0; i < corpus_cnt; i++) {
		run(corpus[i].data, corpus[i].len);
		if (arg < argc)
			printf("ok %zu - %s\n", i + 1, corpus[i].name);
	}
	if (arg < argc) {
		printf("1..%zu\n", corpus_cnt);
		return 0;
	}
	printf("%s 1 - %zu files of the corpus\n", corpus_cnt ? "ok" : "not ok", corpus_cnt);
	for (end = now_ms() + for_ms; corpus_cnt && (!cnt || now_ms() < end); cnt++) {
		mutate();
		run(current, current_len);
	}
	printf("ok 2 - inputs made of them\n# %llu inputs\n1..2\n", (unsigned long long) cnt);
	for (size_t i = 0; i < corpus_cnt; i++)
		free(corpus[i].data);
	return corpus_cnt ? 0 : 1;
}
