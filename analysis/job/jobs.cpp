#include "job/jobs.h"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "interpose/format/ledger.h"
#include "read/error.h"

namespace tprof::job {

namespace {

using Processes = std::vector<const read::Process*>;

// Returns its last sign of life; the largest time if it may have lived on.
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

// True if the two have different rendezvous addresses; false if one is unknown.
bool meet_apart(const read::Header& a, const read::Header& b) {
  return !a.rendezvous.empty() && !b.rendezvous.empty() && a.rendezvous != b.rendezvous;
}

bool launched_apart(const read::Header& a, const read::Header& b) {
  return a.launcher && b.launcher && (a.launcher != b.launcher || a.boot_id != b.boot_id);
}

// A rank is one process with communicators, and others without any that ran at the same time and
// were launched with it: a data loader that copies. Without a rendezvous, a run id vouches for a
// loader that a fork server started.
bool may_share_a_rank(const read::Process& a, const read::Process& b) {
  const bool loads = a.comms.empty() != b.comms.empty();
  if (!lived_together(a, b) || meet_apart(a.header, b.header)) return false;
  const bool met = !a.header.rendezvous.empty() && !b.header.rendezvous.empty();
  const bool vouched = met || (loads && !a.header.run_id.empty());
  return vouched || !launched_apart(a.header, b.header);
}

// Equal for processes of one launch, as far as they know.
struct LaunchKey {
  std::string_view run_id;
  std::int64_t restart;
  std::string_view folder;  // only without a run id

  // clang-tidy 14 takes the 0 of a rewritten comparison for a pointer.
  auto operator<=>(const LaunchKey&) const = default;  // NOLINT(modernize-use-nullptr)
};
LaunchKey launch_key(const read::Process& p) {
  const std::string_view file = p.file;
  const std::string_view run_id = p.header.run_id;
  return {run_id, p.header.restart,
          run_id.empty() ? file.substr(0, file.rfind('/') + 1) : std::string_view()};
}

// Processes known to be in one job.
class Part {
 public:
  Part() = default;
  Part(const read::Process& p, bool belongs_to_its_parent)
      : processes_{&p},
        start_ns_(p.header.start_ns),
        end_ns_(tprof::job::end_ns(p)),
        communicates_(!p.comms.empty()),
        has_run_id_(!p.header.run_id.empty()),
        has_rankless_(!p.header.rank) {
    const read::Header& h = p.header;
    if (h.rank && !belongs_to_its_parent) by_rank_.emplace(*h.rank, &p);
    if (!h.rendezvous.empty()) meets_.emplace(h.boot_id, h.rendezvous);
  }
  void add(Part other) {
    processes_.insert(processes_.end(), other.processes_.begin(), other.processes_.end());
    by_rank_.merge(other.by_rank_);
    meets_.merge(other.meets_);
    start_ns_ = std::min(start_ns_, other.start_ns_);
    end_ns_ = std::max(end_ns_, other.end_ns_);
    communicates_ |= other.communicates_;
    has_run_id_ |= other.has_run_id_;
    has_rankless_ |= other.has_rankless_;
    assumed |= other.assumed;
  }
  // True if ranks and times allow both to be in one job. `by_folder`: only a run id or a folder
  // connects them.
  bool fits(const Part& other, bool by_folder) const {
    const bool named = has_run_id_ || other.has_run_id_;
    if (!named && (by_folder || has_rankless_ || other.has_rankless_)) {
      if (end_ns_ < other.start_ns_ || other.end_ns_ < start_ns_) return false;
    }
    // Ranks of one host with the same rendezvous have already been joined.
    const auto met_there = [&](const auto& place) {
      const auto found = other.meets_.lower_bound({place.first, {}});
      return found != other.meets_.end() && found->first == place.first;
    };
    if (by_folder && std::ranges::any_of(meets_, met_there)) return false;
    return by_rank_.size() < other.by_rank_.size() ? !other.ranks_clash(by_rank_)
                                                   : !ranks_clash(other.by_rank_);
  }

  const Processes& processes() const { return processes_; }
  std::int64_t start_ns() const { return start_ns_; }
  bool communicates() const { return communicates_; }

  bool assumed = false;  // only the folder connects some of its processes

 private:
  using Holders = std::multimap<std::int64_t, const read::Process*>;

  bool ranks_clash(const Holders& others) const {
    return std::ranges::any_of(others, [&](const auto& held) {
      const auto [first, last] = by_rank_.equal_range(held.first);
      const read::Process& theirs = *held.second;
      const auto shares = [&](const auto& mine) { return may_share_a_rank(*mine.second, theirs); };
      const auto communicates = [](const read::Process& p) { return !p.comms.empty(); };
      const auto both = [&](const auto& mine) {
        return communicates(*mine.second) && communicates(theirs);
      };
      return first != last && (std::any_of(first, last, both) || std::none_of(first, last, shares));
    });
  }

