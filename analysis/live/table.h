// The counts of ranks so far: tables for `tprof top`, and a page for Prometheus.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "live/look.h"

namespace tprof::live {

// Keeps what ranks did between two looks, and since the last reset.

// All buckets together, as a bucket's number.
inline constexpr std::size_t kAllBuckets = kBucketCount;
std::string_view name_of_bucket(std::size_t bucket);

struct Rate {
  double calls = 0;  // per second
  double bytes = 0;
};

class History {
 public:
  void look(const std::vector<Rank>& ranks);
  void reset() { base_ = now_; }  // counting starts from here

  read::Amounts total(const Rank& rank, std::size_t bucket) const;
  // Returns nullopt for a rank that does not run, or was not seen before.
  std::optional<Rate> rate(const Rank& rank, std::size_t bucket) const;

 private:
  using Key = std::pair<std::string, std::size_t>;  // the file and the lane
  struct Seen {
    std::int64_t as_of_ns = 0;
    std::array<read::Amounts, kBucketCount + 1> figures{};
  };
  using All = std::map<Key, Seen>;
  static Key key_of(const Rank& rank) { return {rank.process->file, rank.process->lane}; }

  All before_;
  All now_;
  All base_;
};

enum class Column { rank, state, step, calls_rate, bytes_rate, calls, bytes, exposed, dropped };
inline constexpr std::size_t kColumns = 9;
std::string_view name_of_column(Column column);

// The content of the tables, and how it is shown.
struct Shown {
  std::string title;  // names the job
  std::vector<Rank> ranks;
  const History* history = nullptr;
  std::size_t bucket = kAllBuckets;  // the bucket of the ranks' figures
  Column sorted_by = Column::rank;
};

// Returns a row for each rank, one for each bucket with calls, and the open calls, in at most
// `lines` lines; 0: no limit.
std::string to_text(const Shown& view, std::size_t lines = 0);

// Returns the tables as JSON, schema tprof-top/1.
std::string to_json(const Shown& view);

// Returns the counts of ranks in the text exposition format, version 0.0.4.
std::string exposition(const std::vector<Rank>& ranks);

}  // namespace tprof::live
