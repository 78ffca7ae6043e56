#include "diagnose/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "diagnose/first_difference.h"
#include "diagnose/names.h"
#include "diagnose/open_ranges.h"
#include "diagnose/waits.h"
#include "report/text.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;
using Processes = std::vector<const Process*>;

// A process may be killed inside a call that takes microseconds: that is no hang.
constexpr std::int64_t kHangNs = 1'000'000'000;
// Between calls, a host may wait seconds for its device in a healthy job too.
constexpr std::int64_t kQuietNs = 10'000'000'000;
constexpr std::size_t kMaxFindings = 8;

Processes processes_of(const std::vector<const Member*>& members) {
  Processes processes;
  for (const Member* m : members) processes.push_back(m->process);
  return processes;
}

std::string span(std::int64_t ns) {
  return report::duration(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)));
}

class Finder {
 public:
  Finder(const match::Job& job, const Facts& facts, const read::Traces& traces, const Waits& waits)
      : facts_(facts), traces_(traces), waits_(waits), end_ns_(end_ns(job)) {
    for (const Process* p : job.processes) {
      if (p->end == End::lost || p->end == End::partial) unknown_.push_back(p);
      if (p->end == End::recovered) not_closed_.push_back(p);
    }
    missing_ = job.missing;
  }

  std::vector<Problem> run() {
    Processes roots = waited_for_but_waiting_for_nobody();
    if (roots.empty() && waits_.on.empty()) {
      for (const OpenCall& call : waits_.open) roots.push_back(call.process);
    }
    if (roots.empty()) {
      if (!waits_.on.empty()) cycle();
      return std::move(found_);
    }
    std::ranges::sort(roots);
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    by_place(roots);
    return std::move(found_);
  }

 private:
  Processes waited_for_but_waiting_for_nobody() const {
    std::set<const Process*> roots;
    for (const Waits::Target& target : waits_.targets) {
      for (const Process* p : target.processes) {
        if (!waits_.waits(p)) roots.insert(p);
      }
    }
    return {roots.begin(), roots.end()};
  }

  const OpenCall* open_call(const Process* p) const {
    const auto found = std::ranges::find(waits_.open, p, &OpenCall::process);
    return found == waits_.open.end() ? nullptr : &*found;
  }

  // Of the collectives that a process did not come to, the one that was called first.
  const Meeting* missed(const Process* p) {
    const Meeting* first = nullptr;
    std::int64_t first_ns = INT64_MAX;
    for (const Meeting& m : waits_.meetings) {
      if (std::ranges::find(m.absent, p, &Member::process) == m.absent.end()) continue;
      const std::int64_t called = first_call(m).since_ns;
      if (first == nullptr || called < first_ns) first = &m, first_ns = called;
    }
    return first;
  }

  // The send or receive whose other end it never called.
  const OpenCall* missed_call(const Process* p) const {
    for (const Waits::Target& target : waits_.targets) {
      if (target.call && target.processes[0] == p) return &waits_.open[*target.call];
    }
    return nullptr;
  }

  struct FirstCall {
    std::string function;  // empty: no line tells
    std::string text;
    std::int64_t since_ns = INT64_MAX;
  };

  // What was called in a meeting, by who has a line of it.
  const FirstCall& first_call(const Meeting& m) {
    const auto [at, fresh] = first_calls_.try_emplace(&m);
    if (!fresh) return at->second;
    for (const Member* member : m.came) {
      const auto of_process = facts_.find(member->process);
      if (of_process == facts_.end()) continue;
      const auto lines = of_process->second.collectives.find(member->comm->comm);
      const bool returned = lines != of_process->second.collectives.end() &&
                            lines->second.covered_until(m.seq) > m.seq;
      if (returned) {
        const auto events = collectives_between(*member, m.seq, m.seq + 1, traces_);
        if (!events.empty()) set(at->second, *member, events[0]);
      } else {
        for (const read::Event& e : of_process->second.open) {
          if (e.collective() && e.comm == member->comm->comm && e.seq == m.seq) {
            set(at->second, *member, e);
          }
        }
      }
      if (!at->second.function.empty()) break;
    }
    return at->second;
  }

