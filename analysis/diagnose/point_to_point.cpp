#include "diagnose/point_to_point.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/names.h"
#include "stats/totals.h"
#include "text/text.h"

namespace tprof::diagnose {
namespace {

using read::Process;

bool all_lines(const Member& m, const Facts& facts) {
  const Process& p = *m.process;
  if (!m.closed() || !p.footer || !p.footer->dropped.empty()) return false;
  const auto of_process = facts.find(&p);
  return of_process != facts.end() && !of_process->second.failed.contains(m.comm->comm);
}

struct Ends {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
};

Ends ends_of(const Channel* channel) {
  return channel == nullptr ? Ends{} : Ends{channel->seqs.end(), channel->bytes};
}

void add(const Communicator& c, const Member& from, const Member& to, const Ends& sent,
         const Ends& received, std::vector<Problem>& found) {
  const bool number = sent.calls != received.calls;
  const std::uint64_t seq = std::min(sent.calls, received.calls);
  const std::string sender = name_of(*from.process);
  const std::string receiver = name_of(*to.process);
  Problem p{.kind = number ? "unmatched_p2p" : "p2p_sizes",
            .severity = Severity::warning,
            .ranks = ranks_of({from.process, to.process}),
            .next =
                "every ncclSend needs an ncclRecv of the same count and type on the other "
                "rank, in the same order",
            .communicator = c.id};
  if (number) {
    p.seq = seq;
    p.function = sent.calls > received.calls ? "ncclSend" : "ncclRecv";
    p.text = fmt::format(
        "communicator {} ({} ranks): {} called ncclSend to {} {} times, which "
        "called ncclRecv from it {} times: {} {} has no other end",
        c.id, c.nranks, sender, receiver, report::thousands(sent.calls),
        report::thousands(received.calls), p.function, seq);
  } else {
    p.text = fmt::format(
        "communicator {} ({} ranks): {} sent {} to {}, which called ncclRecv for "
        "{}, in {} calls each",
        c.id, c.nranks, sender, report::bytes(sent.bytes), receiver, report::bytes(received.bytes),
        report::thousands(sent.calls));
  }
  found.push_back(std::move(p));
}

// Every pair of ranks of which one talked to the other.
void pairs(const Communicator& c, const std::vector<const Member*>& by_rank, const Facts& facts,
           std::vector<Problem>& found) {
  for (const Member* me : by_rank) {
    const LineFacts& lines = facts.at(me->process);
    const auto first = lines.channels.lower_bound({me->comm->comm, INT64_MIN, false});
    for (auto it = first; it != lines.channels.end() && it->first.comm == me->comm->comm; ++it) {
      const auto peer = static_cast<std::size_t>(it->first.peer);
      if (it->first.peer < 0 || peer >= by_rank.size()) continue;
      const Channel* other = channel_of(*by_rank[peer], me->comm->rank, !it->first.send, facts);
      // Of a pair whose both ends have lines, the sender speaks.
      if (other != nullptr && !it->first.send) continue;
      const Ends mine = ends_of(&it->second);
      const Ends theirs = ends_of(other);
      if (mine.calls == theirs.calls && mine.bytes == theirs.bytes) continue;
      const bool send = it->first.send;
      add(c, send ? *me : *by_rank[peer], send ? *by_rank[peer] : *me, send ? mine : theirs,
          send ? theirs : mine, found);
    }
  }
}

void totals(const Communicator& c, std::vector<Problem>& found) {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::vector<const Process*> processes;
  for (const Member& m : c.members) {
    processes.push_back(m.process);
    stats::each_row(*m.process, [&](const read::Row& row) {
      if (row.comm != m.comm->comm || row.bucket != Bucket::P2P) return;
      if (row.name == "ncclSend") sent += row.amounts.calls;
      if (row.name == "ncclRecv") received += row.amounts.calls;
    });
  }
  if (sent == received) return;
  found.push_back(
      {.kind = "unmatched_p2p",
       .severity = Severity::warning,
       .ranks = ranks_of(processes),
       .text = fmt::format("communicator {} ({} ranks): {} ncclSend and {} ncclRecv: {} of them "
                           "have no other end",
                           c.id, c.nranks, report::thousands(sent), report::thousands(received),
                           report::thousands(std::max(sent, received) - std::min(sent, received))),
       .next = "which ranks it is, event lines of all of them tell (TPROF_EVENTS, TPROF_RANKS)",
       .communicator = c.id,
       .function = sent > received ? "ncclSend" : "ncclRecv"});
}

}  // namespace

const Channel* channel_of(const Member& m, std::int64_t peer, bool send, const Facts& facts) {
  const auto process = facts.find(m.process);
  if (process == facts.end()) return nullptr;
  const auto channel = process->second.channels.find({m.comm->comm, peer, send});
  return channel == process->second.channels.end() ? nullptr : &channel->second;
}

void unmatched_point_to_point(const std::vector<Communicator>& communicators, const Facts& facts,
                              std::vector<Problem>& found) {
  for (const Communicator& c : communicators) {
    if (c.members.size() != static_cast<std::size_t>(c.nranks)) continue;
    if (!std::ranges::all_of(c.members, &Member::closed)) continue;
    std::vector<const Member*> by_rank(c.members.size());
    for (const Member& m : c.members) {
      const auto rank = static_cast<std::size_t>(m.comm->rank);
      if (m.comm->rank >= 0 && rank < by_rank.size()) by_rank[rank] = &m;
    }
    if (std::ranges::find(by_rank, nullptr) != by_rank.end()) continue;
    const bool lines =
        std::ranges::all_of(c.members, [&](const Member& m) { return all_lines(m, facts); });
    if (lines) {
      pairs(c, by_rank, facts, found);
    } else {
      totals(c, found);
    }
  }
}

}  // namespace tprof::diagnose
