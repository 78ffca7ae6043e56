#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "check/names.h"
#include "report/views.h"
#include "symbols/frames.h"
#include "tables/sites.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using read::Amounts;
using tables::SiteFrame;
using tables::SiteKey;
using text::printable;

constexpr std::size_t kSitesShown = 60;
constexpr std::size_t kLongest = 72;

std::string text_of(const symbols::Place& p) {
  if (p.file.empty()) return p.function;
  return tables::text_of({.function = p.function, .file = p.file, .line = p.line});
}

// Returns the texts of a native frame, including inlined functions.
std::vector<std::string> texts_of(const symbols::Frame& frame, const symbols::Names& names) {
  std::vector<std::string> texts;
  for (const symbols::Place& p : names.of(frame)) texts.push_back(frame.object + " " + text_of(p));
  if (texts.empty()) texts.push_back(fmt::format("{}+0x{:x}", frame.object, frame.offset));
  return texts;
}

// Returns the caller: the innermost frame, native or Python.
std::string caller(const SiteKey& site, const symbols::Names& names) {
  if (!site.native.empty() && !names.of(site.native[0]).empty()) {
    return texts_of(site.native[0], names)[0];
  }
  if (!site.symbol.empty()) return site.object + " " + symbols::readable(site.symbol);
  if (!site.object.empty()) return fmt::format("{}+0x{:x}", site.object, site.offset);
  if (!site.native.empty()) return texts_of(site.native[0], names)[0];
  return site.frames.empty() ? "-" : tables::text_of(site.frames[0]);
}

std::string place(const SiteKey& site) {
  if (const SiteFrame* own = tables::program_frame(site)) return tables::text_of(*own);
  return site.frames.empty() ? "-" : tables::text_of(site.frames.back());
}

// Lists the first few native stacks of the sites that moved most.
Notes stack_lists(const tables::SiteTotals& totals) {
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
  Notes out;
  for (std::size_t i = 0; i < std::min(sites.size(), kStacks); ++i) {
    const auto& [key, amounts] = *sites[i];
    const SiteKey& site = key.first;
    out.push_back(fmt::format("{}, {}, {}, came through", printable(key.second.second),
                              check::counted(amounts.calls, "call"), text::bytes(amounts.bytes)));
    std::vector<std::string> lines;
    for (const symbols::Frame& frame : site.native) {
      for (std::string& line : texts_of(frame, totals.names)) lines.push_back(std::move(line));
    }
    for (std::size_t f = 0; f < std::min(lines.size(), kFrames); ++f) {
      out.push_back("  " + cut(lines[f], kLongest));
    }
    if (lines.size() > kFrames || site.native_cut) out.emplace_back("  ...");
  }
  if (sites.size() > kStacks) out.emplace_back("and others (all of them: --json)");
  return out;
}

// A site as shown to people.
struct Shown {
  std::string place;
  std::string caller;
  Bucket bucket;
  std::string function;

  auto operator<=>(const Shown&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct Row : Shown {
  Amounts amounts;
  const SiteKey* site = nullptr;  // null: several sites that look alike
};

// Adds up sites that look alike in text. The JSON has each site.
std::vector<Row> rows_of(const tables::SiteTotals& totals) {
  std::map<Shown, Amounts> sums;
  for (const auto& [key, amounts] : totals.calls) {
    const auto& [site, op] = key;
    sums[{site.known() ? place(site) : "(not known)", caller(site, totals.names), op.first,
          op.second}] += amounts;
  }
  std::vector<Row> rows;
  for (const auto& [shown, amounts] : sums) rows.push_back({shown, amounts});
  std::ranges::stable_sort(rows, std::ranges::greater(), [](const Row& r) {
    return std::pair(r.amounts.bytes, r.amounts.calls);
  });
  return rows;
}

std::vector<Column<Row>> site_columns() {
  std::vector<Column<Row>> all = {
      {"in the program", nullptr, Unit::text, [](const Row& r) { return cut(r.place, kLongest); }},
      {"called by", nullptr, Unit::text, [](const Row& r) { return cut(r.caller, kLongest); }},
      {"bucket", "bucket", Unit::text, [](const Row& r) { return bucket_name(r.bucket); }},
      {"operation", "name", Unit::text, &Row::function, Show::if_room}};
  append(all, Figures{{"calls", "calls", Unit::count, &Amounts::calls},
                      {nullptr, "count", Unit::count, &Amounts::count},
                      {"bytes", "bytes", Unit::bytes, &Amounts::bytes},
                      {nullptr, "host_ns", Unit::ns, &Amounts::host_ns},
                      {nullptr, "host_ns_max", Unit::ns, &Amounts::host_ns_max},
                      mean_host(Show::if_room)});
  return all;
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

// Adds columns that identify a single site, for programs.
std::vector<Column<Row>> whole_columns(const symbols::Names& names) {
  std::vector<Column<Row>> all = {
      {nullptr, "object", Unit::name, [](const Row& r) { return r.site->object; }},
      {nullptr, "offset", Unit::number,
       [](const Row& r) { return r.site->object.empty() ? Value() : Value(r.site->offset); }},
      {nullptr, "symbol", Unit::name, [](const Row& r) { return r.site->symbol; }},
      {nullptr, "frames", Unit::text, [](const Row& r) { return frames_json(*r.site); }},
      {nullptr, "native", Unit::text,
       [&names](const Row& r) { return native_json(*r.site, names); }},
      {nullptr, "native_cut", Unit::text, [](const Row& r) { return r.site->native_cut; }}};
  append(all, site_columns());
  return all;
}

}  // namespace

std::vector<Section> site_sections(const tables::Summary& of, For who) {
  const tables::SiteTotals totals = tables::site_totals(*of.lines);
  Section s = {.title = "Call sites", .at = "", .room = {.rows = kSitesShown}};
  if (who == For::programs) {
    std::vector<Row> rows;
    for (const auto& [key, a] : totals.calls) {
      const auto& [site, op] = key;
      rows.push_back({{"", "", op.first, op.second}, a, &site});
    }
    s.table = sheet(whole_columns(totals.names), rows, who);
    return {std::move(s)};
  }
  if (std::ranges::none_of(totals.calls, [](const auto& c) { return c.first.first.known(); })) {
    s.lead = {"none. They are recorded with TPROF_CALLSITE=native, python or both."};
    return {std::move(s)};
  }
  s.table = sheet(site_columns(), rows_of(totals), who);
  s.notes = {
      "in the program: the innermost Python frame outside of installed packages, else the "
      "outermost known one; - if Python was not running."};
  append(s.notes, stack_lists(totals));
  if (!totals.all_lines) s.notes.emplace_back("Not every call has a line: these are lower bounds.");
  return {std::move(s)};
}

}  // namespace tprof::report
