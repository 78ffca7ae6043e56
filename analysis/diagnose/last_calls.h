// What is known of a job's end: the calls that its processes were in, came to, or missed, and the
// sentences that say so in a finding.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diagnose/problem.h"
#include "diagnose/waits.h"

namespace tprof::diagnose {

using Processes = std::vector<const read::Process*>;

Processes processes_of(const std::vector<const Member*>& members);

class LastCalls {
 public:
  LastCalls(const match::Job& job, const Facts& facts, const read::Traces& traces,
            const Waits& waits);

  // The call that a process did not return from, or null.
  const OpenCall* open_call(const read::Process* p) const { return first(open_, p); }
  // Of the collectives that a process did not come to, the one that was called first.
  const Meeting* missed(const read::Process* p);
  // The send or receive whose other end it never called.
  const OpenCall* missed_call(const read::Process* p) const { return first(missed_call_, p); }

  struct FirstCall {
    std::string function;  // empty: no line tells
    std::string text;
    std::int64_t since_ns = INT64_MAX;
  };
  // What was called in a meeting, by who has a line of it.
  const FirstCall& first_call(const Meeting& m);

  // The call in which one of these stood longest, of those on this host where there are any; null:
  // none, or how long is not known.
  const OpenCall* longest(const Processes& processes, const std::string& boot_id = "") const;
  // Whether one of these stood in its call for longer than a kill in its midst explains.
  bool long_open(const Processes& processes) const;
  // Lived on while somebody stood in that call for as long.
  bool lived_on(const read::Process& p, const OpenCall& call) const;
  // Lived on for long without a call, before it was killed.
  bool quiet(const read::Process* p) const;

  // `ncclAllReduce, collective 13 of communicator a3df…`, and ` since …` (empty: not known).
  static std::string name_of_call(const OpenCall& call);
  static std::string since(const OpenCall& call);

  // Evidence: who called the collective; within which NVTX ranges they stand; the last call that
  // returned; what holds for every finding of the kind.
  void add_waiting(const Meeting& m, Problem& p);
  void add_ranges(const Processes& who, Problem& p) const;
  void add_last_call(const read::Process& process, Problem& p) const;
  void add_limits(Problem& p) const;
  // What to do next about a process.
  static std::string where_to_look(const read::Process& p);

 private:
  using ByProcess = std::map<const read::Process*, const OpenCall*>;
  static const OpenCall* first(const ByProcess& calls, const read::Process* p) {
    const auto found = calls.find(p);
    return found == calls.end() ? nullptr : found->second;
  }

  const Facts& facts_;
  const read::Traces& traces_;
  ByProcess open_;         // the first of each
  ByProcess missed_call_;  // the same
  std::map<const read::Process*, std::vector<const Meeting*>> missed_;
  Processes unknown_;
  Processes snapshots_;
  Processes not_closed_;
  std::vector<std::int64_t> missing_;
  std::map<const Meeting*, FirstCall> first_calls_;
  std::size_t files_read_ = 0;
};

}  // namespace tprof::diagnose
