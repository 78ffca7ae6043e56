// The graph of who waits for whom at the end of a job.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/calls.h"
#include "diagnose/diagnosis.h"
#include "diagnose/operations.h"

namespace tprof::diagnose {

// Who came to a call of a communicator's life that not all have returned from.
struct LifeMeeting {
  std::uint64_t ranks = 0;    // that have to come
  std::uint64_t missing = 0;  // how many of them have not come
  Processes returned{};
};

// A call that did not return.
struct OpenCall {
  const read::Process* process = nullptr;
  const Communicator* communicator = nullptr;  // null: a copy
  const Member* member = nullptr;              // the process as a member of it
  std::string function;
  bool collective = false;
  std::optional<std::uint64_t> seq{};
  std::optional<std::int64_t> peer{};
  std::optional<std::int64_t> since_ns{};  // CLOCK_REALTIME; unknown without a line
  std::optional<std::int64_t> thread{};    // unknown without a line, too
  const read::LifeCall* life = nullptr;    // it makes or ends a communicator
  std::optional<LifeMeeting> meeting{};    // of `life`, where it is known who has to come

  bool send() const { return function == "ncclSend"; }
  std::int64_t stood_ns() const;  // on its process's own clock; 0 if not known
};

// Something that is waited for: a collective that not all members of a communicator called, the
// other end of a message, or a call of a communicator's life.
struct Missed {
  const Communicator* communicator = nullptr;
  std::uint64_t seq = 0;
  Members came{};
  Members absent{};
  const OpenCall* open = nullptr;  // the send or receive, if it did not return
  const OpenCall* life = nullptr;  // the call of a communicator's life that others are inside
  std::uint64_t missing = 0;       // of `life`: fewer than `absent` if it is not known which
  std::uint64_t refused = 0;       // of `life`: `absent` came, and got this back; 0: they did not
  std::optional<KnownCall> called{};  // the collective's call, from a member that has a line of it
  std::optional<ChannelKey> message{};   // of who came
  const Operation* operation = nullptr;  // the message's, if it is known

  std::int64_t called_ns() const;  // CLOCK_REALTIME; INT64_MAX if not known
};

struct Waits {
  std::vector<OpenCall> open;  // of killed processes, and long ones of running ones
  std::vector<Missed> missed;
  std::deque<Member> life_members;  // those of `missed` that have no communicator yet
  std::map<const read::Process*, const OpenCall*> stands_in;  // the first open call of each
  std::map<const read::Process*, std::size_t> on;  // for each that waits, its first in `missed`

  const OpenCall* open_call(const read::Process* p) const {  // null: none
    const auto call = stands_in.find(p);
    return call == stands_in.end() ? nullptr : call->second;
  }
};

Waits waits_of(const Case& c);

// Adds who waits in calls of communicators' lives, and for whom.
void add_life_waits(const Case& c, const std::function<bool(const read::Process&)>& on_its_way,
                    Waits& waits);
// The id of the communicator that such a call makes or ends, or that a child comes from.
std::string communicator_of(const read::Process& process, const read::LifeCall& call);

}  // namespace tprof::diagnose
