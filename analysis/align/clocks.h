// Aligns the clocks of hosts by their collectives. All times are nanoseconds on a host's clock with
// an arbitrary zero, wherever they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace tprof::align {

// A line fitted to points, most of which are near it.
struct Line {
  double t0 = 0;  // the middle of the fitted points
  double y0 = 0;
  double slope = 0;
  // The fitted points: their number, their standard deviation from the line, and their spread in
  // time (the sum of squares of t - t0).
  double n = 0;
  double noise = 0;
  double spread = 0;

  double at(double t) const { return y0 + slope * (t - t0); }
  // Returns the standard deviation of at(t).
  double deviation(double t) const;
};

// Reorders `values`.
double median(std::span<double> values);

// How two clocks ran relative to each other: a line, or several if the drift changed or a clock was
// set.

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// The evidence of one collective about the clocks of two hosts: by how much one host's clock is
// ahead of the other's, at times on the first clock. In nanoseconds.
struct Point {
  // Both hosts' ranks left the collective at about the same moment.
  bool ends = false;
  double t = 0;
  double ahead = 0;
  // Nobody leaves before the last has come, so the clock was ahead by at least `least` at
  // `t_least`, and by at most `most` at `t_most`.
  double t_least = 0;
  double least = -kUnbounded;
  double t_most = 0;
  double most = kUnbounded;
};

// A line that holds until the next piece begins.
struct Piece {
  double begin = 0;
  Line line;
  // The larger of the errors at its beginning and end, ns. `likely`: three standard deviations of
  // the line. `at_most`: plus how far the hard bounds let it move (unbounded without any).
  double likely = 0;
  double at_most = kUnbounded;
};

struct Course {
  std::vector<Piece> pieces;  // sorted; at least one
  std::size_t points = 0;

  const Piece& piece_at(double t) const;
  double ahead(double t) const { return piece_at(t).line.at(t); }
};

// A host's part in one collective.
struct Passage {
  std::size_t host = 0;
  // `awaited`: others wait for ranks of this host (in a broadcast, for the root only). Nobody who
  // waits leaves before `last_start`, when the last of these ranks came.
  bool awaited = false;
  std::int64_t last_start = 0;
  // `waits`: ranks of this host wait for others (in a reduction, only the root does). The first of
  // them had left by `first_end`.
  bool waits = false;
  std::int64_t first_end = 0;
  std::int64_t mean_end = 0;  // of the ranks that wait
  std::int64_t left = 0;      // how many wait
};

// Adds a rank to its host's passage. Passages are sorted by host.
void add(std::vector<Passage>& collective, std::size_t host, bool awaited, std::int64_t start,
         bool waits, std::int64_t end);

// Maps a host's clock to the axis of its group: that of the group's first host.
struct HostClock {
  std::size_t group = 0;   // hosts of different groups can't be compared
  std::size_t behind = 0;  // the host it is measured against; the first one is its own
  Course course{};         // relative to that host
  // Relative to the group's first host, ns, as in Piece.
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
  // Returns how far off the difference of two hosts' times may be, ns.
  double at_most(std::size_t a, std::size_t b) const;

  // Returns by how much a bound of this collective is violated; 0: not at all.
  std::int64_t violation(std::span<const Passage> collective) const;

 private:
  std::vector<HostClock> hosts_;
};

// Takes collectives in any order, in bounded memory.
class ClockFit {
 public:
  // `room`: how many points are kept for all pairs of hosts together.
  explicit ClockFit(std::size_t hosts, std::size_t room = std::size_t{1} << 20)
      : hosts_(hosts), room_(room) {}

  void add(std::span<const Passage> collective);
  Clocks clocks() const;

 private:
  // The points of two hosts. If there are many collectives, only every second, fourth, eighth... is
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
