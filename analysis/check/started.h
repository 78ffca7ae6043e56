// The settings that the processes of a job were started with, and which process has which value.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "check/names.h"

namespace tprof::check {

// A setting of the library, another variable, or the version or the file of a library.
struct Started {
  enum class About { config, env, version, file };
  About about{};
  std::string name;
  std::map<std::string, Processes> values;  // "": processes that don't have it

  // True if the processes differ in it.
  bool differs() const { return values.size() > 1; }
  // True if it is meant to differ: each rank, device or host has its own value.
  bool is_ones_own() const;
  // Returns "Ring", or "Ring (ranks 0-6), Tree (rank 7)".
  std::string whose() const;
};

// Returns them sorted by About, then by name.
std::vector<Started> started_with(const Processes& processes);

}  // namespace tprof::check
