#include "read/left_rings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

#include "interpose/format/ring_file.h"
#include "interpose/format/schema.h"
#include "interpose/format/settings.h"
#include "read/error.h"
#include "read/ring_file.h"

namespace tprof::read {
namespace fs = std::filesystem;

namespace {

// Where a process that writes to `folder` may keep its ring file.
std::set<fs::path> ring_folders(const fs::path& folder) {
  std::set<fs::path> folders = {folder, "/tmp", "/dev/shm"};
  for (const char* name : {"TMPDIR", info(Setting::ring_dir).name.data()}) {
    if (const char* place = std::getenv(name)) folders.insert(place);
  }
  return folders;
}

// Whose a ring file is, from its first bytes.
struct Owner {
  std::string boot_id;
  fs::path directory;
  fs::path rank_file;
  std::uint64_t awake_ns;  // for the last time, CLOCK_REALTIME
};

template <typename T>
T number(const char* head, std::size_t offset) {
  T value;
  std::memcpy(&value, head + offset, sizeof value);
  return value;
}

template <std::size_t N>
std::string text(const char* head, std::size_t offset) {
  return {head + offset, strnlen(head + offset, N)};
}

// Nothing where it is no ring file of this version, or another user's: root would write to that
// user's files.
std::optional<Owner> owner_of(const fs::path& ring) {
  const int fd = open(ring.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  char head[offsetof(Head, thread)];
  struct stat file {};
  const bool mine = fstat(fd, &file) == 0 && file.st_uid == geteuid();
  const ssize_t n = pread(fd, head, sizeof head, 0);
  close(fd);
  if (!mine || n != static_cast<ssize_t>(sizeof head)) return std::nullopt;
  if (std::memcmp(head, kRingMagic, sizeof kRingMagic) != 0 ||
      number<std::uint32_t>(head, offsetof(Head, layout)) != kRingLayout) {
    return std::nullopt;
  }
  const auto base_mono_ns = number<std::uint64_t>(head, offsetof(Head, base_mono_ns));
  const auto alive_ns = number<std::uint64_t>(head, offsetof(Head, alive_ns));
  return Owner{text<sizeof Head::boot_id>(head, offsetof(Head, boot_id)),
               text<sizeof Head::directory>(head, offsetof(Head, directory)),
               text<sizeof Head::rank_file>(head, offsetof(Head, rank_file)),
               number<std::uint64_t>(head, offsetof(Head, base_real_ns)) +
                   (alive_ns == 0 ? 0 : alive_ns - base_mono_ns)};
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

bool LeftRing::has_rank_file() const {
  std::error_code error;
  return fs::exists(rank_file, error);
}

std::vector<LeftRing> left_rings(const fs::path& folder) {
  std::string here;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> here;
  const auto now_ns = static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
  std::vector<LeftRing> found;
  for (const fs::path& place : ring_folders(folder)) {
    std::error_code error;
    for (auto entry = fs::directory_iterator(place, error);
         !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const fs::path& ring = entry->path();
      const std::string name = ring.filename().string();
      if (!name.starts_with('.') || !name.ends_with(".ring")) continue;
      const auto owner = owner_of(ring);
      if (!owner || owner->boot_id != here || lives(ring)) continue;
      found.push_back({ring, owner->directory, owner->directory / owner->rank_file.filename(),
                       now_ns - std::min(now_ns, owner->awake_ns)});
    }
  }
  std::ranges::sort(found, {}, &LeftRing::rank_file);
  return found;
}

}  // namespace tprof::read
