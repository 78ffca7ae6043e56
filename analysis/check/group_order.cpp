// Finds ranks that called operations in different orders and have stood still since, although each
// collective and each message was called by all of its ranks.
//
// On one stream, or on one communicator, that is a deadlock, since calls run one after the other.
// On several streams it is a deadlock only if the calls can't run at the same time, which NCCL does
// not promise. A program that does this and goes on is fine.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "check/diagnosis.h"
#include "check/ends.h"

namespace tprof::check {
namespace {

using read::End;
using read::Process;

// A rank's call and the turn that it is in.
struct QueuedCall {
  const Process* process = nullptr;
  const RankCalls* calls = nullptr;  // all calls of the rank
  const Communicator* communicator = nullptr;
  const Operation* call = nullptr;
  std::size_t turn = 0;
  std::uint64_t in_turn = 0;  // number of calls in the turn

  std::int64_t called_ns() const { return process->header.base_time_ns + call->ts_ns; }
};

// Two calls of a rank, the second of which waits for the first.
struct Waiting {
  QueuedCall first{};
  QueuedCall then{};
};

// Simulates the queues of all ranks: streams run their calls in order, and communicators their
// collectives. A collective runs when all ranks that called it have reached it, and a message when
// both ends have. A group is done when all of its calls have run. The remaining calls wait in a
// cycle.
class Queues {
 public:
  // A number for each collective or message, the same on all ranks.
  using Meeting = std::uint32_t;

  // `left_out`: communicators on which equal numbers do not mean the same call. `streams`: a
  // thread's calls run in order on each stream and on each communicator; otherwise all of its calls
  // do. Threads are independent.
  Queues(const Case& c, const Processes& ranks, const std::set<std::string>& left_out, bool streams)
      : case_(c), streams_(streams) {
    std::map<const Process*, std::size_t> places;
    for (const Process* p : ranks) {
      places.emplace(p, ranks_.size());
      ranks_.push_back({p, &c.calls(*p), std::vector(c.calls(*p).all.size(), kFree)});
    }
    for (const Channel& channel : c.channels) {
      const bool known = !left_out.contains(c.communicators[channel.communicator].id);
      if (known && channel.numbered()) number(channel, places);
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) make_turns(rank);
    run();
  }

  // Returns the first cycle in which each call waits for the next; empty: all can run.
  std::vector<Waiting> circle() const {
    std::vector<Waiting> path;
    const auto start = std::ranges::find_if(turns_, &Turn::stands);
    if (start == turns_.end()) return path;
    QueuedCall then{};
    for (auto turn = static_cast<std::size_t>(start - turns_.begin());;) {
      const auto again =
          std::ranges::find(path, turn, [](const Waiting& b) { return b.first.turn; });
      if (again != path.end()) {
        again->then = then;
        path.erase(path.begin(), again);
        return path;
      }
      const Operation* waits = nullptr;
      for (const Operation* o : turns_[turn].calls) {
        // A send may go on without its receive, so a group is more likely stuck on another call.
        if (met_[meeting_of(turn, *o)].away != 0 && (waits == nullptr || waits->send)) waits = o;
      }
      path.push_back({called(turn, *waits), then});
      // It did not run, so on some rank it waits for another call.
      const Meeting meeting = meeting_of(turn, *waits);
      turn = *std::ranges::find_if(met_[meeting].turns,
                                   [&](std::size_t t) { return turns_[t].before != 0; });
      then = called(turn, **std::ranges::find_if(turns_[turn].calls, [&](const Operation* o) {
                      return meeting_of(turn, *o) == meeting;
                    }));
      turn = behind_what(turn);
    }
  }

  // Returns the ranks that called both in this order.
  Processes alike(const QueuedCall& first, const QueuedCall& then) const {
    // By rank and thread: the last turn that takes part in `then`.
    std::map<std::pair<std::size_t, std::int32_t>, std::size_t> behind;
    each_part(then.turn, [&](std::size_t turn, const auto& thread) {
      behind[thread] = std::max(behind[thread], turn);
    });
    std::set<std::size_t> ranks;
    each_part(first.turn, [&](std::size_t turn, const auto& thread) {
      const auto last = behind.find(thread);
      if (last != behind.end() && turn < last->second) ranks.insert(thread.first);
    });
    Processes who;
    for (const std::size_t rank : ranks) who.push_back(ranks_[rank].process);
    return who;
  }

