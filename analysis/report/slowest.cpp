#include "report/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "diagnose/names.h"
#include "report/steps.h"
#include "report/table.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using stats::SlowCall;
using stats::Slowest;
using text::thousands;
const read::Comm* comm_of(const SlowCall& c) {
  return read::comm_of(*c.rank, c.line.comm);
}

struct Bandwidths {
  std::optional<double> algorithm{};
  std::optional<double> bus{};
};

Bandwidths bandwidths_of(const SlowCall& c, bool on_device) {
  if (!on_device || !c.bytes || c.time_ns <= 0) return {};
  const read::Amounts amounts = {.device_ns = static_cast<std::uint64_t>(c.time_ns),
                                 .device_timed = c.calls,
                                 .device_bytes = *c.bytes};
  const read::Comm* comm = comm_of(c);
  stats::OpKey key;
  key.bucket = c.line.bucket;
  key.nranks = comm == nullptr ? 0 : comm->nranks;
  return {stats::algbw(amounts), stats::busbw(key, amounts)};
}

std::vector<Column<SlowCall>> slow_columns(const Slowest& s) {
  const auto any = [&](auto has) { return std::ranges::any_of(s.calls, has); };
  const bool groups = any([](const SlowCall& c) { return c.calls > 1; });
  const bool steps = any([](const SlowCall& c) { return c.step.has_value(); });
  const bool timed = s.on_device;
  const auto if_timed = [&](const char* title) { return timed ? title : nullptr; };
  return {
      {"rank", nullptr, Unit::text,
       [](const SlowCall& c) {
         const auto& rank = c.rank->header.rank;
         return rank ? std::to_string(*rank) : diagnose::name_of(*c.rank);
       }},
      {nullptr, "rank", Unit::number,
       [](const SlowCall& c) { return or_unknown(c.rank->header.rank); }},
      {s.on_device ? "device time" : "host time", "ns", Unit::ns, &SlowCall::time_ns},
      {"operation", "function", Unit::text, [](const SlowCall& c) { return c.line.name.str(); }},
      {nullptr, "dtype", Unit::text, [](const SlowCall& c) { return c.line.dtype.str(); }},
      {groups ? "calls" : nullptr, "calls", Unit::count, &SlowCall::calls},
      {"bytes", "bytes", Unit::bytes, [](const SlowCall& c) { return or_unknown(c.bytes); }},
      {if_timed("algbw GB/s"), "algbw_GBps", Unit::rate,
       [timed](const SlowCall& c) { return or_unknown(bandwidths_of(c, timed).algorithm); },
       Show::if_room},
      {if_timed("busbw GB/s"), "busbw_GBps", Unit::rate,
       [timed](const SlowCall& c) { return or_unknown(bandwidths_of(c, timed).bus); },
       Show::if_room},
      {steps ? "step" : nullptr, "step", Unit::number,
       [](const SlowCall& c) { return or_unknown(c.step); }},
      {"communicator", "communicator", Unit::text,
       [](const SlowCall& c) {
         const read::Comm* comm = comm_of(c);
         return comm == nullptr ? Value() : Value(std::string(comm->id));
       },
       Show::if_room},
      {"collective", "seq", Unit::number,
       [](const SlowCall& c) { return c.line.collective() ? Value(c.line.seq) : Value(); }},
      {"called at", nullptr, Unit::text,
       [](const SlowCall& c) { return diagnose::utc(c.rank->header.base_time_ns + c.line.ts_ns); },
       Show::if_room},
      {nullptr, "realtime_ns", Unit::number,
       [](const SlowCall& c) { return c.rank->header.base_time_ns + c.line.ts_ns; }}};
}

std::string notes(const Slowest& s, std::uint64_t all) {
  std::string out;
  if (s.on_device) {
    out +=
        "  By the time on the device, in which a call waits for ranks that come late (--by rank "
        "says who). A collective is listed once, with the rank on which it took longest.\n";
  } else {
    out +=
        "  By the host's time, since no call has a device time (TPROF_TIMING=events): for "
        "asynchronous calls it is the time to enqueue them, so there is no bandwidth. A collective "
        "is listed "
        "once.\n";
  }
  if (s.looked < all) {
    out += fmt::format("  {} of {} calls have a line with that time.\n", thousands(s.looked),
                       thousands(all));
  }
  return out;
}

}  // namespace

Section section_of(const Slowest& s, const steps::Found& found, std::uint64_t all, For who) {
  Section of = {.title = "Slowest calls",
                .at = "/calls",
                .facts = {{"from", s.on_device ? "device" : "host"}, {"looked", s.looked}}};
  if (s.calls.empty()) {
    of.lead = "  No call has a line.\n";
    return of;
  }
  const bool steps = std::ranges::any_of(s.calls, [](const auto& c) { return c.step.has_value(); });
  of.table = sheet(slow_columns(s), s.calls, who);
  of.notes = notes(s, all) + (steps ? how_found(found) : "");
  return of;
}

}  // namespace tprof::report
