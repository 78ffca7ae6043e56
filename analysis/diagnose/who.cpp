#include "diagnose/who.h"

namespace tprof::diagnose {

using read::Process;

namespace {

constexpr std::size_t kSome = 16;  // more than a list for people shows

bool is_rank(const Process& p) {
  return p.header.rank && !read::is_child(p);
}

}  // namespace

text::Ranks ranks_of(const Processes& processes) {
  std::vector<std::int64_t> ranks;
  for (const Process* p : processes) {
    if (p->header.rank) ranks.push_back(*p->header.rank);
  }
  return text::Ranks(std::move(ranks));
}

ProcessId id_of(const Process& p) {
  return {.rank = p.header.rank,
          .pid = p.header.pid,
          .host = p.header.host,
          .device = p.lanes > 1 ? std::optional(p.device) : std::nullopt,
          .child = read::is_child(p)};
}

Who who_of(const Processes& processes) {
  Who who{.count = processes.size(),
          .running = !processes.empty() && processes[0]->end == read::End::running,
          .ranks = ranks_of(select(processes, is_rank))};
  for (const Process* p : processes) {
    if (!is_rank(*p)) ++who.no_ranks;
    const bool named = processes.size() == 1 || !is_rank(*p);
    if (named && who.some.size() < kSome) who.some.push_back(id_of(*p));
  }
  return who;
}

}  // namespace tprof::diagnose
