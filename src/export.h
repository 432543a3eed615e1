/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a function becomes a symbol of libfabric.so.1. Everything is compiled hidden; a function of the public API that
 * is in one version node only is defined with FAB_EXPORT, and libfabric.map gives it its node. One that is in several
 * nodes has an internal name a node, and FAB_DEFAULT() or FAB_COMPAT() ties them together.
 */
#ifndef FAB_EXPORT_H
#define FAB_EXPORT_H

#define FAB_EXPORT __attribute__((visibility("default")))

/* PIC is libtool's word for an object that may go into the shared library. (In an archive linkers take the default.) */
#ifdef PIC

/* fn is what newly linked programs get when they call name; node is where name last changed. */
#define FAB_DEFAULT(fn, name, node) __asm__(".symver " #fn ", " #name "@@" node)
/* fn is what programs linked against a library of that node get. */
#define FAB_COMPAT(fn, name, node) __asm__(".symver " #fn ", " #name "@" node)

#else		/* a static library alone has no versions, hence no old callers: no FAB_COMPAT() */

#define FAB_DEFAULT(fn, name, node) extern __typeof__(fn) name FAB_EXPORT __attribute__((alias(#fn)))

#endif

#endif
