/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parameters: their definitions and values, and the sources of values: the environment and the configuration file.
 * State: a list of parameters under one mutex, and the lines of the file, which is read once. Nothing is logged with
 * the mutex held or while the file is read, because the logger's own settings are parameters.
 */
#include "param.h"

#include "base/bits.h"
#include "base/core_ops.h"
#include "base/list.h"
#include "base/strbuf.h"
#include "export.h"
#include "fabric.h"
#include "log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
	MAX_FILE_LEN = 1 << 20,	/* of the configuration file; the line that passes it, and later lines, are not read */
	MAX_NAME_LEN = 128,	/* of FI_PROV_NAME with its NUL */
};

#define BLANKS " \t\r\n"

struct param {
	struct fab_list link;
	char *env_name;			/* owned, as is value; value NULL: not set */
	char *help;
	size_t why_at;			/* offset in help of the reason why the parameter has no effect; 0: it has
					 * one */
	char *value;
	enum fi_param_type type;
};

/* A line "NAME = value" of the file, or an invalid line (name is NULL, value is the line). Both point into
 * file.text. */
struct file_line {
	const char *name;
	const char *value;
	unsigned number;
};

static struct {
	char *text;
	struct file_line *lines;
	size_t line_cnt;
	int error;			/* errno of reading the file */
	const char *fault;		/* another reason why the file is not used, constant text */
	bool cut;			/* longer than MAX_FILE_LEN: the last lines are missing */
	unsigned last_number;		/* of the last line that was read */
	bool preferred;			/* FI_PREFER_SYSCONFIG: the file is preferred over the environment */
} file;

const char *fab_param_path = FAB_SYSCONF_DIR "/libfabric.conf";

static struct fab_list params = FAB_LIST_INIT(params);
static pthread_mutex_t params_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t file_once = PTHREAD_ONCE_INIT;
static pthread_once_t report_once = PTHREAD_ONCE_INIT;

/* Parse a boolean. 0 or -FI_EINVAL. */
static int parse_bool(const char *str, int *value)
{
	static const char *const words[][2] = {
		{ "0", "1" }, { "no", "yes" }, { "off", "on" }, { "false", "true" }, { "n", "y" },
	};
	size_t i;
	int on;

	for (i = 0; i < fab_countof(words); i++) {
		for (on = 0; on < 2; on++) {
			if (!strcasecmp(str, words[i][on])) {
				*value = on;
				return 0;
			}
		}
	}
	return -FI_EINVAL;
}

/* The factor of a number, from the text behind its digits: blanks, then k, m or g in either case, optionally followed
 * by "i", "B" or "iB"; or "B" alone (bytes). 0: the text is not a unit. */
static long long unit_of(const char *text)
{
	static const char units[] = "kmg";
	long long factor = 1;
	const char *unit;

	text += strspn(text, BLANKS);
	unit = *text ? strchr(units, tolower((unsigned char) *text)) : NULL;
	if (unit) {
		factor <<= 10 * (unit - units + 1);
		text++;
		if (*text == 'i')
			text++;
	}
	if (*text == 'B' || (unit && *text == 'b'))
		text++;
	return text[strspn(text, BLANKS)] ? 0 : factor;
}

static int parse_int(const char *str, int *value)
{
	long long number, unit;
	char *end;

	errno = 0;
	number = strtoll(str, &end, 0);
	unit = unit_of(end);
	if (end == str || errno || !unit || __builtin_mul_overflow(number, unit, &number) || number < INT_MIN ||
	    number > INT_MAX)
		return -FI_EINVAL;
	*value = (int) number;
	return 0;
}

static int parse_size(const char *str, size_t *value)
{
	unsigned long long number;
	long long unit;
	char *end;

	errno = 0;
	number = strtoull(str, &end, 0);
	unit = unit_of(end);
	if (end == str || errno || !unit || strchr(str, '-') || __builtin_mul_overflow(number, unit, &number) ||
	    number > SIZE_MAX)
		return -FI_EINVAL;
	*value = (size_t) number;
	return 0;
}

static char *trim(char *str)
{
	char *end;

	while (isspace((unsigned char) *str))
		str++;
	for (end = str + strlen(str); end > str && isspace((unsigned char) end[-1]); end--)
		;
	*end = '\0';
	return str;
}

/* True if the name consists of capitals, digits and underscores, and begins with FI_. */
static bool name_valid(const char *name)
{
	if (strncmp(name, "FI_", 3) || !name[3])
		return false;
	for (; *name; name++)
		if (!isupper((unsigned char) *name) && !isdigit((unsigned char) *name) && *name != '_')
			return false;
	return true;
}

