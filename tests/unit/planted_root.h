// A folder that stands for / in tests: it has files of /proc and /sys.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tprof::test {

class Root {
 public:
  Root() { std::filesystem::create_directories(folder); }
  ~Root() { std::filesystem::remove_all(folder); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  void plant(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((folder + path).substr(0, (folder + path).rfind('/')));
    std::ofstream(folder + path) << text;
  }

  std::string folder =
      mkdtemp((std::filesystem::temp_directory_path() / "tprof-metrics-XXXXXX").string().data());
};

}  // namespace tprof::test
