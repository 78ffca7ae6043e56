
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "check/names.h"
#include "report/views.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using tables::Odd;
using StepFigures = tables::StepOf<tables::SizeKey>;
using tables::StepTotals;
using text::thousands;
constexpr std::size_t kOddShown = 20;
constexpr std::size_t kDifferencesShown = 6;

Sheet figures_of_steps(const StepTotals& totals) {
  Sheet sheet{.heads = {{"of a step", nullptr, Unit::text},
                        {"", nullptr, Unit::text},
                        {"min", nullptr, Unit::right_text},
                        {"median", nullptr, Unit::right_text},
                        {"p99", nullptr, Unit::right_text},
                        {"max", nullptr, Unit::right_text}}};
  const auto add = [&](std::string_view bucket, const char* what, auto show,
                       std::vector<std::uint64_t> values) {
    std::ranges::sort(values);
    std::vector<Value>& row = sheet.rows.emplace_back(std::vector<Value>{bucket, what});
    for (const std::size_t percent : {0, 50, 99, 100}) {  // nearest-rank percentiles
      row.emplace_back(show(values[(percent * (values.size() - 1) + 99) / 100]));
    }
  };
  std::vector<std::uint64_t> times;
  std::vector<tables::Buckets> buckets;
  for (const StepFigures& s : totals) {
    if (const auto ns = s.length_ns()) times.push_back(static_cast<std::uint64_t>(*ns));
    buckets.push_back(tables::buckets_of(s));
  }
  if (!times.empty()) add("", "time", text::duration, times);
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (std::ranges::none_of(buckets, [b](const auto& all) { return all[b].calls != 0; })) continue;
    const auto values = [&](auto figure) {
      std::vector<std::uint64_t> of;
      for (const tables::Buckets& all : buckets) of.push_back(all[b].*figure);
      return of;
    };
    add(kBuckets[b].name, "calls", text::thousands, values(&read::Amounts::calls));
    add("", "bytes", text::bytes, values(&read::Amounts::bytes));
    add("", "host time", text::duration, values(&read::Amounts::host_ns));
  }
  return sheet;
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

Notes odd_text(const StepTotals& totals) {
  Notes out;
  const std::vector<Odd> all = tables::odd_ones(totals);
  for (std::size_t i = 0; i < std::min(all.size(), kOddShown); ++i) {
    const std::vector<std::int64_t>& steps = all[i].steps;
    out.push_back(fmt::format("{} {}: {} than in most", steps.size() == 1 ? "step" : "steps",
                              text::ranges(steps), difference(all[i])));
  }
  if (all.size() > kOddShown) {
    const std::size_t left = all.size() - kOddShown;
    out.push_back(
        fmt::format("and {} other kind{} of steps (all: --json)", left, left == 1 ? "" : "s"));
  }
  return out;
}

// By step: how its calls differ from most steps.
std::map<std::int64_t, Json> differences_of(const StepTotals& totals) {
  std::map<std::int64_t, Json> all;
  for (const Odd& odd : tables::odd_ones(totals)) {
    Json differs = Json::array();
    for (const auto& [key, more] : odd.more) {
      differs.push_back({{"bucket", bucket_name(key.bucket)},
                         {"bytes", key.bytes},
                         {"at_least", key.at_least},
                         {"more_calls", more}});
    }
    for (const std::int64_t step : odd.steps) all[step] = differs;
  }
  return all;
}

Json buckets_json(const tables::Buckets& buckets) {
  static const Figures kColumns = [] {
    Figures all = call_figures();
    all.push_back({nullptr, "host_ns", Unit::ns, &read::Amounts::host_ns});
    return all;
  }();
  Json all = Json::object();
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (buckets[b].calls != 0) all[std::string(kBuckets[b].name)] = row_json(kColumns, buckets[b]);
  }
  return all;
}

// Each step, and how steps were found.
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
  const std::map<std::int64_t, Json> differences = differences_of(totals);
  const std::vector<Column<StepFigures>> columns = {
      {nullptr, "step", Unit::number, &StepFigures::step},
      {nullptr, "ts", Unit::number, &StepFigures::from_ns},
      {nullptr, "dur", Unit::number, &StepFigures::length_ns},
      {nullptr, "buckets", Unit::text,
       [](const StepFigures& s) { return buckets_json(tables::buckets_of(s)); }},
      {nullptr, "differs", Unit::text, [&](const StepFigures& s) {
         const auto of_step = differences.find(s.step);
         return of_step == differences.end() ? Json::array() : of_step->second;
       }}};
  of.table = sheet(columns, totals, For::programs);
  return of;
}

}  // namespace

std::string named(const tables::StepList& steps) {
  std::string all;
  for (const auto& [first, last] : steps.ranges) {
    if (!all.empty()) all += ',';
    all += std::to_string(first);
    if (last != first) all += "-" + (last == INT64_MAX ? "" : std::to_string(last));
  }
  return all;
}

Notes how_found(const steps::Found& found) {
  if (found.how == steps::How::none) {
    return {fmt::format("Not known: {}.", found.why), fmt::format("-> {}", kMarkThem)};
  }
  const std::string n = check::counted(found.steps.size(), "step");
  const bool marked = found.how == steps::How::mark;
  Notes out = notes_if(
      {{marked, n + ", marked by the program."},
       {!marked && found.whole_steps, n + ", found by repetition."},
       {!marked && !found.whole_steps,
        thousands(found.steps.size()) +
            " repeats: each may be a step, or a micro-batch of a step or of an evaluation."},
       {found.counted_on,
        "The program's step numbers restart: here steps are renumbered, so that each number is "
        "unique."}});
  for (const std::string& sentence : found.unknown) out.push_back(sentence + ".");
  return out;
}

std::vector<Section> step_sections(const tables::Summary& s, For who) {
  const steps::Found& found = s.found;
  const StepTotals totals =
      tables::step_totals(*s.lines, found, s.only_steps.value_or(tables::StepList{}));
  if (who == For::programs) return {every_step(totals, found)};
  Section of = {.title = "Steps", .lead = how_found(found)};
  if (found.how != steps::How::none && totals.size() != found.steps.size()) {
    of.lead.push_back(fmt::format("{} of them are shown.", thousands(totals.size())));
  }
  if (totals.empty()) return {of};
  of.table = figures_of_steps(totals);
  of.notes = odd_text(totals);
  of.notes.emplace_back(
      "Calls, bytes and host time are sums over the ranks. The step's time is the mean over the "
      "hosts that do not run ahead of other hosts; all may run ahead of their devices, whose times "
      "tprof report has.");
  return {of};
}

}  // namespace tprof::report
