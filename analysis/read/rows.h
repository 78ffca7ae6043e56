// The rows of a ledger. A rank has tens of them and a job may have 100,000 ranks, so they are
// stored compactly: nearly all ranks have the same keys, and most figures are 0.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "interpose/format/buckets.h"
#include "interpose/format/ledger.h"
#include "text/kept.h"

namespace tprof::read {

// Sums stop here, so that a total that is too low can be recognised (Amounts::saturated).
inline constexpr std::uint64_t kSaturated = std::numeric_limits<std::uint64_t>::max();
std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b);

// Returns the size of a data type by the contract's name; 0 if unknown.
std::uint64_t element_size(std::string_view dtype);

// Sums over the calls with one key. The names are the contract's.
struct Amounts {
  std::uint64_t calls = 0;
  std::uint64_t count = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::uint64_t host_ns = 0;
  std::uint64_t host_ns_max = 0;
  std::uint64_t device_ns = 0;
  std::uint64_t device_ns_max = 0;
  std::uint64_t device_timed = 0;  // how many calls the other device figures cover
  std::uint64_t device_bytes = 0;
  std::uint64_t exposure_known = 0;     // timed calls whose exposed time is known,
  std::uint64_t exposure_known_ns = 0;  // their device time,
  std::uint64_t exposed_ns = 0;         // the part of it in which no computation ran on the device
  std::uint64_t exposed_ns_max = 0;
  std::uint64_t late = 0;  // calls in `exposure_known` with more than 10 us exposed
  std::uint64_t failed = 0;
  std::uint64_t unfinished = 0;
  std::uint64_t replayed = 0;  // calls made by graph launches, which have no host time

  Amounts& operator+=(const Amounts& other);
  // Stops at 0. A maximum that may be from the subtracted part becomes 0: unknown.
  Amounts& operator-=(const Amounts& part);
  bool saturated() const;  // true if a sum is only a lower bound
  // The times that lines have.
  Amounts on_device() const {
    return {.device_ns = device_ns,
            .device_ns_max = device_ns_max,
            .device_timed = device_timed,
            .device_bytes = device_bytes};
  }
  bool operator==(const Amounts&) const = default;
};

struct Figure {
  std::string_view key;  // in a row of a file; empty: the reader's own figure
  std::uint64_t Amounts::*of;
  bool may_lack = false;  // present only if calls were timed
  bool largest = false;   // a maximum over the calls; others are sums
};
inline constexpr Figure kFigures[] = {
    {"calls", &Amounts::calls},
    {"count", &Amounts::count},
    {"elements", &Amounts::elements},
    {"bytes", &Amounts::bytes},
    {"host_ns", &Amounts::host_ns},
    {"host_ns_max", &Amounts::host_ns_max, false, true},
    {"device_ns", &Amounts::device_ns},
    {"device_ns_max", &Amounts::device_ns_max, true, true},
    {"device_timed", &Amounts::device_timed},
    {"device_bytes", &Amounts::device_bytes, true},
    {"exposure_known", &Amounts::exposure_known, true},
    {"exposure_known_ns", &Amounts::exposure_known_ns, true},
    {"exposed_ns", &Amounts::exposed_ns, true},
    {"exposed_ns_max", &Amounts::exposed_ns_max, true, true},
    {"late", &Amounts::late, true},
    {"failed", &Amounts::failed},
    {"unfinished", &Amounts::unfinished},
    {"", &Amounts::replayed},
};
static_assert(sizeof(Amounts) == std::size(kFigures) * sizeof(std::uint64_t));

// The key that the calls of a row share.
struct RowKey {
  Bucket bucket = Bucket::ALLGATHER;
  text::Kept name;
  text::Kept dtype;
  std::optional<std::int64_t> comm;
  std::optional<std::int64_t> device;            // only for copies
  HostMemory host_memory = HostMemory::unknown;  // of a copy between host and device
  std::int64_t bytes_class = -1;
  Mode mode = Mode::direct;
  ThreadKind thread = ThreadKind::other;  // the calling thread's kind; unknown for replays

  auto operator<=>(const RowKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct Row : RowKey {
  Amounts amounts;

  template <typename Archive>
  void state(Archive& archive) {
    archive(static_cast<RowKey&>(*this), amounts);
  }
};

// Can only be iterated in order.
class Rows {
 public:
  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = Row;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(const Rows& of, std::size_t at) : of_(&of), at_(at) { read(); }
    const Row& operator*() const { return row_; }
    const Row* operator->() const { return &row_; }
    Iterator& operator++() {
      at_ = next_;
      read();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return at_ == of_->bytes_.size(); }

   private:
    void read();

    const Rows* of_ = nullptr;
    std::size_t at_ = 0;
    std::size_t next_ = 0;
    Row row_;
  };

  Iterator begin() const { return {*this, 0}; }
  static std::default_sentinel_t end() { return {}; }
  bool empty() const { return bytes_.empty(); }
  void push_back(const Row& row);
  void clear() { bytes_.clear(); }
  void shrink_to_fit() { bytes_.shrink_to_fit(); }  // all rows are there

  template <typename Archive>
  void state(Archive& archive) {
    std::vector<Row> rows;
    for (const Row& row : *this) rows.push_back(row);
    archive(rows);
    if (archive.packs()) return;
    clear();
    for (const Row& row : rows) push_back(row);
    shrink_to_fit();
  }

 private:
  // For each row a pointer to its key, a mask of the non-zero figures, and these figures as
  // varints.
  std::vector<unsigned char> bytes_;
};

}  // namespace tprof::read
