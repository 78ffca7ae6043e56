// A file that another process appends lines to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tprof::live {

class FollowedFile {
 public:
  // `from` is the byte to begin at. The rest of the line that it lies in is left out.
  FollowedFile(std::filesystem::path path, std::uint64_t from);

  const std::filesystem::path& path() const { return path_; }
  bool has_grown() const;  // true if it is longer than what was read

  // Appends whole lines that it has not given before, 1 MiB or so at a time, from the first `upto`
  // bytes. Returns false if the file has been read as far as it goes. Throws BadInput if it is no
  // trace. Holds no descriptor, since there may be thousands of these.
  bool next(std::string& lines, std::uint64_t upto = UINT64_MAX);

 private:
  std::filesystem::path path_;
  std::uint64_t at_;
  bool within_line_;   // in a line that is left out
  std::string carry_;  // the beginning of a line that is not whole
};

}  // namespace tprof::live
