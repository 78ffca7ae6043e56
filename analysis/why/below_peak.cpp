// Transfers that reach less than half of the bandwidth that the user expects of the links.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "check/names.h"
#include "why/causes.h"
#include "why/changes.h"

namespace tprof::why {
namespace {

using check::Findings;
using check::Kind;
using check::Ns;
using check::Percent;

// The communicators of one bucket that are slow, within hosts or between them.
struct BelowPeak {
  explicit BelowPeak(const Evidence& e) : at_peak(e) {}
  Changes at_peak;
  text::Ranks ranks{};
  const WaitRow* worst = nullptr;
};

bool told(const Findings& found, const std::string& comm) {
  return std::ranges::any_of(found, [&](const check::Finding& f) {
    return f.kind == Kind::slow_link && f.communicator == comm;
  });
}

}  // namespace

void below_peak(const Evidence& e, Findings& found) {
  std::map<std::pair<Bucket, bool>, BelowPeak> all;
  for (const WaitRow& row : e.waits.rows) {
    if (!row.peak_share || *row.peak_share >= kLeastOfPeak || row.meetings < 4) continue;
    if (row.size_class < kLeastClassOfPeak || row.rank_steps == 0 || told(found, row.comm))
      continue;
    BelowPeak& slow = all.try_emplace({row.bucket, row.spans_hosts()}, e).first->second;
    slow.at_peak.scale(row.comm, row.bucket, row.size_class, *row.peak_share);
    slow.ranks.add(row.ranks);
    if (slow.worst == nullptr || *row.peak_share < *slow.worst->peak_share) slow.worst = &row;
  }
  for (const auto& [kind, slow] : all) {
    const auto [ns, doubt] = slow.at_peak.saving();
    if (ns < kLeastShare * e.step_ns || ns <= doubt) continue;
    const WaitRow& worst = *slow.worst;
    const text::Ranks& ranks = slow.ranks;  // clang 14 captures no structured binding
    const check::Processes who = check::select(e.job.processes, [&](const read::Process& p) {
      return p.header.rank && ranks.contains(*p.header.rank);
    });
    const auto role = e.roles.find(worst.comm);
    check::Finding& f =
        add(found, Kind::below_peak, who,
            {{"share", Percent{100 * ns / e.step_ns}},
             {"saves", Ns{std::llround(ns)}},
             {"bucket", std::string(bucket_name(worst.bucket))},
             {"size", check::SizeClass{worst.size_class}},
             {"role", role == e.roles.end() ? std::optional<std::string>() : role->second},
             {"on", worst.ranks},
             {"reaches", fmt::format("{:.1f}", *worst.busbw_GBps)},
             {"of_peak", Percent{100 * *worst.peak_share}},
             {"between", worst.spans_hosts()}});
    f.communicator = worst.comm;
    f.cost = cost_of(e, ns, doubt);
  }
}

}  // namespace tprof::why
