// Which program a command line starts, as far as files can tell.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "doctor/elf.h"

namespace tprof::doctor {

struct Program {
  std::filesystem::path path;
  std::string why;         // "/usr/bin/torchrun runs it"; empty: it was named
  std::optional<Elf> elf;  // nothing: a script
};

// The program in PATH, or itself where it is a path; nothing where there is no such program.
std::optional<std::filesystem::path> find_program(const std::string& name);

// From the command to the program that does the work: through scripts to their interpreters, and
// through programs that only run another one (env, numactl, srun, ...) to that. At least one entry;
// throws BadInput where the command is not found.
std::vector<Program> programs_of(const std::vector<std::string>& command);

}  // namespace tprof::doctor
