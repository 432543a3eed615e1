/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See link.h. */
#include "link.h"

#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S	60		/* for one thing to happen */
#define CASE_S		100		/* for a case */

void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "FAILED: ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

/* ---- one end ---- */

bool link_hmem;

struct fi_info *hints_new(void)
{
	struct fi_info *hints = fi_allocinfo();

	MUST_BE(hints);
	hints->fabric_attr->prov_name = strdup("verbs");
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG | FI_RMA | (link_hmem ? FI_HMEM : 0);
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
				      (link_hmem ? FI_MR_HMEM : 0);
	return hints;
}

void hints_in_vain(struct fi_info *hints)
{
	struct fi_info *info;

	MUST_FAIL(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info), FI_ENODATA);
	fi_freeinfo(hints);
}

void end_open(struct end *end, struct fi_info *info)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA, .size = 64 };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_NONE };

	end->info = info;
	MUST(fi_fabric(info->fabric_attr, &end->fabric, NULL));
	MUST(fi_eq_open(end->fabric, &eq, &end->eq, NULL));
	MUST(fi_domain(end->fabric, info, &end->domain, NULL));
	MUST(fi_cq_open(end->domain, &cq, &end->cq, NULL));
	MUST(fi_mr_reg(end->domain, end->room, sizeof(end->room),
		       FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &end->mr,
		       NULL));
}

int end_open_ep(struct end *end)
{
	int ret = fi_endpoint(end->domain, end->info, &end->ep, NULL);

	if (ret)
		return ret;
	MUST(fi_ep_bind(end->ep, &end->eq->fid, 0));
	MUST(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV));
	return fi_enable(end->ep);
}

static void close_one(struct fid *fid)
{
	if (fid)
		MUST(fi_close(fid));
}

#define CLOSE(object) close_one((object) ? &(object)->fid : NULL)

void end_close(struct end *end)
{
	CLOSE(end->ep);
	CLOSE(end->mr);
	CLOSE(end->cq);
	CLOSE(end->domain);
	CLOSE(end->eq);
	CLOSE(end->fabric);
	fi_freeinfo(end->info);
	memset(end, 0, sizeof(*end));
}

/* ---- two ---- */

static void drive(struct link *link)
{
	struct end *ends[] = { &link->a, &link->b };

	for (int i = 0; i < 2; i++) {
		if (ends[i]->cq)
			fi_cq_read(ends[i]->cq, NULL, 0);
	}
}

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

struct happened await_event(struct link *link, struct fid_eq *eq)
{
	union { struct fi_eq_cm_entry cm; char room[sizeof(struct fi_eq_cm_entry) + 256]; } entry;
	struct fi_eq_err_entry error = { 0 };
	struct happened what = { 0 };
	char text[256];
	time_t end = now() + PATIENCE_S;
	ssize_t ret;

	do {
		drive(link);
		ret = fi_eq_read(eq, &what.event, &entry, sizeof(entry), 0);
		if (ret == -FI_EAVAIL) {
			MUST(fi_eq_readerr(eq, &error, 0));
			fi_eq_strerror(eq, error.prov_errno, error.err_data, text, sizeof(text));
			fprintf(stderr, "event said: %s\n", text);
			what.event = 0;
			what.err = error.err;
			what.data_len = error.err_data_size;
			if (what.data_len > sizeof(what.data))
				what.data_len = sizeof(what.data);
			if (what.data_len)
				memcpy(what.data, error.err_data, what.data_len);
			return what;
		}
		if (ret > 0) {
			what.info = what.event == FI_CONNREQ ? entry.cm.info : NULL;
			what.data_len = (size_t) ret - sizeof(entry.cm);
			memcpy(what.data, entry.cm.data, what.data_len);
			return what;
		}
		if (ret != -FI_EAGAIN)
			die("fi_eq_read: %s", fi_strerror((int) -ret));
	} while (now() < end);
	die("no event for %d seconds", PATIENCE_S);
}

