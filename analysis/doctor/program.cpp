#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "doctor/examine.h"
#include "read/error.h"

namespace tprof::doctor {
namespace fs = std::filesystem;

namespace {

constexpr int kMaxHops = 8;

// Programs that run the command after their own arguments, each with a space on both sides.
constexpr std::string_view kRunHere =
    " env nice nohup time timeout numactl taskset stdbuf chrt ionice setsid strace setarch "
    "prlimit ";
constexpr std::string_view kRunOnOtherHosts =
    " srun mpirun mpiexec prun jsrun aprun orterun ssh pdsh ";
constexpr std::string_view kRunInContainer =
    " docker podman nerdctl singularity apptainer enroot ch-run shifter crun runc ";

Runs where_runs(const std::vector<std::string>& command, const std::string& program) {
  const auto in = [word = " " + program + " "](std::string_view list) {
    return list.find(word) != std::string_view::npos;
  };
  const bool pyxis = program == "srun" && std::ranges::any_of(command, [](const std::string& word) {
                       return word.starts_with("--container-image");
                     });
  if (pyxis || in(kRunInContainer)) return Runs::in_container;
  if (in(kRunOnOtherHosts)) return Runs::on_other_hosts;
  return in(kRunHere) ? Runs::here : Runs::nothing;
}

bool executable(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
}

// Returns the words after "#!". Without any it returns the shell, which takes a text file without
// them.
std::vector<std::string> interpreter_of(const fs::path& file) {
  constexpr std::size_t kKernelTakes = 258;
  std::string line(kKernelTakes, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(line.data(), kKernelTakes);
  line.resize(static_cast<std::size_t>(in.gcount()));
  std::vector<std::string> command;
  if (line.starts_with("#!")) {
    std::istringstream words(line.substr(2, line.find('\n') - 2));
    for (std::string word; words >> word;) command.push_back(word);
  }
  return command.empty() ? std::vector<std::string>{"/bin/sh"} : command;
}

// Returns the words from the first argument on that is a program. Options and their values are
// none.
std::vector<std::string> what_it_runs(const std::vector<std::string>& command) {
  const auto first = std::find_if(command.begin() + 1, command.end(), [](const std::string& word) {
    return !word.starts_with('-') && word.find('=') == std::string::npos && find_program(word);
  });
  return {first, command.end()};
}

}  // namespace

std::optional<fs::path> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return executable(name) ? std::optional<fs::path>(name) : std::nullopt;
  }
  const char* set = std::getenv("PATH");
  std::istringstream folders(set == nullptr ? "/bin:/usr/bin" : set);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder.empty() ? "." : folder) / name;
    if (!name.empty() && executable(file)) return file;
  }
  return std::nullopt;
}

std::vector<Program> programs_of(const std::vector<std::string>& command) {
  std::vector<Program> programs;
  std::vector<std::string> words = command;
  for (int hop = 0; hop < kMaxHops && !words.empty(); ++hop) {
    const auto path = find_program(words[0]);
    if (!path) {
      if (programs.empty()) throw read::BadInput(words[0] + ": no such program in PATH");
      programs.push_back({.path = words[0], .missing = true});
      break;
    }
    const Program& p = programs.emplace_back(
        Program{*path, read_elf(*path), where_runs(command, path->filename().string())});
    if (!p.elf) {
      std::vector<std::string> next = interpreter_of(*path);
      next.insert(next.end(), words.begin(), words.end());
      words = std::move(next);
    } else if (p.runs == Runs::nothing || p.runs == Runs::in_container) {
      break;
    } else {
      words = what_it_runs(words);
    }
  }
  return programs;
}

}  // namespace tprof::doctor
