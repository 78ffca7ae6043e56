// Room on the disk, asked for before it is used.
#pragma once

#include <cstdint>
#include <string_view>

namespace tprof {

// Which file a descriptor or a path stands for.
struct FileId {
  bool known = false;
  std::uint64_t device = 0, inode = 0;
  // What is not known is nobody's, not even its own.
  bool operator==(const FileId& other) const {
    return known && other.known && device == other.device && inode == other.inode;
  }
};
FileId file_of(int fd);
FileId file_at(const char* path);

// A file of ours. A program that closes all descriptors closes ours, and its next open() gets the
// number.
struct OwnFile {
  int fd = -1;  // -1: there is none
  FileId id{};
  bool still_ours() const { return fd >= 0 && file_of(fd) == id; }
};
inline OwnFile own_file(int fd) {
  return {fd, fd < 0 ? FileId{} : file_of(fd)};
}

// A new file at a path where there was none; without it, errno says why.
OwnFile create_file(const char* path, std::uint32_t mode);

// One that is there, to be read.
OwnFile open_to_read(const char* path);

// One that is there and may be locked; never a link, and without waiting.
OwnFile open_to_take(const char* path);

struct FileFacts {
  bool regular = false;
  std::uint32_t owner = 0;
  std::uint64_t size = 0;
};
FileFacts facts_of(int fd);

// How many names a file has; -1: not known.
long names_of(int fd);

// Whether a file of this process may become `size` bytes long: growing past RLIMIT_FSIZE is a
// SIGXFSZ.
bool size_allowed(std::uint64_t size);

// Makes the file `bytes` longer at `offset`, its end, really allocated: a sparse file on a full
// disk is a SIGBUS at the first store. False: no room, and the file is as it was.
bool grow_file(int fd, std::uint64_t offset, std::uint64_t bytes);

// The same for a hole in the file, or beyond its end: false leaves it with what could be allocated.
bool fill_hole(int fd, std::uint64_t offset, std::uint64_t bytes);

// Writes the whole text, through interruptions. False: not all of it.
bool write_all(int fd, std::string_view text, std::uint64_t offset);

enum class Reserved { yes, no, unknown };

// Blocks for the range, whatever the file's length is and without changing it: what is written
// there later fits. `unknown`: this file system gives no such promise.
Reserved reserve_blocks(int fd, std::uint64_t offset, std::uint64_t bytes);

}  // namespace tprof
