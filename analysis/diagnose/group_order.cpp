// Finds ranks that called operations in another order than others, and stand still since: each
// collective and each message by itself has all its ends.
//
// On one stream, or on one communicator, that is a deadlock, as one call runs after the other. On
// several streams it is one only if the calls can't run at the same time, which NCCL does not
// promise. Programs that live with it are well as long as they go on.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "diagnose/diagnosis.h"
#include "diagnose/ends.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

// A call of a rank, in its turn.
struct QueuedCall {
  const Process* process = nullptr;
  const RankCalls* calls = nullptr;  // all of the rank's
  const Communicator* communicator = nullptr;
  const Operation* call = nullptr;
  std::uint32_t turn = 0;
  std::uint64_t in_turn = 0;  // calls that it is made of

  std::int64_t called_ns() const { return process->header.base_time_ns + call->ts_ns; }
};

// Two of a rank's calls, one of which stands behind the other.
struct Behind {
  QueuedCall first{};
  QueuedCall then{};
};

// The operations of all ranks that stand behind each other: a stream runs one after the other, and
// so does a communicator. A collective runs where all ranks that called it have come to it, and a
// message where both of its ends have. A group goes on when all that is in it has run. The rest
// waits in a circle.
class Queues {
 public:
  // The same collective or message has the same number on all ranks.
  using Meeting = std::uint32_t;

