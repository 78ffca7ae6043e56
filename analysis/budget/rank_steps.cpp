#include "budget/rank_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "budget/model.h"
#include "interpose/base/hash.h"
#include "text/text.h"

namespace tprof::budget {
namespace {

constexpr std::size_t kMostSetup = 3;
constexpr std::size_t kMostOdd = 4;         // that are told
constexpr std::size_t kLongestList = 60;    // characters of numbers of steps
constexpr std::int64_t kCopyOfAnySize = 6;  // from 64 bytes on: a copy that is not small

// Returns the most that so large a part of the steps has.
Moved at_most(std::vector<Moved>& sorted, std::size_t part, std::size_t of) {
  return sorted[std::min(part * sorted.size() / of, sorted.size() - 1)];
}

std::string difference(const std::string& function, const Moved& more) {
  const auto bytes = static_cast<std::uint64_t>(std::llround(std::abs(more.bytes)));
  const char* how = more.bytes > 0 ? "more" : "less";
  if (more.calls == 0) return fmt::format("{} {} in {}", text::bytes(bytes), how, function);
  const std::string calls =
      fmt::format("{:.6g} {} {}", std::abs(more.calls), function, more.calls > 0 ? "more" : "less");
  if (bytes == 0) return calls + ", with as many bytes";
  if ((more.calls > 0) == (more.bytes > 0)) {
    return fmt::format("{}, of {}{}", calls, text::bytes(bytes),
                       std::abs(more.calls) == 1 ? "" : " together");
  }
  return fmt::format("{}, with {} {}", calls, text::bytes(bytes), how);
}

}  // namespace

bool tells_steps_apart(const Key& key) {
  return !is_copy(key.bucket) && !is_small(key.bucket, key.bytes_class, {});
}

void RankSteps::add(std::size_t step, Key key, const read::Amounts& a) {
  if (step >= calls_.size()) return;  // the rest, which is no whole step
  const Moved more{static_cast<double>(a.calls), static_cast<double>(a.bytes),
                   static_cast<double>(a.elements)};
  if (tells_steps_apart(key)) {
    const std::uint64_t what = fnv1a(key.function) ^ mix64(fnv1a(key.dtype));
    calls_[step] += mix64(what + a.bytes) * a.calls;  // in any order
  } else if (is_copy(key.bucket) && !is_small(key.bucket, key.bytes_class, {})) {
    key.bytes_class = kCopyOfAnySize;  // batches differ
  }
  if (all_.size() >= kMostKeys && !all_.contains(key)) return;
  all_[key] += more;
  if (step >= kMostSteps) return;
  std::vector<Moved>& steps = of_steps_[key];
  if (step >= steps.size()) {
    if (values_ >= kMostValues) return;
    values_ += step + 1 - steps.size();
    steps.resize(step + 1);
  }
  steps[step] += more;
}

Moved RankSteps::at(const Key& key, std::size_t step) const {
  const auto of = of_steps_.find(key);
  return of == of_steps_.end() || step >= of->second.size() ? Moved{} : of->second[step];
}

Usual RankSteps::usual() const {
  const std::optional<std::uint64_t> most = usual_step(calls_);
  const std::size_t setup = setup_steps(calls_);
  std::vector<std::size_t> counted;  // of the first ones
  for (std::size_t i = 0; i < std::min(calls_.size(), kMostSteps); ++i) {
    if (most ? calls_[i] == *most : i >= setup) counted.push_back(i);
  }
  Usual u{.steps = calls_.size() - setup, .left_out = setup};
  u.usual = most && !counted.empty();
  if (u.usual) {
    u.steps = static_cast<std::size_t>(std::ranges::count(calls_, *most));
    u.left_out = calls_.size() - u.steps;
  }
  for (auto [key, sum] : all_) {
    Moved usual;
    if (tells_steps_apart(key)) {
      if (u.usual) {
        usual = at(key, counted[0]);  // as they are all equal in these
      } else {
        for (std::size_t i = 0; i < setup; ++i) sum -= at(key, i);
        if (u.steps != 0) usual = sum / static_cast<double>(u.steps);
      }
    } else if (!counted.empty()) {
      std::vector<Moved> steps;
      steps.reserve(counted.size());
      for (const std::size_t i : counted) steps.push_back(at(key, i));
      std::ranges::sort(steps, [](const Moved& a, const Moved& b) {
        return std::pair(a.bytes, a.calls) < std::pair(b.bytes, b.calls);
      });
      usual = steps[(steps.size() - 1) / 2];
      const Moved often = at_most(steps, 2, 3);
      if (often.calls != 0) u.often[key] = often;
    }
    if (usual.calls != 0) u.figures[key] = usual;
  }
  u.setup = setup;
  if (u.usual) add_others(u, *most);
  add_seldom(u);
  return u;
}

void RankSteps::add_others(Usual& to, std::uint64_t usual) const {
  for (const auto& [key, steps] : of_steps_) {
    if (is_copy(key.bucket)) continue;
    const auto most = to.figures.find(key);
    Key of_any = key;
    of_any.nranks = 0;
    for (std::size_t i = 0; i < std::min(calls_.size(), kMostSteps); ++i) {
      if (calls_[i] == usual) continue;
      Moved more = at(key, i);
      if (most != to.figures.end()) more -= most->second;
      if (more != Moved{}) to.others[i][of_any] += more;
    }
  }
}

void RankSteps::add_seldom(Usual& to) const {
  for (const auto& [key, steps] : of_steps_) {
    if (key.bucket != Bucket::H2D && key.bucket != Bucket::D2H) continue;
    if (is_small(key.bucket, key.bytes_class, {})) continue;
    if (to.figures.contains(key) || to.often.contains(key)) continue;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].calls != 0) to.seldom[key.bucket][i] += steps[i].bytes;
    }
  }
}

