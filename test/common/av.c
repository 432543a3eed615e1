/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors: what fi_av(3) promises of insert, remove, lookup; the tables behind it against a plain model;
 * watchers.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <rdma/fi_errno.h>
#include "common/av/vector.h"
#include "offer.h"
#include "world.h"

static struct fid_av *open_av(struct world *world, uint64_t flags)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = flags };
	struct fid_av *av;

	assert_int_equal(fi_av_open(&world->domain.domain_fid, &attr, &av, NULL), 0);
	return av;
}

static struct fab_av *fab(struct fid_av *av)
{
	return fab_container(av, struct fab_av, av_fid);
}

static struct sockaddr_in ip(uint32_t host, uint16_t port)
{
	return (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr.s_addr = htonl(host), .sin_port = htons(port) };
}

/* Insert one; its fi_addr, FI_ADDR_NOTAVAIL if it did not go in. */
static fi_addr_t insert(struct fid_av *av, uint32_t host, uint16_t port)
{
	struct sockaddr_in addr = ip(host, port);
	fi_addr_t fi_addr;

	assert_true(fi_av_insert(av, &addr, 1, &fi_addr, 0, NULL) >= 0);
	return fi_addr;
}

static void remove_one(struct fid_av *av, fi_addr_t fi_addr)
{
	assert_int_equal(fi_av_remove(av, &fi_addr, 1, 0), 0);
}

static void assert_at(struct fid_av *av, fi_addr_t fi_addr, const char *text)
{
	char found[FAB_ADDR_STRLEN];
	union fab_sockaddr addr;
	size_t len = sizeof(addr);

	memset(&addr, 0, sizeof(addr));
	assert_int_equal(fi_av_lookup(av, fi_addr, &addr, &len), 0);
	fab_addr_to_str(&addr.sa, found, sizeof(found));
	assert_string_equal(found, text);
}

/* ---- insert ---- */

