// Finds ranks that called operations in another order than others, and stand still since: each
// collective and each message by itself has all its ends.
//
// On one stream, or on one communicator, that is a deadlock, as one call runs after the other. On
// several streams it is one only if the calls can't run at the same time, which NCCL does not
// promise. Programs that live with it are well as long as they go on.
#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "diagnose/diagnosis.h"
#include "diagnose/ends.h"
#include "diagnose/last_calls.h"
#include "diagnose/mismatch.h"
#include "diagnose/point_to_point.h"
#include "diagnose/queues.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

// A job that ended stood still if its hosts had made no call for so long.
constexpr std::int64_t kStoodNs = 10'000'000'000;

struct Circle {
  const Case& c;
  const Queues& queues;
  std::vector<Behind> all;

  const Process& process(const Behind& b) const { return *queues.rank_of(*b.at).process; }

  Processes processes() const {
    Processes who;
    for (const Behind& b : all) {
      if (std::ranges::find(who, &process(b)) == who.end()) who.push_back(&process(b));
    }
    return who;
  }

  bool ended() const {
    return std::ranges::none_of(all,
                                [&](const Behind& b) { return process(b).end == End::running; });
  }

  // True if they made no call for long.
  bool stood() const {
    if (process(all[0]).end == End::dumped) return true;
    const auto quiet = quiet_ns(processes(), c.lines);
    return quiet && *quiet >= (ended() ? kStoodNs : c.options.stuck_after_ns);
  }

  bool nobody_goes_on() const {
    return std::ranges::all_of(all, [](const Behind& b) { return b.first->all_wait(); });
  }

  // True if the devices' times tell so of all these calls.
  bool not_through() const {
    return std::ranges::all_of(all, [&](const Behind& b) {
      const auto is_not = [&](const Operation& o) {
        return !o.message() && queues.rank_of(*b.at).operations->is_not_through(o.comm, o.seq);
      };
      return is_not(*b.first) && is_not(*b.then);
    });
  }

  // True if the two ranks part at several places, between which they had called the same: the
  // program lives with that.
  bool is_habit() const {
    std::vector<Queues::Meeting> here = queues.order_on_both(all[0]);
    std::vector<Queues::Meeting> there = queues.order_on_both(all[1]);
    const auto keep_those_of = [](std::vector<Queues::Meeting>& some, const auto& others) {
      const std::unordered_set<Queues::Meeting> known(others.begin(), others.end());
      std::erase_if(some, [&](Queues::Meeting m) { return !known.contains(m); });
    };
    keep_those_of(here, there);
    keep_those_of(there, here);
    std::unordered_set<Queues::Meeting> apart;  // called by one of them so far
    int places = 0;
    for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i) {
      if (here[i] == there[i]) continue;
      places += apart.empty() ? 1 : 0;
      for (const Queues::Meeting m : {here[i], there[i]}) {
        if (apart.erase(m) == 0) apart.insert(m);
      }
    }
    return places > 1;
  }

  // Who has a part in both, in this order.
  Processes alike(const Behind& b, const Behind& other) const {
    Processes who;
    const std::vector<const Turn*> then = queues.together_with(*other.at);
    for (const Turn* first : queues.together_with(*b.at)) {
      const Process* p = queues.rank_of(*first).process;
      if (std::ranges::any_of(then, [&](const Turn* s) { return queues.in_order(*first, *s); }) &&
          std::ranges::find(who, p) == who.end()) {
        who.push_back(p);
      }
    }
    return who;
  }

  const std::string& communicator(const Turn& at, const Operation& o) const {
    return c.communicators[queues.communicator_of(at, o)].id;
  }

  // "collective 7 of communicator …", "ncclSend with its rank 2 (number 16) of …, in a group of 6"
  Fact what(const Turn& at, const Operation& o) const {
    if (!o.message()) {
      return {Say::collective_of, {{"seq", o.seq}, {"communicator", communicator(at, o)}}};
    }
    return call(at, o);
  }

  Fact call(const Turn& at, const Operation& o) const {
    const auto if_message = [&](auto value) {
      return o.message() ? std::optional(value) : std::nullopt;
    };
    Fact call{Say::open_call,
              {{"function", o.function},
               {"collective", o.message() ? std::nullopt : std::optional(o.seq)},
               {"peer", if_message(std::int64_t{o.peer})},
               {"number", if_message(o.seq)},
               {"communicator", communicator(at, o)}}};
    if (at.end - at.begin == 1) return call;
    return {Say::in_group, {{"call", call}, {"calls", std::uint64_t{at.end - at.begin}}}};
  }

  Fact order_of(const Processes& who, const Behind& b) const {
    const auto at = [&](const Operation& o) {
      return Time{process(b).header.base_time_ns + o.ts_ns};
    };
    return {Say::called_then,
            {{"who", who},
             {"by", who.size() > 1 ? std::optional(&process(b)) : std::nullopt},
             {"first", call(*b.at, *b.first)},
             {"at", at(*b.first)},
             {"then", call(*b.then_at, *b.then)},
             {"then_at", at(*b.then)}}};
  }

  TimeRange time() const {
    TimeRange time{INT64_MAX, INT64_MIN};
    for (const Behind& b : all) {
      const std::int64_t since = process(b).header.base_time_ns + b.first->ts_ns;
      time = {std::min(time.from_ns, since), std::max({time.to_ns, since, end_ns(process(b))})};
    }
    return time;
  }
};

