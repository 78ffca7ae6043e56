// Runs other programs, and returns what they print within 20 seconds.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tprof::doctor {

struct Answer {
  int code = -1;     // exit code; -1: not started, killed, or too slow
  std::string text;  // standard output and standard error together
};

// Changes to our environment. An empty value removes the variable.
using Settings = std::vector<std::pair<std::string, std::string>>;

// Executes the command; call it in a child. Returns only on failure, with errno.
void become(const std::vector<std::string>& command, const Settings& settings);

Answer ask(const std::vector<std::string>& command, const Settings& settings);

// The libraries of a program or library, from its own dynamic loader, which knows RPATH, RUNPATH,
// LD_LIBRARY_PATH and its cache best. Nothing of the program runs.
struct Closure {
  std::map<std::string, std::string> libraries;  // name -> path; empty path: not found
  std::vector<std::string> complaints;           // lines that name no library
};
Closure libraries_of(const std::filesystem::path& object, const std::string& loader,
                     const std::string& preload);

// The packages that move data (torch, cupy, vllm, jax, ...) that a Python interpreter would find,
// without importing them.
struct Python {
  std::string version;                                    // empty: it did not answer
  std::map<std::string, std::filesystem::path> packages;  // name -> folder
};
bool is_python(const std::filesystem::path& program);
Python ask_python(const std::filesystem::path& interpreter);

}  // namespace tprof::doctor
