/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_info: prints the entries that libfabric offers on this machine, all or for given hints, the reasons for missing
 * entries, providers, and parameters. Uses the public interface only.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "common.h"
#include "info_json.h"
#include "info_table.h"
#include "json.h"

#include <link.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

/* The help of a parameter is folded at this column. */
#define HELP_COLUMNS 100

enum {
	OPT_VERSION = 256,
	OPT_WHY,
	OPT_JSON,
	OPT_LONG,
	OPT_TABLE,
};

/* What core and providers write in front of the help of a parameter that they accept without effect. */
#define NO_EFFECT "Accepted without effect: "

/* The columns of a terminal that does not tell. */
#define TERMINAL_COLUMNS 80

static const char *const usage[] = {
	"[FILTERS] [--table | --long | -v | --json] [--why]", "--list | --env | --getenv SUBSTR | --version", NULL,
};

static const struct util_opt options[] = {
	{ 0, NULL, NULL, "Filters: only interfaces that satisfy all of them are shown" },
	{ 'p', "provider", "NAME", "this provider; see --list" },
	{ 't', "ep_type", "TYPE", "this endpoint type: FI_EP_MSG, FI_EP_RDM or FI_EP_DGRAM (or msg, rdm, dgram)" },
	{ 'c', "caps", "CAP|CAP..", "all of these capabilities: FI_MSG|FI_RMA.." },
	{ 'm', "mode", "MODE|MODE..", "requiring only these modes: FI_CONTEXT|FI_RX_CQ_DATA.. (default: any)" },
	{ 'a', "addr_format", "FORMAT", "this address format: FI_SOCKADDR_IN, FI_SOCKADDR_IN6.." },
	{ 'd', "domain", "NAME", "this domain" },
	{ 'f', "fabric", "NAME", "this fabric" },
	{ 'n', "node", "HOST", "able to reach this name or address" },
	{ 's', "src_addr", "HOST", "with this source name or address" },
	{ 'P', "port", "PORT", "port of --node, or of --src_addr when that is given alone" },
	{ 'i', "info", "SUBSTR", "in full, those whose description contains this text" },
	{ 0, NULL, NULL, "Discovery: instead of interfaces" },
	{ 'l', "list", NULL, "providers, their versions and their files" },
	{ 'e', "env", "[=all]", "environment parameters: type, meaning, and value where one is set; those that are\n"
				 "set come first, and on a terminal those without effect only with 'all'" },
	{ 'g', "getenv", "SUBSTR", "parameters whose name or meaning contains this text" },
	{ 0, NULL, NULL, "Output:" },
	{ OPT_TABLE, "table", NULL, "a line for each provider and interface (default on a terminal)" },
	{ OPT_LONG, "long", NULL, "the main attributes of each interface, a line each (default otherwise)" },
	{ 'v', "verbose", NULL, "every attribute of each interface" },
	{ OPT_JSON, "json", NULL, "everything, as JSON" },
	{ OPT_WHY, "why", NULL, "on stderr, why other interfaces do not satisfy the filters, and what to do" },
	{ OPT_VERSION, "version", NULL, "version of this program, of libfabric and of its interface" },
	{ 'h', "help", NULL, "this help" },
	{ 0, NULL, NULL, NULL },
};

/* The options. Strings are borrowed from argv. */
struct request {
	struct fi_info *hints;          /* owned */
	const char *node, *src, *port;
	const char *param_substr;       /* for `show` show_params */
	const char *info_substr;        /* only entries with this text; NULL for all */
	int (*show)(struct request *request);
	bool table, verbose, json, why;
	bool all_params;                /* for show_params: those without effect as well */
	int argc;                       /* for suggesting another call */
	char **argv;
};

/* Print `label: value` right-aligned to the longest label, "protocol". */
static void print_attr(const char *label, const char *value)
{
	printf("%12s: %s\n", label, value ? value : "-");
}

static void print_short(const struct fi_info *info)
{
	printf("provider: %s\n", info->fabric_attr->prov_name);
	print_attr("fabric", info->fabric_attr->name);
	print_attr("domain", info->domain_attr->name);
	print_attr("version", info_version(info->fabric_attr->prov_version));
	print_attr("type", util_tostr(&info->ep_attr->type, FI_TYPE_EP_TYPE));
	print_attr("protocol", util_tostr(&info->ep_attr->protocol, FI_TYPE_PROTOCOL));
}

