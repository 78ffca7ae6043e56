// Finds what steps beside the usual one make more than that: evaluations, checkpoints, or a call
// that a good run never makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "budget/figures.h"
#include "budget/model.h"

namespace tprof::budget {

struct Measured;

// The collectives of a kind in all steps of a run.
struct KnownKind {
  std::set<std::int64_t> classes{};  // of their sizes, as Key has it
  Range more{0, 0};                  // calls beyond those of the usual step, where there are any

  bool operator==(const KnownKind&) const = default;
};
using KnownKinds = std::map<Key, KnownKind>;  // by kind_of()

// Absent: no step is usual, or its calls are not known by steps.
std::optional<KnownKinds> known_kinds(const Measured& measured);

// Steps that make the same of a kind more than the usual one.
struct OtherSteps {
  enum class InRun { yes, other_number, never };
  std::vector<std::int64_t> steps{};  // ascending
  Key kind{};
  Moved more{};
  std::optional<InRun> in_run{};  // whether the budget's run has such steps; absent: nobody says
};

struct Others {
  std::vector<OtherSteps> all{};
  bool run_known = false;  // what other steps of the budget's run make
  std::size_t unlike = 0;  // steps that make more, as no step of the budget's run is known to
  std::string text{};      // of these: "steps 4,9 have 1 ncclAllGather more, of 4.00 KiB"
  std::vector<std::string> never{};  // sentences of kinds that no step of the budget's run makes
};

// Setup is not looked at. `any_size`: sizes are not compared, as those of other jobs' ranks differ.
Others other_steps(const Measured& measured, const std::optional<KnownKinds>& known, bool any_size);

}  // namespace tprof::budget
