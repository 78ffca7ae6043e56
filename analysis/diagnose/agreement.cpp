#include "diagnose/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "diagnose/names.h"
#include "text/text.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

// Known, if not up to the end: a process that is lost has its last ledger.
const read::Collectives* collectives_of(const Process& p, std::int64_t comm) {
  if (p.ledgers.empty() || p.end == End::partial) return nullptr;
  const auto& all = p.ledgers.rbegin()->second.collectives;
  const auto found = std::ranges::find(all, comm, &read::Collectives::comm);
  return found == all.end() ? nullptr : &*found;
}

// Members by a value of theirs; the largest group first, of equal ones that with the lowest rank.
template <typename Value>
std::vector<Members> groups_by(const Members& members, const Value& value) {
  std::map<decltype(value(*members[0])), std::size_t> place;
  std::vector<Members> groups;
  for (const Member* m : members) {
    const auto [at, fresh] = place.try_emplace(value(*m), groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(m);
  }
  std::ranges::stable_sort(groups, std::ranges::greater(), &Members::size);
  return groups;
}

// Takes from `members` those of `among` that are not like most of these.
template <typename Value>
void part(Members& members, const Members& among, const Value& value, Split what,
          std::vector<Split>& splits) {
  std::vector<Members> groups = groups_by(among, value);
  if (groups.size() == 1) return;
  what.others = std::move(groups[0]);
  what.groups.assign(std::make_move_iterator(groups.begin() + 1),
                     std::make_move_iterator(groups.end()));
  what.tie = what.groups[0].size() == what.others.size();
  const Members all = what.members();
  const std::set<const Member*> gone(all.begin(), all.end());
  std::erase_if(members, [&](const Member* m) { return gone.contains(m); });
  splits.push_back(std::move(what));
}

// The first marks that differ say between which collectives two ranks parted.
void part_by_marks(Members& members, std::vector<Split>& splits) {
  for (std::size_t k = 0; k < 64; ++k) {
    Members with_mark;
    std::ranges::copy_if(members, std::back_inserter(with_mark),
                         [&](const Member* m) { return m->done->marks.size() > k; });
    if (with_mark.empty()) return;
    const Split what{.same = k == 0 ? 0 : std::uint64_t{1} << (k - 1),
                     .end = std::uint64_t{1} << k};
    part(
        members, with_mark, [&](const Member& m) { return m.done->marks[k]; }, what, splits);
  }
}

// Behind the last mark: equal numbers want equal signatures.
void part_by_signature(Members& members, std::vector<Split>& splits) {
  if (members.empty()) return;
  for (const Members& group : groups_by(members, [](const Member& m) { return m.count(); })) {
    const std::uint64_t count = group[0]->count();
    part(
        members, group, [](const Member& m) { return m.done->signature; },
        {.same = std::bit_floor(count), .end = count}, splits);
  }
}

// The number of collectives that the others are measured by: that of most members if they closed,
// else of those that got furthest.
Members reference(const Members& members, const std::vector<Members>& groups) {
  const Members& most = groups[0];
  const bool closed = std::ranges::all_of(most, &Member::closed);
  if (closed && 2 * most.size() > members.size()) return most;
  return *std::ranges::max_element(groups, {}, [](const Members& g) { return g[0]->count(); });
}

// The range of a group that got further than the others, or not as far.
Split with_range(Split s) {
  s.same = UINT64_MAX;
  s.end = 0;
  for (const Members& group : s.groups) {
    const std::uint64_t both = std::min(group[0]->count(), s.others[0]->count());
    s.same = std::min(s.same, both == 0 ? 0 : std::bit_floor(both));
    s.end = std::max(s.end, both + 1);
  }
  s.tie = s.groups[0].size() == s.others.size();
  return s;
}

void part_by_count(const Members& members, std::vector<Split>& splits) {
  if (members.empty()) return;
  const auto groups =
      groups_by(members, [](const Member& m) { return std::pair(m.count(), m.closed()); });
  const Members others = reference(members, groups);
  const Member& o = *others[0];
  std::map<Parting, Split> partings;
  for (const Members& group : groups) {
    const Member& m = *group[0];
    if (m.count() == o.count()) continue;
    const bool fewer = m.count() < o.count();
    const bool stopped = fewer && !(m.closed() && o.closed());
    const Parting parting = stopped ? Parting::stopped : fewer ? Parting::fewer : Parting::more;
    Split& s =
        partings.try_emplace(parting, Split{.parting = parting, .others = others}).first->second;
    s.groups.push_back(group);
  }
  for (auto& [parting, s] : partings) splits.push_back(with_range(std::move(s)));
}

struct Calls {
  std::uint64_t calls = 0;
  std::uint64_t count = 0;
};
using RowKey = std::tuple<std::string, std::string, std::int64_t>;  // function, dtype, bytes_class

// What the signature covers: collectives that were called, into a graph or not.
std::map<RowKey, Calls> rows_of(const Member& m) {
  std::map<RowKey, Calls> rows;
  for (const read::Row& row : m.process->ledgers.rbegin()->second.rows) {
    if (row.comm != m.comm->comm || row.bucket == Bucket::P2P || row.mode == Mode::replayed) {
      continue;
    }
    if (row.amounts.calls == 0) continue;
    Calls& c = rows[{row.name, row.dtype, row.bytes_class}];
    c.calls += row.amounts.calls;
    c.count += row.amounts.count;
  }
  return rows;
}

std::vector<std::int64_t> ranks_of(const Members& members) {
  std::set<std::int64_t> ranks;
  for (const Member* m : members) {
    if (m->rank()) ranks.insert(*m->rank());
  }
  return {ranks.begin(), ranks.end()};
}

std::string names_of(const Members& members) {
  std::vector<const Process*> processes;
  for (const Member* m : members) processes.push_back(m->process);
  return diagnose::names_of(processes);
}

std::string others_name(const Split& s) {
  return s.tie || s.others.size() == 1 ? names_of(s.others) : "the others";
}

std::string number_of_collectives(const Split& s) {
  const auto [least, most] =
      std::ranges::minmax(s.groups, {}, [](const Members& group) { return group[0]->count(); });
  const std::uint64_t theirs = s.others[0]->count();
  const Members all = s.members();
  const std::string who = names_of(all);
  if (least[0]->count() == theirs && most[0]->count() == theirs) {
    return fmt::format("{} issued {} collectives as {} did, but not the same ones", who,
                       report::thousands(theirs), others_name(s));
  }
  std::string mine = report::thousands(least[0]->count());
  if (most[0]->count() != least[0]->count()) mine += " to " + report::thousands(most[0]->count());
  return fmt::format("{} issued {} collectives{}, {} {}", who, mine, all.size() == 1 ? "" : " each",
                     others_name(s), report::thousands(theirs));
}

}  // namespace

