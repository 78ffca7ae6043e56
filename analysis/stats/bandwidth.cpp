#include "stats/bandwidth.h"

namespace tprof::stats {
namespace {

double bus_factor(Bucket bucket, std::int64_t nranks) {
  const double share = static_cast<double>(nranks - 1) / static_cast<double>(nranks);
  switch (bucket) {
    case Bucket::ALLREDUCE:
      return 2 * share;
    case Bucket::ALLGATHER:
    case Bucket::RESHARDING:
    case Bucket::ALLTOALL:
    case Bucket::OTHER_COLL:  // Gather, Scatter
      return share;
    default:
      return 1;
  }
}

}  // namespace

std::optional<double> algbw(const read::Amounts& a) {
  if (a.calls == 0 || a.device_timed != a.calls || a.device_ns == 0) return std::nullopt;
  return static_cast<double>(a.bytes) / static_cast<double>(a.device_ns);
}

std::optional<double> busbw(const OpKey& key, const read::Amounts& amounts) {
  const auto bandwidth = algbw(amounts);
  if (!bandwidth || is_copy(key.bucket) || key.nranks < 1) return std::nullopt;
  return *bandwidth * bus_factor(key.bucket, key.nranks);
}

}  // namespace tprof::stats
