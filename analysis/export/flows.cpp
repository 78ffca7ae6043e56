#include "export/flows.h"

#include <string_view>

#include "interpose/format/record.h"

namespace tprof::trace_export {
namespace {

static_assert(kFlowCategory == "FLOW");

constexpr std::string_view kStart = "\"s\"";
constexpr std::string_view kStep = "\"t\"";
constexpr std::string_view kEnd = "\"f\",\"bp\":\"e\"";

void write_end(std::string_view phase, std::string_view name, std::int64_t id, std::int64_t pid,
               const Touch& at, Pen& out) {
  out << ",\n{\"cat\":\"FLOW\",\"name\":\"" << name << "\",\"ph\":" << phase << ",\"id\":" << id
      << ",\"pid\":" << pid << ",\"tid\":" << at.lane << ",\"ts\":";
  out.micros(at.ts_ns) << "}";
}

}  // namespace

void append_flow(std::int64_t id, std::int64_t pid, const Touch& call, const Touch& time,
                 Pen& out) {
  write_end(kStart, "to the device", id, pid, call, out);
  write_end(kEnd, "to the device", id, pid, time, out);
}

void append_turn(const Meets& meets, std::uint32_t channel, std::uint32_t rank, const Arrival& came,
                 std::int64_t pid, const Touch& touch, Pen& out) {
  const Meets::Turn turn = meets.turn(channel, rank, came);
  if (turn == Meets::Turn::none) return;
  write_end(turn == Meets::Turn::first  ? kStart
            : turn == Meets::Turn::last ? kEnd
                                        : kStep,
            meets.channel(channel).from == Channel::kAll ? "collective" : "message",
            meets.number_of_meet(channel, came.seq), pid, touch, out);
}

}  // namespace tprof::trace_export
