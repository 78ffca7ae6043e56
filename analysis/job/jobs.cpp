#include "job/jobs.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "read/error.h"

namespace tprof::job {
namespace {

using Processes = std::vector<const read::Process*>;

// Returns when it was last heard of; the largest time if it may have lived on.
std::int64_t end_ns(const read::Process& p) {
  const bool may_run = p.end == read::End::running && !p.forced;
  if (p.end == read::End::lost || may_run || !p.ledger) {
    return std::numeric_limits<std::int64_t>::max();
  }
  return p.header.base_time_ns + p.ledger->ts_ns;
}

bool lived_together(const read::Process& a, const read::Process& b) {
  return end_ns(a) >= b.header.start_ns && end_ns(b) >= a.header.start_ns;
}

bool launched_apart(const read::Process& a, const read::Process& b) {
  return a.header.launcher && b.header.launcher &&
         (a.header.launcher != b.header.launcher || a.header.boot_id != b.header.boot_id);
}

// The processes that one launch started, put together one group after the other.
class Launch {
 public:
  // True if the group can't belong to this launch: one of its ranks is another process here. A
  // process without a communicator (a data loader that copies) counts towards its rank. It clashes
  // if it lived before or after that one, or if nothing but its rank says that it belongs to it.
  bool clashes(const Processes& group) const;
  // True if both have a launcher, a parent or a place to meet in common.
  bool connected(const Processes& group) const;
  void add(const Processes& group);

  const Processes& processes() const { return processes_; }
  std::int64_t start_ns() const { return start_ns_; }
  // True if nothing connects some of its processes to the others.
  bool assumed() const { return assumed_; }

 private:
  using Pid = std::pair<std::string, std::int64_t>;  // of a boot

  // True if a process of this launch started it, so that it is a part of that one's rank.
  bool started(const read::Process& p) const;
  bool clashes_with(const read::Process& p, const read::Process& other) const;

  Processes processes_;
  std::multimap<std::optional<std::int64_t>, const read::Process*> by_rank_;
  std::set<Pid> pids_;
  std::set<Pid> parents_;
  std::set<std::pair<std::string, read::Launcher>> launchers_;
  std::set<std::pair<std::string, std::int64_t>> rendezvous_;  // with the world size
  std::int64_t start_ns_ = 0;
  bool assumed_ = false;
};

bool Launch::started(const read::Process& p) const {
  return p.comms.empty() && p.header.launcher &&
         pids_.contains({p.header.boot_id, p.header.launcher->pid});
}

bool Launch::clashes_with(const read::Process& p, const read::Process& other) const {
  if (!p.comms.empty() && !other.comms.empty()) return p.header.rank.has_value();
  if (!p.header.rank) return p.header.run_id.empty() && !lived_together(p, other);
  if (!lived_together(p, other)) return true;
  return p.comms.empty() && other.comms.empty() && launched_apart(p, other);
}

bool Launch::clashes(const Processes& group) const {
  return std::ranges::any_of(group, [&](const read::Process* p) {
    if (started(*p)) return false;
    const auto [first, last] = by_rank_.equal_range(p->header.rank);
    return std::any_of(first, last,
                       [&](const auto& other) { return clashes_with(*p, *other.second); });
  });
}

bool Launch::connected(const Processes& group) const {
  return std::ranges::any_of(group, [&](const read::Process* p) {
    const read::Header& h = p->header;
    if (parents_.contains({h.boot_id, h.pid})) return true;
    if (rendezvous_.contains({h.rendezvous, h.world_size.value_or(0)})) return true;
    return h.launcher && (launchers_.contains({h.boot_id, *h.launcher}) ||
                          pids_.contains({h.boot_id, h.launcher->pid}));
  });
}

void Launch::add(const Processes& group) {
  assumed_ = assumed_ || (!processes_.empty() && !connected(group));
  for (const read::Process* p : group) {
    const read::Header& h = p->header;
    if (processes_.empty() || h.start_ns < start_ns_) start_ns_ = h.start_ns;
    processes_.push_back(p);
    if (!started(*p)) by_rank_.emplace(h.rank, p);
    pids_.emplace(h.boot_id, h.pid);
    if (!h.rendezvous.empty()) rendezvous_.emplace(h.rendezvous, h.world_size.value_or(0));
    if (!h.launcher) continue;
    launchers_.emplace(h.boot_id, *h.launcher);
    parents_.emplace(h.boot_id, h.launcher->pid);
  }
}

void refuse_copies(const Processes& processes) {
  // The time of the first call is in the key, since a program that a process executes keeps its pid
  // and start.
  std::map<std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::size_t>,
           const read::Process*>
      seen;
  for (const read::Process* p : processes) {
    const read::Header& h = p->header;
    const auto [first, fresh] =
        seen.try_emplace({h.boot_id, h.pid, h.start_ns, h.base_time_ns, p->lane}, p);
    if (fresh) continue;
    throw read::BadInput(p->file, "holds the same process as " + first->second->file + " (host " +
                                      h.host + ", pid " + std::to_string(h.pid) +
                                      "): one of them is a copy, leave it out");
  }
}

// Returns groups of processes that communicator ids or a fork connect, each in the order of the
// input.
std::vector<Processes> connected(const Processes& processes) {
  std::vector<std::size_t> parent(processes.size());
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto root = [&](std::size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  std::map<std::string_view, std::size_t> holder;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    for (const auto& [number, comm] : processes[i]->comms) {
      if (!comm.known()) continue;
      const auto [first, fresh] = holder.try_emplace(comm.id, i);
      if (!fresh) parent[root(i)] = root(first->second);
    }
  }
  std::map<std::tuple<std::string_view, std::int64_t, std::int64_t>, std::size_t> known;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const read::Header& h = processes[i]->header;
    known.try_emplace({h.boot_id, h.pid, h.start_ns}, i);
  }
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const read::Header& h = processes[i]->header;
    if (!h.forked_from) continue;
    const auto from = known.find({h.boot_id, h.forked_from->pid, h.forked_from->start_ns});
    if (from != known.end()) parent[root(i)] = root(from->second);
  }
  std::map<std::size_t, Processes> groups;
  for (std::size_t i = 0; i < processes.size(); ++i) groups[root(i)].push_back(processes[i]);
  std::vector<Processes> result;
  result.reserve(groups.size());
  for (auto& [first, group] : groups) result.push_back(std::move(group));
  return result;
}

