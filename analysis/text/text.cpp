#include "text/text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <numeric>

namespace tprof::text {

namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t length = 0;  // bytes, 0: not UTF-8 (RFC 3629)
};

Character first_character(std::string_view s) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char c = at(0);
  if (c < 0x80) return {c, 1};
  const std::size_t length = c >= 0xc2 && c < 0xe0   ? 2
                             : c >= 0xe0 && c < 0xf0 ? 3
                             : c >= 0xf0 && c < 0xf5 ? 4
                                                     : 0;
  if (length == 0 || s.size() < length) return {};
  std::uint32_t code = c & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0U) != 0x80) return {};
    code = code << 6 | (at(i) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, length};
}

// True for C0, DEL, C1, line separators, the marks that reorder text (Unicode 15, UAX #9), and
// invisible characters: a byte order mark, annotations, tags.
bool harmful(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff ||
         (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

// Counts characters, not bytes: what a terminal shows of printable() text.
std::size_t width_of(std::string_view s) {
  return static_cast<std::size_t>(std::ranges::count_if(
      s, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; }));
}

constexpr std::size_t kLeastText = 20;  // characters of a column whose text is broken

bool is_unit(std::string_view word) {
  while (!word.empty() && std::string_view(",.;:)").find(word.back()) != std::string_view::npos) {
    word.remove_suffix(1);
  }
  constexpr std::string_view kUnits[] = {"ns",  "us",  "ms",  "s",   "B",
                                         "KiB", "MiB", "GiB", "TiB", "GB/s"};
  return std::ranges::find(kUnits, word) != std::end(kUnits);
}

// True if a line of words may end before the blank there: not between a figure and its unit.
bool may_break(std::string_view words, std::size_t blank) {
  const std::string_view next = words.substr(blank + 1, words.find(' ', blank + 1) - blank - 1);
  const bool figure = std::isdigit(static_cast<unsigned char>(words[blank - 1])) != 0;
  return !figure || !is_unit(next);
}

// The length of the longest part that is never broken.
std::size_t longest_part(std::string_view words) {
  std::size_t longest = 0;
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= words.size(); ++i) {
    if (i != words.size() && (words[i] != ' ' || !may_break(words, i))) continue;
    longest = std::max(longest, width_of(words.substr(begin, i - begin)));
    begin = i + 1;
  }
  return longest;
}

std::size_t width_of_all(const std::vector<std::size_t>& shown,
                         const std::vector<std::size_t>& widths) {
  std::size_t all = 0;
  for (const std::size_t i : shown) all += 2 + widths[i];
  return all;
}

// Takes the beginning of a text that fits.
std::string taken_from(std::string& rest, std::size_t characters) {
  const std::size_t n = first_line(rest, characters);
  std::string taken = rest.substr(0, n);
  rest.erase(0, rest.find_first_not_of(' ', n));
  return taken;
}

}  // namespace

std::string printable(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  while (!s.empty()) {
    const Character c = first_character(s);
    const std::size_t taken = std::max<std::size_t>(c.length, 1);
    if (c.length != 0 && !harmful(c.code)) {
      out += s.substr(0, taken);
    } else {
      for (const char byte : s.substr(0, taken)) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
    s.remove_prefix(taken);
  }
  return out;
}

std::string bytes(std::uint64_t n) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double v = static_cast<double>(n);
  std::size_t unit = 0;
  while (v >= 1024 && unit + 1 < kUnits.size()) v /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} B", n) : fmt::format("{:.2f} {}", v, kUnits[unit]);
}

std::string thousands(std::uint64_t n) {
  std::string s = std::to_string(n);
  for (std::size_t i = s.size(); i > 3;) s.insert(i -= 3, ",");
  return s;
}

std::string duration(std::uint64_t ns) {
  const auto v = static_cast<double>(ns);
  if (ns < 1'000) return fmt::format("{} ns", ns);
  if (ns < 1'000'000) return fmt::format("{:.2f} us", v / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.2f} ms", v / 1e6);
  return fmt::format("{:.3f} s", v / 1e9);
}

std::string ranges(const std::vector<std::int64_t>& numbers) {
  return Ranks(numbers).str();
}

std::string replaced(std::string_view text, std::initializer_list<Replacement> all) {
  std::string out;
  out.reserve(text.size() + text.size() / 64);
  for (; !text.empty(); text.remove_prefix(1)) {
    const auto* found =
        std::ranges::find_if(all, [&](const auto& r) { return text.starts_with(r.first); });
    if (found == all.end()) {
      out += text[0];
    } else {
      out += found->second;
      text.remove_prefix(found->first.size() - 1);
    }
  }
  return out;
}

std::string in_quotes(std::string_view s) {
  return replaced(s, {{"'", "'\\''"}});
}

std::string shell_word(std::string_view s) {
  std::string word(s);
  const bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/._-+=:@%,").find(static_cast<char>(c)) != std::string_view::npos;
  });
  return plain ? word : "'" + in_quotes(word) + "'";
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::size_t fitting(std::string_view s, std::size_t characters) {
  std::size_t at = 0;
  for (std::size_t n = 0; at < s.size(); ++at) {
    if ((static_cast<unsigned char>(s[at]) & 0xc0U) == 0x80) continue;
    if (n++ == characters) break;
  }
  return at;
}

std::size_t first_line(std::string_view words, std::size_t characters, std::size_t indent) {
  const std::size_t most = fitting(words, characters);
  if (most == words.size()) return most;
  for (std::size_t blank = words.rfind(' ', most);
       blank != std::string_view::npos && blank > indent; blank = words.rfind(' ', blank - 1)) {
    if (may_break(words, blank)) return blank;
  }
  return most;
}

