#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "check/names.h"
#include "report/views.h"
#include "tables/ranges.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using tables::Payloads;
using tables::RangeKey;
using tables::RangeTotal;

constexpr std::size_t kRangesShown = 40;
constexpr std::size_t kLongestName = 60;  // bytes, in the table

struct RangeRow : RangeKey, RangeTotal {};

std::vector<RangeRow> by_time(const tables::RangeTotals& totals) {
  std::vector<RangeRow> all;
  for (const auto& [key, total] : totals.ranges) all.push_back({key, total});
  std::ranges::stable_sort(all, std::ranges::greater(),
                           [](const RangeRow& r) { return r.time.total_ns; });
  return all;
}

Json whole_or_real(long double v) {
  constexpr long double kPast = 18446744073709551616.0L;  // 2^64
  if (v != std::floor(v) || v >= kPast || v < -kPast / 2) return static_cast<double>(v);
  if (v < 0) return static_cast<std::int64_t>(v);
  return static_cast<std::uint64_t>(v);
}

Json payload_json(const Payloads& p) {
  if (p.count == 0) return nullptr;
  return {{"count", p.count},
          {"sum", whole_or_real(p.sum)},
          {"mean", whole_or_real(p.mean())},
          {"min", whole_or_real(p.min)},
          {"max", whole_or_real(p.max)}};
}

// True if the calls inside are known, which they are not for start/end ranges.
bool holds_calls(const RangeRow& r) {
  const bool only_apart = r.apart != 0 && r.apart == r.time.count && r.open == 0;
  return !r.mark && !only_apart;
}

Value inside_json(const RangeRow& r) {
  if (!holds_calls(r)) return {};
  Json inside = Json::object();
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    const auto& [calls, bytes] = r.inside[b];
    if (calls != 0) inside[std::string(kBuckets[b].name)] = {{"calls", calls}, {"bytes", bytes}};
  }
  return inside;
}

// `whole`: only if every scope has a line.
template <typename Of>
Column<RangeRow> time(const char* title, const char* key, Of of, Show show, bool whole = false) {
  return {title, key, Unit::ns,
          [of, whole](const RangeRow& r) {
            const bool known = !r.mark && r.time.count != 0 && (!whole || r.beyond == 0);
            return known ? Value(std::invoke(of, r.time)) : Value();
          },
          show};
}

Column<RangeRow> payload(const char* title, int digits, long double (*of)(const Payloads&)) {
  return {title, nullptr, Unit::right_text,
          [=](const RangeRow& r) {
            if (r.payloads.count == 0) return Value();
            return Value(fmt::format("{:.{}g}", static_cast<double>(of(r.payloads)), digits));
          },
          Show::if_any};
}

