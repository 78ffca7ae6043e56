#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gnu/libc-version.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>

#include "doctor/ask.h"
#include "doctor/examine.h"
#include "interpose/base/file_systems.h"
#include "interpose/format/coverage.h"
#include "interpose/format/ring_file.h"
#include "read/error.h"
#include "read/ring_file.h"
#include "text/text.h"

namespace tprof::doctor {

namespace fs = std::filesystem;

namespace {

using check::Kind;
using enum check::Severity;

constexpr std::uint64_t kClosingBytes = 64 << 10;  // the closing lines need this much

void loads(const Library& library, Report& report) {
  report.fact("library", library.path.string());
  report.fact("glibc", fmt::format("{}; the library needs {} or newer", gnu_get_libc_version(),
                                   kOldestGlibc));
  const Answer answer = ask({"/bin/true"}, {{"LD_PRELOAD", library.path.string()}});
  if (answer.code == 0 && answer.text.empty()) return;
  report.find(Kind::does_not_load,
              {{"said", answer.text.substr(0, answer.text.find('\n'))},
               {"code", answer.text.empty() ? std::optional(answer.code) : std::nullopt}});
}

void file_size_limit(std::uint64_t quota, Report& report) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const bool none = limit.rlim_cur < kClosingBytes;
  if (!none && limit.rlim_cur >= quota) return;
  report.find(Kind::limit, {{"quota", none ? std::nullopt : std::optional(check::Bytes{quota})}})
      .severity = none ? error : warning;
}

void preloads(const Library& library, const check::Variables& env, Report& report) {
  bool before = true;
  std::vector<std::string> order;
  const auto look_at = [&](std::string_view entry) {
    order.emplace_back(entry);
    const fs::path path(entry);
    if (path.filename() == library.path.filename()) {
      before = false;
      return;
    }
    report.tools.push_back({before ? "preload_before" : "preload", std::string(entry)});
    std::error_code ignored;
    if (!path.has_parent_path() || !fs::is_regular_file(path, ignored)) return;
    const auto elf = read_elf(path);
    if (!elf) return;
    const auto wraps = std::ranges::count_if(
        library.elf.defines, [&](const std::string& f) { return elf->defines.contains(f); });
    if (elf->dlsym || wraps != 0) {
      order.back() += fmt::format(" (has{}{}{})", elf->dlsym ? " a dlsym of its own" : "",
                                  elf->dlsym && wraps != 0 ? " and" : "",
                                  wraps == 0 ? "" : fmt::format(" {} of our functions", wraps));
    }
    if (!before || wraps == 0) return;
    report.find_meaning("interposer", fmt::format("{} ({} functions)", entry, wraps), env);
  };
  each_preload(preload_list(library.path), look_at);
  std::ifstream system("/etc/ld.so.preload");  // loaded after those of LD_PRELOAD
  for (std::string entry; system >> entry;) each_preload(entry, look_at);
  if (order.size() > 1) report.fact("preloads", fmt::format("{}", fmt::join(order, ", then ")));
}

void tool_variables(const check::Variables& env, Report& report) {
  for (const KnownVariable& variable : kToolVariables) {
    const auto set = env.find(variable.name);
    if (set == env.end() || set->second.empty()) continue;
    const std::string kind(note_name(variable.note));
    report.tools.push_back({kind, set->second});
    report.find_meaning(kind, set->second, env);
  }
}

// Reports what killed processes have left in this machine's memory.
void left_rings(const fs::path& output, Report& report) {
  struct Left {
    std::size_t rings = 0;
    std::uint64_t bytes = 0;
  };
  constexpr std::size_t kMostFolders = 8;
  std::map<std::pair<fs::path, bool>, Left> folders;
  Left all;
  for (const read::LeftRing& left : read::left_rings(output)) {
    for (Left* of : {&all, &folders[{left.folder, left.useless}]}) {
      ++of->rings;
      of->bytes += left.bytes;
    }
  }
  std::size_t told = 0;
  for (const auto& [folder, left] : folders) {
    if (told++ == kMostFolders) {
      report.fact("left ring files",
                  fmt::format("{} of killed processes in total, {}, of {} folders", all.rings,
                              text::bytes(all.bytes), folders.size()));
      break;
    }
    report.fact("left ring files",
                fmt::format("{} of killed processes that wrote to {}, {}: {}", left.rings,
                            folder.first.string(), text::bytes(left.bytes),
                            folder.second ? "their rank files are gone, tprof recover frees them"
                                          : "tprof recover " + folder.first.string()));
  }
}

// A name in TPROF_OPS that no bucket and no function of the library has; nullopt: none.
std::optional<std::string> unknown_in(std::string_view ops, const Library& library) {
  std::optional<std::string> unknown;
  if (ops == info(Setting::ops).fallback) return unknown;
  each_item(ops, [&](std::string_view op) {
    const auto same = [&](std::string_view name) { return matches(op, name); };
    const bool known = std::ranges::any_of(kBuckets, same, &BucketInfo::name) ||
                       std::ranges::any_of(library.elf.defines, same);
    if (!known) unknown = op;
    return known;
  });
  return unknown;
}

void settings(const Library& library, const check::Variables& env, Report& report) {
  std::ranges::copy_if(env, std::inserter(report.settings, report.settings.end()),
                       [](const auto& set) { return set.first.starts_with("TPROF_"); });
  check::settings(report.settings, {}, report.findings);
  const SettingInfo& ops = info(Setting::ops);
  if (const auto unknown = unknown_in(report.in_force(ops), library)) {
    report.find(Kind::bad_setting, {{"name", std::string(ops.name)},
                                    {"value", report.in_force(ops)},
                                    {"unknown", *unknown},
                                    {"values", std::string(ops.values)}});
  }
  const auto queues = env.find("CUDA_DEVICE_MAX_CONNECTIONS");
  if (queues != env.end() && queues->second == "1" &&
      report.in_force(info(Setting::timing)).starts_with("events")) {
    report.find(Kind::one_queue, {{"who", std::nullopt}, {"events", true}, {"gathers", false}});
  }
  const auto off = report.settings.find(std::string(info(Setting::disable).name));
  if (off == report.settings.end() || !is_on(off->second)) return;
  report.find(Kind::disabled, {{"value", off->second}});
}

using check::Say;

// The bytes that a process needs at first: the ring file's head and one thread's part.
constexpr std::size_t kRingBytes = sizeof(Head) + (std::size_t{1} << 20) + (std::size_t{64} << 10);

// Returns the part of the pattern that all processes share.
fs::path common_folder(const std::string& pattern) {
  fs::path folder;
  for (const fs::path& part : fs::absolute(pattern)) {
    if (part.string().find('%') != std::string::npos) break;
    if (!part.empty()) folder /= part;  // empty after a trailing slash
  }
  return folder;
}

// Does what the library does: creates a file, allocates its space, maps it. Returns the failed
// step, with errno, or nullopt.
std::optional<Say> failed_step(const fs::path& folder) {
  const fs::path file = folder / fmt::format(".tprof-doctor-{}", getpid());
  const int fd = open(file.c_str(), O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return Say::create_file;
  std::optional<Say> step;
  // Without fallocate the library writes zeros instead.
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

// Returns false if the folder is unusable.
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

// Finds where the ring files will be. Returns false if there is no place.
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
    report.fact("ring files", fmt::format("beside the traces, on {}: /dev/shm has less than 1 GiB "
                                          "to spare, so calls may wait for the disk",
                                          fs_of.name));
  }
  return true;
}

}  // namespace

