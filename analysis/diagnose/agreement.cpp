#include "diagnose/agreement.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "stats/totals.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

// Returns what a process did on each of its communicators. A lost process counts too: its last
// ledger is exact, though it may not reach the end.
std::map<std::int64_t, Member> members_of(const Process& p) {
  std::map<std::int64_t, Member> members;
  for (const auto& [number, comm] : p.comms) members[number] = {.process = &p, .comm = &comm};
  if (p.end != End::partial) {
    for (const read::Collectives& c : read::collectives_of(p)) members[c.comm].done = &c;
  }
  stats::each_row(p, [&](const read::Row& row) {
    if (row.name == "ncclSend") members[row.comm.value_or(0)].sends += row.amounts.calls;
    if (row.name == "ncclRecv") members[row.comm.value_or(0)].receives += row.amounts.calls;
  });
  return members;
}

// Groups the members by a value. The largest group comes first; among equal ones, that with the
// lowest rank.
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

// Removes from `members` those of `among` that differ from its largest group, as a new parting.
template <typename Value>
void part(Members& members, const Members& among, const Value& value, Parting what,
          std::vector<Parting>& partings) {
  std::vector<Members> groups = groups_by(among, value);
  if (groups.size() == 1) return;
  what.others = std::move(groups[0]);
  what.groups.assign(std::make_move_iterator(groups.begin() + 1),
                     std::make_move_iterator(groups.end()));
  const Members all = what.members();
  const std::set<const Member*> gone(all.begin(), all.end());
  std::erase_if(members, [&](const Member* m) { return gone.contains(m); });
  partings.push_back(std::move(what));
}

// The first marks that differ tell between which collectives two ranks diverged.
void part_by_marks(Members& members, std::vector<Parting>& partings) {
  for (std::size_t k = 0; k < 64; ++k) {
    Members with_mark;
    std::ranges::copy_if(members, std::back_inserter(with_mark),
                         [&](const Member* m) { return m->done->marks.size() > k; });
    if (with_mark.empty()) return;
    const std::uint64_t end = std::uint64_t{1} << k;
    const auto mark = [&](const Member& m) { return m.done->marks[k]; };
    part(members, with_mark, mark, {.same = end / 2, .end = end}, partings);
  }
}

// Beyond the last mark, ranks with equal counts must have equal signatures.
void part_by_signature(Members& members, std::vector<Parting>& partings) {
  if (members.empty()) return;
  for (const Members& group : groups_by(members, [](const Member& m) { return m.count(); })) {
    const std::uint64_t count = group[0]->count();
    part(
        members, group, [](const Member& m) { return m.done->signature; },
        {.same = std::bit_floor(count), .end = count}, partings);
  }
}

// Returns the members whose count the others are measured by: the majority if they closed, else
// those that got furthest.
Members reference(const Members& members, const std::vector<Members>& groups) {
  const Members& most = groups[0];
  const bool closed = std::ranges::all_of(most, &Member::closed);
  if (closed && 2 * most.size() > members.size()) return most;
  return *std::ranges::max_element(groups, {}, [](const Members& g) { return g[0]->count(); });
}

// Sets the range for groups that got further than the others, or less far.
Parting with_range(Parting s) {
  s.same = UINT64_MAX;
  s.end = 0;
  for (const Members& group : s.groups) {
    const std::uint64_t both = std::min(group[0]->count(), s.others[0]->count());
    s.same = std::min(s.same, both == 0 ? 0 : std::bit_floor(both));
    s.end = std::max(s.end, both + 1);
  }
  return s;
}

void part_by_count(const Members& members, std::vector<Parting>& partings) {
  if (members.empty()) return;
  const auto groups =
      groups_by(members, [](const Member& m) { return std::pair(m.count(), m.closed()); });
  const Members others = reference(members, groups);
  const Member& o = *others[0];
  std::map<How, Parting> by_how;
  for (const Members& group : groups) {
    const Member& m = *group[0];
    if (m.count() == o.count()) continue;
    const bool fewer = m.count() < o.count();
    const bool stopped = fewer && !(m.closed() && o.closed());
    const How how = stopped ? How::stopped : fewer ? How::fewer : How::more;
    Parting& s = by_how.try_emplace(how, Parting{.how = how, .others = others}).first->second;
    s.groups.push_back(group);
  }
  for (auto& [how, s] : by_how) partings.push_back(with_range(std::move(s)));
}

}  // namespace

Members Parting::members() const {
  Members all;
  for (const Members& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

Parting Parting::of_group(const Members& group) const {
  Parting one{how, {group}, others, same, end};
  return how == How::differs ? one : with_range(std::move(one));
}

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

std::optional<HowFar> how_far(const Communicator& c) {
  Members known;
  for (const Member& m : c.members) {
    if (m.done != nullptr) known.push_back(&m);
  }
  if (known.empty()) return std::nullopt;
  const auto [least, most] =
      std::ranges::minmax(known, {}, [](const Member* m) { return m->count(); });
  HowFar far{.behind = {}, .least = least->count(), .most = most->count()};
  if (far.least == far.most) return far;
  for (const Member* m : known) {
    if (m->count() == far.least) far.behind.push_back(m);
  }
  return far;
}

std::vector<Communicator> communicators(const job::Job& job) {
  std::map<std::string, Communicator> found;
  for (const Process* p : job.processes) {
    for (const auto& [number, member] : members_of(*p)) {
      if (member.comm == nullptr || !member.comm->known()) continue;
      const read::Comm& comm = *member.comm;
      Communicator& c = found[comm.id];
      c.id = comm.id;
      c.nranks = std::max(c.nranks, comm.nranks);
      if (comm.name) c.name = *comm.name;
      c.members.push_back(member);
    }
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
                std::ranges::none_of(c.members, &Member::dumped);  // these have no signatures
  if (members.empty()) return a;
  a.collectives = groups_by(members, [](const Member& m) { return m.count(); })[0][0]->count();
  const auto [fewest, most] = std::ranges::minmax(members, {}, &Member::count);
  a.fewest = fewest->count();
  a.most = most->count();
  part_by_marks(members, a.partings);
  part_by_signature(members, a.partings);
  part_by_count(members, a.partings);
  return a;
}

}  // namespace tprof::diagnose
