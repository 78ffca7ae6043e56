// Matches calls with their device times, whose lines come before or after those of the calls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "interpose/base/hash.h"
#include "read/events.h"

namespace tprof::run {

// Values that wait for their other half, in the order in which they came.

// Nearly all are taken soon, and few wait at a time.
template <typename Value>
class Waiting {
 public:
  using Key = std::pair<std::int64_t, std::int64_t>;

  std::size_t size() const { return waiting_; }

  // Null: there is none. Valid until the next is added.
  Value* find(const Key& key) {
    if (slots_.empty()) return nullptr;
    for (std::size_t at = slot_of(key); slots_[at] != 0; at = next(at)) {
      Entry& entry = entries_[slots_[at] - 1];
      if (entry.waits && entry.key == key) return &(found_ = &entry)->value;
    }
    return nullptr;
  }
  void take_found() { take(*found_); }

  // There is none with this key.
  void add(const Key& key, const Value& value) {
    if (2 * (entries_.size() + 1) > slots_.size()) rebuild();
    entries_.push_back({key, value, true});
    put_in_slot(entries_.size() - 1);
    ++waiting_;
  }

  // Takes the one that came first.
  Value take_oldest() {
    while (!entries_[oldest_].waits) ++oldest_;
    take(entries_[oldest_]);
    return entries_[oldest_].value;
  }

  // All that wait, by key; none waits any more.
  std::vector<std::pair<Key, Value>> take_all() {
    std::vector<std::pair<Key, Value>> all;
    for (const Entry& e : entries_) {
      if (e.waits) all.emplace_back(e.key, e.value);
    }
    std::ranges::sort(all, {}, &std::pair<Key, Value>::first);
    *this = {};
    return all;
  }

 private:
  struct Entry {
    Key key;
    Value value;
    bool waits;
  };

  // Keys come from files, which must not choose which of them collide.
  static std::uint64_t seed() {
    static const std::uint64_t kSeed = std::random_device{}();
    return kSeed;
  }
  std::size_t slot_of(const Key& key) const {
    const auto [a, b] = std::pair<std::uint64_t, std::uint64_t>(key);
    return mix64(mix64(a ^ seed()) ^ b) & (slots_.size() - 1);
  }
  std::size_t next(std::size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  void put_in_slot(std::size_t entry) {
    std::size_t at = slot_of(entries_[entry].key);
    while (slots_[at] != 0) at = next(at);
    slots_[at] = static_cast<std::uint32_t>(entry + 1);
  }
  void take(Entry& entry) {
    entry.waits = false;
    --waiting_;
  }
  // Leaves out what was taken.
  void rebuild() {
    std::erase_if(entries_, [](const Entry& e) { return !e.waits; });
    oldest_ = 0;
    std::size_t slots = 64;
    while (slots < 4 * (waiting_ + 1)) slots *= 2;
    slots_.assign(slots, 0);
    for (std::size_t i = 0; i < entries_.size(); ++i) put_in_slot(i);
  }

  std::vector<Entry> entries_;  // also those that were taken since they were last put in slots
  std::vector<std::uint32_t> slots_;  // index in entries_ and 1; 0: free. More than half are.
  std::size_t waiting_ = 0;
  std::size_t oldest_ = 0;  // none before it waits
  Entry* found_ = nullptr;
};

// Matches the calls of one rank, in memory that does not grow with its lines. A call and its time
// are not matched if more than kMostWaiting others lie between them.
class TimedCalls {
 public:
  static constexpr std::size_t kMostWaiting = std::size_t{1} << 15;

  // Gets each call once, with its time, or with null if none came.
  using Sink = std::function<void(const read::Event&, const read::DeviceTime*)>;
  // `any`: there are device times. Else no call waits for one.
  TimedCalls(bool any, Sink sink) : any_(any), sink_(std::move(sink)) {}

  void call(const read::Event& e);
  void time(const read::DeviceTime& t);
  void finish();  // after the last line

 private:
  using Begun = std::pair<std::int64_t, std::int64_t>;  // when, and on which thread

  bool any_;
  Sink sink_;
  Waiting<read::Event> calls_;
  Waiting<read::DeviceTime> times_;
};

}  // namespace tprof::run
