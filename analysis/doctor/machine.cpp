#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>

#include "doctor/ask.h"
#include "doctor/examine.h"
#include "interpose/format/coverage.h"
#include "read/error.h"
#include "read/ring_file.h"
#include "text/text.h"

namespace tprof::doctor {
namespace fs = std::filesystem;

namespace {

using check::Kind;
using enum check::Severity;

constexpr std::uint64_t kClosingBytes = 64 << 10;  // a smaller file can't even be closed

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
  std::ifstream system("/etc/ld.so.preload");  // behind those of LD_PRELOAD
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

// Tells what killed processes have left in the memory of this machine.
void left_rings(const fs::path& output, Report& report) {
  struct Left {
    std::size_t rings = 0;
    std::uint64_t bytes = 0;
  };
  constexpr std::size_t kMostFolders = 8;
  std::map<std::pair<fs::path, bool>, Left> folders;
  Left all;
  for (const read::LeftRing& left : read::left_rings(output)) {
    for (Left* of : {&all, &folders[{left.folder, left.removed}]}) {
      ++of->rings;
      of->bytes += left.bytes;
    }
  }
  std::size_t told = 0;
  for (const auto& [folder, left] : folders) {
    if (told++ == kMostFolders) {
      report.fact("left ring files",
                  fmt::format("{} of killed processes in all, {}, of {} folders", all.rings,
                              text::bytes(all.bytes), folders.size()));
      break;
    }
    report.fact("left ring files",
                fmt::format("{} of killed processes that wrote to {}, {}: {}", left.rings,
                            folder.first.string(), text::bytes(left.bytes),
                            folder.second ? "the folder was removed, tprof recover frees them"
                                          : "tprof recover " + folder.first.string()));
  }
}

void settings(const check::Variables& env, Report& report) {
  std::ranges::copy_if(env, std::inserter(report.settings, report.settings.end()),
                       [](const auto& set) { return set.first.starts_with("TPROF_"); });
  check::settings(report.settings, {}, report.findings);
  const auto queues = env.find("CUDA_DEVICE_MAX_CONNECTIONS");
  if (queues != env.end() && queues->second == "1" &&
      report.in_force(info(Setting::timing)).starts_with("events")) {
    report.find(Kind::one_queue, {{"who", std::nullopt}, {"events", true}, {"gathers", false}});
  }
  const auto off = report.settings.find(std::string(info(Setting::disable).name));
  if (off == report.settings.end() || is_off(off->second)) return;
  report.find(Kind::disabled, {{"value", off->second}});
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
  settings(env, report);
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

}  // namespace tprof::doctor
