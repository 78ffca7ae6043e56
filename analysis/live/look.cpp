#include "live/look.h"

#include <algorithm>
#include <set>

#include "read/error.h"
#include "read/events.h"
#include "read/ring_file.h"

namespace tprof::live {

// A rank file exists before its first line, so a file that can't be read yet is tried again.
Look look_at(const std::filesystem::path& folder, const job::Choice& choice, read::Wanted wanted) {
  if (!std::filesystem::is_directory(folder)) {
    throw read::BadInput(folder, "expected the folder of a job's rank files");
  }
  Look look;
  try {
    look.traces = read::load_all(
        read::trace_files({folder}), [](std::size_t) {}, wanted);
    job::join_ids(look.traces.traces);
    look.job = job::one_job(look.traces, choice);
  } catch (const read::BadInput& e) {
    look.why = e.what();
    for (const read::TraceFile& file : read::files_in(folder)) {
      const std::string refused = read::beginning_of(file.path).refused;
      if (!refused.empty()) throw read::BadInput(refused);  // waiting does not help
    }
  }
  return look;
}

namespace {

using read::End;
using read::Process;
using read::Trace;

std::int64_t as_of_ns(const Process& p) {
  return p.ledger ? p.ledger->ts_ns : 0;
}

// Looks only at lines that are not in the rank file yet.
void add_open_calls(const Trace& trace, const std::map<const Process*, Rank*>& ranks) {
  Trace rest{{trace.source.file, 0, trace.source.rest}, trace.processes, false};
  for (Process& p : rest.processes) p.offset = 0;
  const auto rank_of = [&](const Process& owner) {
    const auto shown = ranks.find(&trace.processes[owner.lane]);
    return shown == ranks.end() ? nullptr : shown->second;
  };
  const auto see_last = [](Rank* rank, std::int64_t ns) {
    if (rank == nullptr) return;
    const std::int64_t at = rank->process->header.base_time_ns + ns;
    rank->last_call_ns = std::max(rank->last_call_ns.value_or(at), at);
  };
  const auto add = [](Rank& rank, const Process& owner, const auto& call, OpenCall open) {
    if (const auto* comm = read::comm_of(owner, call.comm)) open.communicator = comm->id;
    open.age_ns = rank.as_of_ns - call.ts_ns;
    rank.open.push_back(std::move(open));
  };
  read::read_lines(
      rest, {.event =
                 [&](const Process& owner, const read::Event& e) {
                   Rank* rank = rank_of(owner);
                   see_last(rank, e.ts_ns + e.dur_ns);
                   if (rank == nullptr || !e.unfinished) return;
                   const auto seq = e.collective() ? std::optional(e.seq) : std::nullopt;
                   add(*rank, owner, e, {e.name, e.bucket, "", seq});
                 },
             .last = [&](const Process& owner,
                         const read::Event& e) { see_last(rank_of(owner), e.ts_ns + e.dur_ns); },
             .life =
                 [&](const Process& owner, const read::LifeCall& c) {
                   Rank* rank = rank_of(owner);
                   if (rank == nullptr || !c.unfinished || !c.group_ends) return;
                   see_last(rank, c.ts_ns);
                   add(*rank, owner, c, {c.name, std::nullopt, c.id, std::nullopt});
                 }});
}

// When each rank's last process began.
using LastStarts = std::map<std::int64_t, std::int64_t>;

LastStarts last_starts(const std::vector<const Process*>& processes) {
  LastStarts last;
  for (const Process* p : processes) {
    if (!p->header.rank) continue;
    std::int64_t& ns = last.try_emplace(*p->header.rank, p->header.base_time_ns).first->second;
    ns = std::max(ns, p->header.base_time_ns);
  }
  return last;
}

bool may_go_on(const Trace& trace, const Process& p, const LastStarts& last) {
  if (p.end == End::running) return true;
  const bool closed = p.end == End::closed || trace.source.rest.empty();  // by itself or recovered
  const read::Header& h = p.header;
  const bool followed = h.rank && last.at(*h.rank) > h.base_time_ns;  // by another of its rank
  if (closed || followed) return false;
  return h.launcher && h.boot_id == read::boot_id() &&
         read::process_lives(h.launcher->pid, static_cast<std::uint64_t>(h.launcher->start_ticks));
}

}  // namespace

std::string Rank::name() const {
  const read::Header& h = process->header;
  return h.rank ? std::to_string(*h.rank) : h.host + "-" + std::to_string(h.pid);
}

std::string_view Rank::state() const {
  constexpr std::size_t kByEnd[] = {2, 3, 3, 0, 4, 4};
  return kStates[process->end == End::running && process->snapshot
                     ? 1
                     : kByEnd[static_cast<std::size_t>(process->end)]];
}

const std::map<std::string, std::uint64_t>* Rank::why_dropped() const {
  return process->footer && process->lane == 0 ? &process->footer->dropped : nullptr;
}

std::optional<std::uint64_t> Rank::dropped() const {
  const auto* why = why_dropped();
  if (why == nullptr) return std::nullopt;
  std::uint64_t lines = 0;
  for (const auto& [reason, n] : *why) lines = read::saturated_sum(lines, n);
  return lines;
}

std::vector<Rank> ranks_of(const Look& look) {
  std::vector<Rank> ranks;
  if (!look.job) return ranks;
  for (const Process* p : look.job->processes) {
    const tables::Buckets buckets = tables::bucket_totals(*p);
    ranks.push_back(
        {.process = p, .buckets = buckets, .all = tables::sum(buckets), .as_of_ns = as_of_ns(*p)});
  }
  std::map<const Process*, Rank*> by_process;
  for (Rank& rank : ranks) by_process.emplace(rank.process, &rank);
  for (const Trace& trace : look.traces.traces) {
    const Process& first = trace.processes.front();
    if (first.end == End::running && !first.snapshot) add_open_calls(trace, by_process);
  }
  for (Rank& rank : ranks) std::ranges::sort(rank.open, std::ranges::greater{}, &OpenCall::age_ns);
  return ranks;
}

std::optional<std::int64_t> quiet_ns(const std::vector<Rank>& ranks) {
  // Shorter pauses are normal, as hosts wait for their devices.
  constexpr std::int64_t kStandingNs = 3'000'000'000;
  struct Times {
    std::int64_t last_call = INT64_MIN;
    std::int64_t now = INT64_MIN;
  };
  std::map<std::string_view, Times> of_host;  // each on its own clock
  for (const Rank& rank : ranks) {
    if (!rank.runs() || read::is_child(*rank.process)) continue;
    if (!rank.last_call_ns) return std::nullopt;
    Times& times = of_host[rank.process->header.boot_id];
    times.last_call = std::max(times.last_call, *rank.last_call_ns);
    times.now = std::max(times.now, rank.process->header.base_time_ns + rank.as_of_ns);
  }
  std::optional<std::int64_t> least;
  for (const auto& [host, times] : of_host) {
    const std::int64_t quiet = times.now - times.last_call;
    least = std::min(least.value_or(quiet), quiet);
  }
  return least && *least > kStandingNs ? least : std::nullopt;
}

bool Look::over() const {
  if (!job) return false;
  const std::set<const Process*> ours(job->processes.begin(), job->processes.end());
  const LastStarts last = last_starts(job->processes);
  return std::ranges::all_of(traces.traces, [&](const Trace& trace) {
    return std::ranges::none_of(trace.processes, [&](const Process& p) {
      return ours.contains(&p) && may_go_on(trace, p, last);
    });
  });
}

}  // namespace tprof::live
