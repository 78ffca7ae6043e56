// Follows rank files while they are written: their lines, and the current steps of ranks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "live/look.h"
#include "read/process.h"

namespace tprof::live {

// A file that another process appends lines to.
class FollowedFile {
 public:
  // Begins at byte `from`, skipping the rest of a line that it is within.
  FollowedFile(std::filesystem::path path, std::uint64_t from);

  const std::filesystem::path& path() const { return path_; }
  bool has_grown() const;  // true if it is longer than what was read

  // Appends new whole lines of the first `upto` bytes, about 1 MiB at a time. Returns false at the
  // end of the file. Throws BadInput if it is no trace. Holds no descriptor, since there may be
  // thousands of these.
  bool next(std::string& lines, std::uint64_t upto = UINT64_MAX);

 private:
  std::filesystem::path path_;
  std::uint64_t at_;
  bool within_line_;   // within a skipped line
  std::string carry_;  // the beginning of an incomplete line
};

enum class Format { jsonl, table };

// The lines of a rank file.
class RankLines {
 public:
  RankLines(std::filesystem::path path, std::uint64_t from) : file_(std::move(path), from) {}

  // Appends what is new, about 1 MiB at a time. jsonl: the file's lines as JSON objects, with the
  // rank as pid once it is known. table: returned calls and ended steps for people. Returns false
  // at the end of the file. Throws BadInput.
  bool next(Format format, std::string& out);

  const std::filesystem::path& path() const { return file_.path(); }
  // Returns the process as of its first lines; null before these.
  const read::Process* process() const { return process_ ? &*process_ : nullptr; }

 private:
  bool knows_process();
  std::uint64_t settled() const;
  void add_jsonl(const std::string& lines, std::string& out);
  void add_table(const std::string& lines, std::string& out) const;

  FollowedFile file_;
  std::optional<read::Process> process_;
  bool other_ = false;  // it is another file
};

// The lines of all rank files of a folder, including later ones.
class FolderLines {
 public:
  // Returns true if a file is to be followed. Called once, when the file has its header.
  using Chosen = std::function<bool(const std::filesystem::path&, const read::Header&)>;

  // `from_start`: includes the lines that files already have at the first look. `chosen`: empty:
  // all files.
  FolderLines(std::filesystem::path folder, bool from_start, Chosen chosen = {})
      : folder_(std::move(folder)), from_start_(from_start), chosen_(std::move(chosen)) {}

  // Calls `take` with the new lines of each file, about 1 MiB at a time. A file that can't be read
  // is named on standard error, and skipped from then on.
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

// The current step of each rank, from the ends of files that are being written.
class StepFiles {
 public:
  // Sets the step of each rank that has one in its lines.
  void look(std::vector<Rank>& ranks);

 private:
  struct Followed {
    FollowedFile file;
    std::optional<Step> last{};
  };
  std::map<std::string, Followed> files_;
};

}  // namespace tprof::live
