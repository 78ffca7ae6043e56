#include "interpose/record/ring.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cstring>

#include "interpose/base/complain.h"

namespace tprof {
namespace {

constexpr std::uint64_t kLevelBytes = ledger_rows_in(0) * sizeof(LedgerRow);

}  // namespace

// If the file has no room for a ring, the smallest one is enough: a full disk takes no lines
// anyway, and only the counts must survive the process.
std::uint64_t allocate_area(std::uint32_t ring_records) {
  Mapping& m = session::mapping();
  const auto bytes = [](std::uint32_t records) {
    return sizeof(ThreadArea) + 64 + kLevelBytes + std::uint64_t{records} * sizeof(Record);
  };
  std::uint32_t records = ring_records;
  std::uint64_t offset = m.allocate_in_file(bytes(records));
  if (offset == 0 && m.in_file() && records > kSmallestRing) {
    records = kSmallestRing;
    offset = m.allocate_in_file(bytes(records));
    if (offset != 0) {
      complain(Trouble::room, "no room for the ring: lines may be missing, counting goes on");
    }
  }
  if (offset == 0) {
    records = ring_records;  // untouched memory costs nothing
    offset = m.allocate(bytes(records));
  }
  if (offset == 0) return 0;
  auto& area = *m.at<ThreadArea>(offset);
  area.level[0] = offset + ((sizeof(ThreadArea) + 63) & ~std::uint64_t{63});
  area.ring = area.level[0] + kLevelBytes;
  area.capacity = records;
  return offset;
}

bool more_room(Thread& t) {
  const std::uint64_t capacity = t.mask + 1;
  const std::uint64_t tail = t.area->tail.load(std::memory_order_acquire);
  const bool half_full = t.head - tail >= capacity / 2;
  t.room_until = tail + (half_full ? capacity : capacity / 2);
  const bool room = t.head < t.room_until;
  if (half_full && room) session::wake_writer();
  return room;
}

void fill_thread_name(Record& r, std::uint32_t tid) {
  char name[kThreadNameBytes] = {};
  prctl(PR_GET_NAME, name);
  r = {};
  r.count = tid;
  std::memcpy(&r.stream, name, sizeof name);
}

}  // namespace tprof
