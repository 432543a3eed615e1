/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Settings that users' scripts are full of and that mean nothing here. Those of the core of upstream are listed like
 * any parameter (fi_getparams, fi_info -e), with the reason. And whatever is set without effect is said in the log
 * once, at level info: one that is listed as such, and one that nobody knows (a slip of the pen, or of a provider
 * that is not here). Both calls are made once, by fab_init().
 */
#ifndef FAB_SETTINGS_H
#define FAB_SETTINGS_H

/* What the help of a parameter begins with that has no effect, providers' too; the reason follows. */
#define FAB_NO_EFFECT	"Accepted without effect: "

/* Define them. Before providers define theirs. */
void fab_settings_define(void);
/* Say what is set without effect. After all that defines parameters. */
void fab_settings_report(void);

#endif
