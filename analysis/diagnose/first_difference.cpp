// Finds the first collective that two ranks issued differently, from their lines.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "collect/collectors.h"
#include "diagnose/calls.h"
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
  each_collective(m, from, to, c.traces, [&](const Event& e) {
    all[e.seq - from] = std::hash<std::string>{}(what_of(e)) | 2;
  });
  return all;
}

const collect::Intervals& lines_of(const Member& m, const Case& c) {
  static const collect::Intervals kNone;
  const auto* lines = c.lines.of<collect::ReturnedCalls>(m.process);
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

std::string which_lines(const Member& m, const Case& c) {
  const collect::Intervals& lines = lines_of(m, c);
  const std::string name = name_of_rank(*m.process);
  if (lines.empty()) return name + " has no lines of it";
  return fmt::format("lines of {} exist for its collectives {} to {}", name, lines.begin(),
                     lines.end() - 1);
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
  std::string name() const { return name_of_rank(*member.process); }
  std::string call(const std::string& who, const Event& e) const {
    return fmt::format("{}, {}: {}", who, e.seq, describe(e, *member.process));
  }
  void tell(std::vector<std::string>& evidence) const {
    if (from.empty() || from[0].seq != seq) {
      evidence.push_back(fmt::format("{}, {}: no more", name(), seq));
      return;
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(2, from.size()); ++i) {
      evidence.push_back(call(name(), from[i]));
    }
  }
  // True if its call here is the other one's next call. Programs repeat themselves, so callers
  // compare the counts too.
  bool skips_to(const Side& other) const {
    return !from.empty() && other.from.size() > 1 && what_of(from[0]) == what_of(other.from[1]);
  }
};

void tell(const Side& mine, const Side& theirs, std::vector<std::string>& evidence) {
  for (const Event& e : theirs.before) evidence.push_back(theirs.call("both", e));
  mine.tell(evidence);
  theirs.tell(evidence);
  const auto here = mine.member.count();
  const auto there = theirs.member.count();
  if (here < there && mine.skips_to(theirs)) {
    evidence.push_back(fmt::format("{} goes on with what {} does next: it left this one out",
                                   mine.name(), theirs.name()));
  } else if (here > there && theirs.skips_to(mine)) {
    evidence.push_back(fmt::format("{} then does what {} does here: this one is extra", mine.name(),
                                   theirs.name()));
  } else if (here == there && mine.skips_to(theirs) && theirs.skips_to(mine)) {
    evidence.push_back(mine.name() + " does these two the other way round");
  }
}

}  // namespace

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
  if (unknown) d.unknown = which_lines(m, c) + "; " + which_lines(o, c);
  if (!d.seq) return d;
  const Side mine(m, *d.seq, c);
  const Side theirs(o, *d.seq, c);
  for (const Side* side : {&mine, &theirs}) {
    if (!side->from.empty() && side->from[0].seq == *d.seq) d.function = side->from[0].name;
  }
  tell(mine, theirs, d.evidence);
  if (unknown) d.evidence.push_back("an earlier one may differ: " + d.unknown);
  return d;
}

}  // namespace tprof::diagnose
