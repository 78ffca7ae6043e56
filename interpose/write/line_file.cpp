#include "interpose/write/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tprof {

bool LineFile::reserve(std::uint64_t from, std::uint64_t until) {
  constexpr std::uint64_t kStep = 256 << 10;  // one system call for 1,200 lines
  if (!reserves_ || until <= reserved_) return true;
  for (const std::uint64_t more : {kStep, std::uint64_t{0}}) {
    const Reserved answer = reserve_blocks(file_.fd, from, until + more - from);
    if (answer == Reserved::no) continue;
    reserves_ = answer == Reserved::yes;
    reserved_ = until + more;
    return true;
  }
  return false;
}

bool LineFile::cut(std::uint64_t size) {
  reserved_ = size;
  return ftruncate(file_.fd, static_cast<off_t>(size)) == 0;
}

bool LineFile::bring_back(const char* path, std::uint64_t size) {
  const OwnFile copy = create_file(path, 0666);
  if (copy.fd < 0) return false;
  bool well = size_allowed(size);
  char part[4096];
  for (std::uint64_t at = 0; well && at < size;) {
    const ssize_t n = pread(file_.fd, part, std::min<std::uint64_t>(sizeof part, size - at),
                            static_cast<off_t>(at));
    well = n > 0 && write_all(copy.fd, {part, static_cast<std::size_t>(n)}, at);
    at += n > 0 ? static_cast<std::uint64_t>(n) : 0;
  }
  well = well && dup3(copy.fd, file_.fd, O_CLOEXEC) == file_.fd;
  ::close(copy.fd);
  if (!well) {
    unlink(path);
    return false;
  }
  file_ = own_file(file_.fd);
  reserved_ = 0;
  return true;
}

}  // namespace tprof
