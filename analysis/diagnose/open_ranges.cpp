#include "diagnose/open_ranges.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/names.h"
#include "diagnose/waits.h"
#include "text/text.h"

namespace tprof::diagnose {
namespace {

constexpr std::size_t kMaxPaths = 6;

struct Path {
  std::string text;
  std::size_t ranges = 0;
  std::int64_t thread = 0;
  std::int64_t since_ns = 0;  // CLOCK_REALTIME, of the innermost
};

// Of each thread its own, the one that matters first.
std::vector<Path> paths_of(const Standing& standing, const LineFacts& facts) {
  const auto& [process, first] = standing;
  std::vector<Path> paths;
  for (const read::Range& range : facts.ranges) {  // of a thread outermost first
    auto path = std::ranges::find(paths, range.thread, &Path::thread);
    if (path == paths.end()) {
      path = paths.insert(first == range.thread ? paths.begin() : paths.end(),
                          {"", 0, range.thread, 0});
    }
    if (!path->text.empty()) path->text += " / ";
    path->text += '"' + range.name + '"';
    ++path->ranges;
    if (range.domain) path->text += " (" + *range.domain + ")";
    path->since_ns = process->header.base_time_ns + range.ts_ns;
  }
  return paths;
}

}  // namespace

std::vector<std::string> open_ranges(const std::vector<Standing>& processes, const Facts& facts) {
  struct Group {
    Path path;
    std::vector<const read::Process*> processes;
    bool other_thread = false;
  };
  std::vector<Group> groups;
  for (const Standing& standing : processes) {
    const auto of_process = facts.find(standing.first);
    if (of_process == facts.end()) continue;
    for (Path& path : paths_of(standing, of_process->second)) {
      const bool other = standing.second && standing.second != path.thread;
      const auto same = std::ranges::find_if(groups, [&](const Group& g) {
        return g.path.text == path.text && g.other_thread == other;
      });
      if (same != groups.end()) {
        same->processes.push_back(standing.first);
      } else {
        groups.push_back({std::move(path), {standing.first}, other});
      }
    }
  }
  std::vector<std::string> lines;
  for (const Group& group : groups) {
    if (lines.size() == kMaxPaths) {
      lines.push_back(fmt::format("and {} more", groups.size() - kMaxPaths));
      break;
    }
    const bool alone = group.processes.size() == 1;
    const bool running = group.processes[0]->end == read::End::running;
    const bool one = group.path.ranges == 1;
    std::string line =
        fmt::format("{} {} within NVTX {} {}{}", names_of(group.processes),
                    alone ? (running ? "is" : "was") : (running ? "are" : "were"),
                    one ? "range" : "ranges", group.path.text, one ? "" : " (innermost last)");
    if (group.other_thread) {
      line += alone ? fmt::format(" on another thread ({})", group.path.thread)
                    : std::string(" on another thread");
    }
    if (alone) {
      const auto open =
          std::max<std::int64_t>(end_ns(*group.processes[0]) - group.path.since_ns, 0);
      line += fmt::format(" since {}, {} before the end of its trace", utc(group.path.since_ns),
                          report::duration(static_cast<std::uint64_t>(open)));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tprof::diagnose
