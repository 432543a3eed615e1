/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Static probes (--enable-probes, fi_stats(7), doc/decisions/probes.md): bpftrace, perf or SystemTap attach to them. A
 * probe is one nop, and a note in the file that says where its arguments are: registers, memory or constants. So that
 * it takes no other instruction, arguments are values that the code has at hand there; nothing is computed for one.
 *
 * An argument is evaluated only if probes are built. It has no side effect, and at most 8 bytes.
 */
#ifndef FAB_PROBE_H
#define FAB_PROBE_H

#ifdef FAB_PROBES
#include <sys/sdt.h>
#define FAB_PROBE2(name, a, b)		STAP_PROBE2(weft, name, a, b)
#define FAB_PROBE3(name, a, b, c)	STAP_PROBE3(weft, name, a, b, c)
#define FAB_PROBE4(name, a, b, c, d)	STAP_PROBE4(weft, name, a, b, c, d)
#else
#define FAB_PROBE2(name, a, b)		do { } while (0)
#define FAB_PROBE3(name, a, b, c)	do { } while (0)
#define FAB_PROBE4(name, a, b, c, d)	do { } while (0)
#endif

#endif
