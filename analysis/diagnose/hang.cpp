#include "diagnose/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "diagnose/completeness.h"
#include "diagnose/last_calls.h"
#include "diagnose/names.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

constexpr std::size_t kMaxFindings = 8;

class Finder {
 public:
  Finder(const match::Job& job, const Facts& facts, const read::Traces& traces, const Waits& waits)
      : job_(job), waits_(waits), last_(job, facts, traces, waits) {}

  std::vector<Problem> run() {
    std::set<const Process*> roots = waited_for_but_waiting_for_nobody();
    if (roots.empty() && waits_.on.empty()) {
      for (const OpenCall& call : waits_.open) roots.insert(call.process);
    }
    if (!roots.empty()) {
      by_place(in_order(roots));
    } else if (!waits_.on.empty()) {
      cycle();
    }
    if (!found_.empty()) last_.add_limits(found_.back());
    return std::move(found_);
  }

 private:
  std::set<const Process*> waited_for_but_waiting_for_nobody() const {
    std::set<const Process*> roots;
    for (const Waits::Target& target : waits_.targets) {
      for (const Process* p : target.processes) {
        if (!waits_.waits(p)) roots.insert(p);
      }
    }
    return roots;
  }

  // In that of the job, which is the same however the files were read.
  Processes in_order(const std::set<const Process*>& processes) const {
    Processes ordered;
    std::ranges::copy_if(job_.processes, std::back_inserter(ordered),
                         [&](const Process* p) { return processes.contains(p); });
    return ordered;
  }

  void by_place(const Processes& roots) {
    using Place = std::tuple<const Communicator*, std::uint64_t, std::string, bool>;
    struct Group {
      Processes processes;
      const Meeting* meeting = nullptr;
      const OpenCall* call = nullptr;
    };
    std::vector<Group> groups;
    std::map<Place, std::size_t> number;  // in `groups`
    for (const Process* p : roots) {
      const OpenCall* call = last_.open_call(p);
      const Meeting* meeting = last_.missed(p);
      if (call == nullptr && meeting == nullptr) {
        if (const OpenCall* other = last_.missed_call(p))
          found_.push_back(no_other_end(*p, *other));
        continue;
      }
      const Place place =
          call != nullptr ? Place(call->communicator, call->seq.value_or(0), call->function, true)
                          : Place(meeting->communicator, meeting->seq, "", false);
      const auto [at, fresh] = number.try_emplace(place, groups.size());
      if (fresh) groups.push_back({{}, meeting, call});
      groups[at->second].processes.push_back(p);
    }
    std::size_t shown = 0;
    for (const Group& group : groups) {
      if (shown++ == kMaxFindings) {
        found_.back().evidence.push_back(
            fmt::format("and {} more places like it", groups.size() - kMaxFindings));
        break;
      }
      found_.push_back(group.call != nullptr ? inside(group.processes, *group.call, group.meeting)
                                             : absent(group.processes, *group.meeting));
    }
  }

  Problem inside(const Processes& who, const OpenCall& call, const Meeting* meeting) {
    const bool running = call.process->end == End::running;
    const bool hang = last_.long_open(who);
    const bool everybody = call.communicator != nullptr && call.collective &&
                           who.size() == call.communicator->members.size() &&
                           who.size() == static_cast<std::size_t>(call.communicator->nranks);
    Problem p{
        .kind = hang ? "hang" : "stopped",
        .severity = hang ? Severity::error : Severity::warning,
        .ranks = ranks_of(who),
        .text = fmt::format(
            "{}{} {} inside {}{}{}", everybody && who.size() > 1 ? "all ranks, " : "",
            names_of(who), who.size() > 1 ? (running ? "are" : "were") : (running ? "is" : "was"),
            last_.name_of_call(call), last_.since(call), running ? "" : ", when it ended"),
        .communicator = call.communicator == nullptr ? "" : call.communicator->id,
        .seq = call.seq,
        .function = call.function};
    if (call.communicator != nullptr && call.collective && call.seq) {
      Processes returned;
      for (const Member& m : call.communicator->members) {
        if (m.done != nullptr && m.count() > *call.seq) returned.push_back(m.process);
      }
      if (!returned.empty()) {
        p.evidence.push_back(fmt::format("{} called it too, and it returned", names_of(returned)));
      }
    }
    if (everybody) {
      p.evidence.push_back(kEveryRankCame +
                           std::string(hang ? ", so the devices or the network hold it up" : ""));
    }
    if (!running && !call.since_ns) {
      p.evidence.emplace_back("how long it stood there, lines tell");
    } else if (!running && !hang && !everybody) {
      p.evidence.emplace_back(
          "it hung there, or it was killed there: a call that was entered and "
          "did not return looks the same");
    }
    if (meeting != nullptr) last_.add_waiting(*meeting, p);
    last_.add_ranges(who, p);
    last_.add_last_call(*who[0], p);
    p.next = everybody && hang ? "look at the network and at NCCL's own log (NCCL_DEBUG=INFO)"
                               : last_.where_to_look(*who[0]);
    return p;
  }

