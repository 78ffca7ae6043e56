// Writes lanes that only a merged trace has: steps, exposed communication and rates.
#include <fmt/format.h>

#include "export/call_names.h"
#include "export/timeline.h"
#include "interpose/format/record.h"

namespace tprof::trace_export {
namespace {

static_assert(kLaneCategory == "LANE");

// Above the lanes of ranges, devices and computation, and below those of other tools.
constexpr std::int64_t kStepsLane = (std::int64_t{1} << 24) - 2;
constexpr std::int64_t kExposedLane = (std::int64_t{1} << 24) - 1;

// Names a lane, and puts it above the threads, which have 0.
void name_lane(std::string_view name, std::int64_t lane, int index, const Placement& to, Pen& out) {
  out.line() << "{\"cat\":\"LANE\",\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":" << to.pid
             << ",\"tid\":" << lane << ",\"args\":{\"name\":\"" << name << "\"}}";
  out.line() << "{\"cat\":\"LANE\",\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":" << to.pid
             << ",\"tid\":" << lane << ",\"args\":{\"sort_index\":" << index << "}}";
}

// Behind the slice's name.
void end_slice(std::string_view color, std::int64_t lane, std::int64_t from_ns, std::int64_t to_ns,
               const Placement& to, Pen& out) {
  out << "\",";
  out.slice(to.pid, lane, to.moved(from_ns), to.length(from_ns, to_ns - from_ns))
      << ",\"cname\":\"" << color << "\"}";
}

// A line for each window whose rates are not those of the one before.
void write_rates(const RankTimeline& rank, std::int64_t window_ns, const Placement& to, Pen& out) {
  std::size_t windows = 0;
  for (const auto& bytes : rank.rates) windows = std::max(windows, bytes.size());
  std::string before;
  for (std::size_t i = 0; windows != 0 && i <= windows; ++i) {  // the last one ends all rates
    std::string rates;
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      const auto& bytes = rank.rates[b];
      if (bytes.empty()) continue;
      const double in_window = i < bytes.size() ? static_cast<double>(bytes[i]) : 0;
      rates +=
          fmt::format("{}\"{}\":{}", rates.empty() ? "" : ",", title_of(static_cast<Bucket>(b)),
                      in_window * 1e9 / static_cast<double>(window_ns));
    }
    if (rates == before) continue;
    (out.line() << "{\"cat\":\"LANE\",\"name\":\"bytes/s\",\"ph\":\"C\",\"pid\":" << to.pid
                << ",\"tid\":0,\"ts\":")
            .micros(static_cast<std::int64_t>(i) * window_ns)
        << ",\"args\":{" << rates << "}}";
    before = std::move(rates);
  }
}

}  // namespace

void Timeline::write_lanes(const Member& member, Pen& out) const {
  const Placement& to = *member.to;
  if (const auto steps = found_.ranks.find(member.process); steps != found_.ranks.end()) {
    bool named = false;
    for (const steps::Interval& i : steps->second) {
      if (only_.steps && !only_.steps->holds(i.step)) continue;
      if (!std::exchange(named, true)) name_lane("steps", kStepsLane, -2, to, out);
      out.line() << "{\"cat\":\"LANE\",\"name\":\"step " << i.step;
      end_slice("grey", kStepsLane, i.from_ns, i.to_ns, to, out);
    }
  }
  const RankTimeline& rank = ranks_.at(member.process);
  if (rank.exposed) {
    name_lane("exposed communication", kExposedLane, -1, to, out);
    for (const run::Interval& s : *rank.exposed) {
      out.line() << "{\"cat\":\"LANE\",\"name\":\"exposed";
      end_slice("terrible", kExposedLane, s.from_ns, s.to_ns, to, out);
    }
  }
  write_rates(rank, reading_.window_ns, to, out);
}

}  // namespace tprof::trace_export
