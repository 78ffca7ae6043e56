#include "check/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace tprof::check {

namespace {

constexpr std::size_t kLength = 100;  // of a list; 10,000 ranks must not fill the screen
constexpr std::size_t kSome = 16;     // more than a printed list shows

bool is_rank(const read::Process& p) {
  return p.header.rank && !read::is_child(p);
}

}  // namespace

text::Ranks ranks_of(const Processes& processes) {
  std::vector<std::int64_t> ranks;
  for (const read::Process* p : processes) {
    if (p->header.rank) ranks.push_back(*p->header.rank);
  }
  return text::Ranks(std::move(ranks));
}

ProcessId::ProcessId(const read::Process& p)
    : rank(p.header.rank), pid(p.header.pid), host(p.header.host), child(read::is_child(p)) {
  if (p.lanes > 1) device = p.device;
}

Who::Who(const Processes& processes)
    : count(processes.size()),
      running(!processes.empty() && processes[0]->end == read::End::running),
      ranks(ranks_of(select(processes, is_rank))) {
  for (const read::Process* p : processes) {
    if (!is_rank(*p)) ++no_ranks;
    const bool named = processes.size() == 1 || !is_rank(*p);
    if (named && some.size() < kSome) some.emplace_back(*p);
  }
}

std::string name_of(const ProcessId& p) {
  if (p.device) return fmt::format("rank {} (device {} of pid {})", *p.rank, *p.device, p.pid);
  if (p.child) return fmt::format("child {} of rank {}", p.pid, *p.rank);
  return p.rank ? name_of_rank(p) : fmt::format("pid {} on {}", p.pid, p.host);
}

std::string name_of_rank(const ProcessId& p) {
  return p.rank ? fmt::format("rank {}", *p.rank) : name_of(p);
}

std::string names_of(const Who& who) {
  if (who.count == 1) return name_of(who.some[0]);
  std::string names = names_of(who.ranks);
  std::uint64_t left = who.no_ranks;
  for (const ProcessId& p : who.some) {
    if (names.size() >= kLength) break;
    names += (names.empty() ? "" : ", ") + name_of(p);
    --left;
  }
  if (left != 0) names += fmt::format(" and {} without a rank", counted(left, "process"));
  return names;
}

const char* is_or_was(const Who& who) {
  return who.count == 1 ? (who.running ? "is" : "was") : (who.running ? "are" : "were");
}

std::string counted(std::uint64_t n, const std::string& what) {
  return text::thousands(n) + " " + what + (n == 1 ? "" : what.ends_with('s') ? "es" : "s");
}

std::string counted_to(std::uint64_t fewest, std::uint64_t most, const std::string& what) {
  return (fewest == most ? "" : text::thousands(fewest) + " to ") + counted(most, what);
}

std::string size_class(std::int64_t bytes_class) {
  return bytes_class < 0 ? "0 B" : ">= " + text::bytes(std::uint64_t{1} << (bytes_class & 63));
}

std::string duration(std::int64_t ns) {
  return text::duration(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)));
}

std::string nccl_error(std::uint64_t result) {
  constexpr const char* kNames[] = {
      "ncclSuccess",         "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError",
      "ncclInvalidArgument", "ncclInvalidUsage",       "ncclRemoteError", "ncclInProgress"};
  const char* name = result < std::size(kNames) ? kNames[result] : "result";
  return fmt::format("{} ({})", name, result);
}

}  // namespace tprof::check
