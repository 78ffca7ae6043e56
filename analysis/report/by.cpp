#include "report/by.h"

#include <algorithm>

#include "report/views.h"

namespace tprof::report {
namespace {

using Options = stats::SummaryOptions;
using stats::Summary;
using Sections = std::vector<Section>;

Sections operations(const Summary& s, const char* title, Beside beside) {
  if (stats::sum(s.buckets).calls == 0) return {};
  return {operation_section(s, title, beside)};
}

Sections operations_and_durations(const Summary& s, For) {
  Sections all = operations(s, "Operations", Beside::nothing);
  if (!all.empty() && s.op_times) {
    all.push_back(section_of(*s.op_times, stats::sum(s.buckets).calls));
  }
  return all;
}

// clang-format off
constexpr ByRow kRows[] = {
    {By::size, "size", "", nullptr, nullptr, Follows::calls,
     [](const Summary& s, For) { return operations(s, "Operations by size", Beside::size); }},
    {By::op, "op", "", nullptr, [](Options& o) { o.op_times = true; }, Follows::calls, operations_and_durations},
    {By::comm, "comm", "", nullptr, nullptr, Follows::calls,
     [](const Summary& s, For) { return operations(s, "Operations by communicator", Beside::communicator); }},
    {By::dtype, "dtype", "", nullptr, nullptr, Follows::calls,
     [](const Summary& s, For) { return operations(s, "Operations by dtype", Beside::dtype); }},
    {By::range, "range", "NVTX", "ranges", [](Options& o) { o.ranges = true; }, Follows::ranks,
     [](const Summary& s, For who) { return s.ranges ? Sections{section_of(*s.ranges, who)} : Sections(); }},
    {By::phase, "phase", "forward, backward", "rest", [](Options& o) { o.phases = true; }, Follows::calls, phase_sections},
    {By::step, "step", "", "steps", [](Options& o) { o.steps = true; }, Follows::calls,
     [](const Summary& s, For who) { return s.steps ? sections_of(*s.steps, s.found, who) : Sections(); }},
    {By::layer, "layer", "", "layers", [](Options& o) { o.layers = true; }, Follows::steps,
     [](const Summary& s, For who) { return s.layers ? sections_of(*s.layers, s.found, who) : Sections(); }},
    {By::site, "site", "where in the program", "sites", [](Options& o) { o.sites = true; }, Follows::calls,
     [](const Summary& s, For who) { return s.sites ? Sections{section_of(*s.sites, who)} : Sections(); }},
    {By::rank, "rank", "who came last", "lateness", [](Options& o) { o.lateness = true; }, Follows::nothing,
     [](const Summary& s, For who) { return s.lateness ? sections_of(*s.lateness, s.found, who) : Sections(); }},
    {By::wait, "wait", "waiting, and transfer", "waits", [](Options& o) { o.waits = true; }, Follows::nothing,
     [](const Summary& s, For who) { return s.waits ? Sections{section_of(*s.waits, s.comms, who)} : Sections(); }},
};
// clang-format on

}  // namespace

std::span<const ByRow> by_rows() {
  return kRows;
}

const ByRow& row_of(By by) {
  return *std::ranges::find(kRows, by == By::none ? By::size : by, &ByRow::by);
}

}  // namespace tprof::report
