/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What clients demand, each with the test that shows it. A demand is a row of facts collected from their sources:
 * breaking one means that the client refuses the provider, aborts, or hangs. The table is held: each test that it
 * names exists, and each client whose hints are known has a row.
 *
 * Not in it, as other programs show it: a logger of the application (Mercury, DAOS: test/core/log), variables that
 * clients set (test/conform/clients-environment runs all of their tests with them), Debian's Open MPI itself
 * (test/client).
 * Source: fi_getinfo(3).
 */
#include <string.h>

#include "clients.h"

struct demand {
	const char *name;		/* client and what it demands */
	const char *tests[4];
};

static const struct demand demands[] = {
	/* what several clients have in common */
	{ "name_is_exactly_tcp", { "clients/tcp_name_and_protocol" } },
	{ "names_of_rxm_are_exact", { "clients_rules/rxm_name_and_protocol" } },
	{ "protocol_is_no_wish", { "clients_rules/mercury_protocol_of_another" } },
	{ "protocol_is_xnet", { "clients/tcp_name_and_protocol", "clients/hints" } },
	{ "an_entry_for_each_interface", { "clients/entry_per_interface" } },
	{ "address_format_is_concrete", { "getinfo_addr/format_is_concrete" } },
	{ "threading_is_echoed", { "clients/hints", "getinfo/one_wish" } },
	{ "no_mode_bit", { "clients/tcp_name_and_protocol", "getinfo/modes_only_on_offer" } },
	{ "mr_mode_within_the_hint", { "clients/hints", "getinfo/one_wish", "getinfo_flags/old_mr_mode" } },
	{ "delivery_complete_is_true", { "msg_flags/delivery_complete_is_true", "rma/write_delivery_waits_for_target",
					 "atomic/delivered" } },
	{ "atomics_of_every_type", { "atomic/matrix", "atomic/queries" } },
	{ "cq_data_of_8_bytes", { "clients/tcp_name_and_protocol", "msg/cq_data_width" } },
	{ "tags_of_64_bits", { "clients/tcp_name_and_protocol", "tagged/match" } },
	{ "loopback_last_and_local", { "clients/loopback_is_last_and_local" } },
	{ "remote_comm_is_true", { "caps/on_an_interface_to_others" } },
	{ "getname_measures", { "clients/getname_measures" } },
	{ "min_multi_recv_can_be_set", { "clients/min_multi_recv_option" } },
	{ "unknown_options_say_so", { "clients/unknown_option" } },
	{ "av_insert_counts_and_numbers", { "av/insert_and_lookup", "av/insert_without_answer" } },
	{ "progress_can_be_altered", { "clients/mpich_alters_progress" } },
	{ "fd_and_trywait", { "cq_wait/fd_wakes_for_each_message", "cq_wait/trywait_sees_entries" } },
	{ "peek_finds_nothing", { "tagged/peek_does_not_consume", "tagged/peek_is_progress" } },
	{ "dead_peer_is_an_error", { "gone/send_to_nobody_fails", "gone/killed_with_our_sends" } },
	{ "prov_version_is_high", { "clients/tcp_name_and_protocol" } },
	{ "open_objects_as_hints", { "getinfo_flags/fabric_in_hints", "getinfo_flags/domain_in_hints" } },
	{ "unneeded_mr_bits_are_dropped", { "getinfo/device_memory_on_request", "getinfo/mr_bits_are_for_targets" } },
	{ "eagain_only_where_progress_cures_it", { "msg/tx_full_says_eagain", "msg/tx_full_recovers",
						   "gone/all_operations_to_nobody_fail" } },
	{ "no_wakeup_without_news", { "cq_wait/fd_wakes_for_each_message", "cq_wait/poll_of_none_keeps_the_news" } },
	{ "attributes_are_kept_or_more", { "getinfo/never_less_than_asked" } },
	{ "null_hints_list_all_in_order", { "getinfo/null_hints_list_everything", "getinfo/order_is_stable" } },
	/* MPICH */
	{ "mpich_scores_tcp", { "clients_mpi/mpich_scores_tcp_highest" } },
	{ "mpich_calls", { "clients_mpi/mpich_sequence" } },
	{ "mpich_asks_again", { "clients_rules/mpich_asks_again_with_the_entrys_own", "getinfo/result_as_hints" } },
	{ "mpich_wants_links_that_are_up", { "getinfo/nic" } },
	{ "mpich_understands_three_errors", { "msg/recv_trunc_entry", "msg_flags/cancel_recv",
					      "tagged/peek_does_not_consume" } },
	{ "mpich_scalable_endpoint", { "clients_shared/mpich_sequence_scalable" } },
	{ "mpich_named_av", { "clients_shared/mpich_sequence_scalable", "av/named_vector_is_shared" } },
	{ "mpich_registers_everything", { "mr/whole_address_space" } },
	{ "mpich_sockets_set", { "sockets/mpich_set" } },
	{ "mpich_triggers", { "trigger/waits_for_threshold", "trigger/chain" } },
	{ "mpich_closes_without_loss", { "gone/last_words_arrive", "cm/shutdown_loses_nothing_sent" } },
	/* Sandia OpenSHMEM */
	{ "sos_hints_without_rx_attr", { "clients/hints" } },
	{ "sos_names_are_patterns", { "clients_rules/sos_names_find_the_entry" } },
	{ "sos_refuses_missing_operations", { "atomic/queries" } },
	{ "sos_calls_scalable", { "clients_pgas/sos_sequence_scalable" } },
	{ "sos_calls_basic", { "clients_pgas/sos_sequence_basic" } },
	{ "sos_target_counters", { "clients_pgas/sos_sequence_target_counters" } },
	{ "sos_counters_bound_late", { "clients_shared/sos_sequence_shared_contexts", "cntr/bound_late",
				       "cntr/bound_late_counts_remote_writes" } },
	{ "sos_shared_transmit_contexts", { "clients_shared/sos_sequence_shared_contexts", "contexts/sos_stx_pool" } },
	{ "sos_one_endpoint", { "clients_shared/sos_sequence_one_endpoint", "contexts/stx_bound_late" } },
	{ "sos_reduced_caps", { "clients/sos_reduced_caps" } },
	{ "sos_keys_of_its_own", { "mr/requested_keys", "clients_pgas/sos_sequence_scalable" } },
	{ "sos_counts_at_a_region", { "mr/region_counter" } },
	{ "sos_enables_sockets_again", { "sockets/sos_enables_again" } },
	{ "sos_fence", { "fence/write_behind_read" } },
	{ "sos_auto_progress", { "auto/target_serves_by_itself" } },
	/* Open MPI */
	{ "ompi_mtl_4", { "clients_mpi/ompi_mtl_4_sequence" } },
	{ "ompi_mtl_main", { "clients_mpi/ompi_mtl_main_sequence" } },
	{ "ompi_btl", { "clients_mpi/ompi_btl_sequence" } },
	{ "ompi_mr_cache", { "clients_mpi/ompi_asks_for_mr_cache", "clients_mpi/ompi_closes_its_monitor" } },
	{ "ompi_claims_without_address", { "clients_mpi/ompi_mtl_4_sequence", "tagged/claim" } },
	{ "ompi_null_context", { "msg/null_context" } },
	{ "ompi_truncation_is_drained", { "msg/recv_trunc_is_drained", "clients_mpi/ompi_mtl_4_sequence" } },
	{ "ompi_probes", { "tagged/peek_tells_data_and_source", "tagged/claim_large" } },
	{ "ompi_cancels", { "tagged/cancel_trecv" } },
	{ "ompi_wants_remote_comm", { "caps/on_an_interface_to_others", "clients/loopback_is_last_and_local" } },
	/* Mercury */
	{ "mercury_calls", { "clients_rpc/mercury_sequence" } },
	{ "mercury_sleeps", { "clients_rpc/mercury_sequence", "cq_wait/fd_wakes_for_an_error" } },
	{ "mercury_errno_of_the_dead", { "clients_rpc/mercury_understands_who_is_gone" } },
	{ "mercury_unknown_source", { "msg_flags/source_err_gives_address" } },
	{ "mercury_cancels_multi_recv", { "msg_flags/multi_recv_cancel" } },
	{ "mercury_removes_addresses", { "av/remove_and_reinsert", "clients_rpc/mercury_sequence" } },
	{ "mercury_affinity", { "cq/affinity_is_a_hint" } },
	{ "mercury_numeric_source", { "getinfo_addr/node_and_service" } },
	{ "mercury_version_of_tcp", { "clients_rules/mercury_version_of_tcp" } },
	{ "mercury_protocols", { "clients_rules/rxm_name_and_protocol", "clients_rules/mercury_protocol_of_another" } },
	{ "mercury_chooses_the_interface", { "clients/entry_per_interface",
					     "clients_rules/sos_names_find_the_entry" } },
	/* aws-ofi-nccl */
	{ "nccl_calls", { "clients_rpc/nccl_sequence_1_18", "clients_rpc/nccl_sequence_1_6" } },
	{ "nccl_options", { "clients/nccl_options" } },
	{ "nccl_registers_with_key_0", { "mr/nccl_key_zero_without_rma" } },
	{ "nccl_makes_rails", { "clients_rules/nccl_rails_are_alike" } },
	{ "nccl_falls_back", { "clients_rules/nccl_asks_for_device_memory" } },
	/* GASNet-EX */
	{ "gasnet_calls", { "clients_pgas/gasnet_sequence_basic", "clients_pgas/gasnet_sequence_scalable" } },
	{ "gasnet_asks_for_providers", { "clients_pgas/gasnet_asks_for_attributes_only",
					 "getinfo_flags/provider_list" } },
	{ "gasnet_endpoints_share_an_av", { "clients/gasnet_shares_av" } },
	{ "gasnet_names_without_answer", { "av/insert_without_answer" } },
	{ "gasnet_versions", { "clients_rules/rxm_name_and_protocol", "clients/tcp_name_and_protocol" } },
	/* Chapel, NIXL, oneCCL */
	{ "chapel_orders", { "clients_pgas/chapel_sequence_orders" } },
	{ "chapel_delivery", { "clients_pgas/chapel_sequence_delivery" } },
	{ "chapel_emfile", { "clients_rules/chapel_understands_emfile" } },
	{ "nixl_calls", { "clients_rpc/nixl_sequence" } },
	{ "oneccl_calls", { "clients_mpi/oneccl_sequence" } },
	{ "oneccl_environment", { "clients_rules/oneccl_sets_the_environment_late" } },
	/* connected: HCL, LDMS, JULEA, derecho */
	{ "hcl_calls", { "clients_msg/hcl_sequence" } },
	{ "ldms_calls", { "clients_msg/ldms_sequence" } },
	{ "julea_calls", { "clients_msg/julea_sequence" } },
	{ "julea_prefix", { "getinfo/prefix_forced" } },
	{ "derecho_calls", { "clients_msg/derecho_sequence" } },
};

/* Each demand that was collected names at least one test, and these tests exist. */
TEST_PROV(each_demand_has_its_test, 0, .alone = true)
{
	size_t i, k;

	for (i = 0; i < COUNT(demands); i++) {
		CHECK(demands[i].tests[0] != NULL);
		for (k = 0; k < COUNT(demands[i].tests) && demands[i].tests[k]; k++) {
			if (!test_named(demands[i].tests[k]))
				FAIL("%s: there is no test %s", demands[i].name, demands[i].tests[k]);
		}
	}
}

/* Whoever has hints in the table of clients has calls here, too. */
TEST_PROV(each_client_has_demands, 0, .alone = true)
{
	const char *client;
	size_t i, k;

	for (k = 0; (client = client_name(k)); k++) {
		for (i = 0; i < COUNT(demands) && strncmp(demands[i].name, client, strcspn(client, "_")); i++)
			;
		if (i == COUNT(demands))
			FAIL("client %s has no demand", client);
	}
	CHECK(k > 0);
}
