// Reads the mapped file by offset and checks every offset: a ring file may come from a killed
// process, a full disk or a stranger.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/base/text.h"
#include "interpose/format/dtypes.h"
#include "interpose/format/ring_file.h"

namespace tprof {

// A thread's ring at one moment; the thread may be using it.
struct RingNow {
  const Record* record = nullptr;  // null: there is none
  std::uint64_t capacity = 0;
  std::uint64_t committed = 0;
  std::uint64_t head = 0;

  Record operator[](std::uint64_t n) const { return copy_in_use(record[n & (capacity - 1)]); }
  bool closed(const Record& r) const { return r.txn != 0 && r.txn <= committed; }
  // True if more records are unread than the ring can hold: it is damaged.
  bool overrun(std::uint64_t tail) const { return head - tail > capacity; }
};

class View {
 public:
  View() = default;
  View(void* base, std::uint64_t size) : base_(static_cast<std::byte*>(base)), size_(size) {}

  Head& head() const { return *reinterpret_cast<Head*>(base_); }
  std::uint64_t size() const { return size_; }

  // Returns `n` objects of type T at `offset`; null if they would not lie within the mapping.
  template <typename T>
  T* at(std::uint64_t offset, std::uint64_t n = 1) const {
    if (offset == 0 || offset % alignof(T) != 0 || offset > size_) return nullptr;
    if (n > (size_ - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<T*>(base_ + offset);
  }

  // The first lines of the rank file.
  std::string_view header() const {
    const char* text = at<const char>(head().header, head().header_bytes);
    return text == nullptr ? std::string_view() : std::string_view(text, head().header_bytes);
  }

  std::uint32_t threads() const {
    const std::uint32_t n = head().threads.load(std::memory_order_acquire);
    return n < kMaxThreads ? n : kMaxThreads;
  }
  ThreadArea* thread(std::uint32_t i) const { return at<ThreadArea>(head().thread[i]); }
  // Calls f(area, number) for each thread.
  template <typename F>
  void each_thread(F&& f) const {
    for (std::uint32_t i = 0; i < threads(); ++i) {
      if (ThreadArea* t = thread(i)) f(*t, i);
    }
  }

  const Record* ring(const ThreadArea& t) const {
    return std::has_single_bit(t.capacity) ? at<const Record>(t.ring, t.capacity) : nullptr;
  }
  RingNow ring_now(const ThreadArea& t) const {
    const std::uint64_t committed = t.committed.load(std::memory_order_acquire);
    return {ring(t), t.capacity, committed, t.head.load(std::memory_order_acquire)};
  }

  // Entry `i` (1-based) of a table, or null.
  template <typename T>
  const T* entry(const Table& table, std::uint32_t i) const {
    if (i == 0 || i > table.count.load(std::memory_order_acquire)) return nullptr;
    const std::uint32_t chunk = (i - 1) / kChunkEntries;
    if (chunk >= kTableChunks) return nullptr;
    const T* first = at<const T>(table.chunk[chunk], kChunkEntries);
    return first == nullptr ? nullptr : first + (i - 1) % kChunkEntries;
  }
  // Returns the number of entries, limited to what a table can hold (the file may be damaged).
  static std::uint32_t entries(const Table& table) {
    const std::uint32_t n = table.count.load(std::memory_order_acquire);
    return n < kTableChunks * kChunkEntries ? n : kTableChunks * kChunkEntries;
  }
  const Communicator* comm(std::uint32_t i) const { return entry<Communicator>(head().comms, i); }
  const Site* site(std::uint32_t i) const { return entry<Site>(head().sites, i); }
  const SiteObject* site_object(std::uint32_t i) const {
    return entry<SiteObject>(head().site_objects, i);
  }
  const ScopeName* scope(std::uint32_t i) const { return entry<ScopeName>(head().scopes, i); }
  const Graph* graph(std::uint32_t i) const { return entry<Graph>(head().graphs, i); }

  // Returns the function that a record or a row of the ledger names, or null.
  const Function* function(std::uint8_t number) const {
    return number != kOtherFunctions && number < functions() && number < kMaxDataFunctions
               ? &head().function[number]
               : nullptr;
  }
  std::string_view function_name(std::uint8_t number) const {
    if (number == kOtherFunctions) return kOtherFunctionsName;
    const Function* f = function(number);
    return f == nullptr ? "?" : bounded_text(f->name);
  }
  // Returns the name of any function of the API tables.
  std::string_view any_function_name(std::uint32_t number) const {
    return number < functions() ? bounded_text(head().function[number].name) : "?";
  }
  std::uint32_t functions() const {
    return head().functions < kMaxFunctions ? head().functions : kMaxFunctions;
  }

  // Calls f(row) for every row in use of a thread's ledger.
  template <typename F>
  void each_row_of(const ThreadArea& t, F&& f) const {
    for (std::uint32_t level = 0; level < kLedgerLevels; ++level) {
      const std::uint32_t n = ledger_rows_in(level);
      const LedgerRow* rows = at<const LedgerRow>(t.level[level], n);
      if (rows == nullptr) continue;
      for (std::uint32_t r = 0; r < n; ++r) {
        if (rows[r].key_low.load(std::memory_order_acquire) != 0) f(rows[r]);
      }
    }
  }
  // Calls f(row, thread) for every ledger row in use.
  template <typename F>
  void each_row(F&& f) const {
    each_thread([&](const ThreadArea& t, std::uint32_t) {
      each_row_of(t, [&](const LedgerRow& row) { f(row, t); });
    });
  }

 private:
  std::byte* base_ = nullptr;
  std::uint64_t size_ = 0;
};

// The contract's elements and bytes for `count` (an API count, or a sum of them).
struct Amount {
  std::uint64_t elements;
  std::uint64_t bytes;
};
inline Amount amount(const View& view, std::uint8_t function, Bucket bucket, std::uint8_t dtype,
                     std::uint32_t comm, std::uint64_t count) {
  if (is_copy(bucket)) {
    const std::uint32_t size = view.head().copy_element_size;
    return {size == 0 ? count : count / size, count};
  }
  const Function* f = view.function(function);
  const Communicator* c = view.comm(comm);
  const bool times_ranks =
      f != nullptr && f->elements == Elements::count_times_ranks && c != nullptr;
  const std::uint64_t elements =
      times_ranks ? count * static_cast<std::uint64_t>(c->nranks) : count;
  return {elements, elements * dtype_size(dtype)};
}

// Returns communicator `number` if it has more ranks than `world`, else null. Without a launcher's
// rank and world size, a process takes those of its largest communicator.
inline const Communicator* larger_comm(const View& view, std::uint32_t number, std::int32_t world) {
  const Communicator* c = view.comm(number);
  return c != nullptr && c->nranks > world ? c : nullptr;
}

}  // namespace tprof