std::vector<std::string> words(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalpha(letter) != 0) {
      words.back() += static_cast<char>(std::tolower(letter));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::string utc(std::int64_t realtime_ns) {
  return fmt::format("{:%F %T}.{:03} UTC",
                     fmt::gmtime(static_cast<std::time_t>(realtime_ns / 1'000'000'000)),
                     realtime_ns / 1'000'000 % 1000);
}

Table::Table(std::vector<std::pair<std::string, Align>> columns) : columns_(std::move(columns)) {}

void Table::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t w = width_of(columns_[i].first);
    for (const auto& row : rows_) w = std::max(w, width_of(row[i]));
    widths.push_back(w);
  }
  return widths;
}

std::vector<std::size_t> Table::shown(std::size_t width, std::vector<std::size_t> may_go) const {
  const std::vector<std::size_t> widths = this->widths();
  std::vector<std::size_t> shown(widths.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  for (; width_of_all(shown, widths) > width && !may_go.empty(); may_go.pop_back()) {
    std::erase(shown, may_go.back());
  }
  return shown;
}

// How narrow a column may be. Words are broken in columns of text, figures only between them.
std::size_t Table::least(std::size_t column) const {
  if (columns_[column].second == Align::left) return kLeastText;
  std::size_t most = width_of(columns_[column].first);
  for (const auto& row : rows_) most = std::max(most, longest_part(row[column]));
  return most;
}

std::string Table::str(std::size_t width, std::vector<std::size_t> may_go, bool breaks) const {
  std::vector<std::size_t> widths = this->widths();
  const std::vector<std::size_t> shown = this->shown(width, std::move(may_go));
  std::vector<std::size_t> least;
  for (std::size_t i = 0; breaks && i < columns_.size(); ++i) least.push_back(this->least(i));
  for (std::size_t all = width_of_all(shown, widths); breaks && all > width; --all) {
    std::optional<std::size_t> widest;  // of text, else of figures
    for (const std::size_t i : shown) {
      const auto rank = [&](std::size_t c) {
        return std::pair(columns_[c].second == Align::left, widths[c]);
      };
      if (widths[i] > least[i] && (!widest || rank(i) > rank(*widest))) widest = i;
    }
    if (!widest) break;
    --widths[*widest];
  }
  std::string out;
  const auto line = [&](const auto& cell) {
    std::string text;
    for (const std::size_t i : shown) {
      const std::string pad(widths[i] - width_of(cell(i)), ' ');
      text += "  ";
      text += columns_[i].second == Align::left ? cell(i) + pad : pad + cell(i);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  };
  line([&](std::size_t i) -> const std::string& { return columns_[i].first; });
  for (std::vector<std::string> rest : rows_) {
    std::vector<std::string> now(rest.size());
    do {
      for (const std::size_t i : shown) now[i] = taken_from(rest[i], widths[i]);
      line([&](std::size_t i) -> const std::string& { return now[i]; });
    } while (std::ranges::any_of(shown, [&](std::size_t i) { return !rest[i].empty(); }));
  }
  return out;
}

Ranks::Ranks(std::vector<std::int64_t> numbers) {
  std::ranges::sort(numbers);
  for (const std::int64_t n : numbers) {
    if (ranges_.empty() || n > ranges_.back().last) {
      const bool next = !ranges_.empty() && n - 1 == ranges_.back().last;
      next ? void(ranges_.back().last = n) : ranges_.push_back({n, n});
    }
  }
}

std::uint64_t Ranks::size() const {
  std::uint64_t n = 0;
  for (const auto& [first, last] : ranges_) {
    n += static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) + 1;
  }
  return n;
}

bool Ranks::contains(std::int64_t number) const {
  const auto range = std::ranges::lower_bound(ranges_, number, {}, &Range::last);
  return range != ranges_.end() && range->first <= number;
}

void Ranks::add(const Ranks& others) {
  std::vector<Range> all;
  std::ranges::merge(ranges_, others.ranges_, std::back_inserter(all), {}, &Range::first,
                     &Range::first);
  ranges_.clear();
  for (const Range& r : all) {
    const bool apart =
        ranges_.empty() || (r.first > ranges_.back().last && r.first - 1 > ranges_.back().last);
    if (apart) {
      ranges_.push_back(r);
    } else {
      ranges_.back().last = std::max(ranges_.back().last, r.last);
    }
  }
}

std::vector<std::int64_t> Ranks::list() const {
  std::vector<std::int64_t> all;
  all.reserve(size());
  for (const auto& [first, last] : ranges_) {
    for (std::int64_t n = first; n < last; ++n) all.push_back(n);
    all.push_back(last);
  }
  return all;
}

std::string Ranks::str() const {
  std::string out;
  for (const auto& [first, last] : ranges_) {
    if (!out.empty()) out += ',';
    out += std::to_string(first);
    if (last > first) out += (last == first + 1 ? "," : "-") + std::to_string(last);
  }
  return out;
}

std::string names_of(const Ranks& ranks, std::uint64_t no_ranks) {
  constexpr std::size_t kLength = 100;  // of a list, so that 10,000 ranks do not fill the screen
  std::string names = ranks.str();
  if (names.size() > kLength) {
    names.resize(names.rfind(',', kLength));
    names += ",... (" + thousands(ranks.size()) + " ranks)";
  }
  if (!ranks.empty()) names = (ranks.size() == 1 ? "rank " : "ranks ") + names;
  if (no_ranks == 0) return names;
  return names + (ranks.empty() ? "" : " and ") + thousands(no_ranks) +
         (no_ranks == 1 ? " process without a rank" : " processes without a rank");
}

}  // namespace tprof::text
