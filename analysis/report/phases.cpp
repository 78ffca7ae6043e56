#include <fmt/format.h>

#include <algorithm>

#include "diagnose/names.h"
#include "report/figures.h"
#include "report/steps.h"
#include "report/views.h"
#include "stats/phases.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using read::Amounts;

// The word of the rows below for calls of which nothing tells the phase.
constexpr std::string_view kOther =
    stats::kStepPhaseNames[static_cast<std::size_t>(stats::StepPhase::other)];

Amounts all_of(const stats::Summary& s, stats::Phase phase) {
  return stats::sum(s.phases[static_cast<std::size_t>(phase)]);
}

// A thread shows that it is autograd's by a call: PyTorch names it so.
bool autograd_known(const stats::Summary& s) {
  return all_of(s, stats::Phase::backward).calls != 0;
}

std::string why_other(const stats::Summary& s, const Amounts& other) {
  if (s.only_steps) return "all calls: with --steps, threads are not told apart";
  std::string why;
  if (other.calls != other.replayed) {
    const char* none = s.only.of_calls() ? "none of these calls" : "no call that is recorded";
    why = fmt::format("{}no thread is known to be autograd's, as it made {}{}",
                      autograd_known(s) ? "calls of ranks on which " : "", none,
                      autograd_known(s) ? ", and of threads that are not told apart" : "");
  }
  if (other.replayed != 0) why += why.empty() ? "calls in CUDA graphs" : "; calls in CUDA graphs";
  return why;
}

// Explains the rows that are there.
std::string phase_notes(const stats::Summary& s) {
  std::string out;
  if (autograd_known(s)) {
    out +=
        "  backward: calls of PyTorch's autograd threads, so recomputation by activation "
        "checkpointing is in it.\n";
  }
  if (all_of(s, stats::Phase::rest).calls != 0) {
    out +=
        "  rest: calls of other threads: forward, optimizer, loading, setup, and what a "
        "framework does on them behind the backward pass (DeepSpeed's last gradients).\n";
  }
  const Amounts other = all_of(s, stats::Phase::unknown);
  if (other.calls != 0) out += fmt::format("  {}: {}.\n", kOther, why_other(s, other));
  return out;
}

Section phase_section(const stats::Summary& s, For who) {
  std::vector<BucketRow> rows;
  for (std::size_t p = 0; p < stats::kPhaseCount; ++p) {
    const bool other = static_cast<stats::Phase>(p) == stats::Phase::unknown;
    add_rows(rows, other ? kOther : stats::kPhaseNames[p], s.phases[p]);
  }
  const bool timed = stats::sum(s.buckets).device_timed != 0;
  std::vector<Column<BucketRow>> all = bucket_columns("phase", nullptr);
  append(all, {host_time_column<BucketRow>(timed ? Show::if_room : Show::always),
               device_time_column<BucketRow>("device time", nullptr)});
  return {.title = "Phases", .table = sheet(all, rows, who), .notes = phase_notes(s)};
}

std::vector<BucketRow> rest_rows(const stats::Rest& rest) {
  std::vector<BucketRow> rows;
  for (const auto& [key, buckets] : rest.told) {
    const auto by = static_cast<std::size_t>(key.second);
    add_rows(
        rows, stats::kStepPhaseNames[static_cast<std::size_t>(key.first)], buckets,
        key.second == stats::ToldBy::none ? Value() : Value(std::string(stats::kToldByNames[by])));
  }
  return rows;
}

std::vector<Column<BucketRow>> rest_columns() {
  std::vector<Column<BucketRow>> all = bucket_columns(
      "phase", "phase",
      Column<BucketRow>{"told by", "told_by", Unit::text, &BucketRow::by, Show::label});
  append(all, {host_time_column<BucketRow>(),
               figure<BucketRow>(nullptr, "host_ns", Unit::ns, &read::Amounts::host_ns)});
  return all;
}

Section rest_section(const stats::Summary& s, For who) {
  const stats::Rest rest = stats::rest_of(*s.lines, s.found);
  const auto told = [&](stats::ToldBy by) {
    return std::ranges::any_of(rest.told, [by](const auto& t) {
      return t.first.second == by && stats::sum(t.second).calls != 0;
    });
  };
  std::string out;
  if (told(stats::ToldBy::range)) {
    out += "  range: the name of an NVTX range around the call tells.\n";
  }
  if (told(stats::ToldBy::thread)) out += "  thread: PyTorch's threads that load data made it.\n";
  if (told(stats::ToldBy::order)) {
    out +=
        "  order: by the calls of autograd's threads within a step. forward: collectives before a "
        "backward pass; backward: gradients that are reduced directly behind one; optimizer: what "
        "most steps call behind the last one (norms, a metric too); load: batches before the first "
        "collective.\n";
  }
  if (told(stats::ToldBy::none)) {
    out += fmt::format(
        "  {}: neither ranges, nor threads, nor the order of calls tell: setup, evaluation, calls "
        "of some steps only, point-to-point, copies that may be anything.\n",
        kOther);
  }
  if (!rest.unordered.empty()) {
    out += fmt::format(
        "  {}: the order tells nothing, as not every call has a line on a thread with a name.\n",
        diagnose::names_of(rest.unordered));
  }
  return {.title = autograd_known(s) ? "Calls outside autograd's threads"
                                     : "Calls that are not known to be autograd's",
          .table = sheet(rest_columns(), rest_rows(rest), who),
          .notes = out + how_found(s.found),
          .at = ""};
}

}  // namespace

std::vector<Section> phase_sections(const stats::Summary& s, For who) {
  std::vector<Section> all = {phase_section(s, who)};
  if (!s.only.of_calls()) all.push_back(rest_section(s, who));
  return all;
}

}  // namespace tprof::report
