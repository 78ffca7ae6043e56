// The counts that each rank of a job moved in a step.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "interpose/format/buckets.h"
#include "job/jobs.h"
#include "read/folder.h"
#include "steps/found.h"

namespace tprof::budget {

struct Key {
  Bucket bucket = Bucket::ALLGATHER;
  std::string function;
  std::string dtype;
  std::int64_t nranks = 0;        // 0: a copy
  std::int64_t bytes_class = -1;  // of each call: from 2^class bytes on, -1: 0 bytes

  auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr)
};

// The counts of one step: means may be broken numbers.
struct Moved {
  double calls = 0;
  double bytes = 0;
  double elements = 0;

  auto operator<=>(const Moved&) const = default;  // NOLINT(modernize-use-nullptr)
  Moved& operator+=(const Moved& m) {
    return *this = {calls + m.calls, bytes + m.bytes, elements + m.elements};
  }
  Moved& operator-=(const Moved& m) {
    return *this = {calls - m.calls, bytes - m.bytes, elements - m.elements};
  }
  Moved operator/(double n) const { return {calls / n, bytes / n, elements / n}; }
};
using Figures = std::map<Key, Moved>;

// Ranks that moved the same.
struct Group {
  std::vector<std::int64_t> ranks;  // ascending
  Figures figures;
};

struct Measured {
  enum class From { step_lines, lines, ledger };
  From from = From::ledger;
  std::size_t steps = 0;              // that the means are of, on the rank that has most
  std::size_t found = 0;              // steps or micro-batches
  bool may_be_steps = false;          // these, of which several were taken for one; nothing tells
  bool may_be_micro_batches = false;  // these, each of which was taken for one; nothing tells
  std::size_t left_out = 0;           // steps, on the rank that has most of them
  std::vector<Group> groups{};        // the largest first
  std::vector<std::string> notes{};   // sentences without their full stop
  std::vector<read::Skipped> unreadable{};
};

struct Asked {
  std::uint64_t steps = 0;  // that the job made; 0: as found
  std::uint64_t micro_batches = 1;
  bool copies = true;  // else NCCL's calls only
};

// A step is made of so many of the found ones: where these may be micro-batches, or where the job
// made fewer.
std::size_t found_in_step(const steps::Found& found, const Asked& asked);

// Returns the number that more than half of the steps have; equal steps have equal numbers.
std::optional<std::uint64_t> usual_step(const std::vector<std::uint64_t>& steps);

// Returns how many steps at the beginning are setup. The last of them is among the first three, and
// no later step makes the same calls. Where there is no usual step, the others count.
std::size_t setup_steps(const std::vector<std::uint64_t>& steps);

// Throws BadInput if no steps are known.
Measured measure(const job::Job& job, const read::Traces& traces, const Asked& asked,
                 const std::function<void(std::size_t)>& progress);

}  // namespace tprof::budget
