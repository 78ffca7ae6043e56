// Finds ranks that called collectives of several communicators in another order than others, and
// stand still since: each communicator by itself is the same on all of them.
//
// On one stream that is a deadlock, as a stream runs one call after the other. On several streams
// it is one only if the calls can't run at the same time, which NCCL does not promise. Programs
// that live with it are well as long as they go on.
#include <algorithm>
#include <set>
#include <tuple>

#include "collect/collectors.h"
#include "diagnose/calls.h"
#include "diagnose/diagnosis.h"
#include "diagnose/ends.h"
#include "diagnose/mismatch.h"
#include "diagnose/queues.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

// A job that ended stood still if its hosts had made no call for so long.
constexpr std::int64_t kStoodNs = 10'000'000'000;

// Some ranks of these send and go on, before the others have called it.
bool all_wait(const Called& call) {
  constexpr std::string_view kOneWay[] = {"ncclBroadcast", "ncclBcast", "ncclReduce", "ncclGather",
                                          "ncclScatter"};
  return std::ranges::find(kOneWay, std::string_view(call.function)) == std::end(kOneWay);
}

class Orders {
 public:
  explicit Orders(const Case& c) : case_(c), last_(c.communicators.size()) {
    for (std::size_t i = 0; i < c.communicators.size(); ++i) {
      for (const Member& m : c.communicators[i].members) {
        number_[{m.process, m.comm->comm}] = i;
        if (m.done != nullptr) last_[i] = std::max(last_[i], m.count());
      }
    }
    for (const Process* p : c.job.processes) {
      const bool known = p->end != End::closed && p->end != End::lost && !p->snapshot;
      const auto* calls = known ? c.lines.of<LastCollectives>(p) : nullptr;
      if (calls == nullptr) continue;
      for (const Called& call : calls->all) {
        const auto what = collective_of(*p, call);
        if (what) last_[what->first] = std::max(last_[what->first], what->second + 1);
      }
      known_.emplace_back(p, calls);
    }
  }

  void find(Findings& found) const {
    const std::vector<Queue> streams = queues(true, found);
    const std::vector<Behind> deadlock = circle_of(streams);
    if (!deadlock.empty() && (stood(deadlock) || (ended(deadlock) && nobody_goes_on(deadlock)))) {
      say(deadlock, streams, nobody_goes_on(deadlock), found);
      return;
    }
    const std::vector<Queue> threads = queues(false, found);
    const std::vector<Behind> swapped = circle_of(threads);
    if (swapped.size() != 2 || !stood(swapped)) return;
    if (not_through(swapped) || !was_so_before(swapped)) say(swapped, threads, false, found);
  }

 private:
  std::optional<CollectiveOf> collective_of(const Process& p, const Called& call) const {
    const auto number = number_.find({&p, call.comm});
    if (number == number_.end()) return std::nullopt;
    return CollectiveOf{number->second, call.seq};
  }

  static bool nobody_goes_on(const std::vector<Behind>& circle) {
    return std::ranges::all_of(circle, [](const Behind& b) { return all_wait(*b.first.call); });
  }

  // Returns the calls that devices may not be through with: by thread and stream, or the last of
  // each communicator by thread alone. Threads have no order among them. Where ranks did different
  // things, numbers are not those of the same calls.
  std::vector<Queue> queues(bool streams, const Findings& found) const {
    std::vector<bool> differs;
    const std::set<std::string> different = diagnose::different(found);
    for (const Communicator& comm : case_.communicators) {
      differs.push_back(different.contains(comm.id));
    }
    std::vector<Queue> all;
    for (const auto& [p, calls] : known_) {
      std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::size_t> place;
      std::set<CollectiveOf> seen;
      for (const Called& call : calls->all) {
        const auto what = collective_of(*p, call);
        if (!what || differs[what->first] || calls->is_through(call.comm, call.seq) ||
            !seen.insert(*what).second)
          continue;
        const bool wanted =
            streams ? call.stream != Called::kNoStream : what->second + 1 == last_[what->first];
        if (!wanted) continue;
        const std::int64_t device = p->comms.at(call.comm).device;
        const std::int64_t stream = streams ? call.stream : Called::kNoStream;
        const auto [queue, fresh] = place.try_emplace({device, call.thread, stream}, all.size());
        if (fresh) all.push_back({.process = p});
        all[queue->second].add({*what, &call});
      }
    }
    return all;
  }

  static Processes processes_of(const std::vector<Behind>& circle) {
    Processes all;
    for (const Behind& b : circle) {
      const Process* p = b.queue->process;
      if (std::ranges::find(all, p) == all.end()) all.push_back(p);
    }
    return all;
  }

  static bool ended(const std::vector<Behind>& circle) {
    return std::ranges::none_of(processes_of(circle),
                                [](const Process* p) { return p->end == End::running; });
  }

  // True if they made no call for long.
  bool stood(const std::vector<Behind>& circle) const {
    const auto quiet = quiet_ns(processes_of(circle), case_.lines);
    return quiet && *quiet >= (ended(circle) ? kStoodNs : case_.options.stuck_after_ns);
  }

  // True if the devices' times tell so of all these calls.
  bool not_through(const std::vector<Behind>& circle) const {
    return std::ranges::all_of(circle, [&](const Behind& b) {
      const auto* calls = case_.lines.of<LastCollectives>(b.queue->process);
      return calls->is_not_through(b.first.call->comm, b.first.call->seq) &&
             calls->is_not_through(b.then.call->comm, b.then.call->seq);
    });
  }

