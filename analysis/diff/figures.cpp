// The figures of a run's usual steps that are compared with those of another run.
#include <cstdlib>

#include "diff/usual.h"

namespace tprof::diff {
namespace {

using Of = TimeChange::Of;
using read::Amounts;

// busbw, of copies algbw.
double bandwidth(const OpKind& kind, const Amounts& s, const Run& run) {
  const std::int64_t n = kind.size == "world" ? run.world : std::atoll(kind.size.c_str());
  const read::Amounts a = {
      .device_ns = s.device_ns, .device_timed = s.device_timed, .device_bytes = s.device_bytes};
  const auto algbw = stats::algbw(a);
  return stats::busbw({kind.bucket, {}, {}, {}, n}, a).value_or(algbw.value_or(0));
}

}  // namespace

Figures figures_of(const Usual& side, bool waiting_known) {
  Figures all;
  const auto between = [&](Of of, const OpKind& kind, double least, double most) {
    Series& series = all[{of, kind}];
    series.least.push_back(least);
    series.most.push_back(most);
  };
  const auto exact = [&](Of of, const OpKind& kind, double value) {
    between(of, kind, value, value);
  };
  const auto if_any = [&](Of of, const OpKind& kind, double value) {
    if (value > 0) exact(of, kind, value);
  };
  for (const Step* step : side.steps) {
    if (const auto& p = step->parts) {
      between(Of::compute, {}, p->compute, p->compute + p->unsure);
      exact(Of::unsure, {}, p->unsure);
      if (waiting_known) exact(Of::waiting, {}, p->waiting);
      if (waiting_known) exact(Of::transfers, {}, p->transfers);
      if (!waiting_known) exact(Of::communication, {}, p->waiting + p->transfers);
      between(Of::idle, {}, p->idle, p->idle + p->unsure);
    }
    std::map<OpKind, Amounts> buckets;
    std::map<OpKind, Amounts> of_any_type;
    for (const auto& [kind, sums] : step->kinds) {
      buckets[{.bucket = kind.bucket}] += sums;
      OpKind any_type = kind;
      any_type.dtype.clear();
      of_any_type[any_type] += sums;
    }
    for (const auto& [kind, sums] : buckets) {
      if_any(Of::device, kind, device_ns(sums) / side.ranks());
      if (!stats::has_host_side(kind.bucket)) continue;
      if_any(Of::host, kind, static_cast<double>(sums.host_ns) / side.ranks());
    }
    for (const auto& [kind, sums] : of_any_type) {
      if_any(is_copy(kind.bucket) ? Of::algbw : Of::busbw, kind, bandwidth(kind, sums, side.run));
    }
  }
  return all;
}

}  // namespace tprof::diff