  Processes processes_;
  Holders by_rank_;  // without processes of their parent's rank
  std::set<std::pair<std::string_view, std::string_view>> meets_;  // boot and rendezvous
  std::int64_t start_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns_ = 0;
  bool communicates_ = false;
  bool has_run_id_ = false;
  bool has_rankless_ = false;
};

void refuse_copies(const Processes& processes) {
  // The key has the time of the first call, since exec keeps a process's pid and start.
  std::map<std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::size_t>,
           const read::Process*>
      seen;
  for (const read::Process* p : processes) {
    const read::Header& h = p->header;
    const auto [first, fresh] =
        seen.try_emplace({h.boot_id, h.pid, h.start_ns, h.base_time_ns, p->lane}, p);
    if (fresh) continue;
    std::error_code error;
    if (std::filesystem::equivalent(p->file, first->second->file, error)) {
      throw read::BadInput(p->file, "is given twice");
    }
    throw read::BadInput(p->file, "holds the same process as " + first->second->file + " (host " +
                                      h.host + ", pid " + std::to_string(h.pid) +
                                      "): one of them is a copy, leave it out");
  }
}

// Returns the parent that started this process for its own rank, such as a data loader: it has no
// communicator, and its parent's rank in the environment.
const read::Process* parent_of(
    const read::Process& p,
    const std::multimap<std::pair<std::string_view, std::int64_t>, const read::Process*>& by_pid) {
  const read::Header& h = p.header;
  if (!p.comms.empty() || (!h.forked_from && !h.launcher)) return nullptr;
  const std::int64_t pid = h.forked_from ? h.forked_from->pid : h.launcher->pid;
  const auto [first, last] = by_pid.equal_range({h.boot_id, pid});
  const auto found = std::find_if(first, last, [&](const auto& entry) {
    const read::Process& parent = *entry.second;
    const read::Header& of = parent.header;
    if (h.rank && h.rank != of.rank) return false;
    if (h.forked_from) return h.forked_from->start_ns == of.start_ns;
    return launch_key(p) == launch_key(parent) && !meet_apart(h, of) && of.start_ns <= h.start_ns &&
           lived_together(p, parent);
  });
  return found == last ? nullptr : found->second;
}

// A union-find structure; the first element represents a set.
class Joined {
 public:
  explicit Joined(std::size_t n) : above_(n) {
    std::iota(above_.begin(), above_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t i) {
    while (above_[i] != i) i = above_[i] = above_[above_[i]];
    return i;
  }
  void put_under(std::size_t i, std::size_t other) { above_[root(i)] = root(other); }

 private:
  std::vector<std::size_t> above_;
};

// Joins processes that share a communicator, and children with their parents.
std::vector<Part> connected(const Processes& processes) {
  Joined joined(processes.size());
  std::map<std::string_view, std::size_t> holder;
  std::map<const read::Process*, std::size_t> place;
  std::multimap<std::pair<std::string_view, std::int64_t>, const read::Process*> by_pid;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const read::Process& p = *processes[i];
    place.emplace(&p, i);
    by_pid.emplace(std::pair(std::string_view(p.header.boot_id), p.header.pid), &p);
    for (const auto& [number, comm] : p.comms) {
      if (!comm.known()) continue;
      const auto [first, fresh] = holder.try_emplace(comm.id, i);
      if (!fresh) joined.put_under(i, first->second);
    }
  }
  std::vector<bool> belongs(processes.size());
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const read::Process* parent = parent_of(*processes[i], by_pid);
    if (parent == nullptr || parent == processes[i]) continue;
    belongs[i] = true;
    joined.put_under(i, place.at(parent));
  }
  std::map<std::size_t, Part> parts;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    parts[joined.root(i)].add({*processes[i], belongs[i]});
  }
  std::vector<Part> all;
  for (auto& [first, part] : parts) all.push_back(std::move(part));
  return all;
}

// Processes of one launch have a mark in common. The strongest is the rendezvous, then the
// launcher, then the run id or the folder.
using Mark = std::tuple<LaunchKey, std::string_view, std::int64_t>;
using Marks = std::set<Mark>;

void where_they_meet(const read::Process& p, Marks& to) {
  const read::Header& h = p.header;
  if (!h.rendezvous.empty()) to.emplace(launch_key(p), h.rendezvous, 0);
}
void who_started_whom(const read::Process& p, Marks& to) {
  const read::Header& h = p.header;
  to.emplace(launch_key(p), h.boot_id, h.pid);
  if (h.launcher) to.emplace(launch_key(p), h.boot_id, h.launcher->pid);
}
void run_or_folder(const read::Process& p, Marks& to) {
  to.emplace(launch_key(p), std::string_view(), 0);
}

