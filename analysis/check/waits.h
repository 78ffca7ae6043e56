// Where ranks stand at the end of a job, and who waits for whom.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "check/calls.h"
#include "check/diagnosis.h"

namespace tprof::check {

struct Missed;

// A call that did not return.
struct OpenCall {
  const read::Process* process = nullptr;
  const Communicator* communicator = nullptr;  // null: a copy, or the call makes it
  const Member* member = nullptr;              // the process in it
  std::string function{};
  bool collective = false;
  std::optional<std::uint64_t> seq{};
  std::optional<std::int64_t> peer{};
  std::optional<std::int64_t> since_ns{};  // CLOCK_REALTIME; unknown without a line
  std::optional<std::int64_t> thread{};    // unknown without a line, too
  const read::LifeCall* life = nullptr;    // it makes or ends a communicator
  const Missed* meeting = nullptr;         // for `life`, if the number of ranks is known

  std::string made() const { return life == nullptr ? "" : life->id.str(); }
  std::int64_t stood_ns() const;  // on its process's own clock; 0 if not known
};

// Something that ranks wait for: a collective that not all members called, the other end of a
// message, or a call that makes or ends a communicator.
struct Missed {
  const Communicator* communicator = nullptr;
  std::uint64_t seq = 0;
  Processes came{};
  Processes absent{};                    // empty: unknown which of several
  const OpenCall* open = nullptr;        // the message or call of a communicator's life, if in it
  std::optional<KnownCall> called{};     // the collective's call, from a member that has a line
  const ChannelEnd* end = nullptr;       // of a message: of who came
  const Operation* operation = nullptr;  // its call, if that is known
  // For a call that makes or ends a communicator:
  std::uint64_t ranks = 0;    // that have to make it
  std::uint64_t missing = 0;  // fewer than `absent` if it is not known which
  std::uint64_t refused = 0;  // the error that `absent` got; 0: they did not call
  Processes returned{};

  bool of_message() const { return end != nullptr; }
  bool of_life() const { return open != nullptr && open->life != nullptr; }
  std::string function() const;  // that came; empty: not known
  std::string other_end() const { return end->key.send ? "ncclRecv" : "ncclSend"; }
  std::int64_t called_ns() const;  // CLOCK_REALTIME; INT64_MAX if not known
};

struct Waits {
  std::vector<OpenCall> open;  // of killed processes; of running ones, if open for long
  std::deque<Missed> missed;
  std::map<const read::Process*, const OpenCall*> stands_in;  // the first open call of each
  std::map<const read::Process*, const Missed*> on;           // the first that each waits for
  std::map<const read::Process*, std::vector<const Missed*>> absent;  // what each rank missed
  // The oldest call that a rank's device has not ended, if known.
  std::map<const read::Process*, const Operation*> fronts;

  const OpenCall* open_call(const read::Process* p) const {  // null: none
    const auto call = stands_in.find(p);
    return call == stands_in.end() ? nullptr : call->second;
  }
  std::vector<const Missed*> missed_by(const read::Process* p) const {
    const auto all = absent.find(p);
    return all == absent.end() ? std::vector<const Missed*>() : all->second;
  }
  const Missed& add(Missed missed);
};

Waits waits_of(const Case& c);

// Adds calls that make or end a communicator, if ranks are inside them (life_waits.cpp).
void add_life_waits(const Case& c, Waits& waits);

// True for a running process that made a call lately, or whose last call is not known, and for a
// process whose dump is older than the others'.
bool on_its_way(const read::Process& process, const Case& c);

// Returns the id of the communicator that such a call makes or ends, or that it splits.
std::string communicator_of(const read::Process& process, const read::LifeCall& call);

}  // namespace tprof::check
