// Keeps what ranks did between two looks, and since the view was reset.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "live/rank.h"

namespace tprof::live {

// Stands for all buckets together, where a bucket's number is asked for.
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
  // Returns nullopt for a rank that does not run, or was not there before.
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

}  // namespace tprof::live