std::int64_t earliest(const Processes& group, std::int64_t read::Header::*when) {
  const auto of = [&](const read::Process* p) { return p->header.*when; };
  return of(*std::ranges::min_element(group, {}, of));
}

std::int64_t start(const Processes& group) {
  return earliest(group, &read::Header::start_ns);
}

// Not when it was started: that is known only to a tick of the clock, 10 ms. An attempt may begin
// in the same tick in which the one before it ended.
std::int64_t traced_from(const Processes& group) {
  return earliest(group, &read::Header::base_time_ns);
}

// Equal for processes that one launch started, as far as they can know.
struct LaunchKey {
  std::string run_id;
  std::int64_t restart;
  std::string folder;  // only where there is no run id

  // clang-tidy 14 takes the 0 of a rewritten comparison for a pointer.
  auto operator<=>(const LaunchKey&) const = default;  // NOLINT(modernize-use-nullptr)
};
LaunchKey launch_key(const read::Process& p) {
  const read::Header& h = p.header;
  const bool none = h.run_id.empty();
  return {h.run_id, h.restart,
          none ? std::filesystem::path(p.file).parent_path().string() : std::string()};
}

Job job_of(Processes processes) {
  std::ranges::stable_sort(processes, {}, [](const read::Process* p) {
    const read::Header& h = p->header;
    return std::tuple(!h.rank, h.rank.value_or(0), p->comms.empty(), h.start_ns, h.boot_id, h.pid,
                      p->lane);
  });
  Job job;
  std::set<std::int64_t> held;
  for (const read::Process* p : processes) {
    const read::Header& h = p->header;
    if (job.run_id.empty()) job.run_id = h.run_id;
    if (h.world_size) job.world_size = std::max(job.world_size.value_or(0), *h.world_size);
    if (h.rank && (job.ranks.empty() || job.ranks.back() != *h.rank)) job.ranks.push_back(*h.rank);
    if (h.rank) held.insert(*h.rank);
  }
  for (std::int64_t rank = 0; rank < job.world_size.value_or(0); ++rank) {
    if (!held.contains(rank)) job.missing.push_back(rank);
  }
  const std::int64_t restart = processes.front()->header.restart;
  job.label = job.run_id.empty() ? kUnnamed : job.run_id;
  if (restart != 0) job.label += ".r" + std::to_string(restart);
  job.processes = std::move(processes);
  return job;
}

}  // namespace

std::vector<Job> jobs_of(const Processes& processes) {
  refuse_copies(processes);
  std::vector<Processes> groups = connected(processes);
  // Groups with communicators come first, by their start. One without them then joins the last
  // launch that had begun.
  std::ranges::stable_sort(groups, {}, [](const Processes& group) {
    return std::pair(group.front()->comms.empty(), start(group));
  });

  std::map<LaunchKey, std::vector<Launch>> launches;
  for (const Processes& group : groups) {
    std::vector<Launch>& candidates = launches[launch_key(*group.front())];
    Launch* home = nullptr;
    for (Launch& launch : candidates) {
      if (launch.clashes(group)) continue;
      const bool connected = launch.connected(group);
      if (home == nullptr || connected || launch.start_ns() <= start(group)) home = &launch;
      if (connected) break;
    }
    if (home == nullptr) home = &candidates.emplace_back();
    home->add(group);
  }

  std::vector<Job> jobs;
  for (auto& [key, found] : launches) {
    for (const Launch& launch : found) {
      jobs.push_back(job_of(launch.processes()));
      jobs.back().assumed = launch.assumed() && key.run_id.empty();
    }
  }
  std::ranges::stable_sort(jobs, {}, [](const Job& job) { return traced_from(job.processes); });
  std::map<std::string, int> used;
  std::map<std::string, int> attempts;
  for (Job& job : jobs) {
    job.attempt = ++attempts[job.run_id];
    const int n = ++used[job.label];
    if (n > 1) job.label += "#" + std::to_string(n);
  }
  return jobs;
}

}  // namespace tprof::job
