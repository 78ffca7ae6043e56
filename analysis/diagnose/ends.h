// How the traces of processes end, and when: by the clocks of their hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collect/lines.h"
#include "diagnose/names.h"

namespace tprof::diagnose {

// A process without its footer: until when its counts are known, as CLOCK_REALTIME.
std::int64_t known_until_ns(const read::Process& process);
std::int64_t oldest_ns(const Processes& processes);  // of these

// CLOCK_REALTIME of its host at which the trace of a process ends: its last sign of life. Within
// bounds in which differences are no overflow, whatever a file says.
std::int64_t end_ns(const read::Process& process);

// When its last call ended; nothing: not known.
std::optional<std::int64_t> idle_since_ns(const read::Process& process,
                                          const collect::Lines& lines);

// By how much the clocks of two processes may differ; nothing: not known, so nothing compares.
std::optional<std::int64_t> clock_doubt_ns(const read::Process& a, const read::Process& b,
                                           const collect::Lines& lines);

// " since 2026-01-01 12:00:00.123 UTC, 6.000 s before the end of its trace"
std::string since(const read::Process& process, std::int64_t realtime_ns);

// "what rank 3 did after 2026-01-01 12:00:00.123 UTC is not known"
std::string unknown_since(const Processes& snapshots);

// What to do next about a process.
std::string where_to_look(const read::Process& process);

}  // namespace tprof::diagnose
