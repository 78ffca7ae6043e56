#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "check/names.h"
#include "report/views.h"
#include "tables/phases.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using read::Amounts;

// The label for calls of unknown phase.
constexpr std::string_view kOther =
    tables::kStepPhaseNames[static_cast<std::size_t>(tables::StepPhase::other)];

Amounts all_of(const tables::Summary& s, tables::Phase phase) {
  return tables::sum(s.phases[static_cast<std::size_t>(phase)]);
}

// True if some call was made on a thread that PyTorch named as autograd's.
bool autograd_known(const tables::Summary& s) {
  return all_of(s, tables::Phase::backward).calls != 0;
}

std::string why_other(const tables::Summary& s, const Amounts& other) {
  if (s.only_steps) return "all calls: with --steps, threads are not distinguished";
  std::string why;
  if (other.calls != other.replayed) {
    const char* none = s.only.of_calls() ? "none of these calls" : "no recorded call";
    why = fmt::format("{}no thread is known to be autograd's, as it made {}{}",
                      autograd_known(s) ? "calls of ranks on which " : "", none,
                      autograd_known(s) ? ", and of threads that are not distinguished" : "");
  }
  if (other.replayed != 0) why += why.empty() ? "calls in CUDA graphs" : "; calls in CUDA graphs";
  return why;
}

// Explains the shown rows.
Notes phase_notes(const tables::Summary& s) {
  const Amounts other = all_of(s, tables::Phase::unknown);
  return notes_if({{autograd_known(s),
                    "backward: calls of PyTorch's autograd threads, including recomputation by "
                    "activation checkpointing."},
                   {all_of(s, tables::Phase::rest).calls != 0,
                    "rest: calls of other threads: forward, optimizer, loading, setup, and what a "
                    "framework does on them after the backward pass (DeepSpeed's last gradients)."},
                   {other.calls != 0, fmt::format("{}: {}.", kOther, why_other(s, other))}});
}

Section phase_section(const tables::Summary& s, For who) {
  std::vector<BucketRow> rows;
  for (std::size_t p = 0; p < tables::kPhaseCount; ++p) {
    const bool other = static_cast<tables::Phase>(p) == tables::Phase::unknown;
    add_rows(rows, other ? kOther : tables::kPhaseNames[p], s.phases[p]);
  }
  const bool timed = tables::sum(s.buckets).device_timed != 0;
  std::vector<Column<BucketRow>> all = bucket_columns("phase", nullptr);
  append(all, time_figures(timed));
  return {.title = "Phases", .table = sheet(all, rows, who), .notes = phase_notes(s)};
}

std::vector<BucketRow> rest_rows(const tables::Rest& rest) {
  std::vector<BucketRow> rows;
  for (const auto& [key, buckets] : rest.told) {
    const auto by = static_cast<std::size_t>(key.second);
    const bool none = key.second == tables::PhaseSource::none;
    add_rows(rows, tables::kStepPhaseNames[static_cast<std::size_t>(key.first)], buckets,
             none ? Value() : Value(tables::kPhaseSourceNames[by]));
  }
  return rows;
}

Section rest_section(const tables::Summary& s, For who) {
  std::vector<Column<BucketRow>> columns = bucket_columns(
      "phase", "phase", {{"told by", "told_by", Unit::text, &BucketRow::by, Show::label}});
  append(columns, Figures{{"host time", "host_ns", Unit::ns_not_0, &Amounts::host_ns}});
  const tables::Rest rest = tables::rest_of(*s.lines, s.found);
  const auto told = [&](tables::PhaseSource by) {
    return std::ranges::any_of(rest.told, [by](const auto& t) {
      return t.first.second == by && tables::sum(t.second).calls != 0;
    });
  };
  Notes notes = notes_if(
      {{told(tables::PhaseSource::range), "range: from the name of an NVTX range around the call."},
       {told(tables::PhaseSource::thread), "thread: called by a data-loading thread of PyTorch."},
       {told(tables::PhaseSource::order),
        "order: from the calls of autograd's threads within a step. forward: collectives before a "
        "backward pass; backward: gradients that are reduced directly after one; optimizer: what "
        "most steps call after the last one (including norms or a metric); load: batches before "
        "the first collective."},
       {told(tables::PhaseSource::none),
        fmt::format("{}: unknown from ranges, threads and the order of calls: setup, evaluation, "
                    "calls of some steps only, point-to-point, copies that may be anything.",
                    kOther)},
       {!rest.unordered.empty(),
        fmt::format("{}: the order tells nothing, as some calls have no line on a named thread.",
                    check::names_of(rest.unordered))}});
  append(notes, how_found(s.found));
  return {.title = autograd_known(s) ? "Calls outside autograd's threads"
                                     : "Calls not known to be autograd's",
          .table = sheet(columns, rest_rows(rest), who),
          .notes = std::move(notes),
          .at = ""};
}

}  // namespace

std::vector<Section> phase_sections(const tables::Summary& s, For who) {
  std::vector<Section> all = {phase_section(s, who)};
  if (!s.only.of_calls()) all.push_back(rest_section(s, who));
  return all;
}

}  // namespace tprof::report
