/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a function becomes a symbol of libfabric.so.1. Everything is compiled hidden. A function of the public API that
 * is in one version node is defined with FAB_EXPORT, and libfabric.map gives it its node. A function that is in several
 * nodes has one internal name for each, which FAB_DEFAULT() or FAB_COMPAT() ties to the public name and the node.
 */
#ifndef FAB_EXPORT_H
#define FAB_EXPORT_H

#define FAB_EXPORT __attribute__((visibility("default")))

/* PIC is libtool's word for an object that may go into the shared library. (In an archive linkers take the default.) */
#ifdef PIC

/* Newly linked programs that call name get fn. node is the version node in which name last changed. */
#define FAB_DEFAULT(fn, name, node) __asm__(".symver " #fn ", " #name "@@" node)
/* Programs that were linked against a library of that version node get fn when they call name. */
#define FAB_COMPAT(fn, name, node) __asm__(".symver " #fn ", " #name "@" node)

#else		/* a static library alone has no versions, hence no old callers: no FAB_COMPAT() */

#define FAB_DEFAULT(fn, name, node) extern __typeof__(fn) name FAB_EXPORT __attribute__((alias(#fn)))

#endif

#endif
