// Tells how and when the traces of processes end, by the clocks of their hosts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "check/finding.h"

namespace tprof::check {

struct Case;

// True for a process that is judged as of now: it runs, or a dump tells of it, which PyTorch writes
// when a call has timed out.
bool is_as_of_now(const read::Process& process);

// CLOCK_REALTIME until which the counts of a process without a footer are known.
std::int64_t known_until_ns(const read::Process& process);
// CLOCK_REALTIME at which a process's trace began. In a merged trace ts 0 may be earlier.
std::int64_t began_ns(const read::Process& process);
// From the first of these to the last of those.
std::pair<std::int64_t, std::int64_t> span_of(const Processes& processes);
std::int64_t oldest_ns(const Processes& processes);  // the smallest known_until_ns()

// CLOCK_REALTIME, on its host, of the last sign of life in the trace of a process. It is clamped so
// that differences can't overflow, whatever a file says.
std::int64_t end_ns(const read::Process& process);

// A process may be killed inside a call that takes microseconds: that is not a hang.
inline constexpr std::int64_t kHangNs = 1'000'000'000;

// True for a process that was killed in no call, or while it waited for its device in a copy, as a
// host at work does most of its time. Without lines, nobody knows for how long it did.
bool killed_at_work(const read::Process& process, const Case& c);

// CLOCK_REALTIME at which its last call ended, and how long before the end of its trace that is;
// nullopt if unknown.
std::optional<std::int64_t> idle_since_ns(const read::Process& process, const Case& c);
std::optional<std::int64_t> idle_ns(const read::Process& process, const Case& c);

// For how long none of these has made a call by now, or had when the first of them ended, by the
// clocks of their hosts; nullopt if unknown.
std::optional<std::int64_t> quiet_ns(const Processes& processes, const Case& c);

// The same, if it was for so long that the job stood; nullopt: it was not, or that is not known.
std::optional<Ns> stood_ns(const Processes& processes, const Case& c);

// The most by which the clocks of two processes may differ. Nullopt if unknown: then their times
// can't be compared.
std::optional<std::int64_t> clock_doubt_ns(const read::Process& a, const read::Process& b,
                                           const Case& c);

// True if the one is known to have ended before the other.
bool ended_before(const read::Process& a, const read::Process& b, const Case& c);
// The latest moment at which it may have ended.
std::int64_t latest_ns(const read::Process& process);
// The first of each host that closed and that did not, the first of all first, and no more than a
// few: with these all are compared.
Processes earliest_of(const Processes& ended);

// With which status all of these ended by themselves; nullopt: that differs, or is not known of
// all.
std::optional<std::string> exit_status_of(const Processes& closed);

// Returns how long before the end of its trace something began.
Ns before_end(const read::Process& process, std::int64_t realtime_ns);

// "what rank 3 did after 2026-01-01 12:00:00.123 UTC is not known"
Fact unknown_after(const Processes& snapshots);

// Advice on what to do next about a process that ended, or that has been quiet since a moment.
Fact where_to_look(const read::Process& process,
                   std::optional<std::int64_t> quiet_since_ns = std::nullopt);

// The state of a process as its kernel tells it, where it runs on this machine.

// Returns where a process's id is valid: its host or, if it is of another pid namespace than the
// host's and this one, its container there.
std::string place_of_pid(const read::Header& h);

// Returns a letter of proc(5); nullopt where it is not known, or the pid is another process's now.
std::optional<char> state_here(const read::Process& p, const std::filesystem::path& proc = "/proc");
// True if it is here, and a signal or a debugger has stopped it.
bool is_stopped(const read::Process& p);

// Leads with processes that are stopped, where these have made no call for long: the findings from
// `before` on, of who stands where, become evidence of that.
void lead_with_stopped(const Case& c, std::size_t before, Findings& found);

}  // namespace tprof::check
