// Files, and room on the disk that is reserved before it is used.
#pragma once

#include <cstdint>
#include <string_view>

namespace tprof {

// Identifies the file that a descriptor or a path stands for.
struct FileId {
  bool known = false;
  std::uint64_t device = 0, inode = 0;
  // An unknown file equals no file, not even itself.
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
  // Opens it again by this path. False: another file is there, or none.
  bool open_again(const char* path);
};
inline OwnFile own_file(int fd) {
  return {fd, fd < 0 ? FileId{} : file_of(fd)};
}

// Creates a file at a path where there is none. If it fails, errno says why.
OwnFile create_file(const char* path, std::uint32_t mode);

// Opens an existing file to read it.
OwnFile open_to_read(const char* path);

// Opens an existing file so that it can be locked. Never follows a link, and never waits.
OwnFile open_to_take(const char* path);

struct FileFacts {
  bool regular = false;
  std::uint32_t owner = 0;
  std::uint64_t size = 0;
};
FileFacts facts_of(int fd);

// Returns the number of names that a file has; -1: not known.
long names_of(int fd);

// Takes the write lock (fcntl) of the whole file, which tells other processes that this one lives;
// the kernel releases it when we die. False: another process has it.
bool lock_file(int fd);

// True if a file of this process may become `size` bytes long: growing past RLIMIT_FSIZE is a
// SIGXFSZ.
bool size_allowed(std::uint64_t size);

// Makes the file `bytes` longer at `offset`, its end, and really allocates them: on a full disk the
// first store to a sparse file is a SIGBUS. False: there is no room, and the file is as it was.
bool grow_file(int fd, std::uint64_t offset, std::uint64_t bytes);

// Writes the whole text, whatever interrupts it. False: not all of it was written.
bool write_all(int fd, std::string_view text, std::uint64_t offset);

enum class Reserved { yes, no, unknown };

// Reserves blocks for the range, whatever the file's length, and leaves the length as it is: later
// writes there will fit. `unknown`: this file system gives no such promise.
Reserved reserve_blocks(int fd, std::uint64_t offset, std::uint64_t bytes);

}  // namespace tprof
