#include "stats/object_gathers.h"

#include <algorithm>
#include <map>

#include "read/events.h"

namespace tprof::stats {
namespace {

struct Gather {
  bool size = false;  // one int64; else uint8
  read::Amounts amounts;
};
// By communicator and sequence number: lines of several threads are not in the order of issue.
using Gathers = std::map<std::pair<std::int64_t, std::uint64_t>, Gather>;

void take(const read::Event& event, Gathers& gathers) {
  if (event.unfinished || event.captured || event.failed || !event.numbered) return;
  const bool size = event.dtype == "int64" && event.count == 1;
  if (!size && event.dtype != "uint8") return;
  const auto host_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(event.dur_ns, 0));
  gathers[{*event.comm, event.seq}] = {size,
                                       {.calls = 1,
                                        .count = event.count,
                                        .elements = event.bytes / (size ? sizeof(std::int64_t) : 1),
                                        .bytes = event.bytes,
                                        .host_ns = host_ns,
                                        .host_ns_max = host_ns}};
}

read::Amounts sum(const Gathers& gathers) {
  read::Amounts total;
  for (const auto& [key, gather] : gathers) {
    if (!gather.size) continue;
    const auto next = gathers.find({key.first, key.second + 1});
    if (next == gathers.end() || next->second.size) continue;
    total += gather.amounts;
    total += next->second.amounts;
  }
  return total;
}

bool has_all_its_lines(const read::Process& process) {
  return process.footer && process.footer->dropped.empty();
}

}  // namespace

std::vector<std::optional<read::Amounts>> object_gathers(const read::Trace& trace) {
  std::vector<Gathers> gathers(trace.processes.size());
  read::LineReader reader;
  reader.event_start = R"({"name":"ncclAllGather")";
  reader.event = [&](const read::Process& owner, const read::Event& event) {
    take(event, gathers[static_cast<std::size_t>(&owner - trace.processes.data())]);
  };
  read::read_lines(trace, reader);
  std::vector<std::optional<read::Amounts>> totals(trace.processes.size());
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (has_all_its_lines(trace.processes[i])) totals[i] = sum(gathers[i]);
  }
  return totals;
}

}  // namespace tprof::stats
