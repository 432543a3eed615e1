/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes of one host on different cores. A measurement shorter than the scheduler's balancing would otherwise be
 * of two processes that take turns on one core.
 */
#include "pp.h"

#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* True if the control channel begins and ends at the same address. */
static bool peer_is_here(const struct pp *pp)
{
	struct sockaddr_storage own, peer;
	socklen_t own_len = sizeof(own), peer_len = sizeof(peer);

	if (pp->ctrl < 0 || getsockname(pp->ctrl, (struct sockaddr *) &own, &own_len) ||
	    getpeername(pp->ctrl, (struct sockaddr *) &peer, &peer_len) || own.ss_family != peer.ss_family)
		return false;
	if (own.ss_family == AF_INET6)
		return !memcmp(&((struct sockaddr_in6 *) &own)->sin6_addr, &((struct sockaddr_in6 *) &peer)->sin6_addr,
			       sizeof(struct in6_addr));
	return own.ss_family == AF_INET &&
	       ((struct sockaddr_in *) &own)->sin_addr.s_addr == ((struct sockaddr_in *) &peer)->sin_addr.s_addr;
}

/* The first processor of the core that this processor is a thread of; the processor itself if that is unknown. */
static int core_of(int cpu)
{
	char path[96];
	int first = cpu;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
	file = fopen(path, "r");
	if (!file)
		return cpu;
	if (fscanf(file, "%d", &first) != 1)
		first = cpu;
	fclose(file);
	return first;
}

void pp_pin(struct pp *pp)
{
	int server = -1, client = -1, cpu;
	cpu_set_t allowed, one;

	if (!pp->opts->pin || !peer_is_here(pp) || sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		if (server < 0)
			server = cpu;
		else if (client < 0 || (core_of(client) == core_of(server) && core_of(cpu) != core_of(server)))
			client = cpu;
	}
	if (client < 0)
		return;
	CPU_ZERO(&one);
	CPU_SET(pp->opts->server ? client : server, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return;
	pp->pinned = true;
	pp->spins = PP_POLLS_PINNED;
	pp_debug(pp, "on processor %d; the peer takes processor %d", pp->opts->server ? client : server,
		 pp->opts->server ? server : client);
}
