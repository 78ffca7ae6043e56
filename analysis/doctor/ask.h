// Asks other programs, and takes what they say within 20 seconds.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tprof::doctor {

struct Answer {
  int code = -1;     // exit code; -1: it could not be started, was killed, or took too long
  std::string text;  // standard output and standard error together
};

// Variables over our environment. An empty value takes the variable away.
using Settings = std::vector<std::pair<std::string, std::string>>;

// Called in a child, which goes on as the command. Comes back only if that failed, with errno.
void become(const std::vector<std::string>& command, const Settings& settings);

Answer ask(const std::vector<std::string>& command, const Settings& settings);

// The libraries that a program or library gets. Its own dynamic loader is asked, which knows RPATH,
// RUNPATH, LD_LIBRARY_PATH and its cache better than we do. Nothing of the program runs.
struct Closure {
  std::map<std::string, std::string> libraries;  // name -> path; empty path: not found
  std::vector<std::string> complaints;           // lines that name no library
};
Closure libraries_of(const std::filesystem::path& object, const std::string& loader,
                     const std::string& preload);

// The packages that move data (torch, cupy, vllm, jax, ...) and that a Python interpreter would
// import, found without importing them.
struct Python {
  std::string version;                                    // empty: it did not answer
  std::map<std::string, std::filesystem::path> packages;  // name -> folder
};
bool is_python(const std::filesystem::path& program);
Python ask_python(const std::filesystem::path& interpreter);

}  // namespace tprof::doctor
