// Finds sends that nobody received and receives that nobody sent to, among ranks that closed. In a
// process that was killed or still runs, a call may simply lack its other end; but a send and its
// receive have one size in any process, and wait for each other for ever if they do not.
#include "diagnose/point_to_point.h"

#include <algorithm>

#include "collect/collectors.h"
#include "diagnose/diagnosis.h"

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

// Returns what one rank called for another, its open calls too.
collect::Channel channel_of(const Member& m, const collect::ChannelKey& key, const Case& c) {
  collect::Channel channel = c.lines.of<collect::ReturnedCalls>(m.process)->channel(key);
  const auto* calls = c.lines.of<collect::LastCalls>(m.process);
  if (calls == nullptr) return channel;
  const std::string_view function = key.send ? "ncclSend" : "ncclRecv";
  for (const read::Event& e : calls->open) {
    if (!e.numbered || e.comm != key.comm || e.peer != key.peer || e.name != function) continue;
    if (e.seq == channel.calls) channel.add(e.seq, e.bytes);
  }
  return channel;
}

// Returns the last call whose ends have different sizes; nullopt if it is not known which it is.
std::optional<std::uint64_t> last_that_differs(const collect::Channel& sent,
                                               const collect::Channel& received) {
  for (std::uint64_t n = std::min(sent.calls, received.calls); n-- != 0;) {
    const auto from = sent.bytes_of(n);
    const auto to = received.bytes_of(n);
    if (!from || !to) return std::nullopt;
    if (*from != *to) return n;
  }
  return std::nullopt;
}

Finding& add_sizes(const Communicator& c, const Member& from, const Member& to,
                   const collect::Channel& sent, const collect::Channel& received,
                   Findings& found) {
  const std::uint64_t both = std::min(sent.calls, received.calls);
  Finding& f = add_unmatched(found, c, Kind::p2p_sizes, {from.process, to.process},
                             {{"from", from.process},
                              {"to", to.process},
                              {"sent", Bytes{sent.bytes_until(both).value_or(0)}},
                              {"sends", both},
                              {"received", Bytes{received.bytes_until(both).value_or(0)}},
                              {"receives", both},
                              {"number", std::nullopt},
                              {"one_sent", std::nullopt},
                              {"one_received", std::nullopt}});
  f.seq = last_that_differs(sent, received);
  if (!f.seq) return f;
  f.function = "ncclSend";
  set(f.text, {"number", *f.seq});
  set(f.text, {"one_sent", Bytes{*sent.bytes_of(*f.seq)}});
  set(f.text, {"one_received", Bytes{*received.bytes_of(*f.seq)}});
  return f;
}

// Compares the calls of which both ends were made.
void add_sizes_of_open_pair(const Communicator& c, const Member& from, const Member& to,
                            const collect::Channel& sent, const collect::Channel& received,
                            Findings& found) {
  const std::uint64_t both = std::min(sent.calls, received.calls);
  const auto bytes_sent = sent.bytes_until(both);
  const auto bytes_received = received.bytes_until(both);
  if (!bytes_sent || !bytes_received || *bytes_sent == *bytes_received) return;
  add_sizes(c, from, to, sent, received, found).severity = Severity::error;  // they hang
}

void add_pair(const Communicator& c, const Member& from, const Member& to,
              const collect::Channel& sent, const collect::Channel& received, Findings& found) {
  const bool unmatched = sent.calls != received.calls;
  if (!unmatched) {
    add_sizes(c, from, to, sent, received, found);
    return;
  }
  Finding& f = add_unmatched(found, c, Kind::unmatched_p2p, {from.process, to.process},
                             {{"from", from.process},
                              {"to", to.process},
                              {"sent", Bytes{sent.bytes}},
                              {"sends", sent.calls},
                              {"received", Bytes{received.bytes}},
                              {"receives", received.calls}});
  f.seq = std::min(sent.calls, received.calls);
  f.function = sent.calls > received.calls ? "ncclSend" : "ncclRecv";
  set(f.text, {"function", f.function});
  set(f.text, {"seq", *f.seq});
}

