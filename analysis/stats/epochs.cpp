#include "stats/epochs.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "read/error.h"

namespace tprof::stats {
namespace {

using read::Amounts;
using read::Ledger;
using read::Row;

constexpr std::uint64_t Amounts::*kSums[] = {&Amounts::calls,          &Amounts::count,
                                             &Amounts::elements,       &Amounts::bytes,
                                             &Amounts::host_ns,        &Amounts::device_ns,
                                             &Amounts::device_timed,   &Amounts::device_bytes,
                                             &Amounts::exposure_known, &Amounts::exposure_known_ns,
                                             &Amounts::exposed_ns,     &Amounts::late,
                                             &Amounts::failed,         &Amounts::replayed};
constexpr std::uint64_t Amounts::*kLongest[] = {&Amounts::host_ns_max, &Amounts::device_ns_max,
                                                &Amounts::exposed_ns_max};

auto key_of(const read::RowKey& r) {
  return std::tuple(r.bucket, r.name, r.dtype, r.comm, r.device, r.host_memory, r.bytes_class,
                    r.mode, r.thread);
}

void subtract(Amounts& from, const Amounts& before) {
  for (const auto figure : kSums) from.*figure -= std::min(from.*figure, before.*figure);
  for (const auto longest : kLongest) {
    if (from.*longest == before.*longest) from.*longest = 0;
  }
}

const Ledger* end_of(const read::Process& p, std::int64_t epoch) {
  const auto end = std::ranges::find(p.epoch_ends, epoch, &Ledger::epoch);
  if (end != p.epoch_ends.end()) return &*end;
  return p.ledger && p.ledger->epoch == epoch ? &*p.ledger : nullptr;
}

}  // namespace

void keep_epoch(read::Process& p, std::int64_t epoch) {
  const Ledger* end = end_of(p, epoch);
  const Ledger* begin = epoch == 0 ? nullptr : end_of(p, epoch - 1);
  if (end == nullptr || (epoch != 0 && (begin == nullptr || !begin->ends_epoch))) {
    throw read::BadInput(p.file, "has no epoch " + std::to_string(epoch) +
                                     ": the program called tprof_reset less often, or its ledger "
                                     "could not be written");
  }
  Ledger own = *end;
  std::map<decltype(key_of({})), Amounts> before;
  if (begin != nullptr) {
    for (const Row& row : begin->rows) before[key_of(row)] = row.amounts;
  }
  own.rows.clear();
  for (Row row : end->rows) {
    const auto earlier = before.find(key_of(row));
    if (earlier != before.end()) subtract(row.amounts, earlier->second);
    if (row.amounts.calls + row.amounts.failed + row.amounts.unfinished != 0) {
      own.rows.push_back(row);
    }
  }
  for (read::Collectives& c : own.collectives) {
    if (begin == nullptr) break;
    const auto earlier = std::ranges::find(begin->collectives, c.comm, &read::Collectives::comm);
    if (earlier != begin->collectives.end()) c.count -= std::min(c.count, earlier->count);
  }
  p.ledger = std::move(own);
}

}  // namespace tprof::stats
