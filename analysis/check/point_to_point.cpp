// Finds messages whose two ends differ in size, which wait for each other for ever, and messages
// with one end among ranks that closed. If a process was killed or still runs, the other end may
// still come: hang.cpp says whether a rank waits for it.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "check/diagnosis.h"
#include "check/ends.h"

namespace tprof::check {
namespace {

// The messages from one rank of a communicator to another.
struct Pair {
  const ChannelEnd& from;
  const ChannelEnd& to;
  std::optional<std::uint64_t> sends = from.made();  // nullopt: not known
  std::optional<std::uint64_t> receives = to.made();
  std::optional<std::uint64_t> differs{};  // the first message whose ends have different sizes

  explicit Pair(const Channel& channel) : from(channel.ends[0]), to(channel.ends[1]) {
    const auto is_odd = [&](const Operation* sent) {
      const Operation* received = to.number(sent->seq);
      return received != nullptr && received->bytes != sent->bytes;
    };
    const auto first = std::ranges::find_if(from.all, is_odd);
    if (first != from.all.end()) differs = (*first)->seq;
  }
  bool has(const Member* m) const { return from.member == m || to.member == m; }
  bool closed() const { return from.member->closed() && to.member->closed(); }
  bool both_known() const { return sends && receives; }
  bool unmatched() const { return both_known() && *sends != *receives; }
  // Both ends of the first message that differs.
  const Operation& sent() const { return *from.number(*differs); }
  const Operation& received() const { return *to.number(*differs); }
  std::pair<std::int64_t, std::int64_t> called_ns() const {
    return std::minmax(from.called_ns(sent()), to.called_ns(received()));
  }
};

// Returns the rank that is in each of these pairs; null if there is none, or more than one.
const Member* odd_one(const std::vector<const Pair*>& pairs) {
  const auto in_each = [&](const Member* m) {
    return std::ranges::all_of(pairs, [&](const Pair* p) { return p->has(m); });
  };
  const auto& [from, to] = std::tie(pairs[0]->from.member, pairs[0]->to.member);
  if (in_each(from) == in_each(to)) return nullptr;
  return in_each(from) ? from : to;
}

Values sizes_of(const Pair& p) {
  return {{"seq", *p.differs},
          {"from", p.from.member->process},
          {"to", p.to.member->process},
          {"sent", Bytes{p.sent().bytes}},
          {"received", Bytes{p.received().bytes}}};
}

// Says whether the sizes match again when one message is left out.
std::optional<Fact> how(const Pair& p, bool receiver_is_odd) {
  const auto alike = [](const Operation& here, const Operation* there) {
    return there != nullptr && here.bytes == there->bytes;
  };
  const bool skips_one = alike(p.received(), p.from.number(*p.differs + 1));
  const bool has_one_more = alike(p.sent(), p.to.number(*p.differs + 1));
  const bool fewer = p.both_known() && *p.receives < *p.sends;
  const bool more = p.both_known() && *p.receives > *p.sends;
  const bool swapped = skips_one && has_one_more;
  if (!swapped && !(skips_one && fewer) && !(has_one_more && more)) return std::nullopt;
  const bool receiver = swapped ? receiver_is_odd : fewer;
  return Fact{swapped ? Say::swapped : Say::left_out,
              {{"who", (receiver ? p.to : p.from).member->process},
               {"other", (receiver ? p.from : p.to).member->process}}};
}

// Completes a finding with the first differing message of its first pair.
void add_ends(const Pair& p, bool receiver_is_odd, Finding& f) {
  f.seq = *p.differs;
  f.function = "ncclSend";
  f.evidence = {fact_of(p.from, p.sent(), *p.to.member->process),
                fact_of(p.to, p.received(), *p.from.member->process)};
  if (auto fact = how(p, receiver_is_odd)) f.evidence.push_back(*std::move(fact));
  const auto [first_ns, last_ns] = p.called_ns();
  f.time = {first_ns, last_ns};
}

Finding& add_found(const Communicator& c, Kind kind, const Processes& who, Values values,
                   Findings& found) {
  values.emplace_back("communicator", c.id);
  values.emplace_back("nranks", c.nranks);
  Finding& f = add(found, kind, who, std::move(values));
  f.communicator = c.id;
  return f;
}

// All such messages of one communicator are one finding, which shows the first.
void add_sizes(const Communicator& c, std::vector<const Pair*> pairs, Findings& found) {
  if (pairs.empty()) return;
  std::ranges::stable_sort(pairs, {}, [](const Pair* p) { return p->called_ns().second; });
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
    f.severity = Severity::error;  // both hang
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
  const Processes ends{p.from.member->process, p.to.member->process};
  Finding& f = add_found(
      c, Kind::unmatched_p2p, ends,
      {{"from", ends[0]}, {"to", ends[1]}, {"sends", *p.sends}, {"receives", *p.receives}}, found);
  f.seq = std::min(*p.sends, *p.receives);
  if (p.differs) add_ends(p, true, f);
  f.function = *p.sends > *p.receives ? "ncclSend" : "ncclRecv";
  set(f.text, {"function", f.function});
  set(f.text, {"differs", p.differs});
  if (!p.differs) set(f.text, {"alone", f.seq});
}

// True if nobody goes on: then a missing end will never come.
bool stands(const Communicator& comm, const Case& c) {
  if (std::ranges::all_of(comm.members, &Member::closed)) return true;
  return stand(processes_of(comm.members), c);
}

// Compares the ledgers' sums if lines are missing.
void add_totals(const Communicator& comm, const Case& c, Findings& found) {
  const auto known = [](const Member& m) { return m.done != nullptr; };
  if (!std::ranges::all_of(comm.members, known)) return;
  if (comm.sends == comm.receives || !stands(comm, c)) return;
  Finding& f = add_found(comm, Kind::unmatched_p2p, processes_of(comm.members),
                         {{"sends", comm.sends}, {"receives", comm.receives}}, found);
  f.text.what = Say::totals_unmatched;
  f.function = comm.sends > comm.receives ? "ncclSend" : "ncclRecv";
}

void point_to_point(const Case& c, Findings& found) {
  std::vector<std::vector<Pair>> of(c.communicators.size());
  for (const Channel& channel : c.channels) {
    if (channel.messages) of[channel.communicator].emplace_back(channel);
  }
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

extern const Diagnosis kPointToPoint{kCheck | kStands, point_to_point};

}  // namespace tprof::check
