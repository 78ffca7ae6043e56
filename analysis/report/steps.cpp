#include "report/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "diagnose/names.h"
#include "report/figures.h"
#include "report/views.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using stats::Odd;
using StepFigures = stats::StepOf<stats::SizeKey>;
using stats::StepTotals;
using text::thousands;
constexpr std::size_t kOddShown = 20;
constexpr std::size_t kDifferencesShown = 6;

// Returns the quantile by nearest rank: a value that occurs.
std::uint64_t quantile(const std::vector<std::uint64_t>& sorted, std::size_t percent) {
  return sorted[(percent * (sorted.size() - 1) + 99) / 100];
}

// A figure of the steps, whose values are sorted.
struct StepRow {
  std::string bucket;
  std::string what;
  Unit unit = Unit::count;
  std::vector<std::uint64_t> values{};

  Measure at(std::size_t percent) const { return {quantile(values, percent), unit}; }
};

std::vector<Column<StepRow>> figure_columns() {
  return {{"of a step", nullptr, Unit::text, &StepRow::bucket},
          {"", nullptr, Unit::text, &StepRow::what},
          {"min", nullptr, Unit::number, [](const StepRow& r) { return r.at(0); }},
          {"median", nullptr, Unit::number, [](const StepRow& r) { return r.at(50); }},
          {"p99", nullptr, Unit::number, [](const StepRow& r) { return r.at(99); }},
          {"max", nullptr, Unit::number, [](const StepRow& r) { return r.at(100); }}};
}

std::vector<StepRow> rows_of(const StepTotals& totals) {
  StepRow times{"", "time", Unit::ns};
  for (const StepFigures& s : totals) {
    if (const auto ns = s.length_ns()) times.values.push_back(static_cast<std::uint64_t>(*ns));
  }
  std::ranges::sort(times.values);
  std::vector<StepRow> rows;
  if (!times.values.empty()) rows.push_back(std::move(times));
  std::vector<stats::Buckets> buckets;
  for (const StepFigures& s : totals) buckets.push_back(stats::buckets_of(s));
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (std::ranges::none_of(buckets, [b](const auto& all) { return all[b].calls != 0; })) continue;
    const auto add = [&](std::string_view bucket, const char* what, Unit unit, auto figure) {
      StepRow& row = rows.emplace_back(std::string(bucket), what, unit);
      for (const stats::Buckets& all : buckets) row.values.push_back(all[b].*figure);
      std::ranges::sort(row.values);
    };
    add(kBuckets[b].name, "calls", Unit::count, &read::Amounts::calls);
    add("", "bytes", Unit::bytes, &read::Amounts::bytes);
    add("", "host time", Unit::ns, &read::Amounts::host_ns);
  }
  return rows;
}

