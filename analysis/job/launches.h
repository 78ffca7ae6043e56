// Processes that one launch started, put together one group after the other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "read/process.h"

namespace tprof::match {

using Processes = std::vector<const read::Process*>;

class Launch {
 public:
  // Whether the group can't be of this launch: a rank of it is another process here. A process
  // without a communicator counts towards its rank (a data loader that copies), unless it lived
  // before or after that, or nothing but its rank says that it belongs to it.
  bool clashes(const Processes& group) const;
  // Whether a launcher, a parent or a place to meet is common to both.
  bool connected(const Processes& group) const;
  void add(const Processes& group);

  const Processes& processes() const { return processes_; }
  std::int64_t start_ns() const { return start_ns_; }
  // Nothing connects some of its processes to the others.
  bool assumed() const { return assumed_; }

 private:
  using Pid = std::pair<std::string, std::int64_t>;  // of a boot

  // A process of it did, so it is a part of that one's rank.
  bool started(const read::Process& p) const;
  bool clashes_with(const read::Process& p, const read::Process& other) const;

  Processes processes_;
  std::multimap<std::optional<std::int64_t>, const read::Process*> by_rank_;
  std::set<Pid> pids_;
  std::set<Pid> parents_;
  std::set<std::pair<std::string, read::Launcher>> launchers_;
  std::set<std::pair<std::string, std::int64_t>> rendezvous_;  // with the world size
  std::int64_t start_ns_ = 0;
  bool assumed_ = false;
};

}  // namespace tprof::match
