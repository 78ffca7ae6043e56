#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/json.h"
#include "report/places.h"
#include "symbols/readable.h"
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
  return site.frames.empty() ? "-" : text_of(site.frames[0]);
}

std::string place(const SiteKey& site) {
  if (const SiteFrame* own = stats::program_frame(site)) return text_of(*own);
  return site.frames.empty() ? "-" : text_of(site.frames.back());
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
      "that is known; - if Python was not running.\n";
  out += stack_lists(totals);
  if (!totals.all_lines) out += "  Not every call has a line: these are lower bounds.\n";
  return out;
}

nlohmann::ordered_json to_json(const stats::SiteTotals& totals) {
  Json all = Json::array();
  for (const auto& [key, a] : totals.calls) {
    const auto& [site, op] = key;
    Json frames = Json::array();
    for (const SiteFrame& f : site.frames) {
      frames.push_back({{"function", f.function}, {"file", f.file}, {"line", f.line}});
    }
    Json native = Json::array();
    for (const symbols::Frame& frame : site.native) {
      Json places = Json::array();
      for (const symbols::Place& p : totals.names.of(frame)) {
        places.push_back({{"function", or_null(p.function)},
                          {"file", or_null(p.file)},
                          {"line", p.file.empty() ? Json() : Json(p.line)}});
      }
      native.push_back(
          {{"object", frame.object}, {"offset", frame.offset}, {"places", std::move(places)}});
    }
    all.push_back({{"object", or_null(site.object)},
                   {"offset", site.object.empty() ? Json() : Json(site.offset)},
                   {"symbol", or_null(site.symbol)},
                   {"frames", std::move(frames)},
                   {"native", std::move(native)},
                   {"native_cut", site.native_cut},
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