/* Open the file. -1: it does not exist, or is /dev/null, which counts as not existing; or file.error or file.fault is
 * set. Does not block: a FIFO is opened without waiting, and then refused. */
static int param_open_file(void)
{
	int fd = open(fab_param_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0) {
		file.error = errno == ENOENT ? 0 : errno;
		return -1;
	}
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	if (S_ISDIR(st.st_mode))
		file.error = EISDIR;
	else if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
		file.fault = "it is not a regular file";
	close(fd);
	return -1;
}

/* Read up to size bytes. Returns the number of bytes read, or -1 with file.error set. */
static ssize_t read_up_to(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t got;

	do {
		got = read(fd, text + len, size - len);
		if (got > 0)
			len += (size_t) got;
	} while ((got > 0 && len < size) || (got < 0 && errno == EINTR));
	if (got < 0)
		file.error = errno;
	return got < 0 ? -1 : (ssize_t) len;
}

/* Read the whole file as one string; of a file that is too long, the lines that end within the bound. NULL: the file
 * does not exist, or file.error or file.fault is set. */
static char *read_text(void)
{
	int fd = param_open_file();
	char *text = NULL;
	ssize_t len = -1;

	if (fd < 0)
		return NULL;
	text = malloc(MAX_FILE_LEN + 1);
	if (text)
		len = read_up_to(fd, text, MAX_FILE_LEN + 1);
	else
		file.error = ENOMEM;
	close(fd);
	if (len < 0) {
		free(text);
		return NULL;
	}
	file.cut = len > MAX_FILE_LEN;
	while (file.cut && len && text[len - 1] != '\n')
		len--;
	text[file.cut && len ? len - 1 : len] = '\0';
	return text;
}

static void parse_line(char *text, unsigned number)
{
	struct file_line *line = &file.lines[file.line_cnt];
	char *equals, *name, *value;

	text = trim(text);
	if (!*text || *text == '#')
		return;
	*line = (struct file_line) { .value = text, .number = number };
	file.line_cnt++;
	equals = strchr(text, '=');
	if (!equals)
		return;
	*equals = '\0';
	name = trim(text);
	value = trim(equals + 1);
	if (name_valid(name)) {
		line->name = name;
		line->value = value;
	} else {
		*equals = '=';
	}
}

/* Runs once. Reads FI_PREFER_SYSCONFIG from the environment directly, because it says how to look up the others. */
static void read_file(void)
{
	const char *prefer = secure_getenv("FI_PREFER_SYSCONFIG");
	unsigned number = 1;
	char *rest, *line;
	int on;

	file.preferred = prefer && !parse_bool(prefer, &on) && on;
	file.text = read_text();
	if (!file.text)
		return;
	for (rest = file.text; (rest = strchr(rest, '\n')); rest++)
		number++;
	file.lines = calloc(number, sizeof(*file.lines));
	if (!file.lines) {
		file.error = ENOMEM;
		return;
	}
	rest = file.text;
	for (number = 1; (line = strsep(&rest, "\n")); number++)
		parse_line(line, number);
	file.last_number = number - 1;
}

static void param_report(void)
{
	size_t i;

	if (file.error || file.fault)
		FAB_WARN("configuration file %s is not used: %s", fab_param_path,
			 file.fault ? file.fault : fi_strerror(file.error));
	if (file.cut)
		FAB_WARN("configuration file %s is longer than %d bytes: the lines after line %u are ignored",
			 fab_param_path, MAX_FILE_LEN, file.last_number);
	for (i = 0; i < file.line_cnt; i++)
		if (!file.lines[i].name)
			FAB_WARN("%s:%u: \"%.60s\" is ignored: a line must have the form FI_NAME = value",
				 fab_param_path, file.lines[i].number, file.lines[i].value);
}

void fab_param_report(void)
{
	pthread_once(&file_once, read_file);
	pthread_once(&report_once, param_report);
}

/* If a name is set twice, the later line counts. */
static const char *file_value(const char *name)
{
	size_t i;

	for (i = file.line_cnt; i-- > 0; )
		if (file.lines[i].name && !strcmp(file.lines[i].name, name))
			return file.lines[i].value;
	return NULL;
}

static const char *param_look_up(const char *env_name)
{
	const char *env = secure_getenv(env_name), *conf = file_value(env_name);

	return conf && (file.preferred || !env) ? conf : env;
}

