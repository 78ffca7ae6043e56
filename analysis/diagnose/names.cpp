#include "diagnose/names.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <set>

#include "text/text.h"

namespace tprof::diagnose {

using read::Process;

namespace {
constexpr std::size_t kLength = 100;  // of a list; half of 10,000 ranks fill no screen
}  // namespace

std::string name_of(const Process& p) {
  if (p.lanes > 1) {
    return fmt::format("rank {} (device {} of pid {})", *p.header.rank, p.device, p.header.pid);
  }
  if (read::is_child(p)) return fmt::format("child {} of rank {}", p.header.pid, *p.header.rank);
  return p.header.rank ? fmt::format("rank {}", *p.header.rank)
                       : fmt::format("pid {} on {}", p.header.pid, p.header.host);
}

std::vector<std::int64_t> ranks_of(const std::vector<const Process*>& processes) {
  std::set<std::int64_t> ranks;
  for (const Process* p : processes) {
    if (p->header.rank) ranks.insert(*p->header.rank);
  }
  return {ranks.begin(), ranks.end()};
}

std::string names_of(const std::vector<std::int64_t>& ranks) {
  if (ranks.empty()) return "";
  std::string list = report::ranges(ranks);
  if (list.size() > kLength) {
    list.resize(list.rfind(',', kLength));
    list += fmt::format(",... ({} ranks)", report::thousands(ranks.size()));
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + list;
}

std::string names_of(const std::vector<const Process*>& processes) {
  if (processes.size() == 1) return name_of(*processes[0]);
  std::vector<const Process*> ranks;
  std::ranges::copy_if(processes, std::back_inserter(ranks),
                       [](const Process* p) { return !read::is_child(*p); });
  std::string names = names_of(ranks_of(ranks));
  std::size_t without = 0;
  for (const Process* p : processes) {
    if (p->header.rank && !read::is_child(*p)) continue;
    if (names.size() < kLength) {
      names += (names.empty() ? "" : ", ") + name_of(*p);
    } else {
      ++without;
    }
  }
  if (without != 0) names += fmt::format(" and {} processes that are no ranks", without);
  return names;
}

std::string utc(std::int64_t realtime_ns) {
  return fmt::format("{:%F %T}.{:03} UTC",
                     fmt::gmtime(static_cast<std::time_t>(realtime_ns / 1'000'000'000)),
                     realtime_ns / 1'000'000 % 1000);
}

std::string size_range(std::int64_t bytes_class) {
  if (bytes_class < 0) return "0 B";
  const auto least = std::uint64_t{1} << (bytes_class & 63);
  return bytes_class >= 63
             ? ">= " + report::bytes(least)
             : fmt::format("[{}, {})", report::bytes(least), report::bytes(2 * least));
}

}  // namespace tprof::diagnose
