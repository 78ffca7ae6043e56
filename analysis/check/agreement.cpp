#include "check/agreement.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "tables/totals.h"

namespace tprof::check {
namespace {

using read::End;
using read::Process;

// Groups the members by a value, the largest group first; of equal groups, the one with the lowest
// rank first.
template <typename Value>
std::vector<Members> groups_by(const Members& members, const Value& value) {
  std::map<decltype(value(*members[0])), std::size_t> place;
  std::vector<Members> groups;
  for (const Member* m : members) {
    const auto [group, fresh] = place.try_emplace(value(*m), groups.size());
    if (fresh) groups.emplace_back();
    groups[group->second].push_back(m);
  }
  std::ranges::stable_sort(groups, std::ranges::greater(), &Members::size);
  return groups;
}

// Removes from `members` those in `among` that differ from the largest group of `among`.
template <typename Value>
void part(Members& members, const Members& among, const Value& value, std::uint64_t same,
          std::uint64_t end, std::vector<Disagreement>& disagreements) {
  const std::vector<Members> groups = groups_by(among, value);
  if (groups.size() < 2) return;
  const auto others = std::make_shared<const Members>(groups[0]);
  std::set<const Member*> gone;
  for (std::size_t i = 1; i < groups.size(); ++i) {
    gone.insert(groups[i].begin(), groups[i].end());
    disagreements.push_back({DiffersBy::differs, groups[i], others, same, end});
  }
  std::erase_if(members, [&](const Member* m) { return gone.contains(m); });
}

void part_by_signatures(Members& members, std::vector<Disagreement>& disagreements) {
  // The first differing mark tells between which collectives two ranks diverged.
  Members with_mark = members;
  for (std::size_t k = 0; k < 64 && !with_mark.empty(); ++k) {
    with_mark = members;
    std::erase_if(with_mark, [&](const Member* m) { return m->done->marks.size() <= k; });
    const std::uint64_t end = std::uint64_t{1} << k;
    const auto mark = [&](const Member& m) { return m.done->marks[k]; };
    part(members, with_mark, mark, end / 2, end, disagreements);
  }
  // Beyond the last mark, ranks with equal counts must have equal signatures.
  for (const Members& group : groups_by(members, [](const Member& m) { return m.count(); })) {
    const std::uint64_t count = group[0]->count();
    const auto signature = [](const Member& m) { return m.done->signature; };
    part(members, group, signature, std::bit_floor(count), count, disagreements);
  }
}

void part_by_count(const Members& members, std::vector<Disagreement>& disagreements) {
  if (members.empty()) return;
  const auto groups =
      groups_by(members, [](const Member& m) { return std::pair(m.count(), m.closed()); });
  // The reference is the majority if it closed, else the group that got furthest.
  const Members* most = &groups[0];
  if (!groups[0][0]->closed() || 2 * most->size() <= members.size()) {
    most = &*std::ranges::max_element(groups, {}, [](const Members& g) { return g[0]->count(); });
  }
  const auto others = std::make_shared<const Members>(*most);
  const Member& o = *others->front();
  for (const Members& group : groups) {
    const Member& m = *group[0];
    if (m.count() == o.count()) continue;
    const bool stopped = m.count() < o.count() && !(m.closed() && o.closed());
    const std::uint64_t both = std::min(m.count(), o.count());
    disagreements.push_back({stopped ? DiffersBy::stopped : DiffersBy::uneven, group, others,
                             both == 0 ? 0 : std::bit_floor(both), both + 1});
  }
}

}  // namespace

const Member* member_of(const Communicator& c, std::int64_t rank) {
  const auto of = [](const Member& m) { return m.comm->rank; };
  const auto member = std::ranges::lower_bound(c.members, rank, {}, of);
  return member != c.members.end() && of(*member) == rank ? &*member : nullptr;
}

Members who_did(const Communicator& c, std::uint64_t seq) {
  Members all;
  for (const Member& m : c.members) {
    if (m.did(seq)) all.push_back(&m);
  }
  return all;
}

Members who_issued(const Communicator& c, std::uint64_t collectives) {
  Members all;
  for (const Member& m : c.members) {
    if (m.done != nullptr && m.count() == collectives) all.push_back(&m);
  }
  return all;
}

std::vector<Communicator> communicators(const job::Job& job) {
  std::map<std::string, Communicator> found;
  for (const Process* p : job.processes) {
    // A lost process counts too: its last ledger is exact, though it may end early.
    std::map<std::int64_t, const read::Collectives*> done;
    for (const read::Collectives& c : read::collectives_of(*p)) {
      if (p->end != End::partial) done[c.comm] = &c;
    }
    std::map<std::int64_t, Communicator*> mine;
    for (const auto& [number, comm] : p->comms) {
      if (!comm.known()) continue;
      Communicator& c = found[comm.id];
      mine[number] = &c;
      c.id = comm.id;
      c.nranks = std::max(c.nranks, comm.nranks);
      if (comm.name) c.name = *comm.name;
      c.members.push_back({.process = p, .comm = &comm, .done = done[number]});
    }
    tables::each_row(*p, [&](const read::Row& row) {
      const auto on = mine.find(row.comm.value_or(0));
      if (on == mine.end()) return;
      if (row.name == "ncclSend") on->second->sends += row.amounts.calls;
      if (row.name == "ncclRecv") on->second->receives += row.amounts.calls;
    });
  }
  std::vector<Communicator> all;
  for (auto& [id, c] : found) {
    std::ranges::stable_sort(c.members, {}, [](const Member& m) { return m.comm->rank; });
    all.push_back(std::move(c));
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &Communicator::nranks);
  return all;
}

Agreement agreement_of(const Communicator& c) {
  Agreement a;
  Members members;
  for (const Member& m : c.members) {
    if (m.done != nullptr) members.push_back(&m);
  }
  a.all_there = members.size() == static_cast<std::size_t>(c.nranks) &&
                std::ranges::none_of(c.members, &Member::dumped);  // dumps have no signatures
  if (members.empty()) return a;
  a.collectives = groups_by(members, [](const Member& m) { return m.count(); })[0][0]->count();
  const auto [fewest, most] = std::ranges::minmax(members, {}, &Member::count);
  a.fewest = fewest->count();
  a.most = most->count();
  part_by_signatures(members, a.disagreements);
  part_by_count(members, a.disagreements);
  return a;
}

}  // namespace tprof::check
