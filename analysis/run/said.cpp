#include "run/said.h"

#include <algorithm>
#include <cmath>

#include "interpose/format/line_kinds.h"
#include "read/error.h"

namespace tprof::run {
namespace {

constexpr std::size_t kMaxDecreased = 8;

// Computes in floating point, so that no value in a damaged file can overflow a sum.
ClockStep step_between(const read::Anchor& a, const read::Anchor& b) {
  const auto from_to = [](std::int64_t from, std::int64_t to) {
    return static_cast<double>(to) - static_cast<double>(from);
  };
  const double passed = from_to(a.ts_ns, b.ts_ns);
  const double step = from_to(a.realtime_ns, b.realtime_ns) - passed;
  // NTP slews by 500 ppm at most. Reading both clocks takes the bracket, and sometimes a
  // millisecond more.
  const double allowed =
      passed / 2000 + from_to(0, a.bracket_ns) / 2 + from_to(0, b.bracket_ns) / 2;
  if (passed >= 0 && std::abs(step) <= allowed + 1e6) return {};
  return {passed < 0 ? passed : step, a.realtime_ns, b.realtime_ns};
}

}  // namespace

void ClockStep::keep_larger(const ClockStep& other) {
  if (std::abs(other.size_ns) > std::abs(size_ns)) *this = other;
}

void Listener::metadata(const read::Line& line, const read::Process& so_far) {
  const std::vector<read::Anchor>& clock = so_far.header.clock;
  for (; anchors_ < clock.size(); ++anchors_) {
    if (anchors_ != 0) {
      said_.clock_step.keep_larger(step_between(clock[anchors_ - 1], clock[anchors_]));
    }
  }
  if (!is_line(line.text, LineKind::ledger)) return;
  if (before_ && so_far.ledger) compare(*so_far.ledger, line.offset);
  before_ = so_far.ledger;
  last_ = std::pair<std::string, std::uint64_t>();
  if (line.text.find("\"scopes\"") != std::string_view::npos)
    last_ = std::pair(std::string(line.text), line.offset);
}

Said Listener::end(const read::Process& rank) {
  if (rank.lane == 0 && !last_.first.empty()) {
    const read::Line line{last_.first, last_.second};
    said_.scopes = read::told_in<read::ScopesOfLedger>(line, rank.file).scopes;
  }
  return std::move(said_);
}

void Listener::compare(const read::Ledger& now, std::uint64_t offset) {
  std::map<Decreased::Counted, std::uint64_t> counts;
  const auto each = [](const read::Ledger& ledger, const auto& see) {
    for (const read::Collectives& c : ledger.collectives) {
      see(Decreased::Counted{.comm = c.comm}, c.count);
    }
    for (const read::Row& r : ledger.rows) {
      see(Decreased::Counted{r.name, r.dtype, r.comm.value_or(-1), r.bytes_class, r.mode},
          r.amounts.calls);
    }
  };
  each(now, [&](const Decreased::Counted& what, std::uint64_t n) { counts[what] += n; });
  each(*before_, [&](const Decreased::Counted& what, std::uint64_t n) {
    if (n <= counts[what] || said_.decreased.size() == kMaxDecreased) return;
    said_.decreased.push_back({offset, what, counts[what], n});
  });
}

}  // namespace tprof::run
