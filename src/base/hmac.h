/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A keyed hash, HMAC-SHA256 (RFC 2104, FIPS 180-4), and what goes with it. Not computed here: by the kernel (AF_ALG)
 * where it does so, else by libcrypto, which is loaded when it is first needed. All calls may be made from any
 * thread.
 */
#ifndef FAB_BASE_HMAC_H
#define FAB_BASE_HMAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAB_MAC_LEN 32			/* bytes of a result */

/* Can this process compute it? NULL, once that is found for good; or why not, to be shown. */
const char *fab_hmac_missing(void);

/* The hash of len bytes under the key, into mac. Keys have 1 to INT_MAX bytes. fab_hmac_missing() has said NULL. 0, or
 * -errno: no descriptor, no memory. */
int fab_hmac(const void *key, size_t key_len, const void *data, size_t len, uint8_t mac[FAB_MAC_LEN]);

/* Are the two equal? Takes the same time wherever they differ. */
bool fab_mac_equal(const uint8_t a[FAB_MAC_LEN], const uint8_t b[FAB_MAC_LEN]);

/* Fill buf with len bytes (256 at most) that nobody can foresee. 0, or -errno: the kernel has none, do not go on. */
int fab_nonce(void *buf, size_t len);

#endif
