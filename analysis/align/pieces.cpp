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
    const auto within = [&](double t) { return t >= piece.begin && t < until; };
    // By how much the line may be moved up and down. A bound applies to the piece that it lies in;
    // one that contradicts those before it is left aside.
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

}  // namespace tprof::align
