#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "report/places.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using read::Amounts;
using stats::SiteFrame;
using stats::SiteKey;
using text::printable;
using text::Table;
using text::thousands;

constexpr std::size_t kSitesShown = 60;
constexpr std::size_t kLongest = 72;

// The name of a C++ function without its arguments.
std::string readable(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  const std::string text = status == 0 ? name.get() : symbol;
  return text.substr(0, text.find('('));
}

// What made the call: the innermost frame of Python, or the function of the library.
std::string caller(const SiteKey& site) {
  if (!site.symbol.empty()) return site.object + " " + readable(site.symbol);
  if (!site.object.empty()) return fmt::format("{}+0x{:x}", site.object, site.offset);
  return site.frames.empty() ? "-" : text_of(site.frames[0]);
}

std::string place(const SiteKey& site) {
  if (const SiteFrame* own = stats::program_frame(site)) return text_of(*own);
  return site.frames.empty() ? "-" : text_of(site.frames.back());
}

// Between characters, not within one.
std::string cut(const std::string& text) {
  if (text.size() <= kLongest) return printable(text);
  std::size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;
  return printable(text.substr(0, end)) + "...";
}

struct Row {
  std::string place;
  std::string caller;
  Bucket bucket;
  std::string function;
  Amounts amounts;
};

// Sites that look alike here are one: the whole of each is in the JSON.
std::vector<Row> rows_of(const stats::SiteTotals& totals) {
  using Shown = std::tuple<std::string, std::string, Bucket, std::string>;
  std::map<Shown, Amounts> sums;
  for (const auto& [key, amounts] : totals.calls) {
    const auto& [site, op] = key;
    sums[{site.known() ? place(site) : "(not known)", caller(site), op.first, op.second}] +=
        amounts;
  }
  std::vector<Row> rows;
  for (const auto& [shown, amounts] : sums) {
    rows.push_back(
        {std::get<0>(shown), std::get<1>(shown), std::get<2>(shown), std::get<3>(shown), amounts});
  }
  std::ranges::stable_sort(rows, std::ranges::greater(), [](const Row& r) {
    return std::pair(r.amounts.bytes, r.amounts.calls);
  });
  return rows;
}

}  // namespace

std::string site_table(const stats::SiteTotals& totals) {
  const bool any =
      std::ranges::any_of(totals.calls, [](const auto& c) { return c.first.first.known(); });
  if (!any) {
    return "  none. They are recorded with TPROF_CALLSITE=native, python or both.\n";
  }
  using enum Table::Align;
  Table table({{"in the program", left},
               {"called by", left},
               {"bucket", left},
               {"operation", left},
               {"calls", right},
               {"bytes", right},
               {"mean host", right}});
  const std::vector<Row> rows = rows_of(totals);
  for (std::size_t i = 0; i < std::min(rows.size(), kSitesShown); ++i) {
    const Row& r = rows[i];
    table.row({cut(r.place), cut(r.caller), std::string(bucket_name(r.bucket)),
               printable(r.function), thousands(r.amounts.calls), text::bytes(r.amounts.bytes),
               text::duration(r.amounts.host_ns / r.amounts.calls)});
  }
  std::string out = table.str();
  if (rows.size() > kSitesShown) {
    out += fmt::format("  and {} more (all of them: --json)\n", rows.size() - kSitesShown);
  }
  out +=
      "  in the program: the innermost Python frame outside of installed packages, else the "
      "outermost "
      "that is known; - where Python was not running.\n";
  if (!totals.all_lines) out += "  Not every call has a line: these are lower bounds.\n";
  return out;
}

nlohmann::ordered_json to_json(const stats::SiteTotals& totals) {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (const auto& [key, a] : totals.calls) {
    const auto& [site, op] = key;
    Json frames = Json::array();
    for (const SiteFrame& f : site.frames) {
      frames.push_back({{"function", f.function}, {"file", f.file}, {"line", f.line}});
    }
    all.push_back({{"object", or_null(site.object)},
                   {"offset", site.object.empty() ? Json() : Json(site.offset)},
                   {"symbol", or_null(site.symbol)},
                   {"frames", std::move(frames)},
                   {"bucket", bucket_name(op.first)},
                   {"name", op.second},
                   {"calls", a.calls},
                   {"count", a.count},
                   {"bytes", a.bytes},
                   {"host_ns", a.host_ns},
                   {"host_ns_max", a.host_ns_max}});
  }
  return all;
}

}  // namespace tprof::report
