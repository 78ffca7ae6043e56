#include "steps/period.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "interpose/base/hash.h"
#include "interpose/format/step_mark.h"

namespace tprof::steps {
namespace {

using Kind = Symbol::Kind;
using Places = std::vector<std::size_t>;

constexpr std::size_t kFewest = 3;  // repeats of a pattern

// The operations of a rank, classified.
class Operations {
 public:
  explicit Operations(const Sequence& sequence) : sequence_(sequence) {
    std::uint64_t largest = 0;
    std::set<std::tuple<std::string, std::int64_t, std::int64_t>> peers;
    for (const Symbol& s : sequence.symbols) {
      if (s.kind == Kind::reduction) largest = std::max(largest, s.bytes);
      const bool again = s.kind == Kind::p2p && !peers.emplace(s.name, s.comm, s.peer).second;
      sends_differ_ = sends_differ_ || again;
    }
    for (const Symbol& s : sequence.symbols) {
      gradient_.push_back(s.kind == Kind::reduction && s.bytes > kScalarBytes &&
                          s.bytes >= largest / kSmallReduction);
    }
    find_shards();
  }

  std::size_t size() const { return sequence_.operations.size(); }
  std::uint32_t number(std::size_t i) const { return sequence_.operations[i].symbol; }
  const Symbol& symbol(std::size_t i) const { return sequence_.symbols[number(i)]; }
  bool gradient(std::size_t i) const { return gradient_[number(i)]; }
  // True if it may belong to a forward pass.
  bool forward(std::size_t i) const {
    const Symbol& s = symbol(i);
    return s.kind == Kind::p2p || (s.kind == Kind::collective && s.bytes > kScalarBytes);
  }
  // Returns the bytes of a copy to the device that may be a batch; 0: it is no copy, or copies
  // parameters.
  std::uint64_t data(std::size_t i) const {
    const Symbol& s = symbol(i);
    const bool may_be = s.kind == Kind::copy_in && s.bytes >= kScalarBytes;
    return may_be && !shards_.contains(s.bytes) ? s.bytes : 0;
  }
  // True if messages to one peer differ in size, as with experts.
  bool sends_differ() const { return sends_differ_; }

 private:
  // Copies of the size of this rank's part of an all-gather are offloaded parameters if they occur
  // about as often as that all-gather. A batch of the same size by accident occurs more often or
  // less often.
  void find_shards() {
    std::map<std::uint64_t, std::size_t> copied;
    std::map<std::uint64_t, std::size_t> given;
    for (std::size_t i = 0; i < size(); ++i) {
      if (symbol(i).kind == Kind::copy_in) ++copied[symbol(i).bytes];
      if (symbol(i).given != 0) ++given[symbol(i).given];
    }
    for (const auto& [bytes, times] : given) {
      const std::size_t copies = copied[bytes];
      if (2 * times >= copies && 4 * copies >= 3 * times) shards_.insert(bytes);
    }
  }

  const Sequence& sequence_;
  std::vector<bool> gradient_;
  std::set<std::uint64_t> shards_;  // sizes
  bool sends_differ_ = false;
};

// Summarises a rank's calls between a gradient and the previous one on the same communicator.
struct Before {
  std::uint64_t data = 0;  // bytes of the largest copy
  std::size_t calls = 0;
  bool forward = false;
  std::uint64_t hash = 0;  // without small reductions and copies
};

// The steps that the gradients of one communicator show.
struct Rhythm {
  struct Step {
    std::size_t first = 0;  // operation index of a gradient
    std::size_t last = 0;
  };
  std::int64_t comm = -1;
  std::vector<Step> steps{};
  std::uint64_t batch_bytes = 0;  // the smallest batch; 0: batches were no help
  bool unclear_beginning = false;
  bool unclear_end = false;
};

// Returns for each suffix of a text how much of it equals the text's beginning (Gusfield's Z).
Places same_from_each(std::span<const std::uint32_t> text) {
  const std::size_t n = text.size();
  Places z(n, n);
  for (std::size_t i = 1, from = 0, to = 0; i < n; ++i) {
    z[i] = i < to ? std::min(to - i, z[i - from]) : 0;
    while (i + z[i] < n && text[z[i]] == text[i + z[i]]) ++z[i];
    if (i + z[i] > to) from = i, to = i + z[i];
  }
  return z;
}

class Finder {
 public:
  Finder(const Operations& operations, std::int64_t comm, Places gradients)
      : operations_(operations), at_(std::move(gradients)) {
    found_.comm = comm;
    for (const std::size_t at : at_) text_.push_back(operations.number(at));
  }