int await_comp(struct link *link, struct end *end, struct fi_cq_err_entry *error)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = { 0 };
	time_t last = now() + PATIENCE_S;
	ssize_t ret;

	do {
		drive(link);
		ret = fi_cq_read(end->cq, &entry, 1);
		if (ret == 1)
			return 0;
		if (ret == -FI_EAVAIL) {
			MUST(fi_cq_readerr(end->cq, &err, 0));
			if (error)
				*error = err;
			return err.err;
		}
		if (ret != -FI_EAGAIN)
			die("fi_cq_read: %s", fi_strerror((int) -ret));
	} while (now() < last);
	die("no completion for %d seconds", PATIENCE_S);
}

void link_listen(struct link *link)
{
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_NONE };
	struct fi_info *hints = hints_new(), *info;
	char name[128];
	size_t len = sizeof(name);

	MUST(fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	end_open(&link->b, info);
	MUST(fi_eq_open(link->b.fabric, &eq, &link->pep_eq, NULL));
	MUST(fi_passive_ep(link->b.fabric, info, &link->pep, NULL));
	MUST(fi_pep_bind(link->pep, &link->pep_eq->fid, 0));
	MUST(fi_listen(link->pep));
	MUST(fi_getname(&link->pep->fid, name, &len));
	hints->addr_format = info->addr_format;
	hints->dest_addr = malloc(len);
	hints->dest_addrlen = len;
	memcpy(hints->dest_addr, name, len);
	MUST(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	end_open(&link->a, info);
	MUST(end_open_ep(&link->a));
}

struct happened link_await_request(struct link *link)
{
	struct happened what = await_event(link, link->pep_eq);

	MUST_BE(what.event == FI_CONNREQ);
	return what;
}

struct happened link_request(struct link *link)
{
	MUST(fi_connect(link->a.ep, link->a.info->dest_addr, NULL, 0));
	return link_await_request(link);
}

void link_open_b(struct link *link, struct fi_info *info)
{
	fi_freeinfo(link->b.info);
	link->b.info = info;
	MUST(end_open_ep(&link->b));
}

void link_accept(struct link *link, struct fi_info *info)
{
	link_open_b(link, info);
	MUST(fi_accept(link->b.ep, NULL, 0));
	MUST_BE(await_event(link, link->a.eq).event == FI_CONNECTED);
	MUST_BE(await_event(link, link->b.eq).event == FI_CONNECTED);
}

void link_open(struct link *link)
{
	link_listen(link);
	link_accept(link, link_request(link).info);
}

void link_close(struct link *link)
{
	end_close(&link->a);
	CLOSE(link->b.ep);
	link->b.ep = NULL;
	CLOSE(link->pep);
	CLOSE(link->pep_eq);
	end_close(&link->b);
}

void link_send(struct link *link, const char *from, void *desc, size_t len)
{
	MUST(fi_recv(link->b.ep, link->b.room, len, fi_mr_desc(link->b.mr), 0, NULL));
	MUST(fi_send(link->a.ep, from, len, desc, 0, NULL));
	MUST_BE(!await_comp(link, &link->a, NULL));
	MUST_BE(!await_comp(link, &link->b, NULL));
}

/* ---- datagrams ---- */

#define GRH	40

struct fi_info *dgram_hints_new(void)
{
	struct fi_info *hints = hints_new();

	hints->ep_attr->type = FI_EP_DGRAM;
	hints->caps = FI_MSG;
	hints->mode = FI_MSG_PREFIX;
	return hints;
}

void dgram_open(struct dgram *dgram, const struct fi_info *info)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	size_t len = sizeof(dgram->name);

	end_open(&dgram->end, fi_dupinfo(info));
	MUST(fi_endpoint(dgram->end.domain, dgram->end.info, &dgram->end.ep, NULL));
	MUST(fi_av_open(dgram->end.domain, &attr, &dgram->av, NULL));
	MUST(fi_ep_bind(dgram->end.ep, &dgram->av->fid, 0));
	MUST(fi_ep_bind(dgram->end.ep, &dgram->end.cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_enable(dgram->end.ep));
	MUST(fi_getname(&dgram->end.ep->fid, dgram->name, &len));
	MUST_BE(len == sizeof(dgram->name) && !memcmp(dgram->name, info->src_addr, 16));
}

void dgram_close(struct dgram *dgram)
{
	MUST(fi_close(&dgram->end.ep->fid));
	dgram->end.ep = NULL;
	MUST(fi_close(&dgram->av->fid));
	end_close(&dgram->end);
}

void dgram_send(struct dgram *from, fi_addr_t addr, struct dgram *to)
{
	struct link nobody = { 0 };

	MUST(fi_recv(to->end.ep, to->end.room, GRH + 8, fi_mr_desc(to->end.mr), 0, NULL));
	memcpy(from->end.room + 4096 + GRH, "datagram", 8);
	MUST(fi_send(from->end.ep, from->end.room + 4096, GRH + 8, fi_mr_desc(from->end.mr), addr, NULL));
	MUST_BE(!await_comp(&nobody, &from->end, NULL));
	MUST_BE(!await_comp(&nobody, &to->end, NULL));
	MUST_BE(!memcmp(to->end.room + GRH, "datagram", 8));
	MUST_BE(!memcmp(to->end.room + 8, from->name, 16));	/* the source in the header */
}

void dgram_talk(struct dgram *from, struct dgram *to)
{
	fi_addr_t addr;

	MUST_BE(fi_av_insert(from->av, to->name, 1, &addr, 0, NULL) == 1);
	dgram_send(from, addr, to);
}

/* ---- cases ---- */

static void set_env(const char *env)
{
	char *text = strdup(env ? env : ""), *save, *one, *value;

	for (one = strtok_r(text, " ", &save); one; one = strtok_r(NULL, " ", &save)) {
		value = strchr(one, '=');
		MUST_BE(value);
		*value++ = 0;
		setenv(one, value, 1);
	}
	free(text);
}

static int matches(const char *pattern, const char *text)
{
	regex_t regex;
	int ret;

	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE))
		return 0;
	ret = !regexec(&regex, text, 0, NULL, 0);
	regfree(&regex);
	return ret;
}