  static void set(FirstCall& call, const Member& member, const read::Event& e) {
    call.function = e.name;
    call.text = name_of(*member.process) + ": " + describe(e, *member.process);
    call.since_ns = member.process->header.base_time_ns + e.ts_ns;
  }

  void by_place(const Processes& roots) {
    using Place = std::tuple<const Communicator*, std::uint64_t, std::string, bool>;
    struct Group {
      Processes processes;
      const Meeting* meeting = nullptr;
      const OpenCall* call = nullptr;
    };
    std::vector<std::pair<Place, Group>> groups;
    for (const Process* p : roots) {
      const OpenCall* call = open_call(p);
      const Meeting* meeting = missed(p);
      if (call == nullptr && meeting == nullptr) {
        if (const OpenCall* other = missed_call(p)) found_.push_back(no_other_end(*p, *other));
        continue;
      }
      const Place place =
          call != nullptr ? Place(call->communicator, call->seq.value_or(0), call->function, true)
                          : Place(meeting->communicator, meeting->seq, "", false);
      auto group = std::ranges::find(groups, place, &std::pair<Place, Group>::first);
      if (group == groups.end()) group = groups.insert(group, {place, {{}, meeting, call}});
      group->second.processes.push_back(p);
    }
    std::size_t shown = 0;
    for (auto& [place, group] : groups) {
      if (shown++ == kMaxFindings) {
        found_.back().evidence.push_back(
            fmt::format("and {} more places like it", groups.size() - kMaxFindings));
        break;
      }
      std::ranges::sort(group.processes, {}, [](const Process* p) {
        return std::pair(p->header.rank.value_or(INT64_MAX), p->header.pid);
      });
      found_.push_back(group.call != nullptr ? inside(group.processes, *group.call, group.meeting)
                                             : absent(group.processes, *group.meeting));
    }
  }

  // How long the calls that wait for it, or it itself, have been open; nothing where none is.
  bool long_open(const std::vector<const Process*>& processes) const {
    return std::ranges::any_of(waits_.open, [&](const OpenCall& call) {
      return std::ranges::find(processes, call.process) != processes.end() &&
             (!call.since_ns || end_ns_ - *call.since_ns >= kHangNs);
    });
  }

  // Lived on for long without a call, before it was killed.
  bool quiet(const Process* p) const {
    const auto facts = facts_.find(p);
    if (p->end == End::closed || facts == facts_.end() || !facts->second.last) return false;
    const read::Event& e = *facts->second.last;
    return end_ns(*p) - p->header.base_time_ns - e.ts_ns - e.dur_ns >= kQuietNs;
  }

  std::string since(const OpenCall& call) const {
    if (!call.since_ns) return "";
    return fmt::format(" since {}, {} before the end of the trace", utc(*call.since_ns),
                       span(end_ns_ - *call.since_ns));
  }

  static std::string call_name(const OpenCall& call) {
    std::string text = call.function;
    if (call.communicator == nullptr) return text;
    const bool numbered = call.seq.has_value();
    if (call.collective && numbered) text += fmt::format(", collective {}", *call.seq);
    if (!call.collective && call.peer) text += fmt::format(" with its rank {}", *call.peer);
    if (!call.collective && numbered) text += fmt::format(" (number {})", *call.seq);
    return text + " of communicator " + call.communicator->id;
  }

