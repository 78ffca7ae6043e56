// Findings about counts, from ledgers and footers: calls that were refused or never returned, sums
// that are too large, and lines that were dropped.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "diagnose/diagnosis.h"
#include "diagnose/names.h"
#include "stats/totals.h"
#include "text/text.h"

namespace tprof::diagnose {
namespace {

using read::Process;

constexpr Kind kFailedCalls{"failed", Severity::warning};
constexpr Kind kUnfinishedCalls{"unfinished", Severity::warning};
constexpr Kind kOverflown{"overflow", Severity::error};
constexpr Kind kDroppedUnasked{"dropped", Severity::warning};
constexpr Kind kDroppedBySetting{"dropped", Severity::note};
// These say nothing against the counts: whatever the reason, the trace is sound.
constexpr Kind kWindowAlone{"window_alone", Severity::note};
constexpr Kind kWindowsNotHere{"missing_windows", Severity::note};
constexpr Kind kDroppedRanges{"dropped_ranges", Severity::note};

using Counts = std::map<std::string, std::uint64_t>;

// "12 ncclSend, 3 ncclRecv"
std::string list_of(const Counts& counts) {
  std::vector<std::string> list;
  for (const auto& [name, n] : counts) list.push_back(text::thousands(n) + " " + name);
  return fmt::format("{}", fmt::join(list, ", "));
}

// Adds one finding for all rows in which the amount is not 0, with a sum per name.
void each_name(const Case& c, std::uint64_t read::Amounts::*amount, const Kind& kind,
               const char* what, Findings& found) {
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
  add(found, kind, processes,
      fmt::format("{}: {} ({})", names_of(processes), what, list_of(names)));
}

void calls_without_effect(const Case& c, Findings& found) {
  each_name(c, &read::Amounts::failed, kFailedCalls,
            "calls were refused or only simulated, alone or with their group", found);
  each_name(c, &read::Amounts::unfinished, kUnfinishedCalls, "calls never returned", found);
}

void overflows(const Case& c, Findings& found) {
  read::Amounts all;
  for (const Process* p : c.job.processes) all += stats::sum(stats::bucket_totals(*p));
  if (!all.saturated()) return;
  add(found, kOverflown, c.job.processes,
      "a total is larger than 64 bits can hold: what is given as " +
          text::thousands(read::kSaturated) + " is a lower bound",
      "if that can't be, a rank file is damaged: summary --per-rank tells which");
}

// Advice for each reason to drop lines, the most important reason first.
struct Reason {
  const char* name;
  const char* next;
  bool asked_for;  // caused by a setting
};
constexpr Reason kReasons[] = {
    {"write_error", "free space in TPROF_OUTPUT_DIR", false},
    {"ring", "raise TPROF_RING (NVTX ranges leave half of it to calls)", false},
    {"quota",
     "raise TPROF_QUOTA (NVTX ranges have a quarter of it on top), or write lines of fewer ranks "
     "with TPROF_RANKS",
     true},
};

void add_dropped(const Case& c, Counts read::Footer::*counts, const char* what, const Kind& unasked,
                 const Kind& by_setting, Findings& found) {
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
  const auto* why = std::ranges::find_if(
      kReasons, [&](const Reason& reason) { return reasons.contains(reason.name); });
  const bool known = why != std::end(kReasons);
  add(found, known && !why->asked_for ? unasked : by_setting, processes,
      fmt::format("{} {} of {} have no line in the timeline (by reason: {})", text::thousands(all),
                  what, names_of(processes), list_of(reasons)),
      known ? why->next : "");
}

void dropped(const Case& c, Findings& found) {
  add_dropped(c, &read::Footer::dropped, "counted events", kDroppedUnasked, kDroppedBySetting,
              found);
  add_dropped(c, &read::Footer::ranges_dropped, "NVTX ranges", kDroppedRanges, kDroppedRanges,
              found);
}

void missing_windows(const Case& c, Findings& found) {
  const Processes alone =
      select(c.job.processes, [](const Process& p) { return !p.header.window_of.empty(); });
  if (!alone.empty()) {
    add(found, kWindowAlone, alone,
        names_of(alone) + ": the file of a window alone: the counts are those of its lines",
        "the rank file has those of the whole run: " + alone[0]->header.window_of);
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
  add(found, kWindowsNotHere, without,
      fmt::format("{}: {} of {} files of windows are not here: their lines are in nothing that is "
                  "made of lines; the counts are those of the whole run",
                  names_of(without), text::thousands(missing), text::thousands(all)));
}

}  // namespace

extern const Diagnosis kMissingWindows{kCheck | kSummary, missing_windows};
extern const Diagnosis kWithoutEffect{kCheck | kSummary, calls_without_effect};
extern const Diagnosis kOverflow{kSummary, overflows};
extern const Diagnosis kDropped{kCheck | kSummary, dropped};

}  // namespace tprof::diagnose
