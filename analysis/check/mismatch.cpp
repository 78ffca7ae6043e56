// Finds communicators whose ranks did different things by their ledgers. The lines tell which
// operation differs.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "check/calls.h"

namespace tprof::check {
namespace {

using read::Event;

// Returns the member whose lines reach furthest in [from, to).
const Member* with_most_lines(const Members& members, const Case& c, std::uint64_t from,
                              std::uint64_t to) {
  return *std::ranges::max_element(members, {}, [&](const Member* m) {
    const RankCalls::OnComm& lines = c.calls(*m->process).on(m->comm->comm);
    if (lines.first > from && m->count() > from) return std::uint64_t{0};
    return lines.end >= m->count() ? to : std::min(lines.end, to);
  });
}

Fact which_lines(const Member& m, const Case& c) {
  const RankCalls::OnComm& lines = c.calls(*m.process).on(m.comm->comm);
  if (lines.lines == 0) return {Say::no_lines, {{"who", m.process}}};
  return {Say::lines_exist, {{"who", m.process}, {"first", lines.first}, {"last", lines.end - 1}}};
}

// The first collective in which two ranks differ, according to their lines.
struct FirstDifference {
  Finding at{};     // without a number if the lines don't tell
  Facts unknown{};  // why none was found, or an earlier one may exist; empty: certain
};

// A rank's calls near a difference, by number.
using Near = std::map<std::uint64_t, Event>;
Near calls_near(const Member& m, std::uint64_t seq, const Case& c) {
  constexpr std::uint64_t kNear = 3;
  Near calls;
  each_collective(m, seq - std::min(kNear, seq), seq + kNear, c,
                  [&](const Event& e) { calls.emplace(e.seq, e); });
  return calls;
}

// Describes what the two ranks called as this collective.
Finding difference_at(const Member& m, const Member& o, std::uint64_t seq, const Case& c) {
  Finding d{.seq = seq};
  const Near mine = calls_near(m, seq, c);
  const Near theirs = calls_near(o, seq, c);
  for (const auto& [n, e] : theirs) {
    if (n >= seq) break;
    d.evidence.push_back(  // both made it, but the time is that of one rank
        {Say::both_made, {{"seq", n}, {"call", fact_of(e, *o.process)}, {"who", o.process}}});
  }
  for (const Member* of : {&m, &o}) {
    const read::Process& p = *of->process;
    const Near& calls = of == &m ? mine : theirs;
    const auto here = calls.find(seq);
    if (here == calls.end()) {
      d.evidence.push_back({Say::made_no_more, {{"who", &p}, {"seq", seq}}});
      continue;
    }
    const Event& e = here->second;
    d.function = e.name;
    d.time = joined(d.time, {called_ns(e, p), called_ns(e, p)});
    d.evidence.push_back(
        {Say::one_made,
         {{"who", &p}, {"seq", seq}, {"call", fact_of(e, p)}, {"line", made_at(e, p, c)}}});
    if (const auto next = calls.find(seq + 1); next != calls.end()) {
      d.evidence.push_back(
          {Say::one_made, {{"who", &p}, {"seq", seq + 1}, {"call", fact_of(next->second, p)}}});
    }
  }
  if (m.done == nullptr || o.done == nullptr) return d;
  // Programs repeat themselves, so the next calls prove something only if the counts agree.
  const auto goes_on = [&](const Near& calls, const Near& others) {  // with the others' next call
    const auto here = calls.find(seq);
    const auto next = others.find(seq + 1);
    return here != calls.end() && next != others.end() &&
           fingerprint(here->second) == fingerprint(next->second);
  };
  const bool skips = goes_on(mine, theirs);
  const bool skipped = goes_on(theirs, mine);
  const auto conclude = [&](bool so, Say what) {
    if (so) d.evidence.push_back({what, {{"who", m.process}, {"other", o.process}}});
  };
  conclude(m.count() < o.count() && skips, Say::left_out);
  conclude(m.count() > o.count() && skipped, Say::extra);
  conclude(m.count() == o.count() && skips && skipped, Say::swapped);
  return d;
}

// Compares the two sides of a disagreement, in collectives [disagreement.same, end).
FirstDifference first_difference(const Disagreement& disagreement, std::uint64_t end,
                                 const Case& c) {
  const Member& m = *with_most_lines(disagreement.who, c, disagreement.same, end);
  const Member& o = *with_most_lines(*disagreement.others, c, disagreement.same, end);
  // The fingerprints of what the two called, by number.
  std::map<std::uint64_t, std::array<std::optional<std::uint64_t>, 2>> prints;
  for (const std::size_t side : {0, 1}) {
    each_collective(side == 0 ? m : o, disagreement.same, end, c,
                    [&](const Event& e) { prints[e.seq][side] = fingerprint(e); });
  }
  FirstDifference d;
  bool unknown = false;
  std::uint64_t next = disagreement.same;
  for (const auto& [seq, of] : prints) {
    const bool known = (of[0] || m.count() <= seq) && (of[1] || o.count() <= seq);
    unknown = unknown || !known || seq > next;
    next = seq + 1;
    if (!known || of[0] == of[1]) continue;
    d.at = difference_at(m, o, seq, c);
    break;
  }
  unknown = unknown || (!d.at.seq && next < end);
  if (!unknown) return d;
  d.unknown = {which_lines(m, c), which_lines(o, c)};
  if (d.at.seq) d.at.evidence.push_back({Say::earlier_too, {{"why", d.unknown}}});
  return d;
}

// How many groups of a communicator are compared line by line.
constexpr std::size_t kMaxCompared = 4;

// How much work may still be spent on the job.
struct WorkLeft {
  std::size_t compare = 16;
  std::size_t tell = kMaxOfKind;
};

// Members that differ from the same others at the same place, in one or several ways.
struct Divergence : Disagreement {
  FirstDifference difference{};
  Members first = who;  // those that differ in the first way
  std::uint64_t ways = 1;