  Problem inside(const Processes& who, const OpenCall& call, const Meeting* meeting) {
    const bool running = call.process->end == End::running;
    const bool hang = long_open(who);
    const bool everybody = call.communicator != nullptr && call.collective &&
                           who.size() == call.communicator->members.size() &&
                           who.size() == static_cast<std::size_t>(call.communicator->nranks);
    Problem p{
        .kind = hang ? "hang" : "stopped",
        .severity = hang ? Severity::error : Severity::warning,
        .ranks = ranks_of(who),
        .text = fmt::format("{}{} {} inside {}{}{}",
                            everybody && who.size() > 1 ? "all ranks, " : "", names_of(who),
                            who.size() > 1 ? (running ? "are" : "were") : (running ? "is" : "was"),
                            call_name(call), since(call), running ? "" : ", when it ended"),
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
      p.evidence.emplace_back(
          "every rank came: nobody is missing, so the devices or the network hold it up");
    } else if (!running && !hang) {
      p.evidence.emplace_back(
          "it hung there, or it was killed there: a call that was entered and "
          "did not return looks the same");
    }
    if (meeting != nullptr) waiting(*meeting, p);
    within(who, p);
    last_call(*who[0], p);
    common(p);
    p.next =
        everybody ? "look at the network and at NCCL's own log (NCCL_DEBUG=INFO)" : stack(*who[0]);
    return p;
  }

  Problem absent(const Processes& who, const Meeting& m) {
    Processes came = processes_of(m.came);
    const bool running =
        std::ranges::any_of(who, [](const Process* p) { return p->end == End::running; });
    const bool hang = running || long_open(came) ||
                      std::ranges::all_of(who, [&](const Process* p) { return quiet(p); });
    const FirstCall& call = first_call(m);
    const std::string what = call.function.empty() ? "" : fmt::format(" ({})", call.function);
    const bool closed =
        std::ranges::all_of(who, [](const Process* p) { return p->end == End::closed; });
    Problem p{.kind = hang ? "hang" : "stopped",
              .severity = hang ? Severity::error : Severity::warning,
              .ranks = ranks_of(who),
              .text = fmt::format(
                  "{} never came to collective {}{} of communicator {}, which {} called: {}",
                  names_of(who), m.seq, what, m.communicator->id, names_of(came),
                  closed    ? "closed in order before it (an exception, or an early exit?)"
                  : running ? "still running"
                  : hang    ? "the others stood and waited"
                            : "stopped there; this alone is no divergence"),
              .communicator = m.communicator->id,
              .seq = m.seq,
              .function = call.function};
    waiting(m, p);
    within(who, p);
    last_call(*who[0], p);
    if (!closed) {
      p.evidence.push_back(fmt::format(
          "{} was in no call that tprof records: look at its own code (an exception, data loading) "
          "and at waits for the device (cudaStreamSynchronize is not recorded)",
          name_of(*who[0])));
    }
    common(p);
    p.next = stack(*who[0]);
    return p;
  }

  Problem no_other_end(const Process& who, const OpenCall& call) {
    const bool hang = long_open({call.process});
    const bool send = call.function == "ncclSend";
    Problem p{.kind = hang ? "hang" : "stopped",
              .severity = hang ? Severity::error : Severity::warning,
              .ranks = ranks_of({&who}),
              .text = fmt::format("{} never called the {} for which {} stands in {}{}",
                                  name_of(who), send ? "ncclRecv" : "ncclSend",
                                  name_of(*call.process), call_name(call), since(call)),
              .communicator = call.communicator->id,
              .seq = call.seq,
              .function = send ? "ncclRecv" : "ncclSend"};
    within({&who}, p);
    last_call(who, p);
    common(p);
    p.next = stack(who);
    return p;
  }

  void waiting(const Meeting& m, Problem& p) {
    const FirstCall& call = first_call(m);
    p.evidence.push_back(fmt::format("{} called collective {} of communicator {}{}",
                                     names_of(processes_of(m.came)), m.seq, m.communicator->id,
                                     call.text.empty() ? "" : "; " + call.text));
  }

