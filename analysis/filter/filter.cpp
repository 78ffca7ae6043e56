#include "filter/filter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "interpose/format/settings.h"
#include "read/error.h"
#include "text/text.h"

namespace tprof::filter {
namespace {

std::vector<std::string> split(const char* option, std::string_view list) {
  const std::vector<std::string_view> parts = text::split(list, ',');
  if (std::ranges::none_of(parts, &std::string_view::empty)) return {parts.begin(), parts.end()};
  throw read::BadInput(
      fmt::format("{}: expected names with a comma between each two, found '{}'", option, list));
}

std::pair<std::int64_t, std::int64_t> range_of(std::string_view item, std::string_view list) {
  const auto number = [](std::string_view text, std::int64_t& to) {
    const auto n = text::number<std::int64_t>(text);
    to = n.value_or(-1);
    return to >= 0;
  };
  std::pair<std::int64_t, std::int64_t> r(0, INT64_MAX);
  if (!item.starts_with('-') && parse_borders(item, r.first, r.second, number)) return r;
  throw read::BadInput(fmt::format("--steps: expected 10-, 3-7, 5 or 3,5-7, found '{}'", list));
}

tables::StepPhase phase_of(const std::string& name) {
  const auto* known = std::ranges::find(tables::kStepPhaseNames, name);
  if (known != std::end(tables::kStepPhaseNames)) {
    return static_cast<tables::StepPhase>(known - tables::kStepPhaseNames);
  }
  throw read::BadInput(fmt::format("--phase: expected {}, found '{}'",
                                   fmt::join(tables::kStepPhaseNames, ", "), name));
}

}  // namespace

bool Words::of_calls() const {
  return !(steps.empty() && ops.empty() && sizes.empty() && comms.empty() && phases.empty());
}

std::vector<std::pair<const char*, std::string>> Words::given() const {
  std::vector<std::pair<const char*, std::string>> all = {{"ranks", ranks}, {"steps", steps},
                                                          {"ops", ops},     {"sizes", sizes},
                                                          {"comm", comms},  {"phase", phases}};
  std::erase_if(all, [](const auto& one) { return one.second.empty(); });
  return all;
}

std::string Words::sentence() const {
  std::string all;
  for (const auto& [name, value] : given()) {
    const bool one = value.find_first_of(",-") == std::string::npos;
    std::string_view shown = name;
    if (one && (shown == "ranks" || shown == "steps")) shown.remove_suffix(1);
    all += fmt::format("{}{} {}", all.empty() ? "only " : ", ", shown, value);
  }
  return all;
}

bool is_listed(std::string_view ranks, std::int64_t rank) {
  bool found = false;
  const bool is_list = each_range(ranks, [&](std::int64_t first, std::int64_t last) {
    found = found || (first <= rank && rank <= last);
  });
  if (is_list) return found;
  throw read::BadInput(fmt::format("--ranks: expected ranks such as 0-3,7, found '{}'", ranks));
}

Filter parsed(const Words& words) {
  Filter f{.words = words};
  if (!words.ranks.empty()) is_listed(words.ranks, 0);
  if (!words.steps.empty()) {
    f.steps.emplace().ranges.clear();
    for (const std::string& item : split("--steps", words.steps)) {
      f.steps->ranges.push_back(range_of(item, words.steps));
    }
  }
  if (!words.ops.empty()) f.ops = split("--ops", words.ops);
  if (!words.sizes.empty()) {
    if (!each_sizes(words.sizes, [&](const Sizes& sizes) { f.sizes.push_back(sizes); })) {
      throw read::BadInput(fmt::format(
          "--sizes: expected bytes of a call such as 1M-64M, 64K-, -4K or 32768, found '{}'",
          words.sizes));
    }
  }
  if (!words.comms.empty()) f.comms = split("--comm", words.comms);
  if (!words.phases.empty()) {
    for (const std::string& name : split("--phase", words.phases)) f.phases.insert(phase_of(name));
  }
  return f;
}

}  // namespace tprof::filter
