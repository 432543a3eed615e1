/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The interface between prov/common and a provider: everything that prov/common calls in a provider, in the order of a
 * provider's life. Each struct is declared in the header named beside it. test/layering checks that this page has all
 * structs with all slots. test/provider/loop.c is a complete small provider in one file, to copy from. HACKING.md, "Add
 * a provider", lists the steps.
 *
 * Contexts in which functions are called:
 *
 *   control      on the application's thread, with none of our locks held. May block, allocate and log
 *   data call    on the application's thread, with no lock held; takes the engine's lock itself (fab_engine_enter()).
 *                Does not block, and allocates nothing for a small message
 *   pass         with the engine's lock held, on a thread that reads or waits on a queue, or on the engine's own thread
 *                (FI_PROGRESS_AUTO). Does not block, takes no other engine's lock, closes no object of an application
 *   under lock   with the engine's lock held, on any of these threads. The rules of a pass hold, too
 *
 * Order of locks: domain->engines.join_lock, av->change_lock, an engine's lock, fabric->lock, locks of the provider.
 * The only lock of an engine that is taken while another engine's is held is that of the domain's own engine, with
 * FI_THREAD_COMPLETION.
 *
 *
 * 1. Load, and fi_getinfo(3)
 *
 * struct fi_provider (<rdma/providers/fi_prov.h>): the return value of a provider's entry function. Control.
 *
 *   getinfo          Any thread, several at once. Makes offers and passes them to fab_hints_match(), or to
 *                    fab_ip_getinfo() if addresses are IP. The caller owns the list
 *   fabric           fi_fabric(3): fab_fabric_open() with the tables of the fabric
 *   cleanup          Called once, at the end of the process, when no fabric is open: free the memory of the entry
 *                    function
 *
 * struct fab_offer (common/hints/hints.h): an entry that the provider offers, and rules for matching it. Data, read
 * during the call only. getinfo fills it; with struct fab_ip all members but `info`.
 *
 *   info             The entry, complete, each attribute with the most that the provider can do. Borrowed; the answer
 *                    is a copy
 *   secondary_caps   Capabilities in the answer although hints do not ask for them
 *   mode_told        Mode bits that are answered if hints have them, and never required
 *   mr_mode_need     Memory registration modes that hints must allow
 *   mr_mode_told     Memory registration modes that are answered if hints have them, and never required
 *   mr_basic         True if hints with FI_MR_BASIC match
 *   order_costs      Message orders that are answered on request only
 *   tclasses         True if packets are marked with traffic classes
 *   auth_key_max     Longest authorization key in bytes; 0: keys are not supported
 *   tx_size rx_size  Queue sizes for hints that leave them open
 *
 * struct fab_ip (common/offers/offers.h): getinfo of a provider with IP addresses. Control: called within fi_getinfo();
 * `fill` is called within fi_endpoint(), too (fab_ip_check()). Any thread, so its functions keep no state.
 *
 *   prov             Borrowed, for the log
 *   iface            Filter of interfaces, or NULL. Borrowed for the call
 *   types type_cnt   Endpoint types, in the order of the answer. Borrowed for the call
 *   place            True if the provider has a device for this interface. May change the names of domain and fabric.
 *                    May block. NULL: true for all interfaces
 *   most             The largest attributes that entries can have. Borrowed. NULL: `fill` sets them
 *   fill             Set or change attributes of an entry, except caps, names, addresses and versions. The info
 *                    belongs to the caller; fi_freeinfo() frees the memory to which it points. NULL: those of `most`
 *                    stay
 *   nic              Make the fid_nic that the entry will own; fab_nic_open() makes one from the kernel's data. May
 *                    block
 *   offer            The other members of the struct fab_offer
 *
 *
 * 2. Fabric, domain
 *
 * A fabric has two tables of libfabric, struct fi_ops and struct fi_ops_fabric. prov/common has a function for each
 * slot: fab_fabric_open() has the first table, FAB_FABRIC_SLOTS and fab_domain_open() fill the second. A provider that
 * embeds a struct fab_fabric or fab_domain in its own calls fab_fabric_init() or fab_domain_init() itself.
 *
 * struct fab_domain_ops (common/domain/domain.h): tables of a domain. They are static, all domains share them, and
 * empty slots are filled with -FI_ENOSYS. All control.
 *
 *   fid              FAB_DOMAIN_FID: close (fab_domain_close), control (fab_domain_control; with FI_TRIGGER the
 *                    provider's own, which hands its struct fab_calls to fab_domain_work_control())
 *   domain           FAB_DOMAIN_SLOTS; av_open (fab_av_open), cq_open (fab_cq_open), query_collective
 *                    (fab_coll_query)
 *   mr               fab_mr_ops
 *   lend             fab_lend, or NULL: objects cannot be exported (fi_peer(3)). Called by fi_export_fid()
 *   ep_init ep_size  See 3; bytes of the provider's struct of an endpoint
 *
 * struct fab_mr_watch (common/regions/regions.h): of a provider whose peers may reach regions without fab_mr_verify().
 * It sets mr_map.watch after it opened the domain. Control.
 *
 *   opened           A region that was registered is in the map
 *   withdraw         Take such access back, and wait until nobody is in the middle of one. May block. 0; -FI_EBUSY
 *   fini             The domain ends, after its engines: free what belongs to mr_map.watch_data
 *
 * struct fab_mrc_ops (common/mrcache/mrcache.h): of a provider that registers the buffers of operations itself. Called
 * from inside of the calls of the cache that may block; no lock of the cache is held.
 *
 *   reg              Register memory with the device. 0 and the region; -FI_E*, logged
 *   dereg            End a registration
 *
 *
 * 3. Endpoint: open, bind, enable
 *
 * fab_ep_init_fn (common/domain/domain.h): the provider's part of opening, called by fab_ep_open(). Control. Gets
 * zeroed memory that begins with a struct fab_ep, and calls fab_ep_init() with the tables below. Returns 0, or an error
 * after undoing everything. From then on the provider owns the memory, until its close slot frees it.
 *
 * struct fab_ep_ops (common/endpoint/ep.h): tables of an endpoint, static as those of the domain. All slots of the
 * first three tables are control, except `cancel`.
 *
 *   fid              close (see 6), bind (fab_ep_bind), control (fab_ep_control). ops_open: fab_ep_ops_open, with a
 *                    profiler
 *   ep               cancel: a data call; completes one operation with FI_ECANCELED, or does nothing. getopt, setopt:
 *                    fab_ep_getopt and fab_ep_setopt, which the provider's own may call for options it does not know
 *   cm               setname (fab_ep_setname, of IP endpoints), getname (fab_ep_getname likewise), connect ...; join:
 *                    fab_coll_join with FI_COLLECTIVE. NULL: none
 *   msg tagged rma atomic
 *                    The data calls: FAB_CALLS_MSG, FAB_CALLS_TAGGED, FAB_CALLS_RMA, FAB_CALLS_ATOMIC. An endpoint
 *                    without the capability gets none of them. NULL: the provider lacks the capability
 *   collective       fab_coll_ops, or NULL. Likewise
 *   profiler         struct fab_profiler, or NULL
 *   enable           fi_enable(3): calls fab_ep_check_enable(), takes the engine's lock, starts its sources
 *                    (fab_source_add() ...) and sets base.enabled. base.engine is final when fab_ep_check_enable() has
 *                    returned 0. Control
 *
 * struct fab_profiler (common/endpoint/profile.h): statistics of an endpoint, fi_profile(3). Called under lock, on the
 * application's thread.
 *
 *   vars             The FI_VAR_* that the provider has
 *   events           True if the provider calls fab_profile_event()
 *   read             Returns the value of a variable
 *   queue            Copies unexpected messages into the caller's array, as many as it has room for; returns the
 *                    number of all
 *
 * struct fab_pep_ops (common/endpoint/pep.h): passive endpoints, of providers with FI_EP_MSG. Control, unless a slot
 * says otherwise.
 *
 *   cm_data_max      Most bytes of private data
 *   backlog          The default of FI_BACKLOG; 0: 128
 *   bind             For fi_listen() and fi_getname(): bind to an address, and set pep->addr. May be bound already
 *   unbind           For fi_setname(): release the address
 *   listen           Accept connection requests from now on: fab_pep_request(), under the lock of the EQ's engine. May
 *                    take that lock
 *   stop             First step of fi_close(): when it returns, no request comes and no function of the provider runs
 *   fini             Last step of fi_close(): free the provider's memory behind pep; the caller frees pep itself
 *   reject           fi_reject(): answer the request and free it. The provider owns it from here on
 *   drop             Free a request without an answer. May block. May be called under the lock of an engine;
 *                    fabric->lock is not held
 *   describe         Complete the info of a request; the info belongs to the caller. May be called under lock. NULL:
 *                    nothing to add
 *   advertise        Change the name that fi_getname() returns. NULL: it is the address bound
 *
 *
 * 4. Data calls
 *
 * struct fab_calls (common/calls/calls_message.h): the functions and limits behind the data calls. A static const in
 * one file of the provider. Only this file includes "common/calls/calls.h".
 *
 *   prov             For the log
 *   submit           A data call: sends, writes, reads, atomics. 0: one completion will be reported by
 *                    fab_ep_complete() or fab_ep_fail(), if the operation has one. -FI_EAGAIN: a queue is full, and
 *                    nothing was done. Another error: nothing was done. op and its vectors belong to the caller, and
 *                    are valid only during the call. The provider owns the buffers until the completion; with
 *                    FI_INJECT only until it returns
 *   post_recv        A data call: receives. The same
 *   send_one         NULL, or submit for the calls that send one buffer; may be an inline function
 *   rma_one          NULL, or submit for the reads and writes with one buffer at each end; likewise
 *   recv_now         NULL, or tried before post_recv for the calls with one buffer; FAB_OP_NOT_NOW: nothing was done.
 *                    May be an inline function
 *   send_flags write_flags read_flags recv_flags trecv_flags atomic_flags
 *                    Flags that calls with a message may have; other flags are refused before submit is called
 *   iov_limit rma_limit
 *                    Most entries of a local and of a remote vector; longer vectors are refused, too
 *   atomic_max       Most bytes of an atomic, all elements together
 *
 * struct fab_hook (common/op/op.h): for an operation with op->hooked set, a function that is called instead of writing
 * a completion. fab_recv_*() do this for receives; a provider does it for operations that it completes itself.
 *
 *   done             Under lock, in the middle of sending or receiving: must not submit operations. The provider does
 *                    not use the hook after this
 *
 * struct fab_recv_ops (common/receive/recv.h): of a provider that matches messages with receives (struct fab_recv). A
 * constant that the compiler sees. Functions are called under lock, when a receive is posted or in a pass.
 *
 *   iov_max          Most entries of a receive's vector
 *   iov_own          Entries with room in struct fab_rx itself
 *   keeps_desc       True if descriptors of local memory are kept with a receive
 *   take             A receive has taken a kept message: copy the bytes to it and finish it, now or later. The message
 *                    is in no queue any more, and the provider frees it. False: its endpoint does not receive any more
 *   drop             A kept message is discarded. The provider frees it
 *   reporter         The endpoint whose completion queue reports a receive that several endpoints share. NULL: recv->ep
 *   unknown          With FI_SOURCE_ERR: write the error entry of a message whose sender is not in the address vector.
 *                    NULL: FI_SOURCE_ERR is not offered
 *
 * struct fab_coll_net (common/collective/collective.h): messages and connections for collectives. Called under lock,
 * never from within a completion; none blocks.
 *
 *   submit           Send a message to a member (FAB_OP_CSEND) or receive one (FAB_OP_CRECV). Ends by calling its hook
 *   cancel           Cancel a message: its hook is called, now or later
 *   watch            Connect to a member, and call fab_coll_lost() if the connection ends
 *   life             The number of the process with which a connection is. Changes nothing
 *   abort            Tell a member that the group has failed. May be called while a message is parsed
 *   forget           Drop messages of a group that nobody has taken, of connections that have ended
 *   is_self          True if the address is this endpoint's own. Changes nothing
 *
 *
 * 5. Progress
 *
 * An engine calls a provider in its passes if the provider has registered one of these structs with it
 * (common/engine/engine.h). The provider embeds them in structs of its own, which must live until they are taken out
 * again.
 *
 * struct fab_source: a file descriptor, from fab_source_add() to fab_source_del().
 *
 *   ready            The descriptor has the events asked for (level triggered). Pass
 *   poll             Try one non-blocking read without an event; true if it read anything. NULL: only `ready`. Pass
 *   glance_len       Bytes that a glance may read in place of poll; 0: poll must be called. NULL: always. Pass
 *   glanced          With glance_len: a glance has read so many bytes, or failed; result as of poll. Pass
 *
 * struct fab_bell: from fab_bell_open() to fab_bell_close(). Any thread rings it (fab_bell_ring()).
 *
 *   rung             The bell was rung, once or several times. Pass
 *
 * struct fab_timer: from fab_timer_start() until it has fired or fab_timer_stop().
 *
 *   fire             Called once. May start the timer again. Pass
 *
 * struct fab_flush: from fab_engine_flush_later() until it is called or fab_flush_cancel().
 *
 *   flush            Called at the start of the next pass, and before a thread sleeps: send what was held back. Pass
 *
 * struct fab_poll_fn: from fab_poll_add() to fab_poll_del(), as long as there is hardware to poll.
 *
 *   poll             Called in every pass; true if it found anything. If the engine has watchers and it found nothing,
 *                    it must make engine->epfd readable as soon as there is something. Pass
 *   words            NULL, or called after poll has found nothing: name words in memory that are 0 as long as it would
 *                    find nothing. Under lock
 *
 * struct fab_survey: from fab_survey_add() to fab_survey_del(), while an endpoint is enabled.
 *
 *   look             Write what is pending to the endpoint's record in the page of the process, and return its number
 *                    (common/stats). At most ten times a second or so; no operation may end. Pass, or before a sleep
 *
 * struct fab_defer: memory to which sources of this pass may still point, handed to fab_engine_defer().
 *
 *   free             Free it: the pass is over. Under lock
 *
 * struct fab_av_watch (common/av/vector.h): of an endpoint that keeps data by fi_addr_t, from fab_av_watch() to
 * fab_av_unwatch(). Called on the thread that changes the vector, with av->change_lock held and no engine's lock. May
 * take an engine's lock; must not change a vector.
 *
 *   inserted         An address was inserted at this fi_addr_t
 *   removed          It was removed; the fi_addr_t may be used again as soon as this returns
 *
 * struct fab_pace (common/pace/pace.h): bounds the attempts to connect under way, so that no listener is flooded. Under
 * lock.
 *
 *   young_max        The most attempts that may be young at a time
 *   begin            An attempt that waited in line may begin
 *
 *
 * 6. Close
 *
 * The close slot of an endpoint (control) does this, in this order: call fab_ep_check_close() and
 * fab_coll_check_close(), which may refuse (-FI_EBUSY); refuse new operations; call fab_trigger_close(), if it has
 * triggered operations; under lock, take out every source, timer and flush, and complete outstanding operations with
 * FI_ECANCELED; call fab_av_unwatch() without the lock; call fab_ep_fini(), which drops the references to CQs,
 * counters, vectors and the domain, and events that nobody has read; free the memory. Domain and fabric return
 * -FI_EBUSY by themselves while objects opened from them exist.
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

/* The slots of fabrics and domains that prov/common has for every provider. A table sets its other slots itself. */
#define FAB_FABRIC_SLOTS \
	.eq_open = fab_eq_open, .wait_open = fab_wait_open, .trywait = fab_trywait, .domain2 = fab_domain2
#define FAB_DOMAIN_SLOTS \
	.endpoint = fab_ep_open, .cntr_open = fab_cntr_open, .poll_open = fab_poll_open, .endpoint2 = fab_endpoint2
/* A domain's struct fi_ops; the provider may have a close and a control function of its own. */
#define FAB_DOMAIN_FID(close_fn, control_fn) { \
	.size = sizeof(struct fi_ops), .close = close_fn, .bind = fab_domain_bind, .control = control_fn, \
	.ops_set = fab_domain_set_ops, \
}

#endif
