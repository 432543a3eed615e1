/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Logging: which lines are written, their format, and the imported logger.
 * State: the settings, written once; the imported logger, an atomic pointer to the application's object; and the text
 * that is kept for the end of the process, under its lock.
 */
#include "log.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "export.h"
#include "fid.h"
#include "filter.h"
#include "log_repeat.h"
#include "names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	LEVEL_SILENT = -2,	/* below FAB_LOG_ERROR */
	LINE_LEN = 2048,	/* longer lines go through malloc() */
	DEFAULT_INTERVAL_MS = 2000,
	DEFAULT_FILE_MODE = 0600,
};

struct fi_provider fab_core_prov = {
	.version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "core",
};

static const char *level_name(enum fi_log_level level)
{
	const char *name = level == FAB_LOG_ERROR ? "error" : fab_names_find(FI_TYPE_LOG_LEVEL, level);

	return name ? name : "?";
}

static const char *subsys_name(enum fi_log_subsys subsys)
{
	const char *name = fab_names_find(FI_TYPE_LOG_SUBSYS, subsys);

	return name ? name : "?";
}

struct settings {
	int level;
	const char *providers;		/* lists, owned by param.c */
	const char *subsystems;
	uint64_t interval_ms;
	FILE *stream;			/* stdout, or NULL: stderr */
	int fd;				/* of FI_LOG_LOCATION, owned; -1: lines go to stream */
};

/* Used until the real settings are read, for lines that are logged while they are read. */
static const struct settings default_settings = { .level = FI_LOG_WARN, .interval_ms = DEFAULT_INTERVAL_MS,
						 .fd = -1 };
static const struct settings *_Atomic settings = &default_settings;
static struct settings own;		/* the real ones; constant once they are in `settings` */
static atomic_flag settings_taken = ATOMIC_FLAG_INIT;
static struct fid_logging *_Atomic imported;
static atomic_flag logger_open = ATOMIC_FLAG_INIT;

/* The level that a word means. 0, or -FI_EINVAL. */
static int parse_level(const char *word, int *level)
{
	int i;

	if (!strcasecmp(word, "silent")) {
		*level = LEVEL_SILENT;
		return 0;
	}
	for (i = (int) FAB_LOG_ERROR; i <= FI_LOG_DEBUG; i++) {
		if (!strcasecmp(word, level_name((enum fi_log_level) i))) {
			*level = i;
			return 0;
		}
	}
	return -FI_EINVAL;
}

static void define_params(void)
{
	fi_param_define(NULL, "log_interval", FI_PARAM_INT,
			"Shortest time between two lines of one rate-limited message, milliseconds (default: %d)",
			DEFAULT_INTERVAL_MS);
	fi_param_define(NULL, "log_level", FI_PARAM_STRING,
			"Log level: silent, error, warn, trace, info or debug (default: warn)");
	fi_param_define(NULL, "log_location", FI_PARAM_STRING,
			"Where the log goes: stderr, stdout, a file, which must not exist yet, or a folder, for a file "
			"ofi_PID.log in it (default: stderr)");
	fi_param_define(NULL, "log_location_mode", FI_PARAM_INT,
			"Mode of the file of FI_LOG_LOCATION, less the umask (default: 0%o)", DEFAULT_FILE_MODE);
	fi_param_define(NULL, "log_prov", FI_PARAM_STRING,
			"Providers that may log, separated by commas; with ^ in front, all providers except these "
			"(default: all)");
	fi_param_define(NULL, "log_subsys", FI_PARAM_STRING,
			"Subsystems that may log, separated by commas; with ^ in front, all subsystems except these "
			"(default: all)");
}

/* Open FI_LOG_LOCATION. A file that exists is never written to. 0 or -errno: the log then goes to stderr. */
static int open_location(struct settings *own, const char *location)
{
	int mode = DEFAULT_FILE_MODE;
	char path[PATH_MAX];
	struct stat st;

	if (!strcmp(location, "stderr"))
		return 0;
	if (!strcmp(location, "stdout")) {
		own->stream = stdout;
		return 0;
	}
	fi_param_get_int(NULL, "log_location_mode", &mode);
	if (stat(location, &st) || !S_ISDIR(st.st_mode))
		snprintf(path, sizeof(path), "%s", location);
	else
		snprintf(path, sizeof(path), "%s/ofi_%d.log", location, (int) getpid());
	own->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t) mode & 07777);
	return own->fd < 0 ? -errno : 0;
}