std::vector<Column<RangeRow>> range_columns(bool all_lines) {
  using tables::Spread;
  constexpr int kDigits = 15;
  std::vector<Column<RangeRow>> all = {
      {"range", nullptr, Unit::text,
       [](const RangeRow& r) { return cut(r.name, kLongestName) + (r.mark ? " (mark)" : ""); }},
      {nullptr, "name", Unit::text, &RangeRow::name},
      {nullptr, "mark", Unit::text, &RangeRow::mark},
      {"domain", "domain", Unit::name, &RangeRow::domain, Show::if_any},
      {"category", "category", Unit::name,
       [](const RangeRow& r) {
         return r.category == 0 ? Value(r.category_name) : Value(r.category);
       },
       Show::if_any},
      {nullptr, "color", Unit::name, &RangeRow::color},
      {nullptr, "payload", Unit::text, [](const RangeRow& r) { return payload_json(r.payloads); }},
      {"ranks", "ranks", Unit::text, &RangeRow::ranks},
      {nullptr, "rank_count", Unit::count, [](const RangeRow& r) { return r.ranks.size(); }},
      {"count", "count", Unit::count, [](const RangeRow& r) { return r.time.count; }},
      time("total", "total_ns", &Spread::total_ns, Show::always),
      time("mean", "mean_ns", &Spread::mean_ns, Show::if_room),
      time("std", "std_ns", &Spread::std_ns, Show::if_room, true),
      time("min", "min_ns", &Spread::min_ns, Show::if_room, true),
      time("max", "max_ns", &Spread::max_ns, Show::if_room),
      {"on device", "device_ns", Unit::ns,
       [](const RangeRow& r) { return r.device_timed == 0 ? Value() : Value(r.device_ns); },
       Show::if_any},
      {"timed", "device_timed", Unit::count_not_0, &RangeRow::device_timed, Show::if_any},
      {"open", "open", Unit::count, &RangeRow::open, Show::if_any},
      {"errors", "errors", Unit::count, &RangeRow::errors, Show::if_any},
      {"elements", "elements", Unit::count, &RangeRow::elements, Show::if_any},
      {"own bytes", "bytes", Unit::bytes_not_0, &RangeRow::bytes, Show::if_any},
      {nullptr, "without_line", Unit::count, &RangeRow::beyond}};
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    const auto inside = [b](std::uint64_t tables::Moved::*of) {
      return [=](const RangeRow& r) { return holds_calls(r) ? Value(r.inside[b].*of) : Value(); };
    };
    all.push_back({kBuckets[b].name.data(), nullptr, Unit::count, inside(&tables::Moved::calls),
                   Show::if_any});
    all.push_back(
        {"bytes", nullptr, Unit::bytes_not_0, inside(&tables::Moved::bytes), Show::if_room});
  }
  append(all, {{"payloads", nullptr, Unit::count_not_0,
                [](const RangeRow& r) { return r.payloads.count; }, Show::if_any},
               payload("payload sum", kDigits, [](const Payloads& p) { return p.sum; }),
               payload("payload mean", 6, [](const Payloads& p) { return p.mean(); }),
               payload("payload min", kDigits, [](const Payloads& p) { return p.min; }),
               payload("payload max", kDigits, [](const Payloads& p) { return p.max; }),
               {nullptr, "inside", Unit::text, inside_json},
               {nullptr, "inside_exact", Unit::text, [all_lines](const RangeRow& r) {
                  return all_lines && r.vague == 0 && r.apart == 0;
                }}});
  return all;
}

Notes notes(const tables::RangeTotals& totals) {
  RangeTotal all;
  for (const auto& [key, total] : totals.ranges) all += total;
  return notes_if(
      {{!totals.ranges.empty(),
        "Inside: calls that the thread of a range began while it was open (PyTorch's backward runs "
        "on threads of its own), nested ranges included."},
       {all.elements + all.bytes + all.errors != 0,
        "elements, own bytes: given by the program's scopes; errors: an exception left the scope."},
       {all.open != 0,
        "open: ranges that were open when the trace ended; no figure includes their time."},
       {all.beyond != 0, check::counted(all.beyond, "scope") +
                             " without a line: included in count, total, mean and max, but not in "
                             "the calls inside; std and min are unknown."},
       {all.vague != 0, check::counted(all.vague, "range") + " may hold more calls than shown."},
       {!totals.all_lines, "Not every call has a line: the calls inside are lower bounds."},
       {totals.dropped != 0, fmt::format("Not shown here: {} without a line.",
                                         check::counted(totals.dropped, "range"))}});
}

}  // namespace

std::vector<Section> range_sections(const tables::Summary& of, For who) {
  const tables::RangeTotals totals = tables::range_totals(*of.lines);
  Section s = {.title = "NVTX ranges", .at = "", .room = {.rows = kRangesShown, .names = " names"}};
  if (totals.ranges.empty()) {
    const std::string_view by = job::no_lines_by(*of.job);
    s.lead = {by.empty()
                  ? "none: the program made none, or they did not arrive: they do under `tprof "
                    "run`, or with NVTX_INJECTION64_PATH set to the path of libtprof.so."
                  : fmt::format("none has a line ({}).", by)};
  } else {
    s.table = sheet(range_columns(totals.all_lines), by_time(totals), who);
  }
  s.notes = notes(totals);
  return {std::move(s)};
}

}  // namespace tprof::report
