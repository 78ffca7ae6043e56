// Findings about counts in ledgers and footers: calls that were refused or never returned, sums
// that overflowed, dropped lines, and calls without a device time or exposed time, which printed
// times leave out.
#include <algorithm>
#include <iterator>
#include <map>

#include "check/diagnosis.h"
#include "check/ends.h"
#include "interpose/format/ring_file.h"
#include "interpose/format/settings.h"
#include "tables/totals.h"

namespace tprof::check {
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

// Adds one finding for all rows with a non-zero amount, with a sum per name.
void each_name(const Case& c, std::uint64_t read::Amounts::*amount, Kind kind, Findings& found) {
  Counts names;
  const Processes who = select(c.job.processes, [&](const Process& p) {
    std::uint64_t mine = 0;
    if (kind == Kind::unfinished && killed_at_work(p, c)) return false;
    for (const read::Row& row : read::rows_of(p)) {
      if (row.amounts.*amount != 0) names[row.name] += row.amounts.*amount;
      mine |= row.amounts.*amount;
    }
    return mine != 0;
  });
  if (!who.empty()) add(found, kind, who, {{"calls", list_of(names)}});
}

void calls_without_effect(const Case& c, Findings& found) {
  each_name(c, &read::Amounts::failed, Kind::failed, found);
  each_name(c, &read::Amounts::unfinished, Kind::unfinished, found);
}

void overflows(const Case& c, Findings& found) {
  read::Amounts all;
  for (const Process* p : c.job.processes) all += tables::sum(tables::bucket_totals(*p));
  if (!all.saturated()) return;
  add(found, Kind::overflow, c.job.processes, {{"most", read::kSaturated}});
}

// The counts in footers by reason, once per process.
struct Counted {
  std::uint64_t n = 0;
  Processes who{};
};
std::map<std::string, Counted> by_reason(const Case& c, Counts read::Footer::*counts) {
  std::map<std::string, Counted> all;
  for (const Process* p : c.job.processes) {
    if (!p->footer) continue;
    for (const auto& [reason, n] : (*p->footer).*counts) {
      if (n == 0) continue;
      // Without lines there is no window.
      const std::string_view setting = reason == "window" ? read::no_lines_by(*p) : "";
      auto& [sum, who] = all[setting.empty() ? reason : std::string(setting)];
      if (p->lane == 0) sum = read::saturated_sum(sum, n);
      who.push_back(p);
    }
  }
  return all;
}

void add_dropped(const Case& c, Counts read::Footer::*counts, Kind kind, Findings& found) {
  Counts reasons;
  std::uint64_t all = 0;
  for (const auto& [reason, counted] : by_reason(c, counts)) {
    reasons[reason] = counted.n;
    all += counted.n;
  }
  if (all == 0) return;
  const Processes who = select(c.job.processes, [&](const Process& p) {
    return p.footer && !((*p.footer).*counts).empty();
  });
  // The advice is for the most important reason.
  const bool error = reasons.contains("write_error");
  const bool ring = !error && reasons.contains("ring");
  const bool quota = !error && !ring && reasons.contains("quota");
  Finding& f = add(found, kind, who,
                   {{"lines", all},
                    {"reasons", list_of(reasons)},
                    {"write_error", error},
                    {"ring", ring},
                    {"quota", quota}});
  if (!error && !ring) f.severity = Severity::note;  // a setting asked for it
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

// `first`: the sentence of the first reason; those of the others follow it in order. `known`: the
// figure that counts calls with such a time. Less than 1 % of all calls is not reported.
template <std::size_t n>
void untimed(const Case& c, Findings& found, Kind kind, Counts read::Footer::*counts,
             const char* const (&names)[n], Say first,
             std::uint64_t read::Amounts::*known = nullptr) {
  constexpr std::uint64_t kFew = 100;
  const std::map<std::string, Counted> reasons = by_reason(c, counts);
  std::uint64_t without = 0;
  for (const auto& [name, reason] : reasons) without = read::saturated_sum(without, reason.n);
  std::uint64_t all = without;
  for (const Process* p : c.job.processes) {
    if (known == nullptr || !p->ledger) continue;
    for (const read::Row& row : p->ledger->rows) {
      all = read::saturated_sum(all, row.amounts.*known);
    }
  }
  if (without < all / kFew) return;
  for (const auto& [name, reason] : reasons) {
    const auto why = std::ranges::find(names, std::string_view(name));
    std::optional<Fact> told;
    if (why != std::end(names)) {
      told = Fact{static_cast<Say>(static_cast<std::ptrdiff_t>(first) + (why - std::begin(names)))};
    }
    add(found, kind, reason.who,
        {{"calls", reason.n}, {"of", all}, {"why", name}, {"reason", told}});
  }
}

// Reports processes whose streams share one queue of the device, and what that costs them.
void one_queue(const Case& c, Findings& found) {
  const Processes alike = select(c.job.processes, [](const Process& p) {
    return p.header.env.get("CUDA_DEVICE_MAX_CONNECTIONS") == "1";
  });
  const bool events = std::ranges::any_of(alike, [](const Process* p) {
    return p->header.config.get(info(Setting::timing).name).starts_with("events");
  });
  const bool gathers = std::ranges::any_of(alike, [](const Process* p) {
    const auto called = [&](std::string_view name) {
      return p->footer && std::ranges::any_of(p->footer->functions, [&](const auto& f) {
               return f.name == name && f.calls != 0;
             });
    };
    return called("ncclAllGather") && called("ncclReduceScatter");
  });
  if (events || gathers) {
    add(found, Kind::one_queue, alike, {{"events", events}, {"gathers", gathers}});
  }
}

void without_times(const Case& c, Findings& found) {
  untimed(c, found, Kind::untimed, &read::Footer::timing_lost, kTimingLostNames,
          Say::untimed_no_context);
  untimed(c, found, Kind::exposure_unknown, &read::Footer::exposure_lost, kExposureLostNames,
          Say::exposure_no_launch, &read::Amounts::exposure_known);
  one_queue(c, found);
}

}  // namespace

extern const Diagnosis kMissingWindows{kCheck | kSummary | kWhole | kDoctor, missing_windows};
extern const Diagnosis kWithoutEffect{kCheck | kSummary | kWhole, calls_without_effect};
extern const Diagnosis kOverflow{kSummary | kWhole | kDoctor, overflows};
extern const Diagnosis kDropped{kCheck | kSummary | kWhole | kDoctor, dropped};
extern const Diagnosis kUntimedCalls{kCheck | kSummary | kDoctor, without_times};

}  // namespace tprof::check
