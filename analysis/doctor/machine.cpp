#include "doctor/machine.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "diagnose/coverage.h"
#include "doctor/ask.h"
#include "doctor/output_folder.h"
#include "interpose/format/coverage.h"
#include "interpose/format/settings.h"
#include "read/error.h"
#include "text/text.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace tprof::doctor {
namespace fs = std::filesystem;

namespace {

using diagnose::Severity;

constexpr std::uint64_t kClosingBytes = 64 << 10;   // a smaller file can't even be closed
constexpr std::uint64_t kLeastReserved = 32 << 20;  // of addresses, of which the ring takes 1/8
constexpr std::uint64_t kFewFiles = 64;

std::pair<int, int> version_numbers(std::string_view v) {
  std::pair<int, int> numbers{0, 0};
  const char* end = v.data() + v.size();
  const auto [rest, error] = std::from_chars(v.data(), end, numbers.first);
  if (error == std::errc() && rest != end) std::from_chars(rest + 1, end, numbers.second);
  return numbers;
}

void loads(const Library& library, Report& report) {
  report.fact("library", library.path.string());
  report.fact("glibc", fmt::format("{}; the library needs {} or newer", gnu_get_libc_version(),
                                   newest(library.elf.versions)));
  const Answer answer = ask({"/bin/true"}, {{"LD_PRELOAD", library.path.string()}});
  if (answer.code == 0 && answer.text.empty()) return;
  report.findings.push_back(
      {.kind = "does_not_load",
       .severity = Severity::error,
       .text = fmt::format("the library does not load into /bin/true: {}",
                           answer.text.empty() ? fmt::format("exit code {}", answer.code)
                                               : answer.text.substr(0, answer.text.find('\n'))),
       .next = "use a library that was built for this system"});
}

void limit(int resource, std::uint64_t least, std::string_view what, Severity severity,
           std::string_view flag, Report& report) {
  rlimit l{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &l) != 0) return;
  if (l.rlim_cur == RLIM_INFINITY || l.rlim_cur >= least) return;
  report.findings.push_back({.kind = "limit",
                             .severity = severity,
                             .text = fmt::format("ulimit {}: {}", flag, what),
                             .next = fmt::format("raise it: ulimit {} unlimited", flag)});
}

void limits(std::uint64_t quota, Report& report) {
  rlimit files{};
  getrlimit(RLIMIT_FSIZE, &files);
  if (files.rlim_cur < kClosingBytes) {
    limit(RLIMIT_FSIZE, kClosingBytes, "no file may grow to 64 KiB, so nothing is traced",
          Severity::error, "-f", report);
  } else {
    limit(RLIMIT_FSIZE, quota,
          fmt::format("no file may grow to the {} of TPROF_QUOTA, so lines will be missing",
                      report::bytes(quota)),
          Severity::warning, "-f", report);
  }
  limit(RLIMIT_AS, 8 * kLeastReserved, "too few addresses for the ring, so nothing is traced",
        Severity::error, "-v", report);
  limit(RLIMIT_NOFILE, kFewFiles, "few files can be open, and the library needs two of them",
        Severity::warning, "-n", report);
}

void preloads(const Library& library, const std::map<std::string, std::string>& env,
              Report& report) {
  const auto set = env.find("LD_PRELOAD");
  const std::string list = set == env.end() ? "" : set->second;
  bool before = list.find(library.path.filename().string()) != std::string::npos;
  each_preload(list, [&](std::string_view entry) {
    const fs::path path(entry);
    if (path.filename() == library.path.filename()) {
      before = false;
      return;
    }
    report.tools.push_back({before ? "preload_before" : "preload", std::string(entry)});
    std::error_code error;
    if (path.has_parent_path() && !fs::exists(path, error)) {
      report.findings.push_back(
          {.kind = "preload_missing",
           .severity = Severity::warning,
           .text =
               fmt::format("LD_PRELOAD names {}, which is not there: every process says so", entry),
           .next = "take it out of LD_PRELOAD"});
      return;
    }
    if (!before || !path.has_parent_path()) return;
    const auto elf = read_elf(path);
    if (!elf) return;
    const auto wraps = std::ranges::count_if(
        library.functions, [&](const std::string& f) { return elf->defines.contains(f); });
    if (wraps == 0) return;
    const diagnose::Meaning m = diagnose::meaning_of("interposer", {&env});
    report.findings.push_back({.kind = "interposer",
                               .severity = m.severity,
                               .text = fmt::format("{} ({} functions): {}", entry, wraps, m.text),
                               .next = m.next});
  });
  std::ifstream system("/etc/ld.so.preload");
  for (std::string entry; system >> entry;) report.tools.push_back({"ld.so.preload", entry});
}

