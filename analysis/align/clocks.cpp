#include "align/clocks.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace tprof::align {
namespace {

Point point_of(const Passage& a, const Passage& b) {
  const auto d = [](std::int64_t v) { return static_cast<double>(v); };
  Point p;
  p.ends = a.waits && b.waits && a.awaited && b.awaited;
  p.t = d(a.waits ? a.mean_end : a.last_start);
  if (p.ends) p.ahead = d(a.mean_end - b.mean_end);
  p.t_least = d(a.last_start);
  if (a.awaited && b.waits) p.least = d(a.last_start - b.first_end);
  p.t_most = d(a.first_end);
  if (a.waits && b.awaited) p.most = d(a.first_end - b.last_start);
  return p;
}

// Returns the same point, for the other host against the first.
Point turned(const Point& p) {
  Point other;
  other.ends = p.ends;
  other.t = p.t - p.ahead;
  other.ahead = -p.ahead;
  other.t_least = p.t_most - p.most;
  other.least = -p.most;
  other.t_most = p.t_least - p.least;
  other.most = -p.least;
  return other;
}

// As std::llround() rounds, without a call.
std::int64_t rounded(double x) {
  constexpr double kExact = 4503599627370496;  // from here on a double has no fraction
  if (!(std::abs(x) < kExact)) return std::llround(x);
  const auto whole = static_cast<std::int64_t>(x);
  const double rest = x - static_cast<double>(whole);
  return whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0);
}

}  // namespace

void add(std::vector<Passage>& collective, std::size_t host, bool awaited, std::int64_t start,
         bool waits, std::int64_t end) {
  auto of = std::ranges::lower_bound(collective, host, {}, &Passage::host);
  if (of == collective.end() || of->host != host) of = collective.insert(of, {.host = host});
  if (awaited) of->last_start = of->awaited ? std::max(of->last_start, start) : start;
  of->awaited = of->awaited || awaited;
  if (!waits) return;
  of->first_end = of->waits ? std::min(of->first_end, end) : end;
  of->waits = true;
  of->mean_end += (end - of->mean_end) / ++of->left;
}

void ClockFit::add(std::span<const Passage> collective) {
  if (collective.empty()) return;
  // Pairs all with one hub, so that there are no more pairs than hosts. The hub waits and is waited
  // for, if any host does both.
  const auto hub = std::ranges::max_element(collective, {}, [](const Passage& p) {
    return std::pair(p.waits && p.awaited, -static_cast<std::int64_t>(p.host));
  });
  for (const Passage& p : collective) {
    if (p.host < hub->host) add(p, *hub);
    if (p.host > hub->host) add(*hub, p);
  }
}

void ClockFit::add(const Passage& a, const Passage& b) {
  const Point p = point_of(a, b);
  if (!p.ends && p.least == -kUnbounded && p.most == kUnbounded) return;
  Edge& edge = edges_[{a.host, b.host}];
  if (edge.seen++ % edge.stride != 0) return;
  edge.points.push_back(p);
  const std::size_t most = std::clamp<std::size_t>(room_ / edges_.size(), 256, 1 << 16);
  if (edge.points.size() < most) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < edge.points.size(); i += 2) edge.points[kept++] = edge.points[i];
  edge.points.resize(kept);
  edge.stride *= 2;
}

Clocks ClockFit::clocks() const {
  struct Link {
    double weight;
    std::size_t from;
    std::size_t to;
    const Edge* edge;
    bool operator>(const Link& other) const { return weight > other.weight; }
  };
  std::vector<std::vector<Link>> links(hosts_);
  for (const auto& [pair, edge] : edges_) {
    const auto samples = samples_of(edge.points);
    if (samples.empty()) continue;
    const double n = static_cast<double>(samples.size());
    // The noise of few points is not known, so such pairs come last.
    const double noise = n < 8 ? 1e9 : noise_of(samples) + 1;
    const auto [a, b] = pair;
    links[a].push_back({noise / std::sqrt(n), a, b, &edge});
    links[b].push_back({noise / std::sqrt(n), b, a, &edge});
  }

  // From the first host of each group on, takes the best link to one that is not placed yet.
  std::vector<HostClock> clocks(hosts_);
  std::vector<bool> placed(hosts_);
  for (std::size_t first = 0; first < hosts_; ++first) {
    if (placed[first]) continue;
    clocks[first].behind = first;
    std::priority_queue<Link, std::vector<Link>, std::greater<>> next;
    const auto place = [&](std::size_t host) {
      placed[host] = true;
      clocks[host].group = first;
      for (const Link& link : links[host]) next.push(link);
    };
    place(first);
    while (!next.empty()) {
      const Link link = next.top();
      next.pop();
      if (placed[link.to]) continue;
      std::vector<Point> points = link.edge->points;
      if (link.to > link.from) std::ranges::transform(points, points.begin(), turned);
      HostClock& c = clocks[link.to];
      c.behind = link.from;
      c.course = course_of(std::move(points));
      double likely = 0;
      double at_most = 0;  // those of the worst pieces
      for (const Piece& p : c.course.pieces) {
        likely = std::max(likely, p.likely);
        at_most = std::max(at_most, p.at_most);
      }
      c.likely = std::hypot(clocks[link.from].likely, likely);
      c.at_most = clocks[link.from].at_most + at_most;
      place(link.to);
    }
  }
  return Clocks(std::move(clocks));
}

std::int64_t Clocks::aligned(std::size_t host, std::int64_t t) const {
  for (; hosts_[host].behind != host; host = hosts_[host].behind) {
    t -= rounded(hosts_[host].course.ahead(static_cast<double>(t)));
  }
  return t;
}

double Clocks::at_most(std::size_t a, std::size_t b) const {
  if (a == b) return 0;
  if (!comparable(a, b)) return kUnbounded;
  return hosts_[a].at_most + hosts_[b].at_most;
}

std::int64_t Clocks::violation(std::span<const Passage> collective) const {
  struct Came {
    std::int64_t at = std::numeric_limits<std::int64_t>::min();
    std::size_t host = 0;
  };
  if (collective.empty()) return 0;
  const std::size_t first = collective[0].host;
  Came last;
  Came before;  // of another host
  for (const Passage& p : collective) {
    if (!p.awaited || !comparable(p.host, first)) continue;
    const Came came{aligned(p.host, p.last_start), p.host};
    if (came.at > last.at) {
      before = std::exchange(last, came);
    } else if (came.at > before.at) {
      before = came;
    }
  }
  std::int64_t worst = 0;
  for (const Passage& p : collective) {
    const Came& other = last.host == p.host ? before : last;
    if (!p.waits || !comparable(p.host, first) || other.at == Came{}.at) continue;
    worst = std::max(worst, other.at - aligned(p.host, p.first_end));
  }
  return worst;
}

}  // namespace tprof::align
