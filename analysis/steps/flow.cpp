#include "steps/flow.h"

#include <algorithm>
#include <map>
#include <utility>

#include "interpose/base/hash.h"
#include "interpose/format/step_mark.h"
#include "steps/cuts.h"

namespace tprof::steps {
namespace {

using Kind = Symbol::Kind;

constexpr std::size_t kMostNeighbours = 6;  // a pipeline stage has no more

// A message that goes to a neighbour or comes from it.
struct Message {
  std::size_t operation = 0;
  std::size_t neighbour = 0;
  bool sent = false;
  std::int64_t weight = 0;  // 1: expects an answer, -1: is one, 0: its size is never answered

  // The direction alone, as the size may differ between micro-batches.
  std::size_t way() const { return 2 * neighbour + (sent ? 0 : 1); }
};

// The messages between two places where nothing was under way.
struct Part {
  std::size_t from = 0;  // messages
  std::size_t to = 0;
  std::uint64_t hash = 0;
  // Its first message comes again after others: another micro-batch. Several tensors of one
  // micro-batch would come in a row.
  bool several = false;
  std::int64_t under_way = 0;  // most messages that one neighbour had not answered yet
};

class Divider {
 public:
  Divider(const Sequence& sequence, const read::Process& rank) : sequence_(sequence), rank_(rank) {}

  // Returns false if these are not the messages of a stage.
  bool read() {
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> numbers;
    std::map<std::size_t, std::uint64_t> next;
    std::map<std::pair<std::size_t, std::uint64_t>, std::vector<std::size_t>> alike;
    for (std::size_t i = 0; i < sequence_.operations.size(); ++i) {
      const Symbol& symbol = sequence_.symbols[sequence_.operations[i].symbol];
      if (symbol.kind != Kind::p2p) continue;
      const bool sent = symbol.name == "ncclSend";
      if (!sent && symbol.name != "ncclRecv") return false;
      const auto [known, fresh] =
          numbers.try_emplace({symbol.comm, symbol.peer}, flow.neighbours.size());
      if (fresh && !add_neighbour(symbol)) return false;
      const Message message{i, known->second, sent};
      if (sequence_.operations[i].seq != next[message.way()]++) return false;  // a line is missing
      alike[{message.neighbour, symbol.count}].push_back(messages_.size());
      messages_.push_back(message);
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
    std::int64_t least = under_way[n];
    for (std::size_t i = n + 1; i-- > 0;) {
      // Messages of an evaluation are never answered.
      if (under_way[i] <= least) places_.push_back(i);
      least = std::min(least, under_way[i]);
    }
    std::ranges::reverse(places_);
    std::vector<std::uint64_t> counts(2 * flow.neighbours.size());
    std::size_t counted = 0;
    for (const std::size_t place : places_) {
      if (place != places_.front()) parts_.push_back(part(counted, place));
      for (; counted < place; ++counted) ++counts[messages_[counted].way()];
      for (std::size_t k = 0; k < counts.size(); k += 2) {
        flow.sent.push_back(counts[k]);
        flow.received.push_back(counts[k + 1]);
      }
    }
  }

  // Takes the most frequent kind of part: a step, or else a micro-batch.
  void choose(bool closed) {
    std::map<std::uint64_t, std::vector<std::size_t>> alike;
    for (std::size_t k = 0; k < parts_.size(); ++k) alike[parts_[k].hash].push_back(k);
    std::size_t most = 0;
    const std::vector<std::size_t>* usual_ones = nullptr;
    for (const auto& [hash, all] : alike) {
      const std::size_t messages = parts_[all.front()].to - parts_[all.front()].from;
      if (messages < 2 || all.size() * messages <= most) continue;
      most = all.size() * messages;
      usual_ones = &all;
    }
    if (usual_ones == nullptr) return;
    const Part& usual = parts_[usual_ones->front()];
    flow.several = usual.several;
    flow.told = usual.under_way > 1;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      if (!closed && k > usual_ones->back()) break;  // it was killed in this step
      const bool odd = parts_[k].several || parts_[k].under_way > 1;
      if (parts_[k].hash == usual.hash || (flow.several && odd)) flow.steps.push_back(k);
    }
    if (2 * usual_ones->size() < flow.steps.size()) return flow.steps.clear();
    flow.steps.push_back(flow.steps.back() + 1);
  }

