// How and when the traces of processes end, by their hosts' clocks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "check/finding.h"

namespace tprof::check {

struct Case;

// True if the process is judged as of now: it runs, or is known by a dump, which PyTorch writes
// when a call has timed out.
bool is_as_of_now(const read::Process& process);

// CLOCK_REALTIME until which the counts of a process without a footer are known.
std::int64_t known_until_ns(const read::Process& process);
// CLOCK_REALTIME of the start of a process's trace. In a merged trace ts 0 may be earlier.
std::int64_t began_ns(const read::Process& process);
// From the earliest beginning to the latest end.
std::pair<std::int64_t, std::int64_t> span_of(const Processes& processes);
std::int64_t oldest_ns(const Processes& processes);  // the smallest known_until_ns()

// CLOCK_REALTIME of the last sign of life in a process's trace. It is clamped, so that differences
// can't overflow even for a damaged file.
std::int64_t end_ns(const read::Process& process);

// A process may be killed inside a short call: that is not a hang.
inline constexpr std::int64_t kHangNs = 1'000'000'000;

// True if the process was killed outside a call, or in a copy that waited for its device, where a
// working host spends most of its time. Without lines nobody knows how long it waited.
bool killed_at_work(const read::Process& process, const Case& c);

// CLOCK_REALTIME when its last call ended, and how long before the end of its trace that was;
// nullopt if unknown.
std::optional<std::int64_t> idle_since_ns(const read::Process& process, const Case& c);
std::optional<std::int64_t> idle_ns(const read::Process& process, const Case& c);

// For how long none of these had made a call, until now or until the first of them ended; nullopt
// if unknown.
std::optional<std::int64_t> quiet_ns(const Processes& processes, const Case& c);

// The same if it was long enough to say that the job stood still; else nullopt.
std::optional<Ns> stood_ns(const Processes& processes, const Case& c);

// True if it was long enough to say that none of these goes on: a running job has more time.
bool stand(const Processes& processes, const Case& c);

// The largest possible difference of two processes' clocks; nullopt if unknown: then their times
// can't be compared.
std::optional<std::int64_t> clock_doubt_ns(const read::Process& a, const read::Process& b,
                                           const Case& c);

// True if `a` is known to have ended before `b`.
bool ended_before(const read::Process& a, const read::Process& b, const Case& c);
// The latest moment at which the process may have ended.
std::int64_t latest_ns(const read::Process& process);
// For each host the first process that closed and the first that did not, in order of time and
// limited in number: comparing with these is enough.
Processes earliest_of(const Processes& ended);

// The exit status of all of these; nullopt: it differs, or is not known for all.
std::optional<std::string> exit_status_of(const Processes& closed);

// Returns how long before the end of the process's trace this moment is.
Ns before_end(const read::Process& process, std::int64_t realtime_ns);

// "what rank 3 did after 2026-01-01 12:00:00.123 UTC is not known"
Fact unknown_after(const Processes& snapshots);

// Advises what to do about a process that ended, or made no call since a moment.
Fact where_to_look(const read::Process& process,
                   std::optional<std::int64_t> quiet_since_ns = std::nullopt);

// The state of a process in the kernel, if it runs on this machine.

// Returns where a process's pid is valid: its host, or its container there if its pid namespace is
// neither the host's nor ours.
std::string place_of_pid(const read::Header& h);

// Returns a state letter of proc(5); nullopt if unknown, or if another process has the pid now.
std::optional<char> state_here(const read::Process& p, const std::filesystem::path& proc = "/proc");
// True if it runs here and was stopped by a signal or a debugger.
bool is_stopped(const read::Process& p);

// Adds a finding about stopped processes that have made no call for long. The findings from index
// `before` on, about where ranks stand, become its evidence.
void lead_with_stopped(const Case& c, std::size_t before, Findings& found);

}  // namespace tprof::check
