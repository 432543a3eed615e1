/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * HMAC-SHA256 (RFC 2104, FIPS 180-4), comparison of its results, and random bytes. The kernel computes the hash
 * (AF_ALG) where it can; otherwise libcrypto does, which is loaded at the first need. All calls may be made from any
 * thread.
 */
#ifndef FAB_BASE_HMAC_H
#define FAB_BASE_HMAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAB_MAC_LEN 32			/* bytes of a hash */

/* NULL if this process can compute HMACs; every later call then returns NULL, too. Otherwise the reason why it cannot,
 * in static memory, for users; a later call tries again. */
const char *fab_hmac_missing(void);

/* Compute the HMAC of data[len] with the key (1 to INT_MAX bytes) into mac. Only after fab_hmac_missing() returned
 * NULL. 0, or -errno with mac undefined: no descriptor, no memory. */
int fab_hmac(const void *key, size_t key_len, const void *data, size_t len, uint8_t mac[FAB_MAC_LEN]);

/* True if the two hashes are equal. Takes the same time wherever they differ. */
bool fab_mac_equal(const uint8_t a[FAB_MAC_LEN], const uint8_t b[FAB_MAC_LEN]);

/* Fill buf with len (at most 256) random bytes that nobody can predict. 0, or -errno: the kernel has none, and the
 * caller must not use buf. */
int fab_nonce(void *buf, size_t len);

#endif
