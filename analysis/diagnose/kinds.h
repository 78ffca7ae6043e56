// The kinds of findings and the diagnoses that find them: one row each. The sentence of a
// kind is a row of report/'s words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tprof::diagnose {

enum class Severity : std::uint8_t { note, warning, error };
inline constexpr const char* kSeverityNames[] = {"note", "warning", "error"};

// X(name as in JSON, severity unless a diagnosis says otherwise)
// clang-format off
#define TPROF_KINDS(X)                                                                            \
  /* which processes there are, and how they ended */                                             \
  X(missing_rank, error) X(missing_member, warning) X(duplicate_rank, error) X(other_run, note)   \
  X(rank_groups, note)                                                                            \
  X(world_sizes_differ, warning) X(assumed_job, warning) X(skipped, note) X(unreadable, error) X(running, note)                  \
  X(snapshot, warning) X(not_closed, warning) X(exited, warning) X(partial, error) X(lost, error)                    \
  /* what they did */                                                                             \
  X(mismatch, error) X(group_order, error) X(refused, error) X(lost_device, error) X(hang, error) X(stopped, warning)                     \
  X(unmatched_p2p, warning) X(p2p_sizes, warning) X(failed, warning) X(unfinished, warning) X(late, note)                   \
  /* what their files hold */                                                                     \
  X(overflow, error) X(dropped, warning) X(dropped_ranges, note) X(window_alone, note)            \
  X(missing_windows, note) X(seq_gap, warning) X(ledger_decreased, error)                         \
  X(ledger_lines, warning) X(clock_step, warning) X(untimed, note) X(exposure_unknown, note)      \
  X(one_queue, note)                                                                             \
  /* what they could not see */                                                                   \
  X(missed, warning) X(misspelt_setting, warning) X(bad_setting, warning)                         \
  X(versions_differ, warning) X(settings_differ, note) X(no_nccl, note)                                                    \
  /* ... because of a library or tool: interpose/format/coverage.h has the same names */          \
  X(nvshmem, note) X(cufile, note) X(mscclpp, note) X(ucx, note) X(mpi, note) X(gdrcopy, note)    \
  X(dali, note) X(jax, warning) X(tensorflow, warning) X(cupy, note) X(second_nccl, warning)      \
  X(second_cudart, note) X(uncalled_cudart, note) X(static_cudart, warning) X(dlsym, warning)     \
  X(comm_unknown, note) X(comm_shared, note) X(streams, note) X(ledger_full, note) X(uncounted, note)                  \
  X(unknown_cudart, warning) X(graph_unknown, warning) X(graph_edited, warning)                   \
  X(graph_conditional, warning) X(graph_device_launch, warning) X(nested, note) X(nsys, note)     \
  X(ncu, warning) X(sanitizer, warning) X(cuda_injection, note) X(nccl_profiler, note)            \
  X(interposer, warning)                                                                          \
  /* why it takes so long: of why/ */                                                             \
  X(slow_gpu, note) X(slow_input, note) X(slow_cpu, note) X(slow_link, note) X(below_peak, note)  \
  X(uneven_ranks, note) X(late_prefetch, note) X(gathers_behind, note) X(exposed_gathers, note) X(late_reductions, note)   \
  X(blocking_h2d, note)                                                                           \
  X(blocking_d2h, note) X(idle_devices, note) X(gathered_again, note) X(reduced_again, note)      \
  X(wide_dtype, note) X(long_steps, note) X(periodic_steps, note) X(drifting_steps, note) X(jumping_steps, note)      \
  /* what keeps a program from being traced: of doctor/ alone */                                  \
  X(does_not_load, error) X(limit, warning) X(disabled, warning) X(output_full, error)            \
  X(output_unusable, error) X(ring_dir_unusable, warning) X(ring_nowhere, warning)                \
  X(output_small, warning) X(not_found, error) X(container, note) X(elsewhere, note)              \
  X(other_machine, error) X(secure_execution, error) X(static_program, error) X(musl, error)      \
  X(unknown_loader, error) X(old_glibc, error) X(loader, error) X(static_nccl, warning)           \
  X(pynccl, note) X(deep_ep, note) X(torch_without_cuda, warning) X(nothing_served, note)

// X(name of its `Diagnosis`, which a file of its own defines). If two findings have the same
// severity, the one from the upper row is shown first.
#define TPROF_DIAGNOSES(X)                                                                       \
  X(kMissingRanks) X(kMissingMembers) X(kDuplicateRanks) X(kRankGroups) X(kWorldSizes) X(kNotClosed) X(kExited) X(kOverflow)              \
  X(kWithoutEffect) X(kMismatch) X(kPointToPoint) X(kGroupOrder) X(kRefusedLife) X(kLostDevice) X(kHang) X(kLedgerLines)      \
  X(kLedgerDecreased) X(kClockStep) X(kLateRanks) X(kCoverage) X(kDifferences) X(kDropped) X(kUntimedCalls)      \
  X(kMissingWindows) X(kOtherRuns) X(kAssumedJob) X(kNotCompared) X(kSkippedFiles)
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

// The kind of a library or tool that a footer names; nullopt: it limits nothing that is told.
constexpr std::optional<Kind> kind_of_note(std::string_view note) {
  for (auto k = static_cast<std::size_t>(Kind::nvshmem);
       k <= static_cast<std::size_t>(Kind::interposer); ++k) {
    if (kKinds[k].name == note) return static_cast<Kind>(k);
  }
  return std::nullopt;
}

// True for a library that is in the process and that nothing shows to be used: cuFile and NVSHMEM
// come with every PyTorch. `tprof doctor` tells of it.
constexpr bool is_only_loaded(Kind kind) {
  return kind >= Kind::nvshmem && kind <= Kind::gdrcopy;
}

}  // namespace tprof::diagnose