/* Print one filter of the request as ` name=value`; nothing without a value. */
static void print_asked(const char *name, const char *value)
{
	if (value && *value)
		fprintf(stderr, " %s=%s", name, value);
}

/* Print an argument, quoted for a shell. */
static void print_quoted(const char *arg)
{
	bool plain = *arg && !arg[strcspn(arg, " \t\n|&;<>()$`\\\"'*?[#~^!{}")];

	fprintf(stderr, " %s", plain ? arg : "'");
	if (plain)
		return;
	for (; *arg; arg++)
		fprintf(stderr, *arg == '\'' ? "'\\''" : "%c", *arg);
	fputc('\'', stderr);
}

/* Print the request, its result, and how to learn more. Returns the exit code. */
static int report_failure(const struct request *request, int ret)
{
	const struct fi_info *hints = request->hints;
	int i;

	util_err("fi_getinfo: %s (%d)", fi_strerror(-ret), ret);
	fprintf(stderr, "asked for: api=%s", info_version(UTIL_API_VERSION));
	print_asked("provider", hints->fabric_attr->prov_name);
	print_asked("fabric", hints->fabric_attr->name);
	print_asked("domain", hints->domain_attr->name);
	if (hints->ep_attr->type)
		print_asked("type", util_tostr(&hints->ep_attr->type, FI_TYPE_EP_TYPE));
	if (hints->caps)
		print_asked("caps", util_tostr(&hints->caps, FI_TYPE_CAPS));
	if (~hints->mode)
		print_asked("mode", util_tostr(&hints->mode, FI_TYPE_MODE));
	if (hints->addr_format)
		print_asked("addr_format", util_tostr(&hints->addr_format, FI_TYPE_ADDR_FORMAT));
	print_asked("node", request->node);
	print_asked("src_addr", request->src);
	print_asked("port", request->port);
	fputc('\n', stderr);
	if (request->why)
		return -ret;

	fprintf(stderr, "To see what each interface lacks:\n  %s --why", util_program());
	for (i = 1; i < request->argc; i++)
		print_quoted(request->argv[i]);
	fputc('\n', stderr);
	return -ret;
}

/* Put the address of `node` into the hints as destination, if `src` is the node of the call. 0 or -FI_*. */
static int resolve_dest(struct request *request)
{
	struct addrinfo *res;
	int ret;

	ret = getaddrinfo(request->node, request->port, NULL, &res);
	if (ret) {
		util_err("--node %s: %s", request->node, gai_strerror(ret));
		return -FI_ENODATA;
	}
	request->hints->dest_addr = malloc(res->ai_addrlen);
	if (request->hints->dest_addr) {
		memcpy(request->hints->dest_addr, res->ai_addr, res->ai_addrlen);
		request->hints->dest_addrlen = res->ai_addrlen;
		request->hints->addr_format = res->ai_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	}
	freeaddrinfo(res);
	return request->hints->dest_addr ? 0 : -FI_ENOMEM;
}

static bool is_wanted(const void *arg, const struct fi_info *info)
{
	const struct request *request = arg;

	return !request->info_substr || strstr(util_tostr(info, FI_TYPE_INFO), request->info_substr);
}

/* True if a Boolean parameter is set, to false. */
static bool param_is_off(const struct fi_param *params, int cnt, const char *name)
{
	static const char *const off[] = { "0", "off", "false", "no" };

	for (int i = 0; i < cnt; i++) {
		if (strcmp(params[i].name, name) || !params[i].value)
			continue;
		for (size_t n = 0; n < sizeof(off) / sizeof(off[0]); n++) {
			if (!strcasecmp(params[i].value, off[n]))
				return true;
		}
	}
	return false;
}

