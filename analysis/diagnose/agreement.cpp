#include "diagnose/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "diagnose/names.h"
#include "report/text.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;
using Members = std::vector<const Member*>;

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

void remove(Members& members, const Members& gone) {
  const std::set<const Member*> all(gone.begin(), gone.end());
  std::erase_if(members, [&](const Member* m) { return all.contains(m); });
}

// Takes from `members` all that are not like most of them.
template <typename Value>
void part(Members& members, const Value& value, Split what, std::vector<Split>& splits) {
  if (members.empty()) return;
  std::vector<Members> groups = groups_by(members, value);
  if (groups.size() == 1) return;
  for (std::size_t i = 1; i < groups.size(); ++i) {
    what.members = groups[i];
    what.others = groups[0];
    what.tie = groups[i].size() == groups[0].size();
    splits.push_back(what);
    remove(members, groups[i]);
  }
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
    const std::size_t before = splits.size();
    part(
        with_mark, [&](const Member& m) { return m.done->marks[k]; }, what, splits);
    for (std::size_t i = before; i < splits.size(); ++i) {
      remove(members, splits[i].members);
    }
  }
}

// Behind the last mark: equal numbers want equal signatures.
void part_by_signature(Members& members, std::vector<Split>& splits) {
  if (members.empty()) return;
  for (Members& group : groups_by(members, [](const Member& m) { return m.count(); })) {
    const std::uint64_t count = group[0]->count();
    const std::size_t before = splits.size();
    part(
        group, [](const Member& m) { return m.done->signature; },
        {.same = std::bit_floor(count), .end = count}, splits);
    for (std::size_t i = before; i < splits.size(); ++i) {
      remove(members, splits[i].members);
    }
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

void part_by_count(const Members& members, std::vector<Split>& splits) {
  if (members.empty()) return;
  const auto groups =
      groups_by(members, [](const Member& m) { return std::pair(m.count(), m.closed()); });
  const Members others = reference(members, groups);
  const Member& o = *others[0];
  for (const Members& group : groups) {
    const Member& m = *group[0];
    if (m.count() == o.count()) continue;
    const bool fewer = m.count() < o.count();
    const bool stopped = fewer && !(m.closed() && o.closed());
    const std::uint64_t both = std::min(m.count(), o.count());
    splits.push_back({.parting = stopped ? Parting::stopped
                                 : fewer ? Parting::fewer
                                         : Parting::more,
                      .members = group,
                      .others = others,
                      .tie = group.size() == others.size(),
                      .same = both == 0 ? 0 : std::bit_floor(both),
                      .end = both + 1});
  }
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
  const std::uint64_t mine = s.members[0]->count();
  const std::uint64_t theirs = s.others[0]->count();
  const std::string who = names_of(s.members);
  const bool one = s.members.size() == 1;
  if (mine == theirs) {
    return fmt::format("{} issued {} collectives as {} did, but not the same ones", who,
                       report::thousands(mine), others_name(s));
  }
  return fmt::format("{} issued {} collectives{}, {} {}", who, report::thousands(mine),
                     one ? "" : " each", others_name(s), report::thousands(theirs));
}

}  // namespace

std::vector<Communicator> communicators(const match::Job& job) {
  std::map<std::string, Communicator> found;
  for (const Process* p : job.processes) {
    for (const auto& [number, comm] : p->comms) {
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
  const auto mine = rows_of(*s.members[0]);
  auto theirs = rows_of(*s.others[0]);
  std::map<RowKey, std::pair<Calls, Calls>> both;
  for (const auto& [key, calls] : mine) both[key].first = calls;
  for (const auto& [key, calls] : theirs) both[key].second = calls;
  const std::string who = names_of(s.members);
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
  Members all = s.members;
  if (s.tie) all.insert(all.end(), s.others.begin(), s.others.end());
  Problem p{.kind = kMismatch,
            .severity = Severity::error,
            .ranks = ranks_of(all),
            .text = fmt::format("communicator {} ({} ranks): {}", c.id, c.nranks,
                                number_of_collectives(s)),
            .next =
                "look for what decides in the program whether, in which order and with what "
                "this call is made: there something depends on the rank",
            .communicator = c.id,
            .between = std::pair(s.same, s.end),
            .evidence = row_evidence(s)};
  if (s.end == s.same + 1) p.seq = s.same;
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
