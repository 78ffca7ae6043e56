#include "stats/sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "run/lines.h"

namespace tprof::stats {
namespace {

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

SiteKey key_of(read::SiteLine line, symbols::Names& names) {
  SiteKey site{.object = file_name(line.object),
               .offset = line.offset,
               .symbol = std::move(line.symbol),
               .frames = std::move(line.frames),
               .native_cut = line.native_cut};
  for (const read::NativeFrames& run : line.native) {
    symbols::Frame frame{file_name(run.object), run.build_id};
    names.may_be_at(run.object, frame.object, frame.build_id);
    for (const std::uint64_t offset : run.offsets) {
      frame.offset = offset;
      site.native.push_back(frame);
    }
  }
  return site;
}

struct SiteCalls {
  explicit SiteCalls(const read::Process& rank) : rank_(rank) {}
  using Op = std::pair<Bucket, std::string>;

  void metadata(const read::Line& line) { sites.add(rank_, line); }

  void call(const read::Event& e) {
    if (e.unfinished || e.captured || e.failed || !e.chosen) return;
    const std::int64_t number = sites.find(e.site) != nullptr ? e.site : 0;
    const auto host_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(e.dur_ns, 0));
    calls[{number, {e.bucket, e.name}}] += {
        .calls = 1, .count = e.count, .bytes = e.bytes, .host_ns = host_ns, .host_ns_max = host_ns};
  }

  SiteLines sites;
  std::map<std::pair<std::int64_t, Op>, read::Amounts> calls;

 private:
  const read::Process& rank_;
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

void SiteLines::add(const read::Process& process, const read::Line& line) {
  if (!is_line(line.text, LineKind::site)) return;
  if (sites_.size() == kMost) return;
  try {
    read::SiteLine site = read::parse_site_line(parser_, line.text);
    const std::int64_t number = site.site;
    sites_[number] = key_of(std::move(site), names_);
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

SiteTotals site_totals(const run::Lines& lines) {
  const job::Job& job = lines.job();
  const auto ranks = lines.each<SiteCalls>();
  if (!lines.unreadable().empty()) throw read::BadInput(lines.unreadable()[0].reason);
  SiteTotals totals;
  std::set<symbols::Frame> frames;
  for (const read::Process* p : job.processes) {
    const SiteCalls* rank = ranks.of(p);
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

}  // namespace tprof::stats
