/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parameters: the parts of fi_param_*() and fi_getparams() that their public header does not describe. All calls from
 * any thread.
 *
 * The value of parameter NAME of provider PROV is looked up as FI_PROV_NAME (FI_NAME for the core) when the parameter
 * is defined: first in the environment, then in the configuration file; in the other order if FI_PREFER_SYSCONFIG is
 * true. A set-user-ID program ignores the environment. A value does not change after its parameter was defined. A
 * number may have a unit: k, m or g, in either case, optionally followed by i, B or iB, are powers of 1024 ("64k", "2
 * MiB"). A number that does not fit its type is refused like text that is not a number.
 *
 * The configuration file is $sysconfdir/libfabric.conf. Its lines are "FI_NAME = value". Blanks around name and value
 * are dropped. Lines that begin with '#' and empty lines are ignored. It must be a regular file. Of a file longer than
 * 1 MiB only the lines that end within the first MiB are read, and a warning says so. Names of undefined parameters are
 * accepted; settings.h describes how they are logged.
 */
#ifndef FAB_PARAM_H
#define FAB_PARAM_H

/* Log a warning for each invalid line of the configuration file, once a process. Called by fab_init(); the file is read
 * earlier, since the parameters of logging are in it, too. */
void fab_param_report(void);

/* Call `each` for every parameter defined so far. value is NULL if it is not set. why is the reason why the parameter
 * has no effect (FAB_PARAM_UNUSED), or NULL. `each` must not define parameters. */
void fab_param_each(void (*each)(const char *env_name, const char *why, const char *value));
/* Call `each` for every FI_NAME (capitals, digits, underscores) that the environment or the configuration file sets and
 * that is not a parameter defined so far. Each name is passed once. No thread may change the environment meanwhile. */
void fab_param_each_unknown(void (*each)(const char *env_name));

/* Free everything. Called at unload, when no thread can call any more. */
void fab_param_fini(void);

/* Path of the configuration file. A test changes it before its first call. */
extern const char *fab_param_path;

#endif
