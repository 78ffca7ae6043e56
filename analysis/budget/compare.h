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

// All-gathers as all_gather_object makes them, of a step: one int64, then bytes.
struct Objects {
  double calls = 0;  // of bytes, the small ones aside
  double bytes = 0;  // of these
  double small = 0;  // other calls of objects: those of the int64, and of less bytes
};

struct Row {
  Members ranks;
  Limit limit;           // its bytes are those that go with so many calls
  std::string either{};  // "9 with 7.00 MiB or 10 with 8.00 MiB"; empty: any calls with any bytes
  bool has_limit = true;
  Moved moved{};
  std::vector<std::string> dtypes{};  // that were moved
  bool within = true;
  Objects objects{};  // on these ranks
  Moved filled{};     // of `moved`, by small calls that are taken for a part of it
  double grown = 0;   // calls beyond the limit, which has room for them by small ones that are gone
  Figures small{};    // calls that were there to fill it, where it was not within
};

struct Small {
  Members ranks;
  Bucket bucket = Bucket::ALLREDUCE;
  Moved moved;
  std::optional<double> most{};  // calls
  double of_objects = 0;         // calls that look like all_gather_object

  bool within() const { return !most || moved.calls <= *most; }
};

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
