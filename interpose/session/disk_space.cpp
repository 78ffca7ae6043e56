#include "disk_space.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "no_signals.h"

namespace tprof {
namespace {

// A tracer's attach or a frozen control group interrupts it, signals held back or not.
int allocate(int fd, int mode, std::uint64_t offset, std::uint64_t bytes) {
  constexpr int kTries = 100;
  int result = -1;
  for (int i = 0; i < kTries; ++i) {
    result = fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    if (result == 0 || errno != EINTR) break;
  }
  return result;
}

bool unsupported() {
  return errno == EOPNOTSUPP || errno == ENOSYS;
}

FileId ask(int fd, const char* path, int flags) {
  struct statx file;  // fstat is a symbol of glibc 2.33
  if (statx(fd, path, flags, STATX_INO, &file) != 0) return {};
  return {std::uint64_t{file.stx_dev_major} << 32 | file.stx_dev_minor, file.stx_ino};
}

}  // namespace

FileId file_of(int fd) {
  return ask(fd, "", AT_EMPTY_PATH);
}
FileId file_at(const char* path) {
  return ask(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW);
}

bool size_allowed(std::uint64_t size) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         size <= limit.rlim_cur;
}

// glibc's posix_fallocate is not used: where the file system has no fallocate it writes, and where
// it fails half way it leaves the file grown.
bool fill_hole(int fd, std::uint64_t offset, std::uint64_t bytes) {
  const NoSignals no_signals;
  if (!size_allowed(offset + bytes)) return false;
  if (allocate(fd, 0, offset, bytes) == 0) return true;
  if (!unsupported()) return false;
  static const char zeros[65536] = {};
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t n = bytes - done < sizeof zeros ? bytes - done : sizeof zeros;
    const ssize_t wrote = pwrite(fd, zeros, n, static_cast<off_t>(offset + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<std::uint64_t>(wrote);
  }
  return true;
}

bool grow_file(int fd, std::uint64_t offset, std::uint64_t bytes) {
  const NoSignals no_signals;
  if (!size_allowed(offset + bytes)) return false;
  if (fill_hole(fd, offset, bytes)) return true;
  if (ftruncate(fd, static_cast<off_t>(offset)) != 0) errno = 0;
  return false;
}

Reserved reserve_blocks(int fd, std::uint64_t offset, std::uint64_t bytes) {
  const NoSignals no_signals;
  if (!size_allowed(offset + bytes)) return Reserved::no;
  if (allocate(fd, FALLOC_FL_KEEP_SIZE, offset, bytes) == 0) return Reserved::yes;
  return unsupported() ? Reserved::unknown : Reserved::no;
}

}  // namespace tprof
