// The calls of a rank in its steps: what the usual one makes, and what those make that differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "budget/figures.h"
#include "read/rows.h"

namespace tprof::budget {

struct Usual {
  Figures figures{};
  // Copies and small calls: what two of three steps have at most, where `figures` has what one of
  // two has. A batch or a log that comes in every other step is then in a budget of it.
  Figures often{};
  std::size_t steps = 0;  // that these are of
  std::size_t left_out = 0;
  bool usual = false;     // these are those that differ from most; else the first
  std::size_t setup = 0;  // so many of the first steps are that
  // NCCL's calls of the steps that differ, against the usual step, by the place of the step: by all
  // but the ranks of their communicators.
  std::map<std::size_t, Figures> others{};
  // Bytes of copies that less than a third of the steps make, by the place of the step: they are in
  // no figure.
  std::map<Bucket, std::map<std::size_t, double>> seldom{};
};

// Norms, losses and barriers come and go, and batches differ.
bool tells_steps_apart(const Key& key);

class RankSteps {
 public:
  explicit RankSteps(std::size_t steps) : calls_(steps) {}

  void add(std::size_t step, Key key, const read::Amounts& amounts);
  Usual usual() const;

 private:
  static constexpr std::size_t kMostKeys = 4096;  // of a damaged file
  static constexpr std::size_t kMostSteps = 65536;
  static constexpr std::size_t kMostValues = std::size_t{1} << 22U;

  Moved at(const Key& key, std::size_t step) const;
  void add_others(Usual& to, std::uint64_t usual) const;
  void add_seldom(Usual& to) const;

  std::vector<std::uint64_t> calls_;  // of each step: equal ones have equal numbers
  Figures all_;
  std::map<Key, std::vector<Moved>> of_steps_;  // the first steps, as far as there is room
  std::size_t values_ = 0;
};

// Says what steps have more, by their numbers: "step 1 has 1 ncclAllReduce less, with as many
// bytes; steps 4,9 have ...".
std::string differences_text(const std::map<std::int64_t, Figures>& more);

// "steps 5,10", or how many they are.
std::string steps_text(const std::vector<std::int64_t>& steps);

// Returns the number that more than half of the steps have; equal steps have equal numbers.
std::optional<std::uint64_t> usual_step(const std::vector<std::uint64_t>& steps);

// Returns how many steps at the beginning are setup. The last of them is among the first three, and
// no later step makes the same calls. Where there is no usual step, the others count.
std::size_t setup_steps(const std::vector<std::uint64_t>& steps);

}  // namespace tprof::budget
