// Compares what a job moved with what it may move, by a formula or by a file: `tprof budget`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
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
  Members ranks{};
  Limit limit{};
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

  bool within() const { return !most || moved.calls <= *most; }
};

// Small calls are in no limit, but some may belong there: gradients of small parameters, or calls
// that were a little larger or smaller in the budget's run, and there on the other side. Returns
// whether all is within if so. `most`: the small calls that the budget has.
bool within_with_small(const Range& calls, const Range& bytes, const Moved& moved,
                       const Moved& small, const SmallLimit& most);

// Steps that make the same of a kind more than the usual one.
struct OtherSteps {
  std::vector<std::int64_t> steps{};  // ascending
  Key kind{};
  Moved more{};
  std::string in_run{};  // whether the budget's run has such: "yes", "other number", "never", or ""
};

struct Compared {
  bool within = true;
  std::size_t if_steps = 0;  // if so many that were found are steps, which nothing tells; 0: anyway
  std::vector<Row> rows{};
  std::vector<Small> small{};            // norms, losses, barriers: no row is of them
  std::vector<std::string> sentences{};  // what differences are made of, without full stop
  std::vector<std::string> notes{};
  std::vector<OtherSteps> other_steps{};  // beside the usual one
  // No step of the budget's run is known to make these, in so many steps: "steps 4,9 have 1
  // ncclAllGather of float32 more, of …"
  std::string unlike_text{};
  std::size_t unlike_steps = 0;
  filter::Words only{};  // the ranks; empty: all
};

Compared compare(const Measured& measured, const Budget& budget);

// Returns sentences without their full stop, for each bucket that is not within. The rows are of
// the same ranks.
std::vector<std::string> explain(std::span<const Row> rows, const Budget& budget);

// Budgets as files: budget.schema.json says what is in them.
constexpr const char* kFileSchema = "tprof-budget/1";

Budget read_file(const std::filesystem::path& file);                       // throws BadInput
void write_file(const Budget& budget, const std::filesystem::path& file);  // a new one

// Steps that nobody marked may be micro-batches: what was found is read as the one, then as the
// other, and where nothing tells them apart nobody is blamed.
struct Reading {
  Measured measured{};
  Budget budget{};
  Compared compared{};
};

// Measures with steps that are made of so many of those that were found, where these may be
// micro-batches.
using Measure = std::function<Measured(std::uint64_t micro_batches)>;

// Compares with what the model should move. Throws BadInput that asks for the number of steps,
// where a step could be blamed for what may be several steps together.
Reading against(const Model& model, const Measure& measure);

// Compares with a budget, by steps of so many micro-batches. Throws BadInput that asks, where a
// step of the budget has the work of several that were found.
Reading against(const Budget& budget, std::uint64_t micro_batches, const Measure& measure);

// `width`: of lines of the table, where that can be done.
std::string to_text(const Measured& measured, const Compared& compared, std::size_t width);
std::string to_json(const job::Job& job, const Measured& measured, const Compared& compared);

}  // namespace tprof::budget
