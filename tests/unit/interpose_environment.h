// Settings for one test, and what is written to standard error meanwhile.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace tprof::test {

using Variables = std::map<std::string, std::string>;

// Sets variables, and puts them back at the end; "" unsets.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    for (const auto& [name, value] : variables) {
      const char* before = std::getenv(name.c_str());
      before_.emplace_back(name, before == nullptr ? "" : before);
      set(name, value);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_) set(name, value);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static void set(const std::string& name, const std::string& value) {
    if (value.empty()) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  std::vector<std::pair<std::string, std::string>> before_;
};

// Runs f and returns what it wrote to standard error.
template <typename F>
std::string complaints_of(F&& f) {
  const int before = dup(STDERR_FILENO);
  const int file = memfd_create("stderr", 0);
  dup2(file, STDERR_FILENO);
  f();
  dup2(before, STDERR_FILENO);
  close(before);
  std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), '\0');
  const ssize_t n = pread(file, text.data(), text.size(), 0);
  text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  close(file);
  return text;
}

}  // namespace tprof::test