  void within(const Processes& who, Problem& p) const {
    std::vector<Standing> standing;
    for (const Process* process : who) {
      const OpenCall* call = open_call(process);
      const auto facts = facts_.find(process);
      std::optional<std::int64_t> thread;
      if (call != nullptr) {
        thread = call->thread;
      } else if (facts != facts_.end() && facts->second.last) {
        thread = facts->second.last->thread;
      }
      standing.emplace_back(process, thread);
    }
    std::ranges::move(open_ranges(standing, facts_, end_ns_), std::back_inserter(p.evidence));
  }

  void last_call(const Process& process, Problem& p) const {
    const auto facts = facts_.find(&process);
    if (facts == facts_.end() || !facts->second.last) return;
    const read::Event& e = *facts->second.last;
    const std::int64_t at = process.header.base_time_ns + e.ts_ns;
    const std::int64_t after = end_ns(process) - at - e.dur_ns;
    p.evidence.push_back(fmt::format(
        "the last call of {} that returned: {}, {} before the end of the trace; {} {}",
        name_of(process), describe(e, process), span(end_ns_ - at),
        process.end == End::running ? "it runs, and made none for" : "it ended after another",
        span(after)));
  }

  void common(Problem& p) const {
    if (!not_closed_.empty()) {
      p.evidence.push_back(fmt::format("{} did not close (killed or crashed); the counts are exact",
                                       names_of(not_closed_)));
    }
    if (!unknown_.empty()) {
      p.evidence.push_back(fmt::format("what {} did at the end is not known", names_of(unknown_)));
    }
    if (!missing_.empty()) {
      p.evidence.push_back(fmt::format("ranks without a trace, of which nothing is known: {}",
                                       report::ranges(missing_)));
    }
    p.evidence.emplace_back(
        "NCCL calls return when the work is enqueued: this is what the hosts called, not what the "
        "devices did");
  }

  static std::string stack(const Process& p) {
    if (p.end == End::running) {
      return fmt::format("look at its stack: py-spy dump --native --pid {} on {}", p.header.pid,
                         p.header.host);
    }
    return fmt::format("look at the output of {} on {} around {}", name_of(p), p.header.host,
                       utc(end_ns(p)));
  }

  // Everybody who waits waits for somebody who waits.
  void cycle() {
    std::map<const Process*, std::size_t> place;
    Processes path;
    const Process* p = waits_.on.begin()->first;
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
      const OpenCall* call = open_call(path[i]);
      if (call != nullptr) {
        if (found.communicator.empty() && call->communicator != nullptr) {
          found.communicator = call->communicator->id;
          found.seq = call->seq;
          found.function = call->function;
        }
        found.text +=
            fmt::format("{} {} in {}", i == 0 ? ":" : ",", name_of(*path[i]), call_name(*call));
        found.evidence.push_back(fmt::format("{} is inside {}{}: it waits for {}",
                                             name_of(*path[i]), call_name(*call), since(*call),
                                             name_of(*next)));
        continue;
      }
      const Meeting* m = missed(next);
      found.evidence.push_back(fmt::format(
          "{} called collective {} of communicator {}, to which {} did not come", name_of(*path[i]),
          m == nullptr ? 0 : m->seq, m == nullptr ? "?" : m->communicator->id, name_of(*next)));
      if (found.communicator.empty() && m != nullptr) {
        found.communicator = m->communicator->id;
        found.seq = m->seq;
        found.function = first_call(*m).function;
      }
    }
    within(path, found);
    common(found);
    found.next =
        "calls that wait for each other must be made in the same order on all ranks; sends and "
        "receives of a pair belong into one ncclGroupStart and ncclGroupEnd "
        "(batch_isend_irecv)";
    if (!long_open(path)) found.kind = "stopped", found.severity = Severity::warning;
    found_.push_back(std::move(found));
  }

  const Facts& facts_;
  const read::Traces& traces_;
  const Waits& waits_;
  std::int64_t end_ns_;
  Processes unknown_;
  Processes not_closed_;
  std::vector<std::int64_t> missing_;
  std::map<const Meeting*, FirstCall> first_calls_;
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
