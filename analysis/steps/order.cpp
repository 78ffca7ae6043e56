#include "steps/order.h"

#include <algorithm>
#include <map>

#include "interpose/base/hash.h"

namespace tprof::steps {
namespace {

using Kind = Symbol::Kind;

constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15;

}  // namespace

Order::Order(const Sequence& sequence, bool copies) : sequence_(sequence) {
  for (std::size_t i = 0; i < sequence.operations.size(); ++i) {
    const std::uint32_t symbol = sequence.operations[i].symbol;
    if (!copies && copies_in(symbol)) continue;
    text_.push_back(symbol);
    place_.push_back(i);
  }
  find_gradients();
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

// Batches of data are among the largest copies that come again and again during training. Copies
// that are as large as what this rank gives to an all-gather are parameters that lie in the host's
// memory.
void Order::find_batches() {
  for (const Symbol& symbol : sequence_.symbols) {
    if (symbol.given != 0) given_.insert(symbol.given);
  }
  std::size_t first = 0;
  while (first < text_.size() && !gradient(first)) ++first;
  std::map<std::uint32_t, std::size_t> times;
  std::uint64_t largest = 0;
  for (std::size_t i = first; i < text_.size(); ++i) {
    if (may_be_data(text_[i]) && ++times[text_[i]] == kFewest - 1) {
      largest = std::max(largest, symbol(i).bytes);
    }
  }
  any_data_ = largest >= kScalarBytes;
  batch_bytes_ = std::max(kScalarBytes, largest / kSmallCopy);
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