  Problem absent(const Processes& who, const Meeting& m) {
    Processes came = processes_of(m.came);
    const bool running =
        std::ranges::any_of(who, [](const Process* p) { return p->end == End::running; });
    std::optional<std::int64_t> seen_ns;  // until when all are known that are by a snapshot
    for (const Process* p : who) {
      if (p->snapshot) seen_ns = std::min(seen_ns.value_or(INT64_MAX), known_until_ns(*p));
    }
    // Who ended did not hang, however long the others waited for it afterwards.
    const OpenCall* stood = last_.longest(came, who[0]->header.boot_id);
    const bool long_stood = stood != nullptr && last_.long_open({stood->process});
    const bool hang = running || std::ranges::all_of(who, [&](const Process* p) {
                        return last_.quiet(p) || (long_stood && last_.lived_on(*p, *stood));
                      });
    const LastCalls::FirstCall& call = last_.first_call(m);
    const std::string what = call.function.empty() ? "" : fmt::format(" ({})", call.function);
    const bool closed =
        std::ranges::all_of(who, [](const Process* p) { return p->end == End::closed; });
    Problem p{.kind = hang ? "hang" : "stopped",
              .severity = hang ? Severity::error : Severity::warning,
              .ranks = ranks_of(who),
              .text = fmt::format(
                  "{} {} collective {}{} of communicator {}, which {} called: {}", names_of(who),
                  seen_ns ? "had not come by " + utc(*seen_ns) + " to" : "never came to", m.seq,
                  what, m.communicator->id, names_of(came),
                  seen_ns   ? "whether it runs is not known"
                  : closed  ? "closed in order before it (an exception, or an early exit?)"
                  : running ? "still running"
                  : hang    ? "the others stood and waited"
                            : "stopped there; this alone is no divergence"),
              .communicator = m.communicator->id,
              .seq = m.seq,
              .function = call.function};
    last_.add_waiting(m, p);
    if (stood != nullptr) {
      p.evidence.push_back(fmt::format("{} {} inside {}{}", name_of(*stood->process),
                                       stood->process->end == End::running ? "is" : "was",
                                       last_.name_of_call(*stood), last_.since(*stood)));
    }
    last_.add_ranges(who, p);
    last_.add_last_call(*who[0], p);
    if (!closed) {
      p.evidence.push_back(fmt::format(
          "{} was in no call that tprof records: look at its own code (an exception, data loading) "
          "and at waits for the device (cudaStreamSynchronize is not recorded)",
          name_of(*who[0])));
    }
    p.next = last_.where_to_look(*who[0]);
    return p;
  }

  Problem no_other_end(const Process& who, const OpenCall& call) {
    const bool hang = who.end == End::running || last_.quiet(&who) ||
                      (last_.long_open({call.process}) && last_.lived_on(who, call));
    const bool send = call.function == "ncclSend";
    Problem p{
        .kind = hang ? "hang" : "stopped",
        .severity = hang ? Severity::error : Severity::warning,
        .ranks = ranks_of({&who}),
        .text = fmt::format("{} never called the {} for which {} stands in {}{}", name_of(who),
                            send ? "ncclRecv" : "ncclSend", name_of(*call.process),
                            last_.name_of_call(call), last_.since(call)),
        .communicator = call.communicator->id,
        .seq = call.seq,
        .function = send ? "ncclRecv" : "ncclSend"};
    last_.add_ranges({&who}, p);
    last_.add_last_call(who, p);
    p.next = last_.where_to_look(who);
    return p;
  }

  // Everybody who waits waits for somebody who waits.
  void cycle() {
    std::map<const Process*, std::size_t> place;
    Processes path;
    const Process* p = *std::ranges::find_if(
        job_.processes, [&](const Process* waiting) { return waits_.waits(waiting); });
    while (!place.contains(p)) {
      place[p] = path.size();
      path.push_back(p);
      p = waits_.targets[waits_.on.at(p)[0]].processes[0];
    }
    path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(place[p]));
    const auto least = std::ranges::min_element(
        path, {}, [](const Process* q) { return q->header.rank.value_or(INT64_MAX); });
    std::rotate(path.begin(), least, path.end());
    Problem found{.kind = "hang",
                  .severity = Severity::error,
                  .ranks = ranks_of(path),
                  .text = names_of(path) + " wait for each other"};
    for (std::size_t i = 0; i < path.size(); ++i) {
      const Process* next = path[(i + 1) % path.size()];
      const OpenCall* call = last_.open_call(path[i]);
      if (call != nullptr) {
        if (found.communicator.empty() && call->communicator != nullptr) {
          found.communicator = call->communicator->id;
          found.seq = call->seq;
          found.function = call->function;
        }
        found.text += fmt::format("{} {} in {}", i == 0 ? ":" : ",", name_of(*path[i]),
                                  last_.name_of_call(*call));
        found.evidence.push_back(fmt::format("{} is inside {}{}: it waits for {}",
                                             name_of(*path[i]), last_.name_of_call(*call),
                                             last_.since(*call), name_of(*next)));
        continue;
      }
      const Meeting* m = last_.missed(next);
      found.evidence.push_back(fmt::format(
          "{} called collective {} of communicator {}, to which {} did not come", name_of(*path[i]),
          m == nullptr ? 0 : m->seq, m == nullptr ? "?" : m->communicator->id, name_of(*next)));
      if (found.communicator.empty() && m != nullptr) {
        found.communicator = m->communicator->id;
        found.seq = m->seq;
        found.function = last_.first_call(*m).function;
      }
    }
    last_.add_ranges(path, found);
    found.next =
        "calls that wait for each other must be made in the same order on all ranks; sends and "
        "receives of a pair belong into one ncclGroupStart and ncclGroupEnd "
        "(batch_isend_irecv)";
    if (!last_.long_open(path)) found.kind = "stopped", found.severity = Severity::warning;
    found_.push_back(std::move(found));
  }

  const match::Job& job_;
  const Waits& waits_;
  LastCalls last_;
  std::vector<Problem> found_;
};

}  // namespace

std::vector<Problem> hangs(const match::Job& job, const std::vector<Communicator>& communicators,
                           const Facts& facts, const read::Traces& traces,
                           const HangOptions& options) {
  const Waits waits = waits_of(job, communicators, facts, options.stuck_after_ns);
  return Finder(job, facts, traces, waits).run();
}

}  // namespace tprof::diagnose
