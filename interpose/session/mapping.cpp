#include "interpose/session/mapping.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>

#include "interpose/base/complain.h"
#include "interpose/base/disk_space.h"
#include "interpose/base/fork.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/in_time.h"

namespace tprof {
namespace {

// Every part begins on a page.
constexpr std::uint64_t kPage = kLargestPage;
constexpr std::uint64_t round_up(std::uint64_t n) {
  return (n + kPage - 1) & ~(kPage - 1);
}

// Reserves 4 GiB of addresses, or an eighth of RLIMIT_AS if that is less, but at least 64 MiB: the
// limit counts reserved addresses, and the program needs them. Returns null if there are not that
// many.
std::byte* reserve_addresses(std::uint64_t& size) {
  constexpr std::uint64_t kMost = std::uint64_t{4} << 30;
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0) limit.rlim_cur = RLIM_INFINITY;
  for (size = kMost; size >= kLeast; size /= 4) {
    if (size > limit.rlim_cur / 8) continue;
    void* at = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) return static_cast<std::byte*>(at);
  }
  return nullptr;
}

// Makes the file longer by `bytes`, or leaves it as it is if there is no room.
struct Room {
  OwnFile file;
  std::uint64_t stays_free, offset, bytes;

  bool run() {
    struct statfs fs;
    return file.still_ours() && fstatfs(file.fd, &fs) == 0 && has_room(fs, bytes + stays_free) &&
           grow_file(file.fd, offset, bytes);
  }
  void undo() {}
};

}  // namespace

bool Mapping::open(int fd, const RingFolder& in) {
  base_ = reserve_addresses(size_);
  if (base_ == nullptr) return false;
  file_ = own_file(fd);
  in_ = in;
  const std::uint64_t bytes = round_up(sizeof(Head));
  file_part_ = round_up(size_ / 4 * 3);
  if (give_room(0, bytes) && map_file()) {
    touch(0, bytes);
    memory_ = file_part_;
  } else {
    file_.fd = -1;
    file_part_ = 0;
    memory_ = bytes;
    if (mprotect(base_, bytes, PROT_READ | PROT_WRITE) != 0) {
      close();
      return false;
    }
  }
  head().used.store(bytes, std::memory_order_relaxed);
  return true;
}

bool Mapping::give_room(std::uint64_t offset, std::uint64_t bytes) {
  Room room{file_, in_.stays_free, offset, bytes};
  return file_.fd >= 0 && (in_.in_memory ? room.run() : done_in_time(room));
}

bool Mapping::map_file() {
  return mmap(base_, file_part_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_.fd, 0) !=
         MAP_FAILED;
}

// Has the kernel map the file's pages now, so that no call waits for page faults.
void Mapping::touch(std::uint64_t from, std::uint64_t bytes) {
  constexpr std::uint64_t kSmallestPage = 4096;
  for (std::uint64_t at = from; at < from + bytes; at += kSmallestPage) {
    std::atomic_ref(*reinterpret_cast<std::uint8_t*>(base_ + at))
        .fetch_or(0, std::memory_order_relaxed);
  }
}

std::uint64_t Mapping::allocate(std::uint64_t bytes) {
  if (const std::uint64_t offset = allocate_in_file(bytes)) return offset;
  const LockGuard guard(growing_);
  bytes = round_up(bytes);
  const std::uint64_t at = memory_;
  if (bytes > size_ - at || mprotect(base_ + at, bytes, PROT_READ | PROT_WRITE) != 0) return 0;
  memory_ += bytes;
  if (in_file()) {
    complain(Trouble::room, "no room for the ring file", in_.in_memory ? "" : ", or not in time",
             ": a kill would lose counts");
    head().volatile_segments.fetch_add(1, std::memory_order_relaxed);
  } else {
    head().used.store(memory_, std::memory_order_relaxed);
  }
  return at;
}

// The file includes the whole last segment, so that a reader's mapping does, too.
std::uint64_t Mapping::allocate_in_file(std::uint64_t bytes) {
  const KeepErrno keep_errno;
  bytes = round_up(bytes);
  const LockGuard guard(growing_);
  const std::uint64_t offset = head().used.load(std::memory_order_relaxed);
  if (offset + bytes > file_part_ || !give_room(offset, bytes)) return 0;
  touch(offset, bytes);
  head().used.store(offset + bytes, std::memory_order_relaxed);
  return offset;
}

void Mapping::close() {
  if (base_ != nullptr) munmap(base_, size_);
  base_ = nullptr;
}

}  // namespace tprof
