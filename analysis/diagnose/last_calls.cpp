#include "diagnose/last_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/completeness.h"
#include "diagnose/first_difference.h"
#include "diagnose/names.h"
#include "diagnose/open_ranges.h"
#include "text/text.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

// A process may be killed inside a call that takes microseconds: that is no hang.
constexpr std::int64_t kHangNs = 1'000'000'000;
// Between calls, a host may wait seconds for its device in a healthy job too.
constexpr std::int64_t kQuietNs = 10'000'000'000;
// For calls that returned, and whose rank has called others since.
constexpr std::size_t kMaxFilesRead = 16;

std::string span(std::int64_t ns) {
  return report::duration(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)));
}

void set(LastCalls::FirstCall& call, const Member& member, const read::Event& e) {
  call.function = e.name;
  call.text = name_of(*member.process) + ": " + describe(e, *member.process);
  call.since_ns = member.process->header.base_time_ns + e.ts_ns;
}

}  // namespace

Processes processes_of(const std::vector<const Member*>& members) {
  Processes processes;
  for (const Member* m : members) processes.push_back(m->process);
  return processes;
}

LastCalls::LastCalls(const match::Job& job, const Facts& facts, const read::Traces& traces,
                     const Waits& waits)
    : facts_(facts), traces_(traces), missing_(job.missing) {
  for (const OpenCall& call : waits.open) open_.try_emplace(call.process, &call);
  for (const Waits::Target& target : waits.targets) {
    if (target.call) missed_call_.try_emplace(target.processes[0], &waits.open[*target.call]);
  }
  for (const Meeting& m : waits.meetings) {
    for (const Member* absent : m.absent) missed_[absent->process].push_back(&m);
  }
  for (const Process* p : job.processes) {
    if (p->end == End::lost || p->end == End::partial) unknown_.push_back(p);
    if (p->snapshot) snapshots_.push_back(p);
    if (p->end == End::recovered) not_closed_.push_back(p);
  }
}

const Meeting* LastCalls::missed(const Process* p) {
  const Meeting* first = nullptr;
  std::int64_t first_ns = INT64_MAX;
  const auto meetings = missed_.find(p);
  if (meetings == missed_.end()) return nullptr;
  for (const Meeting* m : meetings->second) {
    const std::int64_t called = first_call(*m).since_ns;
    if (first == nullptr || called < first_ns) first = m, first_ns = called;
  }
  return first;
}

const LastCalls::FirstCall& LastCalls::first_call(const Meeting& m) {
  const auto [at, fresh] = first_calls_.try_emplace(&m);
  if (!fresh) return at->second;
  const Member* returned = nullptr;  // and whose line of it has to be looked for
  for (const Member* member : m.came) {
    const auto of_process = facts_.find(member->process);
    if (of_process == facts_.end()) continue;
    const LineFacts& facts = of_process->second;
    const auto last = facts.last_collective.find(member->comm->comm);
    if (last != facts.last_collective.end() && last->second.seq == m.seq) {
      set(at->second, *member, last->second);
    }
    for (const read::Event& e : facts.open) {
      if (e.collective() && e.comm == member->comm->comm && e.seq == m.seq) {
        set(at->second, *member, e);
      }
    }
    if (!at->second.function.empty()) return at->second;
    const auto lines = facts.collectives.find(member->comm->comm);
    if (returned == nullptr && lines != facts.collectives.end() &&
        lines->second.covered_until(m.seq) > m.seq) {
      returned = member;
    }
  }
  if (returned == nullptr || files_read_ == kMaxFilesRead) return at->second;
  ++files_read_;
  const auto events = collectives_between(*returned, m.seq, m.seq + 1, traces_);
  if (!events.empty()) set(at->second, *returned, events[0]);
  return at->second;
}

const OpenCall* LastCalls::longest(const Processes& processes, const std::string& boot_id) const {
  const OpenCall* most = nullptr;
  std::pair<bool, std::int64_t> far(false, -1);
  for (const Process* p : processes) {
    const OpenCall* call = open_call(p);
    if (call == nullptr || !call->since_ns) continue;
    const std::pair stood(p->header.boot_id == boot_id, *stood_ns(*call));
    if (stood > far) most = call, far = stood;
  }
  return most;
}

