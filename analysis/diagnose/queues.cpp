#include "diagnose/queues.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tprof::diagnose {
namespace {

// The numbers of a channel that all who have a part in it have a line of.
struct Numbers {
  std::uint64_t first = 0;
  std::uint64_t behind = 0;
  std::uint64_t base = 0;  // the meeting of the first
};

}  // namespace

Queues::Queues(const Places& places, std::vector<RankQueue> ranks,
               const std::vector<bool>& left_out, bool streams)
    : streams_(streams), places_(places), ranks_(std::move(ranks)) {
  number_meetings(left_out);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) make_turns(rank);
  run();
}

void Queues::number_meetings(const std::vector<bool>& left_out) {
  std::map<ChannelOfJob, Numbers> channels;
  using OfRank = std::map<ChannelKey, Numbers*>;
  std::vector<OfRank> of_rank(ranks_.size());
  std::uint64_t operations = 0;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto& [process, known] = ranks_[rank];
    operations += known->all.size();
    for (const auto& [key, channel] : known->channels) {
      const auto place = places_.find({process, key.comm});
      if (channel.captured || place == places_.end() || left_out[place->second.first]) continue;
      Numbers& numbers = channels[channel_of_job(place->second.first, *place->second.second, key)];
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
  items_.reserve(operations);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    items_of_.push_back(static_cast<std::uint32_t>(items_.size()));
    for (const Operation& o : ranks_[rank].operations->all) {
      const auto numbers = of_rank[rank].find(o.channel());
      const bool met = numbers != of_rank[rank].end() && o.seq >= numbers->second->first &&
                       o.seq < numbers->second->behind;
      items_.push_back({.meeting = met ? static_cast<Meeting>(numbers->second->base + o.seq -
                                                              numbers->second->first)
                                       : kFree});
    }
  }
}

namespace {

// By communicator, when the last call was made that the device is known to be through with.
std::map<std::int32_t, std::int64_t> done_of(const Operations& known) {
  std::map<std::int32_t, std::int64_t> done;
  for (const Operation& o : known.all) {
    if (o.message() || !known.is_through(o.comm, o.seq)) continue;
    std::int64_t& last = done.try_emplace(o.comm, o.ts_ns).first->second;
    last = std::max(last, o.ts_ns);
  }
  return done;
}

}  // namespace

void Queues::make_turns(std::size_t rank) {
  const auto& [process, known] = ranks_[rank];
  const std::map<std::int32_t, std::int64_t> done = done_of(*known);
  std::map<std::array<std::int64_t, 4>, std::uint32_t> queues;  // the last turn in each
  const Operation* before = nullptr;
  for (std::uint32_t i = 0; i < known->all.size(); ++i) {
    const Operation& o = known->all[i];
    Item& item = items_[items_of_[rank] + i];
    const auto through = done.find(o.comm);
    const bool is_done = through != done.end() && o.ts_ns <= through->second;
    if (item.meeting == kFree || is_done) continue;
    const std::uint32_t other = first_[item.meeting];
    const bool twice = other != kNone && other >= items_of_[rank] &&
                       known->all[other - items_of_[rank]].send == o.send;
    if (twice) continue;  // in a damaged file
    const bool joins =
        before != nullptr && o.group != 0 && before->group == o.group && before->thread == o.thread;
    if (!joins) turns_.push_back({.rank = rank, .begin = i});
    before = &o;
    const auto turn = static_cast<std::uint32_t>(turns_.size() - 1);
    item.turn = turn;
    turns_[turn].end = i + 1;
    ++turns_[turn].left;
    ++away_[item.meeting];
    item.next = std::exchange(first_[item.meeting], items_of_[rank] + i);
    const auto enter = [&](const std::array<std::int64_t, 4>& queue) {
      const auto [last, fresh] = queues.try_emplace(queue, turn);
      if (!fresh && last->second != turn) put_behind(std::exchange(last->second, turn), turn);
    };
    const std::int64_t device = device_of(rank, o);
    if (!streams_) enter({0, device, o.thread, 0});
    if (streams_ && o.stream != Operation::kNoStream) enter({1, device, o.thread, o.stream});
    if (streams_) enter({2, o.comm, o.thread, 0});
  }
}

void Queues::put_behind(std::uint32_t before, std::uint32_t turn) {
  const auto edge = static_cast<std::uint32_t>(edges_.size());
  edges_.push_back(
      {before, turn, turns_[turn].edges_in, std::exchange(turns_[before].edges_out, edge)});
  turns_[turn].edges_in = edge;
  ++turns_[turn].before;
}

// Lets everything run that can.
void Queues::run() {
  std::vector<Meeting> ready;
  std::vector<std::uint32_t> come;
  for (std::uint32_t s = 0; s < turns_.size(); ++s) {
    if (turns_[s].before == 0) come.push_back(s);
  }
  while (!come.empty() || !ready.empty()) {
    for (; !come.empty();) {
      const Turn& turn = turns_[come.back()];
      const std::uint32_t number = come.back();
      come.pop_back();
      for (std::uint32_t i = turn.begin; i < turn.end; ++i) {
        const Item& item = items_[items_of_[turn.rank] + i];
        if (item.turn == number && --away_[item.meeting] == 0) ready.push_back(item.meeting);
      }
    }
    if (ready.empty()) return;
    const Meeting meeting = ready.back();
    ready.pop_back();
    for (std::uint32_t item = first_[meeting]; item != kNone; item = items_[item].next) {
      if (--turns_[items_[item].turn].left != 0) continue;
      for (std::uint32_t e = turns_[items_[item].turn].edges_out; e != kNone;
           e = edges_[e].next_out) {
        if (--turns_[edges_[e].to].before == 0) come.push_back(edges_[e].to);
      }
    }
  }
}

