// The sentences that findings are made of: one for each kind, and parts of others, evidence and
// advice. report/ has the words (words_*.cpp).
#pragma once

#include "diagnose/kinds.h"

namespace tprof::diagnose {

// clang-format off
#define TPROF_SENTENCES(X)                                                                        \
  X(more_of_kind) X(more) X(then) X(counted_names)                                                \
  /* calls and where somebody stands */                                                           \
  X(open_call) X(in_group) X(collective_of) X(call) X(launch) X(inside) X(called) X(range_named)              \
  X(within_ranges) X(last_call) X(last_call_unknown) X(look_at_stack) X(look_at_output)           \
  /* hangs, and ranks that ended before the others */                                             \
  X(stand_inside) X(never_made_other_end) X(ends_of_messages) X(message_of)  \
  X(never_came) X(not_come) X(some_not_come) X(got_back) X(not_all_came) X(only_such_call)        \
  X(runs_unknown) X(closed_before)                                                                \
  X(stood_still) X(stopped_there) X(wait_for_each_other) X(waits_in) X(waits_for) X(same_order)   \
  X(returned_to) X(nobody_missing) X(look_at_network) X(look_at_rank) X(dumps_tell) X(did_not_end) X(devices_stand) X(lines_tell_how_long) X(in_no_call)        \
  X(did_not_close) X(end_unknown) X(unknown_after) X(nothing_known) X(hosts_view)                 \
  X(called_then) X(order_circle) X(not_through) X(no_call_since)                               \
  X(process_stopped) X(let_go_on) X(let_go_of) X(meanwhile) X(may_wait_for_device) \
  X(devices_not_through) X(closed_first) X(killed_first) X(first_unknown) X(killed_together) X(fell_silent)              \
  /* mismatches */                                                                                \
  X(issued) X(issued_others) X(did_not_call) X(counted_calls) X(same_calls) X(differ_too)         \
  X(no_majority) X(operation_unknown) X(part_at) X(part_within) X(difference) X(earlier_too)      \
  X(no_lines) X(lines_exist) X(one_made) X(both_made) X(made_no_more) X(left_out) X(extra) X(swapped) \
  /* other evidence */                                                                            \
  X(latest_arrival) X(arrivals_are) X(exchanges_more) X(copies_in_times) X(holds_up) X(idle_at_end) X(idle_before_copies) X(idle_within) X(look_there) X(more_calls) X(more_calls_before) X(read_rarely) X(call_rarely) X(save_aside) X(copies_out_each) X(sends_more) X(copies_in_more) X(copies_out_more) X(totals_unmatched) X(sizes_differ_too) X(end_of_message) X(sums) X(sums_differ)  \
  X(fewer_collectives) X(fewer_calls) X(missed_of) X(value_on) X(rank_group)                                  \
  X(untimed_no_context) X(untimed_no_pair) X(untimed_mixed) X(untimed_in_progress)                \
  X(untimed_sync) X(untimed_unread) X(untimed_device) X(untimed_no_record)                        \
  X(untimed_impossible) X(untimed_tool) X(untimed_order)                                          \
  X(exposure_no_launch) X(exposure_host_late) X(exposure_no_pair) X(exposure_unread)              \
  X(exposure_no_room) X(exposure_no_clock)                                                        \
  /* of doctor/ */                                                                                \
  X(create_file) X(allocate) X(map_file) X(program_not_found) X(loader_not_found)                 \
  X(cudart_linked_in) X(exports_nccl)
// clang-format on

#define X(name, ...) name,
enum class Say : std::uint16_t { TPROF_KINDS(X) TPROF_SENTENCES(X) count_ };
#undef X

constexpr Say say(Kind kind) {
  return static_cast<Say>(kind);
}

}  // namespace tprof::diagnose
