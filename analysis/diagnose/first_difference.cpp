// Finds the first collective that two ranks issued differently, from their lines.
#include <algorithm>
#include <functional>

#include "diagnose/calls.h"
#include "diagnose/last_calls.h"
#include "diagnose/mismatch.h"

namespace tprof::diagnose {
namespace {

using read::Event;

constexpr std::uint64_t kBefore = 3;         // operations shown before the difference
constexpr std::uint64_t kFrom = 3;           // and from it on
constexpr std::uint64_t kPart = 1ULL << 20;  // collectives compared at a time: 8 MiB a side

// Returns one value per collective. 0: it has no line. 1: the rank did not get that far.
std::vector<std::uint64_t> fingerprints(const Member& m, std::uint64_t from, std::uint64_t to,
                                        const Case& c) {
  std::vector<std::uint64_t> all(to - from, 0);
  for (std::uint64_t seq = std::max(from, m.count()); seq < to; ++seq) all[seq - from] = 1;
  each_collective(m, from, to, c.traces,
                  [&](const Event& e) { all[e.seq - from] = fingerprint(e) | 2; });
  return all;
}

const Intervals& lines_of(const Member& m, const Case& c) {
  static const Intervals kNone;
  const auto* lines = c.lines.of<ReturnedCalls>(m.process);
  return lines == nullptr ? kNone : lines->collectives(m.comm->comm);
}

// Returns the member whose lines cover the longest part of [from, to).
const Member* with_most_lines(const Members& members, const Case& c, std::uint64_t from,
                              std::uint64_t to) {
  const Member* best = members[0];
  std::uint64_t most = 0;
  for (const Member* m : members) {
    const std::uint64_t covered = lines_of(*m, c).covered_until(from);
    const std::uint64_t until = covered >= m->count() ? to : std::min(covered, to);
    if (until > most) best = m, most = until;
    if (until == to) break;
  }
  return best;
}

Fact which_lines(const Member& m, const Case& c) {
  const Intervals& lines = lines_of(m, c);
  if (lines.empty()) return {Say::no_lines, {{"who", m.process}}};
  return {Say::lines_exist,
          {{"who", m.process}, {"first", lines.begin()}, {"last", lines.end() - 1}}};
}

// A rank's calls up to the difference and from it on.
struct Side {
  const Member& member;
  std::uint64_t seq = 0;
  std::vector<Event> before{};
  std::vector<Event> from{};

  Side(const Member& m, std::uint64_t difference, const Case& c) : member(m), seq(difference) {
    each_collective(m, seq - std::min(kBefore, seq), seq + kFrom, c.traces,
                    [&](const Event& e) { (e.seq < seq ? before : from).push_back(e); });
    std::ranges::stable_sort(before, {}, &Event::seq);
    std::ranges::stable_sort(from, {}, &Event::seq);
  }
  const read::Process* process() const { return member.process; }
  bool has_it() const { return !from.empty() && from[0].seq == seq; }
  Fact call(const Event& e) const { return fact_of(e, *process()); }
  void tell(Facts& evidence, const read::Traces& traces) const {
    if (!has_it()) {
      evidence.push_back({Say::made_no_more, {{"who", process()}, {"seq", seq}}});
      return;
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(2, from.size()); ++i) {
      evidence.push_back(
          {Say::one_made,
           {{"who", process()},
            {"seq", from[i].seq},
            {"call", call(from[i])},
            {"line", i == 0 ? made_at(from[i], *process(), traces) : std::nullopt}}});
    }
  }
  // True if its call here is the other one's next call. Programs repeat themselves, so callers
  // compare the counts too.
  bool skips_to(const Side& other) const {
    return !from.empty() && other.from.size() > 1 && alike(from[0], other.from[1]);
  }
};

void tell(const Side& mine, const Side& theirs, const read::Traces& traces, Facts& evidence) {
  for (const Event& e : theirs.before) {
    evidence.push_back(  // the times of the other would be others
        {Say::both_made, {{"seq", e.seq}, {"call", theirs.call(e)}, {"who", theirs.process()}}});
  }
  mine.tell(evidence, traces);
  theirs.tell(evidence, traces);
  if (mine.member.done == nullptr || theirs.member.done == nullptr) return;
  const auto here = mine.member.count();
  const auto there = theirs.member.count();
  const auto conclude = [&](Say what) {
    evidence.push_back({what, {{"who", mine.process()}, {"other", theirs.process()}}});
  };
  if (here < there && mine.skips_to(theirs)) {
    conclude(Say::left_out);
  } else if (here > there && theirs.skips_to(mine)) {
    conclude(Say::extra);
  } else if (here == there && mine.skips_to(theirs) && theirs.skips_to(mine)) {
    conclude(Say::swapped);
  }
}

}  // namespace

FirstDifference difference_at(const Member& m, const Member& o, std::uint64_t seq, const Case& c) {
  FirstDifference d{.seq = seq};
  const Side mine(m, seq, c);
  const Side theirs(o, seq, c);
  for (const Side* side : {&mine, &theirs}) {
    if (!side->has_it()) continue;
    d.function = side->from[0].name;
    const std::int64_t at = called_ns(side->from[0], *side->process());
    if (!d.time) d.time = TimeRange{at, at};
    d.time = TimeRange{std::min(d.time->from_ns, at), std::max(d.time->to_ns, at)};
  }
  tell(mine, theirs, c.traces, d.evidence);
  return d;
}

FirstDifference first_difference(const Parting& parting, std::uint64_t end, const Case& c) {
  const Member& m = *with_most_lines(parting.groups[0], c, parting.same, end);
  const Member& o = *with_most_lines(parting.others, c, parting.same, end);
  FirstDifference d;
  bool unknown = false;
  // Looks only where there are lines: the counts of a damaged file may be arbitrarily large.
  for (std::uint64_t from = parting.same; !d.seq && from < end;) {
    const std::uint64_t next =
        std::min(lines_of(m, c).next(from).value_or(end), lines_of(o, c).next(from).value_or(end));
    unknown = unknown || next > from;
    if (next >= end) break;
    const std::uint64_t to = next + std::min(kPart, end - next);
    const auto mine = fingerprints(m, next, to, c);
    const auto theirs = fingerprints(o, next, to, c);
    for (std::uint64_t i = 0; i < to - next && !d.seq; ++i) {
      const bool known = mine[i] != 0 && theirs[i] != 0;
      unknown = unknown || !known;
      if (known && mine[i] != theirs[i]) d.seq = next + i;
    }
    from = to;
  }
  if (d.seq) d = difference_at(m, o, *d.seq, c);
  if (!unknown) return d;
  d.unknown = {which_lines(m, c), which_lines(o, c)};
  if (d.seq) d.evidence.push_back({Say::earlier_too, {{"why", d.unknown}}});
  return d;
}

}  // namespace tprof::diagnose