// Joins fitting parts with a common mark. A part that fits several launches belongs to the latest
// that had begun.
std::vector<Part> joined_by(void (*marks_of)(const read::Process&, Marks&),
                            std::vector<Part> parts) {
  // Processes without communicators come last, and join those with some.
  std::ranges::stable_sort(
      parts, {}, [](const Part& part) { return std::pair(!part.communicates(), part.start_ns()); });
  const bool by_folder = marks_of == run_or_folder;
  std::vector<Part> jobs;
  std::map<Mark, std::set<std::size_t>> marked;
  for (Part& part : parts) {
    Marks marks;
    for (const read::Process* p : part.processes()) marks_of(*p, marks);
    std::optional<std::size_t> home;
    for (const Mark& mark : marks) {
      for (const std::size_t job : marked[mark]) {
        if (!jobs[job].fits(part, by_folder)) continue;
        if (!home || jobs[job].start_ns() <= part.start_ns()) home = job;
      }
    }
    if (!home) {
      home = jobs.size();
      jobs.emplace_back();
    } else if (by_folder) {
      part.assumed = part.processes().front()->header.run_id.empty();
    }
    jobs[*home].add(std::move(part));
    for (const Mark& mark : marks) marked[mark].insert(*home);
  }
  return jobs;
}

std::int64_t last_heard_ns(const read::Process& p) {
  if (p.end == read::End::running && !p.forced) return std::numeric_limits<std::int64_t>::max();
  return p.header.base_time_ns + (p.ledger ? p.ledger->ts_ns : 0);
}

// Groups the processes so that each group has each rank at most once: by rendezvous, then by
// launcher, then by communicator, the largest first.
std::vector<Processes> rank_groups(const Processes& processes) {
  using Link = std::tuple<int, std::int64_t, std::string_view, std::int64_t>;
  std::map<Link, std::vector<std::size_t>> links;
  Joined joined(processes.size());
  std::vector<std::set<std::int64_t>> ranks(processes.size());
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const read::Header& h = processes[i]->header;
    ranks[i] = {*h.rank};
    if (!h.rendezvous.empty()) links[{0, 0, h.rendezvous, 0}].push_back(i);
    if (h.launcher) links[{1, h.launcher->start_ticks, h.boot_id, h.launcher->pid}].push_back(i);
    for (const auto& [number, comm] : processes[i]->comms) {
      if (comm.known()) links[{2, -comm.nranks, comm.id, 0}].push_back(i);
    }
  }
  for (const auto& [link, members] : links) {
    // A link with a rank twice joins groups, so it makes none.
    std::set<std::int64_t> here;
    for (const std::size_t member : members) here.insert(*processes[member]->header.rank);
    if (here.size() < members.size()) continue;
    for (const std::size_t member : members) {
      std::size_t a = joined.root(members.front());
      std::size_t b = joined.root(member);
      if (ranks[a].size() < ranks[b].size()) std::swap(a, b);
      const auto held = [&](std::int64_t rank) { return ranks[a].contains(rank); };
      if (std::ranges::any_of(ranks[b], held)) continue;
      ranks[a].merge(ranks[b]);
      joined.put_under(b, a);
    }
  }
  std::map<std::size_t, Processes> groups;
  for (std::size_t i = 0; i < processes.size(); ++i) groups[joined.root(i)].push_back(processes[i]);
  std::vector<Processes> all;
  for (auto& [first, group] : groups) all.push_back(std::move(group));
  return all;
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
    if (job.only.empty()) job.only = p->only;
    job.from_ns = std::min(job.from_ns, h.base_time_ns);
    job.until_ns = std::max(job.until_ns, last_heard_ns(*p));
  }
  // The contract has the merge's filters as a sentence: "only ranks 0-3, ops ALLGATHER".
  const auto has = [&](std::string_view words) { return job.only.find(words) != job.only.npos; };
  job.part = has("only rank");
  job.some_calls = !job.only.empty() && (!job.part || has(", ") || has("; "));
  for (std::int64_t rank = 0; !job.part && rank < job.world_size.value_or(0); ++rank) {
    if (!held.contains(rank)) job.missing.push_back(rank);
  }
  Processes holders;
  bool several = false;
  for (const read::Process* p : processes) {  // sorted by rank
    if (!p->header.rank || p->comms.empty()) continue;
    several = several || (!holders.empty() && holders.back()->header.rank == p->header.rank);
    holders.push_back(p);
  }
  if (several) job.groups = rank_groups(holders);
  const std::int64_t restart = processes.front()->header.restart;
  job.label = job.run_id.empty() ? kUnnamed : job.run_id;
  if (restart != 0) job.label += ".r" + std::to_string(restart);
  job.processes = std::move(processes);
  return job;
}