/* What is left in a file, as text. */
static char *slurp(FILE *file)
{
	long len = ftell(file);
	char *text = calloc(1, (size_t) len + 1);

	rewind(file);
	if (fread(text, 1, (size_t) len, file) != (size_t) len)
		text[0] = '\0';
	return text;
}

static void print_comment(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		printf("# %.*s\n", (int) len, text);
		text += len + (text[len] == '\n');
	}
}

#define SKIPPED	77		/* exit status of a case that cannot run here; its log is the reason */

void case_skip(const char *why)
{
	fprintf(stderr, "%s", why);
	exit(SKIPPED);
}

/* True if it has passed; otherwise its output has been printed. *skipped: why it cannot run here, which the caller
 * frees, or NULL. */
static bool run_case(const struct vcase *vcase, char **skipped)
{
	FILE *log = tmpfile();
	int status;
	bool ok;
	char *text;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(CASE_S);
		dup2(fileno(log), 2);
		set_env(vcase->env);
		vcase->run();
		exit(0);
	}
	MUST_BE(pid > 0 && waitpid(pid, &status, 0) == pid);
	fseek(log, 0, SEEK_END);
	text = slurp(log);
	fclose(log);
	*skipped = NULL;
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
		*skipped = text;
		return true;
	}
	ok = WIFEXITED(status) && !WEXITSTATUS(status) && (!vcase->says || matches(vcase->says, text));
	if (!ok) {
		printf("# status %#x; said, where \"%s\" was looked for:\n", status, vcase->says ? vcase->says : "");
		print_comment(text);
	}
	free(text);
	return ok;
}

int run_cases(const struct vcase *cases, size_t cnt)
{
	int bad = 0;

	printf("1..%zu\n", cnt);
	for (size_t i = 0; i < cnt; i++) {
		char *skipped;
		bool ok = run_case(&cases[i], &skipped);

		printf("%sok %zu - %s%s%s\n", ok ? "" : "not ", i + 1, cases[i].name, skipped ? " # SKIP " : "",
		       skipped ? skipped : "");
		free(skipped);
		bad |= !ok;
	}
	return bad;
}