std::string difference(const Odd& odd) {
  std::string all;
  std::size_t shown = 0;
  for (const auto& [key, more] : odd.more) {
    if (shown++ == kDifferencesShown) {
      const std::size_t left = odd.more.size() - kDifferencesShown;
      return fmt::format("{}, and {} other difference{}", all, left, left == 1 ? "" : "s");
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
  const std::vector<Odd> all = stats::odd_ones(totals);
  for (std::size_t i = 0; i < std::min(all.size(), kOddShown); ++i) {
    const std::vector<std::int64_t>& steps = all[i].steps;
    out += fmt::format("  {} {}: {} than in most\n", steps.size() == 1 ? "step" : "steps",
                       text::ranges(steps), difference(all[i]));
  }
  if (all.size() > kOddShown) {
    const std::size_t left = all.size() - kOddShown;
    out +=
        fmt::format("  and {} other kind{} of steps (all: --json)\n", left, left == 1 ? "" : "s");
  }
  return out;
}

// Says how a step's calls differ from those of most.
using Difference = std::pair<stats::SizeKey, std::int64_t>;
using Differences = std::map<std::int64_t, std::vector<Difference>>;

Differences differences_of(const StepTotals& totals) {
  Differences all;
  for (const Odd& o : stats::odd_ones(totals)) {
    for (const std::int64_t step : o.steps) all[step].assign(o.more.begin(), o.more.end());
  }
  return all;
}

Json differences_json(const std::vector<Difference>& of_step) {
  static const std::vector<Column<Difference>> kColumns = {
      {nullptr, "bucket", Unit::text,
       [](const Difference& d) { return std::string(bucket_name(d.first.bucket)); }},
      {nullptr, "bytes", Unit::bytes, [](const Difference& d) { return d.first.bytes; }},
      {nullptr, "at_least", Unit::text, [](const Difference& d) { return Json(d.first.at_least); }},
      {nullptr, "more_calls", Unit::number, [](const Difference& d) { return d.second; }}};
  return table_json(kColumns, of_step);
}

Json buckets_json(const stats::Buckets& buckets) {
  static const auto kColumns = [] {
    std::vector<Column<BucketRow>> all = {{nullptr, "bucket", Unit::text, &BucketRow::bucket}};
    append(all, call_columns<BucketRow>());
    all.push_back(figure<BucketRow>(nullptr, "host_ns", Unit::ns, &read::Amounts::host_ns));
    return all;
  }();
  std::vector<BucketRow> rows;
  add_rows(rows, "", buckets);
  return to_json(sheet(kColumns, rows, For::programs), Shape::members);
}

// Each step by itself, and how they were found.
Section every_step(const StepTotals& totals, const steps::Found& found) {
  const bool none = found.how == steps::How::none;
  const auto if_found = [&](auto fact) { return none ? Json() : Json(fact); };
  std::vector<std::string> unknown = found.unknown;
  if (none) unknown.insert(unknown.begin(), found.why);
  Section of = {
      .at = "",
      .shape = none ? Shape::row : Shape::rows,
      .facts = {{"steps_found", if_found(found.how == steps::How::mark ? "mark" : "period")},
                {"steps_exact", if_found(found.exact)},
                {"steps_whole", if_found(found.whole_steps)},
                {"steps_counted_on", if_found(found.counted_on)},
                {"steps_unknown", unknown}}};
  if (none) return of;
  const Differences differences = differences_of(totals);
  const std::vector<Column<StepFigures>> columns = {
      {nullptr, "step", Unit::number, &StepFigures::step},
      {nullptr, "ts", Unit::number, &StepFigures::from_ns},
      {nullptr, "dur", Unit::number,
       [](const StepFigures& s) { return or_unknown(s.length_ns()); }},
      {nullptr, "buckets", Unit::text,
       [](const StepFigures& s) { return buckets_json(stats::buckets_of(s)); }},
      {nullptr, "differs", Unit::text, [&](const StepFigures& s) {
         const auto of_step = differences.find(s.step);
         return of_step == differences.end() ? Json::array() : differences_json(of_step->second);
       }}};
  of.table = sheet(columns, totals, For::programs);
  return of;
}

}  // namespace

std::string named(const stats::StepList& steps) {
  std::string all;
  for (const auto& [first, last] : steps.ranges) {
    if (!all.empty()) all += ',';
    all += std::to_string(first);
    if (last != first) all += "-" + (last == INT64_MAX ? "" : std::to_string(last));
  }
  return all;
}

std::string how_found(const steps::Found& found) {
  if (found.how == steps::How::none) {
    return fmt::format("  Not known: {}.\n  -> {}\n", found.why, kMarkThem);
  }
  const std::size_t n = found.steps.size();
  std::string out =
      found.how == steps::How::mark
          ? fmt::format("  {}, marked by the program.\n", diagnose::counted(n, "step"))
      : found.whole_steps
          ? fmt::format("  {}, found from what repeats.\n", diagnose::counted(n, "step"))
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

std::vector<Section> sections_of(const StepTotals& totals, const steps::Found& found, For who) {
  if (who == For::programs) return {every_step(totals, found)};
  Section of = {.title = "Steps", .lead = how_found(found)};
  if (found.how != steps::How::none && totals.size() != found.steps.size()) {
    of.lead += fmt::format("  {} of them are shown.\n", thousands(totals.size()));
  }
  if (totals.empty()) return {of};
  of.table = sheet(figure_columns(), rows_of(totals), who);
  of.notes =
      odd_text(totals) +
      "  Calls, bytes and host time are sums over the ranks. The step's time is the mean of "
      "the hosts' that do not run ahead of the others, which may run ahead of their devices: "
      "tprof report tells the devices'.\n";
  return {of};
}

}  // namespace tprof::report
