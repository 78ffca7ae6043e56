#include "read/lines.h"

#include <fcntl.h>
#include <simdjson.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "interpose/format/buckets.h"
#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "read/json_pieces.h"
#include "read/window_files.h"

namespace tprof::read {

namespace {

// No line of ours is longer: a ledger of 200,000 rows is shorter. In a compressed file a line may
// be longer than the file, but not without limit: real files shrink to a tenth.
constexpr std::size_t kMaxLine = std::size_t{64} << 20;
constexpr std::size_t kMaxLineOfSmallFile = std::size_t{8} << 20;
constexpr std::size_t kMaxExpansion = 64;

std::size_t longest_line(std::uint64_t file_size) {
  if (file_size > kMaxLine / kMaxExpansion) return kMaxLine;
  return std::max(kMaxLineOfSmallFile, static_cast<std::size_t>(file_size) * kMaxExpansion);
}

// True if it begins like a trace of ours, but not with one event per line.
bool is_printed_anew(std::string_view text) {
  constexpr std::size_t kHeader = std::size_t{1} << 16;
  if (text.substr(0, kHeader).find("\"tprof_") == std::string_view::npos) return false;
  if (!text.starts_with("[\n{") && !text.starts_with("[\r\n{") && !text.starts_with('{'))
    return true;
  text.remove_prefix(text.find('{'));
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line.size() < text.size() && !line.ends_with("},");
}

// Returns an event with its keys in our order, since readers look at the beginning of a line and
// `jq -S` sorts keys.
std::string in_our_order(std::string_view piece) {
  if (piece.starts_with("{\"name\":") || piece.starts_with("{\"cat\":")) return std::string(piece);
  auto event = nlohmann::ordered_json::parse(piece);
  const std::string cat = event.value("cat", "GRAPH");
  const bool called =
      cat == "GRAPH" || std::ranges::find(kBuckets, cat, &BucketInfo::name) != std::end(kBuckets);
  nlohmann::ordered_json ordered;
  for (const char* key : {called ? "name" : "cat", called ? "cat" : "name", "ph", "pid", "tid"}) {
    if (event.contains(key)) ordered[key] = event[key];
  }
  ordered.update(event);
  return ordered.dump();
}

}  // namespace

struct BlockReader::Window {
  Source source;
  BlockReader reader;

  explicit Window(Source from, std::size_t block_bytes)
      : source(std::move(from)), reader(source, block_bytes) {}
};

// A file with the same events, but line breaks anywhere.
struct BlockReader::Printed {
  JsonPieces pieces;
  std::string lines{"["};  // not taken yet
  std::string raw{};
  bool ended = false;

