#include "tables/sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "steps/rank_steps.h"
#include "tables/groups.h"

namespace tprof::tables {
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

using SiteOp = std::tuple<std::int64_t, Bucket, text::Kept>;
std::optional<SiteOp> site_op(const read::Event& e) {
  return SiteOp{e.site, e.bucket, e.name};
}

struct SiteCalls {
  explicit SiteCalls(const read::Process& rank) : sites(rank), calls(rank, site_op) {}
  void metadata(const read::Line& line) { sites.metadata(line); }
  void timed(const read::Event& e, const read::DeviceTime* t) { calls.timed(e, t); }
  void end() { calls.end(); }

  SiteLines sites;
  RankGroups<read::Amounts, decltype(&site_op)> calls;
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

void SiteLines::metadata(const read::Line& line) {
  if (!is_line(line.text, LineKind::site)) return;
  if (sites_.size() == kMost) return;
  auto site = read::parsed_line<read::SiteLine>(line, process_->file);
  const std::int64_t number = site.site;
  sites_[number] = key_of(std::move(site), names_);
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
    const auto* rank = ranks.of(p);
    if (rank == nullptr) continue;
    totals.all_lines = totals.all_lines && steps::lines_are_whole(*p);
    totals.names.add(rank->sites.names());
    for (const auto& [op, amounts] : rank->calls.found) {
      const auto& [number, bucket, function] = op;
      const SiteKey* site = rank->sites.find(number);
      const bool known = site != nullptr && totals.calls.size() < SiteLines::kMost;
      totals.calls[{known ? *site : SiteKey{}, {bucket, function}}] += amounts;
      if (known) frames.insert(site->native.begin(), site->native.end());
    }
  }
  totals.names.find(frames);
  return totals;
}

}  // namespace tprof::tables
