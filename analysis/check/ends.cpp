#include "check/ends.h"

#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <set>

#include "check/diagnosis.h"
#include "check/finding.h"
#include "read/ring_file.h"

namespace tprof::check {

namespace {

using read::End;
using read::Process;

// If no rank made a call for longer, the job stands still. Shorter pauses are normal, as hosts wait
// for their devices.
constexpr std::int64_t kStandsNs = 3'000'000'000;
// A live process renews its snapshot every minute, or every ten seconds while it makes calls.
constexpr std::int64_t kMayLiveNs = 120'000'000'000;
// A rank that lived this long after its last call was held up.
constexpr std::int64_t kLivedOnNs = 1'000'000'000;
// A closed process ended at its last sign of life. A killed one may have lived a little longer: its
// writer gives a sign at least five times a second, but may have to wait for a CPU.
constexpr std::int64_t kBetweenSignsNs = 500'000'000;
// Ranks that close within this time of each other closed independently.
constexpr std::int64_t kTogetherNs = 1'000'000'000;

bool fresh(const Processes& snapshots) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t now_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  return now_ns - oldest_ns(snapshots) < kMayLiveNs;
}

bool has_open_life(const Process& p) {
  return p.ledger && std::ranges::any_of(p.ledger->life, [](const read::LifeCalls& calls) {
           return calls.unfinished != 0;
         });
}

bool has_unfinished(const Process& p, const Case& c) {
  return !killed_at_work(p, c) &&
         (has_open_life(p) || std::ranges::any_of(read::rows_of(p), [](const read::Row& row) {
            return row.amounts.unfinished != 0;
          }));
}

// The last collective that one of these called; nullopt if no line tells. If all ranks got equally
// far, all of its communicator reached it.
std::optional<Fact> last_collective(const Processes& who, const Case& c) {
  std::optional<Fact> last;
  std::int64_t last_ns = INT64_MIN;
  for (const Process* p : who) {
    for (const auto& [number, on] : c.calls(*p).comms) {
      if (!on.last) continue;
      const read::Event& e = *on.last;
      const read::Comm* comm = read::comm_of(*p, number);
      const std::int64_t called = p->header.base_time_ns + e.ts_ns;
      if (comm == nullptr || !comm->known() || called <= last_ns) continue;
      last_ns = called;
      last = Fact{Say::open_call,
                  {{"function", e.name}, {"collective", e.seq}, {"communicator", comm->id}}};
    }
  }
  return last;
}

// Progress is reported only if the job stands still, since running processes make calls all the
// time.
void running(const Case& c, Findings& found) {
  const Processes who = select(
      c.job.processes, [](const Process& p) { return p.end == End::running && !p.snapshot; });
  if (who.empty()) return;
  Finding& f = add(found, Kind::running, who);
  const auto quiet = stood_ns(who, c);
  if (!quiet) return;
  const bool stuck = quiet->n >= c.options.stuck_after_ns;
  set(f.text, {"quiet", quiet});
  if (!stuck) set(f.text, {"stuck_after", Ns{c.options.stuck_after_ns}});
  const auto uneven = std::ranges::find_if(
      c.agreements, [](const Agreement& how_far) { return how_far.fewest != how_far.most; });
  if (uneven != c.agreements.end()) {
    const Communicator& on = c.communicators[uneven - c.agreements.begin()];
    set(f.text, {"behind", processes_of(who_issued(on, uneven->fewest))});
    set(f.text, {"made", uneven->fewest});
    set(f.text, {"most", uneven->most});
    set(f.text, {"communicator", on.id});
    return;
  }
  const bool inside_calls =
      std::ranges::any_of(who, [&](const Process* p) { return !c.calls(*p).open.empty(); });
  // A long checkpoint looks the same, so this is no error.
  const auto last = last_collective(who, c);
  if (!stuck || inside_calls || !c.job.missing.empty() || !last) return;
  set(f.text, {"last", *last});
  set(f.text, {"pid", who[0]->header.pid});
  set(f.text, {"host", place_of_pid(who[0]->header)});
}

void tell(const OlderDumps& older, Findings& found) {
  Finding& f = add(found, Kind::running, older.who,
                   {{"who", older.ended->process},
                    {"function", older.function},
                    {"seq", older.seq},
                    {"communicator", older.communicator->id},
                    {"others", older.who}});
  f.text.what = Say::dumped_while_running;
}

// True if nothing shows that a rank was interrupted: no NCCL call was open, and the members of each
// communicator issued equally many collectives and ended in the same way. Jobs whose launcher kills
// idle ranks look like this.
bool all_were_idle(const Case& c) {
  const auto ended = [](const Member& m) {
    return std::pair(m.process->end, m.done == nullptr ? 0 : m.count());
  };
  const auto alike = [&](const Communicator& comm) {
    return std::ranges::all_of(
        comm.members, [&](const Member& m) { return ended(m) == ended(comm.members.front()); });
  };
  return std::ranges::none_of(c.job.processes, [&](auto* p) { return has_unfinished(*p, c); }) &&
         std::ranges::all_of(c.communicators, alike);
}

// Describes how unclosed processes ended. If they were idle, the launcher ended them.
Values ended_quiet(const Processes& who, bool idle, const Case& c) {
  Values values{{"idle", idle}};
  const Processes ranks = select(who, [](const Process& p) { return !p.comms.empty(); });
  if (!idle || ranks.empty()) return values;
  values.emplace_back("ask", true);
  const auto quiet = stood_ns(ranks, c);
  if (!quiet) return values;
  std::int64_t since = INT64_MIN;
  for (const Process* p : ranks) since = std::max(since, idle_since_ns(*p, c).value_or(since));
  values.emplace_back("quiet", quiet);
  values.emplace_back("since", Time{since});
  if (c.job.missing.empty()) values.emplace_back("last", last_collective(ranks, c));
  return values;
}

void not_closed(const Case& c, Findings& found) {
  const auto say = [&](const Processes& who, Kind kind, Severity severity, const Values& values) {
    if (!who.empty()) add(found, kind, who, values).severity = severity;
  };
  const auto those = [&](const auto& are) { return select(c.job.processes, are); };
  for (const bool forced : {true, false}) {
    const Processes seen =
        those([&](const Process& p) { return p.snapshot && p.forced == forced; });
    const bool may_live = !forced && fresh(seen);
    say(seen, Kind::snapshot, may_live ? Severity::note : Severity::warning,
        {{"until", Time{oldest_ns(seen)}}, {"ask", !forced && !may_live}, {"forced", forced}});
  }
  if (!c.older.who.empty()) tell(c.older, found);
  running(c, found);
  const bool all_idle = all_were_idle(c);
  for (const bool idle : {true, false}) {
    const Processes who = those([&](const Process& p) {
      const bool was_idle = !has_unfinished(p, c) && (all_idle || p.comms.empty());
      return p.end == End::recovered && was_idle == idle;
    });
    say(who, Kind::not_closed, idle ? Severity::note : Severity::warning,
        ended_quiet(who, idle, c));
  }
  say(those([](const Process& p) { return p.end == End::partial; }), Kind::partial, Severity::error,
      {});
  for (const bool cut : {false, true}) {
    const Processes who =
        those([&](const Process& p) { return p.end == End::lost && p.cut_short == cut; });
    Values values{{"short", cut}};
    const Processes known = select(who, [](const Process& p) { return p.ledger.has_value(); });
    if (!cut && !known.empty()) values.emplace_back("until", Time{oldest_ns(known)});
    if (!cut && known.size() != who.size()) {
      values.emplace_back("unknown", who.size() - known.size());
    }
    say(who, Kind::lost, Severity::error, values);
  }
}

// Reports ranks that exited with a failure. Their children, such as data-loader workers, are left
// to those that started them.
void exited(const Case& c, Findings& found) {
  std::map<std::uint64_t, Processes> by_status;
  for (const Process* p : c.job.processes) {
    const auto status = p->footer ? p->footer->exit_status : std::nullopt;
    if (status.value_or(0) != 0 && !read::is_child(*p)) by_status[*status].push_back(p);
  }
  for (const auto& [status, who] : by_status) {
    add(found, Kind::exited, who, {{"status", status}});
  }
}

// Reads a process's state from the kernel, and reports stopped processes.

// The header's times come from two clocks, one of which has a resolution of clock ticks.
constexpr std::int64_t kApartNs = 100'000'000;

}  // namespace

