// When the last rank came to the call whose device time is looked at.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "why/transfers.h"

namespace tprof::why {

class CameLines {
 public:
  CameLines(const read::Process& rank, const LastCame* last_came);  // which may be null

  void device_time(const read::DeviceTime& t);

  // Both are of the line. Lines of device times have names only: the buckets are those of the
  // ledger.
  const Bucket* bucket = nullptr;  // null: it is no call of NCCL
  std::optional<Came> came{};      // nullopt: not known

 private:
  std::vector<std::pair<text::Kept, Bucket>> buckets_{};  // of functions, of which there are few
  std::optional<LastCameTo> last_{};
};

}  // namespace tprof::why
