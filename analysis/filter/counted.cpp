#include "filter/counted.h"

#include <algorithm>
#include <bit>

#include "stats/totals.h"

namespace tprof::filter {
namespace {

LineKey key_of(const read::Event& e) {
  return {e.bucket, e.name, e.dtype, e.comm.value_or(-1), tprof::bytes_class(e.bytes)};
}

}  // namespace

LineKey key_of(const read::Row& row) {
  return {row.bucket, row.name, row.dtype, row.comm.value_or(-1), row.bytes_class};
}

void Counted::call(const read::Event& e) {
  ++in_lines;
  if (!e.chosen) ++left_out;
  if (e.unfinished || e.captured || e.failed) return;
  calls.call(e);
}

void Counted::take(const read::Event& e, const read::DeviceTime* t) {
  const LineKey key = key_of(e);
  if (lines.size() < kMost || lines.contains(key)) ++lines[key];
  if (!e.chosen) return;
  if (keeps && t != nullptr) begun.emplace(e.ts_ns, e.thread);
  const Key full{key, e.device, e.host_memory};
  if (passed.size() == kMost && !passed.contains(full)) return;
  read::Amounts one = stats::amounts_of(e);
  if (t != nullptr && t->calls != 0) {  // those of a group are alike
    const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(t->dur_ns, 0));
    one.device_timed = t->calls;
    one.device_ns = ns;
    one.device_ns_max = ns / t->calls;
    one.device_bytes = t->calls * e.bytes;
  }
  passed[full] += one;
}

void add_rows(const Counted& of, const std::function<bool(const LineKey&)>& wanted,
              read::Rows& to) {
  for (const auto& [key, amounts] : of.passed) {
    if (!wanted(key)) continue;
    read::Row row;
    row.bucket = key.bucket;
    row.name = key.name;
    row.dtype = key.dtype;
    if (key.comm >= 0) row.comm = key.comm;
    row.device = key.device;
    row.host_memory = key.host_memory;
    row.bytes_class = key.bytes_class;
    row.thread = ThreadKind::mixed;  // the lines alone do not always tell
    row.amounts = amounts;
    to.push_back(row);
  }
}

}  // namespace tprof::filter
