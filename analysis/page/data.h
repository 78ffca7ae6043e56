// The page's data as JSON, bounded for any number of ranks and steps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "page/page.h"
#include "report/table.h"

namespace tprof::page {

using report::For;
using report::Json;
using report::or_null;
using report::Section;

// Returns schema tprof-report/1 (analysis/report/README.md).
Json data_of(const Gathered& g);

// The tables of the page with all rows; the screen shows the first rows of some.
Section buckets_of(const Gathered& g, For who);
Section operations_of(const Gathered& g, For who);
Section late_of(const Gathered& g, For who);
Section late_places_of(const Gathered& g);
Section waits_of(const Gathered& g);
Section communicators_of(const Gathered& g);

// Data for drawings.
Json step_of(const Gathered& g);
Json per_rank_of(const Gathered& g);
Json heat_of(const Gathered& g);
Json histograms_of(const Gathered& g);
Json timelines_of(const Gathered& g);

// The parts of the usual step, in order.
struct PartOfStep {
  const char* key;
  const char* name;
  std::int64_t ns;
};
std::vector<PartOfStep> parts_of(const Gathered& g);

// Something that was not seen. n: how much; 0: not counted.
struct Unseen {
  std::string what;
  std::uint64_t n = 0;
  text::Ranks ranks{};
};
bool tells_unseen(check::Kind kind);
std::vector<Unseen> unseen_by(const Gathered& g);

// Describes the filters and what they apply to; empty: none.
std::string only_text_of(const Gathered& g);

// Divides `n` items into at most `most` bins of neighbours.
class Bins {
 public:
  Bins(std::size_t n, std::size_t most) : n_(n), width_(n == 0 ? 1 : (n + most - 1) / most) {}

  std::size_t size() const { return (n_ + width_ - 1) / width_; }
  std::size_t of(std::size_t i) const { return i / width_; }
  std::size_t first(std::size_t bin) const { return bin * width_; }
  std::size_t last(std::size_t bin) const { return std::min(n_, (bin + 1) * width_) - 1; }

 private:
  std::size_t n_;
  std::size_t width_;
};

struct Cell {
  bool known = false;
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::size_t worst = 0;  // the row with the maximum
};

class Grid {
 public:
  Grid(Bins rows, Bins columns)
      : rows_(rows), columns_(columns), cells_(rows.size() * columns.size()) {}

  void add(std::size_t row, std::size_t column, std::int64_t value) {
    Cell& cell = cells_[rows_.of(row) * columns_.size() + columns_.of(column)];
    // Rows come in any order.
    if (!cell.known || value > cell.most || (value == cell.most && row < cell.worst)) {
      cell.most = value;
      cell.worst = row;
    }
    cell.least = cell.known ? std::min(cell.least, value) : value;
    cell.known = true;
  }

  const Bins& rows() const { return rows_; }
  const Bins& columns() const { return columns_; }
  const std::vector<Cell>& cells() const { return cells_; }  // row by row

 private:
  Bins rows_;
  Bins columns_;
  std::vector<Cell> cells_;
};

// Returns the difference of two times; negative if a file has impossible times.
inline std::int64_t between(std::int64_t from_ns, std::int64_t to_ns) {
  constexpr std::int64_t kLongest = 1'000'000'000'000'000;  // 11 days
  const auto ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(to_ns) -
                                            static_cast<std::uint64_t>(from_ns));
  return ns > kLongest || to_ns < from_ns ? -1 : ns;
}

// Returns the index of a number in an ascending list; its size if missing.
inline std::size_t place_of(const std::vector<std::int64_t>& ascending, std::int64_t number) {
  const auto at = std::ranges::lower_bound(ascending, number);
  if (at == ascending.end() || *at != number) return ascending.size();
  return static_cast<std::size_t>(at - ascending.begin());
}

}  // namespace tprof::page
