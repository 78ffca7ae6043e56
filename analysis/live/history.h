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

struct Figures {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::uint64_t exposure_known_ns = 0;  // device time of calls whose exposed time is known
  std::uint64_t exposed_ns = 0;
  std::uint64_t device_timed = 0;
  std::uint64_t exposure_known = 0;  // of these calls

  Figures operator-(const Figures& before) const {
    return {calls - before.calls,
            bytes - before.bytes,
            exposure_known_ns - before.exposure_known_ns,
            exposed_ns - before.exposed_ns,
            device_timed - before.device_timed,
            exposure_known - before.exposure_known};
  }
  // A share that is known of less than half of the timed calls says nothing of the others.
  bool exposure_tells() const { return 2 * exposure_known >= device_timed; }
  Figures& operator+=(const Figures& more);
  std::optional<double> exposed() const;  // a share; nullopt: not known of any call
};

struct Rate {
  double calls = 0;  // per second
  double bytes = 0;

  Rate& operator+=(const Rate& more);
};

class History {
 public:
  void look(const std::vector<Rank>& ranks);
  void reset() { base_ = now_; }  // counting starts from here

  Figures total(const Rank& rank, std::size_t bucket) const;
  // Returns nullopt for a rank that does not run, or was not there before.
  std::optional<Rate> rate(const Rank& rank, std::size_t bucket) const;

 private:
  using Key = std::pair<std::string, std::size_t>;  // the file and the lane
  struct Seen {
    std::int64_t as_of_ns = 0;
    std::array<Figures, kBucketCount + 1> figures{};
  };
  using All = std::map<Key, Seen>;
  static Key key_of(const Rank& rank) { return {rank.process->file, rank.process->lane}; }

  All before_;
  All now_;
  All base_;
};

}  // namespace tprof::live