  void add(const Disagreement& p) {
    who.insert(who.end(), p.who.begin(), p.who.end());
    same = std::min(same, p.same);
    end = std::max(end, p.end);
    ++ways;
  }
  bool tie() const { return first.size() == others->size(); }  // neither side is the majority
  // Returns nothing if "the others" is clear enough.
  std::optional<Who> named_others() const {
    return tie() || others->size() == 1 ? std::optional<Who>(processes_of(*others)) : std::nullopt;
  }
};

Fact number_of_collectives(const Divergence& of) {
  const auto [least, most] = std::ranges::minmax(of.who, {}, &Member::count);
  const std::uint64_t fewest = least->count();
  const std::uint64_t highest = most->count();
  const std::uint64_t theirs = of.others->front()->count();
  const bool as_many = fewest == theirs && highest == theirs;
  Fact fact{as_many ? Say::issued : Say::issued_others,
            {{"who", processes_of(of.who)},
             {"collectives", fewest},
             {"one", highest == 1},
             {"others", of.named_others()},
             {"theirs", theirs}}};
  if (fewest != highest) set(fact, {"most", highest});
  return fact;
}

// Evidence from the ledger's rows: "rank 3: 41 ncclAllGather of float32 ..., the others 42".
Facts row_evidence(const Divergence& of) {
  // Number of calls and sum of counts, on both sides.
  using Calls = std::pair<std::uint64_t, std::uint64_t>;
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::array<Calls, 2>> both;
  for (const std::size_t side : {0, 1}) {
    const Member& m = *(side == 0 ? of.who : *of.others)[0];
    for (const read::Row& row : read::rows_of(*m.process)) {
      // Takes what the signature covers: called collectives, captured or not.
      if (row.comm != m.comm->comm || row.bucket == Bucket::P2P || row.mode == Mode::replayed) {
        continue;
      }
      Calls& calls = both[{row.name, row.dtype, row.bytes_class}][side];
      calls.first += row.amounts.calls;
      calls.second += row.amounts.count;
    }
  }
  Facts evidence;
  for (const auto& [key, sides] : both) {
    const auto& [mine, theirs] = sides;
    if (mine == theirs) continue;
    const auto& [name, dtype, bytes_class] = key;
    const bool calls = mine.first != theirs.first;
    evidence.push_back({Say::counted_calls,
                        {{"who", processes_of(of.first)},
                         {"calls", mine.first},
                         {"function", name},
                         {"dtype", dtype},
                         {"size", SizeClass{bytes_class}},
                         {"count", calls ? std::nullopt : std::optional(mine.second)},
                         {"others", of.named_others()},
                         {"theirs", calls ? theirs.first : theirs.second}}});
  }
  shorten(evidence, 6);
  if (evidence.empty()) evidence.push_back({Say::same_calls});
  return evidence;
}

// `what` follows the name of the communicator.
Finding& add_mismatch(Findings& found, const Communicator& c, const Divergence& of, Fact what,
                      Facts evidence) {
  Members all = of.who;
  if (of.tie()) {
    all.insert(all.end(), of.others->begin(), of.others->end());
    evidence.push_back({Say::no_majority});
  }
  Finding& f = add(found, Kind::mismatch, processes_of(all),
                   {{"communicator", c.id}, {"nranks", c.nranks}, {"what", std::move(what)}});
  f.communicator = c.id;
  const Finding& d = of.difference.at;
  const std::pair between = d.seq ? std::pair(*d.seq, *d.seq + 1) : std::pair(of.same, of.end);
  f.between = between;
  if (between.second == between.first + 1) f.seq = between.first;
  f.function = d.function;
  f.time = d.time;
  f.evidence = d.evidence;
  f.evidence.insert(f.evidence.end(), evidence.begin(), evidence.end());
  return f;
}

// Says where they differ, as far as the lines tell.
void add_where(const FirstDifference& d, Finding& f) {
  if (d.at.seq) {
    set(f.text,
        {"where", Fact{Say::difference, {{"first", d.unknown.empty()}, {"seq", d.at.seq}}}});
    return;
  }
  set(f.text, {"where", Fact{f.seq ? Say::part_at : Say::part_within,
                             {{"from", f.between->first}, {"to", f.between->second - 1}}}});
  if (d.unknown.empty()) return;
  f.evidence.push_back({Say::operation_unknown, {{"why", d.unknown}}});
  set(f.text, {"lines_missing", true});
}

// Adds a finding for each place at which members diverge. Those that are not compared join the
// first one.
void add_disagreements(const Communicator& comm, const Agreement& agreement, const Case& c,
                       WorkLeft& left, Findings& found) {
  std::vector<Divergence> divergences;
  std::size_t compared = 0;
  for (Disagreement p : agreement.disagreements) {
    // Members that got less far are compared from the last common mark to where both got.
    const bool stopped = p.how == DiffersBy::stopped;
    if (stopped && 2 * p.who.size() > comm.members.size()) {  // these are the majority
      auto most = std::make_shared<const Members>(p.who);
      p.who = *std::exchange(p.others, std::move(most));
    }
    const std::uint64_t end = p.end - (stopped ? 1 : 0);
    const bool compare = p.same < end && compared != kMaxCompared && left.compare != 0;
    FirstDifference d;
    if (compare) {
      ++compared;
      --left.compare;
      d = first_difference(p, end, c);
    }
    if (stopped && !d.at.seq) continue;
    const auto same = std::ranges::find_if(divergences, [&](const Divergence& of) {
      const bool alike = of.how == p.how && of.others == p.others;
      return alike && (!compare || of.difference.at.seq == d.at.seq);
    });
    if (same != divergences.end()) {
      same->add(p);
    } else {
      divergences.push_back({p, std::move(d)});
    }
  }
  for (const Divergence& of : divergences) {
    Facts evidence;
    if (left.tell != 0) {
      evidence = row_evidence(of);
      --left.tell;
    }
    if (of.ways > 1) {
      evidence.push_back({Say::differ_too, {{"ways", of.ways}, {"who", processes_of(of.first)}}});
    }
    add_where(of.difference,
              add_mismatch(found, comm, of, number_of_collectives(of), std::move(evidence)));
  }
}

// Compares the calls themselves where some rank's signature does not cover them, as ledgers hold
// only calls that returned, and dumps have no signatures. Adds the members that differ from most in
// the first such collective.
void add_called(const Communicator& comm, const Channel& channel, const Case& c, int& looks,
                Findings& found) {
  std::map<std::uint64_t, std::map<std::uint32_t, Members>> called;  // by number and fingerprint
  for (const bool covered : {false, true}) {
    for (const ChannelEnd& end : channel.ends) {
      for (const Operation* o : end.all) {
        if (!covered && (end.member->dumped() || !end.member->did(o->seq))) called[o->seq];
        const auto calls = called.find(o->seq);
        if (covered && calls != called.end()) calls->second[o->print].push_back(end.member);
      }
    }
  }
  for (auto& [seq, calls] : called) {
    Members returned = who_did(comm, seq);
    for (const auto& [print, members] : calls) {
      std::erase_if(returned, [&](const Member* m) {
        return std::ranges::find(members, m) != members.end();
      });
    }
    if (const auto call = find_call(returned, seq, c, looks)) {
      Members& with = calls[static_cast<std::uint32_t>(fingerprint(call->event))];
      with.insert(with.begin(), call->by);
      std::erase(returned, call->by);
      with.insert(with.end(), returned.begin(), returned.end());
    }
    if (calls.size() < 2) continue;
    std::vector<Members> groups;
    for (auto& [print, members] : calls) groups.push_back(members);
    std::ranges::sort(groups, std::ranges::greater(), [](const Members& group) {
      return std::pair(group.size(), -group[0]->comm->rank);
    });
    const auto others = std::make_shared<const Members>(groups[0]);
    Divergence of{{DiffersBy::differs, groups[1], others, seq, seq + 1},
                  {difference_at(*groups[1][0], *groups[0][0], seq, c)}};
    for (std::size_t i = 2; i < groups.size(); ++i) {
      of.add({DiffersBy::differs, groups[i], others, seq, seq + 1});
    }
    add_mismatch(found, comm, of,
                 {Say::did_not_call,
                  {{"seq", seq}, {"who", processes_of(of.who)}, {"others", processes_of(*others)}}},
                 {});
    return;
  }
}

void mismatches(const Case& c, Findings& found) {
  WorkLeft left;
  if (!c.options.read_lines) left.compare = 0;
  int looks = kMostLooks;
  std::map<std::size_t, const Channel*> collectives;
  for (const Channel& channel : c.channels) {
    if (!channel.messages) collectives[channel.communicator] = &channel;
  }
  for (std::size_t i = 0; i < c.communicators.size(); ++i) {
    const std::size_t before = found.size();
    add_disagreements(c.communicators[i], c.agreements[i], c, left, found);
    const auto calls = collectives.find(i);
    if (found.size() != before || calls == collectives.end()) continue;
    add_called(c.communicators[i], *calls->second, c, looks, found);
  }
}

}  // namespace

extern const Diagnosis kMismatch{kCheck | kSummary | kWhole, mismatches};

}  // namespace tprof::check
