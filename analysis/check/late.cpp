// Finds ranks that the others waited for, repeatedly or once for long.
#include <algorithm>

#include "check/calls.h"
#include "check/diagnosis.h"
#include "check/lateness.h"
#include "check/names.h"
#include "interpose/format/line_kinds.h"
#include "read/told_lines.h"
#include "text/text.h"

namespace tprof::check {
namespace {

constexpr std::int64_t kLeastNs = 1'000'000'000;  // total of a rank
constexpr std::int64_t kLeastShare = 100;         // at least one part in this many of the time
constexpr std::int64_t kTimesTheOthers = 4;

// Without its latest arrival, which may be a checkpoint and must not hide a rank that is late in
// every fifth step.
std::int64_t usually_late_ns(const LateRank& r) {
  return std::max<std::int64_t>(0, r.own_ns() - r.max_ns);
}

// In every job some rank comes last. It stands out if it was waited for far longer than half of the
// others usually were, and mostly not behind values that it alone had read.
// `i`: its place in `ranks`, which begin with those that are late by the most of their own.
bool stands_out(std::size_t i, const std::vector<LateRank>& ranks, const Lateness& l) {
  const LateRank& r = ranks[i];
  if (r.own_ns() < kLeastNs || r.own_ns() < l.span_ns / kLeastShare) return false;
  if (ranks.size() == 1 || r.own_ns() < r.sum_read_ns) return false;
  const std::size_t middle = (ranks.size() - 1) / 2;  // of the others
  return r.own_ns() / kTimesTheOthers >= usually_late_ns(ranks[middle < i ? middle : middle + 1]);
}

// The steps of a rank that are within a time or reach into it.
struct StepsIn {
  const read::Process* rank;
  TimeRange time;
  std::optional<StepRange> steps{};
  bool known = true;  // their numbers ascend, and no line of them is damaged

  void metadata(const read::Line& line) try {
    if (!is_line(line.text, LineKind::step)) return;
    const auto step = read::told_in<read::StepLine>(line, rank->file);
    const std::int64_t zero = rank->header.base_time_ns;
    if (zero + step.to_ns <= time.from_ns || zero + step.from_ns > time.to_ns) return;
    known = known && (!steps || step.step > steps->last);
    steps = StepRange{steps ? steps->first : step.step, step.step};
  } catch (const std::runtime_error&) {
    known = false;
  }
};

void late(const Case& c, Findings& found) {
  if (c.arrivals == nullptr) return;
  const Lateness l = lateness_of(*c.arrivals);
  std::vector<LateRank> ranks = l.ranks;
  std::ranges::stable_sort(ranks, std::ranges::greater(), &LateRank::own_ns);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!stands_out(i, ranks, l)) continue;
    const LateRank& r = ranks[i];
    const auto worst = std::ranges::find(l.worst, r.rank, &LateArrival::rank);
    if (worst == l.worst.end()) continue;
    Finding& f = add(found, Kind::late, {r.rank},
                     {{"last", r.last},
                      {"collectives", r.collectives},
                      {"behind", Ns{r.own_ns()}},
                      {"across_hosts", l.across_hosts},
                      {"latest_at", Time{worst->realtime_ns}}});
    f.time = TimeRange{r.first_realtime_ns, r.last_realtime_ns};
    const StepsIn in = c.shown(*r.rank, StepsIn{r.rank, *f.time});
    if (in.known) f.steps = in.steps;
    // No cost: ranks that wait may compute meanwhile, and one that lags more and more is late to
    // each collective by all that it lags (tried: twice the truth). why/ tells it, where devices
    // were followed.
    f.communicator = worst->communicator;
    f.seq = worst->seq;
    f.between = {{worst->seq, worst->seq + 1}};
    f.function = collective_name(worst->bucket);
    f.evidence.push_back({Say::latest_arrival,
                          {{"late", Ns{worst->late_ns}},
                           {"function", f.function},
                           {"seq", worst->seq},
                           {"communicator", text::printable(worst->communicator.str())}}});
    f.evidence.push_back({Say::arrivals_are, {{"on_device", l.on_device}}});
  }
}

}  // namespace

extern const Diagnosis kLateRanks{kCheck, late};

}  // namespace tprof::check
