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
// Collectives of a step against those of most:
constexpr std::int64_t kAnySize = -1;
constexpr std::int64_t kSmall = 0;  // those that do not tell steps apart

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
  if (u.usual) {
    u.odd = odd(*most, u.figures);
    u.others = others(*most, u.figures);
  }
  u.seldom = seldom(u);
  return u;
}

std::map<Bucket, Seldom> RankSteps::seldom(const Usual& u) const {
  std::map<Bucket, std::map<std::size_t, double>> bytes;  // of steps
  std::map<Bucket, Seldom> all;
  for (const auto& [key, steps] : of_steps_) {
    if (key.bucket != Bucket::H2D && key.bucket != Bucket::D2H) continue;
    if (is_small(key.bucket, key.bytes_class, {})) continue;
    if (u.figures.contains(key) || u.often.contains(key)) continue;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].calls != 0) bytes[key.bucket][i] += steps[i].bytes;
    }
  }
  for (const auto& [bucket, steps] : bytes) {
    for (const auto& [step, n] : steps) {
      all[bucket].steps.push_back(step);
      all[bucket].bytes = std::max(all[bucket].bytes, n);
    }
  }
  return all;
}

std::map<std::size_t, Figures> RankSteps::others(std::uint64_t usual,
                                                 const Figures& as_most) const {
  std::map<std::size_t, Figures> all;
  for (const auto& [key, steps] : of_steps_) {
    if (!tells_steps_apart(key)) continue;
    const auto most = as_most.find(key);
    Key of_any = key;
    of_any.nranks = 0;
    for (std::size_t i = 0; i < std::min(calls_.size(), kMostSteps); ++i) {
      if (calls_[i] == usual) continue;
      Moved more = at(key, i);
      if (most != as_most.end()) more -= most->second;
      if (more != Moved{}) all[i][of_any] += more;
    }
  }
  return all;
}

std::vector<Odd> RankSteps::odd(std::uint64_t usual, const Figures& as_most) const {
  std::map<std::uint64_t, Odd> kinds;
  for (std::size_t i = 0; i < std::min(calls_.size(), kMostSteps); ++i) {
    if (calls_[i] != usual) kinds[calls_[i]].steps.push_back(i);
  }
  std::vector<Odd> all;
  for (auto& [calls, kind] : kinds) {
    for (const auto& [key, values] : of_steps_) {
      if (is_copy(key.bucket)) continue;
      const bool small = !tells_steps_apart(key);
      Moved here = at(key, kind.steps[0]);
      const auto alike = [&, k = key](std::size_t step) { return at(k, step) == here; };
      if (small && !std::ranges::all_of(kind.steps, alike)) {
        kind.small_differ = true;
        continue;
      }
      const auto most = as_most.find(key);
      if (most != as_most.end()) here -= most->second;
      kind.more[{key.bucket, key.function, key.dtype, 0, small ? kSmall : kAnySize}] += here;
    }
    std::erase_if(kind.more, [](const auto& f) { return f.second == Moved{}; });
    all.push_back(std::move(kind));
  }
  std::ranges::sort(all, {}, [](const Odd& o) { return o.steps[0]; });
  return all;
}

std::string odd_text(const std::vector<Odd>& odd,
                     const std::function<std::int64_t(std::size_t)>& number) {
  std::vector<std::string> said;
  for (const Odd& o : odd) {
    if (o.more.empty()) continue;  // they differ in the sizes of single calls
    if (said.size() == kMostOdd) {
      said.push_back("others have something else");
      break;
    }
    std::vector<std::string> parts;
    for (const auto& [key, more] : o.more) {
      const auto call_of = [](const Key& k) {
        return (k.bytes_class == kSmall ? "small " : "") + k.function;
      };
      const auto alike = std::ranges::count(
          o.more, call_of(key), [&](const auto& other) { return call_of(other.first); });
      parts.push_back(difference(call_of(key) + (alike > 1 ? " of " + key.dtype : ""), more));
    }
    if (parts.size() > kMostOdd) {
      const std::size_t rest = parts.size() - kMostOdd;
      parts.resize(kMostOdd);
      parts.push_back(fmt::format("{} other {}", rest, rest == 1 ? "call" : "calls"));
    }
    if (o.small_differ) parts.emplace_back("small calls");
    const std::string last = parts.size() > 1 ? ", and " + parts.back() : "";
    if (parts.size() > 1) parts.pop_back();
    said.push_back(fmt::format("{} {} {}{}", steps_text(o.steps, number),
                               o.steps.size() == 1 ? "has" : "have", fmt::join(parts, ", "), last));
  }
  return fmt::format("{}", fmt::join(said, "; "));
}

std::string steps_text(const std::vector<std::size_t>& places,
                       const std::function<std::int64_t(std::size_t)>& number) {
  std::vector<std::int64_t> steps;
  steps.reserve(places.size());
  for (const std::size_t i : places) steps.push_back(number(i));
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
