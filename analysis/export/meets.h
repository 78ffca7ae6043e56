// In which order ranks came to each collective, and the two ends of a message to it: where the
// arrows between ranks of a merged trace begin and end. In memory for each collective;
// until all ranks were read, for each call of theirs.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "read/events.h"
#include "read/process.h"

namespace tprof::trace_export {

// Calls that count together: the collectives of a communicator, or what one of its ranks sends to
// another.
struct Channel {
  static constexpr std::int64_t kAll = -1;
  std::uint32_t comm = 0;  // a number of the merged trace's
  std::int64_t from = kAll;
  std::int64_t to = kAll;

  auto operator<=>(const Channel&) const = default;  // NOLINT(modernize-use-nullptr)
};

// A call as one end of what meets others: of a collective, or of a message from or to a peer.
struct End {
  std::int64_t peer = Channel::kAll;
  bool receives = false;

  bool is_message() const { return peer != Channel::kAll; }
  // `rank`: the caller's in the communicator.
  Channel channel(std::uint32_t comm, std::int64_t rank) const {
    if (!is_message()) return {comm};
    return receives ? Channel{comm, peer, rank} : Channel{comm, rank, peer};
  }
};
// Nothing if the call is neither a collective nor one of ncclSend and ncclRecv, or has no number.
std::optional<End> end_of(const read::Event& call);

inline constexpr std::uint32_t kNoChannel = std::numeric_limits<std::uint32_t>::max();

struct Arrival {
  std::uint64_t seq = 0;
  std::int64_t at_ns = 0;  // on the axis of the merged trace
  std::uint32_t call = 0;  // of its rank's
};

class Meets {
 public:
  enum class Turn { none, first, between, last };

  // Numbers the communicators of these; those that can't be matched with others' have none.
  explicit Meets(const std::vector<const read::Process*>& processes);

  std::uint32_t comm_of(const read::Comm& comm) const;  // kNoChannel: none
  std::uint32_t number_of(const Channel& channel);

  // Adds the arrivals of a rank, ascending by seq, each once. Ranks may come in any order.
  void add(std::uint32_t channel, std::uint32_t rank, const std::vector<Arrival>& arrivals);

  // Has to be called when all were added: numbers what they came to, from 0 on. Returns how many
  // there are.
  std::int64_t number_meets();

  // Tells when a rank's turn was, and the number of what it came to. `none`: nobody else came.
  std::pair<Turn, std::int64_t> turn(std::uint32_t channel, std::uint32_t rank,
                                     const Arrival& arrival) const;

 private:
  struct Meet {
    std::uint64_t seq;
    std::int64_t first_ns;
    std::int64_t last_ns;
    std::uint32_t first;  // rank
    std::uint32_t last;
  };
  struct Table {
    Channel channel;
    std::vector<Meet> meets{};  // ascending by seq
    std::int64_t first = 0;     // number of the first of these
  };
  static void join(Meet& meet, std::uint32_t rank, std::int64_t at_ns);

  std::map<std::pair<std::string, std::int64_t>, std::uint32_t> comms_;  // by id and size
  std::map<Channel, std::uint32_t> numbers_;
  std::vector<Table> tables_;
};

}  // namespace tprof::trace_export
