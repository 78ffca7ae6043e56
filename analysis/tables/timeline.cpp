#include "tables/timeline.h"

#include <algorithm>
#include <functional>

namespace tprof::tables {
namespace {

struct WantedBars {
  TimelineRank* of = nullptr;
  bool on_device = false;
};

struct CallsOfStep {
  CallsOfStep(const read::Process& rank, std::vector<WantedBars> what)
      : rank_(rank), wanted(std::move(what)) {}

  void end() {
    for (const WantedBars& w : wanted) keep_longest(*w.of);
  }

  static void keep_longest(TimelineRank& of) {
    if (of.bars.size() <= Timeline::kMostBars) return;
    std::ranges::nth_element(of.bars, of.bars.begin() + Timeline::kMostBars, std::ranges::greater(),
                             &Bar::dur_ns);
    of.left_out += of.bars.size() - Timeline::kMostBars;
    of.bars.resize(Timeline::kMostBars);
  }

  static bool runs_in(const TimelineRank& step, std::int64_t ts_ns, std::int64_t dur_ns) {
    return ts_ns < step.to_ns - unseen_ns(step) &&
           (ts_ns >= step.from_ns || ts_ns + dur_ns > step.from_ns);
  }

  void timed(const read::Event& e, const read::DeviceTime* t) {
    if (e.captured || e.failed) return;
    for (const WantedBars& w : wanted) {
      if (w.on_device && t == nullptr) {
        const steps::Interval& called = w.of->called;
        w.of->left_out += e.ts_ns >= called.from_ns && e.ts_ns < called.to_ns ? 1 : 0;
        continue;
      }
      const std::int64_t ts_ns = w.on_device ? t->ts_ns : e.ts_ns;
      const std::int64_t dur_ns = w.on_device ? t->dur_ns : e.dur_ns;
      if (!runs_in(*w.of, ts_ns, dur_ns)) continue;
      const read::Comm* comm = read::comm_of(rank_, e.comm);
      w.of->bars.push_back({.name = e.name,
                            .bucket = e.bucket,
                            .communicator = comm == nullptr ? "" : std::string(comm->id),
                            .bytes = e.bytes,
                            .ts_ns = ts_ns,
                            .dur_ns = dur_ns});
      if (w.of->bars.size() >= 4 * Timeline::kMostBars) keep_longest(*w.of);
    }
  }

  const read::Process& rank_;
  std::vector<WantedBars> wanted;
};

}  // namespace

void fill_bars(const run::Lines& lines, std::vector<Timeline>& timelines) {
  std::map<const read::Process*, std::vector<WantedBars>> by_rank;
  for (Timeline& t : timelines) {
    for (TimelineRank& r : t.ranks) by_rank[r.rank].push_back({&r, t.on_device});
  }
  if (by_rank.empty()) return;
  lines.each(
      [&](const read::Process& rank) {
        const auto wanted = by_rank.find(&rank);
        return wanted == by_rank.end()
                   ? std::nullopt
                   : std::optional<CallsOfStep>(std::in_place, rank, wanted->second);
      },
      [](const CallsOfStep& /*the bars are in their place*/) {});
}

}  // namespace tprof::tables
