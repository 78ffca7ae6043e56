#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/figures.h"
#include "report/findings.h"
#include "report/views.h"
#include "symbols/frames.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using read::Amounts;
using stats::SiteFrame;
using stats::SiteKey;
using text::printable;
using text::thousands;

constexpr std::size_t kSitesShown = 60;
constexpr std::size_t kLongest = 72;

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string text_of(const symbols::Place& p) {
  if (p.file.empty()) return p.function;
  return fmt::format("{}:{} {}", file_name(p.file), p.line, p.function);
}

// Returns what is known of a native frame, with all that was inlined.
std::vector<std::string> texts_of(const symbols::Frame& frame, const symbols::Names& names) {
  std::vector<std::string> texts;
  for (const symbols::Place& p : names.of(frame)) texts.push_back(frame.object + " " + text_of(p));
  if (texts.empty()) texts.push_back(fmt::format("{}+0x{:x}", frame.object, frame.offset));
  return texts;
}

// Returns what made the call: the innermost frame, native or Python's.
std::string caller(const SiteKey& site, const symbols::Names& names) {
  if (!site.native.empty() && !names.of(site.native[0]).empty()) {
    return texts_of(site.native[0], names)[0];
  }
  if (!site.symbol.empty()) return site.object + " " + symbols::readable(site.symbol);
  if (!site.object.empty()) return fmt::format("{}+0x{:x}", site.object, site.offset);
  if (!site.native.empty()) return texts_of(site.native[0], names)[0];
  return site.frames.empty() ? "-" : stats::text_of(site.frames[0]);
}

std::string place(const SiteKey& site) {
  if (const SiteFrame* own = stats::program_frame(site)) return stats::text_of(*own);
  return site.frames.empty() ? "-" : stats::text_of(site.frames.back());
}

// Cuts long text between characters, not within one.
std::string cut(const std::string& text) {
  if (text.size() <= kLongest) return printable(text);
  std::size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;
  return printable(text.substr(0, end)) + "...";
}

// Lists the native stacks of the sites that moved most, as far as it can be read at a glance.
std::string stack_lists(const stats::SiteTotals& totals) {
  constexpr std::size_t kStacks = 5;
  constexpr std::size_t kFrames = 12;
  using Moved = const std::pair<const std::pair<SiteKey, std::pair<Bucket, std::string>>, Amounts>;
  std::vector<Moved*> sites;
  for (Moved& entry : totals.calls) {
    if (!entry.first.first.native.empty()) sites.push_back(&entry);
  }
  std::ranges::stable_sort(sites, std::ranges::greater(), [](const Moved* e) {
    return std::pair(e->second.bytes, e->second.calls);
  });
  std::string out;
  for (std::size_t i = 0; i < std::min(sites.size(), kStacks); ++i) {
    const auto& [key, amounts] = *sites[i];
    const SiteKey& site = key.first;
    out += fmt::format("  {}, {} {}, {}, came through\n", printable(key.second.second),
                       thousands(amounts.calls), amounts.calls == 1 ? "call" : "calls",
                       text::bytes(amounts.bytes));
    std::vector<std::string> lines;
    for (const symbols::Frame& frame : site.native) {
      for (std::string& line : texts_of(frame, totals.names)) lines.push_back(std::move(line));
    }
    for (std::size_t f = 0; f < std::min(lines.size(), kFrames); ++f) {
      out += fmt::format("    {}\n", cut(lines[f]));
    }
    if (lines.size() > kFrames || site.native_cut) out += "    ...\n";
  }
  if (sites.size() > kStacks) out += "  and others (all of them: --json)\n";
  return out;
}

struct Row {
  std::string place;
  std::string caller;
  Bucket bucket;
  std::string function;
  Amounts amounts;
  const SiteKey* site = nullptr;  // null: of several that look alike
};

// Adds up sites that look alike here. The JSON has each as a whole.
std::vector<Row> rows_of(const stats::SiteTotals& totals) {
  using Shown = std::tuple<std::string, std::string, Bucket, std::string>;
  std::map<Shown, Amounts> sums;
  for (const auto& [key, amounts] : totals.calls) {
    const auto& [site, op] = key;
    sums[{site.known() ? place(site) : "(not known)", caller(site, totals.names), op.first,
          op.second}] += amounts;
  }
  std::vector<Row> rows;
  rows.reserve(sums.size());
  for (const auto& [shown, amounts] : sums) {
    rows.push_back(
        {std::get<0>(shown), std::get<1>(shown), std::get<2>(shown), std::get<3>(shown), amounts});
  }
  std::ranges::stable_sort(rows, std::ranges::greater(), [](const Row& r) {
    return std::pair(r.amounts.bytes, r.amounts.calls);
  });
  return rows;
}

