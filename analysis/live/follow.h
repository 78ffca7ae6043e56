// Follows rank files as their processes write them: their lines, and the steps that ranks are at.
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

enum class Format { jsonl, table };

// The lines of a rank file.
class RankLines {
 public:
  RankLines(std::filesystem::path path, std::uint64_t from) : file_(std::move(path), from) {}

  // Appends what it has not given before, 1 MiB or so at a time. jsonl: the lines of the file, each
  // a JSON object, with the rank for their pid as soon as it is known. table: the calls that
  // returned and the steps that ended, for people. Returns false if the file has been read as far
  // as it goes. Throws BadInput.
  bool next(Format format, std::string& out);

  const std::filesystem::path& path() const { return file_.path(); }
  // Returns the process as of when its lines began to come, or null if they have not.
  const read::Process* process() const { return process_ ? &*process_ : nullptr; }

 private:
  bool knows_process();
  std::uint64_t settled() const;
  void add_jsonl(const std::string& lines, std::string& out);
  void add_table(const std::string& lines, std::string& out) const;

  FollowedFile file_;
  std::optional<read::Process> process_;
  bool other_ = false;  // it is no rank file
};

// The lines of all rank files of a folder, also of files that come later.
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

// The step that each rank is at, from the ends of the files that are being written.
class StepFiles {
 public:
  // Sets the step of each rank whose lines tell one.
  void look(std::vector<Rank>& ranks);

 private:
  struct Followed {
    FollowedFile file;
    std::optional<Step> last{};
  };
  std::map<std::string, Followed> files_;
};

}  // namespace tprof::live
