// How long the transfers of each communicator took, and when the last rank came to them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collect/passes.h"
#include "diagnose/host_clocks.h"
#include "diagnose/meetings.h"
#include "interpose/format/buckets.h"
#include "text/ranks.h"

namespace tprof::why {

// The collectives of one kind on one communicator, of which all ranks' times on the device are
// known.
struct Transfer {
  std::string comm{};  // id
  Bucket bucket = Bucket::ALLGATHER;
  text::Ranks ranks{};
  std::vector<std::string> hosts{};
  std::uint64_t collectives = 0;
  std::uint64_t calls = 0;    // of one rank, as its ledger has them
  std::uint64_t bytes = 0;    // likewise
  std::int64_t usual_ns = 0;  // the median transfer
};

// When the last rank came to collectives, so that the others no longer waited for it.
class LastCame {
 public:
  LastCame(std::shared_ptr<const diagnose::Meetings> meetings, diagnose::HostClocks clocks);

  // Takes the moment on the axis of the communicator's first host.
  void add(const diagnose::Meeting& m, std::int64_t at_ns);

  // On the clock of the rank that asks, relative to its base. Nullopt: not known.
  std::optional<std::int64_t> at(const read::Process& rank, std::int64_t comm,
                                 std::uint64_t seq) const;

 private:
  std::int64_t on_axis(const read::Process& rank, std::int64_t ts_ns) const;

  std::shared_ptr<const diagnose::Meetings> meetings_;
  diagnose::HostClocks clocks_;
  // By communicator; by number, on the axis of the first host of those that can be compared. 0: not
  // known.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> comms_;
};

struct Transfers {
  std::vector<Transfer> all{};
  std::unique_ptr<LastCame> last_came{};  // null: nothing was timed on the device
};

// Takes the lines of the next pass; `to` has to stay until then.
void want_transfers(collect::Passes& passes, Transfers& to);

}  // namespace tprof::why
