// The figures of calls, the same in all tables and commands. A row that has them holds them as
// `amounts`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "read/process.h"
#include "report/table.h"

namespace tprof::report {

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