bool killed_at_work(const Process& p, const Case& c) {
  if (p.end != End::recovered || has_open_life(p)) return false;
  const auto is_of_nccl = [](const read::Row& row) {
    return row.amounts.unfinished != 0 && row.comm;
  };
  if (!c.has_lines(p)) return std::ranges::none_of(read::rows_of(p), is_of_nccl);
  const std::int64_t end = end_ns(p) - p.header.base_time_ns;
  return std::ranges::all_of(
      c.calls(p).open, [&](const read::Event& e) { return !e.comm && end - e.ts_ns < kHangNs; });
}

std::int64_t known_until_ns(const Process& p) {
  return p.header.base_time_ns + (p.ledger ? p.ledger->ts_ns : 0);
}

std::int64_t began_ns(const Process& p) {
  const read::Header& h = p.header;
  return h.base_time_ns + (h.clock.empty() ? 0 : h.clock.front().ts_ns);
}

std::pair<std::int64_t, std::int64_t> span_of(const Processes& processes) {
  std::int64_t first = INT64_MAX;
  std::int64_t last = INT64_MIN;
  for (const Process* p : processes) {
    first = std::min(first, began_ns(*p));
    last = std::max(last, known_until_ns(*p));
  }
  return {first, last};
}

bool is_as_of_now(const Process& p) {
  return p.end == End::running || p.end == End::dumped;
}