  // Finds when each part begins by the calls other than messages.
  void place(bool closed, std::int64_t end_ns) {
    const Text text = others();
    std::vector<Gap> gaps;
    for (const std::size_t place : places_) {
      const std::size_t to = text.at(operation(place));
      gaps.push_back({place == 0 ? 0 : text.at(operation(place - 1)), to, to, to});
    }
    if (!flow.steps.empty()) {
      const auto from = gaps.begin() + static_cast<std::ptrdiff_t>(flow.steps.front());
      const auto to = gaps.begin() + static_cast<std::ptrdiff_t>(flow.steps.back()) + 1;
      std::vector<Gap> of_steps(from, to);
      cut(text, of_steps, closed);
      std::ranges::copy(of_steps, from);
      flow.told = flow.told || std::all_of(gaps.begin() + 1, gaps.end() - 1, [&](const Gap& gap) {
                    const auto kind = text.kinds.begin();
                    const auto end = kind + static_cast<std::ptrdiff_t>(gap.to);
                    return std::find(kind + static_cast<std::ptrdiff_t>(gap.from), end,
                                     LetterOf::small) != end;
                  });
    }
    for (std::size_t k = 0; k < gaps.size(); ++k) {
      const Gap& gap = gaps[k];
      const std::size_t next = gap.cut < gap.to ? text.operations[gap.cut] : operation(places_[k]);
      flow.end_known = next < sequence_.operations.size();
      flow.at_ns.push_back(flow.end_known ? sequence_.operations[next].ts_ns : end_ns);
    }
  }

  Flow flow;

 private:
  // Returns the index of a message in the sequence; after the last message, the sequence's end.
  std::size_t operation(std::size_t message) const {
    return message < messages_.size() ? messages_[message].operation : sequence_.operations.size();
  }

  bool add_neighbour(const Symbol& symbol) {
    const auto comm = rank_.comms.find(symbol.comm);
    if (comm == rank_.comms.end() || !comm->second.known()) return false;
    flow.neighbours.push_back({comm->second.id, comm->second.rank, symbol.peer});
    return flow.neighbours.size() <= kMostNeighbours;
  }

  Part part(std::size_t from, std::size_t to) const {
    Part part{.from = from, .to = to};
    std::map<std::size_t, std::int64_t> each;
    bool other = false;
    for (std::size_t i = from; i < to; ++i) {
      const Message& m = messages_[i];
      const bool first = m.way() == messages_[from].way();
      part.several = part.several || (first && other);
      other = other || !first;
      part.hash = mix64(part.hash + m.way() + 1);
      part.under_way = std::max(part.under_way, each[m.neighbour] += m.weight);
    }
    return part;
  }

  // Returns the calls other than messages. Batches may differ in size.
  Text others() const {
    Text text;
    for (std::size_t i = 0; i < sequence_.operations.size(); ++i) {
      const std::uint32_t letter = sequence_.operations[i].symbol;
      const Symbol& s = sequence_.symbols[letter];
      const bool small = s.kind == Kind::reduction && s.bytes <= kScalarBytes;
      if (s.kind == Kind::copy_in) {
        text.add(i, UINT32_MAX, LetterOf::batch);
      } else if (s.kind != Kind::p2p) {
        text.add(i, letter, small ? LetterOf::small : LetterOf::call);
      }
    }
    return text;
  }

  const Sequence& sequence_;
  const read::Process& rank_;
  std::vector<Message> messages_;
  std::vector<std::size_t> places_;  // indices of messages before which nothing is under way
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
