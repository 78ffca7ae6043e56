// Findings about counts, from ledgers and footers: calls that were refused or never returned, sums
// that are too large, and lines that were dropped.
#include <map>

#include "diagnose/diagnosis.h"
#include "diagnose/who.h"
#include "stats/totals.h"

namespace tprof::diagnose {
namespace {

using read::Process;

using Counts = std::map<std::string, std::uint64_t>;

Facts list_of(const Counts& counts) {
  Facts list;
  for (const auto& [name, n] : counts) {
    list.push_back({Say::counted_names, {{"n", n}, {"name", name}}});
  }
  return list;
}

// Adds one finding for all rows in which the amount is not 0, with a sum per name.
void each_name(const Case& c, std::uint64_t read::Amounts::*amount, Kind kind, Findings& found) {
  Counts names;
  Processes processes;
  for (const Process* p : c.job.processes) {
    for (const read::Row& row : read::rows_of(*p)) {
      if (row.amounts.*amount == 0) continue;
      names[row.name] += row.amounts.*amount;
      if (processes.empty() || processes.back() != p) processes.push_back(p);
    }
  }
  if (processes.empty()) return;
  add(found, kind, processes, {{"calls", list_of(names)}});
}

void calls_without_effect(const Case& c, Findings& found) {
  each_name(c, &read::Amounts::failed, Kind::failed, found);
  each_name(c, &read::Amounts::unfinished, Kind::unfinished, found);
}

void overflows(const Case& c, Findings& found) {
  read::Amounts all;
  for (const Process* p : c.job.processes) all += stats::sum(stats::bucket_totals(*p));
  if (!all.saturated()) return;
  add(found, Kind::overflow, c.job.processes, {{"most", read::kSaturated}});
}

void add_dropped(const Case& c, Counts read::Footer::*counts, Kind kind, Findings& found) {
  Counts reasons;
  Processes processes;
  std::uint64_t all = 0;
  for (const Process* p : c.job.processes) {
    if (!p->footer || ((*p->footer).*counts).empty()) continue;
    processes.push_back(p);
    for (const auto& [reason, lines] : (*p->footer).*counts) {
      if (p->lane != 0) continue;  // counted once per process
      reasons[reason] += lines;
      all += lines;
    }
  }
  if (all == 0) return;
  // The most important reason has the advice.
  const bool error = reasons.contains("write_error");
  const bool ring = !error && reasons.contains("ring");
  const bool quota = !error && !ring && reasons.contains("quota");
  Finding& f = add(found, kind, processes,
                   {{"lines", all},
                    {"reasons", list_of(reasons)},
                    {"write_error", error},
                    {"ring", ring},
                    {"quota", quota}});
  if (!error && !ring) f.severity = Severity::note;  // a setting says so
}

void dropped(const Case& c, Findings& found) {
  add_dropped(c, &read::Footer::dropped, Kind::dropped, found);
  add_dropped(c, &read::Footer::ranges_dropped, Kind::dropped_ranges, found);
}

void missing_windows(const Case& c, Findings& found) {
  const Processes alone =
      select(c.job.processes, [](const Process& p) { return !p.header.window_of.empty(); });
  if (!alone.empty()) {
    add(found, Kind::window_alone, alone, {{"rank_file", alone[0]->header.window_of}});
  }
  const Processes without = select(
      c.job.processes, [](const Process& p) { return p.lane == 0 && p.windows_missing != 0; });
  if (without.empty()) return;
  std::uint64_t missing = 0;
  std::uint64_t all = 0;
  for (const Process* p : without) {
    missing += p->windows_missing;
    all += p->footer ? p->footer->window_files : 0;
  }
  add(found, Kind::missing_windows, without, {{"missing", missing}, {"all", all}});
}

}  // namespace

extern const Diagnosis kMissingWindows{kCheck | kSummary | kWhole, missing_windows};
extern const Diagnosis kWithoutEffect{kCheck | kSummary | kWhole, calls_without_effect};
extern const Diagnosis kOverflow{kSummary | kWhole, overflows};
extern const Diagnosis kDropped{kCheck | kSummary | kWhole, dropped};

}  // namespace tprof::diagnose
