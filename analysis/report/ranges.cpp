#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "diagnose/names.h"
#include "report/json.h"
#include "report/table.h"
#include "report/views.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using stats::RangeKey;
using stats::RangeTotal;
using text::thousands;

constexpr std::size_t kRangesShown = 40;
constexpr std::size_t kLongestName = 60;  // bytes, in the table

using Entry = std::pair<const RangeKey, RangeTotal>;

std::vector<const Entry*> by_time(const stats::RangeTotals& totals) {
  std::vector<const Entry*> all;
  for (const Entry& entry : totals.ranges) all.push_back(&entry);
  std::ranges::stable_sort(all, std::ranges::greater(),
                           [](const Entry* e) { return e->second.time.total_ns; });
  return all;
}

// Shortens a long name, without cutting a character in two.
std::string shortened(std::string name) {
  if (name.size() <= kLongestName) return name;
  std::size_t end = kLongestName;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0U) == 0x80) --end;
  return name.substr(0, end) + "...";
}

// True if all were started and ended by themselves. Nothing is known of what lies within such
// ranges.
bool only_apart(const RangeTotal& total) {
  return total.apart != 0 && total.apart == total.time.count && total.open == 0;
}

// Returns the category's name, or its number if it has no name. Empty if there is none.
std::string category(const RangeKey& key) {
  return key.category == 0 ? text::printable(key.category_name) : std::to_string(key.category);
}

std::string digits(long double v) {
  return fmt::format("{:.15g}", static_cast<double>(v));
}

std::string shown_name(const RangeKey& key) {
  return shortened(text::printable(key.name)) + (key.mark ? " (mark)" : "");
}

Json category_json(const RangeKey& key) {
  if (key.category != 0) return key.category;
  if (!key.category_name.empty()) return key.category_name;
  return nullptr;
}

Json whole_or_real(long double v) {
  constexpr long double kPast = 18446744073709551616.0L;  // 2^64
  if (v != std::floor(v) || v >= kPast || v < -kPast / 2) return static_cast<double>(v);
  if (v < 0) return static_cast<std::int64_t>(v);
  return static_cast<std::uint64_t>(v);
}

Json payload_json(const stats::Payloads& p) {
  if (p.count == 0) return nullptr;
  return {{"count", p.count},
          {"sum", whole_or_real(p.sum)},
          {"mean", whole_or_real(p.mean())},
          {"min", whole_or_real(p.min)},
          {"max", whole_or_real(p.max)}};
}

bool timed(const Entry& e) {
  return !e.first.mark && e.second.time.count != 0;
}

// True if it is known which calls began inside.
bool holds_calls(const Entry& e) {
  return !e.first.mark && !only_apart(e.second);
}

Value inside_json(const Entry& e) {
  if (!holds_calls(e)) return {};
  Json inside = Json::object();
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    const stats::Moved& moved = e.second.inside[b];
    if (moved.calls == 0) continue;
    inside[std::string(kBuckets[b].name)] = {{"calls", moved.calls}, {"bytes", moved.bytes}};
  }
  return inside;
}

using RangeColumn = Column<const Entry*>;

// A figure of the range as a whole.
template <typename T>
RangeColumn total(const char* title, const char* key, Unit unit, T RangeTotal::*of) {
  return {title, key, unit, [of](const Entry* e) { return e->second.*of; }, Show::if_any};
}

// `whole`: only where every scope has a line.
template <typename Of>
RangeColumn time(const char* title, const char* key, Of of, Show show = Show::always,
                 bool whole = false) {
  return {title, key, Unit::ns,
          [of, whole](const Entry* e) {
            const bool known = timed(*e) && (!whole || e->second.beyond == 0);
            return known ? Value(of(e->second.time)) : Value();
          },
          show};
}

template <typename Of>
RangeColumn payload(const char* title, Of of) {
  return {title, nullptr, Unit::right_text,
          [of](const Entry* e) {
            return e->second.payloads.count == 0 ? Value() : Value(of(e->second.payloads));
          },
          Show::if_any};
}

