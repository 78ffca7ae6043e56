// The graph of who waits for whom at the end of a job.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/calls.h"
#include "diagnose/diagnosis.h"

namespace tprof::diagnose {

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

  bool send() const { return function == "ncclSend"; }
  std::int64_t stood_ns() const;  // on its process's own clock; 0 if not known
};

// Something that is waited for: a collective that not all members of a communicator called, or the
// other end of an open send or receive.
struct Missed {
  const Communicator* communicator = nullptr;
  std::uint64_t seq = 0;
  Members came{};
  Members absent{};
  const OpenCall* open = nullptr;     // the send or receive
  std::optional<KnownCall> called{};  // the collective's call, from a member that has a line of it
};

struct Waits {
  std::vector<OpenCall> open;  // of killed processes, and long ones of running ones
  std::vector<Missed> missed;
  std::map<const read::Process*, const OpenCall*> stands_in;  // the first open call of each
  std::map<const read::Process*, std::size_t> on;  // for each that waits, its first in `missed`

  const OpenCall* open_call(const read::Process* p) const {  // null: none
    const auto call = stands_in.find(p);
    return call == stands_in.end() ? nullptr : call->second;
  }
};

Waits waits_of(const Case& c);

}  // namespace tprof::diagnose
