// Keeps the lines of ranks that a pass has seen, in ten bytes or so each, for the pass after it: to
// take a line apart once more costs several times what looking at it does.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collect/lines.h"

namespace tprof::collect {

// The calls, device times, computation and names of threads of one rank, in the order of its lines.
class KeptLines {
 public:
  enum class Kind : std::uint8_t { call, launch, last_call, device_time, busy, thread };

  void add(Kind kind, const read::Event& e);
  void add(const read::DeviceTime& t);
  void add(const read::Busy& b);
  void add(const read::ThreadName& t);
  void show(const Wanting& to) const;

  std::size_t bytes() const;
  std::size_t lines() const { return lines_; }
  void shrink_to_fit();
  bool whole() const { return calls_.whole() && times_.whole(); }

 private:
  // Lines that are alike have one of these, without what is written for each.
  template <typename Line>
  struct Shapes {
    static constexpr std::size_t kMost = 512;
    std::vector<Line> all{};
    std::vector<std::uint32_t> places{};  // index in `all`, by hash

    bool whole() const { return all.size() <= kMost; }
    std::size_t number_of(const Line& shape, std::uint64_t hash);
  };
  // It is of the line before, as the next has nearly the same.
  struct Before {
    std::int64_t ts_ns = 0;
    std::int64_t seq = 0;
    std::int64_t group = 0;  // of the last that was in one
  };
  void begin(Kind kind, std::size_t number);
  void put(std::uint64_t n);
  void put_signed(std::int64_t n);
  void put_change(std::int64_t& before, std::int64_t now);

  std::string text_;
  Shapes<read::Event> calls_;
  Shapes<read::DeviceTime> times_;
  std::vector<read::ThreadName> threads_;
  std::size_t bytes_of_threads_ = 0;
  Before call_;
  Before time_;
  std::int64_t busy_ns_ = 0;
  std::size_t lines_ = 0;
};

// The lines of a job's ranks, as far as there is room: those of other ranks are read again, and the
// answers are the same.
class KeptOfJob {
 public:
  // Adds a collector that keeps the rank's lines.
  void want(const read::Process& rank, Collectors& all);
  const KeptLines* of(const read::Process& rank) const;  // null: nothing is kept
  void let_go(const read::Process& rank);

  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;

 private:
  class Keeper;
  mutable std::mutex mutex_;  // several files are read at a time
  std::map<const read::Process*, std::unique_ptr<KeptLines>> ranks_;
  std::atomic<std::size_t> bytes_ = 0;
};

}  // namespace tprof::collect
