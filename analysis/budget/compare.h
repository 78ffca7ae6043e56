// Compares what a job moved with what it may move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "budget/measured.h"
#include "budget/model.h"
#include "budget/other_steps.h"
#include "filter/filter.h"

namespace tprof::budget {

// The limit of one rank and step.
struct Limit {
  Bucket bucket = Bucket::ALLGATHER;
  std::string function{};  // empty: any
  std::string dtype{};     // empty: any
  Range calls{};
  Range bytes{};
  Range each{0, 0};  // as Expected has it
  double usual = 0;  // calls of a copy in the usual step of the run it was made of; 0: not known
};

// The most of a bucket's small calls in a step.
struct SmallLimit {
  double calls = 0;
  double bytes = 0;  // 0: not known

  bool operator==(const SmallLimit&) const = default;
};

struct Budget {
  std::vector<Limit> limits{};
  bool others_fail = true;       // NCCL calls that no limit is of
  std::optional<Model> model{};  // that the limits are of
  std::int64_t nranks = 0;       // of the job that it was made from; 0: not known
  // By bucket, those that are not here 0. Absent: any number.
  std::optional<std::map<Bucket, SmallLimit>> small{};
  std::optional<KnownKinds> kinds{};  // of the run that it is of; absent: not known
};

Budget of_model(const Model& model);
bool has_copies(const Budget& budget);

// Takes what is there now for a budget, as it is on all ranks, with bytes up or down by a share.
Budget of_run(const Measured& measured, double tolerance);

// "1.2 GiB"
std::string bytes_text(double n);

struct Row {
  Members ranks;
  Limit limit;           // its bytes are those that go with so many calls
  std::string either{};  // "9 with 7.00 MiB or 10 with 8.00 MiB"; empty: any calls with any bytes
  bool has_limit = true;
  Moved moved{};
  std::vector<std::string> dtypes{};  // that were moved
  bool within = true;
  Moved small{};            // the bucket's small calls that may be of this row
  bool with_small = false;  // within, if some of these are, or fewer than in the budget's run
};

struct Small {
  Members ranks;
  Bucket bucket = Bucket::ALLREDUCE;
  Moved moved;
  std::optional<double> most{};  // calls
  double of_objects = 0;         // calls that look like all_gather_object

  bool within() const { return !most || moved.calls <= *most; }
};

// Small calls are in no limit, but some may belong there: gradients of small parameters, or calls
// that were a little larger or smaller in the budget's run, and there on the other side. Returns
// whether all is within if so. `most`: the small calls that the budget has.
bool within_with_small(const Range& calls, const Range& bytes, const Moved& moved,
                       const Moved& small, const SmallLimit& most);

struct Compared {
  bool within = true;
  std::size_t if_steps = 0;  // if so many that were found are steps, which nothing tells; 0: anyway
  std::vector<Row> rows;
  std::vector<Small> small;            // norms, losses, barriers: no row is of them
  std::vector<std::string> sentences;  // what differences are made of, without full stop
  std::vector<std::string> notes;
  Others others{};       // steps beside the usual one
  filter::Words only{};  // the ranks; empty: all
};

Compared compare(const Measured& measured, const Budget& budget);

}  // namespace tprof::budget