/* Write FI_PROV_NAME to buf. 0, or -FI_EINVAL if it does not fit. */
static int make_env_name(const struct fi_provider *provider, const char *name, char *buf)
{
	struct fab_strbuf sb;
	size_t i;

	fab_strbuf_init(&sb, buf, MAX_NAME_LEN);
	fab_strbuf_puts(&sb, "FI_");
	if (provider && provider != &fab_core_prov)
		fab_strbuf_printf(&sb, "%s_", provider->name);
	fab_strbuf_puts(&sb, name);
	if (fab_strbuf_truncated(&sb))
		return -FI_EINVAL;
	for (i = 0; i < sb.len; i++)
		buf[i] = isalnum((unsigned char) buf[i]) ? (char) toupper((unsigned char) buf[i]) : '_';
	return 0;
}

/* params_lock held. */
static struct param *param_find(const char *env_name)
{
	struct fab_list *link;

	fab_list_for_each(&params, link) {
		struct param *param = fab_container(link, struct param, link);

		if (!strcmp(param->env_name, env_name))
			return param;
	}
	return NULL;
}

static void param_free(struct param *param)
{
	free(param->env_name);
	free(param->help);
	free(param->value);
	free(param);
}

/* Owns help from here on, also on failure (NULL). */
static struct param *param_alloc(const char *env_name, enum fi_param_type type, char *help, size_t why_at)
{
	const char *value = param_look_up(env_name);
	struct param *param = calloc(1, sizeof(*param));

	if (!param) {
		free(help);
		return NULL;
	}
	param->env_name = strdup(env_name);
	param->help = help;
	param->why_at = why_at;
	param->value = value ? strdup(value) : NULL;
	param->type = type;
	if (!param->env_name || (value && !param->value)) {
		param_free(param);
		return NULL;
	}
	return param;
}

/* The help text: the provider's name, that the parameter has no effect (unused), and the text given here, which begins
 * at *text_at. NULL if there is no memory. */
static char *make_help(const struct fi_provider *provider, bool unused, size_t *text_at, const char *fmt, va_list args)
{
	bool has_name = provider && provider != &fab_core_prov;
	char *text, *help;
	int len;

	if (vasprintf(&text, fmt, args) < 0)
		return NULL;
	len = asprintf(&help, "%s%s%s%s", has_name ? provider->name : "", has_name ? ": " : "",
		       unused ? "Accepted without effect: " : "", text);
	*text_at = len < 0 ? 0 : (size_t) len - strlen(text);
	free(text);
	return len < 0 ? NULL : help;
}

static int define(const struct fi_provider *provider, const char *name, enum fi_param_type type, char *help,
		  size_t why_at)
{
	char env_name[MAX_NAME_LEN];
	struct param *param;
	int ret = 0;

	if (make_env_name(provider, name, env_name)) {
		free(help);
		return -FI_EINVAL;
	}
	pthread_once(&file_once, read_file);
	pthread_mutex_lock(&params_lock);
	if (param_find(env_name)) {
		free(help);
	} else {
		param = param_alloc(env_name, type, help, why_at);
		if (param)
			fab_list_add_tail(&params, &param->link);
		else
			ret = -FI_ENOMEM;
	}
	pthread_mutex_unlock(&params_lock);
	return ret;
}

/* Defining a parameter again changes nothing, and succeeds: providers define theirs whenever they initialise. */
FAB_EXPORT int fi_param_define(const struct fi_provider *provider, const char *param_name, enum fi_param_type type,
			       const char *help_string_fmt, ...)
{
	bool unused = (unsigned) type & FAB_PARAM_UNUSED;
	size_t text_at;
	va_list args;
	char *help;
	int ret;

	type = (enum fi_param_type) ((unsigned) type & ~(unsigned) FAB_PARAM_UNUSED);
	if (!param_name || !*param_name || !help_string_fmt || !*help_string_fmt || (unsigned) type > FI_PARAM_SIZE_T) {
		FAB_WARN("provider %s defines a parameter without name or help text, or of unknown type %d",
			 provider ? provider->name : "core", (int) type);
		return -FI_EINVAL;
	}
	va_start(args, help_string_fmt);
	help = make_help(provider, unused, &text_at, help_string_fmt, args);
	va_end(args);
	ret = help ? define(provider, param_name, type, help, unused ? text_at : 0) : -FI_ENOMEM;
	if (ret)
		FAB_WARN("parameter %s of %s: %s", param_name, provider ? provider->name : "core", fi_strerror(-ret));
	return ret;
}

static const char *type_words(enum fi_param_type type)
{
	switch (type) {
	case FI_PARAM_INT:
		return "a whole number, with k, m or g behind it for KiB, MiB or GiB";
	case FI_PARAM_SIZE_T:
		return "a whole number from 0, with k, m or g behind it for KiB, MiB or GiB";
	case FI_PARAM_BOOL:
		return "0/1, on/off, true/false or yes/no";
	default:
		return "a string";
	}
}