/* What an entry of the provider tcp uses between which peers: fi_tcp(7). */
static void print_carriers(const struct fi_info *info)
{
	const char *name = info->fabric_attr->prov_name;
	struct fi_param *params;
	int cnt;

	if ((strncmp(name, "tcp", 3) && strcmp(name, "sockets")) || fi_getparams(&params, &cnt))
		return;
	printf("    carriers:\n        processes of this host and user: %s\n        all other peers: TCP\n\n",
	       param_is_off(params, cnt, "FI_TCP_LOCAL") ? "TCP (FI_TCP_LOCAL is off)" :
	       param_is_off(params, cnt, "FI_TCP_SHARED_MEMORY") ? "Unix sockets (FI_TCP_SHARED_MEMORY is off)" :
	       "shared memory, and process_vm_readv(2) for long payloads and remote accesses, where the kernel "
	       "permits them");
	fi_freeparams(params);
}

static void print_full(const struct fi_info *info)
{
	printf("---\n%s\n", util_tostr(info, FI_TYPE_INFO));
	print_carriers(info);
}

/* Print the table, as wide as the terminal. Returns the exit code. */
static int show_table(const struct request *request, const struct fi_info *list)
{
	bool terminal = isatty(STDOUT_FILENO);
	struct winsize size;
	unsigned columns = 0;

	if (terminal)
		columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? TERMINAL_COLUMNS : size.ws_col;
	if (info_table_print(stdout, list, is_wanted, request, columns, info_table_colours(stdout)))
		return FI_ENOMEM;
	if (terminal)
		printf("\n%s --long shows the entries, -v all their attributes, --why what is not shown\n",
		       util_program());
	return 0;
}

static int show_infos(struct request *request)
{
	struct fi_info *list, *info;
	struct json json;
	int ret;

	if (request->src && request->node) {
		ret = resolve_dest(request);
		if (ret)
			return -ret;
	}
	ret = fi_getinfo(UTIL_API_VERSION, request->src ? request->src : request->node,
			 request->src && request->node ? NULL : request->port, request->src ? FI_SOURCE : 0,
			 request->hints, &list);
	if (ret)
		return report_failure(request, ret);

	if (request->table && !request->json && !request->verbose && !request->info_substr) {
		ret = show_table(request, list);
		fi_freeinfo(list);
		return ret;
	}
	json_init(&json, stdout);
	if (request->json)
		json_open(&json, NULL, '[');
	for (info = list; info; info = info->next) {
		if (!is_wanted(request, info))
			continue;
		if (request->json)
			info_json(&json, info);
		else if (request->verbose || request->info_substr)
			print_full(info);
		else
			print_short(info);
	}
	if (request->json)
		json_close(&json, ']');
	fi_freeinfo(list);
	return 0;
}

/* The search for the loaded file of a provider. */
struct dso_search {
	const char *prov;
	char path[4096];                /* "": none is loaded */
};

/* True if this is the file of the provider: lib<name>-fi.so, where "ofi_" may be missing in the name. */
static int is_dso(struct dl_phdr_info *object, size_t size, void *arg)
{
	struct dso_search *search = arg;
	const char *slash = strrchr(object->dlpi_name, '/'), *file = slash ? slash + 1 : object->dlpi_name;
	const char *prov = search->prov;
	size_t len = strlen(prov);

	(void) size;
	if (strncmp(file, "lib", 3))
		return 0;
	if (!strncmp(prov, "ofi_", 4) && strncmp(file + 3, prov, len)) {
		prov += 4;
		len -= 4;
	}
	if (strncmp(file + 3, prov, len) || strcmp(file + 3 + len, "-fi.so"))
		return 0;
	snprintf(search->path, sizeof(search->path), "%s", object->dlpi_name);
	return 1;
}

static void show_provider(struct json *json, bool as_json, const struct fi_fabric_attr *attr)
{
	struct dso_search search = { .prov = attr->prov_name };

	dl_iterate_phdr(is_dso, &search);
	if (!as_json) {
		printf("%s:\n    version: %s\n", attr->prov_name, info_version(attr->prov_version));
		if (*search.path)
			printf("    file: %s\n", search.path);
		return;
	}
	json_open(json, NULL, '{');
	json_string(json, "provider", attr->prov_name);
	json_string(json, "version", info_version(attr->prov_version));
	json_string(json, "file", *search.path ? search.path : NULL);
	json_close(json, '}');
}

