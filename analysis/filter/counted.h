// Counts the calls of a rank's lines that a filter lets pass, as rows of a ledger.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "filter/calls.h"
#include "run/lines.h"
#include "stats/timed_calls.h"

namespace tprof::filter {

// A row of a ledger and its calls' lines have this in common.
struct LineKey {
  Bucket bucket = Bucket::ALLGATHER;
  std::string name{};
  std::string dtype{};
  std::int64_t comm = -1;  // -1: a copy
  std::int64_t bytes_class = -1;

  auto operator<=>(const LineKey&) const = default;  // NOLINT(modernize-use-nullptr)
};
LineKey key_of(const read::Row& row);

struct Counted {
  static constexpr std::size_t kMost = 65536;  // different keys; a damaged file may have any number

  explicit Counted(bool keeps_begun) : keeps(keeps_begun) {}

  void call(const read::Event& e);
  void device_time(const read::DeviceTime& t) { calls.time(t); }
  void end() { calls.finish(); }
  std::uint64_t lines_of(const LineKey& key) const {
    const auto found = lines.find(key);
    return found == lines.end() ? 0 : found->second;
  }

  // Executed directly.
  struct Key : LineKey {
    std::optional<std::int64_t> device{};
    HostMemory host_memory = HostMemory::unknown;
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  std::map<LineKey, std::uint64_t> lines;  // whether or not they pass
  std::map<Key, read::Amounts> passed;
  std::uint64_t in_lines = 0;  // calls of any outcome
  std::uint64_t left_out = 0;  // those of them that do not pass
  std::set<Calls::Begun> begun;

 private:
  void take(const read::Event& e, const read::DeviceTime* t);

  bool keeps;
  stats::TimedCalls calls{[this](const read::Event& e, const read::DeviceTime* t) { take(e, t); }};
};

// Returns the rows of those of `wanted`.
void add_rows(const Counted& of, const std::function<bool(const LineKey&)>& wanted, read::Rows& to);

}  // namespace tprof::filter
