/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parameters: what the public fi_param_*() and fi_getparams() leave unsaid. All calls from any thread.
 *
 * The value of parameter NAME of provider PROV is looked up as FI_PROV_NAME (FI_NAME for the core's) when it is
 * defined, first in the environment, then in the configuration file; the other way round if FI_PREFER_SYSCONFIG is set
 * to true. In a set-user-ID program the environment is not looked at. A value stays what it was when the parameter was
 * defined. A number may have a unit: k, m or g, in either case, perhaps followed by i, B or iB, are powers of 1024
 * ("64k", "2 MiB"). What does not fit the type in the end is refused as text that is no number is.
 *
 * The configuration file is $sysconfdir/libfabric.conf. Its lines are "FI_NAME = value"; blanks around name and value
 * are dropped, lines that begin with '#' and empty ones are comments. It is a regular file; of one longer than 1 MiB
 * the lines that end there are read, and a warning says that there are more. Names that nobody defines are let pass;
 * settings.h has what is said about them.
 */
#ifndef FAB_PARAM_H
#define FAB_PARAM_H

/* Warn, once a process, of each line of the configuration file that is none. Called by fab_init(): the parameters
 * themselves are needed before anything can be logged. */
void fab_param_report(void);

/* Call `each` of every parameter defined so far. value is NULL if it is not set; why is the reason why it has no effect
 * (FAB_PARAM_UNUSED), or NULL. `each` defines none itself. */
void fab_param_each(void (*each)(const char *env_name, const char *why, const char *value));
/* Call `each` of every FI_NAME (capitals, digits, underscores) that the environment or the configuration file sets, and
 * that is no parameter defined so far; each name once, however often it is set. Nobody changes the environment
 * meanwhile. */
void fab_param_each_unknown(void (*each)(const char *env_name));

/* Free everything. Only when nobody can call any more: at unload. */
void fab_param_fini(void);

/* Where the configuration file is. A test changes it before the first call of anything. */
extern const char *fab_param_path;

#endif
