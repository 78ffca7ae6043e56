// The graph of who waits for whom at the end of a job.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/agreement.h"
#include "diagnose/line_facts.h"

namespace tprof::diagnose {

// A call that did not return.
struct OpenCall {
  const read::Process* process = nullptr;
  const Communicator* communicator = nullptr;  // null: a copy
  const Member* member = nullptr;              // the process's part in it
  std::string function;
  bool collective = false;
  std::optional<std::uint64_t> seq;
  std::optional<std::int64_t> peer;
  std::optional<std::int64_t> since_ns;  // CLOCK_REALTIME; unknown without a line
  std::optional<std::int64_t> thread;    // the same
};

// Members of a communicator that called collective `seq`, and those that did not.
struct Meeting {
  const Communicator* communicator = nullptr;
  std::uint64_t seq = 0;
  std::vector<const Member*> came;
  std::vector<const Member*> absent;
};

struct Waits {
  std::vector<OpenCall> open;  // those that count: of dead processes, and long ones of running ones
  std::vector<Meeting> meetings;
  // Whom somebody waits for, and for each process that waits, which of these.
  struct Target {
    std::vector<const read::Process*> processes;
    std::optional<std::size_t> call;  // the open send or receive whose other end is missing
  };
  std::vector<Target> targets;
  std::map<const read::Process*, std::vector<std::size_t>> on;

  bool waits(const read::Process* p) const { return on.contains(p); }
};

Waits waits_of(const match::Job& job, const std::vector<Communicator>& communicators,
               const Facts& facts, std::int64_t stuck_after_ns);

// CLOCK_REALTIME of its host at which the trace of a process ends: its last sign of life.
std::int64_t end_ns(const read::Process& process);
// How long a call stood, on its process's own clock; nothing: not known without a line.
std::optional<std::int64_t> stood_ns(const OpenCall& call);
// By how much the clocks of two processes may differ; nothing: not known, so nothing compares.
std::optional<std::int64_t> clock_doubt_ns(const read::Process& a, const read::Process& b,
                                           const Facts& facts);

}  // namespace tprof::diagnose
