#include "read/lines.h"

#include <simdjson.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "read/window_files.h"

namespace tprof::read {
namespace {

// No line of ours is longer than this: a ledger of 200,000 rows is shorter. In a compressed file a
// line may be longer than the file, but not without limit: real files shrink to a tenth.
constexpr std::size_t kMaxLine = std::size_t{64} << 20;
constexpr std::size_t kMaxLineOfSmallFile = std::size_t{8} << 20;
constexpr std::size_t kMaxExpansion = 64;

std::size_t longest_line(std::uint64_t file_size) {
  if (file_size > kMaxLine / kMaxExpansion) return kMaxLine;
  return std::max(kMaxLineOfSmallFile, static_cast<std::size_t>(file_size) * kMaxExpansion);
}

}  // namespace

struct BlockReader::Window {
  Source source;
  BlockReader reader;

  explicit Window(Source from, std::size_t block_bytes)
      : source(std::move(from)), reader(source, block_bytes) {}
};

BlockReader::~BlockReader() = default;

// gzread passes an uncompressed file through, with one copy less when it reads in big pieces.
BlockReader::BlockReader(const Source& source, std::size_t block_bytes)
    : source_(source), block_bytes_(block_bytes) {
  if (source.cut == 0) {  // there may be no such file yet
    longest_line_ = longest_line(source.rest.size());
    return;
  }
  errno = 0;
  file_.reset(gzopen(source.file.c_str(), "rbe"));
  if (!file_) throw BadInput(source.file, std::strerror(errno == 0 ? ENOMEM : errno));
  std::error_code not_a_file;
  std::uint64_t size = std::filesystem::file_size(source.file, not_a_file);
  if (not_a_file) size = kMaxLine;  // a pipe
  // There may be 100,000 short files, each with three times as much room.
  gzbuffer(file_.get(), size < 1U << 17 ? 1U << 14 : 1U << 17);
  size = std::min(size, source.cut) + source.rest.size();
  longest_line_ = longest_line(size);
  // Takes no more room than the file has bytes, and one more so that the end shows at once.
  if (gzdirect(file_.get()) == 1) {
    block_bytes_ = static_cast<std::size_t>(std::min<std::uint64_t>(block_bytes, size + 1));
  }
}

std::size_t BlockReader::read(char* to, std::size_t n) {
  const std::uint64_t left = source_.cut - file_read_;
  if (left > 0) {
    const auto want = static_cast<unsigned>(std::min<std::uint64_t>({n, left, 1U << 30}));
    const int got = gzread(file_.get(), to, want);
    if (got < 0) {
      int code = 0;
      const char* what = gzerror(file_.get(), &code);
      throw BadInput(source_.file, file_read_,
                     code == Z_ERRNO ? std::strerror(errno) : std::string("gzip: ") + what);
    }
    file_read_ += static_cast<std::uint64_t>(got);
    if (got > 0) return static_cast<std::size_t>(got);
    int end = Z_OK;
    gzerror(file_.get(), &end);
    cut_short_ = end == Z_BUF_ERROR;
  }
  const std::size_t size = std::min(n, source_.rest.size() - rest_read_);
  std::memcpy(to, source_.rest.data() + rest_read_, size);
  rest_read_ += size;
  return size;
}

bool BlockReader::next(Block& block) {
  if (window_) {
    if (window_->reader.next(block)) {
      leave_events(block);
      return true;
    }
    window_.reset();
  }
  if (!later_.text.empty()) {
    block.text.reserve(later_.text.size() + simdjson::SIMDJSON_PADDING);
    block.text.assign(later_.text);
    block.offset = later_.offset;
    later_.text.clear();
  } else if (!next_of_file(block)) {
    return false;
  }
  block.file = source_.file;
  if (source_.windows_of) stop_at_window(block);
  return true;
}

void BlockReader::stop_at_window(Block& block) {
  constexpr std::string_view kLine = info_of(LineKind::window).start;
  std::string& text = block.text;
  for (std::size_t begin = text.find(kLine); begin != text.npos; begin = text.find(kLine, begin)) {
    const std::size_t end = text.find('\n', begin) + 1;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const auto named = begin == 0 || text[begin - 1] == '\n' ? named_window(line) : std::nullopt;
    auto source = named ? window_source(source_, named->file) : std::nullopt;
    if (source) {
      // The window's lines follow here, so a copy has them in one file: blank out the file's name.
      const Span file = file_in(line);
      text.replace(begin + file.begin, file.size, file.size, ' ');
      later_.text.assign(text, end);
      later_.offset = block.offset + end;
      text.resize(end);
      window_ = std::make_unique<Window>(std::move(*source), block_bytes_);
      return;
    }
    begin = end;
  }
}

bool BlockReader::next_of_file(Block& block) {
  std::string& text = block.text;
  text.assign(carry_);  // not swapped, so that a reused block keeps its room
  carry_.clear();
  block.offset = offset_;
  for (;;) {
    const std::size_t old = text.size();
    const std::size_t target = std::max(block_bytes_, old + std::max(old, block_bytes_) / 2 + 1);
    if (old >= longest_line_) {
      throw BadInput(source_.file, offset_,
                     "expected a line break within " + std::to_string(longest_line_ >> 20) +
                         " MiB: not a tprof trace, or damaged");
    }
    text.reserve(target + simdjson::SIMDJSON_PADDING);
    text.resize(target);
    const std::size_t got = read(text.data() + old, target - old);
    text.resize(old + got);
    if (got == 0) {
      carry_.assign(text);
      if (ended_) look_for_the_end(carry_);
      return false;
    }
    const std::size_t end = std::string_view(text).rfind('\n');
    if (end == std::string_view::npos) continue;
    carry_.assign(text, end + 1);
    text.resize(end + 1);
    if (offset_ == 0) array_ = text.starts_with('[');
    if (array_) look_for_the_end(text);
    offset_ += text.size();
    return true;
  }
}

// An array ends once. Anything after its end is another file's, or nobody's.
void BlockReader::look_for_the_end(std::string_view block) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::size_t behind = 0;
  if (!ended_) {
    const std::size_t bracket = block.starts_with(']') ? 0 : block.find("\n]");
    if (bracket == std::string_view::npos) return;
    ended_ = true;
    behind = block.find(']', bracket) + 1;
  }
  const std::size_t more = block.find_first_not_of(kSpace, behind);
  if (more == std::string_view::npos) return;
  throw BadInput(source_.file, offset_ + more,
                 "expected nothing behind ']': were files put together? Give them one by one");
}

}  // namespace tprof::read
