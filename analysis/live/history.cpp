#include "live/history.h"

#include <algorithm>

namespace tprof::live {
namespace {

read::Amounts operator-(read::Amounts now, const read::Amounts& before) {
  for (const read::Figure& figure : read::kFigures) now.*figure.of -= before.*figure.of;
  return now;
}

}  // namespace

std::string_view name_of_bucket(std::size_t bucket) {
  return bucket == kAllBuckets ? "ALL" : kBuckets[bucket].name;
}

void History::look(const std::vector<Rank>& ranks) {
  before_ = std::move(now_);
  now_.clear();
  for (const Rank& rank : ranks) {
    Seen& seen = now_[key_of(rank)];
    seen.as_of_ns = rank.as_of_ns;
    std::ranges::copy(rank.buckets, seen.figures.begin());
    seen.figures[kAllBuckets] = rank.all;
  }
}

read::Amounts History::total(const Rank& rank, std::size_t bucket) const {
  const read::Amounts& now = now_.at(key_of(rank)).figures[bucket];
  const auto base = base_.find(key_of(rank));
  return base == base_.end() ? now : now - base->second.figures[bucket];
}

std::optional<Rate> History::rate(const Rank& rank, std::size_t bucket) const {
  const Seen& now = now_.at(key_of(rank));
  const auto before = before_.find(key_of(rank));
  if (!rank.runs() || before == before_.end()) return std::nullopt;
  const std::int64_t ns = now.as_of_ns - before->second.as_of_ns;
  if (ns <= 0) return std::nullopt;
  const read::Amounts more = now.figures[bucket] - before->second.figures[bucket];
  const double seconds = static_cast<double>(ns) / 1e9;
  return Rate{static_cast<double>(more.calls) / seconds, static_cast<double>(more.bytes) / seconds};
}

}  // namespace tprof::live
