// Follows the lines of all rank files of a folder as they are written, also of files that come
// later.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "live/rank_lines.h"

namespace tprof::live {

class FolderLines {
 public:
  // Returns true if a file is to be followed. Asked once, when its header is there.
  using Chosen = std::function<bool(const std::filesystem::path&, const read::Header&)>;

  // With `from_start`, also gives what files already have at the first look. If `chosen` is empty,
  // all files are followed.
  FolderLines(std::filesystem::path folder, bool from_start, Chosen chosen = {})
      : folder_(std::move(folder)), from_start_(from_start), chosen_(std::move(chosen)) {}

  // Calls `take` with what each file has gained since the last look, 1 MiB or so at a time. A file
  // that can't be read is named on standard error, and left out from then on.
  using Take = std::function<void(const RankLines& file, const std::string& lines)>;
  void look(Format format, const Take& take);

 private:
  void find_files();

  const std::filesystem::path folder_;
  const bool from_start_;
  const Chosen chosen_;
  std::map<std::filesystem::path, std::optional<RankLines>> files_;
  bool first_ = true;
};

}  // namespace tprof::live