std::int64_t oldest_ns(const Processes& processes) {
  std::int64_t oldest = INT64_MAX;
  for (const Process* p : processes) oldest = std::min(oldest, known_until_ns(*p));
  return oldest;
}

std::int64_t end_ns(const Process& p) {
  return std::clamp<std::int64_t>(known_until_ns(p), 0, INT64_MAX / 8 * 5);
}

std::optional<std::int64_t> idle_since_ns(const Process& p, const Case& c) {
  const auto& calls = c.calls(p);
  if (!calls.knows_last()) return std::nullopt;
  return p.header.base_time_ns + calls.last->ts_ns + calls.last->dur_ns;
}

std::optional<std::int64_t> idle_ns(const Process& p, const Case& c) {
  const auto since = idle_since_ns(p, c);
  return since ? std::optional(end_ns(p) - *since) : std::nullopt;
}

std::optional<std::int64_t> quiet_ns(const Processes& processes, const Case& c) {
  // After the first of them has ended, others may be waiting for it.
  const bool run =
      std::ranges::any_of(processes, [](const Process* p) { return p->end == End::running; });
  struct Times {
    std::int64_t last_call = INT64_MIN;
    std::optional<std::int64_t> until{};
  };
  std::map<std::string_view, Times> of_host;
  for (const Process* p : processes) {
    const auto entered = c.calls(*p).entered_ns();
    const auto idle_since = idle_since_ns(*p, c);
    if (!idle_since && !entered) return std::nullopt;
    auto& [last, until] = of_host[p->header.boot_id];
    last = std::max(last, idle_since.value_or(INT64_MIN));
    if (entered) last = std::max(last, p->header.base_time_ns + *entered);
    const std::int64_t end = end_ns(*p);
    until = run ? std::max(until.value_or(end), end) : std::min(until.value_or(end), end);
  }
  std::optional<std::int64_t> least;
  for (const auto& [host, times] : of_host) {
    const std::int64_t quiet = *times.until - times.last_call;
    least = std::min(least.value_or(quiet), quiet);
  }
  return least;
}

std::optional<Ns> stood_ns(const Processes& processes, const Case& c) {
  const auto quiet = quiet_ns(processes, c);
  return quiet && *quiet > kStandsNs ? std::optional(Ns{*quiet}) : std::nullopt;
}

bool stand(const Processes& processes, const Case& c) {
  const bool run =
      std::ranges::any_of(processes, [](const Process* p) { return p->end == End::running; });
  const auto quiet = stood_ns(processes, c);
  return quiet && (!run || quiet->n >= c.options.stuck_after_ns);
}

// Processes of one host share its clock. Between hosts, the first collective of a communicator
// bounds the difference, since its ranks call it soon after creating the communicator together. The
// times of two such calls differ by the ranks' own delay plus the difference of the clocks. Twice
// that, plus a second, is a safe bound.
std::optional<std::int64_t> clock_doubt_ns(const Process& a, const Process& b, const Case& c) {
  if (a.header.boot_id == b.header.boot_id) return 0;
  for (const auto& [number, mine] : c.calls(a).comms) {
    const read::Comm* comm = read::comm_of(a, number);
    if (comm == nullptr || !mine.begun_ns) continue;
    for (const auto& [other, theirs] : c.calls(b).comms) {
      const read::Comm* same = read::comm_of(b, other);
      if (same == nullptr || same->id != comm->id || !theirs.begun_ns) continue;
      const std::int64_t apart = std::abs(a.header.base_time_ns + *mine.begun_ns -
                                          b.header.base_time_ns - *theirs.begun_ns);
      return 1'000'000'000 + 2 * std::min(apart, INT64_MAX / 8);
    }
  }
  return std::nullopt;
}

std::int64_t latest_ns(const Process& p) {
  return end_ns(p) + (p.end == End::closed ? 0 : kBetweenSignsNs);
}

bool ended_before(const Process& a, const Process& b, const Case& c) {
  const auto doubt = clock_doubt_ns(a, b, c);
  const bool both_closed = a.end == End::closed && b.end == End::closed;
  return doubt && latest_ns(a) + *doubt + (both_closed ? kTogetherNs : 0) < end_ns(b);
}

Processes earliest_of(const Processes& ended) {
  constexpr std::size_t kMost = 64;
  const auto latest = [](const Process* p) { return latest_ns(*p); };
  std::map<std::pair<std::string, bool>, const Process*> of_host;  // by boot and closed
  for (const Process* p : ended) {
    const std::pair key(p->header.boot_id, p->end == End::closed);
    const Process*& first = of_host.try_emplace(key, p).first->second;
    if (latest_ns(*p) < latest_ns(*first)) first = p;
  }
  Processes earliest;
  for (const auto& [key, p] : of_host) earliest.push_back(p);
  std::ranges::stable_sort(earliest, {}, latest);
  if (earliest.size() > kMost) earliest.resize(kMost);
  return earliest;
}

