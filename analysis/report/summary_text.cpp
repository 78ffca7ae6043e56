#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/durations.h"
#include "report/findings.h"
#include "report/lateness.h"
#include "report/layers.h"
#include "report/memory.h"
#include "report/phases.h"
#include "report/places.h"
#include "report/report.h"
#include "report/slowest.h"
#include "report/steps.h"
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

using Columns = std::vector<std::pair<std::string, Table::Align>>;

// `align` has l or r for each name.
Columns columns(std::string_view align, const std::vector<const char*>& names) {
  Columns all;
  for (const char* name : names) all.emplace_back(name, align[all.size()] == 'l' ? left : right);
  return all;
}

std::string ratio(std::uint64_t part, std::uint64_t all) {
  return all == 0
             ? "-"
             : fmt::format("{:.1f}%", 100 * static_cast<double>(part) / static_cast<double>(all));
}

// Returns the exposed time, and its share of the device time of those calls for which it is known.
std::string exposed(const Amounts& a) {
  return a.exposure_known == 0 ? "-"
                               : fmt::format("{} ({})", duration(a.exposed_ns),
                                             ratio(a.exposed_ns, a.exposure_known_ns));
}

std::string mean_host(const Amounts& a) {
  return a.calls == a.replayed ? "-" : duration(a.host_ns / (a.calls - a.replayed));
}
// Shows "-" for 0, since the longest call may be of an earlier epoch.
std::string longest(std::uint64_t ns) {
  return ns == 0 ? "-" : duration(ns);
}

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

struct OpRow {
  Amounts amounts;
  double bus_bytes = 0;  // bytes x bus factor
  bool bus = true;
};

// Returns the dimension beside the operation, as a sort key and as text.
std::pair<std::int64_t, std::string> dimension(const stats::OpKey& key, By by) {
  switch (by) {
    case By::size:
      return {key.bytes_class, diagnose::size_class(key.bytes_class)};
    case By::comm:
      return {-key.nranks, key.comm_id.empty() ? "-" : printable(key.comm_id)};
    case By::dtype:
      return {0, printable(key.dtype)};
    case By::op:
    case By::range:
    case By::phase:
    case By::site:
    case By::step:
    case By::layer:
    case By::rank:
      break;
  }
  return {0, ""};
}

std::string operation_table(const stats::Summary& s, By by) {
  std::map<std::tuple<Bucket, std::string, std::pair<std::int64_t, std::string>>, OpRow> rows;
  bool timed = false;
  for (const auto& [key, amounts] : s.ops) {
    if (amounts.calls == 0) continue;
    OpRow& row = rows[{key.bucket, key.name, dimension(key, by)}];
    row.amounts += amounts;
    const auto busbw = stats::busbw(key, amounts);
    row.bus = row.bus && (busbw || amounts.device_timed == 0);
    row.bus_bytes += busbw.value_or(0) * static_cast<double>(amounts.device_ns);
    timed = timed || amounts.device_timed != 0;
  }
  constexpr const char* kDimensions[] = {"size", "", "communicator", "dtype"};
  Columns all = columns("ll", {"bucket", "operation"});
  if (by != By::op) all.emplace_back(kDimensions[static_cast<int>(by)], left);
  const auto add = [&](const Columns& more) { all.insert(all.end(), more.begin(), more.end()); };
  add(columns("rrr", {"calls", "elements", "bytes"}));
  if (timed) {
    add(columns("rrrrrrr", {"timed", "mean device", "max device", "exposed", "algbw GB/s",
                            "busbw GB/s", "mean host"}));
  } else {
    add(columns("rr", {"mean host", "max host"}));
  }
  Table table(all);
  for (const auto& [key, row] : rows) {
    const Amounts& a = row.amounts;
    std::vector<std::string> cells = {std::string(bucket_name(std::get<0>(key))),
                                      printable(std::get<1>(key))};
    if (by != By::op) cells.push_back(std::get<2>(key).second);
    cells.insert(cells.end(), {thousands(a.calls), thousands(a.elements), bytes(a.bytes)});
    if (!timed) {
      cells.insert(cells.end(), {mean_host(a), longest(a.host_ns_max)});
    } else if (const auto algbw = stats::algbw(a)) {
      const double ns = static_cast<double>(a.device_ns);
      cells.insert(cells.end(),
                   {thousands(a.device_timed), duration(a.device_ns / a.device_timed),
                    longest(a.device_ns_max), exposed(a), fmt::format("{:.2f}", *algbw),
                    row.bus ? fmt::format("{:.2f}", row.bus_bytes / ns) : "-", mean_host(a)});
    } else {
      cells.insert(cells.end(), {thousands(a.device_timed), "-", "-", "-", "-", "-", mean_host(a)});
    }
    table.row(std::move(cells));
  }
  std::string out = table.str();
  if (!timed && !rows.empty()) {
    out +=
        "  No algbw and busbw: they need the device time of a call; the host time is only that of "
        "enqueueing it.\n";
  }
  return out;
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
  constexpr const char* kTitles[] = {"Operations by size", "Operations",
                                     "Operations by communicator", "Operations by dtype"};
  if (s.histogram) section(heading(*s.histogram), to_text(*s.histogram, options.per_rank));
  if (s.lateness) {
    section("Who came last", to_text(*s.lateness, s.found));
  } else if (s.ranges) {
    section("NVTX ranges", range_table(*s.ranges));
  } else if (s.layers) {
    section("Layers", layer_table(*s.layers));
  } else if (s.sites) {
    section("Call sites", site_table(*s.sites));
  } else if (options.by == By::phase) {
    section("Phases", phase_table(s));
    if (s.rest) section("Calls outside autograd's threads", rest_table(*s.rest, s.found));
  } else if (options.by == By::step && s.steps) {
    section("Steps", step_table(*s.steps));
  } else if (stats::sum(s.buckets).calls != 0 && !(s.histogram && options.by == By::size)) {
    section(kTitles[static_cast<int>(options.by)], operation_table(s, options.by));
    if (options.by == By::op && s.op_times) {
      section("Their durations", to_text(*s.op_times, stats::sum(s.buckets).calls));
    }
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
