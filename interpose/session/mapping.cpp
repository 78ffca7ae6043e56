#include "interpose/session/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "interpose/base/complain.h"
#include "interpose/base/disk_space.h"
#include "interpose/base/file_systems.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/largest_page.h"

namespace tprof {
namespace {

// Every part begins where the kernel can map it.
constexpr std::uint64_t kPage = kLargestPage;
constexpr std::uint64_t round_up(std::uint64_t n) {
  return (n + kPage - 1) & ~(kPage - 1);
}

}  // namespace

bool Mapping::open(int fd, bool keeps_room) {
  constexpr std::uint64_t kMost = std::uint64_t{4} << 30;
  constexpr std::uint64_t kLeast = std::uint64_t{32} << 20;
  base_ = reserve_addresses(kMost, kLeast, 8, size_);
  if (base_ == nullptr) return false;
  file_ = own_file(fd);
  keeps_room_ = keeps_room;
  const std::uint64_t bytes = round_up(sizeof(Head));
  file_part_ = round_up(size_ / 4 * 3);
  if (!file_.still_ours() || !room_to_take() || !grow_file(fd, 0, bytes) || !map_file()) {
    file_.fd = -1;
    file_part_ = 0;
  }
  memory_ = {base_ + file_part_, base_ + file_part_, base_ + size_};
  if (in_file()) {
    touch(0, bytes);
    // Later segments enlarge this mapping of the kernel's.
    memory_.make_writable(memory_.next + kPage);
  } else if (memory_.take(bytes) == nullptr) {
    close();
    return false;
  }
  head().used.store(bytes, std::memory_order_relaxed);
  return true;
}

bool Mapping::room_to_take() const {
  struct statfs fs;
  return !keeps_room_ || (fstatfs(file_.fd, &fs) == 0 && has_spare_room(fs));
}

bool Mapping::map_file() {
  return mmap(base_, file_part_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_.fd, 0) !=
         MAP_FAILED;
}

// Has the kernel enter the pages that the file has there, so that no call waits for that.
void Mapping::touch(std::uint64_t from, std::uint64_t bytes) {
  constexpr std::uint64_t kSmallestPage = 4096;
  for (std::uint64_t at = from; at < from + bytes; at += kSmallestPage) {
    std::atomic_ref(*reinterpret_cast<std::uint8_t*>(base_ + at))
        .fetch_or(0, std::memory_order_relaxed);
  }
}

std::uint64_t Mapping::allocate(std::uint64_t bytes) {
  if (const std::uint64_t offset = allocate_in_file(bytes, bytes)) return offset;
  const LockGuard guard(growing_);
  const std::byte* at = memory_.take(round_up(bytes));
  if (at == nullptr) return 0;
  if (in_file()) {
    complain(Trouble::room, "no room for the ring file: a kill would lose counts");
    head().volatile_segments.fetch_add(1, std::memory_order_relaxed);
  } else {
    head().used.store(static_cast<std::uint64_t>(memory_.next - base_), std::memory_order_relaxed);
  }
  return static_cast<std::uint64_t>(at - base_);
}

// The file reaches to the end of each segment, so that a reader's mapping does too.
std::uint64_t Mapping::allocate_in_file(std::uint64_t bytes, std::uint64_t most) {
  const KeepErrno keep_errno;
  bytes = round_up(bytes);
  most = round_up(most);
  const LockGuard guard(growing_);
  const std::uint64_t offset = head().used.load(std::memory_order_relaxed);
  if (offset + most > file_part_ || !size_allowed(offset + most) || !file_.still_ours() ||
      !room_to_take() || !grow_file(file_.fd, offset, bytes)) {
    return 0;
  }
  if (most != bytes && ftruncate(file_.fd, static_cast<off_t>(offset + most)) != 0) return 0;
  touch(offset, bytes);
  head().used.store(offset + most, std::memory_order_relaxed);
  return offset;
}

// Two threads may do this at the same time: the result is the same.
bool Mapping::back(std::uint64_t from, std::uint64_t to) {
  const KeepErrno keep_errno;
  from = round_up(from);
  to = round_up(to);
  if (from == to) return true;
  const NoCancel no_cancel;
  if (!file_.still_ours() || !room_to_take() || !fill_hole(file_.fd, from, to - from)) return false;
  touch(from, to - from);
  return true;
}

void Mapping::close() {
  if (base_ != nullptr) munmap(base_, size_);
  base_ = nullptr;
}

}  // namespace tprof
