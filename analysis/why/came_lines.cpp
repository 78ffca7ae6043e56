#include "why/came_lines.h"

#include <algorithm>

#include "interpose/format/record.h"

namespace tprof::why {

CameLines::Lines::Lines(const read::Process& rank, const LastCame* last_came) {
  for (const read::Row& row : read::rows_of(rank)) {
    const bool known = std::ranges::count(buckets, row.name, &decltype(buckets)::value_type::first);
    if (!is_copy(row.bucket) && !known) buckets.emplace_back(row.name, row.bucket);
  }
  if (last_came != nullptr) came.emplace(*last_came, rank);
}

void CameLines::device_time(const read::DeviceTime& t) {
  bucket = nullptr;
  came.reset();
  if (t.launch || !t.comm) return;
  if (!lines_) lines_ = std::make_unique<Lines>(rank_, last_came_);
  static const text::Kept kGroup(kGroupName);
  static constexpr Bucket kOfGroup = Bucket::OTHER_COLL;  // it may have calls of several
  const auto known =
      std::ranges::find(lines_->buckets, t.name, &decltype(lines_->buckets)::value_type::first);
  if (known == lines_->buckets.end() && t.name != kGroup) return;
  bucket = t.name == kGroup ? &kOfGroup : &known->second;
  if (lines_->came) came = lines_->came->of(t);
}

const CameLines& want_came(const read::Process& rank, collect::Collectors& all,
                           const LastCame* last_came) {
  collect::want<CameLines>(rank, all, last_came);
  return static_cast<const CameLines&>(*all.find(typeid(CameLines)));
}

}  // namespace tprof::why