Members Split::members() const {
  Members all;
  for (const Members& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

Split Split::of(std::size_t i) const {
  Split one{.parting = parting,
            .groups = {groups[i]},
            .others = others,
            .tie = groups[i].size() == others.size(),
            .same = same,
            .end = end};
  return parting == Parting::differs ? one : with_range(std::move(one));
}

std::vector<Communicator> communicators(const match::Job& job) {
  std::map<std::string, Communicator> found;
  for (const Process* p : job.processes) {
    for (const auto& [number, comm] : p->comms) {
      if (!comm.known()) continue;
      Communicator& c = found[comm.id];
      c.id = comm.id;
      c.nranks = std::max(c.nranks, comm.nranks);
      if (comm.name) c.name = *comm.name;
      c.members.push_back({p, &comm, collectives_of(*p, number)});
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
  a.all_there = members.size() == static_cast<std::size_t>(c.nranks);
  if (members.empty()) return a;
  a.collectives = groups_by(members, [](const Member& m) { return m.count(); })[0][0]->count();
  part_by_marks(members, a.splits);
  part_by_signature(members, a.splits);
  part_by_count(members, a.splits);
  return a;
}

std::vector<std::string> row_evidence(const Split& s) {
  constexpr std::size_t kShown = 6;
  const auto mine = rows_of(*s.groups[0][0]);
  auto theirs = rows_of(*s.others[0]);
  std::map<RowKey, std::pair<Calls, Calls>> both;
  for (const auto& [key, calls] : mine) both[key].first = calls;
  for (const auto& [key, calls] : theirs) both[key].second = calls;
  const std::string who = names_of(s.groups[0]);
  std::vector<std::string> evidence;
  std::size_t left_out = 0;
  for (const auto& [key, calls] : both) {
    const auto& [a, b] = calls;
    if (a.calls == b.calls && a.count == b.count) continue;
    if (evidence.size() == kShown) {
      ++left_out;
      continue;
    }
    const auto& [name, dtype, bytes_class] = key;
    const std::string what = fmt::format("{} of {} in {}", name, dtype, size_range(bytes_class));
    evidence.push_back(a.calls != b.calls
                           ? fmt::format("{}: {} {}, {} {}", who, report::thousands(a.calls), what,
                                         others_name(s), report::thousands(b.calls))
                           : fmt::format("{}: {} {} with counts that add up to {}, {} {}", who,
                                         report::thousands(a.calls), what,
                                         report::thousands(a.count), others_name(s),
                                         report::thousands(b.count)));
  }
  if (left_out != 0) evidence.push_back(fmt::format("and {} more kinds of calls", left_out));
  if (evidence.empty()) {
    evidence.emplace_back(
        "the same calls of the same sizes on both sides: what differs is the root, the reduction "
        "or the order");
  }
  return evidence;
}

std::string where(const Split& s) {
  return s.end == s.same + 1
             ? fmt::format("they part at collective {}", s.same)
             : fmt::format("they part at one of the collectives {} to {}", s.same, s.end - 1);
}

Problem mismatch_of(const Communicator& c, const Split& s) {
  Members all = s.members();
  if (s.tie) all.insert(all.end(), s.others.begin(), s.others.end());
  Problem p{.kind = kMismatch,
            .severity = Severity::error,
            .ranks = ranks_of(all),
            .text = fmt::format("communicator {} ({} ranks): {}", c.id, c.nranks,
                                number_of_collectives(s)),
            .next = kNextOfMismatch,
            .communicator = c.id,
            .between = std::pair(s.same, s.end),
            .evidence = row_evidence(s)};
  if (s.end == s.same + 1) p.seq = s.same;
  if (s.groups.size() > 1) {
    p.evidence.push_back(fmt::format("they differ among themselves too, in {} ways: shown is {}",
                                     report::thousands(s.groups.size()), names_of(s.groups[0])));
  }
  if (s.tie) p.evidence.emplace_back("no side is the majority: either may be the wrong one");
  return p;
}

void mismatches(const match::Job& job, std::vector<Problem>& found) {
  for (const Communicator& c : communicators(job)) {
    for (const Split& s : agreement_of(c).splits) {
      if (s.parting == Parting::stopped) continue;
      found.push_back(mismatch_of(c, s));
      found.back().text += "; " + where(s);
    }
  }
}

}  // namespace tprof::diagnose
