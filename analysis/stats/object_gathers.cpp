#include "stats/object_gathers.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "read/error.h"
#include "read/events.h"
#include "read/json.h"
#include "read/lanes.h"

namespace tprof::stats {
namespace {

struct Gather {
  bool size = false;  // one int64; else uint8
  read::Amounts amounts;
};
// By communicator and sequence number: lines of several threads are not in the order of issue.
using Gathers = std::map<std::pair<std::int64_t, std::uint64_t>, Gather>;

void take(const read::object& event, Gathers& gathers) {
  const read::object args = read::object_of(event, "args");
  bool captured = false;
  if (const auto e = read::find(args, "captured")) captured = e->get(captured) == 0 && captured;
  if (captured || read::integer_or(args, "result", 0) != 0) return;
  const std::string dtype = read::text(args, "dtype");
  Gather g;
  g.amounts.calls = 1;
  g.amounts.count = read::count(args, "count");
  g.amounts.bytes = read::count(args, "bytes");
  g.size = dtype == "int64" && g.amounts.count == 1;
  if (!g.size && dtype != "uint8") return;
  g.amounts.elements = g.amounts.bytes / (g.size ? sizeof(std::int64_t) : 1);
  const auto duration = read::find(event, "dur");
  double micros = 0;
  if (duration && duration->get(micros) == simdjson::SUCCESS && micros >= 0 &&
      micros * 1000 < static_cast<double>(read::kLatestNs)) {
    g.amounts.host_ns = static_cast<std::uint64_t>(std::llround(micros * 1000));
    g.amounts.host_ns_max = g.amounts.host_ns;
  }
  gathers[{read::integer(args, "comm"), read::count(args, "seq")}] = g;
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
  simdjson::dom::parser parser;
  read::BlockReader reader(trace.source);
  read::Block block;
  while (reader.next(block)) {
    read::each_line(block, [&](const read::Line& line) {
      if (!line.text.starts_with("{\"name\":\"ncclAllGather\"")) return;
      const read::Process* last = read::owner_at(trace, line.offset);
      if (last == nullptr) return;
      try {
        read::object event;
        if (parser.parse(line.text.data(), line.text.size(), false).get(event) != 0) {
          throw read::Malformed("expected one JSON object on this line");
        }
        if (read::text(event, "ph") != "X") return;
        const auto comm = read::optional_integer(read::object_of(event, "args"), "comm");
        const read::Process& owner = read::lane_of_call(*last, comm, std::nullopt);
        take(event, gathers[static_cast<std::size_t>(&owner - trace.processes.data())]);
      } catch (const read::Malformed& e) {
        throw read::BadInput(trace.source.file, line.offset, e.what());
      }
    });
  }
  std::vector<std::optional<read::Amounts>> totals(trace.processes.size());
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (has_all_its_lines(trace.processes[i])) totals[i] = sum(gathers[i]);
  }
  return totals;
}

}  // namespace tprof::stats
