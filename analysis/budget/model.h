// Says what a way to train should move on each rank in a step, by the schedules of the frameworks.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "interpose/format/buckets.h"

namespace tprof::budget {

enum class Way { ddp, zero1, zero2, zero3, fsdp, hsdp, tp };

struct WayRow {
  std::string_view name;
  Way way;
};
inline constexpr WayRow kWays[] = {
    {"ddp", Way::ddp},     {"zero1", Way::zero1}, {"zero2", Way::zero2},
    {"zero3", Way::zero3}, {"fsdp", Way::fsdp},   {"hsdp", Way::hsdp},
    {"tp", Way::tp},       {"fsdp1", Way::fsdp},  {"fsdp2", Way::fsdp}};  // as people say it too

// In which micro-batches gradients are reduced: by_way is as the framework does it if nobody says
// anything, so zero2 and zero3 do it in each and the others in the last.
enum class Accumulate { by_way, last, every };

struct Model {
  std::vector<Way> ways{};  // together, such as fsdp and tp
  double params = 0;        // elements that a rank computes with when all are gathered
  double root_params = -1;  // of them those of the root unit, which stays gathered; -1: not known
  double layers = 0;        // 0: not known
  std::string dtype{};
  std::string reduce_dtype{};
  bool dtype_given = true;   // else these are the defaults
  bool reduce_given = true;  // by an option of its own
  double shards = 0;         // ranks that hold the parameters together; 0: not known
  double micro_batches = 1;
  Accumulate accumulate = Accumulate::by_way;
  bool keeps = false;  // parameters stay gathered from the forward pass for the backward one
  bool offload = false;
  double tokens = 0;  // of a micro-batch
  double hidden = 0;
  double reduced_in_layer = 2;  // tensor-parallel all-reduces of a layer in each pass
  double tolerance = 0;         // share of the bytes
  // Only explanations set these.
  double root_more = 0;      // elements that the root may have beside root_params
  double reductions = 0;     // how often gradients are reduced in a step; 0: by `accumulate`
  bool all_reduced = false;  // whole gradients, where each rank should get its shard
};

struct Range {
  double least = 0;
  double most = std::numeric_limits<double>::infinity();

  bool operator==(const Range&) const = default;
  bool holds(double n) const { return least <= n && n <= most; }
  bool meets(const Range& o) const { return least <= o.most && o.least <= most; }
  Range operator+(const Range& o) const { return {least + o.least, most + o.most}; }
  Range operator*(double n) const { return {least * n, most * n}; }
};

// The limit of one rank and step. Bytes are the contract's.
struct Limit {
  Bucket bucket = Bucket::ALLGATHER;
  std::string function{};  // empty: any
  std::string dtype{};     // empty: any
  Range calls{};
  Range bytes{};
  Range each{0, 0};  // bytes that each call beyond the fewest brings at least, and that are left
                     // out for each below the most; 0: not known
  double usual = 0;  // calls of a copy in the usual step of the run it was made of; 0: not known

  // The bytes that go with so many calls, of those of any number.
  Range bytes_with(double made) const;
  bool holds(double made, double moved) const {
    return calls.holds(made) && bytes_with(made).holds(moved);
  }
};

// Returns how often gradients are reduced in a step.
double reductions(const Model& model);

// One for each bucket.
std::vector<Limit> expected(const Model& model);

// Calls of less are norms, losses, barriers: they are in no formula. A norm may be reduced as one
// number for each parameter.
bool is_small(Bucket bucket, std::int64_t bytes_class, const Model& model);

// Returns the size of a data type by the contract's name; 0 if it is not known.
double size_of(std::string_view dtype);

}  // namespace tprof::budget
