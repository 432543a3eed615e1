/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Settings of upstream that users' scripts contain and that have no effect here. The settings of upstream's core are
 * defined as parameters (fi_getparams, fi_info -e lists them), with the reason. Each setting without effect is logged
 * once, at level info: a parameter that is defined as such, and an FI_* name that nothing defines (misspelt, or of a
 * provider that is not loaded). Both functions are called once, by fab_init().
 */
#ifndef FAB_SETTINGS_H
#define FAB_SETTINGS_H

/* Define the core's parameters without effect. Called before providers define theirs. */
void fab_settings_define(void);
/* Log each setting without effect: a warning for a name with a typing error, and the rest at level info. Called after
 * all parameters are defined. */
void fab_settings_report(void);

#endif
