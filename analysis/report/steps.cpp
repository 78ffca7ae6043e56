#include "report/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "report/json.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using stats::Odd;
using stats::StepFigures;
using stats::StepTotals;
using text::thousands;
constexpr std::size_t kOddShown = 20;
constexpr std::size_t kDifferencesShown = 6;

// Returns the quantile by nearest rank: a value that occurs.
std::uint64_t quantile(const std::vector<std::uint64_t>& sorted, std::size_t percent) {
  return sorted[(percent * (sorted.size() - 1) + 99) / 100];
}

void add_row(text::Table& table, std::string_view bucket, const char* what,
             const StepTotals& totals, const std::function<std::uint64_t(const StepFigures&)>& pick,
             const std::function<std::string(std::uint64_t)>& as_text) {
  std::vector<std::uint64_t> values;
  for (const StepFigures& s : totals.steps) values.push_back(pick(s));
  std::ranges::sort(values);
  table.row({std::string(bucket), what, as_text(values.front()), as_text(quantile(values, 50)),
             as_text(quantile(values, 99)), as_text(values.back())});
}

std::string difference(const Odd& odd) {
  std::string all;
  std::size_t shown = 0;
  for (const auto& [key, more] : odd.more) {
    if (shown++ == kDifferencesShown) {
      return fmt::format("{}, and {} other differences", all, odd.more.size() - kDifferencesShown);
    }
    all += fmt::format("{}{} {} {} of {}{}", all.empty() ? "" : ", ",
                       thousands(static_cast<std::uint64_t>(std::abs(more))),
                       more > 0 ? "more" : "fewer", bucket_name(key.bucket),
                       key.at_least ? ">= " : "", text::bytes(key.bytes));
  }
  return all;
}

std::string odd_text(const StepTotals& totals) {
  std::string out;
  const std::vector<Odd> all = stats::odd_ones(totals.steps);
  for (std::size_t i = 0; i < std::min(all.size(), kOddShown); ++i) {
    const std::vector<std::int64_t>& steps = all[i].steps;
    out += fmt::format("  {} {}: {} than in most\n", steps.size() == 1 ? "step" : "steps",
                       text::ranges(steps), difference(all[i]));
  }
  if (all.size() > kOddShown) {
    out += fmt::format("  and {} other kinds of steps (all: --json)\n", all.size() - kOddShown);
  }
  return out;
}

}  // namespace

std::string named(const stats::StepRange& steps) {
  if (steps.first == steps.last) return std::to_string(steps.first);
  return fmt::format("{}-{}", steps.first,
                     steps.last == INT64_MAX ? "" : std::to_string(steps.last));
}

std::string how_found(const steps::Found& found) {
  if (found.how == steps::How::none) return "  Not known: " + found.why + ".\n";
  const std::size_t n = found.steps.size();
  std::string out = found.how == steps::How::mark
                        ? fmt::format("  {} steps, marked by the program.\n", thousands(n))
                    : found.whole_steps
                        ? fmt::format("  {} steps, found from what repeats.\n", thousands(n))
                        : fmt::format(
                              "  {} repeats: each is a step, or one micro-batch of a step or of an "
                              "evaluation; the calls do not tell which.\n",
                              thousands(n));
  if (found.counted_on) {
    out +=
        "  The program's step numbers begin again: here they are counted on, so that each step has "
        "its own.\n";
  }
  for (const std::string& sentence : found.unknown) out += "  " + sentence + ".\n";
  return out;
}

std::string step_table(const StepTotals& totals, const steps::Found& found) {
  std::string out = how_found(found);
  if (found.how != steps::How::none && totals.steps.size() != found.steps.size()) {
    out += fmt::format("  {} of them are shown.\n", thousands(totals.steps.size()));
  }
  if (totals.steps.empty()) return out;
  using enum text::Table::Align;
  text::Table table({{"of a step", left},
                     {"", left},
                     {"min", right},
                     {"median", right},
                     {"p99", right},
                     {"max", right}});
  const auto duration = [](std::uint64_t ns) { return text::duration(ns); };
  add_row(
      table, "", "time", totals,
      [](const StepFigures& s) { return static_cast<std::uint64_t>(s.to_ns - s.from_ns); },
      duration);
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    const bool any = std::ranges::any_of(
        totals.steps, [b](const StepFigures& s) { return s.buckets[b].calls != 0; });
    if (!any) continue;
    const auto of = [b](auto member) {
      return [b, member](const StepFigures& s) { return s.buckets[b].*member; };
    };
    add_row(table, kBuckets[b].name, "calls", totals, of(&read::Amounts::calls), thousands);
    add_row(table, "", "bytes", totals, of(&read::Amounts::bytes), text::bytes);
    add_row(table, "", "host time", totals, of(&read::Amounts::host_ns), duration);
  }
  return out + table.str() + odd_text(totals);
}

void add_steps(Json& to, const StepTotals& totals, const steps::Found& found) {
  constexpr const char* kHow[] = {nullptr, "mark", "period"};
  const char* how = kHow[static_cast<int>(found.how)];
  to["steps_found"] = how == nullptr ? Json() : Json(how);
  to["steps_exact"] = how == nullptr ? Json() : Json(found.exact);
  to["steps_whole"] = how == nullptr ? Json() : Json(found.whole_steps);
  to["steps_counted_on"] = how == nullptr ? Json() : Json(found.counted_on);
  std::vector<std::string> notes = found.unknown;
  if (how == nullptr) notes.insert(notes.begin(), found.why);
  to["steps_unknown"] = notes;
  Json& steps = to["steps"] = how == nullptr ? Json() : Json::array();
  std::map<std::int64_t, std::vector<std::pair<stats::SizeKey, std::int64_t>>> odd;
  for (const Odd& o : stats::odd_ones(totals.steps)) {
    for (const std::int64_t step : o.steps) odd[step].assign(o.more.begin(), o.more.end());
  }
  for (const StepFigures& s : totals.steps) {
    Json buckets = Json::object();
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      const read::Amounts& a = s.buckets[b];
      if (a.calls == 0) continue;
      buckets[std::string(kBuckets[b].name)] = {{"calls", a.calls},
                                                {"count", a.count},
                                                {"elements", a.elements},
                                                {"bytes", a.bytes},
                                                {"host_ns", a.host_ns}};
    }
    Json differs = Json::array();
    for (const auto& [key, more] : odd[s.step]) {
      differs.push_back({{"bucket", bucket_name(key.bucket)},
                         {"bytes", key.bytes},
                         {"at_least", key.at_least},
                         {"more_calls", more}});
    }
    steps.push_back({{"step", s.step},
                     {"ts", s.from_ns},
                     {"dur", s.to_ns - s.from_ns},
                     {"buckets", std::move(buckets)},
                     {"differs", std::move(differs)}});
  }
}

}  // namespace tprof::report
