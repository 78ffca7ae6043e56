
#include <algorithm>

#include "report/views.h"
#include "why/why.h"

namespace tprof::report {
namespace {

using tables::Summary;
using Sections = std::vector<Section>;

Sections operations(const Summary& s, const char* title, Apart apart) {
  if (tables::sum(s.buckets).calls == 0) return {};
  return {operation_section(s, title, apart, For::people)};
}

Sections by_operation(const Summary& s, For) {
  Sections all = operations(s, "Operations", {});
  if (!all.empty()) all.push_back(section_of(*s.op_times, tables::sum(s.buckets).calls));
  return all;
}

Sections steps_of(const Summary& s, For who) {
  const tables::StepList asked = s.only_steps.value_or(tables::StepList{});
  return sections_of(tables::step_totals(*s.lines, s.found, asked), s.found, who);
}

Sections layers_of(const Summary& s, For who) {
  const tables::StepList asked = s.only_steps.value_or(tables::StepList{});
  return sections_of(tables::layers_of(*s.lines, s.found, asked, s.buckets, s.comms), s.found, who);
}

Sections who_came_last(const Summary& s, For who) {
  return sections_of(check::lateness_of(check::arrivals_of(*s.lines), s.found), s.found, who);
}

Sections waits_of(const Summary& s, For who) {
  const run::Run run = why::run_of(*s.lines, s.found);
  return {section_of(why::wait_table_of(run, *s.job, s.found, s.peak), s.comms, who)};
}

// clang-format off
constexpr ByRow kRows[] = {
    {By::size, "size", "", nullptr, Takes::ledgers, Follows::calls,
     [](const Summary& s, For) { return operations(s, "Operations by size", {.size = true}); }},
    {By::op, "op", "", nullptr, Takes::lines, Follows::calls, by_operation},
    {By::comm, "comm", "", nullptr, Takes::ledgers, Follows::calls,
     [](const Summary& s, For) { return operations(s, "Operations by communicator", {.communicator = true}); }},
    {By::dtype, "dtype", "", nullptr, Takes::ledgers, Follows::calls,
     [](const Summary& s, For) { return operations(s, "Operations by dtype", {.dtype = true}); }},
    {By::range, "range", "NVTX", "ranges", Takes::lines, Follows::ranks,
     [](const Summary& s, For who) { return Sections{section_of(tables::range_totals(*s.lines), who)}; }},
    {By::phase, "phase", "forward, backward", "rest", Takes::steps, Follows::calls, phase_sections},
    {By::step, "step", "", "steps", Takes::steps, Follows::calls, steps_of},
    {By::layer, "layer", "", "layers", Takes::steps, Follows::steps, layers_of},
    {By::site, "site", "where in the program", "sites", Takes::lines, Follows::calls,
     [](const Summary& s, For who) { return Sections{section_of(tables::site_totals(*s.lines), who)}; }},
    {By::rank, "rank", "who came last", "lateness", Takes::steps, Follows::nothing, who_came_last},
    {By::wait, "wait", "waiting, and transfer", "waits", Takes::steps, Follows::nothing, waits_of},
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
