// The lines of one process in memory, in ten bytes or so each: to take a line's text apart once
// more costs several times what looking at it does.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "read/events.h"
#include "team/archive.h"

namespace tprof::run {

// Lines that are alike have one of these, without what each has of its own. Most are the same on
// all ranks. Ranks may be added from several threads; others look at it afterwards.
template <typename Shape>
class Shapes {
 public:
  const Shape& operator[](std::size_t number) const { return all_[number]; }
  std::uint64_t number_of(const Shape& shape, std::uint64_t hash) {
    const std::scoped_lock lock(mutex_);
    const auto [from, to] = known_.equal_range(hash);
    for (auto i = from; i != to; ++i) {
      if (all_[i->second] == shape) return i->second;
    }
    known_.emplace(hash, all_.size());
    all_.push_back(shape);
    bytes_ += kBytesOfOne;
    return all_.size() - 1;
  }
  void end() {  // no more will come
    known_ = {};
    all_.shrink_to_fit();
  }
  std::size_t bytes() const { return bytes_; }
  void state(team::Archive& archive) { archive(all_); }

 private:
  static constexpr std::size_t kBytesOfOne =
      sizeof(Shape) + 48 + (std::is_same_v<Shape, std::string> ? 64 : 0);
  std::vector<Shape> all_;
  std::unordered_multimap<std::uint64_t, std::size_t> known_;  // by hash
  std::atomic<std::size_t> bytes_ = 0;
  std::mutex mutex_;
};

struct ShapesOfLines {
  Shapes<read::Event> calls{};
  Shapes<read::DeviceTime> times{};
  Shapes<read::Busy> busy{};
  Shapes<std::string> texts{};

  std::size_t bytes() const { return calls.bytes() + times.bytes() + busy.bytes() + texts.bytes(); }
  void end() {
    calls.end();
    times.end();
    busy.end();
    texts.end();
  }
  void state(team::Archive& archive) { archive(calls, times, busy, texts); }
};

// Who looks at lines: a function that is not set is not called. `lines.metadata` is not: metadata
// lines that are kept go to `metadata`, for each rank of their process.
struct Reader {
  read::LineReader lines{};
  std::function<void(const read::Process&, const read::Line&)> metadata{};
};

// In their order. The process may hold several ranks.
class KeptLines {
 public:
  // `first`: of the process's ranks.
  void show(const read::Process& first, const ShapesOfLines& shapes, const Reader& to) const;
  std::size_t bytes() const { return text_.capacity() + sizeof(KeptLines); }
  void state(team::Archive& archive) { archive(text_, threads_); }

 private:
  friend class Keeper;
  // A rare one says by a number which one it is.
  enum class Kind : std::uint8_t { call, launch, last_call, device_time, busy, range, rare };
  enum class Rare : std::uint8_t { life, thread, metadata };

  // How many calls and bytes the last one of a shape had, as the next has nearly always.
  class Sizes {
   public:
    std::pair<std::uint64_t, std::uint64_t>& of(std::size_t shape) { return of_[shape % kPlaces]; }

   private:
    static constexpr std::size_t kPlaces = 64;
    std::array<std::pair<std::uint64_t, std::uint64_t>, kPlaces> of_{};
  };
  // It is of the line before, as the next has nearly the same.
  struct Before {
    std::int64_t ts_ns = 0;
    std::int64_t seq = 0;
    std::int64_t group = 0;  // of the last that was in one
  };

  std::string text_;
  std::vector<std::int64_t> threads_;  // lines have an index in it, which ranks have in common
};

// Adds lines to those that are kept of a process.
class Keeper {
 public:
  Keeper(ShapesOfLines& shapes, KeptLines& to) : shapes_(shapes), to_(to) {}

  Keeper& of(const read::Process& rank) {  // the next line
    rank_ = &rank;
    return *this;
  }

  void call(const read::Event& e) { add(KeptLines::Kind::call, e); }
  void launch(const read::Event& e) { add(KeptLines::Kind::launch, e); }
  void last_call(const read::Event& e) { add(KeptLines::Kind::last_call, e); }
  void device_time(const read::DeviceTime& t);
  void busy(const read::Busy& b);
  void range(const read::Range& r);
  void life(const read::LifeCall& c);
  void thread(const read::ThreadName& t);
  void metadata(const read::Line& line);
  void end();

 private:
  // The shapes that its lines had lately.
  template <typename Shape>
  class Near {
   public:
    std::uint64_t number_of(const Shape& shape, std::uint64_t hash, Shapes<Shape>& all);

   private:
    static constexpr std::size_t kPlaces = 64;
    std::array<std::uint8_t, kPlaces> places_{};  // index in `shapes_` and 1; 0: none
    std::vector<std::tuple<Shape, std::uint64_t>> shapes_;
  };
  void add(KeptLines::Kind kind, const read::Event& e);
  void begin(KeptLines::Kind kind, std::uint64_t number, bool more = false);
  void begin(KeptLines::Rare which);
  void put(std::uint64_t n);
  void put_signed(std::int64_t n);
  void put_change(std::int64_t& before, std::int64_t now);
  void put(const std::string& text);  // its number
  void put_own(std::string_view text);
  template <typename T>
  void put_if_any(const std::optional<T>& n);
  std::int64_t thread_of(std::int64_t tid);

  ShapesOfLines& shapes_;
  KeptLines& to_;
  const read::Process* rank_ = nullptr;
  Near<read::Event> calls_;
  Near<read::DeviceTime> times_;
  Near<read::Busy> busy_;
  Near<std::string> texts_;
  KeptLines::Sizes sizes_;
  KeptLines::Before call_;
  KeptLines::Before time_;
  std::int64_t busy_ns_ = 0;
  std::int64_t range_ns_ = 0;
  std::pair<std::int64_t, std::int64_t> last_thread_{-1, -1};
  std::unordered_map<std::int64_t, std::int64_t> thread_numbers_;
};

}  // namespace tprof::run
