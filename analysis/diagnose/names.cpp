#include "diagnose/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "text/text.h"

namespace tprof::diagnose {

using read::Process;

namespace {
constexpr std::size_t kLength = 100;  // of a list, so that 10,000 ranks do not fill the screen
}  // namespace

std::string name_of(const Process& p) {
  if (p.lanes > 1) {
    return fmt::format("rank {} (device {} of pid {})", *p.header.rank, p.device, p.header.pid);
  }
  if (read::is_child(p)) return fmt::format("child {} of rank {}", p.header.pid, *p.header.rank);
  return p.header.rank ? name_of_rank(p) : fmt::format("pid {} on {}", p.header.pid, p.header.host);
}

std::string name_of_rank(const Process& p) {
  return p.header.rank ? fmt::format("rank {}", *p.header.rank) : name_of(p);
}

std::vector<std::int64_t> ranks_of(const Processes& processes) {
  std::set<std::int64_t> ranks;
  for (const Process* p : processes) {
    if (p->header.rank) ranks.insert(*p->header.rank);
  }
  return {ranks.begin(), ranks.end()};
}

std::string names_of(const std::vector<std::int64_t>& ranks) {
  if (ranks.empty()) return "";
  std::string list = text::ranges(ranks);
  if (list.size() > kLength) {
    list.resize(list.rfind(',', kLength));
    list += fmt::format(",... ({} ranks)", text::thousands(ranks.size()));
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + list;
}

std::string names_of(const Processes& processes) {
  if (processes.size() == 1) return name_of(*processes[0]);
  const Processes ranks = select(processes, [](const Process& p) { return !read::is_child(p); });
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

const char* is_or_was(const Processes& who) {
  const bool running = who[0]->end == read::End::running;
  return who.size() == 1 ? (running ? "is" : "was") : (running ? "are" : "were");
}

std::string counted(std::uint64_t n, const std::string& what) {
  return text::thousands(n) + " " + what + (n == 1 ? "" : what.ends_with('s') ? "es" : "s");
}

std::string size_class(std::int64_t bytes_class) {
  return bytes_class < 0 ? "0 B" : ">= " + text::bytes(std::uint64_t{1} << (bytes_class & 63));
}

void shorten(std::vector<std::string>& list, std::size_t most) {
  if (list.size() <= most) return;
  const std::size_t more = list.size() - most;
  list.resize(most);
  list.push_back(fmt::format("and {} more", more));
}

std::string duration(std::int64_t ns) {
  return text::duration(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)));
}

}  // namespace tprof::diagnose
