#include "interpose/base/disk_space.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "interpose/base/held_signals.h"
#include "interpose/base/text.h"

namespace tprof {
namespace {

// A tracer's attach or a frozen control group interrupts fallocate, even if signals are held back.
int allocate(int fd, int mode, std::uint64_t offset, std::uint64_t bytes) {
  constexpr int kTries = 100;
  int result = -1;
  for (int i = 0; i < kTries; ++i) {
    result = fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    if (result == 0 || errno != EINTR) break;
  }
  return result;
}

// Uses the oldest system call that can do it: the symbol fstat came with glibc 2.33, and older
// containers refuse statx. The kernel's structure is glibc's.
bool ask(int fd, const char* path, int flags, struct stat& file) {
  return syscall(SYS_newfstatat, fd, path, &file, flags) == 0;
}

FileId id(int fd, const char* path, int flags) {
  struct stat file {};
  return ask(fd, path, flags, file) ? FileId{true, file.st_dev, file.st_ino} : FileId{};
}

// Moves a descriptor to a higher number. The lowest numbers are for the program: if it has closed
// its standard input, it expects 0 from its next open(), and scripts rely on 3 and 4. The new
// number is below 64: beyond that the kernel has to enlarge the file table, which takes 10 ms in a
// process with threads.
int out_of_the_way(int fd) {
  constexpr int kAboveThePrograms = 40;
  for (const int lowest : {kAboveThePrograms, STDERR_FILENO + 1}) {
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (high < 0) continue;
    close(fd);
    return high;
  }
  if (fd > STDERR_FILENO) return fd;
  close(fd);
  errno = EMFILE;
  return -1;
}

}  // namespace

OwnFile create_file(const char* path, std::uint32_t mode) {
  int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd >= 0) {
    fd = out_of_the_way(fd);
    if (fd < 0) unlink(path);
  }
  return own_file(fd);
}

OwnFile open_file(const char* path, int flags) {
  const int fd = open(path, flags | O_CLOEXEC);
  return own_file(fd < 0 ? fd : out_of_the_way(fd));
}

FileFacts facts_of(int fd) {
  struct stat file {};
  if (fd < 0 || !ask(fd, "", AT_EMPTY_PATH, file)) return {};
  return {true, S_ISREG(file.st_mode), file.st_uid, static_cast<std::uint64_t>(file.st_size),
          static_cast<std::uint64_t>(file.st_nlink)};
}

FileId file_of(int fd) {
  return id(fd, "", AT_EMPTY_PATH);
}
FileId file_at(const char* path) {
  return id(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW);
}

bool lock_file(int fd) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return fcntl(fd, F_SETLK, &whole) == 0;
}

bool size_allowed(std::uint64_t size) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         size <= limit.rlim_cur;
}

bool write_all(int fd, std::string_view text, std::uint64_t offset) {
  while (!text.empty()) {
    const ssize_t n = pwrite(fd, text.data(), text.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    offset += static_cast<std::uint64_t>(n);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// posix_fallocate of glibc is no help: without fallocate in the file system it writes, and if it
// fails half way the file stays longer.
bool grow_file(int fd, std::uint64_t offset, std::uint64_t bytes) {
  const NoSignals no_signals;
  if (size_allowed(offset + bytes) && allocate(fd, 0, offset, bytes) == 0) return true;
  if (ftruncate(fd, static_cast<off_t>(offset)) != 0) errno = 0;
  return false;
}

Reserved reserve_blocks(int fd, std::uint64_t offset, std::uint64_t bytes) {
  const NoSignals no_signals;
  if (!size_allowed(offset + bytes)) {
    errno = EFBIG;
    return Reserved::no;
  }
  if (allocate(fd, FALLOC_FL_KEEP_SIZE, offset, bytes) == 0) return Reserved::yes;
  return errno == EOPNOTSUPP || errno == ENOSYS ? Reserved::unknown : Reserved::no;
}

}  // namespace tprof
