// Finds messages of different sizes at their two ends, which wait for each other for ever, and
// those that have one end only, among ranks that closed. In a process that was killed or still
// runs, the other end may come yet: whether it is waited for, hang.cpp tells.
#include "diagnose/mismatch.h"

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/diagnosis.h"
#include "diagnose/ends.h"
#include "diagnose/last_calls.h"
#include "diagnose/operations.h"

namespace tprof::diagnose {
namespace {

// One end of the messages from a rank of a communicator to another, by their numbers.
struct OneEnd {
  const Member* member = nullptr;
  const Operations* operations = nullptr;
  std::optional<std::uint64_t> calls{};  // nullopt: not known
  std::vector<const Operation*> all{};

  const Operation* number(std::uint64_t n) const {  // null: not known
    const auto found = std::ranges::lower_bound(all, n, {}, &Operation::seq);
    return found != all.end() && (*found)->seq == n ? *found : nullptr;
  }
  bool is(std::uint64_t n, const Operation* other) const {
    const Operation* mine = number(n);
    return mine != nullptr && other != nullptr && mine->bytes == other->bytes;
  }
};

struct Pair {
  OneEnd from{};
  OneEnd to{};
  std::optional<std::uint64_t> differs{};  // the first message that does

  bool has(const Member* m) const { return from.member == m || to.member == m; }
  bool closed() const { return from.member->closed() && to.member->closed(); }
  bool both_known() const { return from.calls && to.calls; }
  bool unmatched() const { return both_known() && *from.calls != *to.calls; }
};
using Pairs = std::vector<Pair>;

OneEnd end_of(const Member& m, const ChannelKey& key, const Case& c) {
  const auto* operations = c.lines.of<Operations>(m.process);
  return {&m, operations, operations->calls(key)};
}

// Both ends have messages that are in no order where threads share a communicator.
std::optional<std::uint64_t> first_that_differs(OneEnd& from, OneEnd& to) {
  for (OneEnd* end : {&from, &to}) std::ranges::stable_sort(end->all, {}, &Operation::seq);
  for (const Operation* sent : from.all) {
    const Operation* received = to.number(sent->seq);
    if (received != nullptr && received->bytes != sent->bytes) return sent->seq;
  }
  return std::nullopt;
}

// Returns, by communicator, the pairs of ranks that exchanged messages, of which both are known.
std::vector<Pairs> pairs_of(const Case& c) {
  std::map<ChannelOfJob, Pair> pairs;
  for (const read::Process* p : c.job.processes) {
    const auto& operations = seen_of<Operations>(*p, c.lines);
    std::map<ChannelKey, OneEnd*> ends;
    for (const auto& [key, channel] : operations.channels) {
      const auto place = c.places.find({p, key.comm});
      if (place == c.places.end()) continue;
      const auto& [communicator, me] = place->second;
      const Member* other = member_of(c.communicators[communicator], key.peer);
      if (other == nullptr || c.lines.of<Operations>(other->process) == nullptr) continue;
      const auto [pair, fresh] = pairs.try_emplace(channel_of_job(communicator, *me, key));
      auto& [from, to, differs] = pair->second;
      if (fresh) {
        const Member& sender = key.send ? *me : *other;
        const Member& receiver = key.send ? *other : *me;
        from = end_of(sender, {sender.comm->comm, receiver.comm->rank, true}, c);
        to = end_of(receiver, {receiver.comm->comm, sender.comm->rank, false}, c);
      }
      ends[key] = key.send ? &from : &to;
    }
    if (ends.empty()) continue;
    for (const Operation& o : operations.all) {
      const auto end = ends.find(o.channel());
      if (end != ends.end()) end->second->all.push_back(&o);
    }
  }
  std::vector<Pairs> all(c.communicators.size());
  for (auto& [channel, pair] : pairs) {
    pair.differs = first_that_differs(pair.from, pair.to);
    all[std::get<0>(channel)].push_back(std::move(pair));
  }
  return all;
}

// Returns the rank that is in each of these pairs; null if there is none, or another one is too.
const Member* odd_one(const std::vector<const Pair*>& pairs) {
  const auto in_each = [&](const Member* m) {
    return std::ranges::all_of(pairs, [&](const Pair* p) { return p->has(m); });
  };
  const auto& [from, to, differs] = *pairs[0];
  if (in_each(from.member) == in_each(to.member)) return nullptr;
  return in_each(from.member) ? from.member : to.member;
}

std::int64_t called_ns(const OneEnd& end, std::uint64_t n) {
  return end.member->process->header.base_time_ns + end.number(n)->ts_ns;
}

Fact call_of(const OneEnd& end, std::uint64_t n, const OneEnd& other) {
  return fact_of(*end.number(n), *end.operations, *end.member->process, *other.member->process);
}

Values sizes_of(const Pair& p) {
  const std::uint64_t n = *p.differs;
  return {{"seq", n},
          {"from", p.from.member->process},
          {"to", p.to.member->process},
          {"sent", Bytes{p.from.number(n)->bytes}},
          {"received", Bytes{p.to.number(n)->bytes}}};
}

// Tells how the sizes from this message on fit those of the next ones.
std::optional<Fact> how(const Pair& p, bool receiver_is_odd) {
  const std::uint64_t n = *p.differs;
  const bool skips_one = p.to.is(n, p.from.number(n + 1));
  const bool has_one_more = p.from.is(n, p.to.number(n + 1));
  const bool fewer = p.unmatched() && *p.to.calls < *p.from.calls;
  const bool more = p.unmatched() && *p.to.calls > *p.from.calls;
  const bool swapped = skips_one && has_one_more;
  if (!swapped && !(skips_one && fewer) && !(has_one_more && more)) return std::nullopt;
  const bool receiver = swapped ? receiver_is_odd : fewer;
  const OneEnd& who = receiver ? p.to : p.from;
  const OneEnd& other = receiver ? p.from : p.to;
  return Fact{swapped ? Say::swapped : Say::left_out,
              {{"who", who.member->process}, {"other", other.member->process}}};
}

// Completes a finding whose first pair is known to differ at a message.
void add_ends(const Pair& p, bool receiver_is_odd, Finding& f) {
  const std::uint64_t n = *p.differs;
  f.seq = n;
  f.function = "ncclSend";
  f.evidence = {call_of(p.from, n, p.to), call_of(p.to, n, p.from)};
  if (auto fact = how(p, receiver_is_odd)) f.evidence.push_back(*std::move(fact));
  for (const std::int64_t at : {called_ns(p.from, n), called_ns(p.to, n)}) {
    f.time = joined(f.time, {at, at});
  }
}

Finding& add_found(const Communicator& c, Kind kind, const Processes& who, Values values,
                   Findings& found) {
  values.emplace_back("communicator", c.id);
  values.emplace_back("nranks", c.nranks);
  Finding& f = add(found, kind, who, std::move(values));
  f.communicator = c.id;
  return f;
}

// Messages of one communicator that do not fit are one finding, of which the first is shown.
void add_sizes(const Communicator& c, std::vector<const Pair*> pairs, Findings& found) {
  if (pairs.empty()) return;
  std::ranges::stable_sort(pairs, {}, [](const Pair* p) {
    return std::max(called_ns(p->from, *p->differs), called_ns(p->to, *p->differs));
  });
  const Member* odd = odd_one(pairs);
  Members who;
  for (const Member& m : c.members) {
    const bool in = std::ranges::any_of(pairs, [&](const Pair* p) { return p->has(&m); });
    if (odd != nullptr ? odd == &m : in) who.push_back(&m);
  }
  const Pair& first = *pairs[0];
  Finding& f = add_found(c, Kind::p2p_sizes, processes_of(who), sizes_of(first), found);
  if (pairs.size() > 1) set(f.text, {"pairs", pairs.size()});
  if (pairs.size() > 1 && odd != nullptr) set(f.text, {"odd", odd->process});
  if (std::ranges::any_of(pairs, [](const Pair* p) { return !p->closed(); })) {
    f.severity = Severity::error;  // they hang
  }
  add_ends(first, odd == nullptr || odd == first.to.member, f);
  Facts others;
  for (const Pair* p : pairs) {
    if (p != &first) others.push_back({Say::sizes_differ_too, sizes_of(*p)});
  }
  shorten(others, 6);
  f.evidence.insert(f.evidence.end(), others.begin(), others.end());
  if (odd == nullptr) f.evidence.push_back({Say::no_majority});
}

void add_unmatched(const Communicator& c, const Pair& p, Findings& found) {
  const auto& [from, to, differs] = p;
  Finding& f = add_found(c, Kind::unmatched_p2p, {from.member->process, to.member->process},
                         {{"from", from.member->process},
                          {"to", to.member->process},
                          {"sends", *from.calls},
                          {"receives", *to.calls}},
                         found);
  f.seq = std::min(*from.calls, *to.calls);
  if (differs) add_ends(p, true, f);
  f.function = *from.calls > *to.calls ? "ncclSend" : "ncclRecv";
  set(f.text, {"function", f.function});
  set(f.text, {"differs", differs});
  if (!differs) set(f.text, {"alone", f.seq});
}

// True if nobody goes on, or can: then a message that has one end only will have no other.
bool stands(const Communicator& comm, const Case& c) {
  if (std::ranges::all_of(comm.members, &Member::closed)) return true;
  const auto quiet = stood_ns(processes_of(comm.members), c.lines);
  const bool runs = std::ranges::any_of(
      comm.members, [](const Member& m) { return m.process->end == read::End::running; });
  return quiet && (!runs || quiet->n > c.options.stuck_after_ns);
}

// Compares the sums of the ledgers, where lines are missing.
void add_totals(const Communicator& comm, const Case& c, Findings& found) {
  const auto known = [](const Member& m) { return m.done != nullptr; };
  if (!std::ranges::all_of(comm.members, known)) return;
  const auto [sent, received] = sends_and_receives(comm);
  if (sent == received || !stands(comm, c)) return;
  Finding& f = add_found(comm, Kind::unmatched_p2p, processes_of(comm.members),
                         {{"sends", sent}, {"receives", received}}, found);
  f.text.what = Say::totals_unmatched;
  f.function = sent > received ? "ncclSend" : "ncclRecv";
}

void point_to_point(const Case& c, Findings& found) {
  const std::vector<Pairs> of = pairs_of(c);
  for (std::size_t i = 0; i < of.size(); ++i) {
    const Communicator& comm = c.communicators[i];
    const std::size_t before = found.size();
    std::vector<const Pair*> differ;
    for (const Pair& p : of[i]) {
      if (p.closed() && p.unmatched()) {
        add_unmatched(comm, p, found);
      } else if (p.differs) {
        differ.push_back(&p);
      }
    }
    add_sizes(comm, std::move(differ), found);
    const bool all_seen = comm.members.size() == static_cast<std::size_t>(comm.nranks);
    const bool known = !of[i].empty() && std::ranges::all_of(of[i], &Pair::both_known);
    if (all_seen && !known && found.size() == before) add_totals(comm, c, found);
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

std::set<std::string> unfit_messages(const Findings& found) {
  std::set<std::string> ids;
  for (const Finding& f : found) {
    if (f.kind == Kind::p2p_sizes || f.kind == Kind::unmatched_p2p) ids.insert(f.communicator);
  }
  return ids;
}

extern const Diagnosis kPointToPoint{kCheck, point_to_point};

}  // namespace tprof::diagnose
