/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See hmac.h. There are two implementations, each a struct sha_code. The first that works is chosen for good. While
 * none works, each call of fab_hmac_missing() tries again: memory or a kernel module may have been missing.
 */
#include "base/hmac.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/if_alg.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include "base/bits.h"
#include "base/sock.h"

struct sha_code {
	bool (*works)(void);
	int (*hmac)(const void *key, size_t key_len, const void *data, size_t len, uint8_t mac[FAB_MAC_LEN]);
};

/* ---- the kernel ---- */

/* A socket for this algorithm, or -errno. */
static int alg_open(void)
{
	const struct sockaddr_alg addr = { .salg_family = AF_ALG, .salg_type = "hash", .salg_name = "hmac(sha256)" };
	int fd = fab_sock->socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	if (!fab_sock->bind(fd, (const struct sockaddr *) &addr, sizeof(addr)))
		return fd;
	err = errno;
	fab_sock_close(&fd);
	return -err;
}

/* One hash on a socket that has its key. */
static int alg_hash(int alg_fd, const void *data, size_t len, uint8_t mac[FAB_MAC_LEN])
{
	int fd = fab_sock->accept4(alg_fd, NULL, NULL, SOCK_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (fab_sock->send(fd, data, len, 0) != (ssize_t) len || fab_sock->recv(fd, mac, FAB_MAC_LEN, 0) != FAB_MAC_LEN)
		ret = errno ? -errno : -EIO;
	fab_sock_close(&fd);
	return ret;
}

static int alg_hmac(const void *key, size_t key_len, const void *data, size_t len, uint8_t mac[FAB_MAC_LEN])
{
	int fd = alg_open(), ret;

	if (fd < 0)
		return fd;
	ret = fab_sock->setsockopt(fd, SOL_ALG, ALG_SET_KEY, key, key_len) ? -errno : alg_hash(fd, data, len, mac);
	fab_sock_close(&fd);
	return ret;
}

/* Compute a known HMAC (RFC 4231, test case 2) and compare it. */
static bool alg_works(void)
{
	static const uint8_t answer[FAB_MAC_LEN] = {
		0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7,
		0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43,
	};
	static const char data[] = "what do ya want for nothing?";
	uint8_t mac[FAB_MAC_LEN];

	return !alg_hmac("Jefe", 4, data, sizeof(data) - 1, mac) && fab_mac_equal(mac, answer);
}

/* ---- libcrypto ---- */

/* HMAC(3), EVP_sha256(3): the same in every version since 1.1. */
static unsigned char *(*crypto_hmac_fn)(const void *md, const void *key, int key_len, const unsigned char *data,
					size_t len, unsigned char *mac, unsigned int *mac_len);
static const void *(*crypto_sha256_fn)(void);

static bool crypto_works(void)
{
	static const char *const names[] = { "libcrypto.so.3", "libcrypto.so.1.1" };
	void *lib = NULL;

	for (size_t i = 0; i < fab_countof(names) && !lib; i++)
		lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return false;
	*(void **) &crypto_hmac_fn = dlsym(lib, "HMAC");
	*(void **) &crypto_sha256_fn = dlsym(lib, "EVP_sha256");
	if (crypto_hmac_fn && crypto_sha256_fn)
		return true;
	dlclose(lib);
	return false;
}

static int crypto_hmac(const void *key, size_t key_len, const void *data, size_t len, uint8_t mac[FAB_MAC_LEN])
{
	unsigned int mac_len = FAB_MAC_LEN;

	if (!crypto_hmac_fn(crypto_sha256_fn(), key, key_len, data, len, mac, &mac_len) || mac_len != FAB_MAC_LEN)
		return -ENOMEM;
	return 0;
}

/* ---- choosing an implementation ---- */

static const struct sha_code sha_codes[] = {
	{ alg_works, alg_hmac },
	{ crypto_works, crypto_hmac },
};

static _Atomic(const struct sha_code *) chosen;

static void choose(void)
{
	for (size_t i = 0; i < fab_countof(sha_codes) && !chosen; i++) {
		if (sha_codes[i].works())
			chosen = &sha_codes[i];
	}
}

const char *fab_hmac_missing(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	choose();
	pthread_mutex_unlock(&lock);
	return chosen ? NULL : "neither the kernel (AF_ALG, module algif_hash) nor libcrypto.so.3 (package libssl3) "
			       "computes HMAC-SHA256 here: load or install one of them";
}

int fab_hmac(const void *key, size_t key_len, const void *data, size_t len, uint8_t mac[FAB_MAC_LEN])
{
	const struct sha_code *code = chosen;

	return code->hmac(key, key_len, data, len, mac);
}

bool fab_mac_equal(const uint8_t a[FAB_MAC_LEN], const uint8_t b[FAB_MAC_LEN])
{
	volatile uint8_t differs = 0;

	for (size_t i = 0; i < FAB_MAC_LEN; i++)
		differs |= a[i] ^ b[i];
	return !differs;
}

int fab_nonce(void *buf, size_t len)
{
	ssize_t ret = getrandom(buf, len, GRND_NONBLOCK);

	return ret == (ssize_t) len ? 0 : ret < 0 ? -errno : -EAGAIN;
}
