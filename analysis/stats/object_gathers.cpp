#include "stats/object_gathers.h"

#include <cmath>
#include <map>

#include "read/error.h"
#include "read/json.h"

namespace tprof::stats {
namespace {

struct Gather {
  bool size = false;  // one int64; else uint8
  read::Amounts amounts;
};
// By communicator and sequence number: lines of several threads are not in the order of issue.
using Gathers = std::map<std::pair<std::int64_t, std::int64_t>, Gather>;

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
  if (duration && duration->get(micros) == simdjson::SUCCESS) {
    g.amounts.host_ns = static_cast<std::uint64_t>(std::llround(micros * 1000));
    g.amounts.host_ns_max = g.amounts.host_ns;
  }
  gathers[{read::integer(args, "comm"), read::integer(args, "seq")}] = g;
}

}  // namespace

std::optional<read::Amounts> object_gathers(const read::Trace& trace,
                                            const read::Process& process) {
  if (!process.footer || !process.footer->dropped.empty()) return std::nullopt;
  std::uint64_t end = trace.source.cut;  // of the process's lines: the next header
  for (const read::Process& p : trace.processes) {
    if (p.offset > process.offset) end = std::min(end, p.offset);
  }
  Gathers gathers;
  simdjson::dom::parser parser;
  read::BlockReader reader(trace.source);
  read::Block block;
  while (reader.next(block)) {
    read::each_line(block, [&](const read::Line& line) {
      const bool ours = line.offset >= process.offset && line.offset < end;
      if (!ours || !line.text.starts_with("{\"name\":\"ncclAllGather\"")) return;
      try {
        read::object event;
        if (parser.parse(line.text.data(), line.text.size(), false).get(event) != 0) {
          throw read::Malformed("expected one JSON object on this line");
        }
        if (read::text(event, "ph") == "X") take(event, gathers);
      } catch (const read::Malformed& e) {
        throw read::BadInput(trace.source.file, line.offset, e.what());
      }
    });
  }
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

}  // namespace tprof::stats
