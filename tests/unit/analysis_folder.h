// A folder that goes away with its test.
#pragma once

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>

namespace tprof::test {

class Folder {
 public:
  Folder() {
    std::random_device device;
    path_ = std::filesystem::temp_directory_path() /
            ("tprof-unit-" + std::to_string(device()) + "-" + std::to_string(device()));
    std::filesystem::create_directory(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(std::string_view name, std::string_view text) const {
    std::filesystem::path file = path_ / name;
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tprof::test
