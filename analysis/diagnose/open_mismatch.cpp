// Finds ranks that are inside one collective with different arguments, or inside another one than
// the ranks whose call returned. The ledgers do not tell: they hold only calls that returned.
#include <algorithm>
#include <map>

#include "collect/collectors.h"
#include "diagnose/calls.h"
#include "diagnose/mismatch.h"

namespace tprof::diagnose {
namespace {

using read::Event;

// Members that made the same call.
struct OpenSide {
  KnownCall call;
  Members members{};
  std::size_t open = 0;  // how many of them did not return
};
using OpenSides = std::vector<OpenSide>;

OpenSide& side_of(const KnownCall& call, OpenSides& sides) {
  const auto same = std::ranges::find_if(
      sides, [&](const OpenSide& s) { return alike(s.call.event, call.event); });
  return same != sides.end() ? *same : sides.emplace_back(OpenSide{call});
}

// Groups the open calls by collective.
std::map<std::uint64_t, OpenSides> open_sides(const Communicator& comm, const Case& c) {
  std::map<std::uint64_t, OpenSides> open;
  for (const Member& m : comm.members) {
    const auto* calls = c.lines.of<collect::LastCalls>(m.process);
    if (calls == nullptr) continue;
    for (const Event& e : calls->open) {
      if (!e.collective() || e.comm != m.comm->comm) continue;
      OpenSide& side = side_of({&m, e}, open[e.seq]);
      side.members.push_back(&m);
      ++side.open;
    }
  }
  return open;
}

Facts evidence_of(const OpenSides& sides, std::uint64_t seq) {
  Facts evidence;
  for (const OpenSide& side : sides) {
    const bool all_open = side.open == side.members.size();
    evidence.push_back({Say::made,
                        {{"who", who_of(side.members)},
                         {"seq", seq},
                         {"call", fact_of(side.call.event, *side.call.by->process)},
                         {"returned", side.open == 0},
                         {"open", all_open},
                         {"open_to_some", side.open != 0 && !all_open}}});
  }
  shorten(evidence, 4);
  return evidence;
}

TimeRange time_of(const OpenSides& sides) {
  TimeRange time{INT64_MAX, INT64_MIN};
  for (const OpenSide& side : sides) {
    const std::int64_t called = called_ns(side.call.event, *side.call.by->process);
    time = {std::min(time.from_ns, called), std::max(time.to_ns, called)};
  }
  return time;
}

// Reports only the first of a communicator, since the later ones follow from it.
void first_open_mismatch(const Communicator& comm, const Case& c, CallFinder& finder,
                         Findings& found) {
  for (auto& [seq, sides] : open_sides(comm, c)) {
    const Members returned = who_did(comm, seq);
    // The ledgers show that these did the same up to here.
    if (const auto call = finder.find(returned, seq)) {
      Members& with = side_of(*call, sides).members;
      with.insert(with.end(), returned.begin(), returned.end());
    }
    if (sides.size() < 2) continue;
    std::ranges::stable_sort(sides, std::ranges::greater(),
                             [](const OpenSide& s) { return s.members.size(); });
    Parting parting{.others = sides[0].members, .same = seq, .end = seq + 1};
    for (std::size_t k = 1; k < sides.size(); ++k) parting.groups.push_back(sides[k].members);
    Finding& f = add_mismatch(
        found, comm, parting,
        {Say::did_not_call,
         {{"seq", seq}, {"who", who_of(parting.members())}, {"others", who_of(parting.others)}}},
        evidence_of(sides, seq));
    f.function = sides[0].call.event.name;
    f.time = time_of(sides);
    return;
  }
}

// Looks at communicators whose ranks did the same so far.
void open_mismatches(const Case& c, Findings& found) {
  CallFinder finder(c);
  const std::set<std::string> known = different(found);
  for (const Communicator& comm : c.communicators) {
    if (!known.contains(comm.id)) first_open_mismatch(comm, c, finder, found);
  }
}

}  // namespace

extern const Diagnosis kOpenMismatch{
    kCheck, open_mismatches, collect::want<collect::LastCalls, collect::ReturnedCalls>, true};

}  // namespace tprof::diagnose