void tool_variables(const std::map<std::string, std::string>& env, Report& report) {
  for (const KnownVariable& variable : kToolVariables) {
    const auto set = env.find(variable.name);
    if (set == env.end() || set->second.empty()) continue;
    const std::string kind(note_name(variable.note));
    report.tools.push_back({kind, set->second});
    const diagnose::Meaning m = diagnose::meaning_of(kind, {&env});
    if (m.text.empty()) continue;
    report.findings.push_back({.kind = kind,
                               .severity = m.severity,
                               .text = fmt::format("{}: {}", set->second, m.text),
                               .next = std::string(m.next)});
  }
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream fields(line);
    std::string key;
    int tracer = 0;
    if (fields >> key >> tracer && key == "TracerPid:" && tracer != 0) {
      report.tools.push_back({"ptrace", fmt::format("pid {}", tracer)});
    }
  }
}

// Not only those that begin with TPROF_: "TPORF_EVENTS" was meant for us too.
void settings(const std::map<std::string, std::string>& env, Report& report) {
  for (const auto& [name, value] : env) {
    if (name.starts_with("TPROF_")) {
      report.settings[name] = value;
      continue;
    }
    constexpr std::size_t kNear = 2;
    for (const SettingInfo& s : kSettings) {
      if (edit_distance(name, s.name) > kNear) continue;
      report.findings.push_back(
          {.kind = "misspelt_setting",
           .severity = Severity::warning,
           .text = fmt::format("{} is not a setting, so it does nothing", name),
           .next = fmt::format("did you mean {}?", s.name)});
    }
  }
  diagnose::settings(report.settings, {}, report.findings);
  const auto off = report.settings.find(std::string(info(Setting::disable).name));
  if (off == report.settings.end() || is_off(off->second)) return;
  report.findings.push_back(
      {.kind = "disabled",
       .severity = Severity::warning,
       .text = fmt::format("TPROF_DISABLE={}: nothing is traced", off->second),
       .next = "unset TPROF_DISABLE"});
}

}  // namespace

Library describe_library(const fs::path& path) {
  auto elf = read_elf(path);
  if (!elf || elf->defines.empty()) throw read::BadInput(path, "expected libtprof.so here");
  Library library{path, std::move(*elf), {}};
  library.functions.assign(library.elf.defines.begin(), library.elf.defines.end());
  return library;
}

std::map<std::string, std::string> environment() {
  std::map<std::string, std::string> env;
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    const std::string_view entry(*e);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    env.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return env;
}

std::string newest(const std::set<std::string>& versions) {
  const auto newest = std::ranges::max_element(versions, {}, version_numbers);
  return newest == versions.end() ? "?" : *newest;
}

std::string preload_list(const Library& library) {
  const char* set = std::getenv("LD_PRELOAD");
  std::string others = set == nullptr ? "" : set;
  if (others.find(library.path.filename().string()) != std::string::npos) return others;
  return library.path.string() + (others.empty() ? "" : ":" + others);
}

void examine_machine(const Library& library, Report& report) {
  const auto env = environment();
  loads(library, report);
  settings(env, report);
  const auto value = [&](Setting s) {
    const auto set = report.settings.find(std::string(info(s).name));
    const bool taken =
        set != report.settings.end() && !set->second.empty() && info(s).accepts(set->second);
    return taken ? set->second : std::string(info(s).fallback);
  };
  std::uint64_t quota = 0;
  parse_bytes(value(Setting::quota), quota);
  const std::string ring_dir = value(Setting::ring_dir);
  examine_output(value(Setting::output_dir), ring_dir == "auto" ? "" : ring_dir, quota, report);
  limits(quota, report);
  preloads(library, env, report);
  tool_variables(env, report);
}

}  // namespace tprof::doctor