bool LastCalls::long_open(const Processes& processes) const {
  const OpenCall* call = longest(processes);
  return call != nullptr && *stood_ns(*call) >= kHangNs;
}

bool LastCalls::lived_on(const Process& p, const OpenCall& call) const {
  if (p.end == End::closed || !call.since_ns) return false;
  const auto doubt = clock_doubt_ns(p, *call.process, facts_);
  return doubt && end_ns(p) - *call.since_ns - *doubt >= kHangNs;
}

bool LastCalls::quiet(const Process* p) const {
  const auto facts = facts_.find(p);
  if (p->end == End::closed || facts == facts_.end() || !knows_last(*p, facts->second)) {
    return false;
  }
  const read::Event& e = *facts->second.last;
  return end_ns(*p) - p->header.base_time_ns - e.ts_ns - e.dur_ns >= kQuietNs;
}

std::string LastCalls::name_of_call(const OpenCall& call) {
  std::string text = call.function;
  if (call.communicator == nullptr) return text;
  const bool numbered = call.seq.has_value();
  if (call.collective && numbered) text += fmt::format(", collective {}", *call.seq);
  if (!call.collective && call.peer) text += fmt::format(" with its rank {}", *call.peer);
  if (!call.collective && numbered) text += fmt::format(" (number {})", *call.seq);
  return text + " of communicator " + call.communicator->id;
}

std::string LastCalls::since(const OpenCall& call) {
  if (!call.since_ns) return "";
  return fmt::format(" since {}, {} before the end of its trace", utc(*call.since_ns),
                     span(*stood_ns(call)));
}

void LastCalls::add_waiting(const Meeting& m, Problem& p) {
  const FirstCall& call = first_call(m);
  p.evidence.push_back(fmt::format("{} called collective {} of communicator {}{}",
                                   names_of(processes_of(m.came)), m.seq, m.communicator->id,
                                   call.text.empty() ? "" : "; " + call.text));
}

void LastCalls::add_ranges(const Processes& who, Problem& p) const {
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
  std::ranges::move(open_ranges(standing, facts_), std::back_inserter(p.evidence));
}

void LastCalls::add_last_call(const Process& process, Problem& p) const {
  const auto facts = facts_.find(&process);
  if (facts == facts_.end()) return;
  if (!knows_last(process, facts->second)) {
    p.evidence.push_back("which call of " + name_of(process) +
                         " was the last to return, its lines do not tell");
    return;
  }
  const read::Event& e = *facts->second.last;
  const std::int64_t at = process.header.base_time_ns + e.ts_ns;
  const std::int64_t after = end_ns(process) - at - e.dur_ns;
  p.evidence.push_back(fmt::format("the last call of {} that returned: {}; {} {}", name_of(process),
                                   describe(e, process),
                                   process.snapshot ? "until its snapshot it made none for"
                                   : process.end == End::running ? "it runs, and made none for"
                                                                 : "it ended after another",
                                   span(after)));
}

void LastCalls::add_limits(Problem& p) const {
  if (!not_closed_.empty()) {
    p.evidence.push_back(fmt::format("{} did not close (killed or crashed); the counts are exact",
                                     names_of(not_closed_)));
  }
  if (!unknown_.empty()) {
    p.evidence.push_back(fmt::format("what {} did at the end is not known", names_of(unknown_)));
  }
  if (!snapshots_.empty()) p.evidence.push_back(unknown_since(snapshots_));
  if (!missing_.empty()) {
    p.evidence.push_back(fmt::format("ranks without a trace, of which nothing is known: {}",
                                     report::ranges(missing_)));
  }
  p.evidence.emplace_back(
      "NCCL calls return when the work is enqueued: this is what the hosts called, not what the "
      "devices did");
}

std::string LastCalls::where_to_look(const Process& p) {
  if (p.end == End::running) {
    return fmt::format("look at its stack{}: py-spy dump --native --pid {} on {}",
                       p.snapshot ? ", if it runs" : "", p.header.pid, p.header.host);
  }
  return fmt::format("look at the output of {} on {} around {}", name_of(p), p.header.host,
                     utc(end_ns(p)));
}

}  // namespace tprof::diagnose
