// Finds communicators whose ranks did different things, from the ledgers. The lines tell which
// operation it is.
#include "diagnose/mismatch.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "diagnose/calls.h"
#include "diagnose/last_calls.h"
#include "diagnose/operations.h"

namespace tprof::diagnose {
namespace {

// Limits on the groups that are compared with the others line by line, per parting and per job.
// Each comparison reads two files a few times.
constexpr std::size_t kMaxComparedOfParting = 4;
constexpr std::size_t kMaxCompared = 16;

// Returns nothing for "the others".
std::optional<Who> others_of(const Parting& p) {
  return p.tie() || p.others.size() == 1 ? std::optional(who_of(p.others)) : std::nullopt;
}

Fact number_of_collectives(const Parting& p) {
  const auto [least, most] =
      std::ranges::minmax(p.groups, {}, [](const Members& group) { return group[0]->count(); });
  const std::uint64_t fewest = least[0]->count();
  const std::uint64_t highest = most[0]->count();
  const std::uint64_t theirs = p.others[0]->count();
  const bool as_many = fewest == theirs && highest == theirs;
  return {as_many ? Say::issued : Say::issued_others,
          {{"who", who_of(p.members())},
           {"collectives", fewest},
           {"one", highest == 1},
           {"most", fewest == highest ? std::nullopt : std::optional(highest)},
           {"others", others_of(p)},
           {"theirs", theirs}}};
}

// The ledger's rows by communicator, of the processes that were asked about: one may have rows of
// thousands of communicators, and part from others on each.
using RowsByComm = std::map<std::int64_t, std::vector<read::Row>>;
class LedgerRows {
 public:
  const std::vector<read::Row>& of(const Member& m) {
    const auto [known, fresh] = known_.try_emplace(m.process);
    if (fresh) {
      for (const read::Row& row : read::rows_of(*m.process)) {
        if (row.comm) known->second[*row.comm].push_back(row);
      }
    }
    return known->second[m.comm->comm];
  }

