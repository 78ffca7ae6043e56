// How long the transfers of each communicator took, and who came last to them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "interpose/format/buckets.h"
#include "job/jobs.h"
#include "run/run.h"
#include "text/ranks.h"

namespace tprof::why {

// How often a rank was the last to come, by more than the clocks may be wrong, and how long after
// the last but one.
struct CameLast {
  std::uint64_t times = 0;
  std::int64_t sum_ns = 0;
  std::int64_t most_ns = 0;
};

// The collectives of one kind and size on one communicator, of which all ranks' times on the device
// are known; or its messages, of which both ends' are.
struct Transfer {
  std::string comm{};  // id
  Bucket bucket = Bucket::ALLGATHER;
  std::int64_t size_class = 0;  // floor(log2(bytes))
  text::Ranks ranks{};
  std::vector<std::string> hosts{};
  std::uint64_t collectives = 0;  // or messages
  std::uint64_t calls = 0;        // of one rank, as its ledger has them
  std::uint64_t bytes = 0;        // likewise
  std::int64_t usual_ns = 0;      // the median transfer
  std::int64_t quick_ns = 0;      // nine of ten take longer
  std::map<const read::Process*, CameLast> last{};
};

struct Transfers {
  std::vector<Transfer> all{};
  bool known = false;  // false: nothing was timed on the device
};

Transfers transfers_of(const run::Run& run, const job::Job& job);

}  // namespace tprof::why