static int show_providers(struct request *request)
{
	const char *only = request->hints->fabric_attr->prov_name;
	struct fi_info *list, *info;
	struct json json;
	int ret;

	ret = fi_getinfo(UTIL_API_VERSION, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &list);
	if (ret)
		return report_failure(request, ret);
	json_init(&json, stdout);
	if (request->json)
		json_open(&json, NULL, '[');
	for (info = list; info; info = info->next) {
		if (!only || !strcasecmp(only, info->fabric_attr->prov_name))
			show_provider(&json, request->json, info->fabric_attr);
	}
	if (request->json)
		json_close(&json, ']');
	fi_freeinfo(list);
	return 0;
}

static const char *param_type(enum fi_param_type type)
{
	static const char *const names[] = {
		[FI_PARAM_STRING] = "String",
		[FI_PARAM_INT] = "Integer",
		[FI_PARAM_BOOL] = "Boolean (0/1, on/off, true/false, yes/no)",
		[FI_PARAM_SIZE_T] = "size_t",
	};

	return (size_t) type < sizeof(names) / sizeof(names[0]) && names[type] ? names[type] : "Unknown";
}

/* Print text as comment lines, folded between words; its own line ends stay. */
static void print_folded(const char *text)
{
	size_t column = 0, len;

	for (; *text; text += len) {
		len = strcspn(text, " \n");
		if (column && (*text == '\n' || column + len > HELP_COLUMNS)) {
			putchar('\n');
			column = 0;
		}
		if (len) {
			column += (size_t) printf("%s%.*s", column ? " " : "# ", (int) len, text);
		} else {
			len = 1;
		}
	}
	if (column)
		putchar('\n');
}

static void show_param(struct json *json, bool as_json, const struct fi_param *param)
{
	if (as_json) {
		json_open(json, NULL, '{');
		json_string(json, "name", param->name);
		json_string(json, "type", param_type(param->type));
		json_string(json, "help", param->help_string);
		json_string(json, "value", param->value);
		json_close(json, '}');
		return;
	}
	printf("# %s: %s\n", param->name, param_type(param->type));
	print_folded(param->help_string ? param->help_string : "");
	if (param->value)
		printf("%s=%s\n", param->name, param->value);
	putchar('\n');
}

static bool param_is_wanted(const struct fi_param *param, const char *substr)
{
	return !substr || strcasestr(param->name, substr) ||
	       (param->help_string && strcasestr(param->help_string, substr));
}

/* Parameters in the order in which they are shown. */
enum group {
	PARAM_SET,
	PARAM_USED,                     /* not set; it would have an effect */
	PARAM_UNUSED,
	PARAM_GROUPS,
};

static enum group param_group(const struct fi_param *param)
{
	if (param->value)
		return PARAM_SET;
	return param->help_string && strstr(param->help_string, NO_EFFECT) ? PARAM_UNUSED : PARAM_USED;
}

/* Show the wanted parameters of a group. Returns their number. */
static int show_group(const struct request *request, struct json *json, const struct fi_param *params, int cnt,
		      enum group group, bool silent)
{
	int i, found = 0;

	for (i = 0; i < cnt; i++) {
		if (param_group(&params[i]) != group || !param_is_wanted(&params[i], request->param_substr))
			continue;
		if (!silent)
			show_param(json, request->json, &params[i]);
		found++;
	}
	return found;
}

static int show_params(struct request *request)
{
	bool brief = isatty(STDOUT_FILENO) && !request->all_params && !request->param_substr && !request->json;
	struct fi_param *params;
	int cnt, ret, shown = 0, found;
	struct json json;

	ret = fi_getparams(&params, &cnt);
	if (ret) {
		util_err("fi_getparams: %s (%d)", fi_strerror(-ret), ret);
		return -ret;
	}
	json_init(&json, stdout);
	if (request->json)
		json_open(&json, NULL, '[');
	for (int group = 0; group < PARAM_GROUPS; group++) {
		bool silent = brief && group == PARAM_UNUSED;

		found = show_group(request, &json, params, cnt, (enum group) group, silent);
		if (silent && found)
			printf("# %d more are accepted without effect: %s --env=all\n", found, util_program());
		shown += found;
	}
	if (request->json)
		json_close(&json, ']');
	if (!shown && request->param_substr)
		util_err("none of %d parameters has '%s' in its name or meaning", cnt, request->param_substr);
	fi_freeparams(params);
	return 0;
}