// Calls f(key, channel) for each channel of a member on the communicator.
template <typename F>
void each_channel(const Member& m, const Case& c, F&& f) {
  const auto& all = c.lines.of<collect::ReturnedCalls>(m.process)->channels;
  const std::int64_t comm = m.comm->comm;
  for (auto of = all.lower_bound({comm, 0, false}); of != all.end() && of->first.comm == comm; ++of)
    f(of->first, of->second);
}

// Checks every pair of ranks that exchanged data.
void add_pairs(const Communicator& comm, const Members& by_rank, const Case& c, Findings& found) {
  for (const Member* me : by_rank) {
    each_channel(*me, c, [&](const collect::ChannelKey& key, const collect::Channel& mine) {
      const auto peer = static_cast<std::size_t>(key.peer);
      if (peer >= by_rank.size()) return;
      const Member* other = by_rank[peer];
      const collect::Channel theirs = c.lines.of<collect::ReturnedCalls>(other->process)
                                          ->channel({other->comm->comm, me->comm->rank, !key.send});
      if (mine.alike(theirs)) return;
      if (key.send) {
        add_pair(comm, *me, *other, mine, theirs, found);
      } else if (theirs.calls == 0) {  // else the sender's channel reports it
        add_pair(comm, *other, *me, theirs, mine, found);
      }
    });
  }
}

// Compares sizes between ranks of which some did not close. A sender has a channel here as soon as
// its first send returned, and until then there is nothing to compare.
void add_sizes_of_open_pairs(const Communicator& comm, const Members& by_rank, const Case& c,
                             Findings& found) {
  for (const Member* from : by_rank) {
    if (!all_lines(*from, c)) continue;
    each_channel(*from, c, [&](const collect::ChannelKey& key, const collect::Channel&) {
      const auto peer = static_cast<std::size_t>(key.peer);
      if (!key.send || peer >= by_rank.size()) return;
      const Member& to = *by_rank[peer];
      if (!all_lines(to, c)) return;
      add_sizes_of_open_pair(comm, *from, to, channel_of(*from, key, c),
                             channel_of(to, {to.comm->comm, from->comm->rank, false}, c), found);
    });
  }
}

// Compares the sums of the ledgers, where lines are missing.
void add_totals(const Communicator& c, Findings& found) {
  const auto [sent, received] = sends_and_receives(c);
  if (sent == received) return;
  Finding& f = add_unmatched(found, c, Kind::unmatched_p2p, processes_of(c.members),
                             {{"sends", sent}, {"receives", received}});
  f.text.what = Say::totals_unmatched;
  f.function = sent > received ? "ncclSend" : "ncclRecv";
}

void unmatched_point_to_point(const Case& c, Findings& found) {
  for (const Communicator& comm : c.communicators) {
    if (comm.members.size() != static_cast<std::size_t>(comm.nranks)) continue;
    const bool closed = std::ranges::all_of(comm.members, &Member::closed);
    Members by_rank(comm.members.size());
    for (const Member& m : comm.members) {
      const auto rank = static_cast<std::size_t>(m.comm->rank);
      if (m.comm->rank >= 0 && rank < by_rank.size()) by_rank[rank] = &m;
    }
    if (std::ranges::find(by_rank, nullptr) != by_rank.end()) continue;
    if (!closed) {
      add_sizes_of_open_pairs(comm, by_rank, c, found);
    } else if (std::ranges::all_of(by_rank, [&](const Member* m) { return all_lines(*m, c); })) {
      add_pairs(comm, by_rank, c, found);
    } else {
      add_totals(comm, found);
    }
  }
}

}  // namespace

std::pair<std::uint64_t, std::uint64_t> sends_and_receives(const Communicator& c) {
  std::pair<std::uint64_t, std::uint64_t> calls(0, 0);
  for (const Member& m : c.members) {
    calls.first += m.sends;
    calls.second += m.receives;
  }
  return calls;
}

extern const Diagnosis kPointToPoint{kCheck, unmatched_point_to_point,
                                     collect::want<collect::ReturnedCalls, collect::LastCalls>};

}  // namespace tprof::diagnose