 private:
  std::map<const read::Process*, RowsByComm> known_;
};

// Evidence from the ledger's rows: "rank 3: 41 ncclAllGather of float32 ..., the others 42".
Facts row_evidence(const Parting& p, LedgerRows& rows) {
  using Calls = std::pair<std::uint64_t, std::uint64_t>;  // calls, and the sum of their counts
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::pair<Calls, Calls>> both;
  // Takes what the signature covers: collectives that were called, into a graph or not.
  const auto add_rows = [&](const Member& m, auto side) {
    for (const read::Row& row : rows.of(m)) {
      if (row.bucket == Bucket::P2P || row.mode == Mode::replayed) continue;
      Calls& calls = both[{row.name, row.dtype, row.bytes_class}].*side;
      calls.first += row.amounts.calls;
      calls.second += row.amounts.count;
    }
  };
  add_rows(*p.groups[0][0], &std::pair<Calls, Calls>::first);
  add_rows(*p.others[0], &std::pair<Calls, Calls>::second);
  Facts evidence;
  for (const auto& [key, sides] : both) {
    const auto& [mine, theirs] = sides;
    if (mine == theirs) continue;
    const auto& [name, dtype, bytes_class] = key;
    const bool calls = mine.first != theirs.first;
    evidence.push_back({Say::counted_calls,
                        {{"who", who_of(p.groups[0])},
                         {"calls", mine.first},
                         {"function", name},
                         {"dtype", dtype},
                         {"size", SizeClass{bytes_class}},
                         {"count", calls ? std::nullopt : std::optional(mine.second)},
                         {"others", others_of(p)},
                         {"theirs", calls ? theirs.first : theirs.second}}});
  }
  shorten(evidence, 6);
  if (evidence.empty()) evidence.push_back({Say::same_calls});
  return evidence;
}

// `what` follows the name of the communicator.
Finding& add_mismatch(Findings& found, const Communicator& c, const Parting& p, Fact what,
                      Facts evidence) {
  Members all = p.members();
  if (p.tie()) {
    all.insert(all.end(), p.others.begin(), p.others.end());
    evidence.push_back({Say::no_majority});
  }
  Finding& f = add(found, Kind::mismatch, processes_of(all),
                   {{"communicator", c.id},
                    {"nranks", c.nranks},
                    {"what", std::move(what)},
                    {"where", std::nullopt},
                    {"lines_missing", false}});
  f.communicator = c.id;
  if (p.end == p.same + 1) f.seq = p.same;
  f.between = std::pair(p.same, p.end);
  f.evidence = std::move(evidence);
  return f;
}

Finding& add_parting(Findings& found, const Communicator& c, const Parting& p, LedgerRows& rows) {
  Facts evidence = row_evidence(p, rows);
  if (p.groups.size() > 1) {
    evidence.push_back(
        {Say::differ_too, {{"ways", p.groups.size()}, {"who", who_of(p.groups[0])}}});
  }
  return add_mismatch(found, c, p, number_of_collectives(p), std::move(evidence));
}

// Completes a finding with what the lines tell.
void add_operation(const Parting& p, const FirstDifference& d, Finding& f) {
  if (!d.seq) {
    const bool one = p.end == p.same + 1;
    set(f.text, {"where", Fact{one ? Say::part_at : Say::part_within,
                               {{"from", p.same}, {"to", p.end - 1}}}});
    if (d.unknown.empty()) return;
    f.evidence.push_back({Say::operation_unknown, {{"why", d.unknown}}});
    set(f.text, {"lines_missing", true});
    return;
  }
  f.seq = d.seq;
  f.between = std::pair(*d.seq, *d.seq + 1);
  f.function = d.function;
  f.time = d.time;
  set(f.text, {"where", Fact{Say::difference, {{"first", d.unknown.empty()}, {"seq", d.seq}}}});
  f.evidence.insert(f.evidence.begin(), d.evidence.begin(), d.evidence.end());
}

// Adds a finding for each place at which groups diverge; groups that are not compared join the
// first. `left` is the number that may still be compared.
void add_partings(const Communicator& c, const Parting& parting, const Case& of, std::size_t& left,
                  LedgerRows& rows, Findings& found) {
  // Members that got less far are compared after the last mark that they share with the others, up
  // to where both got.
  const bool stopped = parting.how == How::stopped;
  std::vector<std::pair<Parting, FirstDifference>> places;
  std::size_t compared = 0;
  for (const Members& group : parting.groups) {
    if (compared == kMaxComparedOfParting || left == 0) {
      if (!stopped && !places.empty()) places[0].first.groups.push_back(group);
      continue;
    }
    Parting one = parting.of_group(group);
    const std::uint64_t end = one.end - (stopped ? 1 : 0);
    if (stopped && one.same >= end) continue;
    ++compared;
    --left;
    FirstDifference d = first_difference(one, end, of);
    if (stopped && !d.seq) continue;
    const auto same =
        std::ranges::find_if(places, [&](const auto& place) { return place.second.seq == d.seq; });
    if (same == places.end()) {
      places.emplace_back(std::move(one), std::move(d));
    } else {
      same->first.groups.push_back(group);
    }
  }
  if (places.empty() && !stopped) places.emplace_back(parting, FirstDifference{});
  for (const auto& [one, d] : places) add_operation(one, d, add_parting(found, c, one, rows));
}

// Ledgers hold calls that returned, and dumps have no signatures. So for each communicator, these
// are the collectives that no signature covers on some rank: who is known to have called what.
using Called = std::map<std::uint64_t, std::map<std::uint32_t, Members>>;

std::vector<Called> called_by_each(const Case& c) {
  std::vector<Called> all(c.communicators.size());
  const auto each = [&](const auto& see) {
    for (const read::Process* p : c.job.processes) {
      const auto* operations = c.lines.of<Operations>(p);
      if (operations == nullptr) continue;
      for (const Operation& o : operations->all) {
        const auto place = c.places.find({p, o.comm});
        if (o.message() || place == c.places.end()) continue;
        see(all[place->second.first], *place->second.second, o);
      }
    }
  };
  each([](Called& called, const Member& m, const Operation& o) {
    if (m.dumped() || !m.did(o.seq)) called[o.seq];
  });
  each([](Called& called, const Member& m, const Operation& o) {
    const auto calls = called.find(o.seq);
    if (calls != called.end()) calls->second[o.print].push_back(&m);
  });
  return all;
}

// Adds who called something else than most at the first of these.
void add_called(const Communicator& comm, Called& called, const Case& c, CallFinder& finder,
                Findings& found) {
  for (auto& [seq, calls] : called) {
    Members returned = who_did(comm, seq);
    for (const auto& [print, members] : calls) {
      std::erase_if(returned, [&](const Member* m) {
        return std::ranges::find(members, m) != members.end();
      });
    }
    if (const auto call = finder.find(returned, seq)) {
      Members& with = calls[static_cast<std::uint32_t>(fingerprint(call->event))];
      with.insert(with.begin(), call->by);
      for (const Member* m : returned)
        if (m != call->by) with.push_back(m);
    }
    if (calls.size() < 2) continue;
    Parting parting{.same = seq, .end = seq + 1};
    for (auto& [print, members] : calls) parting.groups.push_back(members);
    std::ranges::sort(parting.groups, std::ranges::greater(), [](const Members& group) {
      return std::pair(group.size(), -group[0]->comm->rank);
    });
    parting.others = parting.groups[0];
    parting.groups.erase(parting.groups.begin());
    FirstDifference d = difference_at(*parting.groups[0][0], *parting.others[0], seq, c);
    Finding& f = add_mismatch(
        found, comm, parting,
        {Say::did_not_call,
         {{"seq", seq}, {"who", who_of(parting.members())}, {"others", who_of(parting.others)}}},
        std::move(d.evidence));
    f.function = d.function;
    f.time = d.time;
    return;
  }
}

void mismatches(const Case& c, Findings& found) {
  std::size_t left = c.options.read_lines ? kMaxCompared : 0;
  LedgerRows rows;
  CallFinder finder(c);
  std::vector<Called> called = called_by_each(c);
  for (std::size_t i = 0; i < c.communicators.size(); ++i) {
    const std::size_t before = found.size();
    for (const Parting& parting : c.agreements[i].partings) {
      add_partings(c.communicators[i], parting, c, left, rows, found);
    }
    if (found.size() == before) add_called(c.communicators[i], called[i], c, finder, found);
  }
}

}  // namespace

std::set<std::string> different(const Findings& found) {
  std::set<std::string> ids;
  for (const Finding& f : found) {
    if (f.kind == Kind::mismatch) ids.insert(f.communicator);
  }
  return ids;
}

extern const Diagnosis kMismatch{kCheck | kSummary | kWhole, mismatches};

}  // namespace tprof::diagnose
