#include "report/by.h"

#include <algorithm>

#include "report/durations.h"
#include "report/lateness.h"
#include "report/layers.h"
#include "report/operations.h"
#include "report/phases.h"
#include "report/places.h"
#include "report/steps.h"

namespace tprof::report {
namespace {

using Options = stats::SummaryOptions;
using stats::Summary;
using Sections = std::vector<Section>;

Sections operations(const Summary& s, const char* title, Beside beside) {
  if (stats::sum(s.buckets).calls == 0) return {};
  return {{title, operation_table(s, beside)}};
}

Sections operations_and_durations(const Summary& s) {
  Sections all = operations(s, "Operations", Beside::nothing);
  if (!all.empty() && s.op_times) {
    all.push_back({"Their durations", to_text(*s.op_times, stats::sum(s.buckets).calls)});
  }
  return all;
}

Sections phases(const Summary& s) {
  Sections all = {{"Phases", phase_table(s)}};
  if (s.rest) all.push_back({"Calls outside autograd's threads", rest_table(*s.rest, s.found)});
  return all;
}

// clang-format off
constexpr ByRow kRows[] = {
    {By::size, "size", "the default", nullptr, true,
     [](const Summary& s) { return operations(s, "Operations by size", Beside::size); }},
    {By::op, "op", "", [](Options& o) { o.op_times = true; }, true, operations_and_durations},
    {By::comm, "comm", "", nullptr, true,
     [](const Summary& s) { return operations(s, "Operations by communicator", Beside::communicator); }},
    {By::dtype, "dtype", "", nullptr, true,
     [](const Summary& s) { return operations(s, "Operations by dtype", Beside::dtype); }},
    {By::range, "range", "NVTX", [](Options& o) { o.ranges = true; }, false,
     [](const Summary& s) { return Sections{{"NVTX ranges", range_table(*s.ranges)}}; }},
    {By::phase, "phase", "forward, backward", [](Options& o) { o.phases = true; }, true, phases},
    {By::step, "step", "", [](Options& o) { o.steps = true; }, true,
     [](const Summary& s) { return Sections{{"Steps", step_table(*s.steps)}}; }},
    {By::layer, "layer", "", [](Options& o) { o.layers = true; }, true,
     [](const Summary& s) { return Sections{{"Layers", layer_table(*s.layers)}}; }},
    {By::site, "site", "where in the program", [](Options& o) { o.sites = true; }, false,
     [](const Summary& s) { return Sections{{"Call sites", site_table(*s.sites)}}; }},
    {By::rank, "rank", "who came last", [](Options& o) { o.lateness = true; }, false,
     [](const Summary& s) { return Sections{{"Who came last", to_text(*s.lateness, s.found)}}; }},
};
// clang-format on

}  // namespace

std::span<const ByRow> by_rows() {
  return kRows;
}

const ByRow& row_of(By by) {
  return *std::ranges::find(kRows, by, &ByRow::by);
}

}  // namespace tprof::report
