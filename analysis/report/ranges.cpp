#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "report/json.h"
#include "report/places.h"
#include "report/times.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using stats::Inside;
using stats::RangeKey;
using stats::RangeTotal;
using text::Table;
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

std::string figure(long double v) {
  return fmt::format("{:.15g}", static_cast<double>(v));
}

void payload_cells(const stats::Payloads& p, std::vector<std::string>& cells) {
  if (p.count == 0) return void(cells.insert(cells.end(), 5, "-"));
  cells.insert(cells.end(), {thousands(p.count), figure(p.sum),
                             fmt::format("{:.6g}", static_cast<double>(p.mean())), figure(p.min),
                             figure(p.max)});
}

std::string shown_name(const RangeKey& key) {
  return shortened(text::printable(key.name)) + (key.mark ? " (mark)" : "");
}

nlohmann::ordered_json category_json(const RangeKey& key) {
  if (key.category != 0) return key.category;
  if (!key.category_name.empty()) return key.category_name;
  return nullptr;
}

nlohmann::ordered_json whole_or_real(long double v) {
  constexpr long double kPast = 18446744073709551616.0L;  // 2^64
  if (v != std::floor(v) || v >= kPast || v < -kPast / 2) return static_cast<double>(v);
  if (v < 0) return static_cast<std::int64_t>(v);
  return static_cast<std::uint64_t>(v);
}

nlohmann::ordered_json to_json(const stats::Payloads& p) {
  if (p.count == 0) return nullptr;
  return {{"count", p.count},
          {"sum", whole_or_real(p.sum)},
          {"mean", whole_or_real(p.mean())},
          {"min", whole_or_real(p.min)},
          {"max", whole_or_real(p.max)}};
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
    out += fmt::format(
        "  {} scopes have no line: they are in count, total, mean and max, and not in the calls "
        "inside; their std and min are not known.\n",
        thousands(beyond));
  }
  std::uint64_t vague = 0;
  for (const auto& [key, total] : totals.ranges) vague += total.vague;
  if (vague != 0) out += fmt::format("  {} ranges may hold more calls than shown.\n", vague);
  if (!totals.all_lines) out += "  Not every call has a line: the calls inside are lower bounds.\n";
  if (totals.dropped != 0) {
    out += fmt::format("  {} ranges have no line and are not shown here.\n",
                       thousands(totals.dropped));
  }
  return out;
}

}  // namespace

