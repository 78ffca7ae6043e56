// What a rank called, as a text of symbols: what steps are looked for in.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "interpose/format/step_mark.h"
#include "steps/sequence.h"

namespace tprof::steps {

inline constexpr std::size_t kFewest = 3;       // occurrences that make a period
inline constexpr std::size_t kFewestSteps = 6;  // below which it may be one of layers

class Order {
 public:
  // `copies`: copies to the device are in it.
  Order(const Sequence& sequence, bool copies);

  std::size_t size() const { return text_.size(); }
  std::uint32_t operator[](std::size_t i) const { return text_[i]; }
  auto begin() const { return text_.begin(); }

  const Symbol& symbol(std::size_t i) const { return sequence_.symbols[text_[i]]; }
  bool copies_in(std::uint32_t symbol) const {
    return sequence_.symbols[symbol].kind == Symbol::Kind::copy_in;
  }
  bool gradient(std::size_t i) const { return gradient_[text_[i]]; }  // a reduction of some
  bool data_in(std::size_t i) const {
    return may_be_data(text_[i]) && symbol(i).bytes >= batch_bytes_;
  }
  std::size_t gradients() const { return gradients_; }  // in all of it
  bool any_data() const { return any_data_; }

  // Where it is in the sequence; of the end the sequence's end.
  std::size_t operation(std::size_t i) const {
    return i < place_.size() ? place_[i] : sequence_.operations.size();
  }

  // Hashes of a part: equal for equal parts, in their order or in any.
  std::uint64_t ordered(std::size_t from, std::size_t to) const;
  std::uint64_t any_order(std::size_t from, std::size_t to) const {
    return sums_[to] - sums_[from];
  }

 private:
  bool may_be_data(std::uint32_t symbol) const {
    return copies_in(symbol) && !given_.contains(sequence_.symbols[symbol].bytes);
  }

  void find_gradients();
  void find_batches();
  void hash();

  const Sequence& sequence_;
  std::vector<std::uint32_t> text_;
  std::vector<std::size_t> place_;  // of each symbol of the text: the operation
  std::vector<bool> gradient_;      // by symbol
  std::set<std::uint64_t> given_;   // sizes of shards
  std::size_t gradients_ = 0;
  std::uint64_t batch_bytes_ = kScalarBytes;
  bool any_data_ = false;
  // Up to each place of the text.
  std::vector<std::uint64_t> ordered_{1};
  std::vector<std::uint64_t> sums_{0};
  std::vector<std::uint64_t> powers_{1};
};

}  // namespace tprof::steps
