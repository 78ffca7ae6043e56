// Reads a trace as blocks of whole lines, whether it is plain, gzipped, or a rank file that
// continues in its ring file.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "children/child.h"
#include "interpose/base/not_copied.h"

namespace tprof::read {

// The decompressed bytes of a file. gzip is built in; other formats are unpacked by their own
// program, if it is installed.

// Suffixes of compressed files, after ".json".
inline constexpr std::string_view kPackedEndings[] = {".gz", ".zst", ".xz", ".bz2", ".lz4"};

class Input {
 public:
  // Throws BadInput, also for a file that can't be unpacked here.
  explicit Input(const std::filesystem::path& file);

  // Returns 0 at the end. Throws BadInput.
  std::size_t read(char* to, std::size_t size);
  bool packed() const { return program_ != nullptr || gzdirect(file_.get()) == 0; }
  // True if the compressed data is truncated.
  bool cut_short() const { return cut_short_; }

 private:
  struct Close {
    void operator()(gzFile f) const { gzclose(f); }
  };
  void unpack(int packed, const char* program);

  std::filesystem::path path_;
  children::Child child_;
  std::unique_ptr<gzFile_s, Close> file_;  // closed before waiting for the child
  const char* program_ = nullptr;          // the unpacking program; null: none
  bool cut_short_ = false;
};

// Lines that a process has not written yet. They follow the first `cut` bytes of a file.
struct Rest {
  std::uint64_t cut = 0;
  std::string rest{};
};

// The source of a trace's lines.
struct Source {
  std::filesystem::path file;
  // How many bytes of the file count. The process died while it wrote the rest.
  std::uint64_t cut = std::numeric_limits<std::uint64_t>::max();
  std::string rest{};  // lines after the cut
  // The base_time_ns of a process whose windows may have files beside this one. Their events are
  // then read after the windows' lines.
  std::optional<std::int64_t> windows_of{};
  std::map<std::string, Rest> unfinished{};  // of incomplete windows' files, by name
};

// Whole lines, each with its newline. `text` has the spare capacity that simdjson needs.
struct Block {
  std::string text;
  std::uint64_t offset = 0;
  std::filesystem::path file{};  // the lines' file
};

class BlockReader : NotCopied {
 public:
  explicit BlockReader(const Source& source, std::size_t block_bytes = kBlockBytes);
  ~BlockReader();

  // Returns false at the end. Throws BadInput for a line too long for the file's size, for data
  // after `]`, and for read errors.
  bool next(Block& block);

  // The bytes after the last newline: `]`, or a truncated line. Complete once next() has returned
  // false.
  const std::string& remainder() const { return carry_; }
  // True if the compressed data is truncated.
  bool cut_short() const { return file_ != nullptr && file_->cut_short(); }

  static constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

 private:
  bool next_of_file(Block& block);
  void stop_at_window(Block& block);
  std::size_t read(char* to, std::size_t n);
  std::size_t read_as_lines(char* to, std::size_t n);
  void look_for_the_end(std::string_view block);

  const Source& source_;
  std::unique_ptr<Input> file_;
  struct Printed;
  std::unique_ptr<Printed> printed_;  // if another program reformatted the file
  std::size_t block_bytes_;
  std::size_t longest_line_ = 0;
  std::uint64_t file_read_ = 0;
  std::size_t rest_read_ = 0;
  std::uint64_t offset_ = 0;  // offset of carry_
  bool array_ = false;        // it begins with `[`
  bool ended_ = false;        // `]` was read
  std::string carry_;
  // The rest of a block after a window's line, to be read after the window's events.
  Block later_;
  struct Window;
  std::unique_ptr<Window> window_;
};

struct Line {
  std::string_view text;  // no newline or comma; SIMDJSON_PADDING more bytes are readable
  std::uint64_t offset;   // in the file
};

// Calls f(Line) for every line except the brackets of the array.
template <typename F>
void each_line(const Block& block, F&& f) {
  std::string_view text = block.text;
  std::uint64_t offset = block.offset;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t taken = end == std::string_view::npos ? text.size() : end + 1;
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty() && line.back() == ',') line.remove_suffix(1);
    if (!line.empty() && line != "[" && line != "]") f(Line{line, offset});
    text.remove_prefix(taken);
    offset += taken;
  }
}

}  // namespace tprof::read