  // `left_out`: communicators whose numbers are not those of the same calls. `streams`: what a
  // thread called on one stream or one communicator runs one after the other. Else all that it
  // called does. Threads have no order among them.
  Queues(const Case& c, const Processes& ranks, const std::set<std::string>& left_out, bool streams)
      : case_(c), streams_(streams) {
    std::map<const Process*, std::uint32_t> places;
    std::size_t items = 0;
    for (const Process* p : ranks) {
      places.emplace(p, static_cast<std::uint32_t>(ranks_.size()));
      ranks_.push_back({p, &c.calls(*p), static_cast<std::uint32_t>(items)});
      items += c.calls(*p).all.size();
    }
    items_.resize(items);
    for (const Channel& channel : c.channels) {
      if (!left_out.contains(c.communicators[channel.communicator].id)) number(channel, places);
    }
    away_.assign(first_.size(), 0);
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) make_turns(rank);
    run();
  }

  // Returns the first circle in which each waits for the next; empty: all of them can run.
  std::vector<Behind> circle() const {
    std::vector<Behind> path;
    const auto start = std::ranges::find_if(turns_, &Turn::stands);
    if (start == turns_.end()) return path;
    QueuedCall then{};
    for (auto turn = static_cast<std::uint32_t>(start - turns_.begin());;) {
      const auto again =
          std::ranges::find(path, turn, [](const Behind& b) { return b.first.turn; });
      if (again != path.end()) {
        again->then = then;
        path.erase(path.begin(), again);
        return path;
      }
      std::uint32_t waits = kNone;
      for (const std::uint32_t item : items_of(turn)) {
        // A send may go on without its receive, so it is not what a group stands for if others are.
        const bool sure = waits == kNone || operation(waits).send;
        if (away_[items_[item].meeting] != 0 && sure) waits = item;
      }
      path.push_back({called(waits), then});
      // It did not run, so it stands behind another one somewhere.
      std::uint32_t other = first_[items_[waits].meeting];
      while (turns_[items_[other].turn].before == 0) other = items_[other].next;
      then = called(other);
      turn = behind_what(items_[other].turn);
    }
  }

  // Who has a part in both, in this order.
  Processes alike(const QueuedCall& first, const QueuedCall& then) const {
    // By rank and thread, the last turn in which it has one in `then`.
    std::map<std::pair<std::uint32_t, std::int32_t>, std::uint32_t> behind;
    each_part(then.turn, [&](std::uint32_t turn, const auto& thread) {
      behind[thread] = std::max(behind[thread], turn);
    });
    std::set<std::uint32_t> ranks;
    each_part(first.turn, [&](std::uint32_t turn, const auto& thread) {
      const auto last = behind.find(thread);
      if (last != behind.end() && turn < last->second) ranks.insert(thread.first);
    });
    Processes who;
    for (const std::uint32_t rank : ranks) who.push_back(ranks_[rank].process);
    return who;
  }

  // Tells in which order the thread called all that is known on the two communicators. The calls of
  // a group have none.
  std::vector<Meeting> order_on_both(const Behind& b) const {
    std::vector<Meeting> all;
    std::ptrdiff_t group = 0;  // where the group of the last begins in `all`
    const Operation* last = nullptr;
    const Rank& rank = ranks_[turns_[b.first.turn].rank];
    for (const Operation& o : rank.calls->all) {
      const Meeting meeting = items_[rank.item_of(o)].meeting;
      const bool on_both = o.comm == b.first.call->comm || o.comm == b.then.call->comm;
      if (o.thread != b.first.call->thread || meeting == kFree || !on_both) continue;
      if (last == nullptr || !o.joins(*last)) group = std::ssize(all);
      last = &o;
      all.insert(std::upper_bound(all.begin() + group, all.end(), meeting), meeting);
    }
    return all;
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr Meeting kFree = UINT32_MAX;  // nothing is known that waits for it

  // An operation, which stands in up to two queues.
  struct Item {
    Meeting meeting = kFree;
    std::uint32_t next = kNone;  // item of this meeting
    std::uint32_t turn = kNone;
    std::array<std::uint32_t, 2> behind{kNone, kNone};  // turns
  };
  // A call, or the calls of a group.
  struct Turn {
    std::uint32_t rank = 0;
    std::uint32_t begin = 0;  // [begin, end) of the items
    std::uint32_t end = 0;
    std::uint32_t before = 0;  // how many turns it stands behind
    std::uint32_t left = 0;    // how many of its operations have not run

    bool stands() const { return before == 0 && left != 0; }
    bool done() const { return before == 0 && left == 0; }
  };
  struct Rank {
    const Process* process = nullptr;
    const RankCalls* calls = nullptr;
    std::uint32_t items = 0;  // where its items begin

    std::uint32_t item_of(const Operation& o) const {
      return items + static_cast<std::uint32_t>(&o - calls->all.data());
    }
  };

  // Numbers the meetings of a channel that all who have a part in it have a line of.
  void number(const Channel& channel, const std::map<const Process*, std::uint32_t>& places) {
    std::vector<std::pair<const ChannelEnd*, const Rank*>> ends;
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
        items_[rank->item_of(*o)].meeting = static_cast<Meeting>(first_.size() + o->seq - first);
      }
    }
    if (behind > first) first_.resize(first_.size() + behind - first, kNone);
  }

  // The queues in which a call stands.
  using Queue = std::array<std::int64_t, 4>;
  std::array<std::optional<Queue>, 2> queues_of(const Rank& rank, const Operation& o) const {
    const std::int64_t device = case_.membership(*rank.process, o.comm)->member->comm->device;
    if (!streams_) return {Queue{0, o.thread, device}};
    return {o.stream == Operation::kNoStream ? std::nullopt
                                             : std::optional(Queue{0, o.thread, device, o.stream}),
            Queue{1, o.thread, o.comm}};
  }

  void make_turns(std::uint32_t rank_number) {
    const Rank& rank = ranks_[rank_number];
    std::map<std::int32_t, std::int64_t> done;  // by communicator: when the last such was called
    for (const Operation& o : rank.calls->all) {
      if (o.message() || !rank.calls->is_through(o.comm, o.seq)) continue;
      std::int64_t& last = done.try_emplace(o.comm, o.ts_ns).first->second;
      last = std::max(last, o.ts_ns);
    }
    std::map<Queue, std::uint32_t> queues;  // the last item in each
    const Operation* before = nullptr;
    for (const Operation& o : rank.calls->all) {
      const std::uint32_t number = rank.item_of(o);
      Item& item = items_[number];
      const auto through = done.find(o.comm);
      const bool is_done = through != done.end() && o.ts_ns <= through->second;
      if (item.meeting == kFree || is_done) continue;
      const std::uint32_t other = first_[item.meeting];
      const bool twice = other != kNone && other >= rank.items && operation(other).send == o.send;
      if (twice) continue;  // in a damaged file
      if (before == nullptr || !o.joins(*before)) {
        turns_.push_back({.rank = rank_number, .begin = number});
      }
      before = &o;
      Turn& turn = turns_.back();
      item.turn = static_cast<std::uint32_t>(turns_.size() - 1);
      turn.end = number + 1;
      ++turn.left;
      ++away_[item.meeting];
      item.next = std::exchange(first_[item.meeting], number);
      const auto in = queues_of(rank, o);
      for (const std::size_t i : {0, 1}) {
        if (!in[i]) continue;
        const auto [last, fresh] = queues.try_emplace(*in[i], number);
        Item& ahead = items_[std::exchange(last->second, number)];
        if (fresh || ahead.turn == item.turn) continue;
        ahead.behind[i] = item.turn;
        ++turn.before;
      }
    }
  }

  // Lets everything run that can.
  void run() {
    std::vector<std::uint32_t> come;
    for (std::uint32_t t = 0; t < turns_.size(); ++t) {
      if (turns_[t].before == 0) come.push_back(t);
    }
    const auto leave = [&](std::uint32_t turn) {
      if (--turns_[turn].left != 0) return;
      for (const std::uint32_t item : items_of(turn)) {
        for (const std::uint32_t behind : items_[item].behind) {
          if (behind != kNone && --turns_[behind].before == 0) come.push_back(behind);
        }
      }
    };
    while (!come.empty()) {
      const std::uint32_t turn = come.back();
      come.pop_back();
      for (const std::uint32_t item : items_of(turn)) {
        const Meeting meeting = items_[item].meeting;
        if (--away_[meeting] != 0) continue;
        for (std::uint32_t i = first_[meeting]; i != kNone; i = items_[i].next) {
          leave(items_[i].turn);
        }
      }
    }
  }

  // Returns the turn at which the rank stands that has not come to this one.
  std::uint32_t behind_what(std::uint32_t turn) const {
    for (std::uint32_t t = turn; turns_[turn].before != 0;) {
      if (!turns_[--t].done() && share_queue(t, turn)) turn = t;
    }
    return turn;
  }
  bool share_queue(std::uint32_t a, std::uint32_t b) const {
    const Rank& rank = ranks_[turns_[a].rank];
    std::set<Queue> of_a;
    for (const bool second : {false, true}) {
      for (const std::uint32_t item : items_of(second ? b : a)) {
        for (const auto& queue : queues_of(rank, operation(item))) {
          if (queue && second && of_a.contains(*queue)) return true;
          if (queue && !second) of_a.insert(*queue);
        }
      }
    }
    return false;
  }

  // Shows the turns that have a part in what this one is made of, and the rank and thread of each.
  template <typename See>
  void each_part(std::uint32_t turn, const See& see) const {
    for (const std::uint32_t mine : items_of(turn)) {
      for (std::uint32_t i = first_[items_[mine].meeting]; i != kNone; i = items_[i].next) {
        const std::uint32_t its = items_[i].turn;
        see(its, std::pair(turns_[its].rank, operation(i).thread));
      }
    }
  }

  std::vector<std::uint32_t> items_of(std::uint32_t turn) const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = turns_[turn].begin; i < turns_[turn].end; ++i) {
      if (items_[i].turn == turn) all.push_back(i);
    }
    return all;
  }

  const Operation& operation(std::uint32_t item) const {
    const auto rank = std::ranges::upper_bound(ranks_, item, {}, &Rank::items) - 1;
    return rank->calls->all[item - rank->items];
  }

  QueuedCall called(std::uint32_t item) const {
    const Turn& turn = turns_[items_[item].turn];
    const Rank& rank = ranks_[turn.rank];
    const Operation& call = operation(item);
    const std::size_t on = case_.membership(*rank.process, call.comm)->communicator;
    return {rank.process, rank.calls,        &case_.communicators[on],
            &call,        items_[item].turn, turn.end - turn.begin};
  }

  const Case& case_;
  bool streams_;
  std::vector<Rank> ranks_;
  std::vector<Item> items_;
  std::vector<Turn> turns_;
  std::vector<std::uint32_t> first_;  // item of each meeting
  std::vector<std::uint32_t> away_;   // of each meeting, how many have not come to it
};

