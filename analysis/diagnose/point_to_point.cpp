// Finds sends that nobody received and receives that nobody sent to, among ranks that closed. In a
// process that was killed, a call may simply lack its other end.
#include <algorithm>
#include <map>

#include "collect/collectors.h"
#include "diagnose/diagnosis.h"
#include "stats/totals.h"

namespace tprof::diagnose {
namespace {

bool all_lines(const Member& m, const Case& c) {
  const auto& footer = m.process->footer;
  const auto* lines = c.lines.of<collect::ReturnedCalls>(m.process);
  return footer && footer->dropped.empty() && lines != nullptr &&
         !lines->refused.contains(m.comm->comm);
}

Finding& add_unmatched(Findings& found, const Communicator& c, Kind kind, const Processes& who,
                       Values values) {
  values.emplace_back("communicator", c.id);
  values.emplace_back("nranks", c.nranks);
  Finding& f = add(found, kind, who, std::move(values));
  f.communicator = c.id;
  return f;
}

void add_pair(const Communicator& c, const Member& from, const Member& to,
              const collect::Channel& sent, const collect::Channel& received, Findings& found) {
  const bool unmatched = sent.calls != received.calls;
  Finding& f = add_unmatched(found, c, unmatched ? Kind::unmatched_p2p : Kind::p2p_sizes,
                             {from.process, to.process},
                             {{"from", from.process},
                              {"to", to.process},
                              {"sent", Bytes{sent.bytes}},
                              {"sends", sent.calls},
                              {"received", Bytes{received.bytes}},
                              {"receives", received.calls}});
  if (!unmatched) return;
  f.seq = std::min(sent.calls, received.calls);
  f.function = sent.calls > received.calls ? "ncclSend" : "ncclRecv";
  set(f.text, {"function", f.function});
  set(f.text, {"seq", *f.seq});
}

// Checks every pair of ranks that exchanged data.
void add_pairs(const Communicator& comm, const Members& by_rank, const Case& c, Findings& found) {
  for (const Member* me : by_rank) {
    for (const auto& [key, mine] : c.lines.of<collect::ReturnedCalls>(me->process)->channels) {
      const auto peer = static_cast<std::size_t>(key.peer);
      if (key.comm != me->comm->comm || key.peer < 0 || peer >= by_rank.size()) continue;
      const Member* other = by_rank[peer];
      const collect::Channel theirs = c.lines.of<collect::ReturnedCalls>(other->process)
                                          ->channel({other->comm->comm, me->comm->rank, !key.send});
      if (mine == theirs) continue;
      if (key.send) {
        add_pair(comm, *me, *other, mine, theirs, found);
      } else if (theirs.calls == 0) {  // else the sender's channel reports it
        add_pair(comm, *other, *me, theirs, mine, found);
      }
    }
  }
}

// Compares the sums of the ledgers, where lines are missing.
void add_totals(const Communicator& c, Findings& found) {
  std::map<std::string, std::uint64_t> calls{{"ncclSend", 0}, {"ncclRecv", 0}};
  for (const Member& m : c.members) {
    stats::each_row(*m.process, [&](const read::Row& row) {
      if (row.comm == m.comm->comm) calls[row.name] += row.amounts.calls;
    });
  }
  const std::uint64_t sent = calls["ncclSend"];
  const std::uint64_t received = calls["ncclRecv"];
  if (sent == received) return;
  Finding& f = add_unmatched(found, c, Kind::unmatched_p2p, processes_of(c.members),
                             {{"sends", sent}, {"receives", received}});
  f.text.what = Say::totals_unmatched;
  f.function = sent > received ? "ncclSend" : "ncclRecv";
}

void unmatched_point_to_point(const Case& c, Findings& found) {
  for (const Communicator& comm : c.communicators) {
    if (comm.members.size() != static_cast<std::size_t>(comm.nranks)) continue;
    if (!std::ranges::all_of(comm.members, &Member::closed)) continue;
    Members by_rank(comm.members.size());
    for (const Member& m : comm.members) {
      const auto rank = static_cast<std::size_t>(m.comm->rank);
      if (m.comm->rank >= 0 && rank < by_rank.size()) by_rank[rank] = &m;
    }
    if (std::ranges::find(by_rank, nullptr) != by_rank.end()) continue;
    if (std::ranges::all_of(by_rank, [&](const Member* m) { return all_lines(*m, c); })) {
      add_pairs(comm, by_rank, c, found);
    } else {
      add_totals(comm, found);
    }
  }
}

}  // namespace

extern const Diagnosis kPointToPoint{kCheck, unmatched_point_to_point,
                                     collect::want<collect::ReturnedCalls>};

}  // namespace tprof::diagnose
