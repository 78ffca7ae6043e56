// When the last rank came to the call whose device time is being read, for all who want to know.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "collect/lines.h"
#include "why/transfers.h"

namespace tprof::why {

class CameLines : public collect::Collector {
 public:
  CameLines(const read::Process& rank, const LastCame* last_came)
      : Collector(rank), last_came_(last_came) {}

  bool wants_times() const override { return true; }
  void device_time(const read::DeviceTime& t) override;
  void end() override { lines_.reset(); }
  void state(team::Archive& /*nothing is kept*/) override {}
  bool is_done() const override { return true; }

  // Both are of the line. Lines of device times have names only: the buckets are those of the
  // ledger.
  const Bucket* bucket = nullptr;  // null: it is no call of NCCL
  std::optional<Came> came{};      // nullopt: not known

 private:
  // Not before the rank's turn: collectors of all ranks are made before the first is read.
  struct Lines {
    Lines(const read::Process& rank, const LastCame* last_came);
    std::vector<std::pair<text::Kept, Bucket>> buckets{};  // of functions, of which there are few
    std::optional<LastCameTo> came{};
  };
  const LastCame* last_came_;  // may be null
  std::unique_ptr<Lines> lines_{};
};

// Has it read each line before those that are wanted behind it. `last_came` may be null.
const CameLines& want_came(const read::Process& rank, collect::Collectors& all,
                           const LastCame* last_came);

}  // namespace tprof::why
