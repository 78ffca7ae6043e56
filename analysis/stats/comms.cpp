#include "stats/comms.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tprof::stats {

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
      std::optional<std::uint64_t> issued;
      for (const read::Collectives& all : read::collectives_of(*p)) {
        if (all.comm == number) issued = read::saturated_sum(issued.value_or(0), all.count);
      }
      if (issued) c.issued(*issued);
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
  return all;
}

}  // namespace tprof::stats