static int convert(const struct param *param, void *value)
{
	switch (param->type) {
	case FI_PARAM_INT:
		return parse_int(param->value, value);
	case FI_PARAM_BOOL:
		return parse_bool(param->value, value);
	case FI_PARAM_SIZE_T:
		return parse_size(param->value, value);
	default:
		*(char **) value = param->value;
		return 0;
	}
}

FAB_EXPORT int fi_param_get(struct fi_provider *provider, const char *param_name, void *value)
{
	char env_name[MAX_NAME_LEN];
	struct param *param;
	int ret;

	if (!param_name || !value || make_env_name(provider, param_name, env_name))
		return -FI_EINVAL;

	pthread_mutex_lock(&params_lock);
	param = param_find(env_name);
	if (!param)
		ret = -FI_ENOENT;
	else if (!param->value)
		ret = -FI_ENODATA;
	else
		ret = convert(param, value);
	pthread_mutex_unlock(&params_lock);

	/* a parameter, once defined, lives as long as the library */
	if (ret == -FI_EINVAL)
		FAB_WARN("%s=%s is not used: the value must be %s", env_name, param->value, type_words(param->type));
	return ret;
}

/* params_lock held. */
static int copy_param(struct fi_param *to, const struct param *from)
{
	to->type = from->type;
	to->name = strdup(from->env_name);
	to->help_string = strdup(from->help);
	to->value = from->value ? strdup(from->value) : NULL;
	return to->name && to->help_string && (to->value || !from->value) ? 0 : -FI_ENOMEM;
}

/* An entry without name ends the array, for fi_freeparams(). */
FAB_EXPORT int fi_getparams(struct fi_param **result, int *count)
{
	struct fi_param *array;
	struct fab_list *link;
	int cnt = 0, ret = 0;

	if (!result || !count)
		return -FI_EINVAL;
	fab_init();
	pthread_mutex_lock(&params_lock);
	fab_list_for_each(&params, link)
		cnt++;
	array = calloc((size_t) cnt + 1, sizeof(*array));
	if (!array)
		ret = -FI_ENOMEM;
	cnt = 0;
	fab_list_for_each(&params, link) {
		if (ret)
			break;
		ret = copy_param(&array[cnt++], fab_container(link, struct param, link));
	}
	pthread_mutex_unlock(&params_lock);

	if (ret) {
		fi_freeparams(array);
		return ret;
	}
	*result = array;
	*count = cnt;
	return 0;
}

FAB_EXPORT void fi_freeparams(struct fi_param *array)
{
	struct fi_param *param;

	for (param = array; param && (param->name || param->help_string || param->value); param++) {
		free((char *) param->name);
		free((char *) param->help_string);
		free((char *) param->value);
	}
	free(array);
}

/* ---- all settings ---- */

void fab_param_each(void (*each)(const char *env_name, const char *why, const char *value))
{
	struct fab_list *link;

	/* Without the mutex: parameters are only appended, and freed only by fab_param_fini(). */
	fab_list_for_each(&params, link) {
		struct param *param = fab_container(link, struct param, link);

		each(param->env_name, param->why_at ? param->help + param->why_at : NULL, param->value);
	}
}

/* True if name[0..len) is a valid name of a parameter, and no parameter of this name is defined. The name is then in
 * buf. */
static bool unknown(const char *name, size_t len, char *buf)
{
	bool defined;

	if (len <= 3 || len >= MAX_NAME_LEN || strncmp(name, "FI_", 3) ||
	    strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") < len)
		return false;
	memcpy(buf, name, len);
	buf[len] = 0;
	pthread_mutex_lock(&params_lock);
	defined = param_find(buf);
	pthread_mutex_unlock(&params_lock);
	return !defined && strcmp(buf, "FI_PREFER_SYSCONFIG");
}

void fab_param_each_unknown(void (*each)(const char *env_name))
{
	char name[MAX_NAME_LEN];
	size_t i;

	pthread_once(&file_once, read_file);
	for (char **env = environ; env && *env; env++) {
		if (unknown(*env, strcspn(*env, "="), name) && secure_getenv(name))
			each(name);
	}
	for (i = 0; i < file.line_cnt; i++) {
		const char *line = file.lines[i].name;

		/* pass a name once: not for an earlier line of it, and not if the environment, which was walked before,
		 * has it, too */
		if (line && unknown(line, strlen(line), name) && file.lines[i].value == file_value(name) &&
		    !secure_getenv(name))
			each(name);
	}
}

void fab_param_fini(void)
{
	struct fab_list *link;

	while ((link = fab_list_pop_front(&params)))
		param_free(fab_container(link, struct param, link));
	free(file.lines);
	free(file.text);
	memset(&file, 0, sizeof(file));
}
