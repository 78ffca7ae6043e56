// "0-3,7", as the tool and as libtprof.so read it.
#include <stdexcept>

#include "cli/rank_list.h"
#include "support/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using tprof::cli::RankList;
  try {
    const RankList list = RankList::parse(tprof::fuzz::text_of(data, size));
    bool any = false;
    for (std::int64_t rank = 0; rank < 100; ++rank) any = list.contains(rank) || any;
    tprof::fuzz::promise(!list.contains(-1), "no negative rank");
  } catch (const std::invalid_argument&) {
    // What it says of a list that is none.
  }
  return 0;
}