  // Finds the shortest pattern whose repeats make up most of the text.
  bool find_run() {
    const std::size_t n = text_.size();
    const std::size_t middle = n / 2;
    const Places behind = same_from_each(std::span(text_).subspan(middle));
    std::vector<std::uint32_t> back(text_.rend() - static_cast<std::ptrdiff_t>(middle),
                                    text_.rend());
    back.push_back(UINT32_MAX);
    back.insert(back.end(), text_.rbegin(), text_.rend());
    const Places before = same_from_each(back);
    for (length_ = 1; length_ * kFewest <= n; ++length_) {
      from_ = middle - before[n + 1 - length_];
      to_ = std::min(n, middle + length_ + (length_ < behind.size() ? behind[length_] : 0));
      if (to_ - from_ >= kFewest * length_ && 2 * (to_ - from_) > n) return true;
    }
    return false;
  }

  // Returns how many steps there are; 0 if all gradients are equal.
  std::size_t repeats() const { return length_ == 1 ? 0 : (to_ - from_) / length_; }

  // `steps`: how many there are according to all communicators; 0: unknown.
  std::optional<Rhythm> find(std::size_t steps) {
    look_between();
    if (!by_batches(steps) && !by_calls()) return std::nullopt;
    find_steps();
    return std::move(found_);
  }

 private:
  void look_between() {
    std::size_t i = 0;
    for (const std::size_t at : at_) {
      Before b;
      for (; i < at; ++i) {
        const Symbol& s = operations_.symbol(i);
        b.data = std::max(b.data, operations_.data(i));
        b.forward = b.forward || operations_.forward(i);
        b.calls += s.kind == Kind::copy_in ? 0U : 1U;
        const bool told = operations_.forward(i) || operations_.gradient(i);
        if (told) b.hash = mix64(b.hash ^ (operations_.number(i) + 1));
      }
      before_.push_back(b);
      ++i;
    }
  }

  // Finds the shortest period such that has(before) is true before nearly each of its repeats. It
  // begins where most is called: with the forward pass.
  template <typename Has>
  bool find_period(const Has& has) {
    constexpr std::size_t kMostLayers = 512;
    const std::size_t n = std::min(to_ - from_, std::size_t{1} << 16);
    for (std::size_t k = 1; k <= kMostLayers && k * length_ * kFewest <= n; ++k) {
      struct Place {
        std::size_t all = 0, with = 0, calls = 0;
      };
      std::vector<Place> places(k * length_);
      for (std::size_t i = from_ == 0 ? 1 : 0; i < n; ++i) {
        Place& place = places[i % places.size()];
        ++place.all;
        place.with += has(before_[from_ + i]) ? 1U : 0U;
        place.calls += before_[from_ + i].calls;
      }
      std::optional<std::size_t> best;
      for (std::size_t i = 0; i < places.size(); ++i) {
        if (4 * places[i].with < 3 * places[i].all) continue;
        // Compares averages, since what precedes the very first gradient is not counted.
        if (!best || places[i].calls * places[*best].all > places[*best].calls * places[i].all) {
          best = i;
        }
      }
      if (!best) continue;
      period_ = places.size();
      first_ = from_ + *best;
      return true;
    }
    return false;
  }

  // Batches are among the largest copies that recur. Larger ones may come in a few steps only:
  // batches of an evaluation, or parameters that FSDP1 copies back on the rank that saves them. If
  // all gradients are equal, only batches tell how many steps there are.
  bool by_batches(std::size_t steps) {
    std::vector<std::uint64_t> largest;
    for (std::size_t i = 1; i < before_.size(); ++i) {
      if (before_[i].data != 0) largest.push_back(before_[i].data);
    }
    const std::size_t fewest =
        steps == 0 ? kFewestSteps - 1 : std::max<std::size_t>(3 * steps / 4, 1);
    if (largest.empty()) return false;
    std::ranges::sort(largest, std::greater());
    const std::uint64_t usual = largest[fewest <= largest.size() ? fewest - 1 : 0];
    const std::uint64_t least = std::max(kScalarBytes, usual / kSmallCopy);
    if (!find_period([&](const Before& b) { return b.data >= least; })) return false;
    found_.batch_bytes = least;
    return true;
  }

