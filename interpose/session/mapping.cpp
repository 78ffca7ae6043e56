#include "interpose/session/mapping.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

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

std::uint64_t address_space_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

bool Mapping::open(int fd, bool keeps_room) {
  // RLIMIT_AS counts reserved addresses too, and the program will want them.
  const std::uint64_t share = address_space_limit() / 8;
  for (size_ = std::uint64_t{4} << 30; size_ >= std::uint64_t{32} << 20; size_ /= 4) {
    if (size_ > share) continue;
    base_ = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base_ != MAP_FAILED) break;
    base_ = nullptr;
  }
  if (base_ == nullptr) return false;
  file_ = own_file(fd);
  keeps_room_ = keeps_room;
  const std::uint64_t bytes = round_up(sizeof(Head));
  if (!back_by_file(0, bytes) && !back_by_memory(0, bytes)) {
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

bool Mapping::map_file(std::uint64_t offset, std::uint64_t bytes) {
  return mmap(static_cast<std::byte*>(base_) + offset, bytes, PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_FIXED | MAP_POPULATE, file_.fd,
              static_cast<off_t>(offset)) != MAP_FAILED;
}

bool Mapping::back_by_file(std::uint64_t offset, std::uint64_t bytes) {
  return !file_ended_ && file_.still_ours() && room_to_take() &&
         grow_file(file_.fd, offset, bytes) && map_file(offset, bytes);
}

bool Mapping::back_by_memory(std::uint64_t offset, std::uint64_t bytes) {
  if (mmap(static_cast<std::byte*>(base_) + offset, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
    return false;
  }
  if (offset == 0) {
    file_.fd = -1;
  } else {
    // A later, smaller segment might find room again, behind a hole. A reader that maps a hole on a
    // full tmpfs dies of SIGBUS.
    if (file_.fd >= 0)
      complain(Trouble::room, "no room for the ring file: a kill would lose counts");
    file_ended_ = true;
    head().volatile_segments.fetch_add(1, std::memory_order_relaxed);
  }
  return true;
}

std::uint64_t Mapping::allocate(std::uint64_t bytes) {
  const KeepErrno keep_errno;
  bytes = round_up(bytes);
  const LockGuard guard(growing_);
  const std::uint64_t offset = head().used.load(std::memory_order_relaxed);
  if (offset + bytes > size_) return 0;
  if (!back_by_file(offset, bytes) && !back_by_memory(offset, bytes)) return 0;
  head().used.store(offset + bytes, std::memory_order_relaxed);
  return offset;
}

// The file reaches to the end of each segment, so that a reader's mapping does too.
std::uint64_t Mapping::allocate_in_file(std::uint64_t bytes, std::uint64_t most) {
  const KeepErrno keep_errno;
  bytes = round_up(bytes);
  most = round_up(most);
  const LockGuard guard(growing_);
  const std::uint64_t offset = head().used.load(std::memory_order_relaxed);
  if (offset + most > size_ || !size_allowed(offset + most) || !back_by_file(offset, bytes)) {
    return 0;
  }
  if (most != bytes && ftruncate(file_.fd, static_cast<off_t>(offset + most)) != 0) return 0;
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
  return file_.still_ours() && room_to_take() && fill_hole(file_.fd, from, to - from) &&
         map_file(from, to - from);
}

void Mapping::close() {
  if (base_ != nullptr) munmap(base_, size_);
  base_ = nullptr;
  file_ended_ = false;
}

}  // namespace tprof
