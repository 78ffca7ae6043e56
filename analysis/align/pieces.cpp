#include "align/pieces.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace tprof::align {
namespace {

using Samples = std::span<const Sample>;

constexpr std::size_t kFewest = 24;  // samples of a piece: fewer would be fitted to their noise
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
    // The deviation of a median, with room for a distribution that is not normal. 20 ns more allow
    // for the clock's own grain.
    const double deviation = 1.25 * noise / std::sqrt(static_cast<double>(end - begin));
    if (std::abs(median(off)) > 6 * deviation + 20) return false;
  }
  return true;
}

double misfit(Samples samples, const Line& line) {
  double sum = 0;
  for (const Sample& p : samples) sum += std::abs(p.y - line.at(p.t));
  return sum;
}

// Returns where two lines, one on either side, fit best.
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

constexpr double kFar = 1e10;  // ns: no clock is off by ten seconds more than the line says

// All lines close to a given one over a stretch of time that keep the bounds of some points. They
// form a convex polygon, whose corners are pairs (at the begin, at the end) of distances from that
// line.
class Corridor {
 public:
  Corridor(const Line& line, double begin, double end);

  // Cuts off the lines that violate the bounds. A bound that none of the remaining lines keeps cuts
  // nothing.
  void keep(const Point& p);

  // Returns by how much the line has to be moved at its begin and end to become one of these.
  Sample nearest() const;
  // Returns how far, at t, one of these lines can be from the given one moved by `moved`. Unbounded
  // if the bounds say nothing about it.
  double width(double t, const Sample& moved) const;

 private:
  struct Corner {
    double begin;
    double end;
  };
  // Keeps the lines whose distance at t is at most (or, with sign -1, at least) this.
  void cut(double t, double distance, double sign);
  double share(double t) const { return end_ > begin_ ? (t - begin_) / (end_ - begin_) : 0; }

  Line line_;
  double begin_;
  double end_;
  std::vector<Corner> corners_;
  std::vector<Corner> kept_;  // reused memory
};

Corridor::Corridor(const Line& line, double begin, double end)
    : line_(line),
      begin_(begin),
      end_(end),
      corners_{{-kFar, -kFar}, {kFar, -kFar}, {kFar, kFar}, {-kFar, kFar}} {}

void Corridor::keep(const Point& p) {
  if (p.most < kUnbounded) cut(p.t_most, p.most - line_.at(p.t_most), 1);
  if (p.least > -kUnbounded) cut(p.t_least, p.least - line_.at(p.t_least), -1);
}

void Corridor::cut(double t, double distance, double sign) {
  const double w = share(t);
  const auto beyond = [&](const Corner& c) {
    return sign * ((1 - w) * c.begin + w * c.end - distance);
  };
  if (std::ranges::none_of(corners_, [&](const Corner& c) { return beyond(c) > 0; })) return;
  kept_.clear();
  for (std::size_t i = 0; i < corners_.size(); ++i) {
    const Corner& a = corners_[i];
    const Corner& b = corners_[(i + 1) % corners_.size()];
    const double at_a = beyond(a);
    const double at_b = beyond(b);
    if (at_a <= 0) kept_.push_back(a);
    if ((at_a < 0 && at_b > 0) || (at_a > 0 && at_b < 0)) {
      const double where = at_a / (at_a - at_b);
      kept_.push_back({a.begin + where * (b.begin - a.begin), a.end + where * (b.end - a.end)});
    }
  }
  if (!kept_.empty()) corners_.swap(kept_);
}

Sample Corridor::nearest() const {
  bool inside = corners_.size() > 2;
  Corner best = corners_[0];
  double best_distance = kUnbounded;
  for (std::size_t i = 0; i < corners_.size(); ++i) {
    const Corner& a = corners_[i];
    const Corner& b = corners_[(i + 1) % corners_.size()];
    const Corner along{b.begin - a.begin, b.end - a.end};
    inside = inside && along.begin * -a.end - along.end * -a.begin >= 0;
    const double length = along.begin * along.begin + along.end * along.end;
    const double where =
        length > 0 ? std::clamp(-(a.begin * along.begin + a.end * along.end) / length, 0.0, 1.0)
                   : 0;
    const Corner c{a.begin + where * along.begin, a.end + where * along.end};
    const double distance = c.begin * c.begin + c.end * c.end;
    if (distance < best_distance) {
      best_distance = distance;
      best = c;
    }
  }
  return inside ? Sample{} : Sample{best.begin, best.end};
}

double Corridor::width(double t, const Sample& moved) const {
  const double w = share(t);
  const double middle = (1 - w) * moved.t + w * moved.y;
  double width = 0;
  for (const Corner& c : corners_) {
    width = std::max(width, std::abs((1 - w) * c.begin + w * c.end - middle));
  }
  return width < kFar / 2 ? width : kUnbounded;
}

}  // namespace

const Piece& Course::piece_at(double t) const {
  if (pieces.size() == 1) return pieces.front();  // as nearly always
  const auto next = std::ranges::upper_bound(pieces, t, {}, &Piece::begin);
  return next == pieces.begin() ? pieces.front() : *std::prev(next);
}

std::vector<Sample> samples_of(const std::vector<Point>& points) {
  std::vector<Sample> samples;
  for (const Point& p : points) {
    if (p.ends) samples.push_back({p.t, p.ahead});
  }
  std::ranges::sort(samples, {}, &Sample::t);
  return samples;
}

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
    Corridor corridor(piece.line, first_t, last_t);
    const auto within = [&](double t) { return t >= piece.begin && t < until; };
    for (Point p : points) {
      // A bound applies to the piece that it lies in.
      if (!within(p.t_least)) p.least = -kUnbounded;
      if (!within(p.t_most)) p.most = kUnbounded;
      corridor.keep(p);
    }
    const Sample moved = corridor.nearest();
    for (const double t : {first_t, last_t}) {
      piece.likely = std::max(piece.likely, 3 * piece.line.deviation(t));
    }
    piece.at_most = std::max(corridor.width(first_t, moved), corridor.width(last_t, moved));
    const double apart = last_t - first_t;
    const double middle = apart > 0 ? (piece.line.t0 - first_t) / apart : 0;
    piece.line.y0 += (1 - middle) * moved.t + middle * moved.y;
    if (apart > 0) piece.line.slope += (moved.y - moved.t) / apart;
    piece.likely = std::min(piece.likely, piece.at_most);
  }
  return course;
}

}  // namespace tprof::align
