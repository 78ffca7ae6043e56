// The lines of one process in memory, about ten bytes each. Parsing a line's text again would take
// several times as long.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "read/events.h"
#include "team/archive.h"
#include "text/kept.h"

namespace tprof::run {

struct HashOfShape {
  std::size_t operator()(const read::Event& e) const;
  std::size_t operator()(const read::DeviceTime& t) const;
  std::size_t operator()(const read::Busy& b) const;
  std::size_t operator()(const std::string& text) const;
};

// The part that similar lines share: a line without its own numbers, or a text. Most are the same
// on all ranks, so the program keeps one copy (text/kept.h).
template <typename Shape>
class KeptShape {
 public:
  KeptShape() : KeptShape(Shape()) {}
  explicit KeptShape(const Shape& shape) : shape_(&text::kept<Shape, HashOfShape>(shape)) {}
  explicit KeptShape(const Shape* kept) : shape_(kept) {}

  const Shape& operator*() const { return *shape_; }
  void state(team::Archive& archive) { archive.kept(*this, *shape_); }

 private:
  const Shape* shape_;
};
template <typename Shape>
using Shapes = std::vector<KeptShape<Shape>>;

// The lines of a process in order. It may hold several ranks.
class KeptLines {
 public:
  // `first`: the process's first rank.
  void show(const read::Process& first, const read::LineReader& to) const;
  std::size_t bytes() const;
  void state(team::Archive& archive) { archive(text_, threads_, calls_, times_, busy_, texts_); }

 private:
  friend class Keeper;
  friend class LineEncoder;
  enum class Kind : std::uint8_t { call, launch, last_call, device_time, busy, range, life, rest };

  std::string text_;
  // Lines refer to these by index.
  std::vector<std::int64_t> threads_;
  Shapes<read::Event> calls_;
  Shapes<read::DeviceTime> times_;
  Shapes<read::Busy> busy_;
  Shapes<std::string> texts_;
};

// The last line of each kind: the next one is stored as the difference.
struct LinesBefore {
  static constexpr std::size_t kPlaces = 64;
  std::pair<std::uint64_t, std::uint64_t>& size_of(std::size_t shape) {
    return sizes[shape % kPlaces];
  }

  std::int64_t call_ns = 0;
  std::int64_t time_ns = 0;
  std::int64_t busy_ns = 0;
  std::int64_t range_ns = 0;
  std::uint64_t call_seq = 0;
  std::uint64_t time_seq = 0;
  std::int64_t group = 0;  // of the last call in a group
  // The count and bytes of the last call of each shape.
  std::array<std::pair<std::uint64_t, std::uint64_t>, kPlaces> sizes{};
};

// Adds lines to a process's kept lines.
class Keeper {
 public:
  // Adds the size of each new shape to `bytes`.
  Keeper(std::atomic<std::size_t>& bytes, KeptLines& to) : bytes_(bytes), to_(to) {}

  Keeper& of(const read::Process& rank) {  // whose line comes next
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
  friend class LineEncoder;
  template <typename Shape>
  struct Numbers {
    static constexpr std::size_t kPlaces = 64;
    std::array<std::pair<const Shape*, std::uint64_t>, kPlaces> lately{};
    std::unordered_map<const Shape*, std::uint64_t> all{};
  };
  template <typename Shape>
  std::uint64_t number_of(const Shape& shape, Numbers<Shape>& numbers, Shapes<Shape>& all);
  void add(KeptLines::Kind kind, const read::Event& e);
  void begin(KeptLines::Kind kind, std::uint64_t number = 0, bool more = false);
  std::int64_t thread_of(std::int64_t tid);

  std::atomic<std::size_t>& bytes_;
  KeptLines& to_;
  const read::Process* rank_ = nullptr;
  Numbers<read::Event> calls_;
  Numbers<read::DeviceTime> times_;
  Numbers<read::Busy> busy_;
  Numbers<std::string> texts_;
  LinesBefore before_;
  std::pair<std::int64_t, std::int64_t> last_thread_{-1, -1};
  std::unordered_map<std::int64_t, std::int64_t> thread_numbers_;
};

}  // namespace tprof::run
