#include "stats/roles.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "stats/comms.h"
#include "text/text.h"

namespace tprof::stats {
namespace {

struct Word {
  std::string_view word;
  std::string_view role;
};
// The first word that is in a name decides: dp_replicate is not plain data parallelism.
constexpr Word kWords[] = {
    {"replicate", "replicate"}, {"shard", "shard"}, {"fsdp", "shard"},      {"ep", "expert"},
    {"expert", "expert"},       {"cp", "context"},  {"context", "context"}, {"pp", "pipeline"},
    {"pipeline", "pipeline"},   {"tp", "tensor"},   {"tensor", "tensor"},   {"sp", "sequence"},
    {"sequence", "sequence"},   {"dp", "data"},     {"ddp", "data"},        {"data", "data"},
};

// Bytes by what moved them, split into calls on autograd threads and on others.
struct Traffic {
  struct Split {
    std::uint64_t backward = 0;
    std::uint64_t rest = 0;
    std::uint64_t all() const { return read::saturated_sum(backward, rest); }
  };
  Split gathered, scattered, reduced, all_to_all, point_to_point;
  std::uint64_t total = 0;

  bool mostly(const Split& split) const {
    return split.all() != 0 && split.all() / 9 >= (total - std::min(total, split.all()));
  }
};

Traffic::Split* split_of(Traffic& t, Bucket bucket) {
  switch (bucket) {
    case Bucket::ALLGATHER:
      return &t.gathered;
    case Bucket::RESHARDING:
      return &t.scattered;
    case Bucket::ALLREDUCE:
      return &t.reduced;
    case Bucket::ALLTOALL:
      return &t.all_to_all;
    case Bucket::P2P:
      return &t.point_to_point;
    default:
      return nullptr;
  }
}

using Id = std::pair<std::string, std::int64_t>;

std::map<Id, Traffic> traffic_of(const job::Job& job) {
  std::map<Id, Traffic> all;
  for (const read::Process* p : job.processes) {
    each_row(*p, [&](const read::Row& row) {
      const auto comm = p->comms.find(row.comm.value_or(-1));
      if (comm == p->comms.end() || !comm->second.known()) return;
      Traffic& t = all[{comm->second.id, comm->second.nranks}];
      Traffic::Split* split = split_of(t, row.bucket);
      if (split == nullptr) return;  // broadcasts of parameters, before the first step
      t.total = read::saturated_sum(t.total, row.amounts.bytes);
      std::uint64_t& part = row.thread == ThreadKind::autograd ? split->backward : split->rest;
      part = read::saturated_sum(part, row.amounts.bytes);
    });
  }
  return all;
}

// Guesses without looking at other communicators. Sharding gathers parameters and scatters their
// gradients, in the backward pass or after it (DeepSpeed). Sequence parallelism scatters in both
// passes, and DeepSpeed may too: then there is no guess.
std::string_view guess(const Traffic& t) {
  if (t.mostly(t.all_to_all)) return "expert or sequence";
  if (t.mostly(t.point_to_point)) return "pipeline or ring";
  const bool one_pass = (t.scattered.backward == 0) != (t.scattered.rest == 0);
  if (t.gathered.rest != 0 && one_pass) return "shard";
  if (!t.mostly(t.reduced)) return "";
  // A tenth allows for losses, norms and barriers.
  if (t.reduced.rest <= t.reduced.backward / 10) return "data";
  const auto [least, most] = std::minmax(t.reduced.rest, t.reduced.backward);
  return most / 2 <= least ? "tensor" : "";
}

// True for replicas of shards: of each group of shards it has at most one rank, and each of its
// ranks is in such a group.
bool across(const CommSummary& c, const std::vector<CommSummary>& comms) {
  std::size_t met = 0;
  for (const CommSummary& other : comms) {
    if (other.role != "shard") continue;
    std::vector<std::int64_t> common;
    std::ranges::set_intersection(c.ranks, other.ranks, std::back_inserter(common));
    if (common.size() > 1) return false;
    met += common.size();
  }
  return met == c.ranks.size() && met > 1;
}

// True if each of its ranks is in one of `others`, and no two of them are in the same: what one
// role splits, the other one does not.
bool crossed_by(const CommSummary& c, const std::vector<const CommSummary*>& others) {
  std::set<std::int64_t> met;
  for (const CommSummary* other : others) {
    std::vector<std::int64_t> common;
    std::ranges::set_intersection(c.ranks, other->ranks, std::back_inserter(common));
    if (common.size() > 1) return false;
    met.insert(common.begin(), common.end());
  }
  return met.size() == c.ranks.size();
}

// A guess that is sure by the communicators that cross it; empty: it is none.
std::string supported(const CommSummary& c, const std::vector<CommSummary>& comms,
                      std::size_t world) {
  const auto crossed = [&](std::initializer_list<std::string_view> roles) {
    std::vector<const CommSummary*> others;
    for (const CommSummary& other : comms) {
      const bool smaller = other.ranks.size() > 1 && other.ranks.size() < world;
      if (smaller && std::ranges::find(roles, other.role) != roles.end()) others.push_back(&other);
    }
    return !others.empty() && crossed_by(c, others);
  };
  if (c.role == "tensor" && crossed({"data", "shard", "replicate"})) return "tensor";
  if (c.role == "pipeline or ring" && crossed({"data", "shard", "replicate"})) return "pipeline";
  if (c.role == "replicate") return "replicate";  // by the shards that it crosses
  const bool whole = c.ranks.size() == world;
  if (c.role == "data" && (whole || crossed({"tensor", "pipeline or ring", ""}))) return "data";
  if (c.role == "shard" && (whole || crossed({"tensor", "replicate", ""}))) return "shard";
  return "";
}

std::string word_of(std::string_view role) {
  if (role == "shard") return "sharding";
  if (role == "replicate") return "replicating";
  return std::string(role) + "-parallel";
}

}  // namespace

std::string_view role_of_name(std::string_view name) {
  const std::vector<std::string> words = text::words(name);
  for (const Word& known : kWords) {
    if (std::ranges::find(words, known.word) != words.end()) return known.role;
  }
  return "";
}

void find_roles(const job::Job& job, std::vector<CommSummary>& comms) {
  bool autograd = false;
  for (const read::Process* p : job.processes) {
    each_row(*p, [&](const read::Row& row) {
      autograd = autograd || row.thread == ThreadKind::autograd;
    });
  }
  const std::map<Id, Traffic> traffic = autograd ? traffic_of(job) : std::map<Id, Traffic>();
  for (CommSummary& c : comms) {
    c.role = role_of_name(c.name);
    const auto carried = traffic.find({c.id, c.nranks});
    if (!c.role.empty() || c.nranks < 2 || carried == traffic.end()) continue;
    c.role = guess(carried->second);
    c.role_guessed = true;
  }
  for (CommSummary& c : comms) {
    if (c.role_guessed && c.role == "data" && across(c, comms)) c.role = "replicate";
  }
  std::vector<std::string> sure;
  for (const CommSummary& c : comms) {
    sure.push_back(c.role_guessed ? supported(c, comms, job.ranks.size()) : c.role);
  }
  for (std::size_t i = 0; i < comms.size(); ++i) {
    comms[i].role_sure = !sure[i].empty();
    if (comms[i].role_sure) comms[i].role = sure[i];
  }
}

std::map<std::string, std::string, std::less<>> sure_roles(const job::Job& job) {
  std::vector<CommSummary> comms = communicators(job, {});
  find_roles(job, comms);
  std::map<std::string, std::string, std::less<>> roles;
  for (const CommSummary& c : comms) {
    if (c.role_sure) roles[c.id] = word_of(c.role);
  }
  return roles;
}

}  // namespace tprof::stats
