// Turns the lines of one rank into its columns.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "read/events.h"
#include "run/run.h"
#include "run/stage_messages.h"

namespace tprof::run {

// Identifies a collective by its number, or a message by its two ranks and its number.
struct MeetingKey {
  std::uint32_t comm = 0;
  std::int32_t from = -1;  // ranks on the communicator; -1: a collective
  std::int32_t to = -1;
  bool sends = false;  // the row is the send; both ends have the same key
  std::uint64_t number = 0;

  auto name() const { return std::tie(comm, from, to, number); }
  auto operator<=>(const MeetingKey& other) const { return name() <=> other.name(); }
  bool operator==(const MeetingKey& other) const { return name() == other.name(); }
};

// The key of a row: when its first call was made, and on which thread.
struct Begun {
  std::int64_t called_ns = 0;
  std::int64_t thread = 0;
  auto operator<=>(const Begun&) const = default;
};

// Collects the lines of one rank; end() makes them columns.
class Columns {
 public:
  Columns(Rank rank, std::optional<Interval> within) : rank_(std::move(rank)), within_(within) {}

  // The collective or message that each row is part of, with the rank's own communicator numbers.
  using MeetingKeys = std::vector<std::pair<MeetingKey, std::uint32_t>>;
  Rank& rank() { return rank_; }
  MeetingKeys& meets() { return meets_; }

  void call(const read::Event& e);
  void device_time(const read::DeviceTime& t);
  void busy(const read::Busy& b);
  void metadata(const read::Line& line);
  void thread(const read::ThreadName& t);
  void end();

 private:
  struct Timed {
    Begun begun{};
    std::int64_t came_ns = 0;
    std::int64_t ended_ns = 0;
    std::int64_t lane = 0;
    std::uint32_t comm = Calls::kNoComm;
    std::int64_t waited_ns = 0;
    std::uint64_t calls = 1;
    bool mixed = false;
    bool launch = false;
    bool computes = false;
  };
  struct Call {
    Begun begun{};
    bool alone = false;  // no other rank takes part
    MeetingKey meets{};
    std::int64_t stream = -1;
    Bucket bucket{};
    text::Kept name{};
    bool wide = false;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::int64_t group = 0;
    auto operator<=>(const Call&) const = default;
  };
  bool wanted(std::int64_t ns) const {
    return !within_ || (within_->from_ns <= ns && ns < within_->to_ns);
  }
  void count(const read::Event& e, const read::Comm* comm);
  void follow_in_windows();
  void fill();
  void find_waits_for_values();

  Rank rank_;
  std::optional<Interval> within_;
  MeetingKeys meets_;
  std::vector<Call> calls_;
  std::vector<run::Blocked> values_;  // copies from the device after which the host may wait
  std::vector<Timed> timed_;
  std::vector<std::pair<Copy, std::int64_t>> loads_;  // and their threads
  std::set<std::int64_t> autograd_;                   // threads
  Intervals windows_;                                 // of the host's time
  bool window_ended_ = false;
  StageMessages stage_messages_;
  // By thread: its last group, and when that group began on each stream.
  std::map<std::int64_t, std::pair<std::int64_t, std::map<std::int64_t, std::int64_t>>> groups_;
  std::map<std::int64_t, std::int64_t> group_ends_;  // when ncclGroupEnd returned
};

}  // namespace tprof::run
