#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tprof {

// Calls f(name, inode) for each entry of a folder except "." and "..". Returns false if it can't be
// read. opendir() would allocate.
template <typename F>
bool each_entry(const char* folder, F&& f) {
  struct Entry {  // linux_dirent64
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t size;
    std::uint8_t type;
  };
  constexpr std::size_t kNameAt = offsetof(Entry, type) + 1;
  const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  alignas(Entry) char buffer[4096];
  long n = 0;
  while ((n = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0) {
    for (long at = 0; at < n;) {
      std::uint16_t size = 0;
      std::memcpy(&size, buffer + at + offsetof(Entry, size), sizeof size);
      const std::string_view name(buffer + at + kNameAt);
      const bool own = name == "." || name == "..";
      std::uint64_t inode = 0;
      std::memcpy(&inode, buffer + at + offsetof(Entry, inode), sizeof inode);
      if (!own) f(name, inode);
      at += size;
    }
  }
  close(fd);
  return n == 0;
}

}  // namespace tprof
