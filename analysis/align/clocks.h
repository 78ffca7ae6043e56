// Puts the clocks of hosts on one axis, from what their collectives prove. The source of the times
// does not matter here: all are nanoseconds on the clock of a host, whatever its zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace tprof::align {

// A line that was fitted to points, most of which lie near it.
struct Line {
  double t0 = 0;  // the middle of what it was fitted to
  double y0 = 0;
  double slope = 0;
  // The points that it was fitted to: their number, their distance from it (standard deviation),
  // and their spread in time (the sum of the squares of t - t0).
  double n = 0;
  double noise = 0;
  double spread = 0;

  double at(double t) const { return y0 + slope * (t - t0); }
  // Returns the standard deviation of at(t).
  double deviation(double t) const;
};

// Reorders `values`.
double median(std::span<double> values);

// How two clocks ran against each other: a line, or several where the drift changed or a clock was
// set.

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// The evidence of one collective about the clocks of two hosts: by how much the clock of one host
// is ahead of another's, at times on the first one's clock. All values are nanoseconds.
struct Point {
  // Both hosts' ranks left the collective at about one moment.
  bool ends = false;
  double t = 0;
  double ahead = 0;
  // Nobody leaves before the last has come. So it was ahead by `least` or more at `t_least`, and by
  // `most` or less at `t_most`.
  double t_least = 0;
  double least = -kUnbounded;
  double t_most = 0;
  double most = kUnbounded;
};

// One line, until the next one's begin.
struct Piece {
  double begin = 0;
  Line line;
  // The largest error at its begin and at its end, ns. `likely`: three standard deviations of the
  // line. `at_most`: these, and as far as the hard bounds let it move (unbounded: there are none).
  double likely = 0;
  double at_most = kUnbounded;
};

struct Course {
  std::vector<Piece> pieces;  // by begin; at least one
  std::size_t points = 0;

  const Piece& piece_at(double t) const;
  double ahead(double t) const { return piece_at(t).line.at(t); }
};

// A host's part in one collective.
struct Passage {
  std::size_t host = 0;
  // `awaited`: others wait for ranks of this host (in a broadcast, for the root only). Nobody who
  // waits can leave before `last_start`, when the last of these ranks came.
  bool awaited = false;
  std::int64_t last_start = 0;
  // `waits`: ranks of this host wait for others (in a reduction, only the root does). The first of
  // them had left by `first_end`.
  bool waits = false;
  std::int64_t first_end = 0;
  std::int64_t mean_end = 0;  // of the ranks that wait
  std::int64_t left = 0;      // how many these are
};

// Adds a rank's part in a collective to its host's. The parts are kept in the order of hosts.
void add(std::vector<Passage>& collective, std::size_t host, bool awaited, std::int64_t start,
         bool waits, std::int64_t end);

// Puts a host's clock on the axis of its group, which is that of its first host.
struct HostClock {
  std::size_t group = 0;   // hosts of different groups can't be compared
  std::size_t behind = 0;  // the host that it is measured against; itself for the first one
  Course course{};         // against that one
  // Against the first of the group, ns, as in Piece.
  double likely = 0;
  double at_most = 0;
};

class Clocks {
 public:
  explicit Clocks(std::vector<HostClock> hosts) : hosts_(std::move(hosts)) {}

  const std::vector<HostClock>& hosts() const { return hosts_; }
  bool comparable(std::size_t a, std::size_t b) const { return hosts_[a].group == hosts_[b].group; }
  // Returns a time of a host on the axis of its group.
  std::int64_t aligned(std::size_t host, std::int64_t t) const;
  // Returns how wrong the distance between two times of two hosts may be, ns.
  double at_most(std::size_t a, std::size_t b) const;

  // Returns by how much these clocks violate a bound of this collective; 0 if none is violated.
  std::int64_t violation(std::span<const Passage> collective) const;

 private:
  std::vector<HostClock> hosts_;
};

// Takes collectives in any order, in memory that does not grow with their number.
class ClockFit {
 public:
  // `room` is the number of points that are kept for all pairs of hosts together.
  explicit ClockFit(std::size_t hosts, std::size_t room = std::size_t{1} << 20)
      : hosts_(hosts), room_(room) {}

  void add(std::span<const Passage> collective);
  Clocks clocks() const;

 private:
  // The points of two hosts. If there are many collectives, every second, fourth, eighth... is
  // kept.
  struct Edge {
    std::vector<Point> points{};
    std::size_t seen = 0;
    std::size_t stride = 1;
  };
  void add(const Passage& a, const Passage& b);

  std::size_t hosts_;
  std::size_t room_;
  std::map<std::pair<std::size_t, std::size_t>, Edge> edges_;  // the lower number first
};

}  // namespace tprof::align
