# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The two macros of configure.ac that are ours.

# WEFT_PROVIDER(NAME, DEFAULT, WHAT)
# ----------------------------------
# Offer --enable-NAME=yes|dl|no. yes: a part of libfabric; dl: a DSO in $libdir/libfabric; no: left out. Defines HAVE_NAME
# (built in) or HAVE_NAME_DL (DSO) in config.h, and the automake conditionals NAME_BUILTIN, NAME_DL and NAME_BUILT (either).
AC_DEFUN([WEFT_PROVIDER], [
m4_pushdef([weft_NAME], m4_toupper([$1]))dnl
AC_ARG_ENABLE([$1],
	[AS_HELP_STRING([--enable-$1=yes|dl|no], [provider $1, $3: built in, a DSO, or left out (default: $2)])],
	[], [enable_$1=$2])
AS_CASE([$enable_$1],
	[yes], [weft_builtin="$weft_builtin $1"
		AC_DEFINE([HAVE_]weft_NAME, [1], [Provider $1 is built into the library.])],
	[dl], [weft_dl="$weft_dl $1"
		AC_DEFINE([HAVE_]weft_NAME[_DL], [1], [Provider $1 is built as a DSO.])],
	[no], [],
	[AC_MSG_ERROR([--enable-$1=$enable_$1: yes, dl or no is allowed])])
AS_IF([test "$enable_$1,$enable_shared" = dl,no], [AC_MSG_ERROR([--enable-$1=dl cannot go with --disable-shared])])
AM_CONDITIONAL(weft_NAME[_BUILTIN], [test "$enable_$1" = yes])
AM_CONDITIONAL(weft_NAME[_DL], [test "$enable_$1" = dl])
AM_CONDITIONAL(weft_NAME[_BUILT], [test "$enable_$1" != no])
m4_popdef([weft_NAME])dnl
])

# WEFT_BUILD_KIND
# ---------------
# Release (the default), debug or sanitizer build, and warnings. Sets AM_CFLAGS and AM_LDFLAGS for everything, and
# LIB_NDEBUG for library code only: the assertions of a test stay on in every kind of build.
AC_DEFUN([WEFT_BUILD_KIND], [
AC_ARG_ENABLE([debug], [AS_HELP_STRING([--enable-debug], [no optimisation, assertions and FI_DBG on])], [], [enable_debug=no])
AC_ARG_ENABLE([asan], [AS_HELP_STRING([--enable-asan], [AddressSanitizer and UBSan, assertions on])], [], [enable_asan=no])
AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [ThreadSanitizer, assertions on])], [], [enable_tsan=no])
AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [a warning stops the build])], [], [enable_werror=no])

weft_kind=release
weft_opt="-O2 -g"
weft_san=
LIB_NDEBUG=
AS_CASE([$enable_debug,$enable_asan,$enable_tsan],
	[no,no,no], [LIB_NDEBUG=-DNDEBUG],
	[yes,no,no], [weft_kind=debug weft_opt="-O0 -g"],
	[*,yes,no], [weft_kind=asan weft_opt="-O1 -g -fno-omit-frame-pointer"
		     weft_san="-fsanitize=address,undefined -fno-sanitize-recover=undefined"],
	[*,no,yes], [weft_kind=tsan weft_opt="-O1 -g -fno-omit-frame-pointer" weft_san="-fsanitize=thread"],
	[AC_MSG_ERROR([--enable-asan and --enable-tsan: a build can have only one of them])])

# Without that option, gcc 12 joins two pointers in a vector register to store them at once, with more instructions.
AM_CFLAGS="-std=gnu11 -Wall -Wextra -fvisibility=hidden -fno-tree-slp-vectorize $weft_san"
# gcc 9 and 10 miss the fields behind a compound literal, although the fields are named.
AC_PREPROC_IFELSE([AC_LANG_SOURCE([[
#if defined __GNUC__ && !defined __clang__ && __GNUC__ < 11
#error warns of initializers that are complete
#endif]])], [], [AM_CFLAGS="$AM_CFLAGS -Wno-missing-field-initializers"])
AS_IF([test "$enable_werror" = yes], [AM_CFLAGS="$AM_CFLAGS -Werror"])
AS_IF([test -z "$CFLAGS"], [CFLAGS="$weft_opt"])
# What rdma/providers/fi_log.h asks for FI_DBG(). An installed header cannot look into config.h.
DEBUG_CPPFLAGS=
AS_IF([test "$enable_debug" = yes], [DEBUG_CPPFLAGS=-DENABLE_DEBUG=1])
AC_SUBST([DEBUG_CPPFLAGS])
# gcc links a sanitizer's runtime to a library, clang only to a program: there the library has undefined symbols.
LIB_UNDEFINED=
AS_IF([test -z "$weft_san"], [LIB_UNDEFINED="-Wl,--no-undefined"])

AM_CONDITIONAL([SANITIZER], [test -n "$weft_san"])
AC_SUBST([BUILD_KIND], [$weft_kind])
AC_SUBST([AM_CFLAGS])
AC_SUBST([AM_LDFLAGS], [$weft_san])
AC_SUBST([LIB_NDEBUG])
AC_SUBST([LIB_UNDEFINED])
])