  // The collectives of these communicators that a thread called before the last of each.
  std::vector<CollectiveOf> before(const Behind& b) const {
    std::vector<CollectiveOf> all;
    const Process& p = *b.queue->process;
    for (const Called& call : case_.lines.of<LastCollectives>(&p)->all) {
      const bool one = call.comm == b.first.call->comm && call.seq < b.first.call->seq;
      const bool other = call.comm == b.then.call->comm && call.seq < b.then.call->seq;
      if (one || other) all.push_back(*collective_of(p, call));
    }
    return all;
  }

  // True if the two ranks had another order before, and went on.
  bool was_so_before(const std::vector<Behind>& circle) const {
    std::vector<CollectiveOf> here = before(circle[0]);
    const std::vector<CollectiveOf> there = before(circle[1]);
    std::map<CollectiveOf, std::size_t> place;
    for (std::size_t i = 0; i < there.size(); ++i) place.try_emplace(there[i], i);
    std::erase_if(here, [&](const CollectiveOf& what) { return !place.contains(what); });
    return !std::ranges::is_sorted(here, {}, [&](const auto& what) { return place.at(what); });
  }

  Fact fact_of(const Queued& queued) const {
    return {Say::open_call,
            {{"function", queued.call->function},
             {"collective", queued.what.second},
             {"peer", std::nullopt},
             {"number", std::nullopt},
             {"communicator", case_.communicators[queued.what.first].id}}};
  }

  Fact order_of(const Processes& who, const Behind& b) const {
    const auto at = [&](const Queued& q) {
      return Time{b.queue->process->header.base_time_ns + q.call->ts_ns};
    };
    return {Say::called_then,
            {{"who", who},
             {"by", who.size() > 1 ? std::optional(b.queue->process) : std::nullopt},
             {"first", fact_of(b.first)},
             {"at", at(b.first)},
             {"then", fact_of(b.then)},
             {"then_at", at(b.then)}}};
  }

  // Who called both in the same order.
  static Processes alike(const Behind& b, const std::vector<Queue>& queues) {
    Processes who;
    for (const Queue& q : queues) {
      std::size_t first = 0;
      std::size_t then = 0;
      const bool both =
          q.find(b.first.what, &first) != nullptr && q.find(b.then.what, &then) != nullptr;
      if (both && first < then) who.push_back(q.process);
    }
    return who;
  }

  void say(std::vector<Behind> circle, const std::vector<Queue>& queues, bool deadlock,
           Findings& found) const {
    std::vector<Processes> who(circle.size());
    for (std::size_t i = 0; i < circle.size(); ++i) {
      who[i] = circle.size() == 2 ? alike(circle[i], queues) : Processes{circle[i].queue->process};
    }
    if (circle.size() == 2 && who[0].size() < who[1].size()) {
      std::swap(circle[0], circle[1]);
      std::swap(who[0], who[1]);
    }
    const bool odd = circle.size() == 2 && who[0].size() > who[1].size();
    Processes all = processes_of(circle);
    if (circle.size() == 2) all = odd ? who[1] : joined(who);
    Finding& f = add(found, Kind::group_order, all);
    const Behind& b = circle[0];
    const auto id = [&](const Queued& q) { return case_.communicators[q.what.first].id; };
    const bool sure = deadlock || not_through(circle);
    if (circle.size() == 2) {
      f.text.values = {{"who", who[0]},
                       {"others", who[1]},
                       {"seq", b.first.what.second},
                       {"communicator", id(b.first)},
                       {"other_seq", b.then.what.second},
                       {"other_communicator", id(b.then)},
                       {"deadlock", deadlock}};
    } else {
      f.text = {Say::order_circle, {{"who", all}, {"n", circle.size()}, {"deadlock", deadlock}}};
    }
    f.severity = sure ? Severity::error : Severity::warning;
    f.communicator = id(b.first);
    f.seq = b.first.what.second;
    f.function = b.first.call->function;
    Facts orders;
    for (std::size_t i = 0; i < circle.size(); ++i) orders.push_back(order_of(who[i], circle[i]));
    shorten(orders, 8);
    f.evidence = std::move(orders);
    if (!deadlock && sure) f.evidence.push_back({Say::not_through});
    const Processes in = processes_of(circle);
    if (const auto quiet = quiet_ns(in, case_.lines)) {
      f.evidence.push_back(
          {Say::no_call_since, {{"who", in}, {"quiet", Ns{*quiet}}, {"ended", ended(circle)}}});
    }
    f.time = time_of(circle);
  }

  static Processes joined(const std::vector<Processes>& parts) {
    Processes all;
    for (const Processes& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  static TimeRange time_of(const std::vector<Behind>& circle) {
    TimeRange time{INT64_MAX, INT64_MIN};
    for (const Behind& b : circle) {
      const Process& p = *b.queue->process;
      const std::int64_t since = p.header.base_time_ns + b.first.call->ts_ns;
      time = {std::min(time.from_ns, since), std::max({time.to_ns, since, end_ns(p)})};
    }
    return time;
  }

  const Case& case_;
  std::vector<std::uint64_t> last_;  // by communicator, how many collectives there are
  std::map<std::pair<const Process*, std::int64_t>, std::size_t> number_;
  std::vector<std::pair<const Process*, const LastCollectives*>> known_;
};

void group_order(const Case& c, Findings& found) {
  Orders(c).find(found);
}

}  // namespace

extern const Diagnosis kGroupOrder{kCheck, group_order,
                                   collect::want<LastCollectives, collect::LastCalls>, true};

}  // namespace tprof::diagnose
