// What `tprof doctor` looks at.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "doctor/elf.h"
#include "doctor/report.h"
#include "job/jobs.h"
#include "read/folder.h"

namespace tprof::doctor {

// libtprof.so as it lies there. Throws BadInput where it is no such library.
struct Library {
  std::filesystem::path path;
  Elf elf;  // what it defines are the functions that it wraps
};
Library describe_library(const std::filesystem::path& path);

diagnose::Variables environment();

// What the library is built for (interpose/oldest_glibc.h).
inline constexpr const char* kOldestGlibc = "2.28";

// LD_PRELOAD as `tprof run` sets it: ours first, unless it is in the list already.
std::string preload_list(const Library& library);

// Where a program runs the command that it is given.
enum class Runs { nothing, here, on_other_hosts, in_container };

struct Program {
  std::filesystem::path path;
  std::optional<Elf> elf{};  // nothing: a script
  Runs runs = Runs::nothing;
  bool missing = false;  // a script wants it, and it is not there
};

// The program in PATH, or itself where it is a path; nothing where there is no such program.
std::optional<std::filesystem::path> find_program(const std::string& name);

// From the command to the program that does the work: through scripts to their interpreters, and
// through programs that only run another one (env, numactl, srun, ...) to that. At least one entry;
// throws BadInput where the command is not found.
std::vector<Program> programs_of(const std::vector<std::string>& command);

// This machine and its environment: whether the library loads, whether its files can be written,
// what is set. Appends facts, settings, tools and findings.
void examine_machine(const Library& library, Report& report);

// Whether TPROF_OUTPUT_DIR works, by trying, and where the ring files will be. `pattern`: the
// setting's value. `ring_dir`: TPROF_RING_DIR, "": none. `quota`: bytes of lines that a process may
// write, 0: no limit.
void examine_output(const std::string& pattern, const std::string& ring_dir, std::uint64_t quota,
                    Report& report);

// What would be traced of a command: the program that it comes to, its libraries, and what keeps a
// preload out or goes past it. Appends facts, functions and findings.
void examine_command(const std::vector<std::string>& command, const Library& library,
                     Report& report);

// The functions that it wraps and those that it leaves alone, as it lists them itself
// (interpose/api/function_list.cpp). Throws BadInput where it lists none.
std::string coverage(const Library& library, bool json);

// What was traced, from the traces themselves.
Report report_of_traces(const job::Job& job, const read::Traces& traces);

}  // namespace tprof::doctor
