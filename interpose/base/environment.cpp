#include "interpose/base/environment.h"

#include <string_view>

extern "C" {
extern char** environ;  // NOLINT(readability-redundant-declaration)
}

namespace tprof {

char** environment() {
  return environ;
}

const char* environment_value(const char* name) {
  const std::string_view wanted(name);
  for (char** e = environment(); e != nullptr && *e != nullptr; ++e) {
    const std::string_view entry(*e);
    if (entry.size() > wanted.size() && entry[wanted.size()] == '=' && entry.starts_with(wanted)) {
      return *e + wanted.size() + 1;
    }
  }
  return nullptr;
}

}  // namespace tprof
