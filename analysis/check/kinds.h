// The kinds of findings, the diagnoses that find them, and the sentences that make them up: one row
// each. The words of each sentence are in report/words_*.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tprof::check {

enum class Severity : std::uint8_t { note, warning, error };
inline constexpr const char* kSeverityNames[] = {"note", "warning", "error"};

// X(name as in JSON, default severity)
// clang-format off
#define TPROF_KINDS(X)                                                                            \
  /* which processes there are, and how they ended */                                             \
  X(missing_rank, error) X(missing_member, warning) X(duplicate_rank, error) X(other_run, note)   \
  X(rank_groups, note)                                                                            \
  X(world_sizes_differ, warning) X(assumed_job, warning) X(skipped, note) X(unreadable, error) X(running, note)                  \
  X(snapshot, warning) X(not_closed, warning) X(exited, warning) X(partial, error) X(lost, error)                    \
  /* what they did */                                                                             \
  X(mismatch, error) X(group_order, error) X(refused, error) X(lost_device, error) X(hang, error) X(stopped, warning)                     \
  X(unmatched_p2p, warning) X(p2p_sizes, warning) X(failed, warning) X(unfinished, warning) X(unended, warning) X(late, note)                   \
  /* what their files hold */                                                                     \
  X(overflow, error) X(dropped, warning) X(dropped_ranges, note) X(window_alone, note)            \
  X(missing_windows, note) X(seq_gap, warning) X(ledger_decreased, error)                         \
  X(ledger_lines, warning) X(clock_step, warning) X(untimed, note) X(exposure_unknown, note)      \
  X(one_queue, note)                                                                             \
  /* what they could not see */                                                                   \
  X(missed, warning) X(misspelt_setting, warning) X(bad_setting, warning)                         \
  X(versions_differ, warning) X(settings_differ, note) X(no_nccl, note) X(nothing_counted, warning)                                                    \
  /* ... because of a library or tool: interpose/format/coverage.h has the same names */          \
  X(nvshmem, note) X(cufile, note) X(mscclpp, note) X(ucx, note) X(mpi, note) X(gdrcopy, note)    \
  X(vllm, note) X(flashinfer, note) X(deep_ep, note) X(uccl, note) X(ncclx, warning)              \
  X(dali, note) X(jax, warning) X(tensorflow, warning) X(cupy, note) X(second_nccl, warning)      \
  X(second_cudart, note) X(uncalled_cudart, note) X(static_cudart, warning) X(dlsym, warning)     \
  X(comm_unknown, note) X(comm_shared, note) X(threads, warning) X(streams, note) X(ledger_full, note) X(uncounted, note)                  \
  X(unknown_cudart, warning) X(graph_unknown, warning) X(graph_edited, warning)                   \
  X(graph_conditional, warning) X(graph_device_launch, warning) X(nested, note) X(nsys, note)     \
  X(ncu, warning) X(sanitizer, warning) X(cuda_injection, note) X(nccl_profiler, note)            \
  X(interposer, warning)                                                                          \
  /* why it takes so long: of why/ */                                                             \
  X(slow_gpu, note) X(slow_input, note) X(slow_cpu, note) X(slow_copies, note) X(slow_link, note) X(below_peak, note)  \
  X(uneven_ranks, note) X(late_prefetch, note) X(gathers_behind, note) X(exposed_gathers, note) X(late_reductions, note)   \
  X(blocking_h2d, note)                                                                           \
  X(blocking_d2h, note) X(exposed_copies, note) X(idle_devices, note) X(gathered_again, note) X(reduced_again, note)      \
  X(wide_dtype, note) X(long_steps, note) X(periodic_steps, note) X(drifting_steps, note) X(jumping_steps, note)      \
  /* what keeps a program from being traced: of doctor/ alone */                                  \
  X(does_not_load, error) X(limit, warning) X(disabled, warning) X(output_full, error)            \
  X(output_unusable, error) X(ring_dir_unusable, warning) X(ring_nowhere, warning)                \
  X(output_small, warning) X(not_found, error) X(container, note) X(elsewhere, note)              \
  X(other_machine, error) X(secure_execution, error) X(static_program, error) X(musl, error)      \
  X(unknown_loader, error) X(old_glibc, error) X(loader, error) X(static_nccl, warning)           \
  X(pynccl, note) X(torch_without_cuda, warning) X(nothing_served, note)

