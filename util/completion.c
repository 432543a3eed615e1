/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion of command lines, as text for a shell to evaluate. The files that are installed for bash, zsh and fish ask
 * the program for it, so they never differ from its table of options.
 */
#include "common.h"

#include <string.h>

/* Commands of a shell that print the words that an argument of this name may be; NULL: no command. */
static const struct {
	const char *option;             /* long name, or NULL: any */
	const char *arg;
	const char *words;
} values[] = {
	{ "provider", NULL, "fi_info -l 2>/dev/null | sed -n 's/:$//p'" },
	{ "ep_type", NULL, "echo msg; echo rdm; echo dgram" },
	{ NULL, "FILE", NULL },         /* files, which a shell has by itself */
};

/* True if an option takes files; *words is set to the command for its values, or to NULL. */
static bool find_values(const struct util_opt *opt, const char **words)
{
	*words = NULL;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		if (values[i].option && strcmp(values[i].option, opt->name ? opt->name : ""))
			continue;
		if (values[i].arg && strcmp(values[i].arg, opt->arg ? opt->arg : ""))
			continue;
		*words = values[i].words;
		return !values[i].words;
	}
	return false;
}

static bool has_letter(const struct util_opt *opt)
{
	return opt->key > 0 && opt->key < 256;
}

/* True if the argument must follow. */
static bool needs_arg(const struct util_opt *opt)
{
	return opt->arg && *opt->arg != '[';
}

/* Print text inside of single quotes. Characters of `special` get a backslash; the end of a line becomes a blank. */
static void put_quoted(FILE *out, const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else if (*text == '\n')
			fputc(' ', out);
		else
			fprintf(out, "%s%c", strchr(special, *text) ? "\\" : "", *text);
	}
}

/* Print "-p", "--provider" or both with `between` in the middle. */
static void put_names(FILE *out, const struct util_opt *opt, const char *between)
{
	if (has_letter(opt))
		fprintf(out, "-%c", opt->key);
	if (opt->name)
		fprintf(out, "%s--%s", has_letter(opt) ? between : "", opt->name);
}

static void put_bash(FILE *out, const char *program, const struct util_opt *opts)
{
	const struct util_opt *opt;
	const char *words;

	fprintf(out, "_%s() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]}\n\n", program);
	fputs("\tcase ${COMP_WORDS[COMP_CWORD-1]} in\n", out);
	for (opt = opts; opt->help; opt++) {
		if (!opt->key || !needs_arg(opt))
			continue;
		fputc('\t', out);
		put_names(out, opt, "|");
		if (find_values(opt, &words))
			fputs(") COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n", out);
		else if (words)
			fprintf(out, ") COMPREPLY=($(compgen -W \"$(%s)\" -- \"$cur\")) ;;\n", words);
		else
			fputs(") COMPREPLY=() ;;\n", out);
	}
	fputs("\t*) COMPREPLY=($(compgen -W '", out);
	for (opt = opts; opt->help; opt++) {
		if (!opt->key)
			continue;
		put_names(out, opt, " ");
		fputc(' ', out);
	}
	fprintf(out, "' -- \"$cur\")) ;;\n\tesac\n}\ncomplete -F _%s %s\n", program, program);
}

static void put_zsh(FILE *out, const char *program, const struct util_opt *opts)
{
	const struct util_opt *opt;
	const char *words;

	fprintf(out, "_%s() {\n\t_arguments -s", program);
	for (opt = opts; opt->help; opt++) {
		bool files;

		if (!opt->key)
			continue;
		files = find_values(opt, &words);
		fputs(" \\\n\t\t", out);
		if (has_letter(opt) && opt->name)
			fprintf(out, "'(-%c --%s)'{-%c,--%s}'[", opt->key, opt->name, opt->key, opt->name);
		else {
			fputc('\'', out);
			put_names(out, opt, "");
			fputc('[', out);
		}
		put_quoted(out, opt->help, "[]:\\");
		fputc(']', out);
		if (needs_arg(opt)) {
			fputc(':', out);
			put_quoted(out, opt->arg, "[]:\\");
			fputs(files ? ":_files" : ":", out);
			if (words) {
				fputs("($(", out);
				put_quoted(out, words, ":");
				fputs("))", out);
			}
		}
		fputc('\'', out);
	}
	fprintf(out, "\n}\ncompdef _%s %s\n", program, program);
}

static void put_fish(FILE *out, const char *program, const struct util_opt *opts)
{
	const struct util_opt *opt;
	const char *words;

	fprintf(out, "complete -c %s -f\n", program);
	for (opt = opts; opt->help; opt++) {
		bool files;

		if (!opt->key)
			continue;
		files = find_values(opt, &words);
		fprintf(out, "complete -c %s", program);
		if (has_letter(opt))
			fprintf(out, " -s %c", opt->key);
		if (opt->name)
			fprintf(out, " -l %s", opt->name);
		if (needs_arg(opt))
			fputs(files ? " -r -F" : " -x", out);
		if (words) {
			fputs(" -a '(", out);
			put_quoted(out, words, "\\");
			fputs(")'", out);
		}
		fputs(" -d '", out);
		put_quoted(out, opt->help, "\\");
		fputs("'\n", out);
	}
}

int util_completion(FILE *out, const char *shell, const struct util_opt *opts)
{
	static const struct {
		const char *shell;
		void (*put)(FILE *out, const char *program, const struct util_opt *opts);
	} shells[] = { { "bash", put_bash }, { "zsh", put_zsh }, { "fish", put_fish } };

	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (!strcmp(shell, shells[i].shell)) {
			shells[i].put(out, util_program(), opts);
			return 0;
		}
	}
	util_err("--completion is '%s': bash, zsh or fish is allowed", shell);
	return util_bad_usage();
}
