#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/cells.h"
#include "report/durations.h"
#include "report/findings.h"
#include "report/memory.h"
#include "report/report.h"
#include "report/slowest.h"
#include "report/times.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using text::bytes;
using text::duration;
using text::printable;
using text::ranges;
using text::Table;
using text::thousands;

using enum Table::Align;
using read::Amounts;

constexpr std::size_t kCommsShown = 20;

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
  Columns shown = columns(
      "lrrrrrr", {"bucket", "calls", "elements", "bytes", "of bytes", "host time", "device time"});
  if (all.exposure_known != 0) shown.emplace_back("exposed", right);
  Table table(shown);
  const auto row = [&](std::string_view name, const Amounts& a) {
    std::vector<std::string> cells = {
        std::string(name),         thousands(a.calls), thousands(a.elements), bytes(a.bytes),
        ratio(a.bytes, all.bytes), host_time(a),       device_time(a)};
    if (all.exposure_known != 0) cells.push_back(exposed(a));
    table.row(std::move(cells));
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
  std::string out = table.str();
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
  const bool timed = stats::sum(s.buckets).device_timed != 0;
  Columns shown = columns("llrrr", {"rank", "bucket", "calls", "elements", "bytes"});
  for (const char* time : {"host time", "device time", "exposed"}) {
    if (timed != (time == std::string_view("host time"))) shown.emplace_back(time, right);
  }
  Table table(shown);
  const auto row = [&](std::vector<std::string> cells, const Amounts& a) {
    if (!timed) cells.push_back(host_time(a));
    if (timed) cells.insert(cells.end(), {device_time(a), exposed(a)});
    table.row(std::move(cells));
  };
  stats::each_rank(s, [&](std::int64_t rank, const stats::Buckets& totals) {
    std::string name = std::to_string(rank);
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      const Amounts& a = totals[b];
      if (a.calls == 0) continue;
      row({std::exchange(name, ""), std::string(kBuckets[b].name), thousands(a.calls),
           thousands(a.elements), bytes(a.bytes)},
          a);
    }
    if (!name.empty()) row({name, "none", "0", "0", "0 B"}, {});
  });
  return table.str();
}

std::string comm_table(const stats::Summary& s) {
  const bool roles = std::ranges::any_of(s.comms, [](const auto& c) { return !c.role.empty(); });
  bool guessed = false;
  Columns all = columns("ll", {"communicator", "name"});
  if (roles) all.emplace_back("role", left);
  const Columns more =
      columns("rlrrrl", {"size", "ranks", "collectives", "calls", "bytes", "split from"});
  all.insert(all.end(), more.begin(), more.end());
  Table table(all);
  for (std::size_t i = 0; i < std::min(s.comms.size(), kCommsShown); ++i) {
    const stats::CommSummary& c = s.comms[i];
    std::vector<std::string> cells = {printable(c.id), printable(c.name)};
    const bool guess = c.role_guessed && !c.role.empty();
    guessed = guessed || guess;
    if (roles) cells.push_back(c.role + (guess ? "?" : ""));
    cells.insert(cells.end(),
                 {std::to_string(c.nranks), ranges(c.ranks), thousands(c.collectives),
                  thousands(c.amounts.calls), bytes(c.amounts.bytes), printable(c.parent)});
    table.row(std::move(cells));
  }
  std::string out = table.str();
  if (s.comms.size() > kCommsShown) {
    out += fmt::format("  and {} more (all of them: --json)\n", s.comms.size() - kCommsShown);
  }
  if (guessed) out += "  role?: a guess, from what was sent in which pass.\n";
  return out;
}

}  // namespace

std::string to_text(const stats::Summary& s, const TextOptions& options) {
  std::string out = header_text(s);
  const auto section = [&](std::string_view title, const std::string& text) {
    if (!text.empty()) out += fmt::format("\n{}\n{}", title, text);
  };
  const std::string over = how_many(s.job->processes);
  section(s.only_steps ? fmt::format("Totals of steps {} over {}{}", named(*s.only_steps), over,
                                     s.steps->found.exact ? "" : ": calls that have lines")
                       : "Totals over " + over,
          bucket_table(s));
  if (options.per_rank && !s.histogram) section("Per rank", rank_table(s));
  if (s.histogram) section(heading(*s.histogram), to_text(*s.histogram, options.per_rank));
  // A histogram stands in place of the table that is shown when none is asked for.
  if (!s.histogram || options.by != By::size) {
    for (const Section& x : row_of(options.by).sections(s)) section(x.title, x.text);
  }
  if (s.slowest) {
    section("Slowest calls", to_text(*s.slowest, s.found, stats::sum(s.buckets).calls));
  }
  if (!s.comms.empty()) section("Communicators", comm_table(s));
  section("Memory that the program allocated", memory_table(s.memory));
  std::string findings;
  for (const diagnose::Finding& f : s.findings) findings += to_text(f, Detail::brief);
  section("Findings", findings);
  if (!options.next.empty()) out += fmt::format("\nNext: {}\n", printable(options.next));
  return out;
}

}  // namespace tprof::report