  // Returns the thread's known calls on the two communicators in order. Calls of a group have no
  // order.
  std::vector<Meeting> order_on_both(const Waiting& b) const {
    std::vector<Meeting> all;
    std::ptrdiff_t group = 0;  // where the last call's group begins in `all`
    const Operation* last = nullptr;
    for (const Operation& o : b.first.calls->all) {
      const Meeting meeting = meeting_of(b.first.turn, o);
      const bool on_both = o.comm == b.first.call->comm || o.comm == b.then.call->comm;
      if (o.thread != b.first.call->thread || meeting == kFree || !on_both) continue;
      if (last == nullptr || !o.joins(*last)) group = std::ssize(all);
      last = &o;
      all.insert(std::upper_bound(all.begin() + group, all.end(), meeting), meeting);
    }
    return all;
  }

 private:
  static constexpr Meeting kFree = UINT32_MAX;  // for calls that are not matched

  struct Rank {
    const Process* process = nullptr;
    const RankCalls* calls = nullptr;
    std::vector<Meeting> meetings{};  // of each of `calls`
  };
  // A call, or the calls of a group.
  struct Turn {
    std::size_t rank = 0;
    std::vector<const Operation*> calls{};
    std::vector<std::size_t> behind{};  // turns that wait for this one
    std::size_t before = 0;             // how many turns it waits for
    std::size_t left = 0;               // how many of its calls have not run

    bool stands() const { return before == 0 && left != 0; }
    bool done() const { return before == 0 && left == 0; }
  };
  struct MeetingState {
    std::vector<std::size_t> turns{};  // that take part
    std::size_t away = 0;              // how many of these have not reached it
  };

  // Numbers the calls of a channel for which all ranks have lines.
  void number(const Channel& channel, const std::map<const Process*, std::size_t>& places) {
    std::vector<std::pair<const ChannelEnd*, Rank*>> ends;
    std::uint64_t first = 0;
    std::uint64_t behind = 0;
    for (const ChannelEnd& end : channel.ends) {
      const auto place = places.find(end.member->process);
      if (place == places.end() || end.numbers().captured) continue;
      ends.emplace_back(&end, &ranks_[place->second]);
      first = std::max(first, end.numbers().first);
      behind = std::max(behind, end.numbers().calls);
    }
    for (const auto& [end, rank] : ends) {
      for (const Operation* o : end->all) {
        if (o->seq < first || o->seq >= behind) continue;
        rank->meetings[static_cast<std::size_t>(o - rank->calls->all.data())] =
            static_cast<Meeting>(met_.size() + o->seq - first);
      }
    }
    if (behind > first) met_.resize(met_.size() + behind - first);
  }
  Meeting meeting_of(const Rank& rank, const Operation& o) const {
    return rank.meetings[static_cast<std::size_t>(&o - rank.calls->all.data())];
  }
  Meeting meeting_of(std::size_t turn, const Operation& o) const {
    return meeting_of(ranks_[turns_[turn].rank], o);
  }

  // Returns the queues that a call is in.
  using Queue = std::array<std::int64_t, 4>;
  std::vector<Queue> queues_of(const Rank& rank, const Operation& o) const {
    const std::int64_t device = case_.membership(*rank.process, o.comm)->member->comm->device;
    if (!streams_) return {{0, o.thread, device}};
    const Queue communicator{1, o.thread, o.comm};
    if (o.stream == Operation::kNoStream) return {communicator};
    const Queue stream{0, o.thread, device, o.stream};
    // Messages of one communicator may run at the same time.
    return o.message() ? std::vector{stream} : std::vector{stream, communicator};
  }

  void make_turns(std::size_t number) {
    const Rank& rank = ranks_[number];
    std::map<std::int32_t, std::int64_t> done;  // by communicator: its last finished call
    for (const Operation& o : rank.calls->all) {
      if (o.message() || !rank.calls->is_through(o.comm, o.seq)) continue;
      std::int64_t& last = done.try_emplace(o.comm, o.ts_ns).first->second;
      last = std::max(last, o.ts_ns);
    }
    std::map<Queue, std::size_t> queues;  // the last turn in each
    const Operation* before = nullptr;
    for (const Operation& o : rank.calls->all) {
      const Meeting meeting = meeting_of(rank, o);
      const auto through = done.find(o.comm);
      if (meeting == kFree || (through != done.end() && o.ts_ns <= through->second)) continue;
      if (before == nullptr || !o.joins(*before)) turns_.push_back({.rank = number});
      before = &o;
      Turn& turn = turns_.back();
      turn.calls.push_back(&o);
      ++turn.left;
      met_[meeting].turns.push_back(turns_.size() - 1);
      ++met_[meeting].away;
      for (const Queue& queue : queues_of(rank, o)) {
        const auto [last, fresh] = queues.try_emplace(queue, turns_.size() - 1);
        const std::size_t ahead = std::exchange(last->second, turns_.size() - 1);
        if (fresh || ahead == turns_.size() - 1) continue;
        turns_[ahead].behind.push_back(turns_.size() - 1);
        ++turn.before;
      }
    }
  }

