#include <fmt/format.h>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "check/ends.h"
#include "report/findings.h"
#include "report/report.h"
#include "report/table.h"
#include "report/views.h"
#include "text/text.h"
#include "why/why.h"

namespace tprof::report {

namespace {

constexpr std::size_t kMostBrief = 3;  // rows of a table

// Errors and warnings, or notes.
std::string findings(const tables::Summary& s, bool notes) {
  std::string out;
  for (const check::Finding& f : s.findings) {
    if ((f.severity == check::Severity::note) == notes) out += to_text(f, Detail::brief);
  }
  return out;
}

std::string title_of_totals(const tables::Summary& s) {
  const std::string over = how_many(s.job->processes);
  if (!s.only_steps) return "Totals over " + over;
  const std::string steps = named(*s.only_steps);
  const bool one = steps.find_first_of(",-") == std::string::npos;
  return fmt::format("Totals of {} {} over {}{}", one ? "step" : "steps", steps, over,
                     s.found.exact ? "" : ": calls with lines");
}

Section brief(Section section) {
  section.room.rows = kMostBrief;
  section.room.all_with = "--verbose";
  section.notes.clear();
  return section;
}

std::string commands(const std::vector<std::string>& next) {
  std::string out;
  for (const std::string& command : next) {
    out += fmt::format("{}{}\n", out.empty() ? "\nNext: " : "      ", text::printable(command));
  }
  return out;
}

// Returns until when unclosed ranks are known: CLOCK_REALTIME in nanoseconds, by rank.
Json known_until(const tables::Summary& s) {
  Json j = Json::object();
  for (const read::Process* p : s.job->processes) {
    if (p->end == read::End::closed || !p->header.rank) continue;
    j[std::to_string(*p->header.rank)] = !p->ledger ? Json() : Json(check::known_until_ns(*p));
  }
  return j;
}

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
    {By::range, "range", "NVTX", "ranges", Takes::lines, Follows::ranks, range_sections},
    {By::phase, "phase", "forward, backward", "rest", Takes::steps, Follows::calls, phase_sections},
    {By::step, "step", "", "steps", Takes::steps, Follows::calls, step_sections},
    {By::layer, "layer", "", "layers", Takes::steps, Follows::steps, layer_sections},
    {By::site, "site", "where in the program", "sites", Takes::lines, Follows::calls, site_sections},
    {By::rank, "rank", "who came last", "lateness", Takes::steps, Follows::nothing, who_came_last},
    {By::wait, "wait", "waiting, and transfer", "waits", Takes::steps, Follows::nothing, waits_of},
};
// clang-format on

}  // namespace

std::string to_text(const tables::Summary& s, const TextOptions& options) {
  const bool first_screen = options.by == By::none && !options.verbose;
  std::string out = heading(s);
  if (options.verbose) out += details(s) + "\n";
  out += options.verdict + headline(s) + findings(s, false);
  const auto add = [&](Section section, bool asked_for = false) {
    section.room.width = options.width;
    section.room.breaks = options.breaks;
    section.room.tells_columns = options.verbose || asked_for;
    out += to_text(std::move(section));
  };
  const auto add_all = [&](std::vector<Section> sections) {
    for (Section& section : sections) add(std::move(section));
  };
  const bool any = tables::sum(s.buckets).calls != 0;
  if (any || s.only_steps) add(bucket_section(s, title_of_totals(s), For::people));
  if (options.per_rank && !s.histogram) add(rank_section(s, For::people, std::nullopt));
  if (s.histogram) add_all(sections_of(*s.histogram, options.per_rank, For::people));
  if (first_screen) {
    if (any && !s.histogram)
      add(brief(operation_section(s, "Largest operations", {.size = true}, For::people, true)));
    // A histogram replaces the default table.
  } else if (!s.histogram || options.by > By::size) {
    for (Section& section : row_of(options.by).sections(s, For::people)) {
      add(std::move(section), options.by != By::none);
    }
  }
  if (s.slowest) {
    add(section_of(*s.slowest, s.found, tables::sum(s.buckets).calls, For::people), true);
  }
  if (!first_screen && !s.comms.empty()) add(section_of(s.comms, For::people));
  if (first_screen && s.comms.size() > 1) add(brief(section_of(s.comms, For::people)));
  if (!s.memory.uses.empty()) add(section_of(s.memory, For::people));
  const std::string notes = findings(s, true);
  if (!notes.empty()) out += "\n" + notes;
  return out + commands(options.next);
}

std::string to_json(const tables::Summary& s, By by, bool lines) {
  Json j;
  j["schema"] = "tprof-summary/1";
  j["run_id"] = or_null(s.job->run_id);
  if (!s.only.sentence().empty()) j["only"] = only_json(s.only, s.notes);
  j["ranks"] = s.job->ranks;
  j["missing_ranks"] = s.job->missing;
  j["complete"] = s.complete;
  j["known_until"] = known_until(s);
  j["dropped"] = s.dropped;
  if (s.compute.window_ns != 0) {
    j["compute"] = {{"busy_ns", s.compute.busy_ns}, {"window_ns", s.compute.window_ns}};
  }
  if (s.self_run_ns != 0) {
    j["self_cost"] = {{"cpu_ns", s.self_cost_ns},
                      {"in_calls_ns", std::llround(s.self_in_calls_ns)},
                      {"run_ns", s.self_run_ns}};
  }
  put(j, "buckets", bucket_section(s, "", For::programs));
  for (std::size_t b = 0; b <= kBucketCount; ++b) {  // one by one, as a table of all ranks is large
    put(j, "buckets", rank_section(s, For::programs, b));
  }
  for (auto& [key, part] : split_buckets(s)) put(j, key, std::move(part));
  put(j, "ops",
      operation_section(s, "", {.size = true, .dtype = true, .communicator = true}, For::programs));
  put(j, "comms", section_of(s.comms, For::programs));
  if (s.memory.asked) put(j, "memory", section_of(s.memory, For::programs));
  for (const ByRow& row : by_rows()) {
    const bool asked = row.by == by || (row.by == By::step && (lines || s.only_steps));
    if (row.json == nullptr || !asked) continue;
    for (Section& x : row.sections(s, For::programs)) put(j, row.json, std::move(x));
  }
  if (s.slowest) put(j, "slowest", section_of(*s.slowest, s.found, 0, For::programs));
  if (s.histogram) {
    for (Section& x : sections_of(*s.histogram, true, For::programs)) put(j, "hist", std::move(x));
  }
  j["findings"] = to_json(s.findings, Detail::brief);
  return printed(j);
}

std::span<const ByRow> by_rows() {
  return kRows;
}

const ByRow& row_of(By by) {
  return *std::ranges::find(kRows, by == By::none ? By::size : by, &ByRow::by);
}

}  // namespace tprof::report
