#include "read/lines.h"

#include <simdjson.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "read/error.h"

namespace tprof::read {
namespace {

// A line longer than this is no line of ours; the bound keeps memory bounded on a foreign file.
constexpr std::size_t kMaxLine = std::size_t{256} << 20;

}  // namespace

// gzread passes a file through that is not gzipped, with one copy less when it reads in big pieces.
BlockReader::BlockReader(const Source& source, std::size_t block_bytes)
    : source_(source), block_bytes_(block_bytes) {
  errno = 0;
  file_.reset(gzopen(source.file.c_str(), "rbe"));
  if (!file_) throw BadInput(source.file, std::strerror(errno == 0 ? ENOMEM : errno));
  gzbuffer(file_.get(), 1U << 17);
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
  }
  const std::size_t size = std::min(n, source_.rest.size() - rest_read_);
  std::memcpy(to, source_.rest.data() + rest_read_, size);
  rest_read_ += size;
  return size;
}

bool BlockReader::next(Block& block) {
  std::string& text = block.text;
  text.assign(carry_);  // and not swapped: a block that is used again keeps its room
  carry_.clear();
  block.offset = offset_;
  for (;;) {
    const std::size_t old = text.size();
    const std::size_t target = std::max(block_bytes_, old + block_bytes_ / 2);
    if (target > kMaxLine) throw BadInput(source_.file, offset_, "expected a line break");
    text.reserve(target + simdjson::SIMDJSON_PADDING);
    text.resize(target);
    const std::size_t got = read(text.data() + old, target - old);
    text.resize(old + got);
    if (got == 0) {
      carry_.assign(text);
      return false;
    }
    const std::size_t end = std::string_view(text).rfind('\n');
    if (end == std::string_view::npos) continue;
    carry_.assign(text, end + 1);
    text.resize(end + 1);
    offset_ += text.size();
    return true;
  }
}

}  // namespace tprof::read
