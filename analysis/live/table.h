// The counts of ranks so far: the tables of `tprof top`, and a page for Prometheus.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "live/history.h"

namespace tprof::live {

enum class Column { rank, state, step, calls_rate, bytes_rate, calls, bytes, exposed, dropped };
inline constexpr std::size_t kColumns = 9;
std::string_view name_of_column(Column column);

// The content of the tables, and how it is shown.
struct Shown {
  std::string title;  // says whose ranks they are
  std::vector<Rank> ranks;
  const History* history = nullptr;
  std::size_t bucket = kAllBuckets;  // the bucket of the ranks' figures
  Column sorted_by = Column::rank;
};

// Returns a row for each rank, one for each bucket with calls, and the calls that are open. There
// are at most `lines` lines; 0: all of them.
std::string to_text(const Shown& view, std::size_t lines = 0);

// Returns the tables as JSON, schema tprof-top/1.
std::string to_json(const Shown& view);

// Returns the counts of ranks in the text exposition format, version 0.0.4.
std::string exposition(const std::vector<Rank>& ranks);

}  // namespace tprof::live
