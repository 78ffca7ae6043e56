// The parts of `tprof summary`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/lateness.h"
#include "read/process.h"
#include "report/table.h"
#include "summary/summary.h"

namespace tprof::report {

// `none`: not given.
enum class By { none, size, op, comm, dtype, range, phase, step, site, layer, rank, wait };

// The filters that a table honours: all, ranks and steps, ranks, or none.
enum class Follows { calls, steps, ranks, nothing };

// The input that a table needs: the ledgers alone, event lines too, or also steps.
enum class Takes { ledgers, lines, steps };

struct ByRow {
  By by;
  const char* name;
  const char* about;  // for --help, after the name; empty: none
  const char* json;   // its key in the JSON; null: the report has it in another form
  Takes takes;
  Follows follows;
  std::vector<Section> (*sections)(const tables::Summary&, For);
};

std::span<const ByRow> by_rows();
const ByRow& row_of(By by);

std::string named(const tables::StepList& steps);  // "10-", "3-7", "3,5-7"

// Advice if no steps are known.
inline constexpr const char* kMarkThem =
    "mark them with tprof.step(), or TPROF_STEP=call:FUNCTION for the call that ends each step";

// Returns how they were found, and what is unknown.
Notes how_found(const steps::Found& found);

// The columns that separate the rows of one operation.
struct Apart {
  bool size = false;
  bool dtype = false;
  bool communicator = false;
  bool role = false;  // and communicator size
};
// `largest_first`: sorted by device time, or by bytes if that is unknown.
Section operation_section(const tables::Summary& summary, const char* title, Apart apart, For who,
                          bool largest_first = false);
// The times of one operation; null if unknown.
Json times_of(const tables::OpTimes& times, const tables::OpKey& key);

// Totals of all calls of each bucket.
Section bucket_section(const tables::Summary& summary, std::string title, For who);
// The calls of the ranks: by bucket, for one bucket, or for all together (kBucketCount).
Section rank_section(const tables::Summary& summary, For who, std::optional<std::size_t> bucket);
// Sections of buckets for programs only, with their keys.
std::vector<std::pair<const char*, Section>> split_buckets(const tables::Summary& summary);

// The times of operations over all sizes, types and communicators. `all`: the number of executed
// calls.
Section section_of(const tables::OpTimes& times, std::uint64_t all);
Section section_of(const tables::Memory& memory, For who);
Section section_of(const std::vector<tables::CommSummary>& comms, For who);
Section section_of(const why::WaitTable& waits, const std::vector<tables::CommSummary>& comms,
                   For who);
// `all`: the number of calls of the job, or of the chosen steps.
Section section_of(const tables::Slowest& slowest, const steps::Found& found, std::uint64_t all,
                   For who);
std::vector<Section> sections_of(const tables::Histogram& histogram, bool per_rank, For who);
// Separate tables.
std::vector<Section> range_sections(const tables::Summary& summary, For who);
std::vector<Section> site_sections(const tables::Summary& summary, For who);
std::vector<Section> phase_sections(const tables::Summary& summary, For who);
std::vector<Section> step_sections(const tables::Summary& summary, For who);
std::vector<Section> layer_sections(const tables::Summary& summary, For who);
std::vector<Section> sections_of(const check::Lateness& lateness, const steps::Found& found,
                                 For who);

using Figure = Column<read::Amounts>;
using Figures = std::vector<Figure>;

Figures call_figures(Show elements = Show::always);  // number and amounts
// Durations, and for how many calls they are known. `timed`: some are device times, so host times
// matter less.
Figures time_figures(bool timed);
Figure mean_host(Show show);
Figures people_only(Figures figures);

// Adds figure columns.
template <typename Row>
void append(std::vector<Column<Row>>& to, const Figures& figures) {
  for (const Figure& f : figures) {
    to.push_back(
        {f.title, f.key, f.unit, [of = f.of](const Row& r) { return of(r.amounts); }, f.show});
  }
}

// False if exposed time is known for less than half of the timed calls.
bool exposure_tells(const read::Amounts& a);

// A row with calls of a bucket.
struct BucketRow {
  std::string label;
  std::string bucket;
  read::Amounts amounts;
  Value by{};
};

// Adds a row for each bucket that has calls.
template <typename Buckets>
void add_rows(std::vector<BucketRow>& to, std::string_view label, const Buckets& buckets,
              const Value& by = {}) {
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (buckets[b].calls == 0) continue;
    to.push_back({std::string(label), std::string(kBuckets[b].name), buckets[b], by});
  }
}

// The columns of such a table.
std::vector<Column<BucketRow>> bucket_columns(const char* title, const char* key,
                                              std::optional<Column<BucketRow>> by = {});

Json figures(const read::Amounts& a);  // all figures as an object

}  // namespace tprof::report
