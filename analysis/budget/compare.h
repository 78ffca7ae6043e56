// Compares what a job moved with what it may move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "budget/measured.h"
#include "budget/model.h"
#include "filter/filter.h"

namespace tprof::budget {

// The most of a bucket's small calls in a step.
struct SmallLimit {
  double calls = 0;
  double bytes = 0;  // 0: not known

  bool operator==(const SmallLimit&) const = default;
};

// The collectives of a kind in all steps of a run.
struct KnownKind {
  std::set<std::int64_t> classes{};  // of their sizes, as Key has it
  Range more{0, 0};                  // calls beyond those of the usual step, where there are any

  bool operator==(const KnownKind&) const = default;
};
using KnownKinds = std::map<Key, KnownKind>;  // by kind_of()

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

std::string bytes_text(double n);                                    // "1.2 GiB"
std::string calls_text(double n, const std::string& what = "call");  // "1 call", "2.5 calls"

struct Row {
  Members ranks;
  Limit limit;
  Range bytes{};  // of the limit, those that go with so many calls
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

struct Compared {
  bool within = true;
  std::size_t if_steps = 0;  // if so many that were found are steps, which nothing tells; 0: anyway
  std::vector<Row> rows{};
  std::vector<Small> small{};            // norms, losses, barriers: no row is of them
  std::vector<std::string> sentences{};  // what differences are made of, without full stop
  std::vector<std::string> notes{};
  Others others{};       // steps beside the usual one
  filter::Words only{};  // the ranks; empty: all
};

Compared compare(const Measured& measured, const Budget& budget);

// Absent: no step is usual, or its calls are not known by steps.
std::optional<KnownKinds> known_kinds(const Measured& measured);

// Setup is not looked at. `any_size`: sizes are not compared, as those of other jobs' ranks differ.
Others other_steps(const Measured& measured, const std::optional<KnownKinds>& known, bool any_size);

// All-gathers as all_gather_object makes them, of a step: one int64, then bytes.
struct Objects {
  double calls = 0;  // of bytes, the small ones aside
  double bytes = 0;  // of these
  double small = 0;  // other calls of objects: those of the int64, and of less bytes
};
Objects objects_of(const Figures& figures);

// Returns sentences without their full stop, for each bucket that is not within. The rows are of
// the same ranks.
std::vector<std::string> explain(std::span<const Row> rows, const Objects& objects,
                                 const Budget& budget);

}  // namespace tprof::budget
