// The amounts that each rank should move in a step for a way of training, by the frameworks'
// schedules.
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
    {"tp", Way::tp},       {"fsdp1", Way::fsdp},  {"fsdp2", Way::fsdp}};  // usual other names

// In which micro-batches gradients are reduced. by_way: the framework's default, which is each for
// zero2 and zero3, and the last one for the others.
enum class Accumulate { by_way, last, every };

struct Model {
  std::vector<Way> ways{};  // combined, such as fsdp and tp
  double params = 0;        // elements that a rank computes with when everything is gathered
  double root_params = -1;  // the part in the root unit, which stays gathered; -1: unknown
  double layers = 0;        // 0: not known
  std::string dtype{};
  std::string reduce_dtype{};
  bool dtype_given = true;   // else these are the defaults
  bool reduce_given = true;  // by its own option
  double shards = 0;         // ranks that share the parameters; 0: unknown
  double micro_batches = 1;
  Accumulate accumulate = Accumulate::by_way;
  bool keeps = false;  // parameters stay gathered from the forward to the backward pass
  bool offload = false;
  double tokens = 0;  // of a micro-batch
  double hidden = 0;
  double reduced_in_layer = 2;  // tensor-parallel all-reduces of a layer in each pass
  double tolerance = 0;         // share of the bytes
  // Set by explanations only:
  double root_more = 0;      // elements that the root may have besides root_params
  double reductions = 0;     // how often gradients are reduced in a step; 0: by `accumulate`
  bool all_reduced = false;  // whole gradients, although each rank should get its shard
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

// The limit for one rank and step. Bytes are the contract's.
struct Limit {
  Bucket bucket = Bucket::ALLGATHER;
  std::string function{};  // empty: any
  std::string dtype{};     // empty: any
  Range calls{};
  Range bytes{};
  Range each{0, 0};  // smallest size of each call beyond the fewest, and of each
                     // missing call below the most; 0: unknown
  double usual = 0;  // of a copy: calls in the usual step of the budget's run; 0: unknown

  // The bytes for this number of calls.
  Range bytes_with(double made) const;
  bool holds(double made, double moved) const {
    return calls.holds(made) && bytes_with(made).holds(moved);
  }
};

// Returns how often gradients are reduced in a step.
double reductions(const Model& model);

// Returns one limit for each bucket.
std::vector<Limit> expected(const Model& model);

// True for norms, losses and barriers, which no formula includes. A norm may be reduced as one
// number per parameter.
bool is_small(Bucket bucket, std::int64_t bytes_class, const Model& model);

// Returns the size of a data type by the contract's name; 0 if unknown.
double size_of(std::string_view dtype);

}  // namespace tprof::budget
