// The process's environment, without getenv(), which programs such as bash replace.
#pragma once

#include <string_view>

extern "C" {
extern char** environ;  // NOLINT(readability-redundant-declaration)
}

namespace tprof {

// Null: it is not set.
inline const char* environment_value(std::string_view name) {
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    const std::string_view entry(*e);
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return *e + name.size() + 1;
    }
  }
  return nullptr;
}

}  // namespace tprof
