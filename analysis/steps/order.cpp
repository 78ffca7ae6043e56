#include "steps/order.h"

#include <algorithm>
#include <functional>
#include <map>

#include "interpose/base/hash.h"

namespace tprof::steps {
namespace {

using Kind = Symbol::Kind;

constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15;

}  // namespace

Order::Order(const Sequence& sequence, Copies copies, Sends sends) : sequence_(sequence) {
  for (std::size_t i = 0; i < sequence.operations.size(); ++i) {
    const std::uint32_t symbol = sequence.operations[i].symbol;
    if (copies == Copies::none && copies_in(symbol)) continue;
    if (sends == Sends::none && sequence.symbols[symbol].kind == Kind::p2p) continue;
    text_.push_back(symbol);
    place_.push_back(i);
  }
  find_gradients();
  find_shards();
  if (copies == Copies::alike) make_batches_alike();
  find_batches();
  hash();
}

// Finds the reductions that are large enough for gradients.
void Order::find_gradients() {
  std::uint64_t largest = 0;
  for (const Symbol& symbol : sequence_.symbols) {
    if (symbol.kind == Kind::reduction) largest = std::max(largest, symbol.bytes);
  }
  for (const Symbol& symbol : sequence_.symbols) {
    gradient_.push_back(symbol.kind == Kind::reduction && symbol.bytes > kScalarBytes &&
                        symbol.bytes >= largest / kSmallReduction);
  }
  for (std::size_t i = 0; i < text_.size(); ++i) gradients_ += gradient(i) ? 1U : 0U;
}

// Copies that are as large as what this rank gives to an all-gather are parameters that lie in the
// host's memory, if they are gathered about as often. Predictions for a metric may happen to be
// as large as a batch.
void Order::find_shards() {
  std::map<std::uint64_t, std::size_t> copied;
  std::map<std::uint64_t, std::size_t> given;
  for (const Operation& of : sequence_.operations) {
    const Symbol& symbol = sequence_.symbols[of.symbol];
    if (symbol.kind == Kind::copy_in) ++copied[symbol.bytes];
    if (symbol.given != 0) ++given[symbol.given];
  }
  for (const auto& [bytes, times] : given) {
    if (2 * times >= copied[bytes]) given_.insert(bytes);
  }
}

std::size_t Order::first_gradient() const {
  std::size_t first = 0;
  while (first < text_.size() && !gradient(first)) ++first;
  return first;
}

// Returns the copies of which there are as many as of some collective. They are a part of it (FSDP
// copies the addresses of what it gathers), or batches of one size.
std::set<std::uint32_t> Order::goes_with_calls(std::size_t first) const {
  std::map<std::uint32_t, std::size_t> times;
  for (std::size_t i = first; i < text_.size(); ++i) ++times[text_[i]];
  std::set<std::size_t> of_calls;
  for (const auto& [symbol, n] : times) {
    if (!copies_in(symbol)) of_calls.insert(n);
  }
  std::set<std::uint32_t> all;
  for (const auto& [symbol, n] : times) {
    const std::size_t about = kFewest - 1 + n / 50;  // an evaluation, or the end
    const auto near = of_calls.lower_bound(n - std::min(n, about));
    if (copies_in(symbol) && n > kFewest && near != of_calls.end() && *near <= n + about) {
      all.insert(symbol);
    }
  }
  return all;
}

// Takes the copies during training, and the last one before the first gradient, which may be the
// first batch.
void Order::make_batches_alike() {
  const std::size_t first = first_gradient();
  const std::set<std::uint32_t> others = goes_with_calls(first);
  const auto may_be_batch = [&](std::size_t i) {
    return may_be_data(text_[i]) && symbol(i).bytes >= kScalarBytes && !others.contains(text_[i]);
  };
  std::uint32_t largest = UINT32_MAX;
  std::set<std::uint32_t> alike;
  for (std::size_t i = first; i < text_.size(); ++i) {
    if (!may_be_batch(i) || !alike.insert(text_[i]).second) continue;
    const bool larger = largest == UINT32_MAX || symbol(i).bytes > sequence_.symbols[largest].bytes;
    if (larger) largest = text_[i];
  }
  if (alike.empty()) return;
  for (std::size_t i = first; i-- > 0;) {
    if (!may_be_batch(i)) continue;
    if (symbol(i).bytes <= kSmallCopy * sequence_.symbols[largest].bytes) alike.insert(text_[i]);
    break;
  }
  for (std::uint32_t& symbol : text_) {
    if (alike.contains(symbol)) symbol = largest;
  }
}

// Returns which copies during training may be batches, and after how many gradients each came in.
std::map<std::uint32_t, std::vector<std::size_t>> Order::copied_in() const {
  std::map<std::uint32_t, std::vector<std::size_t>> copies;
  std::size_t reduced = 0;
  for (std::size_t i = first_gradient(); i < text_.size(); ++i) {
    if (gradient(i)) ++reduced;
    if (!may_be_data(text_[i]) || symbol(i).bytes < kScalarBytes) continue;
    std::vector<std::size_t>& after = copies[text_[i]];
    if (after.empty() || after.back() != reduced) after.push_back(reduced);
  }
  return copies;
}

// Returns between how many gradients batches come in at least, if there are steps at all. Each step
// reduces the rarest gradient of a communicator, and at least half of the steps bring in a batch.
// If all gradients come equally often, each may be one of many layers: then nothing tells how many
// steps there are, and only as many as make steps are asked for, without the first batch.
std::size_t Order::fewest_batches() const {
  std::map<std::int64_t, std::map<std::uint32_t, std::size_t>> times;  // by communicator
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (gradient(i)) ++times[symbol(i).comm][text_[i]];
  }
  std::size_t steps = gradients_;
  bool told = false;
  for (auto& [comm, gradients] : times) {
    std::erase_if(gradients, [](const auto& entry) { return entry.second < kFewest; });
    if (gradients.empty()) continue;
    const auto n = [](const auto& entry) { return entry.second; };
    const auto [rarest, most] = std::ranges::minmax_element(gradients, {}, n);
    if (rarest->second == most->second) continue;
    steps = std::min(steps, rarest->second);
    told = true;
  }
  return told ? (steps + 1) / 2 : kFewestSteps - 1;
}