static void indices_count_from_0_and_calls_return_the_count(void **state)
{
	struct sockaddr_in addrs[3] = { ip(1, 1), ip(2, 1), ip(3, 1) };
	fi_addr_t fi_addr[3];
	struct world world;
	struct fid_av *av;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	av = open_av(&world, 0);
	assert_int_equal(fi_av_insert(av, NULL, 0, NULL, 0, NULL), 0);
	assert_int_equal(fi_av_insert(av, addrs, 3, fi_addr, FI_MORE, NULL), 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(fi_addr[i], i);
	addrs[0] = ip(9, 9);
	assert_int_equal(fi_av_insert(av, addrs, 1, NULL, 0, NULL), 1);
	assert_at(av, 3, "fi_sockaddr_in://0.0.0.9:9");
	assert_at(av, 1, "fi_sockaddr_in://0.0.0.2:1");
	fi_close(&av->fid);
	world_close(&world);
}

static void an_address_twice_is_one_entry_until_the_last_remove(void **state)
{
	struct world world;
	struct fid_av *av;
	fi_addr_t a;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	av = open_av(&world, 0);
	a = insert(av, 1, 1);
	assert_int_equal(insert(av, 1, 1), a);
	assert_int_equal(insert(av, 1, 2), a + 1);
	remove_one(av, a);
	assert_non_null(fab_av_addr(fab(av), a));
	remove_one(av, a);
	assert_null(fab_av_addr(fab(av), a));
	assert_int_equal(fi_av_remove(av, &a, 1, 0), -FI_EINVAL);
	fi_close(&av->fid);
	world_close(&world);
}

static void the_lowest_free_index_is_used_again(void **state)
{
	struct world world;
	struct fid_av *av;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	av = open_av(&world, 0);
	for (unsigned i = 0; i < 300; i++)
		insert(av, i, 1);
	remove_one(av, 250);
	remove_one(av, 7);
	remove_one(av, 100);
	assert_int_equal(insert(av, 1000, 1), 7);
	assert_int_equal(insert(av, 1001, 1), 100);
	assert_int_equal(insert(av, 1002, 1), 250);
	assert_int_equal(insert(av, 1003, 1), 300);
	fi_close(&av->fid);
	world_close(&world);
}

static void a_bad_address_fails_alone(void **state)
{
	struct sockaddr_in addrs[3] = { ip(1, 1), ip(2, 1), ip(3, 1) };
	fi_addr_t fi_addr[3];
	int errs[3] = { -1, -1, -1 };
	struct world world;
	struct fid_av *av;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	av = open_av(&world, 0);
	addrs[1].sin_family = AF_INET6;
	assert_int_equal(fi_av_insert(av, addrs, 3, fi_addr, FI_SYNC_ERR, errs), 2);
	assert_int_equal(errs[0], 0);
	assert_int_equal(errs[1], FI_EINVAL);
	assert_int_equal(errs[2], 0);
	assert_int_equal(fi_addr[0], 0);
	assert_int_equal(fi_addr[1], FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_addr[2], 1);
	assert_int_equal(fi_av_insert(av, addrs, 3, fi_addr, FI_SYNC_ERR, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insert(av, addrs, 3, fi_addr, FI_PEEK, NULL), -FI_EBADFLAGS);
	assert_int_equal(fi_av_insert(av, addrs, 3, fi_addr, FI_AV_USER_ID, NULL), -FI_ENOSYS);
	assert_int_equal(fi_av_insert(av, NULL, 3, fi_addr, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insert(av, addrs, SIZE_MAX, fi_addr, 0, NULL), -FI_EINVAL);
	fi_close(&av->fid);
	world_close(&world);
}

static void ipv6_is_a_family_of_its_own(void **state)
{
	struct sockaddr_in6 addrs[2] = { { .sin6_family = AF_INET6, .sin6_port = htons(5) },
					 { .sin6_family = AF_INET6, .sin6_port = htons(5), .sin6_flowinfo = 7 } };
	fi_addr_t fi_addr[2];
	struct world world;
	struct fid_av *av;

	(void) state;
	inet_pton(AF_INET6, "::ffff:1.2.3.4", &addrs[0].sin6_addr);
	inet_pton(AF_INET6, "2001:db8::1", &addrs[1].sin6_addr);
	world_open(&world, &(struct world_attr) { .addr_format = FI_SOCKADDR_IN6 });
	av = open_av(&world, 0);
	assert_int_equal(fi_av_insert(av, addrs, 2, fi_addr, 0, NULL), 2);
	assert_at(av, 0, "fi_sockaddr_in6://[::ffff:1.2.3.4]:5");
	assert_at(av, 1, "fi_sockaddr_in6://[2001:db8::1]:5");
	/* flow labels do not make another peer */
	addrs[1].sin6_flowinfo = 8;
	assert_int_equal(fi_av_insert(av, addrs, 2, fi_addr, 0, NULL), 2);
	assert_int_equal(fi_addr[1], 1);
	fi_close(&av->fid);
	world_close(&world);
}

static void names_and_ranges_of_names(void **state)
{
	fi_addr_t fi_addr[4];
	struct world world;
	struct fid_av *av;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	av = open_av(&world, 0);
	assert_int_equal(fi_av_insertsvc(av, "192.0.2.1", "7471", fi_addr, 0, NULL), 1);
	assert_at(av, fi_addr[0], "fi_sockaddr_in://192.0.2.1:7471");
	assert_int_equal(fi_av_insertsvc(av, "fi_sockaddr_in://192.0.2.7:8", NULL, fi_addr, 0, NULL), 1);
	assert_at(av, fi_addr[0], "fi_sockaddr_in://192.0.2.7:8");
	assert_int_equal(fi_av_insertsvc(av, "192.0.2.1", "no-such-service", fi_addr, 0, NULL), 0);
	assert_int_equal(fi_addr[0], FI_ADDR_NOTAVAIL);

	assert_int_equal(fi_av_insertsym(av, "10.1.1.255", 2, "5000", 2, fi_addr, 0, NULL), 4);
	assert_at(av, fi_addr[0], "fi_sockaddr_in://10.1.1.255:5000");
	assert_at(av, fi_addr[1], "fi_sockaddr_in://10.1.1.255:5001");
	assert_at(av, fi_addr[2], "fi_sockaddr_in://10.1.2.0:5000");
	assert_at(av, fi_addr[3], "fi_sockaddr_in://10.1.2.0:5001");
	/* beyond the last port, and the last address */
	assert_int_equal(fi_av_insertsym(av, "10.1.1.1", 1, "65535", 2, fi_addr, 0, NULL), 1);
	assert_int_equal(fi_addr[1], FI_ADDR_NOTAVAIL);
	assert_int_equal(fi_av_insertsym(av, "255.255.255.255", 2, "1", 1, fi_addr, 0, NULL), 1);
	assert_int_equal(fi_addr[1], FI_ADDR_NOTAVAIL);
	if (unit_has_localhost())
		assert_int_equal(fi_av_insertsym(av, "localhost", 1, "1", 1, fi_addr, 0, NULL), 1);
	else
		print_message("skip: this machine has no address for localhost (/etc/hosts)\n");
	assert_int_equal(fi_av_insertsym(av, "no number", 2, "1", 1, fi_addr, 0, NULL), 0);
	assert_int_equal(fi_av_insertsym(av, NULL, 2, "1", 1, fi_addr, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_insertsym(av, "10.1.1.1", SIZE_MAX, "1", SIZE_MAX, fi_addr, 0, NULL), -FI_EINVAL);
	fi_close(&av->fid);
	world_close(&world);
}

/* A name server that does not answer yet: of names that begin with "stuck". */
static sem_t asked, answer;

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found);

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	if (!node || (hints->ai_flags & AI_NUMERICHOST) || strncmp(node, "stuck", strlen("stuck")))
		return __real_getaddrinfo(node, service, hints, found);
	sem_post(&asked);
	sem_wait(&answer);
	return __real_getaddrinfo("192.0.2.7", service, hints, found);
}

static void *insert_sym(void *av)
{
	assert_int_equal(fi_av_insertsym(av, "stuck8", 2, "5000", 1, NULL, 0, NULL), 2);
	return NULL;
}

static void *insert_svc(void *av)
{
	assert_int_equal(fi_av_insertsvc(av, "stuck", "5001", NULL, 0, NULL), 1);
	return NULL;
}

static void others_insert_while_a_name_is_looked_up(void **state)
{
	void *(*const calls[])(void *av) = { insert_sym, insert_svc };
	struct world world;
	struct fid_av *av;
	pthread_t thread;

	(void) state;
	assert_int_equal(sem_init(&asked, 0, 0) | sem_init(&answer, 0, 0), 0);
	world_open(&world, &(struct world_attr) { 0 });
	for (uint32_t i = 0; i < fab_countof(calls); i++) {
		av = open_av(&world, 0);
		assert_int_equal(pthread_create(&thread, NULL, calls[i], av), 0);
		for (uint32_t lookup = 0; lookup < 2 - i; lookup++) {
			sem_wait(&asked);
			assert_int_equal(pthread_mutex_trylock(&fab(av)->change_lock), 0);
			pthread_mutex_unlock(&fab(av)->change_lock);
			assert_int_equal(insert(av, lookup + 1, 1), lookup);
			sem_post(&answer);
		}
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_at(av, 2 - i, i ? "fi_sockaddr_in://192.0.2.7:5001" : "fi_sockaddr_in://192.0.2.7:5000");
		fi_close(&av->fid);
	}
	world_close(&world);
}

/* ---- with an event queue ---- */

/* fi_av_bind() is deprecated, and served. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void results_go_to_the_event_queue(void **state)
{
	struct sockaddr_in addrs[3] = { ip(1, 1), ip(2, 1), ip(3, 1) };
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry;
	fi_addr_t fi_addr[3];
	struct world world;
	struct fid_av *av;
	struct fid_eq *eq;
	uint32_t event;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	av = open_av(&world, FI_EVENT);
	eq = open_eq(&world);
	assert_int_equal(fi_av_insert(av, addrs, 3, fi_addr, 0, &world), -FI_ENOEQ);
	assert_int_equal(fi_av_bind(av, &eq->fid, FI_SEND), -FI_EBADFLAGS);
	assert_int_equal(fi_av_bind(av, &av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_av_bind(av, &eq->fid, 0), 0);
	assert_int_equal(fi_av_bind(av, &eq->fid, 0), -FI_EINVAL);
	addrs[1].sin_family = 0;
	assert_int_equal(fi_av_insert(av, addrs, 3, fi_addr, 0, &world), 0);
	/* the error first, then how many went in */
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(eq, &err, 0), sizeof(err));
	assert_int_equal(err.data, 1);
	assert_int_equal(err.err, FI_EINVAL);
	assert_ptr_equal(err.context, &world);
	assert_ptr_equal(err.fid, &av->fid);
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(event, FI_AV_COMPLETE);
	assert_int_equal(entry.data, 2);
	assert_ptr_equal(entry.context, &world);
	assert_int_equal(fi_addr[1], FI_ADDR_NOTAVAIL);
	/* what nobody has read goes with the address vector */
	assert_int_equal(fi_av_insert(av, addrs, 3, fi_addr, 0, &world), 0);
	assert_int_equal(fi_close(&eq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_eq_readerr(eq, &err, 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	assert_int_equal(fi_close(&eq->fid), 0);
	world_close(&world);
}

/* ---- lookup, text ---- */

static void lookup_and_straddr_say_how_long_it_is(void **state)
{
	struct sockaddr_in addr = ip(0x0a000001, 80), out;
	struct world world;
	struct fid_av *av;
	char text[64];
	size_t len;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	av = open_av(&world, 0);
	insert(av, 0x0a000001, 80);
	len = 4;
	memset(&out, 0xee, sizeof(out));
	assert_int_equal(fi_av_lookup(av, 0, &out, &len), 0);
	assert_int_equal(len, sizeof(addr));
	assert_memory_equal(&out, &addr, 4);
	assert_int_equal(((uint8_t *) &out)[4], 0xee);
	assert_int_equal(fi_av_lookup(av, 1, &out, &len), -FI_EINVAL);
	assert_int_equal(fi_av_lookup(av, FI_ADDR_UNSPEC, &out, &len), -FI_EINVAL);
	len = sizeof(text);
	assert_ptr_equal(fi_av_straddr(av, &addr, text, &len), text);
	assert_string_equal(text, "fi_sockaddr_in://10.0.0.1:80");
	assert_int_equal(len, strlen(text) + 1);
	len = 5;
	fi_av_straddr(av, &addr, text, &len);
	assert_string_equal(text, "fi_s");
	assert_int_equal(len, strlen("fi_sockaddr_in://10.0.0.1:80") + 1);
	fi_close(&av->fid);
	world_close(&world);
}

/* ---- open, close ---- */

static void attributes_are_checked(void **state)
{
	struct fi_av_attr attr = { .type = FI_AV_UNSPEC };
	struct world world;
	struct fid_av *av;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	assert_int_equal(fi_av_open(&world.domain.domain_fid, &attr, &av, NULL), 0);
	assert_int_equal(attr.type, FI_AV_TABLE);
	fi_close(&av->fid);
	attr.type = 3;
	assert_int_equal(fi_av_open(&world.domain.domain_fid, &attr, &av, NULL), -FI_EINVAL);
	attr = (struct fi_av_attr) { .count = SIZE_MAX };
	assert_int_equal(fi_av_open(&world.domain.domain_fid, &attr, &av, NULL), -FI_EINVAL);
	attr = (struct fi_av_attr) { .flags = FI_READ };
	assert_int_equal(fi_av_open(&world.domain.domain_fid, &attr, &av, NULL), -FI_EBADFLAGS);
	attr = (struct fi_av_attr) { .rx_ctx_bits = 64 };
	assert_int_equal(fi_av_open(&world.domain.domain_fid, &attr, &av, NULL), -FI_EINVAL);
	assert_int_equal(fi_av_open(&world.domain.domain_fid, NULL, &av, NULL), -FI_EINVAL);
	attr = (struct fi_av_attr) { .flags = FI_SYMMETRIC, .count = 1000, .ep_per_node = 4 };
	assert_int_equal(fi_av_open(&world.domain.domain_fid, &attr, &av, NULL), 0);
	assert_int_equal(fab_domain_fini(&world.domain), -FI_EBUSY);
	fab_av_get(fab(av));
	assert_int_equal(fi_close(&av->fid), -FI_EBUSY);
	fab_av_put(fab(av));
	assert_int_equal(fi_av_remove(av, NULL, 0, FI_MORE), -FI_EBADFLAGS);
	fi_close(&av->fid);
	world_close(&world);
}

/* ---- the tables against a model ---- */

#define HOSTS 3000

static void random_inserts_and_removes_as_in_a_plain_array(void **state)
{
	static unsigned refs[HOSTS];
	static fi_addr_t at[HOSTS];
	struct rng rng = { 17 };
	struct world world;
	struct fid_av *av;

	(void) state;
	memset(refs, 0, sizeof(refs));
	world_open(&world, &(struct world_attr) { 0 });
	av = open_av(&world, 0);
	for (int n = 0; n < 30000; n++) {
		uint32_t host = rng_below(&rng, HOSTS);
		union fab_sockaddr addr = { .sin = ip(host, 1) };

		assert_int_equal(fab_av_find(fab(av), &addr), refs[host] ? at[host] : FI_ADDR_NOTAVAIL);
		if (refs[host] && rng_below(&rng, 2)) {
			remove_one(av, at[host]);
			refs[host]--;
		} else {
			fi_addr_t fi_addr = insert(av, host, 1);

			if (refs[host]++)
				assert_int_equal(fi_addr, at[host]);
			at[host] = fi_addr;
		}
	}
	for (uint32_t host = 0; host < HOSTS; host++) {
		if (refs[host])
			assert_int_equal(fab_av_addr(fab(av), at[host])->sin.sin_addr.s_addr, htonl(host));
	}
	fi_close(&av->fid);
	world_close(&world);
}

static void ten_thousand_peers_cost_little(void **state)
{
	struct world world;
	struct fid_av *av;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	av = open_av(&world, 0);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(insert(av, i, 1), i);
	assert_int_equal(sizeof(struct fab_av_entry), 32);
	assert_true(fab(av)->slot_mask + 1 <= 10000 * 4);
	assert_null(fab_av_addr(fab(av), 10000));
	fi_close(&av->fid);
	world_close(&world);
}

/* ---- watchers and threads ---- */

struct watcher {
	struct fab_av_watch watch;
	unsigned inserted, removed;
	fi_addr_t last;
};

static void on_insert(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	struct watcher *watcher = fab_container(watch, struct watcher, watch);

	assert_int_equal(addr->sa.sa_family, AF_INET);
	watcher->inserted++;
	watcher->last = fi_addr;
}

static void on_remove(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	struct watcher *watcher = fab_container(watch, struct watcher, watch);

	assert_int_equal(addr->sa.sa_family, AF_INET);
	watcher->removed++;
	watcher->last = fi_addr;
}

static void watchers_hear_of_what_is_new_and_what_goes(void **state)
{
	struct watcher watcher = { .watch = { .inserted = on_insert, .removed = on_remove } };
	struct world world;
	struct fid_av *av;
	fi_addr_t a;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	av = open_av(&world, 0);
	insert(av, 1, 1);
	fab_av_watch(fab(av), &watcher.watch);
	a = insert(av, 2, 1);
	assert_int_equal(watcher.inserted, 1);
	assert_int_equal(watcher.last, a);
	insert(av, 2, 1);
	assert_int_equal(watcher.inserted, 1);
	remove_one(av, a);
	assert_int_equal(watcher.removed, 0);
	remove_one(av, a);
	assert_int_equal(watcher.removed, 1);
	fab_av_unwatch(fab(av), &watcher.watch);
	insert(av, 3, 1);
	assert_int_equal(watcher.inserted, 1);
	fi_close(&av->fid);
	world_close(&world);
}

static void *insert_many(void *arg)
{
	for (uint32_t i = 0; i < 2000; i++)
		insert(arg, i, 1);
	return NULL;
}

static void entries_are_read_while_others_come(void **state)
{
	struct world world;
	struct fid_av *av;
	pthread_t thread;
	fi_addr_t next = 0;

	(void) state;
	world_open(&world, &(struct world_attr) { .threading = FI_THREAD_SAFE });
	av = open_av(&world, 0);
	assert_int_equal(pthread_create(&thread, NULL, insert_many, av), 0);
	while (next < 2000) {
		const union fab_sockaddr *addr = fab_av_addr(fab(av), next);

		if (!addr)
			continue;
		assert_int_equal(addr->sin.sin_addr.s_addr, htonl(next));
		assert_int_equal(fab_av_find(fab(av), addr), next);
		next++;
	}
	pthread_join(thread, NULL);
	fi_close(&av->fid);
	world_close(&world);
}

/* An address whose bytes are all the same, and its port. */
static struct sockaddr_in6 uniform(uint8_t byte)
{
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6, .sin6_port = htons(byte) };

	memset(&addr.sin6_addr, byte, sizeof(addr.sin6_addr));
	return addr;
}

struct turns {
	struct fid_av *av;
	_Atomic bool over;
};

static void *take_turns(void *arg)
{
	struct turns *turns = arg;
	fi_addr_t fi_addr = 0;

	for (int i = 0; i < 20000; i++) {
		struct sockaddr_in6 addr = uniform(1 + i % 2);

		remove_one(turns->av, fi_addr);
		assert_int_equal(fi_av_insert(turns->av, &addr, 1, &fi_addr, 0, NULL), 1);
	}
	turns->over = true;
	return NULL;
}

/* Who looks an entry up that is removed, and whose place another gets, is given the one, the other or none: never some
 * bytes of each. */
static void an_address_is_looked_up_whole(void **state)
{
	struct sockaddr_in6 addr = uniform(2), found;
	struct turns turns = { .over = false };
	struct world world;
	pthread_t thread;

	(void) state;
	world_open(&world, &(struct world_attr) { .threading = FI_THREAD_SAFE, .addr_format = FI_SOCKADDR_IN6 });
	turns.av = open_av(&world, 0);
	assert_int_equal(fi_av_insert(turns.av, &addr, 1, NULL, 0, NULL), 1);
	assert_int_equal(pthread_create(&thread, NULL, take_turns, &turns), 0);
	while (!turns.over) {
		size_t len = sizeof(found);

		if (fi_av_lookup(turns.av, 0, &found, &len))
			continue;
		addr = uniform(found.sin6_addr.s6_addr[0]);
		assert_memory_equal(&found.sin6_addr, &addr.sin6_addr, sizeof(addr.sin6_addr));
		assert_int_equal(found.sin6_port, addr.sin6_port);
	}
	pthread_join(thread, NULL);
	fi_close(&turns.av->fid);
	world_close(&world);
}

static void no_memory_fails_one_address(void **state)
{
	struct world world;
	struct fid_av *av = NULL;
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	fi_addr_t fi_addr;
	int ret = -FI_ENOMEM;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	for (long n = 0; ret; n++) {
		fail_alloc(n);
		ret = fi_av_open(&world.domain.domain_fid, &attr, &av, NULL);
		fail_alloc(-1);
		assert_true(!ret || ret == -FI_ENOMEM);
	}
	for (uint32_t i = 0; i < 200; i++) {
		for (long n = 0; ; n++) {
			fail_alloc(n);
			fi_addr = insert(av, i, 1);
			fail_alloc(-1);
			if (fi_addr != FI_ADDR_NOTAVAIL)
				break;
			assert_true(n < 4);
		}
		assert_int_equal(fi_addr, i);
	}
	fi_close(&av->fid);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indices_count_from_0_and_calls_return_the_count),
		cmocka_unit_test(an_address_twice_is_one_entry_until_the_last_remove),
		cmocka_unit_test(the_lowest_free_index_is_used_again),
		cmocka_unit_test(a_bad_address_fails_alone),
		cmocka_unit_test(ipv6_is_a_family_of_its_own),
		cmocka_unit_test(names_and_ranges_of_names),
		cmocka_unit_test(others_insert_while_a_name_is_looked_up),
		cmocka_unit_test(results_go_to_the_event_queue),
		cmocka_unit_test(lookup_and_straddr_say_how_long_it_is),
		cmocka_unit_test(attributes_are_checked),
		cmocka_unit_test(random_inserts_and_removes_as_in_a_plain_array),
		cmocka_unit_test(ten_thousand_peers_cost_little),
		cmocka_unit_test(watchers_hear_of_what_is_new_and_what_goes),
		cmocka_unit_test(entries_are_read_while_others_come),
		cmocka_unit_test(an_address_is_looked_up_whole),
		cmocka_unit_test(no_memory_fails_one_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