std::optional<std::string> exit_status_of(const Processes& closed) {
  std::set<std::optional<std::uint64_t>> all;
  for (const Process* p : closed) {
    all.insert(p->footer ? p->footer->exit_status : std::nullopt);
  }
  const bool one = all.size() == 1 && all.begin()->has_value();
  return one ? std::optional(std::to_string(**all.begin())) : std::nullopt;
}

Ns before_end(const Process& p, std::int64_t realtime_ns) {
  return {end_ns(p) - realtime_ns};
}

Fact unknown_after(const Processes& snapshots) {
  return {Say::unknown_after, {{"who", snapshots}, {"until", Time{oldest_ns(snapshots)}}}};
}

Fact where_to_look(const Process& p, std::optional<std::int64_t> quiet_since_ns) {
  if (p.end == End::dumped) return {Say::look_at_rank, {{"who", &p}}};
  if (p.end == End::running) {
    return {Say::look_at_stack,
            {{"snapshot", p.snapshot}, {"pid", p.header.pid}, {"host", place_of_pid(p.header)}}};
  }
  // The process ended long after it had become quiet.
  const bool lived_on = quiet_since_ns && end_ns(p) - *quiet_since_ns > kLivedOnNs;
  return {Say::look_at_output,
          {{"who", &p},
           {"host", p.header.host},
           {"at", Time{lived_on ? *quiet_since_ns : end_ns(p)}},
           {"from", lived_on}}};
}

extern const Diagnosis kExited{kCheck | kSummary | kWhole, exited};
extern const Diagnosis kNotClosed{kCheck | kSummary | kWhole | kDoctor, not_closed};

std::string place_of_pid(const read::Header& h) {
  constexpr std::uint64_t kHosts = 4026531836;  // Linux: PROC_PID_INIT_INO
  const bool ours = h.pid_namespace == read::own_pid_namespace() && h.boot_id == read::boot_id();
  if (h.pid_namespace == kHosts || (h.pid_namespace != 0 && ours)) return h.host.str();
  return h.host + (h.pid_namespace == 0 ? " (inside its container, if it has one, which is unknown)"
                                        : " (inside its container: not the host's pid)");
}

std::optional<char> state_here(const Process& p, const std::filesystem::path& proc) {
  if (p.end != End::running || !p.header.monotonic_ns) return std::nullopt;
  std::string boot;
  std::ifstream(proc / "sys/kernel/random/boot_id") >> boot;
  if (boot.empty() || boot != p.header.boot_id) return std::nullopt;
  const auto stat = read::proc_stat(p.header.pid, proc);
  if (!stat) return std::nullopt;
  const std::int64_t booted_ns = p.header.base_time_ns - *p.header.monotonic_ns;
  const auto started_ns =
      static_cast<std::int64_t>(stat->start_ticks) * (1'000'000'000 / sysconf(_SC_CLK_TCK));
  const bool same = std::abs(p.header.start_ns - booted_ns - started_ns) < kApartNs;
  return same ? std::optional(stat->state) : std::nullopt;
}

bool is_stopped(const Process& p) {
  const char state = state_here(p).value_or('?');
  return state == 'T' || state == 't';
}

void lead_with_stopped(const Case& c, std::size_t before, Findings& found) {
  const Processes stopped = select(c.job.processes, [&](const Process& p) {
    const auto idle = idle_ns(p, c);
    return idle && *idle >= c.options.stuck_after_ns && is_stopped(p);
  });
  if (stopped.empty()) return;
  std::string pids;
  for (const Process* p : stopped) {
    if (p->lane == 0) pids += (pids.empty() ? "" : " ") + std::to_string(p->header.pid);
  }
  const Process& first = *stopped[0];
  const bool traced = state_here(first) == 't';
  const std::int64_t since = *idle_since_ns(first, c);
  Findings lead;
  Finding& f = add(lead, Kind::hang, stopped);
  f.text = {Say::process_stopped,
            {{"who", stopped}, {"traced", traced}, {"quiet", before_end(first, since)}}};
  f.next = Fact{traced ? Say::let_go_of : Say::let_go_on,
                {{"pids", pids}, {"pid", first.header.pid}, {"host", first.header.host}}};
  f.time = TimeRange{since, std::max(since, end_ns(first))};
  for (std::size_t i = before; i < found.size(); ++i) tell_in(f, Say::meanwhile, found[i]);
  found.resize(before);
  found.push_back(std::move(f));
}

}  // namespace tprof::check