std::string range_table(const stats::RangeTotals& totals) {
  if (totals.ranges.empty()) {
    return "  none. They arrive under `tprof run`, or with NVTX_INJECTION64_PATH set to the path "
           "of "
           "libtprof.so.\n" +
           (totals.dropped == 0 ? std::string() : notes(totals, false, false));
  }
  const std::vector<const Entry*> all = by_time(totals);
  Inside any{};
  bool domains = false;
  bool categories = false;
  bool open = false;
  bool payloads = false;
  bool elements = false;
  bool bytes = false;
  bool errors = false;
  bool device = false;
  for (const Entry* e : all) {
    stats::add(any, e->second.inside);
    domains = domains || !e->first.domain.empty();
    categories = categories || !category(e->first).empty();
    open = open || e->second.open != 0;
    payloads = payloads || e->second.payloads.count != 0;
    elements = elements || e->second.elements != 0;
    bytes = bytes || e->second.bytes != 0;
    errors = errors || e->second.errors != 0;
    device = device || e->second.device_timed != 0;
  }
  using enum Table::Align;
  std::vector<std::pair<std::string, Table::Align>> columns = {{"range", left}};
  if (domains) columns.emplace_back("domain", left);
  if (categories) columns.emplace_back("category", left);
  columns.emplace_back("ranks", left);
  for (const char* name : {"count", "total", "mean", "std", "min", "max"}) {
    columns.emplace_back(name, right);
  }
  if (device) {
    columns.emplace_back("on device", right);
    columns.emplace_back("timed", right);
  }
  if (open) columns.emplace_back("open", right);
  if (errors) columns.emplace_back("errors", right);
  if (elements) columns.emplace_back("elements", right);
  if (bytes) columns.emplace_back("own bytes", right);
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (any[b].calls == 0) continue;
    columns.emplace_back(kBuckets[b].name, right);
    columns.emplace_back("bytes", right);
  }
  if (payloads) {
    for (const char* name :
         {"payloads", "payload sum", "payload mean", "payload min", "payload max"}) {
      columns.emplace_back(name, right);
    }
  }
  Table table(columns);
  for (std::size_t i = 0; i < std::min(all.size(), kRangesShown); ++i) {
    const auto& [key, total] = *all[i];
    std::vector<std::string> cells = {shown_name(key)};
    if (domains) cells.push_back(text::printable(key.domain));
    if (categories) cells.push_back(category(key));
    cells.push_back(text::ranges({total.ranks.begin(), total.ranks.end()}));
    cells.push_back(thousands(total.time.count));
    if (key.mark || total.time.count == 0) {
      cells.insert(cells.end(), 5, "-");
    } else {
      cells.insert(cells.end(), {text::duration(total.time.total_ns), mean_time(total.time),
                                 total.beyond == 0 ? std_time(total.time) : "-",
                                 total.beyond == 0 ? text::duration(total.time.min_ns) : "-",
                                 text::duration(total.time.max_ns)});
    }
    if (device) {
      cells.push_back(total.device_timed == 0 ? "-" : text::duration(total.device_ns));
      cells.push_back(total.device_timed == 0 ? "-" : thousands(total.device_timed));
    }
    if (open) cells.push_back(thousands(total.open));
    if (errors) cells.push_back(thousands(total.errors));
    if (elements) cells.push_back(thousands(total.elements));
    if (bytes) cells.push_back(total.bytes == 0 ? "-" : text::bytes(total.bytes));
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      if (any[b].calls == 0) continue;
      const stats::Moved& moved = total.inside[b];
      const bool none = key.mark || only_apart(total);
      cells.push_back(none ? "-" : thousands(moved.calls));
      cells.push_back(none || moved.calls == 0 ? "-" : text::bytes(moved.bytes));
    }
    if (payloads) payload_cells(total.payloads, cells);
    table.row(std::move(cells));
  }
  std::string out = table.str();
  if (all.size() > kRangesShown) {
    out += fmt::format("  and {} more names (all of them: --json)\n", all.size() - kRangesShown);
  }
  return out + notes(totals, open, elements || bytes || errors);
}

nlohmann::ordered_json to_json(const stats::RangeTotals& totals) {
  Json all = Json::array();
  for (const Entry* e : by_time(totals)) {
    const auto& [key, total] = *e;
    const bool timed = !key.mark && total.time.count != 0;
    const auto time = [&](auto value) { return timed ? Json(value) : Json(); };
    Json j = {{"name", key.name},
              {"domain", key.domain.empty() ? Json() : Json(key.domain)},
              {"mark", key.mark},
              {"category", category_json(key)},
              {"color", total.color.value_or("").empty() ? Json() : Json(*total.color)},
              {"payload", to_json(total.payloads)},
              {"ranks", total.ranks},
              {"rank_count", total.ranks.size()},
              {"count", total.time.count},
              {"open", total.open},
              {"errors", total.errors},
              {"elements", total.elements},
              {"bytes", total.bytes},
              {"total_ns", time(total.time.total_ns)},
              {"mean_ns", time(std::llround(total.time.mean_ns))},
              {"std_ns", total.beyond == 0 ? time(std::llround(total.time.std_ns())) : Json()},
              {"min_ns", total.beyond == 0 ? time(total.time.min_ns) : Json()},
              {"max_ns", time(total.time.max_ns)},
              {"without_line", total.beyond},
              {"device_timed", total.device_timed},
              {"device_ns", total.device_timed == 0 ? Json() : Json(total.device_ns)},
              {"inside", Json()},
              {"inside_exact", totals.all_lines && total.vague == 0 && total.apart == 0}};
    if (!key.mark && !only_apart(total)) {
      Json& inside = j["inside"] = Json::object();
      for (std::size_t b = 0; b < kBucketCount; ++b) {
        const stats::Moved& moved = total.inside[b];
        if (moved.calls == 0) continue;
        inside[std::string(kBuckets[b].name)] = {{"calls", moved.calls}, {"bytes", moved.bytes}};
      }
    }
    all.push_back(std::move(j));
  }
  return all;
}

}  // namespace tprof::report
