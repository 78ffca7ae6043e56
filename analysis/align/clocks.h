// The clocks of hosts on one axis, from what their collectives prove. Where the times come from
// does not matter here; all are nanoseconds on the clock of a host, whatever its zero.
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
  // Nobody who waits can leave before this: the last of its ranks that others wait for had come no
  // sooner. Its ranks are waited for: of a broadcast only the root.
  bool awaited = false;
  std::int64_t last_start = 0;
  // The first of its ranks that waits for others had left no later. Of a reduction only the root
  // does.
  bool waits = false;
  std::int64_t first_end = 0;
  std::int64_t mean_end = 0;  // of those that wait
};

// How a host's clock is put on the axis of its group, which is that of its first host.
struct HostClock {
  std::size_t group = 0;   // hosts of different groups can't be compared
  std::size_t behind = 0;  // the host that it is measured against; itself: it is the first
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
  // A time of a host on the axis of its group.
  std::int64_t aligned(std::size_t host, std::int64_t t) const;
  // By how much two times of two hosts may be apart less or more than they seem, ns.
  double at_most(std::size_t a, std::size_t b) const;

  // By how much a bound of this collective is violated by these clocks; 0: none is.
  std::int64_t violation(std::span<const Passage> collective) const;

 private:
  std::vector<HostClock> hosts_;
};

// Takes collectives in any order, in memory that does not grow with their number.
class ClockFit {
 public:
  // `room`: points that are kept of all pairs of hosts together.
  explicit ClockFit(std::size_t hosts, std::size_t room = std::size_t{1} << 20)
      : hosts_(hosts), room_(room) {}

  void add(std::span<const Passage> collective);
  Clocks clocks() const;

 private:
  // What is known of two hosts: of many collectives every second, fourth, eighth...
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
