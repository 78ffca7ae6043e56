#include "export/flows.h"

#include <string_view>

#include "interpose/format/record.h"

namespace tprof::trace_export {
namespace {

static_assert(kFlowCategory == "FLOW");

struct Id {
  char prefix[2];  // empty or one character
  std::int64_t numbers[4];
  int count;
};

constexpr std::string_view kStart = "\"s\"";
constexpr std::string_view kStep = "\"t\"";
constexpr std::string_view kEnd = "\"f\",\"bp\":\"e\"";

void write_end(std::string_view phase, std::string_view name, const Id& id, std::int64_t pid,
               std::int64_t tid, std::int64_t ts_ns, Pen& out) {
  out << ",\n{\"cat\":\"FLOW\",\"name\":\"" << name << "\",\"ph\":" << phase << ",\"id\":\""
      << std::string_view(id.prefix);
  for (int i = 0; i < id.count; ++i) {
    if (i != 0) out << ".";
    out << id.numbers[i];
  }
  (out << "\",\"pid\":" << pid << ",\"tid\":" << tid << ",\"ts\":").micros(ts_ns) << "}";
}

}  // namespace

void append_flow(const read::DeviceTime& time, const Began& began, std::int64_t pid, Pen& out) {
  const Id id{"", {pid, time.lane, began.device_ns}, 3};
  // One nanosecond inside each event, and not on the edge between two.
  write_end(kStart, "to the device", id, pid, time.thread, began.call_ns + 1, out);
  write_end(kEnd, "to the device", id, pid, time.lane, began.device_ns + 1, out);
}

void append_turn(const Meets& meets, std::uint32_t channel, std::uint32_t rank, std::uint64_t seq,
                 const Touch& touch, const Placement& to, Pen& out) {
  const std::int64_t at = to.moved(touch.ts_ns);
  const Meets::Turn turn = meets.turn(channel, rank, {seq, at});
  if (turn == Meets::Turn::none) return;
  const Channel& of = meets.channel(channel);
  const bool message = of.from != Channel::kAll;
  const auto number = static_cast<std::int64_t>(seq);
  const Id id =
      message ? Id{"c", {of.comm, of.from, of.to, number}, 4} : Id{"c", {of.comm, number}, 2};
  write_end(turn == Meets::Turn::first  ? kStart
            : turn == Meets::Turn::last ? kEnd
                                        : kStep,
            message ? "message" : "collective", id, to.pid, touch.lane, at, out);
}

}  // namespace tprof::trace_export
