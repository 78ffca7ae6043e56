// Tells what the processes of a job were started with, and whose each value is.
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
  std::map<std::string, Processes> values;  // the empty one: of those where it is not there

  // True if it is not the same for all.
  bool differs() const { return values.size() > 1; }
  // True for what tells ranks, their devices or their hosts apart: each has a value of its own.
  bool is_ones_own() const;
  // Returns "Ring", or "Ring (ranks 0-6), Tree (rank 7)".
  std::string whose() const;
};

// Returns them in the order of what they are about, then of names.
std::vector<Started> started_with(const Processes& processes);

}  // namespace tprof::check
