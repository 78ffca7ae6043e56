// The time of each rank of its own in each step that counts, and what of it goes where. Parts of it
// can be put right, to see what the others would gain.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "why/cause.h"

namespace tprof::why {

// Splits a rank's own time: in kernels, before the first of them, and in idle time behind it.
// `host` is both of these, as kernels of the step before may still run where a step begins: then
// idle time at its beginning is of the rest. `between` is what the rest has of the time between two
// steps.
enum class Part : std::uint8_t { compute, lead, rest, host, between };
inline constexpr Part kPartsOfOwn[] = {Part::compute, Part::lead, Part::rest};
// The parts that a rank may be told to be slow in, by their numbers.
inline constexpr Part kPartsToTell[] = {Part::compute, Part::lead, Part::rest, Part::host};

// A figure of each rank and step.
class Grid {
 public:
  Grid(std::size_t ranks, std::size_t steps) : steps_(steps), all_(ranks * steps) {}

  std::size_t ranks() const { return steps_ == 0 ? 0 : all_.size() / steps_; }
  std::size_t steps() const { return steps_; }
  float& at(std::size_t rank, std::size_t step) { return all_[rank * steps_ + step]; }
  float at(std::size_t rank, std::size_t step) const { return all_[rank * steps_ + step]; }
  std::vector<double> of_rank(std::size_t rank) const;
  std::vector<double> of_step(std::size_t step) const;
  double longest(std::size_t step) const;

 private:
  std::size_t steps_;
  std::vector<float> all_;
};

// Its steps are those of `Evidence::steps`, by place.
Grid own_times(const Evidence& e);
Grid part_of_own(const Evidence& e, Part part);

// By how much each is beyond what `share` of the ranks have at least.
Grid beyond(const Grid& of, double share);

}  // namespace tprof::why
