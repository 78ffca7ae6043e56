#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "doctor/examine.h"
#include "interpose/base/file_systems.h"
#include "interpose/format/ring_file.h"
#include "text/text.h"

namespace tprof::doctor {
namespace fs = std::filesystem;

namespace {

using check::Kind;
using check::Say;

// The bytes that a process needs at once: the ring file's head and one thread's part.
constexpr std::size_t kRingBytes = sizeof(Head) + (std::size_t{1} << 20) + (std::size_t{64} << 10);

// Returns the part of the pattern that is the same for all processes.
fs::path common_folder(const std::string& pattern) {
  fs::path folder;
  for (const fs::path& part : fs::absolute(pattern)) {
    if (part.string().find('%') != std::string::npos) break;
    if (!part.empty()) folder /= part;  // it is empty after a last slash
  }
  return folder;
}

// Does what the library does: makes a file, allocates its space, maps it. Returns which step
// failed, with errno; nullopt if none did.
std::optional<Say> failed_step(const fs::path& folder) {
  const fs::path file = folder / fmt::format(".tprof-doctor-{}", getpid());
  const int fd = open(file.c_str(), O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return Say::create_file;
  std::optional<Say> step;
  // If a file system has no fallocate, the library writes instead.
  if (fallocate(fd, 0, 0, kRingBytes) != 0 &&
      ((errno != EOPNOTSUPP && errno != ENOSYS) || ftruncate(fd, kRingBytes) != 0)) {
    step = Say::allocate;
  } else if (mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED) {
    step = Say::map_file;
  }
  const int reason = errno;
  unlink(file.c_str());
  close(fd);
  errno = reason;
  return step;
}

// Returns false if there is nothing more to learn there.
bool try_folder(const fs::path& folder, std::string_view variable, Report& report) {
  // A file beyond the limit would raise a signal instead of an error.
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < kRingBytes) return true;
  const auto step = failed_step(folder);
  if (!step) return true;
  const int reason = errno;
  const bool full = reason == ENOSPC || reason == EDQUOT;
  report.find(full ? Kind::output_full : Kind::output_unusable,
              {{"step", check::Fact{*step}},
               {"folder", folder.string()},
               {"reason", std::strerror(reason)},
               {"variable", std::string(variable)}});
  return false;
}

// Finds where the ring files will be. Returns false if they can't be there.
bool examine_rings(const fs::path& folder, const FileSystem& fs_of, const std::string& ring_dir,
                   Report& report) {
  std::string rings;
  for (const RingPlace& place :
       ring_places(folder.c_str(), ring_dir.c_str(), std::getenv("TMPDIR"))) {
    const bool taken = take_ring_folder(
        place, sizeof(Head), [](const RingFolder& f) { return access(f.path, W_OK | X_OK) == 0; });
    if (!taken) continue;
    rings = place.path;
    break;
  }
  if (!ring_dir.empty() && rings != ring_dir) {
    report.find(Kind::ring_dir_unusable, {{"ring_dir", ring_dir}, {"rings", rings}});
  }
  if (rings.empty()) {
    report.find(Kind::ring_nowhere,
                {{"folder", folder.string()}, {"file_system", std::string(fs_of.name)}});
  } else if (rings != folder) {
    report.fact("ring files", fmt::format("{}, a snapshot of each beside the trace", rings));
    return try_folder(rings, "TPROF_RING_DIR", report);
  } else if (fs_of.type != kTmpfs) {
    report.fact("ring files",
                fmt::format("beside the traces, on {}: /dev/shm has no 1 GiB to spare, "
                            "so a call may wait for the disk",
                            fs_of.name));
  }
  return true;
}

}  // namespace

void examine_output(const std::string& pattern, const std::string& ring_dir, std::uint64_t quota,
                    Report& report) {
  const fs::path folder = common_folder(pattern);
  fs::path there = folder;  // as far as it exists: what will be made in it is like it
  std::error_code ignored;
  while (!fs::exists(there, ignored) && there.has_relative_path()) there = there.parent_path();
  struct statfs system {};
  struct statvfs space {};
  if (statfs(there.c_str(), &system) != 0 || statvfs(there.c_str(), &space) != 0) return;
  const std::uint64_t room = std::uint64_t{space.f_bavail} * space.f_frsize;
  const FileSystem& fs_of = file_system(static_cast<unsigned long>(system.f_type));
  const bool limited = space.f_blocks != 0;  // a tmpfs of size=0 and a ramfs tell no size
  report.fact("output", fmt::format("{}{}{}{}", folder.string(),
                                    fs::absolute(pattern) == folder ? "" : " (" + pattern + ")",
                                    limited ? ", " + text::bytes(room) + " free" : "",
                                    fs_of.maps_safely ? "" : fmt::format(", {}", fs_of.name)));
  if (!try_folder(there, "TPROF_OUTPUT_DIR", report)) return;
  if (!examine_rings(there, fs_of, ring_dir, report)) return;
  if (limited && room < quota) {
    report.find(Kind::output_small, {{"folder", folder.string()},
                                     {"room", check::Bytes{room}},
                                     {"quota", check::Bytes{quota}}});
  }
}

}  // namespace tprof::doctor