static int show_version(struct request *request)
{
	(void) request;
	/* the library's own version and name come from the library that was loaded, which may be another one */
	printf("fi_info: %s (%s)\n", info_version(UTIL_API_VERSION), WEFT_VERSION);
	printf("libfabric: %s\n", util_tostr("", FI_TYPE_VERSION));
	printf("libfabric api: %s\n", info_version(UTIL_API_VERSION));
	return 0;
}

static int replace_string(char **string, const char *value)
{
	free(*string);
	*string = strdup(value);
	return *string ? 0 : -FI_ENOMEM;
}

/* Add an option to the request. 0 or -FI_*; errors were printed, except lack of memory. */
static int take_option(struct request *request, int key, const char *arg)
{
	struct fi_info *hints = request->hints;

	switch (key) {
	case 'p':
		return replace_string(&hints->fabric_attr->prov_name, arg);
	case 'f':
		return replace_string(&hints->fabric_attr->name, arg);
	case 'd':
		return replace_string(&hints->domain_attr->name, arg);
	case 't':
		return util_parse_enum("endpoint type", arg, FI_TYPE_EP_TYPE, "FI_EP_", &hints->ep_attr->type);
	case 'a':
		return util_parse_enum("address format", arg, FI_TYPE_ADDR_FORMAT, "FI_ADDR_", &hints->addr_format);
	case 'c':
		return util_parse_flags("capability", arg, FI_TYPE_CAPS, &hints->caps);
	case 'm':
		return util_parse_flags("mode", arg, FI_TYPE_MODE, &hints->mode);
	case 'n':
		request->node = arg;
		break;
	case 's':
		request->src = arg;
		break;
	case 'P':
		request->port = arg;
		break;
	case 'i':
		request->info_substr = arg;
		break;
	case 'l':
		request->show = show_providers;
		break;
	case 'g':
		request->param_substr = arg;
		request->show = show_params;
		break;
	case 'e':
		if (arg && strcmp(arg, "all")) {
			util_err("--env is '%s': nothing or 'all' is allowed", arg);
			return -FI_EINVAL;
		}
		request->all_params = arg;
		request->show = show_params;
		break;
	case 'v':
		request->verbose = true;
		break;
	case OPT_JSON:
		request->json = true;
		break;
	case OPT_TABLE:
	case OPT_LONG:
		request->table = key == OPT_TABLE;
		break;
	case OPT_WHY:
		request->why = true;
		break;
	case OPT_VERSION:
		request->show = show_version;
		break;
	}
	return 0;
}

/* Parse the command line and print the result. Returns the exit code. */
static int run(struct request *request, int argc, char **argv)
{
	int key, ret;

	while ((key = util_getopt(argc, argv, options)) != -1) {
		if (key == 'h') {
			util_help(stdout, usage, "Print what libfabric offers on this machine.", options);
			return 0;
		}
		if (key == '?')
			return util_bad_usage();
		ret = take_option(request, key, optarg);
		if (ret)
			return -ret;
	}
	if (optind < argc) {
		util_err("'%s' belongs to no option", argv[optind]);
		return util_bad_usage();
	}
	if (request->why)
		setenv("FI_EXPLAIN", "1", 1);
	ret = request->show(request);
	if (fflush(stdout) || ferror(stdout)) {
		util_err("cannot write the output");
		return FI_EIO;
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct request request = { .show = show_infos, .table = isatty(STDOUT_FILENO), .argc = argc, .argv = argv };
	int ret;

	util_init(argv[0]);
	request.hints = fi_allocinfo();
	if (!request.hints) {
		util_err("fi_allocinfo: no memory");
		return FI_ENOMEM;
	}
	/* A mode is a requirement of the provider on the program. fi_info only looks, so it accepts all modes. */
	request.hints->mode = ~0ULL;
	request.hints->domain_attr->mode = ~0ULL;
	request.hints->domain_attr->mr_mode = ~(FI_MR_BASIC | FI_MR_SCALABLE);
	ret = run(&request, argc, argv);
	fi_freeinfo(request.hints);
	return util_exit_code(-ret);
}