/* Called once. */
static void read_settings(void)
{
	int interval_ms = DEFAULT_INTERVAL_MS, ret = 0, opened = 0;
	char *level = NULL, *location = NULL;

	own = default_settings;
	define_params();
	if (!fi_param_get_str(NULL, "log_level", &level))
		ret = parse_level(level, &own.level);
	fi_param_get_str(NULL, "log_prov", (char **) &own.providers);
	fi_param_get_str(NULL, "log_subsys", (char **) &own.subsystems);
	fi_param_get_int(NULL, "log_interval", &interval_ms);
	own.interval_ms = (uint64_t) fab_max(interval_ms, 0);
	if (!fi_param_get_str(NULL, "log_location", &location))
		opened = open_location(&own, location);
	atomic_store_explicit(&settings, &own, memory_order_release);
	if (ret)
		FAB_WARN("FI_LOG_LEVEL=%.40s is unknown, warn is used; the levels are silent, error, warn, trace, "
			 "info, debug", level);
	if (opened)
		FAB_WARN("FI_LOG_LOCATION=%.200s: no file can be created there: %s; the log goes to stderr", location,
			 strerror(-opened));
}

static const struct settings *get_settings(void)
{
	const struct settings *now = atomic_load_explicit(&settings, memory_order_acquire);

	if (now == &default_settings && !atomic_flag_test_and_set(&settings_taken)) {
		read_settings();
		now = atomic_load_explicit(&settings, memory_order_acquire);
	}
	return now;
}

static const char *prov_name(const struct fi_provider *prov)
{
	return prov && prov->name ? prov->name : fab_core_prov.name;
}

static enum fi_log_level public_level(enum fi_log_level level)
{
	return level == FAB_LOG_ERROR ? FI_LOG_WARN : level;
}

/* Flags that an imported logger gets with a provider: FI_LOG_PROV_FILTERED if FI_LOG_PROV leaves it out. */
static uint64_t logger_flags(const struct fi_provider *prov)
{
	return fab_filter_allows(get_settings()->providers, prov_name(prov)) ? 0 : FI_LOG_PROV_FILTERED;
}

FAB_EXPORT int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys)
{
	struct fid_logging *logger = atomic_load_explicit(&imported, memory_order_acquire);
	const struct settings *now;

	if (logger)
		return logger->ops->enabled(prov, public_level(level), subsys, logger_flags(prov));
	now = get_settings();
	if ((int) level > now->level)
		return 0;
	return fab_filter_allows(now->providers, prov_name(prov)) &&
	       fab_filter_allows(now->subsystems, subsys_name(subsys));
}

/* If several threads call when the interval has passed, one of them logs. */
FAB_EXPORT int fi_log_ready(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
			    uint64_t *showtime)
{
	struct fid_logging *logger = atomic_load_explicit(&imported, memory_order_acquire);
	uint64_t now_ms, due_ms;

	if (logger)
		return logger->ops->ready(prov, public_level(level), subsys, logger_flags(prov), showtime);
	if (!fi_log_enabled(prov, level, subsys))
		return 0;
	now_ms = fab_now_ms();
	due_ms = __atomic_load_n(showtime, __ATOMIC_RELAXED);
	return now_ms >= due_ms &&
	       __atomic_compare_exchange_n(showtime, &due_ms, now_ms + get_settings()->interval_ms, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void put_head(struct fab_strbuf *sb, const struct fi_provider *prov, enum fi_log_level level,
		     enum fi_log_subsys subsys, const char *func, int line)
{
	fab_strbuf_printf(sb, "libfabric:%d", (int) getpid());
	if (get_settings()->level >= (int) FI_LOG_DEBUG)
		fab_strbuf_printf(sb, "/%ld", (long) syscall(SYS_gettid));
	fab_strbuf_printf(sb, ":%lld::%s:%s:%s():%d<%s> ", (long long) time(NULL), prov_name(prov),
			  subsys_name(subsys), func, line, level_name(level));
}

/* Format head and text as one line that ends with one newline, in stack[size] or, if it is longer, in allocated memory.
 * The caller frees the result unless it is stack. Without memory the line is cut off. */
static char *put_line(char *stack, size_t size, const char *head, const char *fmt, va_list args)
{
	struct fab_strbuf sb;
	va_list again;
	char *line = stack;

	va_copy(again, args);
	fab_strbuf_init(&sb, line, size - 1);
	fab_strbuf_puts(&sb, head);
	fab_strbuf_vprintf(&sb, fmt, args);
	if (fab_strbuf_truncated(&sb)) {
		size = sb.len + 2;
		line = malloc(size);
		if (line) {
			fab_strbuf_init(&sb, line, size - 1);
			fab_strbuf_puts(&sb, head);
			fab_strbuf_vprintf(&sb, fmt, again);
		} else {
			line = stack;
			sb.len = strlen(stack);
		}
	}
	va_end(again);
	if (!sb.len || line[sb.len - 1] != '\n')
		strcpy(line + sb.len, "\n");
	return line;
}

static void write_line(const char *text)
{
	const struct settings *now = get_settings();
	size_t len = strlen(text);

	if (now->fd < 0 || write(now->fd, text, len) != (ssize_t) len)
		fwrite(text, 1, len, now->stream ? now->stream : stderr);
}

/* Write a warning unless it repeats another (log_repeat.h). @text begins with @head. */
static void write_warning(const char *func, int line, const char *head, const char *text)
{
	unsigned long left_out;
	enum fab_repeat repeat = fab_log_repeat(func, line, text + strlen(head), &left_out);
	char more[384];
	struct fab_strbuf sb;

	if (repeat != FAB_REPEAT_OLD)
		write_line(text);
	fab_strbuf_init(&sb, more, sizeof(more));
	if (repeat == FAB_REPEAT_LAST)
		fab_strbuf_printf(&sb, "%sfurther lines like the last one are left out for %d minutes; "
				  "FI_LOG_LEVEL=info shows all\n", head, FAB_PLACE_MS / 60000);
	else if (repeat == FAB_REPEAT_COUNT)
		fab_strbuf_printf(&sb, "%s%lu lines like the last one were left out in %d minutes; FI_LOG_LEVEL=info "
				  "shows all\n", head, left_out, FAB_PLACE_MS / 60000);
	if (sb.len)
		write_line(more);
}

/* True if repeated lines are left out: at warn and below. Not while another thread reads the settings, as the level is
 * unknown then. */
static bool drops_repeats(const struct settings *now)
{
	return now != &default_settings && now->level <= (int) FI_LOG_WARN;
}

/* The line is written by one call, so that lines of several threads and processes do not mix. */
FAB_EXPORT void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		       const char *func, int line, const char *fmt, ...)
{
	struct fid_logging *logger = atomic_load_explicit(&imported, memory_order_acquire);
	char stack[LINE_LEN], head[256] = "", *text;
	struct fab_strbuf sb;
	va_list args;

	if (!logger && drops_repeats(get_settings()) && fab_log_spent(func, line))
		return;
	if (!logger) {
		fab_strbuf_init(&sb, head, sizeof(head));
		put_head(&sb, prov, level, subsys, func, line);
	}
	va_start(args, fmt);
	text = put_line(stack, sizeof(stack), head, fmt, args);
	va_end(args);
	if (logger)
		logger->ops->log(prov, public_level(level), subsys, func, line, text);
	else if (drops_repeats(get_settings()))
		write_warning(func, line, head, text);
	else
		write_line(text);
	if (text != stack)
		free(text);
}

/* Bind an application's logger to the object of fi_open("logging"). The logger bound last is used, also after the
 * object was closed. The application keeps it alive until it unloads the library. */
static int logger_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fid_logging *logger = (struct fid_logging *) bfid;

	(void) fid;
	if (flags)
		return -FI_EBADFLAGS;
	if (!logger || bfid->fclass != FI_CLASS_LOG || !logger->ops || logger->ops->size < sizeof(struct fi_ops_log) ||
	    !logger->ops->enabled || !logger->ops->ready || !logger->ops->log)
		return -FI_EINVAL;
	atomic_store_explicit(&imported, logger, memory_order_release);
	return 0;
}

