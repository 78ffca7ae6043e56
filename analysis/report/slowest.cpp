#include "report/slowest.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "diagnose/names.h"
#include "report/json.h"
#include "report/steps.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using stats::SlowCall;
using stats::Slowest;
using text::printable;
using text::Table;
using text::thousands;
const read::Comm* comm_of(const SlowCall& c) {
  return read::comm_of(*c.rank, c.device ? c.device->comm : c.line->comm);
}

const std::string& function_of(const SlowCall& c) {
  return c.line ? c.line->name : c.device->name;
}

std::optional<std::uint64_t> number_of(const SlowCall& c) {
  return c.line && c.line->collective() ? std::optional(c.line->seq) : std::nullopt;
}

struct Bandwidths {
  std::optional<double> algorithm{};
  std::optional<double> bus{};
};

Bandwidths bandwidths_of(const SlowCall& c) {
  if (!c.device || !c.line || !c.bytes || c.time_ns <= 0) return {};
  const read::Amounts amounts = {.device_ns = static_cast<std::uint64_t>(c.time_ns),
                                 .device_timed = c.calls,
                                 .device_bytes = *c.bytes};
  const read::Comm* comm = comm_of(c);
  stats::OpKey key;
  key.bucket = c.line->bucket;
  key.nranks = comm == nullptr ? 0 : comm->nranks;
  return {stats::algbw(amounts), stats::busbw(key, amounts)};
}

std::string or_dash(const std::optional<double>& bandwidth) {
  return bandwidth ? fmt::format("{:.2f}", *bandwidth) : "-";
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

std::string to_text(const Slowest& s, const steps::Found& found, std::uint64_t all) {
  if (s.calls.empty()) return "  No call has a line.\n";
  const auto any = [&](auto has) { return std::ranges::any_of(s.calls, has); };
  const bool groups = any([](const SlowCall& c) { return c.calls > 1; });
  const bool steps = any([](const SlowCall& c) { return c.step.has_value(); });
  using enum Table::Align;
  std::vector<std::pair<std::string, Table::Align>> columns = {
      {"rank", left}, {s.on_device ? "device time" : "host time", right}, {"operation", left}};
  if (groups) columns.emplace_back("calls", right);
  columns.emplace_back("bytes", right);
  if (s.on_device) {
    columns.emplace_back("algbw GB/s", right);
    columns.emplace_back("busbw GB/s", right);
  }
  if (steps) columns.emplace_back("step", right);
  columns.emplace_back("communicator", left);
  columns.emplace_back("collective", right);
  columns.emplace_back("called at", left);
  Table table(columns);
  for (const SlowCall& c : s.calls) {
    const auto& rank = c.rank->header.rank;
    std::vector<std::string> cells = {
        rank ? std::to_string(*rank) : diagnose::name_of(*c.rank),
        text::duration(static_cast<std::uint64_t>(std::max<std::int64_t>(c.time_ns, 0))),
        printable(function_of(c))};
    if (groups) cells.push_back(thousands(c.calls));
    cells.push_back(c.bytes ? text::bytes(*c.bytes) : "-");
    if (s.on_device) {
      const Bandwidths b = bandwidths_of(c);
      cells.insert(cells.end(), {or_dash(b.algorithm), or_dash(b.bus)});
    }
    if (steps) cells.push_back(c.step ? std::to_string(*c.step) : "-");
    const read::Comm* comm = comm_of(c);
    const auto number = number_of(c);
    cells.insert(cells.end(), {comm == nullptr ? "-" : printable(comm->id),
                               number ? std::to_string(*number) : "-",
                               diagnose::utc(c.rank->header.base_time_ns + c.ts_ns)});
    table.row(std::move(cells));
  }
  return table.str() + notes(s, all) + (steps ? how_found(found) : "");
}

Json to_json(const Slowest& s) {
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(); };
  Json calls = Json::array();
  for (const SlowCall& c : s.calls) {
    const read::Comm* comm = comm_of(c);
    const Bandwidths b = bandwidths_of(c);
    calls.push_back({{"rank", or_null(c.rank->header.rank)},
                     {"function", function_of(c)},
                     {"dtype", c.line ? Json(c.line->dtype) : Json()},
                     {"communicator", comm == nullptr ? Json() : Json(comm->id)},
                     {"seq", or_null(number_of(c))},
                     {"calls", c.calls},
                     {"bytes", or_null(c.bytes)},
                     {"ns", c.time_ns},
                     {"algbw_GBps", or_null(b.algorithm)},
                     {"busbw_GBps", or_null(b.bus)},
                     {"step", or_null(c.step)},
                     {"realtime_ns", c.rank->header.base_time_ns + c.ts_ns}});
  }
  return {{"from", s.on_device ? "device" : "host"}, {"looked", s.looked}, {"calls", calls}};
}

}  // namespace tprof::report
