// Finds ranks that the others waited for, repeatedly or once for long.
#include <algorithm>
#include <cmath>

#include "diagnose/diagnosis.h"
#include "diagnose/lateness.h"
#include "diagnose/names.h"
#include "text/text.h"

namespace tprof::diagnose {
namespace {

constexpr std::int64_t kLeastNs = 1'000'000'000;  // total of a rank
constexpr std::int64_t kLeastShare = 100;         // at least one part in this many of the time
constexpr std::int64_t kTimesTheOthers = 4;

// In every job some rank comes last. It stands out if it was waited for far longer than half of the
// others were.
bool stands_out(const LateRank& r, const Lateness& l) {
  if (r.sum_ns < kLeastNs || r.sum_ns < l.span_ns / kLeastShare) return false;
  std::vector<std::int64_t> others;
  for (const LateRank& other : l.ranks) {
    if (other.rank != r.rank) others.push_back(other.sum_ns);
  }
  if (others.empty()) return false;
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>((others.size() - 1) / 2);
  std::ranges::nth_element(others, middle);
  return r.sum_ns / kTimesTheOthers >= *middle;
}

void late(const Case& c, Findings& found) {
  if (c.meetings == nullptr) return;
  const Lateness l = lateness_of(*c.meetings, host_clocks(*c.meetings));
  for (const LateRank& r : l.ranks) {
    if (!stands_out(r, l)) continue;
    const auto worst = std::ranges::find(l.worst, r.rank, &LateArrival::rank);
    if (worst == l.worst.end()) continue;
    const double share = static_cast<double>(r.sum_ns) / static_cast<double>(l.span_ns);
    Finding& f = add(found, Kind::late, {r.rank},
                     {{"last", r.last},
                      {"collectives", r.collectives},
                      {"behind", Ns{r.sum_ns}},
                      {"share", Percent{100 * share}},
                      {"across_hosts", l.across_hosts},
                      {"latest_at", Time{worst->realtime_ns}}});
    f.cost = {.ns = r.sum_ns,
              .doubt_ns = std::llround(static_cast<double>(r.last) * l.at_most_ns),
              .share = share};
    f.communicator = worst->communicator;
    f.seq = worst->seq;
    f.between = {{worst->seq, worst->seq + 1}};
    f.function = collective_name(worst->bucket);
    f.evidence.push_back({Say::latest_arrival,
                          {{"late", Ns{worst->late_ns}},
                           {"function", f.function},
                           {"seq", worst->seq},
                           {"communicator", text::printable(worst->communicator)}}});
    f.evidence.push_back({Say::arrivals_are, {{"on_device", l.on_device}}});
  }
}

}  // namespace

extern const Diagnosis kLateRanks{kCheck, late, nullptr, true};

}  // namespace tprof::diagnose