static int logger_close(struct fid *fid)
{
	(void) fid;
	atomic_flag_clear(&logger_open);
	return 0;
}

int fab_log_open(struct fid **fid, void *context)
{
	static struct fi_ops ops = {
		.size = sizeof(struct fi_ops),
		.close = logger_close,
		.bind = logger_bind,
		.control = fab_fid_no_control,
		.ops_open = fab_fid_no_ops_open,
	};
	static struct fid_logging logger = { .fid = { .fclass = FI_CLASS_LOG, .ops = &ops } };

	if (atomic_flag_test_and_set(&logger_open))
		return -FI_EALREADY;
	logger.fid.context = context;
	*fid = &logger.fid;
	return 0;
}

/* ---- warnings that are kept until the end ---- */

static struct {
	pthread_mutex_t lock;
	char *text;		/* owned; lines, each with its newline */
	pid_t pid;		/* of the process that has kept it: a forked one does not tell it again */
	_Atomic bool moot;
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool log_is_told_at_once(void)
{
	return atomic_load(&imported) || get_settings()->level > (int) FI_LOG_WARN;
}

bool fab_log_keeps(void)
{
	return fi_log_enabled(&fab_core_prov, FI_LOG_WARN, FI_LOG_CORE) && (log_is_told_at_once() || !kept.moot);
}

static void log_lines(char *text)
{
	char *line, *rest = text;

	while ((line = strsep(&rest, "\n"))) {
		if (*line)
			FAB_WARN("%s", line);
	}
}

void fab_log_keep(char *text)
{
	char *old = text;

	if (log_is_told_at_once()) {
		log_lines(text);
	} else if (!kept.moot) {
		pthread_mutex_lock(&kept.lock);
		old = kept.text;
		kept.text = text;
		kept.pid = getpid();
		pthread_mutex_unlock(&kept.lock);
	}
	free(old);
}

void fab_log_keep_none(void)
{
	kept.moot = true;
}

static void kept_fini(void)
{
	if (kept.text && !kept.moot && kept.pid == getpid())
		log_lines(kept.text);
	free(kept.text);
	kept.text = NULL;
}

void fab_log_fini(void)
{
	atomic_store(&imported, NULL);
	kept_fini();
	if (get_settings() == &own && own.fd >= 0) {
		close(own.fd);
		own.fd = -1;
	}
}
