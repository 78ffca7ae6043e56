#include "steps/flow.h"

#include <algorithm>
#include <map>
#include <utility>

#include "interpose/base/hash.h"
#include "steps/gaps.h"
#include "steps/order.h"

namespace tprof::steps {
namespace {

using Kind = Symbol::Kind;

constexpr std::size_t kMostNeighbours = 6;  // more are no stages of a pipeline

// A message that goes to a neighbour or comes from it.
struct Message {
  std::size_t operation = 0;
  std::size_t neighbour = 0;
  bool sent = false;
  std::int64_t weight = 0;  // 1: it is to be answered, -1: it answers, 0: none of its size answers
};

// The messages between two places where nothing was under way.
struct Part {
  std::size_t from = 0;  // messages
  std::size_t to = 0;
  std::uint64_t hash = 0;
};

class Divider {
 public:
  Divider(const Sequence& sequence, const read::Process& rank) : sequence_(sequence), rank_(rank) {}

  // Returns false if these are no messages of a stage.
  bool read() {
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> numbers;
    std::map<std::pair<std::size_t, bool>, std::uint64_t> next;
    std::map<std::pair<std::size_t, std::uint64_t>, std::vector<std::size_t>> alike;
    for (std::size_t i = 0; i < sequence_.operations.size(); ++i) {
      const Symbol& symbol = symbol_of(i);
      if (symbol.kind != Kind::p2p) continue;
      const bool sent = symbol.name == "ncclSend";
      if (!sent && symbol.name != "ncclRecv") return false;
      const auto [known, fresh] =
          numbers.try_emplace({symbol.comm, symbol.peer}, flow.neighbours.size());
      if (fresh && !add_neighbour(symbol)) return false;
      const std::size_t neighbour = known->second;
      std::uint64_t& number = next[{neighbour, sent}];
      if (sequence_.operations[i].seq != number++) return false;  // a line is missing
      alike[{neighbour, symbol.count}].push_back(messages_.size());
      messages_.push_back({i, neighbour, sent});
    }
    for (const auto& [key, all] : alike) {
      const bool leads = messages_[all.front()].sent;
      const bool answered =
          std::ranges::any_of(all, [&](std::size_t m) { return messages_[m].sent != leads; });
      if (!answered) continue;
      for (const std::size_t m : all) messages_[m].weight = messages_[m].sent == leads ? 1 : -1;
    }
    std::vector<std::int64_t> sent_first(flow.neighbours.size());
    for (const Message& m : messages_) sent_first[m.neighbour] += m.sent ? m.weight : -m.weight;
    for (std::size_t k = 0; k < sent_first.size(); ++k) {
      flow.neighbours[k].leads = sent_first[k] > 0;
    }
    return std::ranges::any_of(messages_, [](const Message& m) { return m.weight != 0; });
  }

  void divide() {
    const std::size_t n = messages_.size();
    std::vector<std::int64_t> under_way = {0};
    for (const Message& m : messages_) under_way.push_back(under_way.back() + m.weight);
    std::vector<std::size_t> empty;  // what is forgotten for ever (an evaluation) never comes back
    std::int64_t least = under_way[n];
    for (std::size_t i = n + 1; i-- > 0;) {
      if (under_way[i] <= least) empty.push_back(i);
      least = std::min(least, under_way[i]);
    }
    std::ranges::reverse(empty);
    std::vector<std::uint64_t> counts(2 * flow.neighbours.size());
    std::size_t counted = 0;
    for (const std::size_t place : empty) {
      for (; counted < place; ++counted) {
        ++counts[2 * messages_[counted].neighbour + (messages_[counted].sent ? 0 : 1)];
      }
      for (std::size_t k = 0; k < flow.neighbours.size(); ++k) {
        flow.sent.push_back(counts[2 * k]);
        flow.received.push_back(counts[2 * k + 1]);
      }
    }
    for (std::size_t k = 0; k + 1 < empty.size(); ++k) {
      parts_.push_back({empty[k], empty[k + 1], hash(empty[k], empty[k + 1])});
    }
    places_ = std::move(empty);
  }

