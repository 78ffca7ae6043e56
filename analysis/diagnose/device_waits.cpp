#include "diagnose/device_waits.h"

#include <algorithm>

#include "diagnose/ends.h"
#include "diagnose/last_calls.h"
#include "diagnose/operations.h"
#include "diagnose/process_state.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

// By then the times of all that devices are through with have been read.
constexpr std::int64_t kAllReadNs = 1'000'000'000;

bool has_all_times(const Process& p, const Case& c) {
  if (!has_all_ends(p) || p.end == End::dumped) return p.end == End::dumped;
  const bool none_lost = p.footer && p.footer->dropped.empty() && p.footer->timing_lost.empty();
  const auto idle_since = idle_since_ns(p, c.lines);
  // A stopped process reads no times.
  const char state = state_here(p).value_or('?');
  return none_lost && !p.snapshot && state != 'T' && state != 't' && idle_since &&
         end_ns(p) - *idle_since >= kAllReadNs;
}

}  // namespace

std::optional<std::uint64_t> ended_by(const Member& m, const Case& c) {
  const auto* device = c.lines.of<Operations>(m.process);
  if (device == nullptr || !has_all_times(*m.process, c)) return std::nullopt;
  const auto through = device->through.find(m.comm->comm);
  return through == device->through.end() ? std::nullopt : std::optional(through->second);
}

std::optional<std::uint64_t> devices_at(const Communicator& communicator, const Case& c) {
  std::optional<std::uint64_t> at;
  for (const Member& m : communicator.members) at = std::max(at, ended_by(m, c));
  return at;
}

bool reads_from_device(const Process& p, const Case& c) {
  if (!idle_since_ns(p, c.lines)) return false;
  return c.lines.of<LastCalls>(&p)->last->bucket == Bucket::D2H;
}

const Process* longest_quiet(const Members& members, const Case& c) {
  const Process* longest = nullptr;
  std::int64_t since = INT64_MAX;
  for (const Member* m : members) {
    const auto idle_since = idle_since_ns(*m->process, c.lines);
    if (m->process->end != End::running || !idle_since || *idle_since >= since) continue;
    longest = m->process;
    since = *idle_since;
  }
  return longest;
}

}  // namespace tprof::diagnose
