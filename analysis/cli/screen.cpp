#include "cli/screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

struct Severity {
  std::string_view word;
  const char* colour;
};
constexpr Severity kSeverities[] = {
    {"error:", "\x1b[1;31m"}, {"warning:", "\x1b[1;33m"}, {"note:", "\x1b[1;36m"}};
constexpr std::size_t kLeast = 20;  // characters of a broken line
constexpr const char* kBold = "\x1b[1m";
constexpr const char* kPlain = "\x1b[0m";

// Returns where the text of a line begins.
std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

const Severity* severity_of(std::string_view line) {
  line.remove_prefix(indent_of(line));
  for (const Severity& s : kSeverities) {
    if (line.starts_with(s.word)) return &s;
  }
  return nullptr;
}

// Returns the indent for the rest of a line: that of its beginning, or of the text after an option
// or a name. Nothing for a row of a table, which has more columns.
std::optional<std::size_t> hang_of(std::string_view line) {
  const std::size_t indent = indent_of(line);
  const std::size_t gap = line.find("  ", indent);
  if (gap == std::string_view::npos) return indent + (severity_of(line) != nullptr ? 2 : 0);
  const std::size_t second = std::min(line.find_first_not_of(' ', gap), line.size());
  if (line.find("  ", second) != std::string_view::npos) return {};
  return second;
}

// Commands are not broken, as people copy them.
bool is_command(std::string_view line) {
  return line.starts_with("Next: ") || line.starts_with("      tprof ") || line.ends_with(" \\");
}

void put_broken(std::string_view line, std::size_t columns, std::size_t hanging, std::string& out) {
  std::string hang(hanging, ' ');
  // The rest of a comment is a comment too, aligned with the text of the first line.
  if (line.starts_with("# ")) hang = "#" + std::string(indent_of(line.substr(1)), ' ');
  bool first = true;
  while (!line.empty()) {
    const std::size_t room = columns - (first ? 0 : hang.size());
    const std::size_t n = text::first_line(line, room, first ? hanging : 0);
    (out += first ? "" : "\n" + hang) += line.substr(0, n);
    line.remove_prefix(n);
    line.remove_prefix(indent_of(line));
    first = false;
  }
}

// Returns the text for a terminal of this width. Names from a trace must already be printable():
// only this adds escapes.
std::string dressed(std::string_view text, std::size_t columns, bool colours) {
  std::string out;
  bool behind_blank = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string shown;
    // Some of the line has to fit, or this would not end.
    if (const auto hang = hang_of(line); hang && *hang + kLeast <= columns && !is_command(line)) {
      put_broken(line, columns, *hang, shown);
    } else {
      shown = line;
    }
    if (colours) {
      if (const Severity* s = severity_of(shown)) {
        const std::size_t at = indent_of(shown);
        shown.insert(at + s->word.size(), kPlain);
        shown.insert(at, s->colour);
      } else if (behind_blank && text.starts_with("  ") && !text.starts_with("   ") &&
                 !line.starts_with(' ')) {
        shown = kBold + shown + kPlain;  // a table's title
      }
    }
    behind_blank = line.empty();
    (out += shown) += '\n';
  }
  return out;
}

std::optional<std::size_t> columns_asked_for() {
  const char* columns = std::getenv("COLUMNS");
  const auto n = text::number<std::size_t>(columns == nullptr ? "" : columns);
  return n == 0U ? std::nullopt : n;
}

}  // namespace

// mpirun gives its processes a terminal without a size, which may lead to a file.
std::optional<std::size_t> columns_of_terminal() {
  winsize w{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0) return {};
  return w.ws_col;
}

std::size_t width_of_tables(std::size_t otherwise) {
  const auto columns = columns_of_terminal();
  return columns ? *columns : columns_asked_for().value_or(otherwise);
}

void show(std::string_view text, bool json) {
  const std::optional<std::size_t> columns = columns_of_terminal();
  if (json || !columns) {
    text::put(text);
    return;
  }
  const char* none = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool colours = (none == nullptr || *none == '\0') &&
                       (terminal == nullptr || std::string_view(terminal) != "dumb");
  text::put(dressed(text, *columns, colours));
}

std::string progress_text(const std::string& what, std::uint64_t done, std::uint64_t total, Of of,
                          std::chrono::nanoseconds took) {
  done = std::min(done, total);
  const double share = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  std::string text =
      fmt::format("{} {:.0f}% of {}", what, std::floor(100 * share),
                  of == Of::bytes ? text::bytes(total) : text::thousands(total) + " files");
  if (done == 0) return text;
  const double seconds = std::chrono::duration<double>(took).count();
  return text + fmt::format(", {:.0f} s left", std::ceil(seconds / share - seconds));
}

Progress::~Progress() {
  if (shown_) text::say("\r\033[K");
}

void Progress::operator()(std::uint64_t done) {
  if (!terminal_) return;
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (now < due_) return;
  due_ = now + std::chrono::milliseconds(200);
  shown_ = true;
  text::say("\r{}\033[K", progress_text(what_, done, total_, of_, now - begun_));
}

}  // namespace tprof::cli