  // Takes the parts that are as most, which are steps unless they are those of a micro-batch.
  void choose(bool closed) {
    std::map<std::uint64_t, std::vector<std::size_t>> alike;
    for (std::size_t k = 0; k < parts_.size(); ++k) alike[parts_[k].hash].push_back(k);
    const std::vector<std::size_t>* most = nullptr;
    const auto covered = [&](const std::vector<std::size_t>& all) {
      const Part& part = parts_[all.front()];
      return part.to - part.from < 2 ? 0 : all.size() * (part.to - part.from);
    };
    for (const auto& [hash, all] : alike) {
      if (covered(all) != 0 && (most == nullptr || covered(all) > covered(*most))) most = &all;
    }
    if (most == nullptr) return;
    const Part& usual = parts_[most->front()];
    flow.several = several(usual);
    std::size_t last = 0;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      const bool same = parts_[k].hash == usual.hash;
      if (!closed && k > most->back()) break;  // it was killed within this one
      const bool odd = several(parts_[k]) || most_under_way(parts_[k]) > 1;
      if (!same && !(flow.several && odd)) continue;
      flow.steps.push_back(k);
      last = k;
    }
    if (2 * most->size() < flow.steps.size()) return flow.steps.clear();
    flow.steps.push_back(last + 1);
    flow.told = most_under_way(usual) > 1;
  }

  // Says when each part begins, with the calls that are no messages.
  void place(bool closed, std::int64_t end_ns) {
    std::vector<Gap> gaps;
    for (const std::size_t place : places_) {
      gaps.push_back(
          {place == 0 ? 0 : messages_[place - 1].operation + 1,
           place == messages_.size() ? sequence_.operations.size() : messages_[place].operation});
    }
    const bool between = cut_gaps(sequence_, gaps, flow.steps, closed);
    flow.told = flow.told || between;
    for (const Gap& gap : gaps) {
      const bool behind = gap.cut == sequence_.operations.size();
      flow.at_ns.push_back(behind ? end_ns : sequence_.operations[gap.cut].ts_ns);
    }
    flow.end_known = gaps.back().cut < sequence_.operations.size();
  }

  Flow flow;

 private:
  const Symbol& symbol_of(std::size_t i) const {
    return sequence_.symbols[sequence_.operations[i].symbol];
  }

  bool add_neighbour(const Symbol& symbol) {
    const auto comm = rank_.comms.find(symbol.comm);
    if (comm == rank_.comms.end() || !comm->second.known()) return false;
    flow.neighbours.push_back({comm->second.id, comm->second.rank, symbol.peer});
    return flow.neighbours.size() <= kMostNeighbours;
  }

  // Tells where a message comes from or goes to. Its size may be another in each micro-batch.
  std::size_t way(std::size_t message) const {
    return 2 * messages_[message].neighbour + (messages_[message].sent ? 1 : 0);
  }

  std::uint64_t hash(std::size_t from, std::size_t to) const {
    std::uint64_t sum = 0;
    for (std::size_t i = from; i < to; ++i) {
      sum = mix64(sum + way(i) + 1);
    }
    return sum;
  }

  // True if the message that begins it comes again after others: another micro-batch. Several
  // tensors of one come one after the other.
  bool several(const Part& part) const {
    bool other = false;
    for (std::size_t i = part.from + 1; i < part.to; ++i) {
      const bool first = way(i) == way(part.from);
      if (first && other) return true;
      other = other || !first;
    }
    return false;
  }

  // Returns how many messages were unanswered at one neighbour at a time.
  std::int64_t most_under_way(const Part& part) const {
    std::map<std::size_t, std::int64_t> each;
    std::int64_t most = 0;
    for (std::size_t i = part.from; i < part.to; ++i) {
      most = std::max(most, each[messages_[i].neighbour] += messages_[i].weight);
    }
    return most;
  }

  const Sequence& sequence_;
  const read::Process& rank_;
  std::vector<Message> messages_;
  std::vector<std::size_t> places_;  // messages before which nothing is under way
  std::vector<Part> parts_;          // between these
};

}  // namespace

std::optional<Flow> find_flow(const Sequence& sequence, const read::Process& rank, bool closed,
                              std::int64_t end_ns) {
  Divider divider(sequence, rank);
  if (!divider.read()) return std::nullopt;
  divider.divide();
  divider.choose(closed);
  divider.place(closed, end_ns);
  return std::move(divider.flow);
}

}  // namespace tprof::steps