// Batches of data are among the largest copies that come again and again during training. Larger
// ones may come in a few steps only: batches of an evaluation, or the parameters that FSDP1 copies
// back on a rank that saved them. If all copies together come less often, the largest tells.
void Order::find_batches() {
  const std::map<std::uint32_t, std::vector<std::size_t>> copies = copied_in();
  batch_sizes_ = copies.size();
  std::map<std::size_t, std::uint64_t> largest;  // by how many gradients came before
  for (const auto& [symbol, after] : copies) {
    if (after.size() < kFewest - 1) continue;
    for (const std::size_t n : after) {
      largest[n] = std::max(largest[n], sequence_.symbols[symbol].bytes);
    }
  }
  any_data_ = !largest.empty();
  if (!any_data_) return;
  std::vector<std::uint64_t> sizes;
  for (const auto& [after, bytes] : largest) sizes.push_back(bytes);
  std::ranges::sort(sizes, std::greater());
  const std::size_t fewest = fewest_batches();
  const std::uint64_t usual = sizes[fewest <= sizes.size() ? fewest - 1 : 0];
  batch_bytes_ = std::max(kScalarBytes, usual / kSmallCopy);
}

void Order::hash() {
  for (const std::uint32_t symbol : text_) {
    const std::uint64_t h = mix64(symbol + 1);
    ordered_.push_back(ordered_.back() * kBase + h);
    sums_.push_back(sums_.back() + h);
    powers_.push_back(powers_.back() * kBase);
  }
}

std::uint64_t Order::ordered(std::size_t from, std::size_t to) const {
  return mix64((ordered_[to] - ordered_[from] * powers_[to - from]) ^ (to - from));
}

}  // namespace tprof::steps
