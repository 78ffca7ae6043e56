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
  const OpenCall* open_call(const read::Process* p) const;
  // Of the collectives that a process did not come to, the one that was called first.
  const Meeting* missed(const read::Process* p);
  // The send or receive whose other end it never called.
  const OpenCall* missed_call(const read::Process* p) const;

  struct FirstCall {
    std::string function;  // empty: no line tells
    std::string text;
    std::int64_t since_ns = INT64_MAX;
  };
  // What was called in a meeting, by who has a line of it.
  const FirstCall& first_call(const Meeting& m);

  // Whether one of these stood in its call for longer than a kill in its midst explains.
  bool long_open(const Processes& processes) const;
  // Lived on for long without a call, before it was killed.
  bool quiet(const read::Process* p) const;

  // `ncclAllReduce, collective 13 of communicator a3df…`, and ` since …` (empty: not known).
  static std::string name_of_call(const OpenCall& call);
  std::string since(const OpenCall& call) const;

  // Evidence: who called the collective; within which NVTX ranges they stand; the last call that
  // returned; what holds for every finding of the kind.
  void add_waiting(const Meeting& m, Problem& p);
  void add_ranges(const Processes& who, Problem& p) const;
  void add_last_call(const read::Process& process, Problem& p) const;
  void add_limits(Problem& p) const;
  // What to do next about a process.
  static std::string where_to_look(const read::Process& p);

 private:
  const Facts& facts_;
  const read::Traces& traces_;
  const Waits& waits_;
  std::int64_t end_ns_;
  Processes unknown_;
  Processes not_closed_;
  std::vector<std::int64_t> missing_;
  std::map<const Meeting*, FirstCall> first_calls_;
};

}  // namespace tprof::diagnose
