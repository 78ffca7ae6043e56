#include "live/history.h"

namespace tprof::live {
namespace {

Figures figures_of(const read::Amounts& a) {
  return {a.calls, a.bytes, a.exposure_known_ns, a.exposed_ns, a.device_timed, a.exposure_known};
}

}  // namespace

std::string_view name_of_bucket(std::size_t bucket) {
  return bucket == kAllBuckets ? "ALL" : kBuckets[bucket].name;
}

Figures& Figures::operator+=(const Figures& more) {
  calls += more.calls;
  bytes += more.bytes;
  exposure_known_ns += more.exposure_known_ns;
  exposed_ns += more.exposed_ns;
  device_timed += more.device_timed;
  exposure_known += more.exposure_known;
  return *this;
}

std::optional<double> Figures::exposed() const {
  if (exposure_known_ns == 0) return std::nullopt;
  return static_cast<double>(exposed_ns) / static_cast<double>(exposure_known_ns);
}

Rate& Rate::operator+=(const Rate& more) {
  calls += more.calls;
  bytes += more.bytes;
  return *this;
}

void History::look(const std::vector<Rank>& ranks) {
  before_ = std::move(now_);
  now_.clear();
  for (const Rank& rank : ranks) {
    Seen& seen = now_[key_of(rank)];
    seen.as_of_ns = rank.as_of_ns;
    for (std::size_t b = 0; b < kBucketCount; ++b) seen.figures[b] = figures_of(rank.buckets[b]);
    seen.figures[kAllBuckets] = figures_of(rank.all);
  }
}

Figures History::total(const Rank& rank, std::size_t bucket) const {
  const Figures now = now_.at(key_of(rank)).figures[bucket];
  const auto base = base_.find(key_of(rank));
  return base == base_.end() ? now : now - base->second.figures[bucket];
}

std::optional<Rate> History::rate(const Rank& rank, std::size_t bucket) const {
  const Seen& now = now_.at(key_of(rank));
  const auto before = before_.find(key_of(rank));
  if (!rank.runs() || before == before_.end()) return std::nullopt;
  const std::int64_t ns = now.as_of_ns - before->second.as_of_ns;
  if (ns <= 0) return std::nullopt;
  const Figures more = now.figures[bucket] - before->second.figures[bucket];
  const double seconds = static_cast<double>(ns) / 1e9;
  return Rate{static_cast<double>(more.calls) / seconds, static_cast<double>(more.bytes) / seconds};
}

}  // namespace tprof::live
