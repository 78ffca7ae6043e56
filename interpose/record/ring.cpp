#include "interpose/record/ring.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cstring>

#include "interpose/base/complain.h"

namespace tprof {
namespace {

constexpr std::uint64_t kLevelBytes = ledger_rows_in(0) * sizeof(LedgerRow);

// Makes room for as many records again behind the first `capacity`.
bool back_next(ThreadArea& area, std::uint64_t capacity) {
  if (area.backed.load(std::memory_order_acquire) >= 2 * capacity) return true;
  const std::uint64_t end = area.ring + capacity * sizeof(Record);
  if (!session::mapping().back(end, end + capacity * sizeof(Record))) return false;
  // The thread itself may have done it meanwhile, and more.
  std::uint64_t backed = area.backed.load(std::memory_order_relaxed);
  while (backed < 2 * capacity &&
         !area.backed.compare_exchange_weak(backed, 2 * capacity, std::memory_order_release)) {
  }
  return true;
}

}  // namespace

// If the file has no room for the beginning of a ring, the smallest ring does nearly as well: on
// such a disk there will be no lines, and the counts have to outlive the process.
std::uint64_t allocate_area(std::uint32_t ring_records) {
  Mapping& m = session::mapping();
  const auto bytes = [](std::uint32_t records) {
    return sizeof(ThreadArea) + 64 + kLevelBytes + std::uint64_t{records} * sizeof(Record);
  };
  std::uint32_t records = ring_records < kFirstRing ? ring_records : kFirstRing;
  std::uint64_t offset = m.allocate_in_file(bytes(records), bytes(ring_records));
  if (offset == 0 && m.in_file() && ring_records > kSmallestRing) {
    offset = m.allocate_in_file(bytes(kSmallestRing), bytes(kSmallestRing));
    if (offset != 0) {
      complain(Trouble::room, "no room for the ring: lines may be missing, counting goes on");
      records = ring_records = kSmallestRing;
    }
  }
  if (offset == 0) {
    // Memory that nobody has touched costs nothing.
    offset = m.allocate(bytes(ring_records));
    records = ring_records;
  }
  if (offset == 0) return 0;
  auto& area = *m.at<ThreadArea>(offset);
  area.level[0] = offset + ((sizeof(ThreadArea) + 63) & ~std::uint64_t{63});
  area.ring = ring_records == 0 ? 0 : area.level[0] + kLevelBytes;
  area.capacity.store(records, std::memory_order_relaxed);
  area.most = ring_records;
  return offset;
}

bool grow_ring(Thread& t) {
  ThreadArea& area = *t.area;
  const std::uint64_t capacity = t.mask + 1;
  if (capacity >= area.most) return false;
  // The records in the ring keep their places in the first round, and at the beginning of a round
  // of odd number.
  const std::uint64_t head = t.head;
  if (head > capacity && (head & (2 * capacity - 1)) != capacity) return false;
  // Makes no system call for each call that is dropped: tries again when the writer has made way.
  const std::uint64_t tail = area.tail.load(std::memory_order_relaxed);
  if (tail == t.refused_at) return false;
  if (!back_next(area, capacity)) {
    t.refused_at = tail;  // says nothing before something is lost, which is counted
    return false;
  }
  area.capacity.store(2 * capacity, std::memory_order_release);
  t.mask = 2 * capacity - 1;
  return true;
}

void prepare_rings() {
  session::mapping().view().each_thread([](ThreadArea& area, std::uint32_t) {
    const std::uint64_t capacity = area.capacity.load(std::memory_order_acquire);
    const bool soon = area.head.load(std::memory_order_relaxed) >= capacity / 2;
    if (area.ring != 0 && capacity < area.most && soon) back_next(area, capacity);
  });
}

bool more_room(Thread& t) {
  if (t.ring == nullptr) return false;
  const ThreadArea& area = *t.area;
  const std::uint64_t head = t.head;
  if (head != 0 && (head & t.mask) == 0) grow_ring(t);
  const std::uint64_t capacity = t.mask + 1;
  const std::uint64_t tail = area.tail.load(std::memory_order_acquire);
  const bool half_full = head - tail >= capacity / 2;
  std::uint64_t until = tail + (half_full ? capacity : capacity / 2);
  if (half_full && head < until) session::wake_writer();
  if (capacity < area.most) until = std::min(until, (head / capacity + 1) * capacity);
  t.room_until = until;
  return head < until;
}

void fill_thread_name(Record& r, std::uint32_t tid) {
  char name[kThreadNameBytes] = {};
  prctl(PR_GET_NAME, name);
  r = {};
  r.count = tid;
  std::memcpy(&r.stream, name, sizeof name);
}

}  // namespace tprof
