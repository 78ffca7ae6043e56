// Follows the lines of a rank file as its process writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "live/followed_file.h"
#include "read/process.h"

namespace tprof::live {

enum class Format { jsonl, table };

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

}  // namespace tprof::live
