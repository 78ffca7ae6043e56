#include "steps/marks.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace tprof::steps {
namespace {

// Small letters, without what stands between the words and the number.
constexpr std::string_view kNames[] = {
    "profilerstep", "step",         "iteration",  "iter",
    "trainstep",    "trainingstep", "globalstep", "trainingiteration"};

struct Numbered {
  std::string name;
  std::int64_t number = 0;
};

std::optional<Numbered> numbered(std::string_view text) {
  std::size_t digits = text.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(text[digits - 1])) != 0) --digits;
  Numbered n;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + digits, end, n.number);
  if (digits == text.size() || error != std::errc() || rest != end) return std::nullopt;
  for (const char c : text.substr(0, digits)) {
    if (std::string_view(" _-#:=/").find(c) != std::string_view::npos) continue;
    n.name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (std::ranges::find(kNames, n.name) == std::end(kNames)) return std::nullopt;
  return n;
}

bool one_by_one(const std::vector<Mark>& marks) {
  for (std::size_t i = 1; i < marks.size(); ++i) {
    if (marks[i].step != marks[i - 1].step + 1 || marks[i].from_ns < marks[i - 1].to_ns) {
      return false;
    }
  }
  return marks.size() > 1;
}

std::int64_t reach(const std::vector<Mark>& marks) {
  std::int64_t sum = 0;
  for (const Mark& m : marks) sum += m.to_ns - m.from_ns;
  return sum;
}

}  // namespace

void Marks::add(const read::Range& range) {
  using enum read::Range::Phase;
  if (range.phase != closed && range.phase != started && range.phase != ended) return;
  const auto n = numbered(range.name);
  if (!n) return;
  if (range.phase == started) {
    if (started_.size() < kMost) started_[range.id] = range;
    return;
  }
  std::vector<Mark>& marks = by_name_[n->name];
  if (marks.size() == kMost) return;
  if (range.phase == closed) {
    marks.push_back({n->number, range.ts_ns, range.ts_ns + range.dur_ns});
  } else if (const auto from = started_.find(range.id); from != started_.end()) {
    marks.push_back({n->number, from->second.ts_ns, range.ts_ns});
    started_.erase(from);
  }
}

std::vector<Mark> Marks::steps() const {
  std::vector<Mark> best;
  for (const auto& [name, all] : by_name_) {
    std::vector<Mark> marks = all;
    std::ranges::sort(marks, {}, &Mark::from_ns);
    if (one_by_one(marks) && reach(marks) > reach(best)) best = std::move(marks);
  }
  return best;
}

}  // namespace tprof::steps
