#include "read/json_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "read/error.h"

namespace tprof::read {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of one element, and of everything else
constexpr std::size_t kMostBrackets = 512;
constexpr std::string_view kMark = "\xef\xbb\xbf";  // a byte order mark

// Returns how many leading bytes of a string are neither quote nor escape.
std::size_t plain_bytes(std::string_view text) {
  const auto* end = std::ranges::find_if(
      text, [](char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' '; });
  return static_cast<std::size_t>(end - text.begin());
}

}  // namespace

JsonPieces::JsonPieces(const std::filesystem::path& file, std::string_view key,
                       std::function<void(const Piece&)> piece)
    : file_(file), key_(fmt::format("\"{}\":", key)), piece_(std::move(piece)) {}

void JsonPieces::fail(std::uint64_t byte, std::uint64_t line, std::string_view what) const {
  throw BadInput(file_,
                 fmt::format("line {}, byte {}: {}{}", line, byte, what,
                             key_.size() == 3 ? "" : "; expected a trace in Chrome's format"));
}

void JsonPieces::take(std::string_view bytes) {
  if (byte_ == 0 && bytes.starts_with(kMark)) {
    bytes.remove_prefix(kMark.size());
    byte_ = kMark.size();
  }
  while (!bytes.empty()) {
    if (const std::size_t plain = quoted_ && !escaped_ ? plain_bytes(bytes) : 0; plain != 0) {
      add(bytes.substr(0, plain));
      bytes.remove_prefix(plain);
      byte_ += plain;
      continue;
    }
    take(bytes.front());
    if (bytes.front() == '\n') ++line_;
    ++byte_;
    bytes.remove_prefix(1);
  }
}

void JsonPieces::take(char c) {
  if (quoted_) {
    if (static_cast<unsigned char>(c) < ' ') fail("a control character in a string");
    add({&c, 1});
    if (!std::exchange(escaped_, !escaped_ && c == '\\') && c == '"') quoted_ = false;
    return;
  }
  const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
  const bool part_of_word =
      !space && std::string_view("[]{},:\"").find(c) == std::string_view::npos;
  if (part_of_word) {
    if (open_.empty()) fail("expected JSON");
    const std::string& before = open_.size() > depth_ ? text_ : rest_;
    if (word_.empty() && std::string_view("[{:,").find(before.back()) == std::string_view::npos) {
      fail("expected a comma");
    }
    if (word_.size() < 32) word_ += c;
    return add({&c, 1});
  }
  if (!word_.empty()) end_of_word();
  if (space) return;
  if (c == '[' || c == '{') return open(c);
  if (c == ']' || c == '}') return close(c);
  if (open_.empty()) fail("expected an array or an object");
  const bool between = c == ',' && open_.size() == depth_;
  if (between) return;
  quoted_ = c == '"';
  add({&c, 1});
}

// NaN and Infinity are no JSON, but programs write them.
void JsonPieces::end_of_word() {
  const bool number = word_.find_first_not_of("0123456789+-.eE") == std::string::npos;
  if (!number && word_ != "true" && word_ != "false" && word_ != "null") {
    fail(byte_ - word_.size(), line_, fmt::format("'{}' is no JSON", word_));
  }
  word_.clear();
}

void JsonPieces::open(char c) {
  if (open_.size() == kMostBrackets) fail("nested too deeply");
  if (open_.empty() && depth_ == SIZE_MAX) {
    if (c == '[') depth_ = 1;
    if (c == '{' && key_.size() == 3) depth_ = 0;
  } else if (open_.empty() && depth_ != 0) {
    fail("expected nothing after its end: were files concatenated? Give them one by one");
  } else if (open_.size() == 1 && depth_ == SIZE_MAX && c == '[' && rest_.ends_with(key_)) {
    depth_ = 2;
  }
  if (open_.size() == depth_) {
    text_.clear();
    begin_ = byte_;
    begin_line_ = line_;
  }
  const bool inside = open_.size() >= depth_;
  open_ += c;
  if (inside) text_ += c;
  if (!inside) rest_ += c;
}

void JsonPieces::close(char c) {
  if (open_.empty() || open_.back() != (c == ']' ? '[' : '{')) fail("an unmatched closing bracket");
  add({&c, 1});
  open_.pop_back();
  if (open_.size() == depth_) piece_({text_, begin_, begin_line_});
  if (open_.size() < depth_ && depth_ == 2 && open_.size() == 1) depth_ = SIZE_MAX - 1;
}

void JsonPieces::add(std::string_view bytes) {
  std::string& to = open_.size() > depth_ ? text_ : rest_;
  if (to.size() + bytes.size() > kMostBytes) {
    fail(fmt::format("too large for memory: more than {} MiB in one piece", kMostBytes >> 20));
  }
  to += bytes;
}

void JsonPieces::end() {
  if (!whole()) {
    fail(byte_ == 0 ? "empty file" : "it has no end: it is truncated, or still being written");
  }
  if (depth_ == SIZE_MAX) fail(fmt::format("expected an array, or an object with {}", key_));
}

}  // namespace tprof::read
