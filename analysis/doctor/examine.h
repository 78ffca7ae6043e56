// The examinations of `tprof doctor`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "check/coverage.h"
#include "check/finding.h"
#include "doctor/elf.h"
#include "interpose/format/settings.h"
#include "job/jobs.h"
#include "read/folder.h"

namespace tprof::doctor {

// The report of `tprof doctor`, as data.

struct Fact {
  std::string key;
  std::string text;
};

// A wrapped function, and the library that serves it.
struct Function {
  std::string name;
  std::string library;      // path; empty: none was found
  std::uint64_t calls = 0;  // of all ranks
  text::Ranks ranks{};      // ranks that called this library; empty: all
};

struct Report {
  std::string about;  // "machine", "command" or "trace"
  std::vector<Fact> facts{};
  std::vector<Function> functions{};
  bool counted = false;                           // calls of functions are known
  std::map<std::string, std::string> settings{};  // as set
  std::map<std::string, std::string> differ{};    // between ranks, with the ranks
  std::vector<Fact> tools{};                      // their kinds and paths
  check::Findings findings{};

  void fact(std::string key, std::string text) {
    facts.push_back({std::move(key), std::move(text)});
  }
  check::Finding& find(check::Kind kind, check::Values values = {}) {
    return check::add(findings, kind, {}, std::move(values));
  }
  // Adds a finding about a kind of library or tool at `path`, given these variables
  // (check/coverage.h).
  void find_meaning(const std::string& kind, std::string_view path,
                    const check::Variables& variables);
  // Returns a setting's value, or its default if the value is empty or invalid.
  std::string in_force(const SettingInfo& setting) const;
};

std::string to_text(const Report& report);
std::string to_json(const Report& report);

// libtprof.so on disk. describe_library() throws BadInput if the file is something else.
struct Library {
  std::filesystem::path path;
  Elf elf;  // its `defines` are the functions that the library wraps
};
Library describe_library(const std::filesystem::path& path);

check::Variables environment();

// The oldest glibc that the library is built for (interpose/oldest_glibc.h).
inline constexpr const char* kOldestGlibc = "2.28";

// Returns LD_PRELOAD for `tprof run`. Our library comes last, as others may have to be first (a
// sanitizer's runtime), but before NCCL or CUDA, which pass on nothing. If it is already in the
// list, it stays there; other copies are removed.
std::string preload_list(const std::filesystem::path& library);

// The place where a program runs the command in its arguments.
enum class Runs { nothing, here, on_other_hosts, in_container };

struct Program {
  std::filesystem::path path;
  std::optional<Elf> elf{};  // nullopt: a script
  Runs runs = Runs::nothing;
  bool missing = false;  // a script needs it, but it does not exist
};

// Returns the program in PATH, or the name itself if it is a path; nullopt if there is none.
std::optional<std::filesystem::path> find_program(const std::string& name);

// Follows the command to the program that does the work: from scripts to interpreters, and through
// programs that only run another one (env, numactl, srun, ...). Returns at least one entry. Throws
// BadInput if the command is not found.
std::vector<Program> programs_of(const std::vector<std::string>& command);

// Examines this machine and environment: whether the library loads, whether its files can be
// written, and the settings. Appends facts, settings, tools and findings.
void examine_machine(const Library& library, Report& report);

// Tests whether TPROF_OUTPUT_DIR (`pattern`) works, and finds where ring files will be. `ring_dir`:
// TPROF_RING_DIR; "": none. `quota`: bytes of lines per process; 0: no limit.
void examine_output(const std::string& pattern, const std::string& ring_dir, std::uint64_t quota,
                    Report& report);

// Examines what would be traced of a command: its program, its libraries, and what prevents or
// bypasses a preload. Appends facts, functions and findings.
void examine_command(const std::vector<std::string>& command, const Library& library,
                     Report& report);

// Returns the functions that the library wraps and those that it does not, from its own list
// (interpose/api/function_list.cpp). Throws BadInput if it has none.
std::string coverage(const Library& library, bool json, std::size_t width = SIZE_MAX);

// Reports what was traced, from the traces.
Report report_of_traces(const job::Job& job, const read::Traces& traces);

}  // namespace tprof::doctor
