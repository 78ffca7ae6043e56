#include "doctor/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "interpose/base/file_systems.h"
#include "interpose/format/ring_file.h"
#include "text/text.h"

namespace tprof::doctor {
namespace fs = std::filesystem;

namespace {

using diagnose::Severity;

// What a process needs at once: the ring file's head and one thread's part.
constexpr std::size_t kRingBytes = sizeof(Head) + (std::size_t{1} << 20) + (std::size_t{64} << 10);

// The part of the pattern that is the same for all processes.
fs::path common_folder(const std::string& pattern) {
  fs::path folder;
  for (const fs::path& part : fs::absolute(pattern)) {
    if (part.string().find('%') != std::string::npos) break;
    if (part.empty()) continue;  // behind a last slash
    folder /= part;
  }
  return folder;
}

// Folders that were made for the trial and are taken away again.
class Made {
 public:
  Made() = default;
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  ~Made() {
    std::error_code ignored;
    for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) {
      fs::remove(*folder, ignored);
    }
  }
  int make(const fs::path& folder) {
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) return 0;
    if (folder.has_parent_path() && folder.parent_path() != folder) {
      if (const int error = make(folder.parent_path())) return error;
    }
    if (mkdir(folder.c_str(), 0777) != 0) return errno == EEXIST ? ENOTDIR : errno;
    folders_.push_back(folder);
    return 0;
  }

 private:
  std::vector<fs::path> folders_;
};

struct Trial {
  const char* step = nullptr;  // that failed
  int error = 0;
};

// As the library does it: a new file, its space, a mapping, a write.
Trial try_ring_file(const fs::path& folder) {
  const fs::path file = folder / fmt::format(".tprof-doctor-{}", getpid());
  const int fd = open(file.c_str(), O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return {"create a file", errno};
  Trial trial;
  // Where a file system has no fallocate, the library writes instead.
  const bool allocated =
      fallocate(fd, 0, 0, kRingBytes) == 0 ||
      ((errno == EOPNOTSUPP || errno == ENOSYS) && ftruncate(fd, kRingBytes) == 0);
  if (!allocated) {
    trial = {"allocate 2 MiB", errno};
  } else {
    void* base = mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
      trial = {"map a file", errno};
    } else {
      munmap(base, kRingBytes);
    }
  }
  unlink(file.c_str());
  close(fd);
  return trial;
}

// False: nothing more to learn there.
bool try_folder(const fs::path& folder, std::string_view variable, Report& report) {
  // A file beyond the limit would be a signal instead of an error.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  if (before.rlim_cur != RLIM_INFINITY && before.rlim_cur < kRingBytes) return true;
  const Trial trial = try_ring_file(folder);
  if (trial.step == nullptr) return true;
  const bool full = trial.error == ENOSPC || trial.error == EDQUOT;
  report.findings.push_back(
      {.kind = full ? "output_full" : "output_unusable",
       .severity = Severity::error,
       .text = fmt::format("cannot {} in {}: {}", trial.step, folder.string(),
                           std::strerror(trial.error)),
       .next = full ? "free space or quota there, or choose another folder with " +
                          std::string(variable)
                    : "choose another folder with " + std::string(variable)});
  return false;
}

// Where the ring files will be. False: they can't.
bool examine_rings(const fs::path& folder, const FileSystem& fs_of, const std::string& ring_dir,
                   Report& report) {
  std::string rings;
  each_ring_folder(folder.c_str(), ring_dir.c_str(), std::getenv("TMPDIR"),
                   [&](const RingFolder& place) {
                     if (access(place.path, W_OK | X_OK) != 0) return false;
                     rings = place.path;
                     return true;
                   });
  if (!ring_dir.empty() && rings != ring_dir) {
    report.findings.push_back(
        {.kind = "ring_dir_unusable",
         .severity = Severity::warning,
         .text = fmt::format("no ring file can be in {} (TPROF_RING_DIR): it will be in {}",
                             ring_dir, rings.empty() ? "memory" : rings),
         .next = "set it to a folder on tmpfs, ext4 or XFS that may be written to"});
  }
  if (rings.empty()) {
    report.findings.push_back(
        {.kind = "ring_nowhere",
         .severity = Severity::warning,
         .text = fmt::format("ring files can't lie in {} ({}), and neither in /dev/shm, TMPDIR or "
                             "/tmp: they would be memory, and a kill loses up to 10 s",
                             folder.string(), fs_of.name),
         .next = "set TPROF_RING_DIR to a folder on tmpfs, ext4 or XFS"});
    return true;
  }
  if (rings == folder) {
    if (fs_of.type != kTmpfs) {
      report.fact("ring files",
                  fmt::format("beside the traces, on {}: /dev/shm has no 1 GiB to spare, "
                              "so a call may wait for the disk",
                              fs_of.name));
    }
    return true;
  }
  report.fact("ring files", fmt::format("{}, a snapshot of each beside the trace", rings));
  return try_folder(rings, "TPROF_RING_DIR", report);
}

}  // namespace

void examine_output(const std::string& pattern, const std::string& ring_dir, std::uint64_t quota,
                    Report& report) {
  const fs::path folder = common_folder(pattern);
  Made made;
  if (const int error = made.make(folder)) {
    report.fact("output", folder.string());
    report.findings.push_back({.kind = "output_unusable",
                               .severity = Severity::error,
                               .text = fmt::format("cannot make the folder {}: {}", folder.string(),
                                                   std::strerror(error)),
                               .next = "choose another one with TPROF_OUTPUT_DIR"});
    return;
  }
  struct statfs system {};
  struct statvfs space {};
  if (statfs(folder.c_str(), &system) != 0 || statvfs(folder.c_str(), &space) != 0) return;
  const std::uint64_t room = std::uint64_t{space.f_bavail} * space.f_frsize;
  const FileSystem& fs_of = file_system(static_cast<unsigned long>(system.f_type));
  const bool limited = space.f_blocks != 0;  // a tmpfs of size=0 and a ramfs tell none
  report.fact("output", fmt::format("{}{}{}{}", folder.string(),
                                    fs::absolute(pattern) == folder ? "" : " (" + pattern + ")",
                                    limited ? ", " + report::bytes(room) + " free" : "",
                                    fs_of.maps_safely ? "" : fmt::format(", {}", fs_of.name)));
  if (!try_folder(folder, "TPROF_OUTPUT_DIR", report)) return;
  if (!examine_rings(folder, fs_of, ring_dir, report)) return;
  if (limited && room < quota) {
    report.findings.push_back(
        {.kind = "output_small",
         .severity = Severity::warning,
         .text = fmt::format("{} has {} left, and each process may write {} of lines",
                             folder.string(), report::bytes(room), report::bytes(quota)),
         .next = "choose another folder with TPROF_OUTPUT_DIR, or lower TPROF_QUOTA"});
  }
}

}  // namespace tprof::doctor
