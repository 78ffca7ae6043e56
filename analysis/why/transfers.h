// How long the transfers of each communicator took, and when the last rank came to them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/host_clocks.h"
#include "diagnose/meetings.h"
#include "interpose/format/buckets.h"
#include "run/lines.h"
#include "text/ranks.h"
#include "why/messages.h"

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

// When the last rank came to a collective, the other one to a message, or the last other one to
// the messages of a group.
struct Came {
  static constexpr std::int64_t kSeveral = -2;  // a group's messages may have any
  std::int64_t at_ns = 0;  // on the clock of the rank that asks, relative to its base
  std::int64_t size_class = 0;
};

// When the last rank came to collectives and messages, so that the others no longer waited for it.
class LastCame {
 public:
  LastCame(std::shared_ptr<const diagnose::Meetings> meetings, diagnose::HostClocks clocks);

  // Takes the moment on the axis of the communicator's first host.
  void add(const diagnose::Meeting& m, std::int64_t at_ns);
  // Takes the moments at which the other end came, on that axis.
  void add(const Message& m, std::int64_t sender_ns, std::int64_t receiver_ns);
  void all_are_added();

  std::int64_t on_axis(const read::Process& rank, std::int64_t ts_ns) const;

 private:
  struct Collectives {
    // By number, on the axis of the first host of those that can be compared. 0: not known.
    std::vector<std::int64_t> came{};
    std::vector<std::uint8_t> size_classes{};
  };
  struct End {
    std::int64_t called_ns;
    bool sends;
    std::uint8_t size_class;
    std::uint64_t of_group;  // as in MessageEnd
    std::int64_t came_ns;    // the other one, on the clock of this
  };
  friend class LastCameTo;
  std::int64_t on_clock(const read::Process& rank, std::int64_t at_ns) const;

  std::shared_ptr<const diagnose::Meetings> meetings_;
  diagnose::HostClocks clocks_;
  std::map<std::string, Collectives, std::less<>> comms_;
  std::map<const read::Process*, std::vector<End>> messages_;
};

// The same for the calls of one rank, whose lines all ask for it.
class LastCameTo {
 public:
  LastCameTo(const LastCame& all, const read::Process& rank);
  std::optional<Came> of(const read::DeviceTime& t);  // nullopt: not known

 private:
  std::optional<Came> collective(std::int64_t comm, std::uint64_t seq);
  std::optional<Came> message(std::int64_t called_ns, bool sends) const;
  std::optional<Came> group(const read::DeviceTime& t) const;
  std::int64_t on_axis(std::int64_t ts_ns) const;

  const LastCame& all_;
  const read::Process& rank_;
  std::size_t host_;
  std::int64_t base_ns_;                                     // on its host's axis
  std::int64_t zero_ns_;                                     // on the axis of all
  const std::vector<LastCame::End>* messages_;               // null: none
  std::map<std::int64_t, const LastCame::Collectives*> on_;  // by communicator; null: none
};

struct Transfers {
  std::vector<Transfer> all{};
  std::unique_ptr<LastCame> last_came{};  // null: nothing was timed on the device
};

// `meetings` are those of these lines.
Transfers transfers_of(const run::Lines& lines, std::shared_ptr<const diagnose::Meetings> meetings);

}  // namespace tprof::why
