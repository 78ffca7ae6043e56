#include "tables/comms.h"

#include <array>
#include <initializer_list>
#include <iterator>
#include <set>
#include <utility>

#include "text/text.h"

namespace tprof::tables {
namespace {

// Words and their roles. The first of these in a name decides: dp_replicate is not plain data
// parallelism.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"replicate", "replicate"}, {"shard", "shard"}, {"fsdp", "shard"},      {"ep", "expert"},
    {"expert", "expert"},       {"cp", "context"},  {"context", "context"}, {"pp", "pipeline"},
    {"pipeline", "pipeline"},   {"tp", "tensor"},   {"tensor", "tensor"},   {"sp", "sequence"},
    {"sequence", "sequence"},   {"dp", "data"},     {"ddp", "data"},        {"data", "data"},
};

using Id = std::pair<std::string, std::int64_t>;

// Bytes by bucket, split into calls on autograd threads and on others.
struct Traffic {
  struct Split {
    std::uint64_t backward = 0;
    std::uint64_t rest = 0;
    std::uint64_t all() const { return read::saturated_sum(backward, rest); }
  };
  std::array<Split, kBucketCount> of{};
  std::uint64_t total = 0;

  const Split& operator[](Bucket bucket) const { return of[static_cast<std::size_t>(bucket)]; }
  bool mostly(Bucket bucket, std::uint64_t left_aside = 0) const {
    const std::uint64_t all = (*this)[bucket].all();
    return all != 0 && all / 9 >= total - std::min(total, read::saturated_sum(all, left_aside));
  }
};

// Activations in the forward pass and their gradients in the backward pass have about the same
// size.
bool alike(std::uint64_t a, std::uint64_t b) {
  const auto [least, most] = std::minmax(a, b);
  return least != 0 && most / 2 <= least;
}

// Empty: no call of an autograd thread is known.
std::map<Id, Traffic> traffic_of(const job::Job& job) {
  std::map<Id, Traffic> all;
  bool autograd = false;
  for (const read::Process* p : job.processes) {
    each_row(*p, [&](const read::Row& row) {
      const bool backward = row.thread == ThreadKind::autograd;
      autograd = autograd || backward;
      const read::Comm* comm = read::comm_of(*p, row.comm);
      // Broadcasts say nothing: parameters are broadcast before the first step.
      const bool told = row.bucket == Bucket::ALLGATHER || row.bucket == Bucket::RESHARDING ||
                        row.bucket == Bucket::ALLREDUCE || row.bucket == Bucket::ALLTOALL ||
                        row.bucket == Bucket::P2P || row.bucket == Bucket::EP;
      if (!told || comm == nullptr || !comm->known()) return;
      Traffic& t = all[{comm->id, comm->nranks}];
      Traffic::Split& split = t.of[static_cast<std::size_t>(row.bucket)];
      for (std::uint64_t* sum : {&t.total, backward ? &split.backward : &split.rest}) {
        *sum = read::saturated_sum(*sum, row.amounts.bytes);
      }
    });
  }
  if (!autograd) all.clear();
  return all;
}

// Guesses without other communicators. Sharding gathers parameters and scatters their gradients, in
// the backward pass or after it (DeepSpeed). Tensor parallelism reduces activations in both passes,
// or gathers and scatters equal amounts in each; on all ranks together DeepSpeed may look the same.
// Messages on all ranks are ignored: a DeviceMesh scatters parameters by messages before the first
// step.
std::string_view guess(const Traffic& t, bool whole) {
  if (t[Bucket::EP].all() != 0) return "expert";
  if (t.mostly(Bucket::ALLTOALL)) return "expert or sequence";
  const Traffic::Split& gathered = t[Bucket::ALLGATHER];
  const Traffic::Split& scattered = t[Bucket::RESHARDING];
  const Traffic::Split& reduced = t[Bucket::ALLREDUCE];
  const bool one_pass = (scattered.backward == 0) != (scattered.rest == 0);
  if (gathered.rest != 0 && one_pass) return "shard";
  const bool in_both =
      alike(gathered.rest, scattered.rest) && alike(gathered.backward, scattered.backward);
  if (in_both && !whole) return "tensor";
  if (alike(reduced.rest, reduced.backward) && t.mostly(Bucket::ALLREDUCE, t[Bucket::P2P].all())) {
    return "tensor";
  }
  if (t.mostly(Bucket::P2P)) return "pipeline or ring";
  // The tenth allows for losses, norms and barriers.
  const bool gradients = t.mostly(Bucket::ALLREDUCE) && reduced.rest <= reduced.backward / 10;
  return gradients ? "data" : "";
}

// True if each of its ranks is in a different communicator for which which() is true: crossing
// roles split the ranks in different directions.
template <typename Which>
bool crossed_by(const CommSummary& c, const std::vector<CommSummary>& comms, const Which& which) {
  std::set<std::int64_t> met;
  for (const CommSummary& other : comms) {
    if (!which(other)) continue;
    std::vector<std::int64_t> common;
    std::ranges::set_intersection(c.ranks, other.ranks, std::back_inserter(common));
    if (common.size() > 1) return false;
    met.insert(common.begin(), common.end());
  }
  return !met.empty() && met.size() == c.ranks.size();
}

// Returns the role if crossing communicators confirm the guess; else empty.
std::string supported(const CommSummary& c, const std::vector<CommSummary>& comms,
                      std::size_t world) {
  const auto crossed = [&](std::initializer_list<std::string_view> roles) {
    return crossed_by(c, comms, [&](const CommSummary& other) {
      return other.ranks.size() > 1 && other.ranks.size() < world &&
             std::ranges::find(roles, other.role) != roles.end();
    });
  };
  if (c.role == "tensor" && crossed({"data", "shard", "replicate"})) return "tensor";
  if (c.role == "pipeline or ring" && crossed({"data", "shard", "replicate"})) return "pipeline";
  if (c.role == "replicate") return "replicate";  // as it crosses shards
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

std::string role_text(const CommSummary& c) {
  return c.role + (c.role_sure || c.role.empty() ? "" : "?");
}

std::map<std::string, std::string> role_texts(const std::vector<CommSummary>& comms) {
  std::map<std::string, std::string> roles;
  for (const CommSummary& c : comms) {
    if (!c.role.empty()) roles[c.id] = role_text(c);
  }
  return roles;
}

static void find_roles(const job::Job& job, std::vector<CommSummary>& comms) {
  const std::map<Id, Traffic> traffic = traffic_of(job);
  for (CommSummary& c : comms) {
    c.role = role_of_name(c.name);
    const auto carried = traffic.find({c.id, c.nranks});
    if (!c.role.empty() || c.nranks < 2 || carried == traffic.end()) continue;
    c.role = guess(carried->second, c.ranks.size() == job.ranks.size());
    c.role_guessed = true;
  }
  const auto shard = [](const CommSummary& other) { return other.role == "shard"; };
  for (CommSummary& c : comms) {
    const bool data = c.role_guessed && c.role == "data" && c.ranks.size() > 1;
    if (data && crossed_by(c, comms, shard)) c.role = "replicate";  // it has a rank of each shard
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

std::vector<CommSummary> communicators(const job::Job& job, const Ops& ops) {
  std::map<std::pair<std::string, std::int64_t>, CommSummary> found;
  for (const read::Process* p : job.processes) {
    for (const auto& [number, comm] : p->comms) {
      CommSummary& c = found[{comm.id, comm.nranks}];
      c.id = comm.id;
      c.nranks = comm.nranks;
      if (comm.name) c.name = *comm.name;
      const auto parent = p->comms.find(comm.parent.value_or(-1));
      if (parent != p->comms.end()) c.parent = parent->second.id;
      if (p->header.rank) c.ranks.push_back(*p->header.rank);
      for (const read::Collectives& all : read::collectives_of(*p)) {
        if (all.comm == number) c.issued(all.count);
      }
    }
  }
  for (const auto& [key, amounts] : ops) {
    const auto c = found.find({key.comm_id.str(), key.nranks});
    if (c != found.end()) c->second.amounts += amounts;
  }
  std::vector<CommSummary> all;
  for (auto& [id, c] : found) {
    std::ranges::sort(c.ranks);
    c.ranks.erase(std::unique(c.ranks.begin(), c.ranks.end()), c.ranks.end());
    all.push_back(std::move(c));
  }
  std::ranges::stable_sort(all, std::ranges::greater(), [](const CommSummary& c) {
    return std::pair(c.nranks, c.amounts.bytes);
  });
  find_roles(job, all);
  return all;
}

std::string_view role_of_name(std::string_view name) {
  const std::vector<std::string> words = text::words(name);
  for (const auto& [word, role] : kWords) {
    if (std::ranges::find(words, word) != words.end()) return role;
  }
  return "";
}

bool asks_for(std::string_view word, std::string_view role) {
  const std::string_view asked = role_of_name(word);
  if (asked.empty()) return false;
  const std::vector<std::string> words = text::words(role);
  const auto is = [&](std::string_view one) {
    return std::ranges::find(words, one) != words.end();
  };
  return is(asked) || (asked == "data" && (is("shard") || is("replicate")));
}

std::map<std::string, std::string, std::less<>> sure_roles(const job::Job& job) {
  std::map<std::string, std::string, std::less<>> roles;
  for (const CommSummary& c : communicators(job, {})) {
    if (c.role_sure) roles[c.id] = word_of(c.role);
  }
  return roles;
}

}  // namespace tprof::tables