// Returns the turn at which the rank stands that has not come to this one.
std::uint32_t Queues::behind_what(std::uint32_t turn) const {
  while (turns_[turn].before != 0) {
    std::uint32_t edge = turns_[turn].edges_in;
    const auto done = [&](const Turn& s) { return s.before == 0 && s.left == 0; };
    while (done(turns_[edges_[edge].from])) edge = edges_[edge].next_in;
    turn = edges_[edge].from;
  }
  return turn;
}

std::vector<Behind> Queues::circle() const {
  std::vector<Behind> path;
  const auto stands = [](const Turn& s) { return s.before == 0 && s.left != 0; };
  const auto start = std::ranges::find_if(turns_, stands);
  if (start == turns_.end()) return path;
  for (Behind last{.at = &*start};;) {
    const auto again = std::ranges::find(path, last.at, &Behind::at);
    if (again != path.end()) {
      again->then = last.then;
      again->then_at = last.then_at;
      path.erase(path.begin(), again);
      return path;
    }
    const Turn& at = *last.at;
    const std::uint32_t begin = items_of_[at.rank];
    const auto number = static_cast<std::uint32_t>(&at - turns_.data());
    std::uint32_t i = Turn::kNone;
    for (std::uint32_t n = at.begin; n < at.end; ++n) {
      const bool waits = items_[begin + n].turn == number && away_[items_[begin + n].meeting] != 0;
      // A send may go on without its receive, so it is not what a group stands for if others are.
      const bool sure = i == Turn::kNone || ranks_[at.rank].operations->all[i].send;
      if (waits && sure) i = n;
    }
    last.first = &ranks_[at.rank].operations->all[i];
    path.push_back(last);
    // It did not run, so it stands behind another one somewhere.
    std::uint32_t other = first_[items_[begin + i].meeting];
    while (turns_[items_[other].turn].before == 0) other = items_[other].next;
    const Turn& then = turns_[items_[other].turn];
    last = {.at = &turns_[behind_what(items_[other].turn)],
            .then_at = &then,
            .then = &ranks_[then.rank].operations->all[other - items_of_[then.rank]]};
  }
}

std::vector<const Turn*> Queues::together_with(const Turn& turn) const {
  std::vector<const Turn*> all;
  const auto number = static_cast<std::uint32_t>(&turn - turns_.data());
  for (std::uint32_t i = turn.begin; i < turn.end; ++i) {
    const Item& mine = items_[items_of_[turn.rank] + i];
    if (mine.turn != number) continue;
    for (std::uint32_t item = first_[mine.meeting]; item != kNone; item = items_[item].next) {
      all.push_back(&turns_[items_[item].turn]);
    }
  }
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

bool Queues::in_order(const Turn& first, const Turn& then) const {
  if (first.rank != then.rank || first.begin >= then.begin) return false;
  const std::vector<Operation>& all = ranks_[first.rank].operations->all;
  const auto share = [&](const Operation& a, const Operation& b) {
    const bool stream = a.stream == b.stream && a.stream != Operation::kNoStream &&
                        device_of(first.rank, a) == device_of(first.rank, b);
    return a.thread == b.thread && (!streams_ || a.comm == b.comm || stream);
  };
  return std::any_of(&all[first.begin], &all[first.end - 1] + 1, [&](const Operation& a) {
    return std::any_of(&all[then.begin], &all[then.end - 1] + 1,
                       [&](const Operation& b) { return share(a, b); });
  });
}

std::vector<Queues::Meeting> Queues::order_on_both(const Behind& b) const {
  std::vector<Meeting> all;
  std::size_t group = 0;  // where the group of the last begins in `all`
  const Operation* last = nullptr;
  const std::vector<Operation>& operations = ranks_[b.at->rank].operations->all;
  for (std::uint32_t i = 0; i < operations.size(); ++i) {
    const Operation& o = operations[i];
    const Meeting meeting = items_[items_of_[b.at->rank] + i].meeting;
    if (o.thread != b.first->thread || meeting == kFree) continue;
    if (o.comm != b.first->comm && o.comm != b.then->comm) continue;
    const bool joins = last != nullptr && o.group != 0 && o.group == last->group;
    if (!joins) group = all.size();
    last = &o;
    all.insert(
        std::upper_bound(all.begin() + static_cast<std::ptrdiff_t>(group), all.end(), meeting),
        meeting);
  }
  return all;
}

std::size_t Queues::communicator_of(const Turn& at, const Operation& o) const {
  return places_.at({ranks_[at.rank].process, o.comm}).first;
}

std::int64_t Queues::device_of(std::size_t rank, const Operation& o) const {
  return places_.at({ranks_[rank].process, o.comm}).second->comm->device;
}

}  // namespace tprof::diagnose
