// What the ranks of one communicator called, and what of it all of them did alike.
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

  // From 0 on. `call.root` of sends and receives: the other end.
  void add(std::int64_t rank, const std::string& host, const Call& call,
           const read::Amounts& amounts);

  // Out of it what a program could make: a collective as often as the rank that made it least, and
  // sends of each rank to the next, with their receives.
  std::map<Call, read::Amounts> take_common();
  // What is left, by any rank.
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
