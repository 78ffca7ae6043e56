// Asking other programs: what they say, in at most a few seconds.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tprof::doctor {

struct Answer {
  int code = -1;     // exit code; -1: it could not be started, was killed, or took too long
  std::string text;  // standard output and standard error together
};

// Runs a command with `settings` over our environment; an empty value takes the variable away.
Answer ask(const std::vector<std::string>& command,
           const std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace tprof::doctor
