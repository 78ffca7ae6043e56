#include "diff/fail_on.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <variant>

#include "read/error.h"

namespace tprof::diff {
namespace {

using Of = TimeChange::Of;
using About = Setting::About;

struct Name {
  const char* name;
  std::variant<long double Count::*, Of, About> of;
};
const Name kNames[] = {
    {"calls", &Count::calls}, {"elements", &Count::elements}, {"bytes", &Count::bytes},
    {"time", Of::step},       {"long_steps", Of::long_steps}, {"exposed", Of::exposed},
    {"host", Of::host},       {"device", Of::device},         {"algbw", Of::algbw},
    {"busbw", Of::busbw},     {"settings", About::setting},   {"versions", About::version},
    {"hosts", About::host},   {"size", About::size},
};

[[noreturn]] void refuse(std::string_view item, const std::string& expected) {
  throw read::BadInput(fmt::format("--fail-on: expected {}, found '{}'", expected, item));
}

Rule rule_of(std::string_view item) {
  const auto colon = item.find(':');
  const auto* known = std::ranges::find(kNames, item.substr(0, colon), &Name::name);
  if (known == std::end(kNames)) {
    std::string all;
    for (const Name& n : kNames) all += fmt::format("{}{}", all.empty() ? "" : ", ", n.name);
    refuse(item, "some of " + all + ", with commas between");
  }
  Rule rule{static_cast<std::size_t>(known - kNames)};
  if (colon == std::string_view::npos) return rule;
  if (std::holds_alternative<About>(known->of)) {
    refuse(item, fmt::format("{} without a share", known->name));
  }
  const char* end = item.data() + item.size();
  double percent = -1;
  const auto [rest, error] = std::from_chars(item.data() + colon + 1, end, percent);
  const bool whole = error == std::errc() && rest + 1 == end && *rest == '%';
  if (!whole || !(percent >= 0 && percent < 1e6)) {
    refuse(item, fmt::format("a share such as {}:5%", known->name));
  }
  rule.share = percent / 100;
  return rule;
}

// By what share of the usual step a step takes longer on average, as far as that is no chance.
// Nullopt: not known.
std::optional<double> longer_steps(const Diff& diff) {
  double usual = 0;
  double more = 0;
  for (const TimeChange& t : diff.times) {
    if (t.of == Of::step) usual = t.a;
    if ((t.of == Of::step || t.of == Of::long_steps) && t.changed()) more += t.b - t.a;
  }
  return usual == 0 ? std::nullopt : std::optional(more / usual);
}

}  // namespace

std::vector<Rule> rules_of(std::string_view text) {
  std::vector<Rule> rules;
  for (std::size_t comma = 0; comma != std::string_view::npos; text.remove_prefix(comma + 1)) {
    comma = text.find(',');
    rules.push_back(rule_of(text.substr(0, comma)));
    if (comma == std::string_view::npos) break;
  }
  return rules;
}

Judgement judge(const std::vector<Rule>& rules, const Diff& diff) {
  Judgement all;
  const auto unknown = [&](const char* name, const std::string& why) {
    all.unknown.emplace_back(name);
    all.why.insert(why.empty() ? "no such time is known of both runs" : why);
  };
  for (const Rule& rule : rules) {
    const Name& name = kNames[rule.name];
    bool failed = false;
    if (const auto* count = std::get_if<long double Count::*>(&name.of)) {
      failed = std::ranges::any_of(diff.counts, [&](const CountChange& c) {
        const long double a = c.a.**count;
        // Counts that differ by the last digits of a division are the same.
        return std::abs(c.b.**count - a) > std::max<long double>(rule.share, 1e-15L) * a;
      });
      if (!failed && !diff.no_counts.empty()) unknown(name.name, diff.no_counts);
    } else if (const auto* of = std::get_if<Of>(&name.of); of != nullptr && *of == Of::step) {
      if (const auto longer = longer_steps(diff)) {
        failed = *longer > rule.share;
      } else {
        unknown(name.name, diff.no_times);
      }
    } else if (of != nullptr) {
      bool known = false;
      for (const TimeChange& t : diff.times) {
        if (t.of != *of) continue;
        known = true;
        failed |= t.changed() && t.worse() && std::abs(t.b - t.a) > rule.share * t.a;
      }
      if (!known) unknown(name.name, diff.no_times);
    } else {
      failed = std::ranges::count(diff.settings, std::get<About>(name.of), &Setting::about) != 0;
    }
    if (failed) all.failed.emplace_back(name.name);
  }
  return all;
}

}  // namespace tprof::diff
