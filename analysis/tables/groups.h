// Groups the calls of lines by any key, with their times on the device.
//
// key_for(rank) returns a function from an event to an optional key, empty if the call is in no
// group. A Value takes calls by add(value, event, time); the time may be null.
#pragma once

#include <map>
#include <type_traits>
#include <utility>

#include "run/known.h"
#include "run/lines.h"
#include "tables/totals.h"

namespace tprof::tables {

inline void add(read::Amounts& to, const read::Event& e, const read::DeviceTime* time) {
  to += read::amounts_of(e, time);
}

// The groups of one rank: directly executed, chosen calls.
template <typename Value, typename KeyOf>
class RankGroups {
 public:
  using Key = typename std::invoke_result_t<const KeyOf&, const read::Event&>::value_type;

  RankGroups(const read::Process& of, KeyOf key_of) : rank(of), key_of_(std::move(key_of)) {}

  void timed(const read::Event& e, const read::DeviceTime* t) {
    if (!e.executed() || !e.chosen) return;
    if (const auto key = key_of_(e)) add(known_[*key], e, t);
  }
  void end() { found = known_.take(); }

  const read::Process& rank;
  std::map<Key, Value> found;  // valid after end()

 private:
  KeyOf key_of_;
  run::Known<Key, Value> known_;
};

// Calls take(rank, key, value) for each group, sorted by rank and key. Leaves out files that can't
// be read.
template <typename Value, typename KeyFor, typename Take>
void each_group(const run::Lines& lines, const KeyFor& key_for, const Take& take) {
  using Groups = RankGroups<Value, std::invoke_result_t<const KeyFor&, const read::Process&>>;
  lines.each([&](const read::Process& rank) { return Groups(rank, key_for(rank)); },
             [&](Groups& of) {
               for (auto& [key, value] : of.found) take(of.rank, key, value);
             });
}

}  // namespace tprof::tables