void say(Circle circle, bool deadlock, Findings& found) {
  std::vector<Behind>& all = circle.all;
  const bool two = all.size() == 2;
  std::vector<Processes> who;
  for (const Behind& b : all) {
    who.push_back(two ? circle.alike(b, all[&b == all.data()]) : Processes{&circle.process(b)});
  }
  if (two && who[0].size() < who[1].size()) {
    std::swap(all[0], all[1]);
    std::swap(who[0], who[1]);
  }
  Processes named = circle.processes();
  if (two) {
    named = who[1];
    if (who[0].size() == who[1].size()) named.insert(named.begin(), who[0].begin(), who[0].end());
  }
  Finding& f = add(found, Kind::group_order, named);
  const Behind& b = all[0];
  if (two) {
    f.text.values = {{"who", who[0]},
                     {"others", who[1]},
                     {"first", circle.what(*b.at, *b.first)},
                     {"then", circle.what(*b.then_at, *b.then)},
                     {"deadlock", deadlock}};
  } else {
    f.text = {Say::order_circle, {{"who", named}, {"deadlock", deadlock}}};
  }
  const bool sure = deadlock || circle.not_through();
  f.severity = sure ? Severity::error : Severity::warning;
  f.communicator = circle.communicator(*b.at, *b.first);
  f.seq = b.first->seq;
  f.function = b.first->function;
  for (std::size_t i = 0; i < all.size(); ++i) {
    f.evidence.push_back(circle.order_of(who[i], all[i]));
  }
  shorten(f.evidence, 8);
  if (!deadlock && sure) f.evidence.push_back({Say::not_through});
  const Processes in = circle.processes();
  if (const auto quiet = quiet_ns(in, circle.c.lines)) {
    f.evidence.push_back(
        {Say::no_call_since, {{"who", in}, {"quiet", Ns{*quiet}}, {"ended", circle.ended()}}});
  }
  f.time = circle.time();
}

void group_order(const Case& c, Findings& found) {
  std::vector<RankQueue> ranks;
  for (const Process* p : c.job.processes) {
    const bool known = p->end != End::closed && p->end != End::lost && !p->snapshot;
    const auto* operations = known ? c.lines.of<Operations>(p) : nullptr;
    if (operations != nullptr) ranks.push_back({p, operations});
  }
  std::vector<bool> differs;  // its numbers are not those of the same calls
  const std::set<std::string> different = diagnose::different(found);
  const std::set<std::string> unfit = unfit_messages(found);
  for (const Communicator& comm : c.communicators) {
    differs.push_back(different.contains(comm.id) || unfit.contains(comm.id));
  }
  const Queues streams(c.places, ranks, differs, true);
  const Circle deadlock{c, streams, streams.circle()};
  if (!deadlock.all.empty() &&
      (deadlock.stood() || (deadlock.ended() && deadlock.nobody_goes_on()))) {
    return say(deadlock, deadlock.nobody_goes_on(), found);
  }
  const Queues threads(c.places, ranks, differs, false);
  const Circle swapped{c, threads, threads.circle()};
  if (swapped.all.size() == 2 && swapped.stood() &&
      (swapped.not_through() || !swapped.is_habit())) {
    say(swapped, false, found);
  }
}

}  // namespace

extern const Diagnosis kGroupOrder{kCheck, group_order, true};

}  // namespace tprof::diagnose
