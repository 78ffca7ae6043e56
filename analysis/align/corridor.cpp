#include "align/corridor.h"

#include <algorithm>
#include <cmath>

namespace tprof::align {
namespace {

constexpr double kFar = 1e10;  // ns: no clock is off by ten seconds more than the line says

}  // namespace

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
  if (kept_.empty()) {
    ++contradictions_;
  } else {
    corners_.swap(kept_);
  }
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

}  // namespace tprof::align
