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

#include "diagnose/ends.h"
#include "diagnose/mismatch.h"
#include "diagnose/operations.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

// A call, or the calls of a group.
struct Turn {
  std::uint32_t rank = 0;
  std::uint32_t begin = 0;  // [begin, end) of the rank's operations
  std::uint32_t end = 0;
  std::uint32_t before = 0;  // how many turns it stands behind
  std::uint32_t left = 0;    // how many of its operations have not run

  bool stands() const { return before == 0 && left != 0; }
  bool done() const { return before == 0 && left == 0; }
};

// A call of a rank, in its turn.
struct QueuedCall {
  const read::Process* process = nullptr;
  const Operations* operations = nullptr;  // all of the rank's
  const Communicator* communicator = nullptr;
  const Turn* turn = nullptr;
  const Operation* call = nullptr;
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
  Queues(const Case& c, const Processes& ranks, const std::vector<bool>& left_out, bool streams)
      : case_(c), streams_(streams) {
    for (const read::Process* p : ranks) {
      ranks_.push_back({p, &seen_of<Operations>(*p, c.lines)});
    }
    number_meetings(left_out);
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) make_turns(rank);
    run();
  }

  // Returns the first circle in which each waits for the next; empty: all of them can run. Refers
  // to this.
  std::vector<Behind> circle() const {
    std::vector<Behind> path;
    const auto start = std::ranges::find_if(turns_, &Turn::stands);
    if (start == turns_.end()) return path;
    Behind last{};
    for (auto turn = static_cast<std::uint32_t>(start - turns_.begin());;) {
      const auto again =
          std::ranges::find(path, &turns_[turn], [](const Behind& b) { return b.first.turn; });
      if (again != path.end()) {
        again->then = last.then;
        path.erase(path.begin(), again);
        return path;
      }
      std::uint32_t waits = kNone;
      for (const std::uint32_t item : items_of(turn)) {
        // A send may go on without its receive, so it is not what a group stands for if others are.
        const bool sure = waits == kNone || called(waits).call->send;
        if (away_[items_[item].meeting] != 0 && sure) waits = item;
      }
      last.first = called(waits);
      path.push_back(last);
      // It did not run, so it stands behind another one somewhere.
      std::uint32_t other = first_[items_[waits].meeting];
      while (turns_[items_[other].turn].before == 0) other = items_[other].next;
      last.then = called(other);
      turn = behind_what(items_[other].turn);
    }
  }

  // Who has a part in both, in this order.
  Processes alike(const Turn& first, const Turn& then) const {
    const auto each = [&](const Turn& turn, const auto& see) {
      for (const std::uint32_t mine : items_of(static_cast<std::uint32_t>(&turn - turns_.data()))) {
        for (std::uint32_t i = first_[items_[mine].meeting]; i != kNone; i = items_[i].next) {
          see(turns_[items_[i].turn]);
        }
      }
    };
    const auto thread = [&](const Turn& t) {
      return ranks_[t.rank].operations->all[t.begin].thread;
    };
    // By rank and thread, the last part that it has in `then`.
    std::map<std::pair<std::uint32_t, std::int32_t>, std::uint32_t> behind;
    each(then, [&](const Turn& t) {
      std::uint32_t& last = behind[{t.rank, thread(t)}];
      last = std::max(last, t.begin);
    });
    std::set<std::uint32_t> ranks;
    each(first, [&](const Turn& t) {
      const auto last = behind.find({t.rank, thread(t)});
      if (last != behind.end() && t.begin < last->second) ranks.insert(t.rank);
    });
    Processes who;
    for (const std::uint32_t rank : ranks) who.push_back(ranks_[rank].process);
    return who;
  }

  // Tells in which order the thread called all that is known on the two communicators. The calls of
  // a group have none.
  std::vector<Meeting> order_on_both(const Behind& b) const {
    std::vector<Meeting> all;
    std::size_t group = 0;  // where the group of the last begins in `all`
    const Operation* last = nullptr;
    const Rank& rank = ranks_[b.first.turn->rank];
    for (std::uint32_t i = 0; i < rank.operations->all.size(); ++i) {
      const Operation& o = rank.operations->all[i];
      const Meeting meeting = items_[rank.items + i].meeting;
      if (o.thread != b.first.call->thread || meeting == kFree) continue;
      if (o.comm != b.first.call->comm && o.comm != b.then.call->comm) continue;
      const bool joins = last != nullptr && o.group != 0 && o.group == last->group;
      if (!joins) group = all.size();
      last = &o;
      all.insert(
          std::upper_bound(all.begin() + static_cast<std::ptrdiff_t>(group), all.end(), meeting),
          meeting);
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
    std::array<std::uint32_t, 2> ahead{kNone, kNone};   // turns
    std::array<std::uint32_t, 2> behind{kNone, kNone};  // turns
  };
  struct Rank {
    const read::Process* process = nullptr;
    const Operations* operations = nullptr;
    std::uint32_t items = 0;  // where its items begin
  };

  void number_meetings(const std::vector<bool>& left_out) {
    // The numbers of a channel that all who have a part in it have a line of.
    struct Range {
      std::uint64_t first = 0;
      std::uint64_t behind = 0;
      std::uint64_t base = 0;  // the meeting of the first
    };
    std::map<ChannelOfJob, Range> channels;
    std::vector<std::map<ChannelKey, const Range*>> of_rank(ranks_.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (const auto& [key, channel] : ranks_[rank].operations->channels) {
        const auto place = case_.places.find({ranks_[rank].process, key.comm});
        if (channel.captured || place == case_.places.end()) continue;
        const auto& [communicator, member] = place->second;
        if (left_out[communicator]) continue;
        Range& numbers = channels[channel_of_job(communicator, *member, key)];
        numbers.first = std::max(numbers.first, channel.first);
        numbers.behind = std::max(numbers.behind, channel.calls);
        of_rank[rank][key] = &numbers;
      }
    }
    std::uint64_t meetings = 0;
    for (auto& [channel, numbers] : channels) {
      numbers.base = meetings;
      meetings += std::max(numbers.behind, numbers.first) - numbers.first;
    }
    first_.assign(meetings, kNone);
    away_.assign(meetings, 0);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].items = static_cast<std::uint32_t>(items_.size());
      for (const Operation& o : ranks_[rank].operations->all) {
        const auto numbers = of_rank[rank].find(o.channel());
        Item& item = items_.emplace_back();
        if (numbers == of_rank[rank].end()) continue;
        const auto& [first, behind, base] = *numbers->second;
        if (o.seq >= first && o.seq < behind)
          item.meeting = static_cast<Meeting>(base + o.seq - first);
      }
    }
  }

  void make_turns(std::uint32_t rank) {
    const std::vector<Operation>& all = ranks_[rank].operations->all;
    std::map<std::int32_t, std::int64_t>
        done;  // when the last call was made that is, by communicator
    for (const Operation& o : all) {
      if (o.message() || !ranks_[rank].operations->is_through(o.comm, o.seq)) continue;
      std::int64_t& last = done.try_emplace(o.comm, o.ts_ns).first->second;
      last = std::max(last, o.ts_ns);
    }
    std::map<std::array<std::int64_t, 3>, std::uint32_t> queues[2];  // the last item in each
    const Operation* before = nullptr;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      const Operation& o = all[i];
      const std::uint32_t number = ranks_[rank].items + i;
      Item& item = items_[number];
      const auto through = done.find(o.comm);
      const bool is_done = through != done.end() && o.ts_ns <= through->second;
      if (item.meeting == kFree || is_done) continue;
      const std::uint32_t other = first_[item.meeting];
      const bool twice = other != kNone && other >= ranks_[rank].items &&
                         all[other - ranks_[rank].items].send == o.send;
      if (twice) continue;  // in a damaged file
      const bool joins = before != nullptr && o.group != 0 && before->group == o.group &&
                         before->thread == o.thread;
      if (!joins) turns_.push_back({.rank = rank, .begin = i});
      before = &o;
      Turn& turn = turns_.back();
      item.turn = static_cast<std::uint32_t>(turns_.size() - 1);
      turn.end = i + 1;
      ++turn.left;
      ++away_[item.meeting];
      item.next = std::exchange(first_[item.meeting], number);
      const auto enter = [&](std::size_t queue, const std::array<std::int64_t, 3>& key) {
        const auto [last, fresh] = queues[queue].try_emplace(key, number);
        Item& ahead = items_[std::exchange(last->second, number)];
        if (fresh || ahead.turn == item.turn) return;
        ahead.behind[queue] = item.turn;
        item.ahead[queue] = ahead.turn;
        ++turn.before;
      };
      const std::int64_t device = device_of(ranks_[rank], o);
      if (!streams_) enter(0, {o.thread, device});
      if (streams_ && o.stream != Operation::kNoStream) enter(0, {o.thread, device, o.stream});
      if (streams_) enter(1, {o.thread, o.comm});
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
        for (std::uint32_t i = first_[meeting]; i != kNone; i = items_[i].next)
          leave(items_[i].turn);
      }
    }
  }

  // Returns the turn at which the rank stands that has not come to this one.
  std::uint32_t behind_what(std::uint32_t turn) const {
    while (turns_[turn].before != 0) {
      for (const std::uint32_t item : items_of(turn)) {
        const auto& ahead = items_[item].ahead;
        const auto one = std::ranges::find_if(
            ahead, [&](std::uint32_t t) { return t != kNone && !turns_[t].done(); });
        if (one == ahead.end()) continue;
        turn = *one;
        break;
      }
    }
    return turn;
  }

  std::vector<std::uint32_t> items_of(std::uint32_t turn) const {
    std::vector<std::uint32_t> all;
    const Turn& t = turns_[turn];
    for (std::uint32_t i = t.begin; i < t.end; ++i) {
      const std::uint32_t item = ranks_[t.rank].items + i;
      if (items_[item].turn == turn) all.push_back(item);
    }
    return all;
  }

  QueuedCall called(std::uint32_t item) const {
    const Turn& turn = turns_[items_[item].turn];
    const Rank& rank = ranks_[turn.rank];
    const Operation& call = rank.operations->all[item - rank.items];
    const auto& communicator =
        case_.communicators[case_.places.at({rank.process, call.comm}).first];
    return {rank.process, rank.operations, &communicator, &turn, &call};
  }

  std::int64_t device_of(const Rank& rank, const Operation& o) const {
    return case_.places.at({rank.process, o.comm}).second->comm->device;
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
  const auto quiet = quiet_ns(processes_in(circle), c.lines);
  return quiet && *quiet >= (ended(circle) ? kStoodNs : c.options.stuck_after_ns);
}

