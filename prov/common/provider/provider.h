/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a provider is: everything that prov/common calls in a provider, in the order of a provider's life. Each struct
 * is declared in the room that calls it, named beside it; this page has all of them, and test/layering checks that no
 * slot is missing. The smallest provider, in one file to copy from: test/provider/loop.c. Steps: HACKING.md, "Add a
 * provider".
 *
 * Words used below:
 *
 *   control      on the thread of the application, no lock of ours held; may block, allocate and log
 *   data call    on the thread of the application, no lock held; takes the engine's lock itself (fab_engine_enter());
 *                does not block, and does not allocate for a small message
 *   pass         the engine's lock is held; the thread is one that reads or waits on a queue, or the engine's own
 *                (FI_PROGRESS_AUTO). Does not block, takes no other engine's lock, closes no object of an application
 *   under lock   the engine's lock is held, on any of those threads; otherwise as in a pass
 *
 * Locks are taken in this order: domain->join_lock, av->change_lock, an engine's lock, fabric->lock, and locks of the
 * provider last. Two engines' locks are never held at once.
 *
 *
 * 1. Load, and fi_getinfo(3)
 *
 * struct fi_provider (<rdma/providers/fi_prov.h>): what the entry of a provider returns. Control.
 *
 *   getinfo          Any thread, several at once. Makes offers, hands them to fab_hints_match(), or to fab_ip_getinfo()
 *                    where addresses are IP. The caller owns the list
 *   fabric           fi_fabric(3): fab_fabric_open() with the tables of the fabric
 *   cleanup          Once, at the end of the process, with no fabric open: free what the entry allocated
 *
 * struct fab_offer (common/hints/hints.h): one entry that can be served, and what matching must know beside. Data, read
 * during the call only. Every provider's getinfo fills it; with struct fab_ip all but `info`.
 *
 *   info             The entry, complete, each attribute the most that can be had. Borrowed; the answer is a copy
 *   secondary_caps   Capabilities that are answered though nobody asked
 *   mode_told        Mode bits about what the provider does to programs that take them; never demanded
 *   mr_mode_need     Memory registration modes that hints must allow
 *   mr_mode_can      Those that are honoured when hints have them
 *   order_costs      Message orders that are answered on request only
 *   tclasses         Whether traffic classes mean anything
 *   auth_key_max     Longest authorization key in bytes; 0: there are none
 *   tx_size rx_size  What hints that leave the size open get
 *
 * struct fab_ip (common/offers/offers.h): getinfo of a provider with IP addresses. Control: called within fi_getinfo(),
 * and `fill` also within fi_endpoint() (fab_ip_check). Any thread, so its functions keep no state.
 *
 *   prov             Borrowed, for the log
 *   iface            Filter of interfaces, or NULL. Borrowed for the call
 *   types type_cnt   Endpoint types, in the order of the answer. Borrowed for the call
 *   place            Is there something of the provider's on this interface? May rename domain and fabric. May block.
 *                    NULL: on all
 *   fill             All attributes of an entry but caps, names, addresses and versions. The info is the caller's;
 *                    memory that it gets a pointer to is freed with it (fi_freeinfo)
 *   nic              A new fid_nic, which the entry then owns; fab_nic_open() for what the kernel knows. May block
 *   offer            The rest of a struct fab_offer
 *
 *
 * 2. Fabric, domain
 *
 * A fabric has two tables of libfabric's own, struct fi_ops and struct fi_ops_fabric. prov/common has a function for
 * each slot but `domain`; that calls fab_domain_open(), or fab_domain_init() where the provider's domain embeds a
 * struct fab_domain.
 *
 * struct fab_domain_ops (common/domain/domain.h): tables of a domain. They are static, shared by all domains, and are
 * filled up with -FI_ENOSYS. All control.
 *
 *   fid              close (fab_domain_close), bind (fab_domain_bind), control (fab_domain_control, or
 *                    fab_domain_work_control with FI_TRIGGER), ops_set (fab_domain_set_ops)
 *   domain           av_open (fab_av_open), cq_open (fab_cq_open), cntr_open (fab_cntr_open), poll_open
 *                    (fab_poll_open), endpoint2 (fab_endpoint2), query_collective (fab_coll_query); endpoint is the
 *                    provider's: fab_ep_open() with an init function
 *   mr               fab_mr_ops
 *   lend             fab_lend, or NULL: no object can be exported (fi_peer(3)). Called by fi_export_fid()
 *
 *
 * 3. Endpoint: open, bind, enable
 *
 * fab_ep_init_fn (common/endpoint/ep.h): the provider's part of opening. Control. Gets zeroed memory that begins with a
 * struct fab_ep; calls fab_ep_init() with the tables below; returns 0, or an error with nothing left to undo. The
 * memory is the provider's from then on, until its close slot frees it.
 *
 * struct fab_ep_ops (common/endpoint/ep.h): tables of an endpoint, static as those of the domain. All slots of the
 * first three are control, except `cancel`.
 *
 *   fid              close (see 6), bind (fab_ep_bind), control: FI_ENABLE is the provider's, which calls
 *                    fab_ep_check_enable(), takes the engine's lock, starts what it has (fab_source_add() ...) and sets
 *                    base.enabled; the rest goes to fab_ep_control(). base.engine is final when fab_ep_check_enable()
 *                    has returned 0. ops_open: fab_ep_ops_open, with a profiler
 *   ep               cancel: a data call; completes one operation with FI_ECANCELED, or does nothing. getopt, setopt:
 *                    fab_ep_getopt and fab_ep_setopt, or called for options that the provider does not know
 *   cm               setname, getname, connect ...; join: fab_coll_join with FI_COLLECTIVE. NULL: none
 *   msg tagged rma atomic
 *                    The data calls, by capability: FAB_CALLS_MSG and its kin. NULL: no such capability
 *   collective       fab_coll_ops, or NULL
 *   profiler         struct fab_profiler, or NULL
 *
 * struct fab_profiler (common/endpoint/profile.h): numbers about an endpoint, fi_profile(3). Called under lock, on the
 * thread of the application.
 *
 *   vars             Which FI_VAR_* there are
 *   events           Whether the provider calls fab_profile_event()
 *   read             The value of a number
 *   queue            Copies messages that wait into the caller's array, as many as it has room for; returns their
 *                    number in all
 *
 * struct fab_pep_ops (common/endpoint/pep.h): passive endpoints, of providers with FI_EP_MSG. Control, but for what is
 * said.
 *
 *   cm_data_max      Bytes of private data, at most
 *   bind             fi_listen() and fi_getname(): have an address, in pep->addr. May be bound already
 *   unbind           fi_setname(): give it back
 *   listen           From here on requests may come: fab_pep_request(), under lock of the EQ's engine. May take that
 *                    lock
 *   stop             fi_close(), first: when it returns, no request comes and nothing of the provider's runs
 *   fini             fi_close(), last: free what the provider keeps behind pep; pep itself is freed by the caller
 *   reject           fi_reject(): answer the request and free it. It is the provider's from here on
 *   drop             A request that nobody wants: free it, no answer is due. May block. May be called under lock of an
 *                    engine; fabric->lock is not held
 *   describe         Adds to the info of a request; the info is the caller's. May be called under lock. NULL: nothing
 *   advertise        Changes the name that fi_getname() gives. NULL: it is the address bound
 *
 *
 * 4. Data calls
 *
 * struct fab_calls (common/calls/calls_message.h): what the data calls end in. A static const of one file of the
 * provider, which alone includes "common/calls/calls.h".
 *
 *   prov             For the log
 *   submit           A data call: sends, writes, reads, atomics. 0: one completion follows, if one is due, by
 *                    fab_ep_complete() or fab_ep_fail(). -FI_EAGAIN: a queue is full, nothing was done. Another error:
 *                    nothing was done. op, and the vectors behind it, are the caller's and gone when it returns; the
 *                    buffers are the provider's until the completion, with FI_INJECT only until it returns
 *   post_recv        A data call: receives. The same
 *   send_flags write_flags read_flags recv_flags trecv_flags atomic_flags
 *                    Flags that the calls with a message may have; others are refused before submit sees them
 *   iov_limit rma_limit
 *                    Entries of a local and of a remote vector; longer ones are refused as well
 *   atomic_max       Bytes of an atomic's elements
 *
 * struct fab_hook (common/op/op.h): an operation with op->hooked ends in a function in place of a completion.
 * fab_recv_*() see to it; a provider that ends operations by itself asks for it.
 *
 *   done             Under lock, in the middle of sending or receiving: submits nothing. The hook is its owner's again
 *
 * struct fab_recv_ops (common/receive/recv.h): a provider that matches messages with receives (struct fab_recv). A
 * constant that the compiler sees. Functions: under lock, within fab_recv_post() or a pass.
 *
 *   iov_max          Entries of a receive, at most
 *   iov_own          Those that it has room for in itself
 *   keeps_desc       Whether descriptors of local memory are kept with a receive
 *   take             A receive has taken a message that was kept: put its bytes there and finish, now or later. The
 *                    message is in no queue any more, and is the provider's to free. False: its endpoint receives
 *                    nothing any more
 *   drop             Nobody is to have it. Likewise the provider's to free
 *   reporter         The endpoint on whose queue it ends, of receives that several share. NULL: recv->ep
 *   unknown          FI_SOURCE_ERR: write the error of a message from a sender that is in no vector. NULL: not offered
 *
 * struct fab_coll_net (common/collective/collective.h): what collectives are made of. Under lock, never from within a
 * completion; none blocks.
 *
 *   submit           A message to or from a member (FAB_OP_CSEND, FAB_OP_CRECV), which ends in its hook
 *   cancel           Take one back: its hook is called, now or later
 *   watch            Be connected to a member, and call fab_coll_lost() if that ends
 *   abort            Tell a member that the group has failed. May be called while a message is parsed
 *   is_self          Is that our own address? A question, no more
 *
 *
 * 5. Progress
 *
 * A provider is called in a pass because it has left one of these with the engine (common/engine/engine.h). All are
 * embedded in something of the provider's, which has to stay until it has been taken out again.
 *
 * struct fab_source: a file descriptor, from fab_source_add() to fab_source_del().
 *
 *   ready            The descriptor is as was asked (level triggered). Pass
 *   poll             One non-blocking read without being told; true if it gave anything. NULL: only `ready`. Pass
 *
 * struct fab_timer: from fab_timer_start() until it has fired or fab_timer_stop().
 *
 *   fire             Once. The timer may be started again in here. Pass
 *
 * struct fab_flush: from fab_engine_flush_later() until it is called or fab_flush_cancel().
 *
 *   flush            At the start of the next pass, and before a thread sleeps: send what was held back. Pass
 *
 * struct fab_poll_fn: in engine->polls as long as there is hardware to look at.
 *
 *   poll             Every pass; true if it found anything. With watchers, finding nothing obliges it to make
 *                    engine->epfd readable when there is something. Pass
 *
 * struct fab_defer: memory that sources of this pass may still point to, handed to fab_engine_defer().
 *
 *   free             The pass is over: free it. Under lock
 *
 * struct fab_av_watch (common/av/vector.h): an endpoint that keeps something by fi_addr, from fab_av_watch() to
 * fab_av_unwatch(). On the thread that changes the vector, av->change_lock held, no engine's lock: it may take one, and
 * changes no vector.
 *
 *   inserted         An address has this fi_addr now
 *   removed          It has none any more; the number may be used again as soon as this returns
 *
 * struct fab_pace (common/pace/pace.h): connects in turn, so that a listener is not flooded. Under lock.
 *
 *   young_max        How many attempts may be under way at once
 *   begin            An attempt that was in line may begin
 *
 *
 * 6. Close
 *
 * The close slot of an endpoint, control, in this order: fab_ep_check_close() and fab_coll_check_close(), which may
 * refuse (-FI_EBUSY); refuse new work; fab_trigger_close(), with triggered operations; under lock, take out every
 * source, timer and flush, and complete what is outstanding with FI_ECANCELED; fab_av_unwatch() without the lock;
 * fab_eq_purge(), if there is an EQ; fab_ep_fini(), which gives back CQs, counters, vectors and the domain; free the
 * memory. Domain and fabric answer -FI_EBUSY by themselves while something of theirs is open.
 */
#ifndef FAB_PROVIDER_H
#define FAB_PROVIDER_H

#include "common/av/av.h"
#include "common/collective/collective.h"
#include "common/domain/domain.h"
#include "common/endpoint/endpoint.h"
#include "common/engine/engine.h"
#include "common/hints/hints.h"
#include "common/memory/memory.h"
#include "common/net/net.h"
#include "common/offers/offers.h"
#include "common/ops/ops.h"
#include "common/queue/queue.h"
#include "common/receive/receive.h"

#endif
