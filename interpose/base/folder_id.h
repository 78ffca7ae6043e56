// Identifies the folder of a path, to find out later whether that folder was removed.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "interpose/base/each_entry.h"
#include "interpose/base/text.h"

namespace tprof {

struct FolderId {
  static constexpr int kLevels = 16;
  // The folder, then its parent, and so on. inode 0: not known.
  struct Level {
    std::uint64_t device, inode, born_ns;  // inodes of removed folders are used again
    bool operator==(const Level&) const = default;
  } level[kLevels];
};

// Calls f(path, level) for a folder and its parents, until it returns false.
template <typename F>
void each_level(std::string_view folder, F&& f) {
  char path[1400] = {};
  if (folder.size() >= sizeof path || !folder.starts_with('/')) return;
  std::memcpy(path, folder.data(), folder.size());
  std::size_t size = folder.size();
  for (int level = 0; level < FolderId::kLevels; ++level) {
    while (size > 1 && path[size - 1] == '/') path[--size] = '\0';
    if (!f(static_cast<const char*>(path), level) || size == 1) return;
    while (path[size - 1] != '/') path[--size] = '\0';
  }
}

// Returns the device and inode; inode 0: not a folder, or only a link to one; errno says why.
inline FolderId::Level folder_at(const char* path) {
  struct statx file {};
  constexpr unsigned kWanted = STATX_TYPE | STATX_INO | STATX_BTIME;
  if (syscall(SYS_statx, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, kWanted, &file) != 0) return {};
  errno = 0;
  if (!S_ISDIR(file.stx_mode)) return {};
  const auto seconds = static_cast<std::uint64_t>(file.stx_btime.tv_sec);
  return {std::uint64_t{file.stx_dev_major} << 32 | file.stx_dev_minor, file.stx_ino,
          seconds * 1'000'000'000 + file.stx_btime.tv_nsec};
}

// Unknown for a path over a link, or with "..": such a path can come to mean another folder while
// all folders stay.
inline FolderId folder_id(std::string_view folder) {
  FolderId id{};
  bool known = folder.find("/..") == std::string_view::npos;
  each_level(folder, [&](const char* path, int level) {
    id.level[level] = folder_at(path);
    known = known && id.level[level].inode != 0;
    return known;
  });
  return known ? id : FolderId{};
}

// True if the folder that `path` stood for was removed with its contents. The proof is a folder
// above it that is still the same and can be read: the path's next name is not in it, nor is the
// next folder under another name, and no other file system was mounted there. A folder that was
// moved to another parent counts as removed.
inline bool was_removed(std::string_view path, const FolderId& id) {
  bool removed = false;
  each_level(path, [&](const char* at, int level) {
    const FolderId::Level now = folder_at(at);
    if (now.inode == 0) return errno == ENOENT;  // otherwise unknown
    const FolderId::Level& then = id.level[level];
    if (level == 0 || then != now) return false;
    const FolderId::Level& missing = id.level[level - 1];
    if (missing.inode == 0 || missing.device != then.device) return false;
    bool moved = false;
    const bool read = each_entry(at, [&](std::string_view name, std::uint64_t inode) {
      if (inode != missing.inode) return;
      char entry[1400];
      FixedText(entry) << at << "/" << name;
      moved = moved || folder_at(entry) == missing;
    });
    removed = read && !moved;
    return false;
  });
  return removed;
}

}  // namespace tprof
