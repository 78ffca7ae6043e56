// The tables of `tprof top`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "live/history.h"

namespace tprof::live {

enum class Column { rank, state, step, calls_rate, bytes_rate, calls, bytes, exposed, dropped };
inline constexpr std::size_t kColumns = 9;
std::string_view name_of_column(Column column);

// What is shown, and how.
struct Shown {
  std::string title;  // whose ranks they are
  std::vector<Rank> ranks;
  const History* history = nullptr;
  std::size_t bucket = kAllBuckets;  // that the figures of the ranks are of
  Column sorted_by = Column::rank;
};

// A row for each rank, one for each bucket with calls, and the calls that are open. `lines`: so
// many at most; 0: all of them.
std::string to_text(Shown view, std::size_t lines = 0);

// Schema tprof-top/1.
std::string to_json(const Shown& view);

}  // namespace tprof::live
