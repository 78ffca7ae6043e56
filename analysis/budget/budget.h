// `tprof budget`: compares what a job moved with what it may move according to a formula or a file.
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

// The limit of a bucket's small calls in a step.
struct SmallLimit {
  double calls = 0;
  double bytes = 0;  // 0: unknown

  bool operator==(const SmallLimit&) const = default;
};

// The collectives of one kind in all steps of a run.
struct KnownKind {
  std::set<std::int64_t> classes{};  // size classes, as in Key
  Range more{0, 0};                  // calls beyond those of the usual step, in steps that have any

  bool operator==(const KnownKind&) const = default;
};
using KnownKinds = std::map<Key, KnownKind>;  // by kind_of()

struct Budget {
  std::vector<Limit> limits{};
  bool others_fail = true;       // NCCL calls without a limit fail
  std::optional<Model> model{};  // the source of the limits
  std::int64_t nranks = 0;       // of the budget's job; 0: unknown
  // By bucket; 0 for buckets that are missing. Absent: any number.
  std::optional<std::map<Bucket, SmallLimit>> small{};
  std::optional<KnownKinds> kinds{};  // of the budget's run; absent: unknown
};

Budget of_model(const Model& model);
bool has_copies(const Budget& budget);

// Makes a budget of a run, for all ranks, with a tolerance for bytes.
Budget of_run(const Measured& measured, double tolerance);

std::string bytes_text(double n);                                    // "1.2 GiB"
std::string calls_text(double n, const std::string& what = "call");  // "1 call", "2.5 calls"

struct Row {
  Members ranks{};
  Limit limit{};
  Range bytes{};  // the part of the limit that fits the number of calls
  bool has_limit = true;
  Moved moved{};
  std::vector<std::string> dtypes{};  // that occurred
  bool within = true;
  Moved small{};  // the bucket's small calls that may belong to this row
  bool with_small =
      false;  // within if some of these belong here, or fewer than in the budget's run
};

struct Small {
  Members ranks;
  Bucket bucket = Bucket::ALLREDUCE;
  Moved moved;
  std::optional<double> most{};  // calls

  bool within() const { return !most || moved.calls <= *most; }
};

// Limits leave out small calls, but some may belong there: gradients of small parameters, or calls
// that were on the other side of the border in the budget's run. Returns whether everything is
// within then. `most`: the budget's small calls.
bool within_with_small(const Range& calls, const Range& bytes, const Moved& moved,
                       const Moved& small, const SmallLimit& most);

// Steps with equally many extra calls of a kind.
struct OtherSteps {
  std::vector<std::int64_t> steps{};  // ascending
  Key kind{};
  Moved more{};
  std::string in_run{};  // does the budget's run have them: "yes", "other number", "never", or ""
};

struct Compared {
  bool within = true;
  std::size_t if_steps = 0;  // only if so many found ones are steps; 0: in any case
  std::vector<Row> rows{};
  std::vector<Small> small{};            // norms, losses, barriers: in no row
  std::vector<std::string> sentences{};  // explanations of differences, without full stop
  std::vector<std::string> notes{};
  std::vector<OtherSteps> other_steps{};  // other than the usual one
  // Extra calls that no step of the budget's run is known to make, and in how many steps: "steps
  // 4,9 have 1 ncclAllGather of float32 more, of …"
  std::string unlike_text{};
  std::size_t unlike_steps = 0;
  filter::Words only{};  // the ranks; empty: all
};

Compared compare(const Measured& measured, const Budget& budget);

// Returns sentences without a full stop for each bucket that is not within. The rows belong to the
// same ranks.
std::vector<std::string> explain(std::span<const Row> rows, const Budget& budget);

// Budgets as files: budget.schema.json says what is in them.
constexpr const char* kFileSchema = "tprof-budget/1";

Budget read_file(const std::filesystem::path& file);                       // throws BadInput
void write_file(const Budget& budget, const std::filesystem::path& file);  // must not exist

// Unmarked steps may be micro-batches: the run is read both ways, and if both are possible, nothing
// is blamed.
struct Reading {
  Measured measured{};
  Compared compared{};
};

// Measures with steps of this many found ones, if these may be micro-batches.
using Measure = std::function<Measured(std::uint64_t micro_batches)>;

// Compares with what the model should move. Throws BadInput that asks for the number of steps, if
// the reading matters and is unclear.
Reading against(const Model& model, const Measure& measure);

// Compares with a budget, by steps of this many micro-batches. Throws BadInput that asks for the
// number of steps, if a step of the budget has the work of several found ones.
Reading against(const Budget& budget, std::uint64_t micro_batches, const Measure& measure);

// `width`: of the table's lines, if possible.
std::string to_text(const Measured& measured, const Compared& compared, std::size_t width);
std::string to_json(const job::Job& job, const Measured& measured, const Compared& compared);

}  // namespace tprof::budget
