// A file that another process appends lines to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tprof::live {

class FollowedFile {
 public:
  // `from`: the byte to begin at; what is left of the line that it lies in is left out.
  FollowedFile(std::filesystem::path path, std::uint64_t from);

  const std::filesystem::path& path() const { return path_; }
  bool has_grown() const;  // beyond what was read

  // Appends whole lines that it has not given before, 1 MiB or so at a time, of the first `upto`
  // bytes. False: it has been read as far as it goes. Throws BadInput for what is no trace. Holds
  // no descriptor: there may be thousands of these.
  bool next(std::string& lines, std::uint64_t upto = UINT64_MAX);

 private:
  std::filesystem::path path_;
  std::uint64_t at_;
  bool within_line_;   // that is left out
  std::string carry_;  // the beginning of one that is not whole
};

}  // namespace tprof::live
