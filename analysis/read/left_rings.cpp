#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
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

constexpr std::uint64_t kDeadNs = 3'600'000'000'000;  // as in interpose/session/left_rings.cpp

// Another user could truncate a file while we have it mapped, and root would write to that user's
// files.
bool is_ours(const fs::path& path) {
  struct stat file {};
  return lstat(path.c_str(), &file) == 0 && file.st_uid == geteuid();
}

std::uint64_t silent_ns(const Head& head) {
  const std::uint64_t alive_ns = head.alive_ns.load(std::memory_order_relaxed);
  const std::uint64_t awake_ns =
      head.base_real_ns + (alive_ns == 0 ? 0 : alive_ns - head.base_mono_ns);
  const auto now_ns = static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
  return now_ns - std::min(now_ns, awake_ns);
}

}  // namespace

bool LeftRing::has_rank_file() const {
  std::error_code error;
  return !alone && fs::exists(rank_file, error);
}

bool LeftRing::is_of(const fs::path& of) const {
  std::error_code error;
  return fs::equivalent(folder, of, error) ||
         fs::weakly_canonical(folder, error) == fs::weakly_canonical(of, error);
}

std::vector<LeftRing> rings_of(const fs::path& folder) {
  std::vector<LeftRing> found;
  const std::string here = boot_id();
  const auto look_at = [&](const fs::path& path) {
    struct stat file {};
    const auto ring = RingFile::open(path);
    if (!ring || stat(path.c_str(), &file) != 0) return;
    const Head& head = ring->view().head();
    if (bounded_text(head.boot_id) != here) return;
    LeftRing left{.ring = path,
                  .folder = ring->rank_file().parent_path(),
                  .rank_file = ring->rank_file(),
                  .alone = ring->is_alone(),
                  .running = ring->running(),
                  .header_bytes = ring->view().header().size(),
                  .silent_ns = silent_ns(head),
                  .bytes = static_cast<std::uint64_t>(file.st_blocks) * 512};
    // From another pid namespace only its silence tells that the process is dead.
    const bool dead =
        !left.running && (head.pid_namespace == own_pid_namespace() || left.silent_ns >= kDeadNs);
    left.removed = !left.alone && dead && was_removed(bounded_text(head.directory), head.folder);
    found.push_back(std::move(left));
  };
  for (const fs::path& place : ring_folders(folder)) {
    std::error_code error;
    for (auto entry = fs::directory_iterator(place, error);
         !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (!name.starts_with('.') || !name.ends_with(".ring") || !is_ours(entry->path())) continue;
      try {
        look_at(entry->path());
      } catch (const BadInput&) {  // damaged or of another version: reported with its rank file
      }
    }
  }
  std::ranges::sort(found, {}, &LeftRing::rank_file);
  return found;
}

std::vector<LeftRing> left_rings(const fs::path& folder) {
  std::vector<LeftRing> found = rings_of(folder);
  std::erase_if(found, std::mem_fn(&LeftRing::running));
  return found;
}

}  // namespace tprof::read
