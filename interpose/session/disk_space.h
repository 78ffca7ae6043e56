// Room on the disk, asked for before it is used.
#pragma once

#include <cstdint>

namespace tprof {

// Which file a descriptor stands for. A program that closes all descriptors closes ours, and its
// next open() gets the number.
struct FileId {
  std::uint64_t device = 0, inode = 0;
  bool operator==(const FileId&) const = default;
};
FileId file_of(int fd);            // zeros: none
FileId file_at(const char* path);  // the same

// Whether a file of this process may become `size` bytes long: growing past RLIMIT_FSIZE is a
// SIGXFSZ.
bool size_allowed(std::uint64_t size);

// Makes the file `bytes` longer at `offset`, its end, really allocated: a sparse file on a full
// disk is a SIGBUS at the first store. False: no room, and the file is as it was.
bool grow_file(int fd, std::uint64_t offset, std::uint64_t bytes);

// The same for a hole in the file, or beyond its end: false leaves it with what could be allocated.
bool fill_hole(int fd, std::uint64_t offset, std::uint64_t bytes);

enum class Reserved { yes, no, unknown };

// Blocks for the range, whatever the file's length is and without changing it: what is written
// there later fits. `unknown`: this file system gives no such promise.
Reserved reserve_blocks(int fd, std::uint64_t offset, std::uint64_t bytes);

}  // namespace tprof