std::int64_t restarts(const Job& job) {
  return job.processes.front()->header.restart;
}

bool launched_alike(const Job& a, const Job& b) {
  std::set<std::pair<std::string_view, read::Launcher>> launchers;
  for (const read::Process* p : a.processes) {
    if (p->header.launcher) launchers.emplace(p->header.boot_id, *p->header.launcher);
  }
  return std::ranges::any_of(b.processes, [&](const read::Process* p) {
    return p->header.launcher && launchers.contains({p->header.boot_id, *p->header.launcher});
  });
}

// True if `later` may be the attempt after `earlier`: the same ranks, after it had ended. Processes
// that were killed late may overlap with restarted ones.
bool follows(const Job& earlier, const Job& later) {
  const bool over = earlier.until_ns <= later.from_ns;
  const bool anew = restarts(earlier) < restarts(later) && launched_alike(earlier, later);
  if (!over && !anew) return false;
  const auto held = [&](std::int64_t rank) {
    return std::ranges::binary_search(earlier.ranks, rank);
  };
  return (earlier.ranks.empty() && later.ranks.empty()) || std::ranges::any_of(later.ranks, held);
}

using read::Comm;
using read::Process;

std::uint64_t hex(const std::string& text) {
  std::uint64_t v = 0;
  std::from_chars(text.data(), text.data() + text.size(), v, 16);
  return v;
}

struct Handle {
  const Process* process;
  const Comm* comm;
};
using Roots = std::map<std::string_view, Handle>;  // the handle that knows both ids, by alias

// A grown communicator may be split and grown again, by a root that was new itself. So its id
// depends on the root's or the parent's, and so on. `generations` ends a cycle in a damaged file.
std::string joined_id(const Roots& roots, const Handle& handle, int generations = 256) {
  const Comm& comm = *handle.comm;
  if (generations == 0) return comm.id;
  const auto root = roots.find(comm.id);
  if (root != roots.end()) return joined_id(roots, root->second, generations - 1);
  const auto parent = handle.process->comms.find(comm.parent.value_or(0));
  if (comm.birth.empty() || parent == handle.process->comms.end()) return comm.id;
  const std::string id = joined_id(roots, {handle.process, &parent->second}, generations - 1);
  return id == parent->second.id ? comm.id.str()
                                 : fmt::format("{:016x}", mix64(hex(id) ^ hex(comm.birth)));
}

}  // namespace

std::string_view no_lines_by(const Job& job) {
  std::string_view by;
  for (const Process* p : job.processes) {
    by = read::no_lines_by(*p);
    if (by.empty()) break;
  }
  return by;
}

std::vector<Job> jobs_of(const Processes& processes) {
  refuse_copies(processes);
  std::vector<Part> parts = connected(processes);
  for (const auto marks_of : {where_they_meet, who_started_whom, run_or_folder}) {
    if (parts.size() > 1) parts = joined_by(marks_of, std::move(parts));
  }
  std::vector<Job> jobs;
  for (const Part& part : parts) {
    jobs.push_back(job_of(part.processes()));
    jobs.back().assumed = part.assumed;
  }
  std::ranges::stable_sort(jobs, {}, &Job::from_ns);
  std::map<std::string, std::size_t> named;
  for (Job& job : jobs) ++named[job.label];
  std::map<std::string, std::size_t> used;
  for (Job& job : jobs) {
    for (Job& earlier : jobs) {
      if (&earlier == &job) break;
      if (earlier.run_id != job.run_id || !follows(earlier, job)) continue;
      job.attempt = std::max(job.attempt, earlier.attempt + 1);
      earlier.restarted = earlier.restarted || restarts(earlier) < restarts(job);
    }
    const std::size_t number = ++used[job.label];
    if (named.at(job.label) > 1) job.label += fmt::format("#{}", number);
  }
  return jobs;
}

void join_ids(std::vector<read::Trace>& traces) {
  Roots roots;
  std::vector<std::pair<Comm*, std::string>> joined;
  for (read::Trace& trace : traces) {
    for (Process& p : trace.processes) {
      for (auto& [number, comm] : p.comms) {
        if (!comm.alias.empty() && comm.known()) roots.try_emplace(comm.alias, Handle{&p, &comm});
      }
    }
  }
  if (roots.empty()) return;
  for (read::Trace& trace : traces) {
    for (Process& p : trace.processes) {
      for (auto& [number, comm] : p.comms)
        joined.emplace_back(&comm, joined_id(roots, {&p, &comm}));
    }
  }
  for (auto& [comm, id] : joined) comm->id = std::move(id);
}

}  // namespace tprof::job