  // A period of one gradient can be a layer, unless all are equal.
  bool by_calls() {
    const auto between = std::span(before_).subspan(from_ + 1, to_ - from_ - 1);
    const bool any = std::ranges::any_of(between, &Before::forward);
    if (operations_.sends_differ()) return false;
    if (!find_period([&](const Before& b) { return b.forward || !any; })) return false;
    return period_ > 1 || (any && std::ranges::all_of(between, [&](const Before& b) {
                             return b.hash == between[0].hash;
                           }));
  }

  std::uint64_t volume(std::size_t i) const { return operations_.symbol(at_[i]).count; }

  // Takes each repeat. The first steps may rebuild their buckets (DDP) or fetch in another order
  // (ZeRO-3): they are recognised by reducing as many elements as the others.
  void find_steps() {
    std::uint64_t one = 0;
    for (std::size_t i = first_; i < first_ + period_; ++i) one += volume(i);
    std::uint64_t sum = 0;
    std::size_t from = 0;
    for (std::size_t i = 0; i < first_ && sum < one; ++i) {
      sum += volume(i);
      if (sum != one) continue;
      found_.steps.push_back({at_[from], at_[i]});
      from = i + 1;
      sum = 0;
    }
    found_.unclear_beginning = sum != 0;
    if (sum != 0) found_.steps.clear();
    const auto begin = text_.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto length = static_cast<std::ptrdiff_t>(period_);
    std::size_t i = first_;
    while (i + period_ <= text_.size()) {
      if (!std::equal(begin, begin + length, text_.begin() + static_cast<std::ptrdiff_t>(i))) {
        ++i;
        continue;
      }
      found_.steps.push_back({at_[i], at_[i + period_ - 1]});
      i += period_;
    }
    found_.unclear_end = i < text_.size();
  }

  const Operations& operations_;
  const Places at_;
  std::vector<std::uint32_t> text_;
  std::vector<Before> before_;
  std::size_t from_ = 0;  // the part that repeats
  std::size_t to_ = 0;
  std::size_t length_ = 0;
  std::size_t period_ = 0;
  std::size_t first_ = 0;  // the first gradient of a step
  Rhythm found_;
};

std::vector<Rhythm> rhythms(const Operations& operations) {
  std::map<std::int64_t, Places> by_comm;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (operations.gradient(i)) by_comm[operations.symbol(i).comm].push_back(i);
  }
  std::vector<Finder> finders;
  std::size_t steps = 0;
  for (auto& [comm, gradients] : by_comm) {
    Finder& finder = finders.emplace_back(operations, comm, std::move(gradients));
    if (!finder.find_run()) {
      finders.pop_back();
    } else if (const std::size_t n = finder.repeats(); n != 0) {
      steps = steps == 0 ? n : std::min(steps, n);
    }
  }
  std::vector<Rhythm> all;
  for (Finder& finder : finders) {
    if (auto found = finder.find(steps)) all.push_back(std::move(*found));
  }
  return all;
}

// Returns the text in which steps are cut, without calls in no fixed order: reductions on
// communicators that show no steps, and copies of a prefetching thread. Batches may differ in size:
// a copy gets its own letter only if about every other step has it. `comms`: those that show these
// steps.
Text text_of(const Operations& operations, const Rhythm& by, const std::vector<Rhythm>& all,
             const std::set<std::int64_t>& comms) {
  constexpr std::uint32_t kAnyCopy = UINT32_MAX;
  std::map<std::uint32_t, std::size_t> times;
  for (std::size_t i = 0; i < operations.size(); ++i) ++times[operations.number(i)];
  Text text;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Symbol& s = operations.symbol(i);
    if (s.kind == Kind::p2p && operations.sends_differ()) continue;
    if (s.kind == Kind::copy_in) {
      if (by.batch_bytes == 0) continue;
      const bool usual = 2 * times[operations.number(i)] >= by.steps.size();
      const bool batch = operations.data(i) >= by.batch_bytes;
      text.add(i, usual ? operations.number(i) : kAnyCopy,
               batch ? LetterOf::batch : LetterOf::copy);
    } else if (operations.gradient(i)) {
      if (std::ranges::count(all, s.comm, &Rhythm::comm) == 0) continue;
      const bool of_step = comms.contains(s.comm);
      text.add(i, operations.number(i), of_step ? LetterOf::gradient : LetterOf::call);
    } else {
      const bool small = s.kind == Kind::reduction && !operations.gradient(i);
      text.add(i, operations.number(i), small ? LetterOf::small : LetterOf::call);
    }
  }
  return text;
}

