// The calls of the ranks of one communicator, and those that all of them made alike.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "replay/made_calls.h"

namespace tprof::replay {

inline bool is_point_to_point(const std::string& function) {
  return function == "ncclSend" || function == "ncclRecv";
}

class Communicator {
 public:
  explicit Communicator(std::int64_t nranks) : nranks_(nranks) {}

  // Ranks count from 0. For sends and receives `call.root` is the other end.
  void add(std::int64_t rank, const std::string& host, const Call& call,
           const read::Amounts& amounts);

  // Takes out and returns what a program could make: a collective as often as the rank that made it
  // least, and sends of each rank to the next, with their receives.
  std::map<Call, read::Amounts> take_common();
  // Calls f for what is left, of each rank.
  void each(const std::function<void(const Call&, const read::Amounts&)>& f) const;

  std::size_t hosts() const { return hosts_.size(); }

 private:
  read::Amounts* end_of(const Call& call, std::int64_t rank);
  void take_ring(const Call& ring, std::map<Call, read::Amounts>& common);

  std::int64_t nranks_;
  std::set<std::string> hosts_;
  std::map<Call, std::map<std::int64_t, read::Amounts>> calls_;  // by rank
};

}  // namespace tprof::replay
