// Puts the clocks of hosts on one axis, from what their collectives prove. The source of the times
// does not matter here: all are nanoseconds on the clock of a host, whatever its zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "align/pieces.h"

namespace tprof::align {

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
