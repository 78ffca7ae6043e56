#include "diff/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <ranges>

#include "read/error.h"
#include "text/text.h"

namespace tprof::diff {
namespace {

using Of = TimeChange::Of;
using About = Setting::About;

// All rules, without a share.
std::vector<Rule> known_rules() {
  std::vector<Rule> all = {{"calls", &Count::calls},     {"elements", &Count::elements},
                           {"bytes", &Count::bytes},     {"slow_ranks", Rule::SlowRanks()},
                           {"settings", About::setting}, {"versions", About::version},
                           {"hosts", About::host},       {"size", About::size}};
  for (std::size_t i = 0; i < std::size(kFigures); ++i) {
    if (kFigures[i].rule) all.push_back({kFigures[i].key, static_cast<Of>(i)});
  }
  return all;
}

[[noreturn]] void refuse(std::string_view item, const std::string& expected) {
  throw read::BadInput(fmt::format("--fail-on: expected {}, found '{}'", expected, item));
}

Rule rule_of(std::string_view item) {
  const auto colon = item.find(':');
  const std::vector<Rule> all = known_rules();
  const auto known = std::ranges::find(all, item.substr(0, colon), &Rule::name);
  if (known == all.end()) {
    const auto names = all | std::views::transform(&Rule::name);
    refuse(item, fmt::format("some of {}, with commas between", fmt::join(names, ", ")));
  }
  Rule rule = *known;
  if (colon == std::string_view::npos) return rule;
  if (std::holds_alternative<About>(rule.of)) {
    refuse(item, fmt::format("{} without a share", rule.name));
  }
  const std::string_view share = item.substr(colon + 1);
  const auto percent = text::number<double>(share.substr(0, share.size() - share.ends_with('%')));
  if (!share.ends_with('%') || !(percent.value_or(-1) >= 0 && *percent < 1e6)) {
    refuse(item, fmt::format("a share such as {}:5%", rule.name));
  }
  rule.share = *percent / 100;
  return rule;
}

// By how much B's steps are longer, in shares of A's usual step.
struct Longer {
  double surely = 0;  // the lower bound, without chance
  double seen = 0;    // the observed value
  double chance = 0;  // how much may be chance
};

// `of`: the step including what long ones add, or the long ones alone. Nullopt: unknown.
std::optional<Longer> longer_steps(const Diff& diff, Of of) {
  std::optional<Longer> longer;
  if (diff.times.empty()) return longer;
  const double usual = diff.times[0].a;
  for (const TimeChange& t : diff.times) {
    const bool counts = t.of == Of::long_steps || (t.of == of && of == Of::step);
    if (!counts || usual == 0) continue;
    if (!longer) longer.emplace();
    longer->seen += (t.b - t.a) / usual;
    if (t.changed()) {
      longer->surely += (t.b - t.a) / usual;
    } else {
      longer->chance = std::max(longer->chance, t.noise / usual);
    }
  }
  return longer;
}

// True if the excess is above the share, but much of it may be chance.
bool can_not_be_said(const Longer& longer, double share) {
  constexpr double kLeastSeen = 0.01;
  return longer.seen > std::max(share, kLeastSeen) && longer.chance > std::max(share, kMuchNoise);
}

}  // namespace

std::vector<Rule> rules_of(std::string_view text) {
  std::vector<Rule> rules;
  for (const std::string_view item : text::split(text, ',')) rules.push_back(rule_of(item));
  return rules;
}

Judgement judge(const std::vector<Rule>& rules, const Diff& diff) {
  Judgement all;
  const auto unknown = [&](const std::string& name, const std::string& why) {
    all.unknown.push_back(name);
    all.why.insert(why.empty() ? "no such time is known for both runs" : why);
  };
  for (const Rule& rule : rules) {
    bool failed = false;
    if (const auto* count = std::get_if<long double Count::*>(&rule.of)) {
      failed = std::ranges::any_of(diff.counts, [&](const CountChange& c) {
        const long double a = c.a.**count;
        // Rounding differences don't count.
        return std::abs(c.b.**count - a) > std::max<long double>(rule.share, 1e-15L) * a;
      });
      if (!failed && !diff.no_counts.empty()) unknown(rule.name, diff.no_counts);
    } else if (const auto* of = std::get_if<Of>(&rule.of); of != nullptr && *of <= Of::long_steps) {
      const auto longer = longer_steps(diff, *of);
      failed = longer && longer->surely > rule.share;
      if (!longer) {
        unknown(rule.name, diff.no_times);
      } else if (!failed && can_not_be_said(*longer, rule.share)) {
        unknown(rule.name,
                fmt::format("differences of {:.0f}% of a step may be chance: compare longer runs",
                            100 * longer->chance));
      }
    } else if (std::holds_alternative<Rule::SlowRanks>(rule.of)) {
      if (!diff.slow_ranks) unknown(rule.name, diff.no_times);
      failed = diff.slow_ranks && std::ranges::any_of(*diff.slow_ranks, [&](const OfOneRun& one) {
                 return one.in_b && one.finding.cost->share > rule.share;
               });
    } else if (of != nullptr) {
      bool known = false;
      for (const TimeChange& t : diff.times) {
        if (t.of != *of) continue;
        known = true;
        failed |= t.changed() && t.worse() && std::abs(t.b - t.a) > rule.share * t.a;
      }
      if (!known) unknown(rule.name, diff.no_times);
    } else {
      failed = std::ranges::count(diff.settings, std::get<About>(rule.of), &Setting::about) != 0;
    }
    if (failed) all.failed.push_back(rule.name);
  }
  return all;
}

}  // namespace tprof::diff
