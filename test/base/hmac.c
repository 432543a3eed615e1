/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The keyed hash against RFC 4231, computed by whatever this machine has; by a kernel that is played here; and by
 * nobody. Which one is chosen once a process, so the latter two run in processes of their own.
 */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_alg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/bits.h"
#include "base/hmac.h"
#include "base/sock.h"

/* Test cases of RFC 4231, by number; 5 is about a shorter result. Texts that repeat one byte have its count. */
static const struct vector {
	const char *key;
	size_t key_len;
	uint8_t key_byte;
	const char *data;
	size_t data_len;
	uint8_t data_byte;
	const char *mac;
} vectors[] = {
	{ NULL, 20, 0x0b, "Hi There", 8, 0, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
	{ "Jefe", 4, 0, "what do ya want for nothing?", 28, 0,
	  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
	{ NULL, 20, 0xaa, NULL, 50, 0xdd, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
	{ "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24\25\26\27\30\31", 25, 0, NULL, 50, 0xcd,
	  "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
	{ NULL, 131, 0xaa, "Test Using Larger Than Block-Size Key - Hash Key First", 54, 0,
	  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
	{ NULL, 131, 0xaa, "This is a test using a larger than block-size key and a larger than block-size data. The "
	  "key needs to be hashed before being used by the HMAC algorithm.", 152, 0,
	  "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
};

static void expand(uint8_t *buf, const char *text, size_t len, uint8_t byte)
{
	if (text)
		memcpy(buf, text, len);
	else
		memset(buf, byte, len);
}

static void from_hex(uint8_t mac[FAB_MAC_LEN], const char *hex)
{
	for (int i = 0; i < FAB_MAC_LEN; i++)
		assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &mac[i]), 1);
}

static void check_vectors(void)
{
	uint8_t key[200], data[200], mac[FAB_MAC_LEN], want[FAB_MAC_LEN];

	for (size_t i = 0; i < fab_countof(vectors); i++) {
		const struct vector *v = &vectors[i];

		expand(key, v->key, v->key_len, v->key_byte);
		expand(data, v->data, v->data_len, v->data_byte);
		from_hex(want, v->mac);
		assert_int_equal(fab_hmac(key, v->key_len, data, v->data_len, mac), 0);
		assert_memory_equal(mac, want, FAB_MAC_LEN);
		assert_true(fab_mac_equal(mac, want));
		mac[i] ^= 0x80;
		assert_false(fab_mac_equal(mac, want));
	}
}

/* ---- a kernel that has it, as far as the vectors go ---- */

static bool no_library, no_kernel;
static uint8_t kernel_key[200], kernel_data[200];
static size_t kernel_key_len, kernel_data_len;
static int kernel_open_cnt;

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);

void *__wrap_dlopen(const char *name, int flags)
{
	return no_library ? NULL : __real_dlopen(name, flags);
}

static int kernel_socket(int family, int type, int protocol)
{
	(void) protocol;
	assert_int_equal(family, AF_ALG);
	assert_int_equal(type & SOCK_SEQPACKET, SOCK_SEQPACKET);
	if (no_kernel) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	kernel_open_cnt++;
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int kernel_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	const struct sockaddr_alg *alg = (const struct sockaddr_alg *) addr;

	(void) fd;
	assert_int_equal(len, sizeof(*alg));
	assert_int_equal(alg->salg_family, AF_ALG);
	assert_string_equal((const char *) alg->salg_type, "hash");
	assert_string_equal((const char *) alg->salg_name, "hmac(sha256)");
	kernel_key_len = 0;
	return 0;
}

static int kernel_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	(void) fd;
	assert_int_equal(level, SOL_ALG);
	assert_int_equal(name, ALG_SET_KEY);
	memcpy(kernel_key, value, len);
	kernel_key_len = len;
	return 0;
}

static int kernel_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	(void) fd, (void) addr, (void) len, (void) flags;
	assert_true(kernel_key_len > 0);
	kernel_open_cnt++;
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static ssize_t kernel_send(int fd, const void *buf, size_t len, int flags)
{
	(void) fd, (void) flags;
	memcpy(kernel_data, buf, len);
	kernel_data_len = len;
	return len;
}

static ssize_t kernel_recv(int fd, void *buf, size_t len, int flags)
{
	uint8_t key[200], data[200];

	(void) fd, (void) flags;
	assert_int_equal(len, FAB_MAC_LEN);
	for (size_t i = 0; i < fab_countof(vectors); i++) {
		const struct vector *v = &vectors[i];

		expand(key, v->key, v->key_len, v->key_byte);
		expand(data, v->data, v->data_len, v->data_byte);
		if (kernel_key_len == v->key_len && !memcmp(key, kernel_key, v->key_len) &&
		    kernel_data_len == v->data_len && !memcmp(data, kernel_data, v->data_len))
			from_hex(buf, v->mac);
	}
	return len;
}

static int kernel_close(int fd)
{
	kernel_open_cnt--;
	return close(fd);
}

static void play_kernel(void)
{
	static struct fab_sock_ops kernel;

	kernel = fab_sock_libc;
	kernel.socket = kernel_socket;
	kernel.bind = kernel_bind;
	kernel.setsockopt = kernel_setsockopt;
	kernel.accept4 = kernel_accept4;
	kernel.send = kernel_send;
	kernel.recv = kernel_recv;
	kernel.close = kernel_close;
	fab_sock = &kernel;
}

/* fn in a process of its own, in which no choice has been made. It says whether all was well. */
static void in_child(bool (*fn)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(!fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static bool kernel_alone(void)
{
	no_library = true;
	play_kernel();
	if (fab_hmac_missing())
		return false;
	check_vectors();
	return !kernel_open_cnt;
}

static bool nobody(void)
{
	no_library = no_kernel = true;
	play_kernel();
	return fab_hmac_missing() && strstr(fab_hmac_missing(), "libcrypto");
}

/* ---- tests ---- */

static void a_kernel_that_has_it_is_asked(void **state)
{
	(void) state;
	in_child(kernel_alone);
}

static void without_kernel_and_library_it_is_missing(void **state)
{
	(void) state;
	in_child(nobody);
}

static void results_are_those_of_rfc_4231(void **state)
{
	const char *missing = fab_hmac_missing();

	(void) state;
	if (missing && getenv("CROSS_ARCH"))	/* qemu has no AF_ALG, and there may be no libcrypto of that machine */
		unit_skip(missing);
	assert_null(missing);
	check_vectors();
}

static void nonces_differ(void **state)
{
	uint8_t a[FAB_MAC_LEN] = { 0 }, b[FAB_MAC_LEN] = { 0 };

	(void) state;
	assert_int_equal(fab_nonce(a, sizeof(a)), 0);
	assert_int_equal(fab_nonce(b, sizeof(b)), 0);
	assert_false(fab_mac_equal(a, b));
}

int main(void)
{
	/* children first: no choice has been made */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_that_has_it_is_asked),
		cmocka_unit_test(without_kernel_and_library_it_is_missing),
		cmocka_unit_test(results_are_those_of_rfc_4231),
		cmocka_unit_test(nonces_differ),
	};

	return cmocka_run_group_tests_name("base/hmac", tests, NULL, NULL);
}
