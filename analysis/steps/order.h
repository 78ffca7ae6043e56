// The calls of a rank, as a text of symbols in which steps are looked for.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "interpose/format/step_mark.h"
#include "steps/sequence.h"

namespace tprof::steps {

inline constexpr std::size_t kFewest = 3;       // occurrences that make a period
inline constexpr std::size_t kFewestSteps = 6;  // a period with fewer may be one of layers

// Copies to the device in the text. Batches of sequences of any length differ in size; `alike`
// takes all that may be batches for the same.
enum class Copies : std::uint8_t { none, as_they_are, alike };

// Sends and receives in the text. Mixtures of experts send as many tokens as a router says, which
// differs in each step.
enum class Sends : std::uint8_t { none, as_they_are };

class Order {
 public:
  Order(const Sequence& sequence, Copies copies, Sends sends);

  std::size_t size() const { return text_.size(); }
  std::uint32_t operator[](std::size_t i) const { return text_[i]; }
  auto begin() const { return text_.begin(); }

  const Symbol& symbol(std::size_t i) const { return sequence_.symbols[text_[i]]; }
  bool copies_in(std::uint32_t symbol) const {
    return sequence_.symbols[symbol].kind == Symbol::Kind::copy_in;
  }
  bool gradient(std::size_t i) const { return gradient_[text_[i]]; }  // a gradient reduction
  bool data_in(std::size_t i) const {
    return may_be_data(text_[i]) && symbol(i).bytes >= batch_bytes_;
  }
  std::size_t gradients() const { return gradients_; }  // in the whole text
  bool any_data() const { return any_data_; }
  bool batches_differ() const { return batch_sizes_ > 1; }

  // Returns the index in the sequence; for the end of the text, the end of the sequence.
  std::size_t operation(std::size_t i) const {
    return i < place_.size() ? place_[i] : sequence_.operations.size();
  }

  // Hashes of a part, which are equal for equal parts: in their order, or in any order.
  std::uint64_t ordered(std::size_t from, std::size_t to) const;
  std::uint64_t any_order(std::size_t from, std::size_t to) const {
    return sums_[to] - sums_[from];
  }

 private:
  bool may_be_data(std::uint32_t symbol) const {
    return copies_in(symbol) && !given_.contains(sequence_.symbols[symbol].bytes);
  }

  void find_gradients();
  void find_shards();
  std::size_t first_gradient() const;
  std::set<std::uint32_t> goes_with_calls(std::size_t first) const;
  void make_batches_alike();
  std::map<std::uint32_t, std::vector<std::size_t>> copied_in() const;
  std::size_t fewest_batches() const;
  void find_batches();
  void hash();

  const Sequence& sequence_;
  std::vector<std::uint32_t> text_;
  std::vector<std::size_t> place_;  // operation of each symbol of the text
  std::vector<bool> gradient_;      // by symbol
  std::set<std::uint64_t> given_;   // sizes of shards
  std::size_t gradients_ = 0;
  std::uint64_t batch_bytes_ = kScalarBytes;
  bool any_data_ = false;
  std::size_t batch_sizes_ = 0;  // of copies that may be batches, during training
  // Running values up to each place of the text.
  std::vector<std::uint64_t> ordered_{1};
  std::vector<std::uint64_t> sums_{0};
  std::vector<std::uint64_t> powers_{1};
};

}  // namespace tprof::steps