// X(name of its `Diagnosis`, which a file of its own defines). If two findings have the same
// severity, the one from the upper row is shown first.
#define TPROF_DIAGNOSES(X)                                                                       \
  X(kMissingRanks) X(kMissingMembers) X(kDuplicateRanks) X(kRankGroups) X(kWorldSizes) X(kNotClosed) X(kExited) X(kOverflow)              \
  X(kWithoutEffect) X(kMismatch) X(kPointToPoint) X(kGroupOrder) X(kRefusedLife) X(kLostDevice) X(kHang) X(kLedgerLines)      \
  X(kLedgerDecreased) X(kClockStep) X(kLateRanks) X(kCoverage) X(kDifferences) X(kDropped) X(kUntimedCalls)      \
  X(kMissingWindows) X(kOtherRuns) X(kAssumedJob) X(kNotCompared) X(kNothingCounted) X(kSkippedFiles)
// clang-format on

#define X(name, severity) name,
enum class Kind : std::uint8_t { TPROF_KINDS(X) };
#undef X

struct KindRow {
  std::string_view name;
  Severity severity;
};
#define X(name, severity) {#name, Severity::severity},
inline constexpr KindRow kKinds[] = {TPROF_KINDS(X)};
#undef X

constexpr const KindRow& row_of(Kind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}
constexpr std::string_view name_of(Kind kind) {
  return row_of(kind).name;
}

// The kind of a library or tool that a footer names; nullopt: it limits nothing.
constexpr std::optional<Kind> kind_of_note(std::string_view note) {
  for (auto k = static_cast<std::size_t>(Kind::nvshmem);
       k <= static_cast<std::size_t>(Kind::interposer); ++k) {
    if (kKinds[k].name == note) return static_cast<Kind>(k);
  }
  return std::nullopt;
}

// True for a library that is loaded, but not known to be used: every PyTorch brings cuFile and
// NVSHMEM. Only `tprof doctor` reports it.
constexpr bool is_only_loaded(Kind kind) {
  return kind >= Kind::nvshmem && kind <= Kind::vllm;
}

// Sentences other than those of the kinds: parts, evidence and advice.
// clang-format off
#define TPROF_SENTENCES(X)                                                                        \
  X(more_of_kind) X(more) X(then) X(counted_names)                                                \
  /* calls and where somebody stands */                                                           \
  X(slow_link_at_times) X(on_comm) X(between_ranks) X(of_ranks) X(open_call) X(in_group) X(collective_of) X(call) X(launch) X(inside) X(called) X(range_named)              \
  X(within_ranges) X(last_call) X(last_call_unknown) X(look_at_stack) X(look_at_output)           \
  /* hangs, and ranks that ended before the others */                                             \
  X(stand_inside) X(never_made_other_end) X(ends_of_messages) X(message_of)  \
  X(never_came) X(not_come) X(some_not_come) X(got_back) X(not_all_came) X(only_such_call)        \
  X(runs_unknown) X(closed_before) X(dumped_while_running)                                                                \
  X(stood_still) X(stopped_there) X(wait_for_each_other) X(waits_in) X(waits_for) X(same_order)   \
  X(returned_to) X(nobody_missing) X(look_at_network) X(look_at_rank) X(dumps_tell) X(did_not_end) X(devices_stand) X(lines_tell_how_long) X(in_no_call)        \
  X(did_not_close) X(end_unknown) X(unknown_after) X(nothing_known) X(hosts_view)                 \
  X(called_then) X(order_circle) X(not_through) X(no_call_since)                               \
  X(process_stopped) X(let_go_on) X(let_go_of) X(meanwhile) X(may_wait_for_device) \
  X(closed_first) X(killed_first) X(first_unknown) X(killed_together) X(fell_silent)              \
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

}  // namespace tprof::check
