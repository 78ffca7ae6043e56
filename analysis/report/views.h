// The parts of `tprof summary`, each made from what it shows.
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

// `none`: nobody asked for one.
enum class By { none, size, op, comm, dtype, range, phase, step, site, layer, rank, wait };

// A table honours all filters, those of ranks and steps, that of ranks, or none.
enum class Follows { calls, steps, ranks, nothing };

// Tells what a table is made from: the ledgers alone, event lines too, or also the steps that are
// found.
enum class Takes { ledgers, lines, steps };

struct ByRow {
  By by;
  const char* name;
  const char* about;  // for --help, behind the name; empty: the name tells
  const char* json;   // its key in the JSON; null: the report has that anyway, shaped otherwise
  Takes takes;
  Follows follows;
  std::vector<Section> (*sections)(const tables::Summary&, For);
};

std::span<const ByRow> by_rows();
const ByRow& row_of(By by);

std::string named(const tables::StepList& steps);  // "10-", "3-7", "3,5-7"

// The way out where no steps are known.
inline constexpr const char* kMarkThem =
    "mark them: tprof.step(), or TPROF_STEP=call:FUNCTION that ends each step";

// Returns how they were found, and what is not known about them.
Notes how_found(const steps::Found& found);

// These tell the rows of one operation apart.
struct Apart {
  bool size = false;
  bool dtype = false;
  bool communicator = false;
  bool role = false;  // and size of the communicator
};
// `largest_first`: those that took longest on the device, or moved most if that is not known.
Section operation_section(const tables::Summary& summary, const char* title, Apart apart, For who,
                          bool largest_first = false);
// The times of one of them. Null if nothing is known of it.
Json times_of(const tables::OpTimes& times, const tables::OpKey& key);

// Totals of all calls of each bucket.
Section bucket_section(const tables::Summary& summary, std::string title, For who);
// The calls of the ranks: of all buckets, or of one of them. kBucketCount: of all together.
Section rank_section(const tables::Summary& summary, For who, std::optional<std::size_t> bucket);
// Sections of the buckets that only programs see, each with its key.
std::vector<std::pair<const char*, Section>> split_buckets(const tables::Summary& summary);

// The times of operations, whatever their sizes, types and communicators. `all` is the number of
// executed calls.
Section section_of(const tables::OpTimes& times, std::uint64_t all);
Section section_of(const tables::Memory& memory, For who);
Section section_of(const std::vector<tables::CommSummary>& comms, For who);
Section section_of(const why::WaitTable& waits, const std::vector<tables::CommSummary>& comms,
                   For who);
// `all` is the number of calls of the job, or of the steps that were asked for.
Section section_of(const tables::Slowest& slowest, const steps::Found& found, std::uint64_t all,
                   For who);
std::vector<Section> sections_of(const tables::Histogram& histogram, bool per_rank, For who);
// These are tables of their own.
std::vector<Section> range_sections(const tables::Summary& summary, For who);
std::vector<Section> site_sections(const tables::Summary& summary, For who);
std::vector<Section> phase_sections(const tables::Summary& summary, For who);
std::vector<Section> step_sections(const tables::Summary& summary, For who);
std::vector<Section> layer_sections(const tables::Summary& summary, For who);
std::vector<Section> sections_of(const check::Lateness& lateness, const steps::Found& found,
                                 For who);

using Figure = Column<read::Amounts>;
using Figures = std::vector<Figure>;

Figures call_figures(Show elements = Show::always);  // how many, and what they moved
// How long they took, and for how many that is known. `timed`: some were on the device, so that
// the host's time matters less.
Figures time_figures(bool timed);
Figure mean_host(Show show);
Figures people_only(Figures figures);

// Adds columns of the row's figures.
template <typename Row>
void append(std::vector<Column<Row>>& to, const Figures& figures) {
  for (const Figure& f : figures) {
    to.push_back(
        {f.title, f.key, f.unit, [of = f.of](const Row& r) { return of(r.amounts); }, f.show});
  }
}

// Exposed time that is known of less than half of the timed calls says nothing of the others.
bool exposure_tells(const read::Amounts& a);

// The calls of a bucket, in a table whose other columns say which of them.
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

Json figures(const read::Amounts& a);  // all of them as an object

}  // namespace tprof::report