using Circle = std::vector<Behind>;

Processes processes_in(const Circle& circle) {
  Processes who;
  for (const auto& [first, then] : circle) {
    if (std::ranges::find(who, first.process) == who.end()) who.push_back(first.process);
  }
  return who;
}

bool ended(const Circle& circle) {
  return std::ranges::none_of(circle,
                              [](const Behind& b) { return b.first.process->end == End::running; });
}

// True if they made no call for long.
bool stood(const Circle& circle, const Case& c) {
  constexpr std::int64_t kStoodNs = 10'000'000'000;  // of a job that ended
  if (circle[0].first.process->end == End::dumped) return true;
  const auto quiet = quiet_ns(processes_in(circle), c);
  return quiet && *quiet >= (ended(circle) ? kStoodNs : c.options.stuck_after_ns);
}

bool nobody_goes_on(const Circle& circle) {
  return std::ranges::all_of(circle, [](const Behind& b) { return b.first.call->all_wait(); });
}

// True if the devices' times tell so of all these calls.
bool not_through(const Circle& circle) {
  const auto is_not = [](const QueuedCall& of) {
    return !of.call->message() && of.calls->is_not_through(of.call->comm, of.call->seq);
  };
  return std::ranges::all_of(circle,
                             [&](const Behind& b) { return is_not(b.first) && is_not(b.then); });
}

// True if two ranks part at several places, between which they had called the same: the program
// lives with that.
bool is_habit(const Circle& circle, const Queues& queues) {
  using Meetings = std::vector<Queues::Meeting>;
  Meetings here = queues.order_on_both(circle[0]);
  Meetings there = queues.order_on_both(circle[1]);
  const auto keep_those_of = [](Meetings& some, const Meetings& others) {
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

Fact order_of(const Processes& who, const Behind& b) {
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
  for (const Behind& b : circle) {
    const Behind& other = circle[&b == circle.data() ? 1 : 0];
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
  // Their numbers are not those of the same calls.
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

extern const Diagnosis kGroupOrder{kCheck, group_order};

}  // namespace tprof::diagnose