  // Runs everything that can run.
  void run() {
    std::vector<std::size_t> come;
    for (std::size_t t = 0; t < turns_.size(); ++t) {
      if (turns_[t].before == 0) come.push_back(t);
    }
    while (!come.empty()) {
      const std::size_t turn = come.back();
      come.pop_back();
      for (const Operation* o : turns_[turn].calls) {
        MeetingState& met = met_[meeting_of(turn, *o)];
        if (--met.away != 0) continue;
        for (const std::size_t its : met.turns) {
          if (--turns_[its].left != 0) continue;
          for (const std::size_t behind : turns_[its].behind) {
            if (--turns_[behind].before == 0) come.push_back(behind);
          }
        }
      }
    }
  }

  // Returns the turn that the rank of this one is stuck at.
  std::size_t behind_what(std::size_t turn) const {
    for (std::size_t t = turn; turns_[turn].before != 0;) {
      if (!turns_[--t].done() && std::ranges::count(turns_[t].behind, turn) != 0) turn = t;
    }
    return turn;
  }

  // Calls see(turn, its rank and thread) for all turns that take part in this one's calls.
  template <typename See>
  void each_part(std::size_t turn, const See& see) const {
    for (const Operation* o : turns_[turn].calls) {
      for (const std::size_t its : met_[meeting_of(turn, *o)].turns) {
        see(its, std::pair(turns_[its].rank, turns_[its].calls.front()->thread));
      }
    }
  }

  QueuedCall called(std::size_t turn, const Operation& call) const {
    const Rank& rank = ranks_[turns_[turn].rank];
    const std::size_t on = case_.membership(*rank.process, call.comm)->communicator;
    return {rank.process, rank.calls, &case_.communicators[on],
            &call,        turn,       turns_[turn].calls.size()};
  }