std::vector<Column<Row>> site_columns() {
  return {{"in the program", nullptr, Unit::text, [](const Row& r) { return cut(r.place); }},
          {"called by", nullptr, Unit::text, [](const Row& r) { return cut(r.caller); }},
          {"bucket", "bucket", Unit::text,
           [](const Row& r) { return std::string(bucket_name(r.bucket)); }},
          {"operation", "name", Unit::text, &Row::function, Show::if_room},
          figure<Row>("calls", "calls", Unit::count, &Amounts::calls),
          figure<Row>("bytes", "bytes", Unit::bytes, &Amounts::bytes)};
}

Json frames_json(const SiteKey& site) {
  Json frames = Json::array();
  for (const SiteFrame& f : site.frames) {
    frames.push_back({{"function", f.function}, {"file", f.file}, {"line", f.line}});
  }
  return frames;
}

Json native_json(const SiteKey& site, const symbols::Names& names) {
  Json native = Json::array();
  for (const symbols::Frame& frame : site.native) {
    Json places = Json::array();
    for (const symbols::Place& p : names.of(frame)) {
      places.push_back({{"function", or_null(p.function)},
                        {"file", or_null(p.file)},
                        {"line", p.file.empty() ? Json() : Json(p.line)}});
    }
    native.push_back(
        {{"object", frame.object}, {"offset", frame.offset}, {"places", std::move(places)}});
  }
  return native;
}

// Adds what tells a single site from all others: for programs.
std::vector<Column<Row>> whole_columns(const symbols::Names& names) {
  std::vector<Column<Row>> all = {
      {nullptr, "object", Unit::name, [](const Row& r) { return or_unknown(r.site->object); }},
      {nullptr, "offset", Unit::number,
       [](const Row& r) { return r.site->object.empty() ? Value() : Value(r.site->offset); }},
      {nullptr, "symbol", Unit::name, [](const Row& r) { return or_unknown(r.site->symbol); }},
      {nullptr, "frames", Unit::text, [](const Row& r) { return frames_json(*r.site); }},
      {nullptr, "native", Unit::text,
       [&names](const Row& r) { return native_json(*r.site, names); }},
      {nullptr, "native_cut", Unit::text, [](const Row& r) { return Json(r.site->native_cut); }}};
  append(all, site_columns());
  append(all, {figure<Row>(nullptr, "count", Unit::count, &Amounts::count),
               figure<Row>(nullptr, "host_ns", Unit::ns, &Amounts::host_ns),
               figure<Row>(nullptr, "host_ns_max", Unit::ns, &Amounts::host_ns_max)});
  return all;
}

}  // namespace

Section section_of(const stats::SiteTotals& totals, For who) {
  Section s = {.title = "Call sites", .at = "", .room = {.rows = kSitesShown}};
  if (who == For::programs) {
    std::vector<Row> rows;
    for (const auto& [key, a] : totals.calls) {
      const auto& [site, op] = key;
      rows.push_back({"", "", op.first, op.second, a, &site});
    }
    s.table = sheet(whole_columns(totals.names), rows, who);
    return s;
  }
  if (std::ranges::none_of(totals.calls, [](const auto& c) { return c.first.first.known(); })) {
    s.lead = "  none. They are recorded with TPROF_CALLSITE=native, python or both.\n";
    return s;
  }
  std::vector<Column<Row>> shown = site_columns();
  shown.push_back({"mean host", nullptr, Unit::ns,
                   [](const Row& r) { return r.amounts.host_ns / r.amounts.calls; },
                   Show::if_room});
  s.table = sheet(shown, rows_of(totals), who);
  s.notes =
      "  in the program: the innermost Python frame outside of installed packages, else the "
      "outermost "
      "that is known; - if Python was not running.\n" +
      stack_lists(totals);
  if (!totals.all_lines) s.notes += "  Not every call has a line: these are lower bounds.\n";
  return s;
}

}  // namespace tprof::report
