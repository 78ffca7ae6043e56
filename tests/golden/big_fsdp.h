// Rank files of a job of any size that trains with PyTorch's FSDP2, as they are with
// TPROF_TIMING=events: calls, device times, when devices computed, and steps, marked by NVTX
// ranges. Every host has a wall clock of its own, which is off and drifts.
#pragma once

#include <string>

#include "tests/golden/big_step.h"

namespace tprof::test {

class FsdpJob {
 public:
  // About `lines` lines of a rank beside its metadata. If `slow`, one rank computes for 1.2 times
  // as long as all others.
  FsdpJob(std::string folder, int ranks, int lines, bool slow);

  void write(int rank) const;  // its file

  const Step& step() const { return step_; }
  int steps() const { return steps_; }
  int slow_rank() const { return slow_ ? ranks_ / 3 : -1; }
  int communicators() const;

 private:
  friend class FsdpFile;

  std::string folder_;
  int ranks_;
  bool slow_;
  int shard_;  // ranks that share a model
  Step step_;
  int steps_;
};

}  // namespace tprof::test
