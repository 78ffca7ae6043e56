#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "interpose/format/coverage.h"
#include "interpose/format/settings.h"
#include "read/error.h"
#include "read/ring_file.h"

namespace tprof::read {
namespace fs = std::filesystem;

namespace {

// Returns the folders where a process that writes to `folder` may keep its ring file.
std::set<fs::path> ring_folders(const fs::path& folder) {
  std::set<fs::path> folders = {folder, "/tmp", "/dev/shm"};
  for (const char* name : {"TMPDIR", info(Setting::ring_dir).name.data()}) {
    if (const char* place = std::getenv(name)) folders.insert(place);
  }
  return folders;
}

// Another user could truncate a file while we have it mapped, and root would write to that user's
// files.
bool is_ours(const fs::path& path) {
  struct stat file {};
  return lstat(path.c_str(), &file) == 0 && file.st_uid == geteuid();
}

// Returns nullopt if the file is not ours, from another boot, or in use. Also if it is damaged or
// no ring file of this version, which is reported when its rank file is read.
std::optional<LeftRing> left_ring(const fs::path& path, std::string_view here) try {
  if (!is_ours(path)) return std::nullopt;
  const auto ring = RingFile::open(path);
  if (!ring) return std::nullopt;
  const Head& head = ring->view().head();
  if (bounded_text(head.boot_id) != here || ring->running()) return std::nullopt;
  const std::uint64_t alive_ns = head.alive_ns.load(std::memory_order_relaxed);
  const std::uint64_t awake_ns =
      head.base_real_ns + (alive_ns == 0 ? 0 : alive_ns - head.base_mono_ns);
  const auto now_ns = static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
  const fs::path folder = bounded_text(head.directory);
  return LeftRing{path, folder, folder / fs::path(bounded_text(head.rank_file)).filename(),
                  now_ns - std::min(now_ns, awake_ns)};
} catch (const BadInput&) {
  return std::nullopt;
}

}  // namespace

bool LeftRing::has_rank_file() const {
  std::error_code error;
  return fs::exists(rank_file, error);
}

std::vector<LeftRing> left_rings(const fs::path& folder) {
  const std::string here = boot_id();
  std::vector<LeftRing> found;
  for (const fs::path& place : ring_folders(folder)) {
    std::error_code error;
    for (auto entry = fs::directory_iterator(place, error);
         !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (!name.starts_with('.') || !name.ends_with(".ring")) continue;
      if (auto left = left_ring(entry->path(), here)) found.push_back(std::move(*left));
    }
  }
  std::ranges::sort(found, {}, &LeftRing::rank_file);
  return found;
}

}  // namespace tprof::read