  explicit Printed(const std::filesystem::path& file)
      : pieces(file, "", [this, first = true](const JsonPieces::Piece& piece) mutable {
          (lines += std::exchange(first, false) ? "\n" : ",\n") += in_our_order(piece.text);
        }) {}
};

BlockReader::~BlockReader() = default;

// Takes no more memory than the file has bytes, plus one so that the end shows at once.
BlockReader::BlockReader(const Source& source, std::size_t block_bytes)
    : source_(source), block_bytes_(block_bytes) {
  std::uint64_t size = source.rest.size();
  if (source.cut != 0) {  // else the file may not exist yet
    file_ = std::make_unique<Input>(source.file);
    std::error_code not_a_file;
    const std::uint64_t in_file = std::filesystem::file_size(source.file, not_a_file);
    // A pipe has no size.
    size += std::min(not_a_file ? kMaxLine : in_file, source.cut);
  }
  longest_line_ = longest_line(size);
  if (!file_ || !file_->packed()) {
    block_bytes_ = static_cast<std::size_t>(std::min<std::uint64_t>(block_bytes, size + 1));
  }
}

std::size_t BlockReader::read(char* to, std::size_t n) {
  if (printed_) return read_as_lines(to, n);
  const bool first = file_read_ == 0;
  if (const std::uint64_t left = source_.cut - file_read_; left > 0) {
    std::size_t got = file_->read(to, static_cast<std::size_t>(std::min<std::uint64_t>(n, left)));
    file_read_ += got;
    if (first && is_printed_anew({to, got})) {
      printed_ = std::make_unique<Printed>(source_.file);
      printed_->pieces.take({to, got});
      return read_as_lines(to, n);
    }
    if (got > 0) return got;
  }
  const std::size_t size = std::min(n, source_.rest.size() - rest_read_);
  std::memcpy(to, source_.rest.data() + rest_read_, size);
  rest_read_ += size;
  return size;
}

std::size_t BlockReader::read_as_lines(char* to, std::size_t n) {
  auto& [pieces, lines, raw, ended] = *printed_;
  while (lines.empty() && !ended) {
    raw.resize(kBlockBytes);
    raw.resize(file_->read(raw.data(), raw.size()));
    pieces.take(raw);
    ended = raw.empty();
    if (ended && pieces.whole()) lines += "\n]\n";
  }
  const std::size_t size = std::min(n, lines.size());
  std::memcpy(to, lines.data(), size);
  lines.erase(0, size);
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
      // The window's lines follow here, so its file's name is blanked out: a copy has all in one
      // file.
      const auto at = static_cast<std::size_t>(named->said.data() - text.data());
      text.replace(at, named->said.size(), named->said.size(), ' ');
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
  std::size_t old = carry_.size();
  block.offset = offset_;
  for (;;) {
    const std::size_t target = std::max(block_bytes_, old + std::max(old, block_bytes_) / 2 + 1);
    if (old >= longest_line_) {
      throw BadInput(source_.file, offset_,
                     "expected a line break within " + std::to_string(longest_line_ >> 20) +
                         " MiB: not a tprof trace, or damaged");
    }
    text.reserve(target + simdjson::SIMDJSON_PADDING);
    text.resize(target);  // a reused block is hardly zeroed
    if (!carry_.empty()) carry_.copy(text.data(), old);
    carry_.clear();
    const std::size_t got = read(text.data() + old, target - old);
    old += got;
    text.resize(old);
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

// An array ends once. Anything after its end is an error.
void BlockReader::look_for_the_end(std::string_view block) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::size_t behind = 0;
  if (!ended_) {
    // Brackets are far rarer than line breaks.
    std::size_t bracket = block.find(']');
    while (bracket != block.npos && bracket != 0 && block[bracket - 1] != '\n') {
      bracket = block.find(']', bracket + 1);
    }
    if (bracket == std::string_view::npos) return;
    ended_ = true;
    behind = bracket + 1;
  }
  const std::size_t more = block.find_first_not_of(kSpace, behind);
  if (more == std::string_view::npos) return;
  throw BadInput(source_.file, offset_ + more,
                 "expected nothing after ']': were files concatenated? Give them one by one");
}

namespace {

// How a compressed file begins, and the program that unpacks it. No program: an archive of several
// files.
struct Packing {
  std::string_view begin;
  std::string_view what;
  const char* program;
};
constexpr Packing kPackings[] = {
    {"\x28\xb5\x2f\xfd", "zstd", "zstd"},
    {{"\xfd\x37zXZ", 5}, "xz", "xz"},
    {"BZh", "bzip2", "bzip2"},
    {"\x04\x22\x4d\x18", "lz4", "lz4"},
    {"PK\x03\x04", "a zip archive", nullptr},
    {"7z\xbc\xaf", "a 7-Zip archive", nullptr},
};

constexpr int kNotThere = 127;

// Never peeks into a pipe, which can be read only once.
std::string first_bytes(int fd) {
  char first[8] = {};
  const ssize_t got = pread(fd, first, sizeof first, 0);
  return {first, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

}  // namespace

Input::Input(const std::filesystem::path& file) : path_(file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw BadInput(file, std::strerror(errno));
  const std::string first = first_bytes(fd);
  const auto* packing =
      std::ranges::find_if(kPackings, [&](const Packing& p) { return first.starts_with(p.begin); });
  if (packing == std::end(kPackings)) {
    file_.reset(gzdopen(fd, "rb"));
    if (!file_) close(fd);
  } else if (packing->program == nullptr) {
    close(fd);
    throw BadInput(file, std::string(packing->what) + ": extract the trace first");
  } else {
    unpack(fd, packing->program);
  }
  if (!file_) throw BadInput(file, std::strerror(ENOMEM));
  // There may be 100,000 short files, and each buffer takes three times its size.
  std::error_code not_a_file;
  const bool is_short = std::filesystem::file_size(file, not_a_file) < 1U << 17 && !not_a_file;
  gzbuffer(file_.get(), is_short ? 1U << 14 : 1U << 17);
}

void Input::unpack(int packed, const char* program) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) {
    close(packed);
    throw BadInput(path_, std::strerror(errno));
  }
  child_ = children::Child(
      [&] {
        const int nowhere = open("/dev/null", O_WRONLY);
        if (dup2(packed, STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0 && nowhere >= 0 &&
            dup2(nowhere, STDERR_FILENO) >= 0) {
          execlp(program, program, "-dc", nullptr);
        }
        _exit(kNotThere);  // other threads may hold any lock
        return 0;
      },
      children::Child::Orphan::dies);
  close(packed);
  close(out[1]);
  program_ = program;
  file_.reset(gzdopen(out[0], "rb"));
  if (!file_) close(out[0]);
}

std::size_t Input::read(char* to, std::size_t size) {
  const int got =
      gzread(file_.get(), to, static_cast<unsigned>(std::min(size, std::size_t{1} << 30)));
  int code = Z_OK;
  const char* what = gzerror(file_.get(), &code);
  if (got < 0) {
    throw BadInput(path_, static_cast<std::uint64_t>(gztell(file_.get())),
                   code == Z_ERRNO ? std::strerror(errno) : std::string("gzip: ") + what);
  }
  if (got > 0) return static_cast<std::size_t>(got);
  cut_short_ = code == Z_BUF_ERROR;
  if (child_.pid() <= 0) return 0;
  const int status = child_.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotThere) {
    throw BadInput(path_, std::string("compressed by ") + program_ +
                              ", which is not installed here: unpack it with " + program_ +
                              " -d where it is");
  }
  cut_short_ = cut_short_ || status != 0;
  return 0;
}

}  // namespace tprof::read