bool nobody_goes_on(const Circle& circle) {
  return std::ranges::all_of(circle, [](const Behind& b) { return b.first.call->all_wait(); });
}

// True if the devices' times tell so of all these calls.
bool not_through(const Circle& circle) {
  const auto is_not = [](const QueuedCall& of) {
    return !of.call->message() && of.operations->is_not_through(of.call->comm, of.call->seq);
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
  const std::uint64_t calls = of.turn->end - of.turn->begin;
  return calls == 1 ? call : Fact{Say::in_group, {{"call", call}, {"calls", calls}}};
}

// "collective 7 of communicator …"
Fact brief(const QueuedCall& of) {
  if (of.call->message()) return full(of);
  return {Say::collective_of, {{"seq", of.call->seq}, {"communicator", of.communicator->id}}};
}

Fact order_of(const Processes& who, const Behind& b) {
  const std::int64_t zero = b.first.process->header.base_time_ns;
  Fact order{Say::called_then,
             {{"who", who},
              {"first", full(b.first)},
              {"at", Time{zero + b.first.call->ts_ns}},
              {"then", full(b.then)},
              {"then_at", Time{zero + b.then.call->ts_ns}}}};
  if (who.size() > 1) set(order, {"by", b.first.process});
  return order;
}

void say(Circle circle, const Queues& queues, bool deadlock, const Case& c, Findings& found) {
  const bool two = circle.size() == 2;
  const Processes in = processes_in(circle);
  std::vector<Processes> who;
  for (const Behind& b : circle) {
    const Behind& other = circle[&b == circle.data() ? 1 : 0];
    who.push_back(two ? queues.alike(*b.first.turn, *other.first.turn)
                      : Processes{b.first.process});
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
    const Process& p = *circle[i].first.process;
    const std::int64_t since = p.header.base_time_ns + circle[i].first.call->ts_ns;
    f.time = joined(f.time, {since, std::max(since, end_ns(p))});
  }
  shorten(f.evidence, 8);
  if (!deadlock && sure) f.evidence.push_back({Say::not_through});
  if (const auto quiet = quiet_ns(in, c.lines)) {
    f.evidence.push_back(
        {Say::no_call_since, {{"who", in}, {"quiet", Ns{*quiet}}, {"ended", ended(circle)}}});
  }
}

void group_order(const Case& c, Findings& found) {
  const Processes ranks = select(c.job.processes, [](const Process& p) {
    return p.end != End::closed && p.end != End::lost && !p.snapshot;
  });
  std::vector<bool> differs;  // its numbers are not those of the same calls
  const std::set<std::string> different = diagnose::different(found);
  const std::set<std::string> unfit = unfit_messages(found);
  for (const Communicator& comm : c.communicators) {
    differs.push_back(different.contains(comm.id) || unfit.contains(comm.id));
  }
  const Queues streams(c, ranks, differs, true);
  const Circle deadlock = streams.circle();
  const bool nobody = nobody_goes_on(deadlock);
  if (!deadlock.empty() && (stood(deadlock, c) || (ended(deadlock) && nobody))) {
    return say(deadlock, streams, nobody, c, found);
  }
  const Queues threads(c, ranks, differs, false);
  const Circle swapped = threads.circle();
  if (swapped.size() == 2 && stood(swapped, c) &&
      (not_through(swapped) || !is_habit(swapped, threads))) {
    say(swapped, threads, false, c, found);
  }
}

}  // namespace

extern const Diagnosis kGroupOrder{kCheck, group_order};

}  // namespace tprof::diagnose