// True if the beginning of a step repeats before its first gradient: micro-batches.
bool begins_again(std::span<const std::uint32_t> head) {
  for (std::size_t n = 3; 2 * n <= head.size(); ++n) {
    if (std::ranges::equal(head.first(n), head.subspan(n, n))) return true;
  }
  return false;
}

// Cuts between the steps that a communicator shows. On other communicators with as many steps, a
// step's last gradient may come later.
Period place(const Operations& operations, const Rhythm& by, const std::vector<Rhythm>& all,
             bool closed) {
  Period p;
  std::set<std::int64_t> comms;
  std::vector<Gap> gaps(by.steps.size() + 1);
  std::vector<std::size_t> ends(by.steps.size());
  for (const Rhythm& r : all) {
    if (r.steps.size() != by.steps.size()) continue;
    comms.insert(r.comm);
    Places& anchors = p.anchors.emplace_back();
    for (const Rhythm::Step& step : r.steps) anchors.push_back(step.last);
    for (std::size_t k = 0; k < ends.size(); ++k) {
      const bool before_next = k + 1 == ends.size() || r.steps[k].last < by.steps[k + 1].first;
      if (before_next) ends[k] = std::max(ends[k], r.steps[k].last);
    }
  }
  const Text text = text_of(operations, by, all, comms);
  for (std::size_t k = 0; k < ends.size(); ++k) {
    gaps[k].to = text.at(by.steps[k].first);
    gaps[k].end = gaps[k + 1].from = text.at(ends[k]) + 1;
  }
  gaps.back().to = gaps.back().end = text.letters.size();
  const Cuts cuts = cut(text, gaps, closed);
  for (const Gap& gap : gaps) {
    const bool end = gap.cut == text.letters.size();
    p.starts.push_back(end ? operations.size() : text.operations[gap.cut]);
  }
  if (!cuts.finished && !closed) {  // killed at the end of a step
    p.starts.pop_back();
    for (Places& anchors : p.anchors) anchors.pop_back();
  }
  const Gap& usual = gaps[cuts.usual];
  const auto letters = std::span(text.letters);
  p.whole_steps = begins_again(letters.subspan(usual.cut, usual.to - usual.cut));
  for (std::size_t i = usual.from; i < usual.cut; ++i) {  // as ZeRO's optimizer gathers
    p.whole_steps =
        p.whole_steps || (text.kinds[i] == LetterOf::call &&
                          operations.symbol(text.operations[i]).kind == Kind::collective &&
                          operations.symbol(text.operations[i]).bytes > kScalarBytes);
  }
  p.uneven = cuts.uneven;
  p.batch_bytes = by.batch_bytes;
  p.unclear_beginning = by.unclear_beginning;
  p.unclear_end = closed && by.unclear_end;
  return p;
}

}  // namespace

std::string too_few_repeats(std::size_t n) {
  return fmt::format(
      "the calls repeat {} times, but with fewer than {} repeats a step looks like a micro-batch "
      "or a layer",
      n, kFewestSteps);
}

Period find_period(const Sequence& sequence, bool closed) {
  const Operations operations(sequence);
  const std::vector<Rhythm> all = rhythms(operations);
  const Rhythm* by = nullptr;
  const auto enough = [](const Rhythm& r) { return r.steps.size() >= kFewestSteps; };
  for (const Rhythm& r : all) {
    const bool better = by == nullptr || (enough(r) && !enough(*by)) ||
                        (enough(r) == enough(*by) && r.steps.size() < by->steps.size());
    if (better) by = &r;
  }
  if (by == nullptr) return {.why = "the calls do not repeat like steps"};
  if (!enough(*by)) return {.few = true, .why = too_few_repeats(by->steps.size())};
  Period found = place(operations, *by, all, closed);
  if (found.starts.size() > kFewestSteps) return found;
  return {.few = true, .why = too_few_repeats(found.starts.size() - 1)};
}

}  // namespace tprof::steps
