#include "mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace tprof {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t round_up(std::uint64_t n) {
  return (n + kPage - 1) & ~(kPage - 1);
}

// Really allocates the bytes: a sparse file on a full disk is a SIGBUS at the first store, and
// growing past RLIMIT_FSIZE is a SIGXFSZ. glibc's posix_fallocate is not used: where the file
// system has no fallocate it writes, and where it fails half way it leaves the file grown.
bool grow_file(int fd, std::uint64_t offset, std::uint64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      offset + bytes > limit.rlim_cur) {
    return false;
  }
  if (fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) return true;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return false;
  static const char zeros[65536] = {};
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t n = bytes - done < sizeof zeros ? bytes - done : sizeof zeros;
    const ssize_t wrote = pwrite(fd, zeros, n, static_cast<off_t>(offset + done));
    if (wrote <= 0) return false;
    done += static_cast<std::uint64_t>(wrote);
  }
  return true;
}

std::uint64_t address_space_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

bool Mapping::open(int fd) {
  // RLIMIT_AS counts reserved addresses too, and the program will want them.
  const std::uint64_t share = address_space_limit() / 8;
  for (size_ = std::uint64_t{4} << 30; size_ >= std::uint64_t{32} << 20; size_ /= 4) {
    if (size_ > share) continue;
    base_ = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base_ != MAP_FAILED) break;
    base_ = nullptr;
  }
  if (base_ == nullptr) return false;
  fd_ = fd;
  const std::uint64_t bytes = round_up(sizeof(Head));
  if (!back(0, bytes)) {
    close();
    return false;
  }
  head().used.store(bytes, std::memory_order_relaxed);
  return true;
}

bool Mapping::back(std::uint64_t offset, std::uint64_t bytes) {
  void* at = static_cast<std::byte*>(base_) + offset;
  if (fd_ >= 0 && !file_ended_ && grow_file(fd_, offset, bytes) &&
      mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd_,
           static_cast<off_t>(offset)) != MAP_FAILED) {
    return true;
  }
  if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
      MAP_FAILED) {
    return false;
  }
  if (offset == 0) {
    fd_ = -1;
  } else {
    // A later, smaller segment might find room again, behind a hole. A reader that maps a hole on a
    // full tmpfs dies of SIGBUS.
    file_ended_ = true;
    head().volatile_segments.fetch_add(1, std::memory_order_relaxed);
  }
  return true;
}

std::uint64_t Mapping::allocate(std::uint64_t bytes) {
  bytes = round_up(bytes);
  const SpinGuard guard(growing_);
  const std::uint64_t offset = head().used.fetch_add(bytes, std::memory_order_relaxed);
  if (offset + bytes > size_) return 0;
  return back(offset, bytes) ? offset : 0;
}

void Mapping::close() {
  if (base_ != nullptr) munmap(base_, size_);
  base_ = nullptr;
  file_ended_ = false;
  growing_.unlock();  // a fork may have copied it locked
}

}  // namespace tprof
