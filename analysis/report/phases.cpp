#include "report/views.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/names.h"
#include "report/figures.h"
#include "report/steps.h"
#include "text/text.h"

namespace tprof::report {
namespace {

Section phase_section(const stats::Summary& s, For who) {
  std::vector<BucketRow> rows;
  for (std::size_t p = 0; p < stats::kPhaseCount; ++p) {
    add_rows(rows, stats::kPhaseNames[p], s.phases[p]);
  }
  const bool timed = stats::sum(s.buckets).device_timed != 0;
  std::vector<Column<BucketRow>> all = bucket_columns("phase", nullptr);
  append(all, {host_time_column<BucketRow>(timed ? Show::if_room : Show::always),
               device_time_column<BucketRow>("device time", nullptr)});
  return {
      .title = "Phases",
      .table = sheet(all, rows, who),
      .notes =
          "  backward: calls of PyTorch's autograd threads, so recomputation by activation "
          "checkpointing is in it.\n"
          "  rest: calls of other threads: forward, optimizer, loading, setup, and what a "
          "framework does on them behind the backward pass (DeepSpeed's last gradients).\n"
          "  unknown: calls of processes without an autograd thread, calls in CUDA graphs, and all "
          "calls with --steps.\n"};
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

Section rest_section(const stats::Rest& rest, const steps::Found& found, For who) {
  const bool order = std::ranges::any_of(
      rest.told, [](const auto& t) { return t.first.second == stats::ToldBy::order; });
  std::string out =
      "  range: the name of an NVTX range around the call tells; thread: PyTorch's threads that "
      "load data made it.\n";
  if (order) {
    out +=
        "  order: by the calls of autograd's threads within a step. forward: collectives before a "
        "backward pass; backward: gradients that are reduced directly behind one; optimizer: what "
        "most steps call behind the last one (norms, a metric too); load: batches before the first "
        "collective.\n";
  }
  out +=
      "  other: none of these tells: setup, evaluation, calls of some steps only, point-to-point, "
      "copies that may be anything.\n";
  if (!rest.unordered.empty()) {
    out += fmt::format(
        "  {}: the order tells nothing, as not every call has a line on a thread with a name.\n",
        diagnose::names_of(rest.unordered));
  }
  return {.title = "Calls outside autograd's threads",
          .table = sheet(rest_columns(), rest_rows(rest), who),
          .notes = out + how_found(found),
          .at = ""};
}

}  // namespace

std::vector<Section> phase_sections(const stats::Summary& s, For who) {
  std::vector<Section> all = {phase_section(s, who)};
  if (s.rest) all.push_back(rest_section(*s.rest, s.found, who));
  return all;
}

}  // namespace tprof::report