std::string differences_text(const std::map<std::int64_t, Figures>& more) {
  // Steps are told together if they have the same but for small calls.
  struct Alike {
    std::vector<std::int64_t> steps{};
    Figures small{};
    bool small_differ = false;
  };
  std::map<Figures, Alike> kinds;
  for (const auto& [step, figures] : more) {
    const Figures small = by_kind(figures, [](const Key& k) { return !tells_steps_apart(k); });
    Alike& alike = kinds[by_kind(figures, tells_steps_apart)];
    if (alike.steps.empty()) alike.small = small;
    alike.small_differ = alike.small_differ || alike.small != small;
    alike.steps.push_back(step);
  }
  std::map<std::int64_t, std::string> by_first;
  for (const auto& [large, alike] : kinds) {
    std::vector<std::string> parts;
    const auto say = [&parts](const Figures& figures, const std::string& size) {
      for (const auto& [key, moved] : figures) {
        const auto named = std::ranges::count(figures, key.function,
                                              [](const auto& f) { return f.first.function; });
        parts.push_back(
            difference(size + key.function + (named > 1 ? " of " + key.dtype : ""), moved));
      }
    };
    say(large, "");
    if (!alike.small_differ) say(alike.small, "small ");
    if (parts.empty()) continue;  // they differ in the sizes of single calls
    if (parts.size() > kMostOdd) {
      const std::size_t rest = parts.size() - kMostOdd;
      parts.resize(kMostOdd);
      parts.push_back(fmt::format("{} other {}", rest, rest == 1 ? "call" : "calls"));
    }
    if (alike.small_differ) parts.emplace_back("small calls");
    const std::string last = parts.size() > 1 ? ", and " + parts.back() : "";
    if (parts.size() > 1) parts.pop_back();
    by_first[alike.steps[0]] =
        fmt::format("{} {} {}{}", steps_text(alike.steps), alike.steps.size() == 1 ? "has" : "have",
                    fmt::join(parts, ", "), last);
  }
  std::vector<std::string> said;
  for (const auto& [first, text] : by_first) {
    said.push_back(said.size() == kMostOdd ? "others have something else" : text);
    if (said.size() > kMostOdd) break;
  }
  return fmt::format("{}", fmt::join(said, "; "));
}

std::string steps_text(const std::vector<std::int64_t>& steps) {
  const std::string list = text::ranges(steps);
  if (list.size() > kLongestList) return text::thousands(steps.size()) + " steps";
  return (steps.size() == 1 ? "step " : "steps ") + list;
}

std::optional<std::uint64_t> usual_step(const std::vector<std::uint64_t>& steps) {
  std::map<std::uint64_t, std::size_t> times;
  for (const std::uint64_t step : steps) {
    if (2 * ++times[step] > steps.size()) return step;
  }
  return std::nullopt;
}

std::size_t setup_steps(const std::vector<std::uint64_t>& steps) {
  const std::size_t first = std::min(kMostSetup + 1, steps.size());
  const auto later = steps.begin() + static_cast<std::ptrdiff_t>(first) - (first == 0 ? 0 : 1);
  for (auto step = later; step != steps.begin(); --step) {
    if (std::find(later, steps.end(), step[-1]) == steps.end()) {
      return static_cast<std::size_t>(step - steps.begin());
    }
  }
  return 0;
}

}  // namespace tprof::budget
