// Tells a rank's messages to pipeline neighbours from those of all-to-alls. PyTorch makes an
// all-to-all a group of sends and receives, in which a rank sends to itself or to more than two
// others.
#pragma once

#include <cstdint>
#include <set>

#include "read/events.h"
#include "read/process.h"

namespace tprof::run {

class StageMessages {
 public:
  // Takes the sends and receives of one rank, in order.
  void take(const read::Process& rank, const read::Event& e) {
    const bool goes_on = e.group != 0 && e.group == group_;
    if (!goes_on) end();
    group_ = e.group;
    ++calls_;
    bytes_ += e.bytes;
    (e.name == "ncclRecv" ? receives_ : sends_) = true;
    if (!e.peer) return;
    const read::Comm* comm = read::comm_of(rank, e.comm);
    const bool itself = comm != nullptr && comm->known() && comm->rank == *e.peer;
    if (itself) {
      to_itself_ = true;
    } else if (others_.size() <= kNeighbours) {
      others_.insert(*e.peer);
    }
  }
  // Call this after the last.
  void end() {
    if (!to_itself_ && others_.size() <= kNeighbours) {
      of_stages_ += calls_;
    } else if (sends_ && receives_) {  // else it is a scatter or gather
      exchanged_ += bytes_;
    }
    calls_ = bytes_ = 0;
    to_itself_ = sends_ = receives_ = false;
    others_.clear();
  }
  std::uint64_t of_stages() const { return of_stages_; }  // calls
  std::uint64_t exchanged() const { return exchanged_; }  // bytes

 private:
  static constexpr std::size_t kNeighbours = 2;

  // These describe the current group, or the current call outside a group.
  std::int64_t group_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t bytes_ = 0;
  bool to_itself_ = false;
  bool sends_ = false;
  bool receives_ = false;
  std::set<std::int64_t> others_{};

  std::uint64_t of_stages_ = 0;
  std::uint64_t exchanged_ = 0;
};

}  // namespace tprof::run