std::vector<RangeColumn> range_columns(const stats::RangeTotals& totals) {
  using stats::Payloads;
  using stats::Spread;
  std::vector<RangeColumn> all = {
      {"range", nullptr, Unit::text, [](const Entry* e) { return shown_name(e->first); }},
      {nullptr, "name", Unit::text, [](const Entry* e) { return e->first.name; }},
      {nullptr, "mark", Unit::text, [](const Entry* e) { return Json(e->first.mark); }},
      {"domain", "domain", Unit::name, [](const Entry* e) { return or_unknown(e->first.domain); },
       Show::if_any},
      {"category", nullptr, Unit::text, [](const Entry* e) { return category(e->first); },
       Show::if_any},
      {nullptr, "category", Unit::text, [](const Entry* e) { return category_json(e->first); }},
      {nullptr, "color", Unit::text,
       [](const Entry* e) { return or_unknown(e->second.color.value_or("")); }},
      {nullptr, "payload", Unit::text,
       [](const Entry* e) { return payload_json(e->second.payloads); }},
      {"ranks", nullptr, Unit::text,
       [](const Entry* e) {
         return text::ranges({e->second.ranks.begin(), e->second.ranks.end()});
       }},
      {nullptr, "ranks", Unit::text, [](const Entry* e) { return Json(e->second.ranks); }},
      {nullptr, "rank_count", Unit::count, [](const Entry* e) { return e->second.ranks.size(); }},
      {"count", "count", Unit::count, [](const Entry* e) { return e->second.time.count; }},
      time("total", "total_ns", [](const Spread& s) { return s.total_ns; }),
      time(
          "mean", "mean_ns", [](const Spread& s) { return s.mean_ns; }, Show::if_room),
      time(
          "std", "std_ns", [](const Spread& s) { return s.std_ns(); }, Show::if_room, true),
      time(
          "min", "min_ns", [](const Spread& s) { return s.min_ns; }, Show::if_room, true),
      time(
          "max", "max_ns", [](const Spread& s) { return s.max_ns; }, Show::if_room),
      {"on device", "device_ns", Unit::ns,
       [](const Entry* e) {
         return e->second.device_timed == 0 ? Value() : Value(e->second.device_ns);
       },
       Show::if_any},
      total("timed", "device_timed", Unit::count_not_0, &RangeTotal::device_timed),
      total("open", "open", Unit::count, &RangeTotal::open),
      total("errors", "errors", Unit::count, &RangeTotal::errors),
      total("elements", "elements", Unit::count, &RangeTotal::elements),
      total("own bytes", "bytes", Unit::bytes_not_0, &RangeTotal::bytes),
      total(nullptr, "without_line", Unit::count, &RangeTotal::beyond)};
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    const bool any = std::ranges::any_of(
        totals.ranges, [b](const Entry& e) { return e.second.inside[b].calls != 0; });
    if (!any) continue;
    all.push_back({kBuckets[b].name.data(), nullptr, Unit::count, [b](const Entry* e) {
                     return holds_calls(*e) ? Value(e->second.inside[b].calls) : Value();
                   }});
    all.push_back({"bytes", nullptr, Unit::bytes,
                   [b](const Entry* e) {
                     const stats::Moved& moved = e->second.inside[b];
                     return holds_calls(*e) && moved.calls != 0 ? Value(moved.bytes) : Value();
                   },
                   Show::if_room});
  }
  append(all, {payload("payloads", [](const Payloads& p) { return thousands(p.count); }),
               payload("payload sum", [](const Payloads& p) { return digits(p.sum); }),
               payload("payload mean",
                       [](const Payloads& p) {
                         return fmt::format("{:.6g}", static_cast<double>(p.mean()));
                       }),
               payload("payload min", [](const Payloads& p) { return digits(p.min); }),
               payload("payload max", [](const Payloads& p) { return digits(p.max); }),
               {nullptr, "inside", Unit::text, [](const Entry* e) { return inside_json(*e); }},
               {nullptr, "inside_exact", Unit::text, [lines = totals.all_lines](const Entry* e) {
                  return Json(lines && e->second.vague == 0 && e->second.apart == 0);
                }}});
  return all;
}

std::string notes(const stats::RangeTotals& totals, bool open, bool told) {
  std::string out =
      "  Inside: calls that the thread of a range began while it was open (PyTorch's backward runs "
      "on threads of its own), nested ranges included.\n";
  if (told) {
    out +=
        "  elements, own bytes: as the program's scopes told them; errors: an exception left "
        "the scope.\n";
  }
  if (open)
    out += "  open: ranges that were open when the trace ended; no figure has their time.\n";
  std::uint64_t beyond = 0;
  for (const auto& [key, total] : totals.ranges) beyond += total.beyond;
  if (beyond != 0) {
    const bool one = beyond == 1;
    out += fmt::format(
        "  {} {} no line: {} in count, total, mean and max, and not in the calls inside; {} std "
        "and min are not known.\n",
        diagnose::counted(beyond, "scope"), one ? "has" : "have", one ? "it is" : "they are",
        one ? "its" : "their");
  }
  std::uint64_t vague = 0;
  for (const auto& [key, total] : totals.ranges) vague += total.vague;
  if (vague != 0)
    out += fmt::format("  {} may hold more calls than shown.\n", diagnose::counted(vague, "range"));
  if (!totals.all_lines) out += "  Not every call has a line: the calls inside are lower bounds.\n";
  if (totals.dropped != 0) {
    out += fmt::format("  {} {} not shown here.\n", diagnose::counted(totals.dropped, "range"),
                       totals.dropped == 1 ? "has no line and is" : "have no line and are");
  }
  return out;
}

}  // namespace

Section section_of(const stats::RangeTotals& totals, For who) {
  Section s = {.title = "NVTX ranges", .at = "", .room = {.rows = kRangesShown, .names = " names"}};
  if (totals.ranges.empty()) {
    s.lead =
        "  none: the program made none, or they did not arrive, as they do under `tprof run` or "
        "with "
        "NVTX_INJECTION64_PATH set to the path of libtprof.so.\n";
    if (totals.dropped != 0) s.notes = notes(totals, false, false);
    return s;
  }
  const std::vector<const Entry*> all = by_time(totals);
  const auto any = [&](auto has) {
    return std::ranges::any_of(all, [&](const Entry* e) { return has(e->second); });
  };
  const bool told = any([](const RangeTotal& t) { return t.elements + t.bytes + t.errors != 0; });
  s.table = sheet(range_columns(totals), all, who);
  s.notes = notes(totals, any([](const RangeTotal& t) { return t.open != 0; }), told);
  return s;
}

}  // namespace tprof::report
