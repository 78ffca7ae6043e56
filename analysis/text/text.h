// Text for people: safe strings, units, tables.
#pragma once

#include <charconv>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tprof::text {

// Makes text from a trace safe for a terminal: control characters, invalid UTF-8 and characters
// that change the writing direction become \xNN.
std::string printable(std::string_view s);

std::string bytes(std::uint64_t n);                            // "1.2 GiB"
std::string thousands(std::uint64_t n);                        // "1,234,567"
std::string duration(std::uint64_t ns);                        // "12.3 ms"
std::string utc(std::int64_t realtime_ns);                     // "2026-01-01 12:00:00.123 UTC"
std::string ranges(const std::vector<std::int64_t>& numbers);  // sorted: "0-3,7"

// Replaces each text on the left by the one on its right; of several at a place the first.
using Replacement = std::pair<std::string_view, std::string_view>;
std::string replaced(std::string_view text, std::initializer_list<Replacement> all);

// Escapes it for single quotes of a shell.
std::string in_quotes(std::string_view s);
// Quotes it as one word for a shell, if it needs quotes.
std::string shell_word(std::string_view s);

// Returns the words of a name in lower case, split at anything but letters.
std::vector<std::string> words(std::string_view name);

// Returns the parts between separators: one more than separators.
std::vector<std::string_view> split(std::string_view text, char separator);

// Parses the whole text as a number.
template <typename Number>
std::optional<Number> number(std::string_view text) {
  Number n{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, n);
  return error == std::errc() && rest == end ? std::optional(n) : std::nullopt;
}

// Returns how many leading bytes of UTF-8 text have at most this many characters.
std::size_t fitting(std::string_view s, std::size_t characters);

// Returns how many bytes fit on a first line of this many characters. Breaks at a blank after
// `indent`, but not between a figure and its unit.
std::size_t first_line(std::string_view words, std::size_t characters, std::size_t indent = 0);

class Table {
 public:
  enum class Align { left, right };
  explicit Table(std::vector<std::pair<std::string, Align>> columns);

  void row(std::vector<std::string> cells);
  // Returns the indices of shown columns. If lines are wider than `width`, drops columns of
  // `may_go`, the last one first.
  std::vector<std::size_t> shown(std::size_t width, std::vector<std::size_t> may_go) const;
  // Prints these columns. `breaks`: breaks the cells of the widest columns, text first, then
  // figures.
  std::string str(std::size_t width = SIZE_MAX, std::vector<std::size_t> may_go = {},
                  bool breaks = false) const;

 private:
  std::vector<std::size_t> widths() const;
  std::size_t least(std::size_t column) const;

  std::vector<std::pair<std::string, Align>> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A set of ranks, or of other numbers, as ranges for people.

class Ranks {
 public:
  Ranks() = default;
  explicit Ranks(std::vector<std::int64_t> numbers);  // in any order

  bool empty() const { return ranges_.empty(); }
  std::uint64_t size() const;
  bool contains(std::int64_t number) const;
  void add(const Ranks& others);

  std::vector<std::int64_t> list() const;  // ascending
  std::string str() const;                 // "0-3,7"

  auto operator<=>(const Ranks&) const = default;  // NOLINT(modernize-use-nullptr)

 private:
  struct Range {
    std::int64_t first;
    std::int64_t last;
    auto operator<=>(const Range&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  std::vector<Range> ranges_;  // ascending, with a gap between each and the next
};

// "rank 3", "ranks 0-2", "ranks 0-2 and 2 processes without a rank", "1 process without a rank".
// A long list is cut, followed by the number of ranks.
std::string names_of(const Ranks& ranks, std::uint64_t no_ranks = 0);

}  // namespace tprof::text
