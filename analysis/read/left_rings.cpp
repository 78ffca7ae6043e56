#include "read/left_rings.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

#include "format/ring_file.h"
#include "format/schema.h"
#include "read/error.h"
#include "read/ring_file.h"

namespace tprof::read {
namespace fs = std::filesystem;

namespace {

// Where a process that writes to `folder` may keep its ring file.
std::set<fs::path> ring_folders(const fs::path& folder) {
  std::set<fs::path> folders = {folder, "/tmp", "/dev/shm"};
  if (const char* temporary = std::getenv("TMPDIR")) folders.insert(temporary);
  return folders;
}

// Whose a ring file is, from its first bytes.
struct Owner {
  std::string boot_id;
  fs::path directory;
  fs::path rank_file;
};

template <std::size_t N>
std::string field(const char* head, std::size_t offset) {
  return {head + offset, strnlen(head + offset, N)};
}

// Nothing where it is no ring file of this version.
std::optional<Owner> owner_of(const fs::path& ring) {
  const int fd = open(ring.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  char head[offsetof(Head, base_mono_ns)];
  const ssize_t n = pread(fd, head, sizeof head, 0);
  close(fd);
  if (n != static_cast<ssize_t>(sizeof head)) return std::nullopt;
  std::uint32_t layout = 0;
  std::memcpy(&layout, head + offsetof(Head, layout), sizeof layout);
  if (std::memcmp(head, kRingMagic, sizeof kRingMagic) != 0 || layout != kRingLayout) {
    return std::nullopt;
  }
  return Owner{field<sizeof Head::boot_id>(head, offsetof(Head, boot_id)),
               field<sizeof Head::directory>(head, offsetof(Head, directory)),
               field<sizeof Head::rank_file>(head, offsetof(Head, rank_file))};
}

bool lives(const fs::path& ring) {
  try {
    const auto open = RingFile::open(ring);
    return !open || open->running();
  } catch (const BadInput&) {
    return false;  // recovering it says what is wrong
  }
}

}  // namespace

std::vector<fs::path> left_by_the_dead(const fs::path& folder) {
  std::string here;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> here;
  std::set<fs::path> found;
  for (const fs::path& place : ring_folders(folder)) {
    std::error_code error;
    for (auto entry = fs::directory_iterator(place, error);
         !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const fs::path& ring = entry->path();
      const std::string name = ring.filename().string();
      if (!name.starts_with('.') || !name.ends_with(".ring")) continue;
      const auto owner = owner_of(ring);
      std::error_code gone;
      if (!owner || owner->boot_id != here || !fs::equivalent(owner->directory, folder, gone)) {
        continue;
      }
      const fs::path file = folder / owner->rank_file.filename();
      if (fs::exists(file, gone) && !lives(ring)) found.insert(file);
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace tprof::read
