#include "report/views.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/text.h"

namespace tprof::report {
namespace {

using tables::SlowCall;
using tables::Slowest;

const read::Comm* comm_of(const SlowCall& c) {
  return read::comm_of(*c.rank, c.line.comm);
}

// A bandwidth of the call, where its time is known.
template <typename Of>
Value bandwidth(const SlowCall& c, Of of) {
  if (!c.bytes || c.time_ns <= 0) return {};
  const read::Comm* comm = comm_of(c);
  const tables::OpKey key{.bucket = c.line.bucket, .nranks = comm == nullptr ? 0 : comm->nranks};
  return of(key, read::Amounts{.device_ns = static_cast<std::uint64_t>(c.time_ns),
                               .device_timed = c.calls,
                               .device_bytes = *c.bytes});
}

std::vector<Column<SlowCall>> slow_columns(const Slowest& s) {
  const bool groups = std::ranges::any_of(s.calls, [](const auto& c) { return c.calls > 1; });
  const auto rate = [&s](const char* title, const char* key, auto of) {
    return Column<SlowCall>{
        s.on_device ? title : nullptr, key, Unit::rate,
        [of, known = s.on_device](const SlowCall& c) { return known ? bandwidth(c, of) : Value(); },
        Show::if_room};
  };
  return {{"rank", "rank", Unit::text, &SlowCall::rank},
          {s.on_device ? "device time" : "host time", "ns", Unit::ns, &SlowCall::time_ns},
          {"operation", "function", Unit::text, [](const SlowCall& c) { return c.line.name; }},
          {nullptr, "dtype", Unit::text, [](const SlowCall& c) { return c.line.dtype; }},
          {groups ? "calls" : nullptr, "calls", Unit::count, &SlowCall::calls},
          {"bytes", "bytes", Unit::bytes, &SlowCall::bytes},
          rate("algbw GB/s", "algbw_GBps",
               [](const tables::OpKey&, const read::Amounts& a) { return tables::algbw(a); }),
          rate("busbw GB/s", "busbw_GBps", tables::busbw),
          {"step", "step", Unit::number, &SlowCall::step, Show::if_any},
          {"communicator", "communicator", Unit::text,
           [](const SlowCall& c) {
             const read::Comm* comm = comm_of(c);
             return comm == nullptr ? Value() : Value(comm->id);
           },
           Show::if_room},
          {"collective", "seq", Unit::number,
           [](const SlowCall& c) { return c.line.collective() ? Value(c.line.seq) : Value(); }},
          {"called at", "realtime_ns", Unit::utc,
           [](const SlowCall& c) { return c.rank->header.base_time_ns + c.line.ts_ns; },
           Show::if_room}};
}

Notes notes(const Slowest& s, std::uint64_t all) {
  Notes out = {
      s.on_device
          ? "By the time on the device, in which a call waits for ranks that come late (--by rank "
            "says who). A collective is listed once, with the rank on which it took longest."
          : "By the host's time, since no call has a device time (TPROF_TIMING=events): for "
            "asynchronous calls it is the time to enqueue them, so there is no bandwidth. A "
            "collective is listed once."};
  if (s.looked < all) {
    out.push_back(fmt::format("{} of {} calls have a line with that time.",
                              text::thousands(s.looked), text::thousands(all)));
  }
  return out;
}

}  // namespace

Section section_of(const Slowest& s, const steps::Found& found, std::uint64_t all, For who) {
  Section of = {.title = "Slowest calls",
                .at = "/calls",
                .facts = {{"from", s.on_device ? "device" : "host"}, {"looked", s.looked}}};
  if (s.calls.empty()) {
    of.lead = {"No call has a line."};
    return of;
  }
  const bool steps = std::ranges::any_of(s.calls, [](const auto& c) { return c.step.has_value(); });
  of.table = sheet(slow_columns(s), s.calls, who);
  of.notes = notes(s, all);
  if (steps) append(of.notes, how_found(found));
  return of;
}

}  // namespace tprof::report
