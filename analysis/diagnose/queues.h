// The operations of all ranks that stand behind each other: a stream runs one after the other, and
// so does a communicator. A collective runs where all ranks that called it have come to it, and a
// message where both of its ends have. A group goes on when all that is in it has run. The rest
// waits in a circle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "diagnose/diagnosis.h"
#include "diagnose/operations.h"

namespace tprof::diagnose {

struct RankQueue {
  const read::Process* process = nullptr;
  const Operations* operations = nullptr;
};

// A call, or the calls of a group.
struct Turn {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::size_t rank = 0;     // its RankQueue
  std::uint32_t begin = 0;  // [begin, end) of its operations
  std::uint32_t end = 0;
  std::uint32_t before = 0;  // how many turns it stands behind
  std::uint32_t left = 0;    // how many of its operations have not run
  std::uint32_t edges_in = kNone;
  std::uint32_t edges_out = kNone;
};

// A rank in which `then` stands behind `first`.
struct Behind {
  const Turn* at = nullptr;
  const Operation* first = nullptr;
  const Turn* then_at = nullptr;
  const Operation* then = nullptr;
};

class Queues {
 public:
  // The same collective or message has the same number on all ranks.
  using Meeting = std::uint32_t;

  // `left_out`: communicators whose numbers are not those of the same calls. `streams`: what a
  // thread called on one stream or one communicator runs one after the other. Else all that it
  // called does. Threads have no order among them.
  Queues(const Places& places, std::vector<RankQueue> ranks, const std::vector<bool>& left_out,
         bool streams);

  // Returns the first circle in which each waits for the next; empty: all of them can run. Refers
  // to this.
  std::vector<Behind> circle() const;

  const RankQueue& rank_of(const Turn& turn) const { return ranks_[turn.rank]; }
  std::size_t communicator_of(const Turn& at, const Operation& operation) const;
  // The turns that have a part in what is in this one, and itself.
  std::vector<const Turn*> together_with(const Turn& turn) const;
  // True if the one has to wait for the other.
  bool in_order(const Turn& first, const Turn& then) const;
  // Tells in which order the thread called all that is known on the two communicators. The calls of
  // a group have none.
  std::vector<Meeting> order_on_both(const Behind& behind) const;

 private:
  static constexpr std::uint32_t kNone = Turn::kNone;
  static constexpr Meeting kFree = UINT32_MAX;  // nothing is known that waits for it

  struct Item {  // of an operation
    Meeting meeting = kFree;
    std::uint32_t next = kNone;  // item of this meeting
    std::uint32_t turn = kNone;
  };
  struct Edge {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t next_in = kNone;
    std::uint32_t next_out = kNone;
  };

  void number_meetings(const std::vector<bool>& left_out);
  void make_turns(std::size_t rank);
  void put_behind(std::uint32_t before, std::uint32_t turn);
  void run();
  std::uint32_t behind_what(std::uint32_t turn) const;
  std::int64_t device_of(std::size_t rank, const Operation& operation) const;

  bool streams_;
  const Places& places_;
  std::vector<RankQueue> ranks_;
  std::vector<std::uint32_t> items_of_;  // of each rank, where its items begin
  std::vector<Item> items_;
  std::vector<Turn> turns_;
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> first_;  // item of each meeting
  std::vector<std::uint32_t> away_;   // of each meeting, how many have not come to it
};

}  // namespace tprof::diagnose
