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

// The bytes of a file as they were before it was compressed: by gzip here, by others in the program
// that did it, as far as that is installed.

// How the name of a compressed file may end, behind ".json".
inline constexpr std::string_view kPackedEndings[] = {".gz", ".zst", ".xz", ".bz2", ".lz4"};

class Input {
 public:
  // Throws BadInput, also for a file that is packed in a way which nothing here undoes.
  explicit Input(const std::filesystem::path& file);

  // Returns 0 at the end. Throws BadInput.
  std::size_t read(char* to, std::size_t size);
  bool packed() const { return program_ != nullptr || gzdirect(file_.get()) == 0; }
  // True if it is compressed and ended before its compressed data did.
  bool cut_short() const { return cut_short_; }

 private:
  struct Close {
    void operator()(gzFile f) const { gzclose(f); }
  };
  void unpack(int packed, const char* program);

  std::filesystem::path path_;
  children::Child child_;
  std::unique_ptr<gzFile_s, Close> file_;  // closed before the child is waited for
  const char* program_ = nullptr;          // that the child is; null: none
  bool cut_short_ = false;
};

// Lines that a process has not written yet, which follow the first `cut` bytes of a file.
struct Rest {
  std::uint64_t cut = 0;
  std::string rest{};
};

// The source of a trace's lines.
struct Source {
  std::filesystem::path file;
  // Number of the file's bytes that count. Those beyond it were being written when the process
  // died.
  std::uint64_t cut = std::numeric_limits<std::uint64_t>::max();
  std::string rest{};  // lines that follow the cut
  // If set, the base_time_ns of the process whose windows may have files beside this one. The
  // events of these files are then read after the windows' lines.
  std::optional<std::int64_t> windows_of{};
  std::map<std::string, Rest> unfinished{};  // of these files that are not complete, by name
};

// Whole lines, each with its newline, and where they begin. `text` has the spare capacity that
// simdjson reads beyond the end of a line.
struct Block {
  std::string text;
  std::uint64_t offset = 0;
  std::filesystem::path file{};  // the file that has them
};

class BlockReader : NotCopied {
 public:
  explicit BlockReader(const Source& source, std::size_t block_bytes = kBlockBytes);
  ~BlockReader();

  // Returns false at the end. Throws BadInput for a line too long for the file's size, for data
  // after `]`, and for what can't be read.
  bool next(Block& block);

  // Bytes after the last newline: `]`, or a line that was cut. Complete once next() has returned
  // false.
  const std::string& remainder() const { return carry_; }
  // True if the file is compressed, and ends before its compressed data do.
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
  std::unique_ptr<Printed> printed_;  // if another program printed it, in lines of its own
  std::size_t block_bytes_;
  std::size_t longest_line_ = 0;
  std::uint64_t file_read_ = 0;
  std::size_t rest_read_ = 0;
  std::uint64_t offset_ = 0;  // offset of carry_
  bool array_ = false;        // it begins with `[`; callers judge anything else
  bool ended_ = false;        // `]` was read
  std::string carry_;
  // The rest of a block after a window's line. The events of that window come first.
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