  const Case& case_;
  bool streams_;
  std::vector<Rank> ranks_;
  std::vector<Turn> turns_;
  std::vector<MeetingState> met_;  // by number
};

using Circle = std::vector<Waiting>;

Processes processes_in(const Circle& circle) {
  Processes who;
  for (const auto& [first, then] : circle) {
    if (std::ranges::find(who, first.process) == who.end()) who.push_back(first.process);
  }
  return who;
}

bool ended(const Circle& circle) {
  return std::ranges::none_of(
      circle, [](const Waiting& b) { return b.first.process->end == End::running; });
}

// True if the ranks made no call for long.
bool stood(const Circle& circle, const Case& c) {
  constexpr std::int64_t kStoodNs = 10'000'000'000;  // for a job that ended
  if (circle[0].first.process->end == End::dumped) return true;
  const auto quiet = quiet_ns(processes_in(circle), c);
  return quiet && *quiet >= (ended(circle) ? kStoodNs : c.options.stuck_after_ns);
}

bool nobody_goes_on(const Circle& circle) {
  return std::ranges::all_of(circle, [](const Waiting& b) { return b.first.call->all_wait(); });
}

// True if device times show that none of these calls has ended.
bool not_through(const Circle& circle) {
  const auto is_not = [](const QueuedCall& of) {
    return !of.call->message() && of.calls->is_not_through(of.call->comm, of.call->seq);
  };
  return std::ranges::all_of(circle,
                             [&](const Waiting& b) { return is_not(b.first) && is_not(b.then); });
}

// True if two ranks differ in order at several places and agree in between: the program works
// nevertheless.
bool is_habit(const Circle& circle, const Queues& queues) {
  std::vector<Queues::Meeting> here = queues.order_on_both(circle[0]);
  std::vector<Queues::Meeting> there = queues.order_on_both(circle[1]);
  std::unordered_map<Queues::Meeting, std::size_t> place;  // there
  for (const Queues::Meeting m : here) place[m] = 0;
  std::erase_if(there, [&](Queues::Meeting m) { return !place.contains(m); });
  place.clear();
  for (std::size_t i = 0; i < there.size(); ++i) place[there[i]] = i;
  std::erase_if(here, [&](Queues::Meeting m) { return !place.contains(m); });
  int places = 0;
  bool apart = false;  // so far the two have not called the same set
  std::size_t last = 0;
  for (std::size_t i = 0; i < here.size(); ++i) {
    last = std::max(last, place[here[i]]);
    places += last > i && !apart ? 1 : 0;
    apart = last > i;
  }
  return places > 1;
}

// "ncclSend with its rank 2 (number 16) of communicator …, in a group of 6"
Fact full(const QueuedCall& of) {
  const Operation& o = *of.call;
  Fact call{Say::open_call, {{"function", o.function}, {"communicator", of.communicator->id}}};
  if (!o.message()) set(call, {"collective", o.seq});
  if (o.message()) set(call, {"number", o.seq});
  if (o.message()) set(call, {"peer", std::int64_t{o.peer}});
  return of.in_turn == 1 ? call : Fact{Say::in_group, {{"call", call}, {"calls", of.in_turn}}};
}

// "collective 7 of communicator …"
Fact brief(const QueuedCall& of) {
  if (of.call->message()) return full(of);
  return {Say::collective_of, {{"seq", of.call->seq}, {"communicator", of.communicator->id}}};
}

Fact order_of(const Processes& who, const Waiting& b) {
  Fact order{Say::called_then,
             {{"who", who},
              {"first", full(b.first)},
              {"at", Time{b.first.called_ns()}},
              {"then", full(b.then)},
              {"then_at", Time{b.then.called_ns()}}}};
  if (who.size() > 1) set(order, {"by", b.first.process});
  return order;
}

void say(Circle circle, const Queues& queues, bool deadlock, const Case& c, Findings& found) {
  const bool two = circle.size() == 2;
  const Processes in = processes_in(circle);
  std::vector<Processes> who;
  for (const Waiting& b : circle) {
    const Waiting& other = circle[&b == circle.data() ? 1 : 0];
    who.push_back(two ? queues.alike(b.first, other.first) : Processes{b.first.process});
  }
  if (two && who[0].size() < who[1].size()) {
    std::swap(circle[0], circle[1]);
    std::swap(who[0], who[1]);
  }
  const auto& [first, then] = circle[0];
  Processes named = two ? who[1] : in;
  if (two && who[0].size() == who[1].size()) {
    named.insert(named.begin(), who[0].begin(), who[0].end());
  }
  Finding& f = add(found, Kind::group_order, named, {{"deadlock", deadlock}});
  if (two) {
    set(f.text, {"who", who[0]});
    set(f.text, {"others", who[1]});
    set(f.text, {"first", brief(first)});
    set(f.text, {"then", brief(then)});
  } else {
    f.text.what = Say::order_circle;
  }
  const bool sure = deadlock || not_through(circle);
  f.severity = sure ? Severity::error : Severity::warning;
  f.communicator = first.communicator->id;
  f.seq = first.call->seq;
  f.function = first.call->function;
  for (std::size_t i = 0; i < circle.size(); ++i) {
    f.evidence.push_back(order_of(who[i], circle[i]));
    const std::int64_t since = circle[i].first.called_ns();
    f.time = joined(f.time, {since, std::max(since, end_ns(*circle[i].first.process))});
  }
  shorten(f.evidence, 8);
  if (!deadlock && sure) f.evidence.push_back({Say::not_through});
  if (const auto quiet = quiet_ns(in, c)) {
    f.evidence.push_back(
        {Say::no_call_since, {{"who", in}, {"quiet", Ns{*quiet}}, {"ended", ended(circle)}}});
  }
}

void group_order(const Case& c, Findings& found) {
  const Processes ranks = select(c.job.processes, [](const Process& p) {
    return p.end != End::closed && p.end != End::lost && !p.snapshot;
  });
  // On these communicators equal numbers do not mean the same call.
  const std::set<std::string> differ =
      communicators_of(found, {Kind::mismatch, Kind::p2p_sizes, Kind::unmatched_p2p});
  const Queues streams(c, ranks, differ, true);
  const Circle deadlock = streams.circle();
  const bool nobody = nobody_goes_on(deadlock);
  if (!deadlock.empty() && (stood(deadlock, c) || (ended(deadlock) && nobody))) {
    return say(deadlock, streams, nobody, c, found);
  }
  const Queues threads(c, ranks, differ, false);
  const Circle swapped = threads.circle();
  if (swapped.size() == 2 && stood(swapped, c) &&
      (not_through(swapped) || !is_habit(swapped, threads))) {
    say(swapped, threads, false, c, found);
  }
}

}  // namespace

extern const Diagnosis kGroupOrder{kCheck | kStands, group_order};

}  // namespace tprof::check
