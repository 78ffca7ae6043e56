#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "report/durations.h"
#include "report/figures.h"
#include "report/findings.h"
#include "report/report.h"
#include "report/steps.h"
#include "report/views.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using text::duration;
using text::printable;
using text::thousands;

using read::Amounts;

// True if it is known of any copy of the bucket what the host's side was.
bool any_host_memory(const stats::Summary& s, std::size_t bucket) {
  for (std::size_t m = 0; m < kHostMemoryKinds; ++m) {
    const bool known = static_cast<HostMemory>(m) != HostMemory::unknown;
    if (known && s.host_memory[m][bucket].calls != 0) return true;
  }
  return false;
}

std::string bucket_table(const stats::Summary& s) {
  const Amounts all = stats::sum(s.buckets);
  std::vector<BucketRow> rows;
  const auto row = [&](std::string_view name, const Amounts& a) {
    rows.push_back({std::string(name), "", a});
  };
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (s.buckets[b].calls != 0) row(kBuckets[b].name, s.buckets[b]);
    const bool gathers = static_cast<Bucket>(b) == Bucket::ALLGATHER;
    if (gathers && s.object_gathers) row("  of objects", *s.object_gathers);
    if (!any_host_memory(s, b)) continue;
    for (const HostMemory kind :
         {HostMemory::pageable, HostMemory::pinned, HostMemory::managed, HostMemory::unknown}) {
      const auto m = static_cast<std::size_t>(kind);
      const std::string_view name = host_memory_name(kind);
      const Amounts& a = s.host_memory[m][b];
      if (a.calls != 0) row(fmt::format("  {}", name.empty() ? "unknown" : name), a);
    }
  }
  row("ALL", all);
  std::vector<Column<BucketRow>> shown = {{"bucket", nullptr, Unit::text, &BucketRow::label}};
  append(shown, call_columns<BucketRow>());
  append(shown, {{"of bytes", nullptr, Unit::right_text,
                  [&](const BucketRow& r) { return ratio(r.amounts.bytes, all.bytes); }},
                 host_time_column<BucketRow>(),
                 device_time_column<BucketRow>("device time", nullptr)});
  if (all.exposure_known != 0) shown.push_back(exposed_column<BucketRow>());
  std::string out = table_text(shown, rows);
  if (all.exposure_known != 0) {
    out += fmt::format(
        "  exposed: the part of device time in which no computation ran on the device; known of {} "
        "of {} timed calls\n",
        thousands(all.exposure_known), thousands(all.device_timed));
  }
  if (s.compute.window_ns != 0 && !s.only_steps) {
    out +=
        fmt::format("  compute kernels: busy {} of {} of device time\n",
                    ratio(s.compute.busy_ns, s.compute.window_ns), duration(s.compute.window_ns));
  }
  return out;
}

std::string rank_table(const stats::Summary& s) {
  std::vector<Column<BucketRow>> shown = bucket_columns("rank", nullptr);
  if (stats::sum(s.buckets).device_timed != 0) {
    append(shown,
           {device_time_column<BucketRow>("device time", nullptr), exposed_column<BucketRow>()});
  } else {
    shown.push_back(host_time_column<BucketRow>());
  }
  Sheet all = sheet(shown, {}, For::people);
  stats::each_rank(s, [&](std::int64_t rank, const stats::Buckets& totals) {
    std::vector<BucketRow> rows;
    add_rows(rows, std::to_string(rank), totals);
    if (rows.empty()) rows.push_back({std::to_string(rank), "none", {}});
    std::ranges::move(sheet(shown, rows, For::people).rows, std::back_inserter(all.rows));
  });
  return to_text(std::move(all));
}

}  // namespace

std::string to_text(const stats::Summary& s, const TextOptions& options) {
  std::string out = header_text(s);
  const auto section = [&](std::string_view title, const std::string& text) {
    if (!text.empty()) out += fmt::format("\n{}\n{}", title, text);
  };
  const std::string over = how_many(s.job->processes);
  section(s.only_steps ? fmt::format("Totals of steps {} over {}{}", named(*s.only_steps), over,
                                     s.found.exact ? "" : ": calls that have lines")
                       : "Totals over " + over,
          bucket_table(s));
  if (options.per_rank && !s.histogram) section("Per rank", rank_table(s));
  if (s.histogram) section(heading(*s.histogram), to_text(*s.histogram, options.per_rank));
  // A histogram stands in place of the table that is shown when none is asked for.
  if (!s.histogram || options.by != By::size) {
    for (Section& x : row_of(options.by).sections(s, For::people)) out += to_text(std::move(x));
  }
  if (s.slowest) {
    out += to_text(section_of(*s.slowest, s.found, stats::sum(s.buckets).calls, For::people));
  }
  if (!s.comms.empty()) out += to_text(section_of(s.comms, For::people));
  if (!s.memory.uses.empty()) out += to_text(section_of(s.memory, For::people));
  std::string findings;
  for (const diagnose::Finding& f : s.findings) findings += to_text(f, Detail::brief);
  section("Findings", findings);
  if (!options.next.empty()) out += fmt::format("\nNext: {}\n", printable(options.next));
  return out;
}

}  // namespace tprof::report
