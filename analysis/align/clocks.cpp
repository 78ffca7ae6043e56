#include "align/clocks.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <tuple>

namespace tprof::align {

namespace {

struct Sample {
  double t = 0;
  double y = 0;
};

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

// Returns the same point with the two hosts swapped.
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

// std::llround() inline.
std::int64_t rounded(double x) {
  constexpr double kExact = 4503599627370496;  // larger doubles have no fraction
  if (!(std::abs(x) < kExact)) return std::llround(x);
  const auto whole = static_cast<std::int64_t>(x);
  const double rest = x - static_cast<double>(whole);
  return whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0);
}

// The standard deviation of a normal distribution, divided by its median deviation.
constexpr double kNormal = 1.4826;

// Reduces the points to a few groups, and each group to its medians.
std::vector<Sample> medians(std::span<const Sample> points) {
  constexpr std::size_t kGroups = 32;
  const std::size_t groups = std::min(kGroups, points.size());
  std::vector<Sample> found;
  std::vector<double> t;
  std::vector<double> y;
  for (std::size_t g = 0; g < groups; ++g) {
    t.clear();
    y.clear();
    const std::size_t end = points.size() * (g + 1) / groups;
    for (std::size_t i = points.size() * g / groups; i < end; ++i) {
      t.push_back(points[i].t);
      y.push_back(points[i].y);
    }
    found.push_back({median(t), median(y)});
  }
  return found;
}

// Theil-Sen: takes the median of the slopes between any two points.
Line rough_line(std::span<const Sample> points) {
  const std::vector<Sample> few = medians(points);
  std::vector<double> values;
  for (std::size_t i = 0; i < few.size(); ++i) {
    for (std::size_t j = i + 1; j < few.size(); ++j) {
      const double apart = few[j].t - few[i].t;
      if (apart > 0) values.push_back((few[j].y - few[i].y) / apart);
    }
  }
  Line line;
  line.slope = values.empty() ? 0 : median(values);
  line.t0 = few[few.size() / 2].t;
  values.clear();
  for (const Sample& p : few) values.push_back(p.y - line.slope * (p.t - line.t0));
  line.y0 = median(values);
  return line;
}

// Fits least squares over the points that are no further from `rough` than this.
Line least_squares(std::span<const Sample> points, const Line& rough, double furthest) {
  Line line;
  double t_sum = 0;
  double r_sum = 0;
  const auto near = [&](const Sample& p) { return std::abs(p.y - rough.at(p.t)) <= furthest; };
  for (const Sample& p : points) {
    if (!near(p)) continue;
    ++line.n;
    t_sum += p.t - rough.t0;
    r_sum += p.y - rough.at(p.t);
  }
  if (line.n == 0) return rough;
  line.t0 = rough.t0 + t_sum / line.n;
  const double r_mean = r_sum / line.n;
  double product = 0;
  for (const Sample& p : points) {
    if (!near(p)) continue;
    const double dt = p.t - line.t0;
    line.spread += dt * dt;
    product += dt * (p.y - rough.at(p.t) - r_mean);
  }
  line.slope = rough.slope + (line.spread > 0 ? product / line.spread : 0);
  line.y0 = rough.at(line.t0) + r_mean;
  double squares = 0;
  for (const Sample& p : points) {
    if (near(p)) squares += (p.y - line.at(p.t)) * (p.y - line.at(p.t));
  }
  line.noise = line.n > 2 ? std::sqrt(squares / (line.n - 2)) : 0;
  return line;
}

using Samples = std::span<const Sample>;

constexpr std::size_t kFewest = 24;  // samples of a piece; fewer would fit noise
constexpr int kDeepest = 12;         // nested splits

// True if the points differ from the line by noise only: no stretch of them lies on one side.
bool fits(Samples samples, const Line& line, double noise) {
  const std::size_t stretches = std::min<std::size_t>(16, samples.size() / 8);
  std::vector<double> off;
  for (std::size_t s = 0; s < stretches; ++s) {
    const std::size_t begin = samples.size() * s / stretches;
    const std::size_t end = samples.size() * (s + 1) / stretches;
    off.clear();
    for (const Sample& p : samples.subspan(begin, end - begin)) off.push_back(p.y - line.at(p.t));
    // The deviation of a median, with a margin for other distributions, and 20 ns for the clock's
    // resolution.
    const double deviation = 1.25 * noise / std::sqrt(static_cast<double>(end - begin));
    if (std::abs(median(off)) > 6 * deviation + 20) return false;
  }
  return true;
}

// Returns the standard deviation of one point, estimated from neighbours, so that steps and bends
// don't count.
double noise_of(std::span<const Sample> points) {
  if (points.size() < 3) return 0;
  // How far each point is from the line between its neighbours.
  std::vector<double> off;
  for (std::size_t i = 1; i + 1 < points.size(); ++i) {
    const auto& [before, p, after] = std::tie(points[i - 1], points[i], points[i + 1]);
    const double apart = after.t - before.t;
    const double w = apart > 0 ? (p.t - before.t) / apart : 0.5;
    const double between = before.y + w * (after.y - before.y);
    off.push_back(std::abs(p.y - between) / std::sqrt(1 + w * w + (1 - w) * (1 - w)));
  }
  return kNormal * median(off);
}

// Takes at least one point, sorted by t. Up to half of them may be outliers.
Line fitted_line(std::span<const Sample> points) {
  Line line = rough_line(points);
  std::vector<double> off;
  for (int round = 0; round < 2; ++round) {
    off.clear();
    for (const Sample& p : points) off.push_back(std::abs(p.y - line.at(p.t)));
    // Few points are all kept: a distant one may be right.
    const double furthest = points.size() < 8 ? kNormal * 1e18 : 4 * kNormal * median(off) + 1;
    line = least_squares(points, line, furthest);
  }
  return line;
}

double misfit(Samples samples, const Line& line) {
  double sum = 0;
  for (const Sample& p : samples) sum += std::abs(p.y - line.at(p.t));
  return sum;
}

// Returns where to split so that a line on each side fits best.
std::size_t best_split(Samples samples) {
  std::size_t begin = kFewest;
  std::size_t end = samples.size() - kFewest;
  std::size_t best = samples.size() / 2;
  while (end - begin > 4) {
    constexpr std::size_t kTried = 8;
    double least = kUnbounded;
    for (std::size_t i = 0; i <= kTried; ++i) {
      const std::size_t at = begin + (end - begin) * i / kTried;
      const Samples left = samples.first(at);
      const Samples right = samples.subspan(at);
      const double sum = misfit(left, fitted_line(left)) + misfit(right, fitted_line(right));
      if (sum < least) {
        least = sum;
        best = at;
      }
    }
    const std::size_t reach = std::max<std::size_t>((end - begin) / kTried, 1);
    begin = std::max(begin, best - std::min(best, reach));
    end = std::min(end, best + reach);
  }
  return best;
}

// Finds where each piece of the samples begins, and its line.
void split(Samples all, std::size_t begin, std::size_t end, double noise, int depth,
           std::vector<std::pair<std::size_t, Line>>& found) {
  const Samples samples = all.subspan(begin, end - begin);
  const Line line = fitted_line(samples);
  if (samples.size() < 2 * kFewest || depth == kDeepest || fits(samples, line, noise)) {
    found.emplace_back(begin, line);
    return;
  }
  const std::size_t at = begin + best_split(samples);
  split(all, begin, at, noise, depth + 1, found);
  split(all, at, end, noise, depth + 1, found);
}

// Returns the points that have `ends`, by time.
std::vector<Sample> samples_of(const std::vector<Point>& points) {
  std::vector<Sample> samples;
  for (const Point& p : points) {
    if (p.ends) samples.push_back({p.t, p.ahead});
  }
  std::ranges::sort(samples, {}, &Sample::t);
  return samples;
}

// Takes points in any order, at least one with `ends`. The lines keep the hard bounds if possible.
Course course_of(std::vector<Point> points) {
  std::ranges::sort(points, {}, &Point::t);
  const std::vector<Sample> samples = samples_of(points);
  std::vector<std::pair<std::size_t, Line>> lines;
  split(samples, 0, samples.size(), noise_of(samples), 0, lines);

  Course course;
  course.points = points.size();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [first, line] = lines[i];
    // The change came at some time between two collectives.
    const double begin = i == 0 ? -kUnbounded : (samples[first - 1].t + samples[first].t) / 2;
    course.pieces.push_back({begin, line, 0, kUnbounded});
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Piece& piece = course.pieces[i];
    const bool last = i + 1 == lines.size();
    const double until = last ? kUnbounded : course.pieces[i + 1].begin;
    const double first_t = samples[lines[i].first].t;
    const double last_t = samples[last ? samples.size() - 1 : lines[i + 1].first - 1].t;
    const auto within = [&](double t) { return t >= piece.begin && t < until; };
    // How far the line may move up and down. A bound applies to the piece that it is in; one that
    // contradicts earlier bounds is ignored.
    double least = -kUnbounded;
    double most = kUnbounded;
    for (const Point& p : points) {
      const double from = within(p.t_least) ? p.least - piece.line.at(p.t_least) : -kUnbounded;
      const double to = within(p.t_most) ? p.most - piece.line.at(p.t_most) : kUnbounded;
      if (from <= most) least = std::max(least, from);
      if (to >= least) most = std::min(most, to);
    }
    const double moved = std::clamp(0.0, least, most);
    piece.line.y0 += moved;
    for (const double t : {first_t, last_t}) {
      piece.likely = std::max(piece.likely, 3 * piece.line.deviation(t));
    }
    piece.at_most = std::max(most - moved, moved - least) + piece.likely;
  }
  return course;
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
  // Pairs all hosts with one hub, so that pairs are fewer than hosts. The hub both waits and is
  // awaited, if any host does.
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
    // A line has two parameters, so few points hide most of their noise, and two all of it.
    const double noise = n < 3 ? 1e9 : (noise_of(samples) + 1) * n / (n - 2);
    const auto [a, b] = pair;
    links[a].push_back({noise / std::sqrt(n), a, b, &edge});
    links[b].push_back({noise / std::sqrt(n), b, a, &edge});
  }

  // Starting with the first host of each group, takes the best link to a host that is not placed
  // yet.
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
      double at_most = 0;  // of the worst pieces
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
  struct Arrived {
    std::int64_t at = std::numeric_limits<std::int64_t>::min();
    std::size_t host = 0;
  };
  if (collective.empty()) return 0;
  const std::size_t first = collective[0].host;
  Arrived last;
  Arrived before;  // of another host
  for (const Passage& p : collective) {
    if (!p.awaited || !comparable(p.host, first)) continue;
    const Arrived came{aligned(p.host, p.last_start), p.host};
    if (came.at > last.at) {
      before = std::exchange(last, came);
    } else if (came.at > before.at) {
      before = came;
    }
  }
  std::int64_t worst = 0;
  for (const Passage& p : collective) {
    const Arrived& other = last.host == p.host ? before : last;
    if (!p.waits || !comparable(p.host, first) || other.at == Arrived{}.at) continue;
    worst = std::max(worst, other.at - aligned(p.host, p.first_end));
  }
  return worst;
}

double Line::deviation(double t) const {
  if (n < 3) return 0;  // too few to tell
  const double far = t - t0;
  return noise * std::sqrt(1 / n + (spread > 0 ? far * far / spread : 0));
}

double median(std::span<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

const Piece& Course::piece_at(double t) const {
  if (pieces.size() == 1) return pieces.front();  // almost always
  const auto next = std::ranges::upper_bound(pieces, t, {}, &Piece::begin);
  return next == pieces.begin() ? pieces.front() : *std::prev(next);
}

}  // namespace tprof::align
