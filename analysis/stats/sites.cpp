#include "stats/sites.h"

#include <fmt/format.h>

#include <algorithm>

#include "collect/lines.h"
#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "read/json.h"

namespace tprof::stats {
namespace {

constexpr std::size_t kMaxFrames = 64;

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

void native_frames(const read::object& args, SiteKey& site, symbols::Names& names) {
  if (!read::find(args, "native")) return;
  site.native_cut = read::flag(args, "native_cut");
  for (const read::object& run : read::objects_of(args, "native")) {
    const std::string path = read::text(run, "object");
    symbols::Frame frame{file_name(path), read::text_or_empty(run, "build_id")};
    names.may_be_at(path, frame.object, frame.build_id);
    for (const read::element& offset : read::array_of(run, "offsets")) {
      if (site.native.size() == kMaxFrames) return;
      if (offset.get(frame.offset) != simdjson::SUCCESS) throw read::Malformed("offsets");
      site.native.push_back(frame);
    }
  }
}

SiteKey site_of(const read::object& args, symbols::Names& names) {
  SiteKey site;
  site.object = file_name(read::text_or_empty(args, "object"));
  if (read::find(args, "offset")) site.offset = read::count(args, "offset");
  site.symbol = read::text_or_empty(args, "symbol");
  for (const read::object& f : read::objects_of(args, "frames")) {
    if (site.frames.size() == kMaxFrames) break;
    site.frames.push_back({read::text_or_empty(f, "function"), read::text_or_empty(f, "file"),
                           read::integer_or(f, "line", 0)});
  }
  native_frames(args, site, names);
  return site;
}

struct SiteCalls : collect::Collector {
  using Collector::Collector;
  using Op = std::pair<Bucket, std::string>;

  void metadata(const read::Line& line, const read::Process&) override { sites.add(rank_, line); }

  void call(const read::Event& e) override {
    if (e.unfinished || e.captured || e.failed) return;
    const std::int64_t number = sites.find(e.site) != nullptr ? e.site : 0;
    const auto host_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(e.dur_ns, 0));
    calls[{number, {e.bucket, e.name}}] += {
        .calls = 1, .count = e.count, .bytes = e.bytes, .host_ns = host_ns, .host_ns_max = host_ns};
  }

  SiteLines sites;
  std::map<std::pair<std::int64_t, Op>, read::Amounts> calls;
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

void SiteLines::add(const read::Process& process, const read::Line& line) {
  if (!is_line(line.text, LineKind::site)) return;
  read::object top;
  if (parser_.parse(line.text.data(), line.text.size(), false).get(top) != simdjson::SUCCESS) {
    throw read::BadInput(process.file, line.offset, "expected one JSON object on this line");
  }
  try {
    const read::object args = read::object_of(top, "args");
    if (sites_.size() < kMost) sites_[read::integer(args, "site")] = site_of(args, names_);
  } catch (const read::Malformed& e) {
    throw read::BadInput(process.file, line.offset, e.what());
  }
}

const SiteKey* SiteLines::find(std::int64_t number) const {
  const auto found = sites_.find(number);
  return found == sites_.end() ? nullptr : &found->second;
}

std::string text_of(const SiteFrame& frame) {
  return fmt::format("{}:{} {}", frame.file.substr(frame.file.rfind('/') + 1), frame.line,
                     frame.function);
}

bool of_program(const SiteFrame& frame) {
  const bool installed =
      contains(frame.file, "site-packages/") || contains(frame.file, "dist-packages/");
  return !installed && !contains(frame.file, "/lib/python") && !frame.file.starts_with('<');
}

const SiteFrame* program_frame(const SiteKey& site) {
  const auto own = std::ranges::find_if(site.frames, of_program);
  return own == site.frames.end() ? nullptr : &*own;
}

namespace {

SiteTotals site_totals(const job::Job& job, const collect::Lines& lines) {
  if (!lines.unreadable().empty()) throw read::BadInput(lines.unreadable()[0].reason);
  SiteTotals totals;
  std::set<symbols::Frame> frames;
  for (const read::Process* p : job.processes) {
    const auto* rank = lines.of<SiteCalls>(p);
    if (rank == nullptr) continue;
    totals.all_lines = totals.all_lines && p->footer && p->footer->dropped.empty();
    totals.names.add(rank->sites.names());
    for (const auto& [key, amounts] : rank->calls) {
      const auto& [number, op] = key;
      const SiteKey* site = rank->sites.find(number);
      const bool room = totals.calls.size() < SiteTotals::kMaxSites;
      const bool known = site != nullptr && room;
      totals.calls[{known ? *site : SiteKey{}, op}] += amounts;
      if (known) frames.insert(site->native.begin(), site->native.end());
    }
  }
  totals.names.find(frames);
  return totals;
}

}  // namespace

void want_sites(collect::Passes& passes, std::optional<SiteTotals>& to) {
  passes.want(
      [](const read::Process& p, collect::Collectors& all) { collect::want<SiteCalls>(p, all); },
      [&passes, &to](const collect::Lines& lines) { to = site_totals(passes.job(), lines); });
}

}  // namespace tprof::stats
