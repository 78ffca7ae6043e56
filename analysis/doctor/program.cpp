#include "doctor/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "read/error.h"

namespace tprof::doctor {
namespace fs = std::filesystem;

namespace {

constexpr int kMaxHops = 8;

// Programs that run the command that follows their own arguments.
constexpr std::array<std::string_view, 22> kRunners = {
    "env",  "nice",   "nohup",   "time",    "timeout", "numactl", "taskset", "stdbuf",
    "chrt", "ionice", "setsid",  "srun",    "mpirun",  "mpiexec", "prun",    "jsrun",
    "exec", "strace", "setarch", "prlimit", "aprun",   "orterun"};

bool executable(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
}

// The line behind "#!", in words; empty where the file is no script.
std::vector<std::string> interpreter_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  char mark[2] = {};
  if (!in.read(mark, 2) || mark[0] != '#' || mark[1] != '!') return {};
  constexpr std::size_t kKernelTakes = 256;
  std::string line(kKernelTakes, '\0');
  in.read(line.data(), kKernelTakes);
  line.resize(static_cast<std::size_t>(in.gcount()));
  std::istringstream words(line.substr(0, line.find('\n')));
  std::vector<std::string> command;
  for (std::string word; words >> word;) command.push_back(word);
  return command;
}

// The first argument that is a program: options and their values are none.
std::vector<std::string> what_it_runs(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word.starts_with('-') || word.find('=') != std::string::npos) continue;
    if (find_program(word))
      return {command.begin() + static_cast<std::ptrdiff_t>(i), command.end()};
  }
  return {};
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
  std::string why;
  for (int hop = 0; hop < kMaxHops; ++hop) {
    const auto path = find_program(words[0]);
    if (!path) {
      if (programs.empty()) throw read::BadInput(words[0] + ": no such program in PATH");
      programs.push_back({words[0], "missing", std::nullopt});
      break;
    }
    programs.push_back({*path, why, read_elf(*path)});
    std::vector<std::string> next;
    if (programs.back().elf) {
      if (std::ranges::find(kRunners, path->filename().string()) != kRunners.end()) {
        next = what_it_runs(words);
      }
      why = fmt::format("{} runs it", path->filename().string());
    } else {
      next = interpreter_of(*path);
      if (next.empty()) next = {"/bin/sh"};  // as the shell does with a text file
      next.insert(next.end(), words.begin(), words.end());
      why = fmt::format("interpreter of {}", path->filename().string());
    }
    if (next.empty()) break;
    words = std::move(next);
  }
  return programs;
}

}  // namespace tprof::doctor
