#include "why/came_lines.h"

#include <algorithm>

#include "interpose/format/record.h"

namespace tprof::why {

CameLines::CameLines(const read::Process& rank, const LastCame* last_came) {
  for (const read::Row& row : read::rows_of(rank)) {
    const bool known =
        std::ranges::count(buckets_, row.name, &decltype(buckets_)::value_type::first);
    if (!is_copy(row.bucket) && !known) buckets_.emplace_back(row.name, row.bucket);
  }
  if (last_came != nullptr) last_.emplace(*last_came, rank);
}

void CameLines::device_time(const read::DeviceTime& t) {
  bucket = nullptr;
  came.reset();
  if (t.launch || !t.comm) return;
  static const text::Kept kGroup(kGroupName);
  static constexpr Bucket kOfGroup = Bucket::OTHER_COLL;  // it may have calls of several
  const auto known = std::ranges::find(buckets_, t.name, &decltype(buckets_)::value_type::first);
  if (known == buckets_.end() && t.name != kGroup) return;
  bucket = t.name == kGroup ? &kOfGroup : &known->second;
  if (last_) came = last_->of(t);
}

}  // namespace tprof::why