Library describe_library(const fs::path& path) {
  auto elf = read_elf(path);
  if (!elf || elf->defines.empty()) throw read::BadInput(path, "expected libtprof.so here");
  return {path, std::move(*elf)};
}

check::Variables environment() {
  check::Variables env;
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    const std::string_view entry(*e);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    env.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return env;
}

std::string preload_list(const fs::path& library) {
  const char* set = std::getenv("LD_PRELOAD");
  std::vector<std::string> list;
  std::size_t place = SIZE_MAX;
  bool there = false;
  each_preload(set == nullptr ? "" : set, [&](std::string_view entry) {
    std::error_code ignored;
    const bool same = fs::equivalent(entry, library, ignored);
    if (!same && fs::path(entry).filename() == library.filename()) return;
    there = there || same;
    const KnownObject* known = known_object(entry);
    const bool passes_on_nothing =
        known != nullptr &&
        (known->note == Note::nccl || known->note == Note::cudart || known->note == Note::driver);
    if (passes_on_nothing) place = std::min(place, list.size());
    list.emplace_back(entry);
  });
  place = std::min(place, list.size());
  if (!there) list.insert(list.begin() + static_cast<std::ptrdiff_t>(place), library.string());
  return fmt::format("{}", fmt::join(list, ":"));
}

void examine_machine(const Library& library, Report& report) {
  const auto env = environment();
  loads(library, report);
  settings(library, env, report);
  const auto value = [&](Setting s) { return report.in_force(info(s)); };
  std::uint64_t quota = 0;
  parse_bytes(value(Setting::quota), quota);
  const std::string ring_dir = value(Setting::ring_dir);
  examine_output(value(Setting::output_dir), ring_dir == "auto" ? "" : ring_dir, quota, report);
  left_rings(value(Setting::output_dir), report);
  file_size_limit(quota, report);
  preloads(library, env, report);
  tool_variables(env, report);
}

void examine_output(const std::string& pattern, const std::string& ring_dir, std::uint64_t quota,
                    Report& report) {
  const fs::path folder = common_folder(pattern);
  fs::path there = folder;  // the existing part of the path; new folders will be like it
  std::error_code ignored;
  while (!fs::exists(there, ignored) && there.has_relative_path()) there = there.parent_path();
  struct statfs system {};
  struct statvfs space {};
  if (statfs(there.c_str(), &system) != 0 || statvfs(there.c_str(), &space) != 0) return;
  const std::uint64_t room = std::uint64_t{space.f_bavail} * space.f_frsize;
  const FileSystem& fs_of = file_system(static_cast<unsigned long>(system.f_type));
  const bool limited = space.f_blocks != 0;  // a tmpfs of size=0 and a ramfs have no size
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
