// Files, and disk space that is reserved before it is used.
#pragma once

#include <cstdint>
#include <string_view>

namespace tprof {

// Identifies the file of a descriptor or path.
struct FileId {
  bool known = false;
  std::uint64_t device = 0, inode = 0;
  // An unknown file is not equal to any file, not even itself.
  bool operator==(const FileId& other) const {
    return known && other.known && device == other.device && inode == other.inode;
  }
};
FileId file_of(int fd);
FileId file_at(const char* path);

// A file of the library. A program that closes all descriptors closes it, too, and its next open()
// gets the number. Then the file is lost to this process; the ring file stays.
struct OwnFile {
  int fd = -1;  // -1: there is none
  FileId id{};
  bool still_ours() const { return fd >= 0 && file_of(fd) == id; }
};
inline OwnFile own_file(int fd) {
  return {fd, fd < 0 ? FileId{} : file_of(fd)};
}

// Creates a new file. On failure errno says why.
OwnFile create_file(const char* path, std::uint32_t mode);

// Opens an existing file. `flags`: those of open().
OwnFile open_file(const char* path, int flags);

struct FileFacts {
  bool known = false;
  bool regular = false;
  std::uint32_t owner = 0;
  std::uint64_t size = 0;
  std::uint64_t names = 0;  // hard links
};
FileFacts facts_of(int fd);

// Takes the write lock (fcntl) of the whole file, which shows other processes that this one lives;
// the kernel releases it when we die. Returns false if another process has it.
bool lock_file(int fd);

// True if this process may have files of `size` bytes: growing one past RLIMIT_FSIZE raises
// SIGXFSZ.
bool size_allowed(std::uint64_t size);

// Makes the file `bytes` longer at `offset`, its end, and allocates them: on a full disk the first
// store to a sparse file raises SIGBUS. Returns false, and leaves the file as it was, if there is
// no room.
bool grow_file(int fd, std::uint64_t offset, std::uint64_t bytes);

// Writes the whole text despite interrupts. Returns false if not all of it was written.
bool write_all(int fd, std::string_view text, std::uint64_t offset);

enum class Reserved { yes, no, unknown };

// Reserves blocks for the range without changing the file's length, so that later writes there will
// fit. `unknown`: the file system can't guarantee that.
Reserved reserve_blocks(int fd, std::uint64_t offset, std::uint64_t bytes);

}  // namespace tprof
